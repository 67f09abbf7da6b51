package controller_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/controller"
	"ome.io/ome/internal/testenv"
)

// patience bounds every wait of these tests. It is long because the machine may
// be busy; a wait ends as soon as its condition holds.
const patience = 2 * time.Minute

// stopAPIServer ends the API server, when a test started it.
var stopAPIServer = func() error { return nil }

// apiServer is the API server that the tests of this package share. It starts
// with the first test that asks.
var apiServer = sync.OnceValues(func() (*rest.Config, error) {
	env, err := testenv.Environment()
	if err != nil {
		return nil, err
	}
	stopAPIServer = env.Stop
	cfg, err := env.Start()
	if err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	cfg.QPS = -1
	return cfg, installRights(cfg)
})

// installRights gives the manager's account what it is shipped with.
func installRights(cfg *rest.Config) error {
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return err
	}
	if err := c.Create(context.Background(), namespaceNamed("ome")); err != nil {
		return err
	}
	return installFrom(cfg, filepath.Join(testenv.Root(), "config", "rbac", "manager.yaml"))
}

// installFrom creates the objects of a file.
func installFrom(cfg *rest.Config, path string) error {
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	docs := utilyaml.NewYAMLOrJSONDecoder(f, 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := docs.Decode(obj); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := c.Create(context.Background(), obj); err != nil {
			return err
		}
	}
}

// asManager acts as the manager's account, so that these tests also show that
// its rights suffice.
func asManager(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:ome:ome-controller-manager",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:ome", "system:authenticated"},
	}
	return cfg
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	code := m.Run()
	if err := stopAPIServer(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the API server:", err)
		code = 1
	}
	os.Exit(code)
}

func config(t *testing.T) *rest.Config {
	t.Helper()
	cfg, err := apiServer()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), v1beta1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(config(t), client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// requests counts what a manager sends.
type requests struct {
	mu  sync.Mutex
	all []string
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		r.mu.Lock()
		r.all = append(r.all, req.Method+" "+req.URL.RequestURI())
		r.mu.Unlock()
		return next.RoundTrip(req)
	})
}

func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// since lists requests after the first n, but for watches.
func (r *requests) since(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, s := range r.all[n:] {
		if !strings.Contains(s, "watch=true") {
			out = append(out, s)
		}
	}
	return out
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// startManager runs a manager until the test or the returned function ends it.
func startManager(t *testing.T, o controller.Options) (*requests, func()) {
	t.Helper()
	seen := &requests{}
	cfg := asManager(config(t))
	cfg.Wrap(seen.wrap)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme(t), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Namespace, o.Workers, o.CheckPurity, o.SkipNameValidation = "ome", 4, true, true
	if _, err := controller.Setup(mgr, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	t.Cleanup(stop)
	return seen, stop
}

// until waits for a condition, and tells the last thing it said when it never holds.
func until(t *testing.T, what string, condition func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, last := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting for %s: %s", what, last)
		}
		time.Sleep(25 * time.Millisecond) // between two looks
	}
}

func create(t *testing.T, c client.Client, objs ...client.Object) {
	t.Helper()
	for _, o := range objs {
		if err := c.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("%T %s: %v", o, o.GetName(), err)
		}
	}
}

// sample reads an object of config/samples.
func sample[T client.Object](t *testing.T, file string, into T) T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "samples", file))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw))).Read()
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(doc, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return into
}

// sampleService creates the sample service in a namespace of its own.
func sampleService(t *testing.T, c client.Client, namespace string) *v1beta1.InferenceService {
	t.Helper()
	create(t, c,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		sample(t, "model.yaml", &v1beta1.ClusterBaseModel{}),
		sample(t, "runtime.yaml", &v1beta1.ClusterServingRuntime{}),
	)
	isvc := sample(t, "mistral-pd.yaml", &v1beta1.InferenceService{})
	isvc.Namespace = namespace
	create(t, c, isvc)
	return isvc
}

// settled says whether every component runs what the service asks for.
func settled(t *testing.T, c client.Client, key client.ObjectKey) (bool, string) {
	t.Helper()
	isvc := &v1beta1.InferenceService{}
	if err := c.Get(t.Context(), key, isvc); err != nil {
		return false, err.Error()
	}
	ready := ""
	for _, cond := range isvc.Status.Conditions {
		if string(cond.Type) == "Ready" {
			ready = string(cond.Status) + " " + cond.Reason
		}
	}
	last := fmt.Sprintf("Ready=%q generation=%d", ready, isvc.Generation)
	if !strings.HasPrefix(ready, "True") || isvc.Status.Rollout == nil || isvc.Status.Rollout.ObservedGeneration != isvc.Generation {
		return false, last
	}
	for _, comp := range v1beta1.IsvcComponents(isvc) {
		r := &v1beta1.InferenceReplica{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: v1beta1.ReplicaName(key.Name, comp)}, r); err != nil {
			return false, err.Error()
		}
		s := r.Status
		last += fmt.Sprintf("; %s %s->%s %d/%d", comp, s.CurrentRevision, s.UpdateRevision, s.UpdatedReadyReplicas, s.Replicas)
		if s.ObservedGeneration != r.Generation || s.CurrentRevision == "" || s.CurrentRevision != s.UpdateRevision ||
			s.UpdatedReadyReplicas != *r.Spec.Replicas || s.Replicas != *r.Spec.Replicas {
			return false, last
		}
	}
	return true, last
}

// image returns the images that the component's pods run.
func images(t *testing.T, c client.Client, namespace string, comp v1beta1.ComponentType) []string {
	t.Helper()
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{v1beta1.ComponentLabel: string(comp)}); err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range pods.Items {
		out = append(out, pods.Items[i].Spec.Containers[0].Image)
	}
	slices.Sort(out)
	return out
}
