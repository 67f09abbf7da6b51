package stub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"

	"ome.io/ome/lab/internal/stub/endpoints"
)

func (s *Server) servePlain(w http.ResponseWriter, _ *http.Request) {
	id := s.id.Load()
	fmt.Fprintf(w, "%s\n", id.Pod.Name)
}

func (s *Server) servePrefill(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, s.handle())
}

func (s *Server) handle() Handle {
	id := s.id.Load()
	return Handle{
		Request:  strconv.FormatUint(rand.Uint64(), 36),
		Pod:      id.Pod.Name,
		Revision: id.Revision,
		Token:    id.Token,
		Wire:     s.behaviour.Load().Wire,
	}
}

func (s *Server) serveDecode(w http.ResponseWriter, r *http.Request) {
	var h Handle
	if err := json.NewDecoder(r.Body).Decode(&h); err != nil {
		http.Error(w, "decode KV handle: "+err.Error(), http.StatusBadRequest)
		return
	}
	id := s.id.Load()
	w.Header().Set(HeaderDecoder, id.Revision)
	w.Header().Set(HeaderEngine, h.Revision)
	if !h.pairs(id.Token, s.behaviour.Load().Wire) {
		s.metrics.mismatches.Add(1)
		message := fmt.Sprintf("decoder %s (revision %s, token %q, wire %q) can't read the KV cache of engine %s (revision %s, token %q, wire %q)",
			id.Pod.Name, id.Revision, id.Token, s.behaviour.Load().Wire, h.Pod, h.Revision, h.Token, h.Wire)
		s.log.Print(message)
		fail(w, http.StatusConflict, FailureMismatch, message)
		return
	}
	writeJSON(w, s.completion(h, map[string]*Part{
		Engine:  {Pod: h.Pod, Revision: h.Revision},
		Decoder: s.part(),
	}))
}

func (s *Server) completion(h Handle, parts map[string]*Part) Completion {
	return Completion{
		ID:      "cmpl-" + h.Request,
		Object:  "text_completion",
		Choices: []Choice{{Text: "lab", FinishReason: "stop"}},
		Lab:     parts,
	}
}

// serveEngine serves a client that comes straight to an engine: alone when the service has no
// decoder, else with one.
func (s *Server) serveEngine(w http.ResponseWriter, r *http.Request) {
	h := s.handle()
	w.Header().Set(HeaderEngine, h.Revision)
	if !s.decoders.Known() {
		writeJSON(w, s.completion(h, map[string]*Part{Engine: s.part()}))
		return
	}
	decoder, ok := pick(s.decoders.Routable(), func(e endpoints.Endpoint) bool { return !s.pairing || agree(s.token(e), h.Token) })
	if !ok {
		fail(w, http.StatusServiceUnavailable, FailureNoEndpoint, "no decoder is in rotation")
		return
	}
	s.decode(w, r, decoder, h)
}

// serveRouter picks an engine and a decoder that can pair, as far as this router can see, and
// joins them. When no two can pair it picks regardless and lets the decoder refuse: the mismatch
// must be seen.
func (s *Server) serveRouter(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(HeaderRouter, s.id.Load().Revision)
	disaggregated := s.decoders.Known()
	decoders := s.decoders.Routable()
	engine, ok := pick(s.engines.Routable(), func(e endpoints.Endpoint) bool {
		if !disaggregated || !s.pairing {
			return true
		}
		for _, d := range decoders {
			if agree(s.token(e), s.token(d)) {
				return true
			}
		}
		return false
	})
	if !ok {
		fail(w, http.StatusServiceUnavailable, FailureNoEndpoint, "no engine is in rotation")
		return
	}
	if !disaggregated {
		s.forward(w, r, engine, PathCompletions, nil)
		return
	}
	token := s.token(engine)
	decoder, ok := pick(decoders, func(d endpoints.Endpoint) bool { return !s.pairing || agree(s.token(d), token) })
	if !ok {
		fail(w, http.StatusServiceUnavailable, FailureNoEndpoint, "no decoder is in rotation")
		return
	}
	var h Handle
	if !s.forward(w, r, engine, PathPrefill, &h) {
		return
	}
	w.Header().Set(HeaderEngine, h.Revision)
	s.decode(w, r, decoder, h)
}

func (s *Server) decode(w http.ResponseWriter, r *http.Request, decoder endpoints.Endpoint, h Handle) {
	body, _ := json.Marshal(h)
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.forward(w, r, decoder, PathDecode, nil)
}

// token is the pairing token of an endpoint's pod.
func (s *Server) token(e endpoints.Endpoint) string {
	return s.host.Endpoints.Labels(e)[LabelPairing]
}

// pick draws one endpoint among those wanted, or among all when none is.
func pick(list []endpoints.Endpoint, want func(endpoints.Endpoint) bool) (endpoints.Endpoint, bool) {
	var wanted []endpoints.Endpoint
	for _, e := range list {
		if want(e) {
			wanted = append(wanted, e)
		}
	}
	if len(wanted) == 0 {
		wanted = list
	}
	if len(wanted) == 0 {
		return endpoints.Endpoint{}, false
	}
	return wanted[rand.IntN(len(wanted))], true
}

// forward sends the request's body to an upstream, once. A 200 is decoded into out when out is not
// nil and otherwise passed on; anything else is passed on, with the class of its failure.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, to endpoints.Endpoint, path string, out any) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "read request body: "+err.Error(), http.StatusBadRequest)
		return false
	}
	// The upstream call outlives an impatient client no longer than its own context allows.
	res, err := Post(r.Context(), s.client, to, path, body)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return false
		}
		s.log.Printf("%s: %v", path, err)
		fail(w, http.StatusBadGateway, FailureUpstream, fmt.Sprintf("%s at %s: %v", to.Pod.Name, to.IP, err))
		return false
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK && out != nil {
		if err := json.NewDecoder(res.Body).Decode(out); err != nil {
			fail(w, http.StatusBadGateway, FailureUpstream, fmt.Sprintf("%s at %s: answer broke off: %v", to.Pod.Name, to.IP, err))
			return false
		}
		return true
	}
	for _, name := range []string{HeaderEngine, HeaderDecoder, HeaderFailure, "Content-Type"} {
		if v := res.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		fail(w, http.StatusBadGateway, FailureUpstream, fmt.Sprintf("%s at %s: answer broke off: %v", to.Pod.Name, to.IP, err))
		return false
	}
	w.WriteHeader(res.StatusCode)
	w.Write(answer)
	return res.StatusCode == http.StatusOK
}

// Post sends body to an endpoint exactly once. net/http resends a request whose kept connection
// turned out dead, if it can rewind the body; here it can't, so such a loss is seen.
func Post(ctx context.Context, client *http.Client, to endpoints.Endpoint, path string, body []byte) (*http.Response, error) {
	url := "http://" + net.JoinHostPort(to.IP, strconv.Itoa(int(to.Port))) + path
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return nil, err
	}
	req.ContentLength = int64(len(body))
	if len(body) == 0 {
		req.Body = http.NoBody
	}
	req.Header.Set("Content-Type", "application/json")
	return client.Do(req)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}
