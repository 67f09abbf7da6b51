package node

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"ome.io/ome/lab/internal/metricsapi"
)

// Config says what Run simulates. Only RESTConfig, Nodes and Dir are needed.
type Config struct {
	// RESTConfig has the right to write nodes, leases, and pods and their status, and to read
	// EndpointSlices. Its rate limits are ignored.
	RESTConfig *rest.Config
	// Nodes is how many nodes there are.
	Nodes int
	// Dir is the lab's directory; the control socket is put there.
	Dir string
	Log *slog.Logger

	// AddrBlock is the block of pod addresses, or nil for the first one free on this machine.
	AddrBlock *int
	// GPUs per node; 8 when zero.
	GPUs int
	// Resources are added to each node's capacity, or replace what is there by the same name.
	Resources corev1.ResourceList

	// RouterLag is the longest a change of endpoints takes to reach a stub router; 2 s when zero,
	// none when negative.
	RouterLag time.Duration
	// LeaseEvery is the time between two heartbeats of a node; 2 s when zero, which suits a node
	// monitor that gives nodes 5 s of grace.
	LeaseEvery time.Duration
	// BackOff is the first wait before a crashed container or a failed pull is tried again, and
	// MaxBackOff the longest; each wait is twice the one before. 10 s and 5 min when zero, as in a
	// real kubelet.
	BackOff, MaxBackOff time.Duration

	// ServingCert is what the kubelet endpoint serves with; self-signed when nil, which an API
	// server without --kubelet-certificate-authority accepts.
	ServingCert *tls.Certificate
	// ClientCAs, when set, are the only issuers of clients that may read container logs.
	ClientCAs *x509.CertPool

	// Metrics, when set, is told what the pods use.
	Metrics *metricsapi.Server

	// Registered, when set, is called once all nodes exist and pods are being watched.
	Registered func()
}

func (c Config) withDefaults() Config {
	or := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	or(&c.RouterLag, 2*time.Second)
	or(&c.LeaseEvery, 2*time.Second)
	or(&c.BackOff, 10*time.Second)
	or(&c.MaxBackOff, 5*time.Minute)
	c.RouterLag = max(c.RouterLag, 0)
	if c.GPUs == 0 {
		c.GPUs = 8
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// socketPathLimit is what the shortest of the supported systems allows, less the final zero.
const socketPathLimit = 103

// ControlSocket is where the lab in dir takes commands about its nodes: in dir itself, or in the
// system's temporary directory when that path is too long for a socket.
func ControlSocket(dir string) string {
	path := filepath.Join(dir, "control.sock")
	if len(path) > socketPathLimit {
		path = filepath.Join(os.TempDir(), fmt.Sprintf("ome-lab-%.8x.sock", sha256.Sum256([]byte(dir))))
	}
	return path
}

func (c Config) capacity() corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("192"),
		corev1.ResourceMemory:           resource.MustParse("2Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("4Ti"),
		corev1.ResourcePods:             resource.MustParse("250"),
		"nvidia.com/gpu":                *resource.NewQuantity(int64(c.GPUs), resource.DecimalSI),
		"rdma/hca":                      resource.MustParse("8"),
	}
	for name, q := range c.Resources {
		list[name] = q
	}
	return list
}
