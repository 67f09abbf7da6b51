package load

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"ome.io/ome/lab/internal/addr"
	"ome.io/ome/lab/internal/stub"
)

func TestScheduleIsFixed(t *testing.T) {
	start := time.Unix(0, 0)
	for _, tc := range []struct {
		i    int
		rate float64
		want time.Duration
	}{
		{0, 50, 0}, {1, 50, 20 * time.Millisecond}, {3000, 50, time.Minute}, {1, 0.5, 2 * time.Second}, {1_000_000, 1000, 1000 * time.Second},
	} {
		if got := scheduled(start, tc.i, tc.rate).Sub(start); got != tc.want {
			t.Errorf("request %d at %v a second leaves at %s, want %s", tc.i, tc.rate, got, tc.want)
		}
	}
}

// The loop must be open: here nobody is answered until the last request has left, so a loop that
// waits for answers never ends. And the wait must show in the latency.
func TestOpenLoop(t *testing.T) {
	const requests = 20
	cfg := Config{Rate: 100, Duration: requests * 10 * time.Millisecond}
	var left sync.WaitGroup
	left.Add(requests)
	finished := make(chan *Result)
	go func() {
		finished <- flow(context.Background(), cfg, types.NamespacedName{}, func(int) outcome {
			left.Done()
			left.Wait()
			return outcome{ok: true}
		})
	}()
	var r *Result
	select {
	case r = <-finished:
	case <-time.After(30 * time.Second):
		t.Fatal("requests wait for the answers to earlier ones")
	}
	if r.Sent != requests || r.OK != requests {
		t.Fatalf("sent %d, ok %d, want %d of each", r.Sent, r.OK, requests)
	}
	span := 10 * time.Millisecond * (requests - 1)
	if got := r.LastRequest.Sub(r.FirstRequest); got != span {
		t.Errorf("first to last request: %s, want %s", got, span)
	}
	if want := float64(span.Milliseconds()); r.LatencyMS.Max < want {
		t.Errorf("the first request waited %v ms and shows %v ms", want, r.LatencyMS.Max)
	}
}

func TestStopsWhenTold(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := flow(ctx, Config{Rate: 1000}, types.NamespacedName{}, func(i int) outcome {
		if i == 5 {
			cancel()
		}
		return outcome{ok: true}
	})
	if r.Sent < 6 || r.Sent > 500 || r.OK != r.Sent {
		t.Errorf("sent %d, ok %d", r.Sent, r.OK)
	}
}

func TestResult(t *testing.T) {
	c := newCollector()
	at := func(s int) time.Time { return time.Unix(int64(s), 0).UTC() }
	for i := range 100 {
		engine := "old"
		if i >= 60 {
			engine = "new"
		}
		c.add(at(i), outcome{ok: true, latency: time.Duration(i+1) * time.Millisecond, engine: engine, decoder: "d"})
	}
	for i := range 20 {
		c.add(at(100+i), outcome{failure: stub.FailureMismatch, detail: "x\n"})
	}
	c.add(at(120), outcome{failure: failureConnection, detail: "refused"})
	r := c.result(Config{Rate: 1, Service: types.NamespacedName{Namespace: "ns", Name: "m"}}, types.NamespacedName{Namespace: "ns", Name: "m-router"})

	if diff := cmp.Diff(Counts{Sent: 121, OK: 100, Failed: 21, Mismatched: 20}, r.Counts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Latency{P50: 50, P90: 90, P99: 99, Max: 100}, r.LatencyMS); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]RevisionCount{
		{Engine: "old", Decoder: "d", OK: 60, First: at(0), Last: at(59)},
		{Engine: "new", Decoder: "d", OK: 40, First: at(60), Last: at(99)},
	}, r.ByRevision); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{stub.FailureMismatch: 20, failureConnection: 1}, r.Failures); diff != "" {
		t.Error(diff)
	}
	if len(r.Errors) != sampleErrors/2+1 || r.Errors[len(r.Errors)-1].Class != failureConnection {
		t.Errorf("the flood of mismatches hides the other failure: %+v", r.Errors)
	}
	var table strings.Builder
	if err := r.Table(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"121", "old", "20 failed: mismatch", "connection: refused"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
}

// front serves a Service's only endpoint on a real socket and returns a client that knows it.
func front(t *testing.T, name string, handler http.HandlerFunc) *fake.Clientset {
	t.Helper()
	block, err := addr.Claim(-1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { block.Close() })
	ip, err := block.Next()
	if err != nil {
		t.Fatal(err)
	}
	listen, _ := addr.Listen(ip)
	l, err := net.Listen("tcp4", netip.AddrPortFrom(listen, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	server.Start()
	t.Cleanup(server.Close)
	port := int32(l.Addr().(*net.TCPAddr).Port)
	return fake.NewClientset(
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			Ports:      []discoveryv1.EndpointPort{{Port: &port}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{ip.String()}, TargetRef: &corev1.ObjectReference{Namespace: "ns", Name: "pod"}}},
		},
	)
}

func TestRunCountsWhatServersSay(t *testing.T) {
	var mu sync.Mutex
	n := 0
	client := front(t, "m-router", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		i := n
		mu.Unlock()
		w.Header().Set(stub.HeaderEngine, "e")
		switch i % 4 {
		case 0:
			w.Header().Set(stub.HeaderFailure, stub.FailureMismatch)
			w.WriteHeader(http.StatusConflict)
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	started := false
	r, err := Run(context.Background(), Config{
		Client: client, Service: types.NamespacedName{Namespace: "ns", Name: "m"}, Rate: 400, Duration: 100 * time.Millisecond, Lag: -1,
		OnStart: func() { started = true },
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Counts{Sent: 40, OK: 10, Failed: 30, Mismatched: 10}, r.Counts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{stub.FailureMismatch: 10, failureConnection: 10, failureStatus: 10}, r.Failures); diff != "" {
		t.Error(diff)
	}
	if !started || r.Front != "ns/m-router" || len(r.ByRevision) != 1 || r.ByRevision[0].OK != 10 {
		t.Errorf("%+v", r)
	}
}

func TestRunCountsTimeouts(t *testing.T) {
	done := make(chan struct{})
	client := front(t, "m", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	})
	defer close(done)
	r, err := Run(context.Background(), Config{
		Client: client, Service: types.NamespacedName{Namespace: "ns", Name: "m"}, Rate: 100, Duration: 50 * time.Millisecond, Lag: -1, Timeout: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failures[failureTimeout] != 5 {
		t.Errorf("%+v", r)
	}
}

func TestRunRefuses(t *testing.T) {
	service := types.NamespacedName{Namespace: "ns", Name: "m"}
	empty := fake.NewClientset()
	waiting := fake.NewClientset(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m-engine"}})
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		cfg  Config
		want string
	}{
		"no namespace":  {context.Background(), Config{Client: empty, Service: types.NamespacedName{Name: "m"}, Rate: 1}, "must be NAMESPACE/NAME"},
		"no rate":       {context.Background(), Config{Client: empty, Service: service}, "rate 0 must be over 0"},
		"no Service":    {context.Background(), Config{Client: empty, Service: service, Rate: 1}, `namespace "ns" has none of the Services ["m" "m-router" "m-engine"]`},
		"nobody ready":  {context.Background(), Config{Client: waiting, Service: service, Rate: 1, Wait: 10 * time.Millisecond}, "Service ns/m-engine has had no ready endpoint for 10ms"},
		"ended already": {ended, Config{Client: waiting, Service: service, Rate: 1}, "stopped before Service ns/m-engine had a ready endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Run(tc.ctx, tc.cfg)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}
