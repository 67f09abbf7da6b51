package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/lab/internal/stub"
)

// logIndex finds a container's log by name, for the kubelet endpoint.
type logIndex struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]*podLogs
}

type podLogs struct {
	uid        types.UID
	containers map[string][2]*stub.Logs // current and previous
}

func newLogIndex() *logIndex { return &logIndex{pods: map[types.NamespacedName]*podLogs{}} }

func (x *logIndex) set(pod *corev1.Pod, container string, current, previous *stub.Logs) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	p := x.pods[key]
	if p == nil || p.uid != pod.UID {
		p = &podLogs{uid: pod.UID, containers: map[string][2]*stub.Logs{}}
		x.pods[key] = p
	}
	p.containers[container] = [2]*stub.Logs{current, previous}
}

func (x *logIndex) drop(pod *corev1.Pod) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	p := x.pods[key]
	if p == nil || p.uid != pod.UID {
		return
	}
	for _, c := range p.containers {
		c[0].Close()
	}
	delete(x.pods, key)
}

func (x *logIndex) get(pod types.NamespacedName, container string, previous bool) *stub.Logs {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.pods[pod]
	if p == nil {
		return nil
	}
	if previous {
		return p.containers[container][1]
	}
	return p.containers[container][0]
}

// handler is the part of a kubelet's own API that the API server needs for `kubectl logs`. All
// nodes share it.
func (x *logIndex) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", x.serve)
	return mux
}

func (x *logIndex) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	pod := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}
	container := r.PathValue("container")
	logs := x.get(pod, container, q.Get("previous") == "true")
	if logs == nil {
		http.Error(w, fmt.Sprintf("container %q of pod %s has no such log", container, pod), http.StatusNotFound)
		return
	}
	lines, pos, changed, closed := logs.Since(0)
	if n, err := strconv.Atoi(q.Get("tailLines")); err == nil && n >= 0 && n < len(lines) {
		lines = lines[len(lines)-n:]
	}
	if n, err := strconv.Atoi(q.Get("sinceSeconds")); err == nil {
		from := time.Now().Add(-time.Duration(n) * time.Second)
		for len(lines) > 0 && lines[0].Time.Before(from) {
			lines = lines[1:]
		}
	}
	w.Header().Set("Content-Type", "text/plain")
	for {
		for _, line := range lines {
			if q.Get("timestamps") == "true" {
				fmt.Fprintf(w, "%s ", line.Time.UTC().Format(time.RFC3339Nano))
			}
			fmt.Fprintln(w, line.Text)
		}
		if q.Get("follow") != "true" || closed {
			return
		}
		http.NewResponseController(w).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
		lines, pos, changed, closed = logs.Since(pos)
	}
}

// tlsConfig is what the kubelet endpoint serves with.
func tlsConfig(cfg Config) (*tls.Config, error) {
	cert := cfg.ServingCert
	if cert == nil {
		own, err := selfSigned()
		if err != nil {
			return nil, fmt.Errorf("certificate of the kubelet endpoint: %w", err)
		}
		cert = own
	}
	t := &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12}
	if cfg.ClientCAs != nil {
		t.ClientCAs, t.ClientAuth = cfg.ClientCAs, tls.RequireAndVerifyClientCert
	}
	return t, nil
}

func selfSigned() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "ome-lab-kubelet"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(1, 0, 0),
		IPAddresses:  []net.IP{net.ParseIP(hostIP)},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
