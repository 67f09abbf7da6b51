package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

// NodeState is one node as the control socket reports it.
type NodeState struct {
	Name  string `json:"name"`
	Alive bool   `json:"alive"`
}

// control serves the lab's switches on a socket in its directory:
//
//	GET  /nodes               all nodes
//	POST /nodes/{name}/stop   the node dies: no lease, no status, its pods' sockets closed
//	POST /nodes/{name}/start  it comes back and its pods' containers start anew
type control struct {
	nodes   *nodes
	kubelet *kubelet
}

func (c *control) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /nodes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(c.nodes.list())
	})
	mux.HandleFunc("POST /nodes/{name}/{verb}", func(w http.ResponseWriter, r *http.Request) {
		name, verb := r.PathValue("name"), r.PathValue("verb")
		if verb != "stop" && verb != "start" {
			http.Error(w, fmt.Sprintf("%q is not something a node does; want stop or start", verb), http.StatusNotFound)
			return
		}
		if err := c.nodes.setDown(r.Context(), name, verb == "stop"); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		done := make(chan struct{})
		c.kubelet.post(func() {
			defer close(done)
			if verb == "stop" {
				c.kubelet.stopNode(name)
			} else {
				c.kubelet.startNode(name)
			}
		})
		select {
		case <-done:
		case <-r.Context().Done():
		}
	})
	return mux
}

func listenControl(dir string) (net.Listener, error) {
	path := ControlSocket(dir)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove a stale control socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return l, nil
}

// Control talks to the lab in a directory.
type Control struct{ client *http.Client }

// NewControl makes a client of the lab in dir.
func NewControl(dir string) *Control {
	return &Control{&http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", ControlSocket(dir))
		},
		DisableKeepAlives: true,
	}}}
}

// Nodes lists the lab's nodes.
func (c *Control) Nodes(ctx context.Context) ([]NodeState, error) {
	body, err := c.call(ctx, http.MethodGet, "/nodes")
	if err != nil {
		return nil, err
	}
	var list []NodeState
	return list, json.Unmarshal(body, &list)
}

// StopNode makes a node die.
func (c *Control) StopNode(ctx context.Context, name string) error {
	_, err := c.call(ctx, http.MethodPost, "/nodes/"+name+"/stop")
	return err
}

// StartNode brings a node back.
func (c *Control) StartNode(ctx context.Context, name string) error {
	_, err := c.call(ctx, http.MethodPost, "/nodes/"+name+"/start")
	return err
}

func (c *Control) call(ctx context.Context, method, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://lab"+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("is the lab up? %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(string(body)))
	}
	return body, nil
}
