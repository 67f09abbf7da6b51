package stub

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/lab/internal/addr"
	"ome.io/ome/lab/internal/stub/endpoints"
)

// Host is what every stub in a lab shares.
type Host struct {
	// Endpoints shows routers and engines their peers.
	Endpoints *endpoints.Watcher
	// Lag is the longest a change of endpoints takes to reach a router.
	Lag time.Duration
}

// Server is one container's running server.
type Server struct {
	host      *Host
	behaviour atomic.Pointer[Behaviour]
	container *corev1.Container
	pairing   bool
	log       *log.Logger
	metrics   *metrics
	http      *http.Server
	id        atomic.Pointer[Identity]

	engines, decoders *endpoints.View
	client            *http.Client

	stop sync.Once
}

// Start listens on the loopback address behind ip, on each of the container's ports.
func Start(host *Host, pod *corev1.Pod, c *corev1.Container, ip netip.Addr, b Behaviour, logs io.Writer) (*Server, error) {
	component, _ := ComponentOf(pod, c)
	s := &Server{
		host:      host,
		container: c,
		pairing:   literalEnv(c, routerPairingEnv) != "off",
		log:       log.New(logs, "", 0),
		metrics:   newMetrics(),
	}
	id := identityOf(pod, c, component)
	s.id.Store(id)
	s.SetBehaviour(b)

	listen, ok := addr.Listen(ip)
	if !ok {
		return nil, fmt.Errorf("pod %s/%s: %s is not a lab pod address", pod.Namespace, pod.Name, ip)
	}
	ports := Ports(c)
	if len(ports) == 0 {
		ports = []int32{DefaultPort}
	}
	var listeners []net.Listener
	for _, port := range ports {
		l, err := net.Listen("tcp4", netip.AddrPortFrom(listen, uint16(port)).String())
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			return nil, fmt.Errorf("pod %s/%s: container %q: %w", pod.Namespace, pod.Name, c.Name, err)
		}
		listeners = append(listeners, l)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /metrics", s.serveMetrics)
	switch component {
	case Router:
		s.openViews(host, c, id)
		mux.HandleFunc("POST "+PathCompletions, s.measured(s.serveRouter))
	case Engine:
		s.openViews(host, c, id)
		mux.HandleFunc("POST "+PathCompletions, s.measured(s.serveEngine))
		mux.HandleFunc("POST "+PathPrefill, s.measured(s.servePrefill))
	case Decoder:
		mux.HandleFunc("POST "+PathDecode, s.measured(s.serveDecode))
	default:
		mux.HandleFunc("/", s.measured(s.servePlain))
	}
	s.http = &http.Server{Handler: mux, ErrorLog: s.log, ReadHeaderTimeout: time.Minute}
	for _, l := range listeners {
		go s.http.Serve(l)
	}
	s.log.Printf("%s %s revision=%s token=%s listening on %s ports %v", orPlain(component), c.Image, id.Revision, id.Token, ip, ports)
	return s, nil
}

func orPlain(component string) string {
	if component == Plain {
		return "server"
	}
	return component
}

func (s *Server) openViews(host *Host, c *corev1.Container, id *Identity) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	if id.Component == Router {
		s.engines = host.Endpoints.View(peerService(c, id, Engine), host.Lag, rng)
	}
	s.decoders = host.Endpoints.View(peerService(c, id, Decoder), host.Lag, rng)
	s.client = &http.Client{
		Timeout:       upstreamTimeout,
		Transport:     &http.Transport{DialContext: addr.Dial, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// SetPod takes over labels that changed under a running container.
func (s *Server) SetPod(pod *corev1.Pod) {
	old := s.id.Load()
	id := identityOf(pod, s.container, old.Component)
	if *id != *old {
		s.id.Store(id)
	}
}

// SetBehaviour takes over a behaviour that changed under a running container.
func (s *Server) SetBehaviour(b Behaviour) { s.behaviour.Store(&b) }

// Stop is SIGTERM: no new connection from now on, requests in flight are finished, idle
// connections are closed. exited is called once, when the server is done.
func (s *Server) Stop(exited func()) {
	s.stop.Do(func() {
		s.log.Print("SIGTERM: finishing requests in flight")
		go func() {
			err := s.http.Shutdown(context.Background())
			if err == nil {
				time.Sleep(s.behaviour.Load().Drain) // the server that is played takes this long to stop
			}
			s.close()
			exited()
		}()
	})
}

// Kill is SIGKILL: every connection is reset, whatever is in flight.
func (s *Server) Kill() {
	s.http.Close()
	s.close()
}

func (s *Server) close() {
	for _, v := range []*endpoints.View{s.engines, s.decoders} {
		if v != nil {
			v.Close()
		}
	}
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
}

// measured counts a request and applies the behaviour's latency and error rate before serving it.
func (s *Server) measured(serve func(w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		rec := &recorder{ResponseWriter: w, code: http.StatusOK}
		s.metrics.inflight.Add(1)
		defer func() {
			s.metrics.inflight.Add(-1)
			s.metrics.observe(s.id.Load().Revision, rec.code, rec.Header().Get(HeaderFailure), time.Since(began))
		}()
		// The body is read in full first: only then does net/http notice a client that goes away.
		body, err := io.ReadAll(http.MaxBytesReader(rec, r.Body, maxBody))
		if err != nil {
			http.Error(rec, "read request body: "+err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		b := s.behaviour.Load()
		if b.Latency > 0 {
			// A little jitter, so that servers in step don't answer in step.
			pause := time.Duration(float64(b.Latency) * (0.8 + 0.4*rand.Float64()))
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				rec.code = 499 // the client went away
				return
			}
		}
		if b.ErrorRate > 0 && rand.Float64() < b.ErrorRate {
			fail(rec, http.StatusInternalServerError, FailureInjected, "the lab was asked to fail this share of requests")
			return
		}
		serve(rec, r)
	}
}

const maxBody = 1 << 20

type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

func (s *Server) part() *Part {
	id := s.id.Load()
	return &Part{Pod: id.Pod.Name, Revision: id.Revision, Image: id.Image}
}
