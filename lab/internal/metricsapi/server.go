package metricsapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// The names under which the API server finds this one.
const (
	Group, Version     = "metrics.k8s.io", "v1beta1"
	Namespace, Service = "kube-system", "metrics-server"
	// Host is the name that the API server expects in the certificate.
	Host = Service + "." + Namespace + ".svc"
	// Proxy is the user whose certificate the API server's requests come with. It has asked its own
	// authorizer by then.
	Proxy = "front-proxy-client"

	groupVersion = Group + "/" + Version
	root         = "/apis/" + groupVersion
)

// Usage is what something used over a window that ended at a time.
type Usage struct {
	At     time.Time
	Window time.Duration
	// Milli is thousandths of a core.
	Milli int64
	// Bytes of memory.
	Bytes int64
}

// Pod is the usage of one pod.
type Pod struct {
	Namespace, Name, Node string
	Labels                map[string]string
	Containers            []Container
	Usage
}

// Container is the usage of one container, over its pod's window.
type Container struct {
	Name         string
	Milli, Bytes int64
}

// Node is the usage of all pods of a node.
type Node struct {
	Name   string
	Labels map[string]string
	Usage
}

// Source tells what is used now. A pod that has not run for a whole window is missing, and so is one
// on a dead node.
type Source interface {
	Usage(ctx context.Context) ([]Pod, []Node, error)
}

// Server answers for the source that it was given last.
type Server struct {
	mu     sync.Mutex
	source Source
}

// SetSource changes what is answered; nil for nothing.
func (s *Server) SetSource(source Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source = source
}

// Listen serves on a loopback port of its own until the returned function is called.
func (s *Server) Listen(cert tls.Certificate, clients *x509.CertPool) (port int, stop func(), err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, nil, fmt.Errorf("metrics API: %w", err)
	}
	srv := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2", "http/1.1"}},
	}
	go func() { _ = srv.ServeTLS(l, "", "") }()
	return l.Addr().(*net.TCPAddr).Port, func() { srv.Close() }, nil
}

// Handler answers requests that the API server proxies.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+root, func(w http.ResponseWriter, _ *http.Request) { answer(w, resources()) })
	mux.HandleFunc("GET "+root+"/nodes", s.list(nodes))
	mux.HandleFunc("GET "+root+"/nodes/{name}", s.list(nodes))
	mux.HandleFunc("GET "+root+"/pods", s.list(pods))
	mux.HandleFunc("GET "+root+"/namespaces/{namespace}/pods", s.list(pods))
	mux.HandleFunc("GET "+root+"/namespaces/{namespace}/pods/{name}", s.list(pods))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || r.TLS.PeerCertificates[0].Subject.CommonName != Proxy {
			refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "only the API server may ask, and it asks as "+Proxy)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func resources() metav1.APIResourceList {
	verbs := metav1.Verbs{"get", "list"}
	return metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion,
		APIResources: []metav1.APIResource{
			{Name: "nodes", Kind: "NodeMetrics", Verbs: verbs},
			{Name: "pods", Kind: "PodMetrics", Verbs: verbs, Namespaced: true},
		},
	}
}

// object is a PodMetrics or a NodeMetrics; the two differ in which of usage and containers they have.
type object struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metadata          `json:"metadata"`
	Timestamp       metav1.Time       `json:"timestamp"`
	Window          metav1.Duration   `json:"window"`
	Containers      []container       `json:"containers,omitempty"`
	Usage           map[string]string `json:"usage,omitempty"`
}

type metadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	CreationTimestamp metav1.Time       `json:"creationTimestamp"`
}

type container struct {
	Name  string            `json:"name"`
	Usage map[string]string `json:"usage"`
}

type list struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ListMeta `json:"metadata"`
	Items           []object        `json:"items"`
}

func used(milli, bytes int64) map[string]string {
	return map[string]string{"cpu": fmt.Sprintf("%dm", milli), "memory": fmt.Sprintf("%dKi", bytes>>10)}
}

func pods(all []Pod, _ []Node) (kind string, out []object) {
	for _, p := range all {
		o := object{Metadata: metadata{Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, CreationTimestamp: metav1.NewTime(p.At)},
			Timestamp: metav1.NewTime(p.At), Window: metav1.Duration{Duration: p.Window}}
		for _, c := range p.Containers {
			o.Containers = append(o.Containers, container{Name: c.Name, Usage: used(c.Milli, c.Bytes)})
		}
		out = append(out, o)
	}
	return "PodMetrics", out
}

func nodes(_ []Pod, all []Node) (kind string, out []object) {
	for _, n := range all {
		out = append(out, object{Metadata: metadata{Name: n.Name, Labels: n.Labels, CreationTimestamp: metav1.NewTime(n.At)},
			Timestamp: metav1.NewTime(n.At), Window: metav1.Duration{Duration: n.Window}, Usage: used(n.Milli, n.Bytes)})
	}
	return "NodeMetrics", out
}

// list answers one request: for one object when the path names one, else for those that the selectors choose.
func (s *Server) list(of func([]Pod, []Node) (string, []object)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
		byField, err2 := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
		if err := errors.Join(err, err2); err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
		s.mu.Lock()
		source := s.source
		s.mu.Unlock()
		if source == nil {
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the lab's nodes are not up yet")
			return
		}
		p, n, err := source.Usage(r.Context())
		if err != nil {
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error())
			return
		}
		kind, all := of(p, n)
		namespace, name := r.PathValue("namespace"), r.PathValue("name")
		items := []object{}
		for _, o := range all {
			m := o.Metadata
			if (namespace == "" || m.Namespace == namespace) && (name == "" || m.Name == name) && selector.Matches(labels.Set(m.Labels)) &&
				byField.Matches(fields.Set{"metadata.name": m.Name, "metadata.namespace": m.Namespace}) {
				items = append(items, o)
			}
		}
		switch {
		case name == "":
			answer(w, list{TypeMeta: metav1.TypeMeta{Kind: kind + "List", APIVersion: groupVersion}, Items: items})
		case len(items) == 0:
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", strings.ToLower(kind), name))
		default:
			items[0].TypeMeta = metav1.TypeMeta{Kind: kind, APIVersion: groupVersion}
			answer(w, items[0])
		}
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client is gone, or it reads
}

func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	})
}
