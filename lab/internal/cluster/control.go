package cluster

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// serveControl takes orders to stop, kill and start one component. It listens on loopback, where other users of the
// machine can reach it too: hence the token, which only the owner of the lab's directory can read.
func (s *supervisor) serveControl() (func(), error) {
	raw := make([]byte, 16)
	if _, err := rand.Read(raw); err != nil {
		return nil, fmt.Errorf("make the control token: %w", err)
	}
	token := hex.EncodeToString(raw)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for orders: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /components/{name}/{verb}", func(w http.ResponseWriter, r *http.Request) {
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(got), []byte(token)) != 1 {
			http.Error(w, "wrong token", http.StatusUnauthorized)
			return
		}
		if err := s.obey(r.Context(), r.PathValue("name"), r.PathValue("verb")); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = srv.Serve(l) }()
	s.mu.Lock()
	s.control, s.token = "http://"+l.Addr().String(), token
	s.mu.Unlock()
	s.publish()
	return func() { srv.Close() }, nil
}

func (s *supervisor) obey(ctx context.Context, name, verb string) error {
	s.mu.Lock()
	u := s.units[name]
	s.mu.Unlock()
	if u == nil {
		if name == ManagerName {
			return fmt.Errorf("this lab runs no manager: it was started with --no-manager")
		}
		return fmt.Errorf("this lab has no component %q", name)
	}
	switch verb {
	case "stop":
		return s.stop(u, false)
	case "kill":
		return s.stop(u, true)
	case "start":
		// A caller that gives up must not take the component down again.
		err := s.start(context.WithoutCancel(ctx), u)
		s.publish()
		return err
	}
	return fmt.Errorf("unknown order %q: want stop, kill or start", verb)
}

// Order has the supervisor stop, kill or start one component, and returns when it is done; a start is done when the
// component is ready.
func (l Layout) Order(ctx context.Context, name, verb string) error {
	st, err := l.LoadRunning()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, st.Control+"/components/"+name+"/"+verb, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+st.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: the supervisor does not answer: %w", verb, name, err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", verb, name, strings.TrimSpace(string(body)))
	}
	return nil
}
