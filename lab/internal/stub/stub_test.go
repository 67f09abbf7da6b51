package stub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"ome.io/ome/lab/internal/addr"
	"ome.io/ome/lab/internal/stub/endpoints"
)

// cell is one service's servers on real loopback sockets.
type cell struct {
	t      *testing.T
	block  *addr.Block
	pods   map[types.NamespacedName]*corev1.Pod
	slices map[string]*discoveryv1.EndpointSlice
	host   *Host
}

func newCell(t *testing.T) *cell {
	block, err := addr.Claim(-1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { block.Close() })
	return &cell{t: t, block: block, pods: map[types.NamespacedName]*corev1.Pod{}, slices: map[string]*discoveryv1.EndpointSlice{}}
}

type member struct {
	component, revision, token, tag string
	env                             map[string]string
	dead                            bool // in rotation, but nobody listens
}

func (c *cell) pod(m member) (*corev1.Pod, netip.Addr) {
	ip, err := c.block.Next()
	if err != nil {
		c.t.Fatal(err)
	}
	if m.tag == "" {
		m.tag = "v1-lat0ms"
	}
	name := fmt.Sprintf("%s-%d", m.component, len(c.pods))
	container := corev1.Container{Name: "main", Image: "lab.ome.io/" + m.component + ":" + m.tag, Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}
	for k, v := range m.env {
		container.Env = append(container.Env, corev1.EnvVar{Name: k, Value: v})
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{
			LabelService: "m", LabelComponent: m.component, LabelRevision: m.revision, LabelPairing: m.token,
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{container}},
	}
	key := types.NamespacedName{Namespace: "ns", Name: name}
	c.pods[key] = p
	service := "m-" + m.component
	s := c.slices[service]
	if s == nil {
		port := int32(8080)
		s = &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			Ports:      []discoveryv1.EndpointPort{{Port: &port}},
		}
		c.slices[service] = s
	}
	s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{ip.String()}, TargetRef: &corev1.ObjectReference{Namespace: "ns", Name: name}})
	return p, ip
}

// start runs the members and returns their servers and recorded addresses, in order.
func (c *cell) start(members ...member) ([]*Server, []netip.Addr) {
	c.t.Helper()
	type placed struct {
		pod *corev1.Pod
		ip  netip.Addr
	}
	var all []placed
	for _, m := range members {
		p, ip := c.pod(m)
		all = append(all, placed{p, ip})
	}
	var objects []runtime.Object
	for _, s := range c.slices {
		objects = append(objects, s)
	}
	watcher := endpoints.New(func(key types.NamespacedName) map[string]string {
		if p := c.pods[key]; p != nil {
			return p.Labels
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(cancel)
	if err := watcher.Start(ctx, fake.NewClientset(objects...), ""); err != nil {
		c.t.Fatal(err)
	}
	c.host = &Host{Endpoints: watcher}
	var servers []*Server
	var ips []netip.Addr
	for i, p := range all {
		ips = append(ips, p.ip)
		if members[i].dead {
			servers = append(servers, nil)
			continue
		}
		b, err := BehaviourOf(&p.pod.Spec.Containers[0])
		if err != nil {
			c.t.Fatal(err)
		}
		s, err := Start(c.host, p.pod, &p.pod.Spec.Containers[0], p.ip, b, io.Discard)
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(s.Kill)
		servers = append(servers, s)
	}
	return servers, ips
}

var testClient = &http.Client{Transport: &http.Transport{DialContext: addr.Dial}, Timeout: 10 * time.Second}

func (c *cell) post(ip netip.Addr, path, body string) (*http.Response, string, error) {
	res, err := Post(context.Background(), testClient, endpoints.Endpoint{IP: ip.String(), Port: 8080}, path, []byte(body))
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res, string(answer), err
}

func (c *cell) metrics(ip netip.Addr) string {
	c.t.Helper()
	res, err := testClient.Get("http://" + net.JoinHostPort(ip.String(), "8080") + "/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return string(text)
}

func TestExchange(t *testing.T) {
	for name, tc := range map[string]struct {
		members []member // the first is asked
		want    int
		failure string
		headers map[string]string
	}{
		"router, engine, decoder": {[]member{{component: Router, revision: "r"}, {component: Engine, revision: "e"}, {component: Decoder, revision: "d"}},
			200, "", map[string]string{HeaderRouter: "r", HeaderEngine: "e", HeaderDecoder: "d"}},
		"equal tokens":               {[]member{{component: Router}, {component: Engine, token: "kv-1"}, {component: Decoder, token: "kv-1"}}, 200, "", nil},
		"empty token pairs with any": {[]member{{component: Router}, {component: Engine, token: "kv-1"}, {component: Decoder}}, 200, "", nil},
		"tokens that don't pair": {[]member{{component: Router}, {component: Engine, token: "kv-1", revision: "e"}, {component: Decoder, token: "kv-2", revision: "d"}},
			409, FailureMismatch, map[string]string{HeaderEngine: "e", HeaderDecoder: "d"}},
		"wires that don't pair": {[]member{{component: Router}, {component: Engine, tag: "v1-wire1-lat0s"}, {component: Decoder, tag: "v2-wire2-lat0s"}}, 409, FailureMismatch, nil},
		"two cohorts are kept apart": {[]member{{component: Router}, {component: Engine, token: "kv-1"}, {component: Engine, token: "kv-2"},
			{component: Decoder, token: "kv-1"}, {component: Decoder, token: "kv-2"}}, 200, "", nil},
		"an engine without a partner is left out": {[]member{{component: Router}, {component: Engine, token: "kv-1", revision: "old"}, {component: Engine, token: "kv-2", revision: "new"},
			{component: Decoder, token: "kv-1"}}, 200, "", map[string]string{HeaderEngine: "old"}},
		"no decoder component":        {[]member{{component: Router}, {component: Engine, revision: "e"}}, 200, "", map[string]string{HeaderEngine: "e", HeaderDecoder: ""}},
		"straight to the engine":      {[]member{{component: Engine, revision: "e"}}, 200, "", map[string]string{HeaderEngine: "e"}},
		"engine with a decoder":       {[]member{{component: Engine}, {component: Decoder, revision: "d"}}, 200, "", map[string]string{HeaderDecoder: "d"}},
		"no engine":                   {[]member{{component: Router}, {component: Decoder}}, 503, FailureNoEndpoint, nil},
		"engine in rotation is dead":  {[]member{{component: Router}, {component: Engine, dead: true}, {component: Decoder}}, 502, FailureUpstream, nil},
		"decoder in rotation is dead": {[]member{{component: Router}, {component: Engine}, {component: Decoder, dead: true}}, 502, FailureUpstream, nil},
		"injected errors":             {[]member{{component: Router}, {component: Engine, tag: "v1-err100"}, {component: Decoder}}, 500, FailureInjected, nil},
		"peers named by the environment": {[]member{{component: Router, env: map[string]string{"OME_ENGINE_ENDPOINT": "m-decoder.ns.svc.cluster.local", "OME_DECODER_ENDPOINT": "nobody.ns.svc.cluster.local"}},
			{component: Decoder}}, 404, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCell(t)
			_, ips := c.start(tc.members...)
			for range 10 {
				res, body, err := c.post(ips[0], PathCompletions, `{"prompt":"x"}`)
				if err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != tc.want || res.Header.Get(HeaderFailure) != tc.failure {
					t.Fatalf("%d %q %s, want %d %q", res.StatusCode, res.Header.Get(HeaderFailure), body, tc.want, tc.failure)
				}
				for k, v := range tc.headers {
					if got := res.Header.Get(k); got != v {
						t.Errorf("%s: %q, want %q", k, got, v)
					}
				}
			}
		})
	}
}

func TestRouterWithoutPairingMismatches(t *testing.T) {
	c := newCell(t)
	_, ips := c.start(member{component: Router, env: map[string]string{routerPairingEnv: "off"}},
		member{component: Engine, token: "kv-1"}, member{component: Engine, token: "kv-2"},
		member{component: Decoder, token: "kv-1"}, member{component: Decoder, token: "kv-2"})
	mismatched := 0
	for range 200 {
		res, _, err := c.post(ips[0], PathCompletions, "{}")
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusConflict {
			mismatched++
		}
	}
	if mismatched == 0 {
		t.Error("a router that doesn't look at tokens must run into mismatches")
	}
	counted := 0
	for _, ip := range ips[3:] {
		for line := range strings.Lines(c.metrics(ip)) {
			if n := 0; strings.HasPrefix(line, "ome_lab_mismatches_total{") {
				fmt.Sscan(line[strings.LastIndexByte(line, ' '):], &n)
				counted += n
			}
		}
	}
	if counted != mismatched {
		t.Errorf("decoders counted %d mismatches, clients saw %d", counted, mismatched)
	}
}

func TestMetrics(t *testing.T) {
	c := newCell(t)
	servers, ips := c.start(member{component: Engine, revision: "e1"})
	for range 3 {
		if _, _, err := c.post(ips[0], PathCompletions, "{}"); err != nil {
			t.Fatal(err)
		}
	}
	relabelled := c.pods[types.NamespacedName{Namespace: "ns", Name: "engine-0"}].DeepCopy()
	relabelled.Labels[LabelRevision] = "e2"
	servers[0].SetPod(relabelled)
	res, _, err := c.post(ips[0], PathCompletions, "{}")
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Header.Get(HeaderEngine); got != "e2" {
		t.Errorf("revision after the label changed: %q", got)
	}
	text := c.metrics(ips[0])
	base := `namespace="ns",inferenceservice="m",component="engine",pod="engine-0"`
	for _, want := range []string{
		`ome_lab_requests_total{` + base + `,revision="e1",code="200",failure=""} 3`,
		`ome_lab_requests_total{` + base + `,revision="e2",code="200",failure=""} 1`,
		`ome_lab_errors_total{` + base + `,revision="e1"} 0`,
		`ome_lab_errors_total{` + base + `,revision="e2"} 0`,
		`ome_lab_request_duration_seconds_bucket{` + base + `,revision="e1",le="+Inf"} 3`,
		`ome_lab_request_duration_seconds_count{` + base + `,revision="e1"} 3`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %s in\n%s", want, text)
		}
	}
}

func TestStopFinishesWhatIsInFlight(t *testing.T) {
	c := newCell(t)
	servers, ips := c.start(member{component: Engine, tag: "v1-lat500ms"})
	answered := make(chan error, 1)
	go func() {
		res, body, err := c.post(ips[0], PathCompletions, "{}")
		if err == nil && res.StatusCode != 200 {
			err = fmt.Errorf("%d %s", res.StatusCode, body)
		}
		answered <- err
	}()
	waitFor(t, "the request to arrive", func() bool { return servers[0].metrics.inflight.Load() == 1 })
	exited := make(chan struct{})
	servers[0].Stop(func() { close(exited) })
	waitFor(t, "the listener to close", func() bool {
		conn, err := addr.Dial(context.Background(), "tcp", net.JoinHostPort(ips[0].String(), "8080"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	if err := <-answered; err != nil {
		t.Errorf("the request in flight: %v", err)
	}
	<-exited
	if _, _, err := c.post(ips[0], PathCompletions, "{}"); err == nil {
		t.Error("a request after SIGTERM was served")
	}
}

func TestKillResetsWhatIsInFlight(t *testing.T) {
	c := newCell(t)
	servers, ips := c.start(member{component: Engine, tag: "v1-lat10s"})
	answered := make(chan error, 1)
	go func() {
		_, _, err := c.post(ips[0], PathCompletions, "{}")
		answered <- err
	}()
	waitFor(t, "the request to arrive", func() bool { return servers[0].metrics.inflight.Load() == 1 })
	servers[0].Kill()
	if err := <-answered; err == nil {
		t.Error("a request was answered by a server that was killed")
	}
}

func TestLostKeptConnectionIsNotRetried(t *testing.T) {
	c := newCell(t)
	_, ips := c.start(member{component: Engine})
	listen, _ := addr.Listen(ips[0])
	// A server that takes one request per connection and hangs up on the second.
	l, err := net.Listen("tcp4", netip.AddrPortFrom(listen, 8099).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var seen int
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen++; seen == 2 {
			panic(http.ErrAbortHandler)
		}
	}))
	to := endpoints.Endpoint{IP: ips[0].String(), Port: 8099}
	client := &http.Client{Transport: &http.Transport{DialContext: addr.Dial}}
	res, err := Post(context.Background(), client, to, "/", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if _, err := Post(context.Background(), client, to, "/", []byte("{}")); err == nil {
		t.Errorf("a request lost on a kept connection was sent again (%d seen)", seen)
	}
}

func TestComponentOf(t *testing.T) {
	for name, tc := range map[string]struct {
		image     string
		labels    map[string]string
		ports     []int32
		component string
		serves    bool
	}{
		"lab image":                {"lab.ome.io/decoder:v1", nil, nil, Decoder, true},
		"label on a foreign image": {"lmsysorg/sglang:v0.5", map[string]string{LabelComponent: Engine}, []int32{8080}, Engine, true},
		"image over label":         {"lab.ome.io/router:v1", map[string]string{LabelComponent: Engine}, nil, Router, true},
		"worker":                   {"lab.ome.io/engine:v1", map[string]string{LabelComponent: Engine, LabelRunner: "worker"}, []int32{8080}, Plain, false},
		"plain with a port":        {"nginx", nil, []int32{80}, Plain, true},
		"plain without":            {"pause", nil, nil, Plain, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := corev1.Container{Name: "main", Image: tc.image}
			for _, p := range tc.ports {
				c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: p})
			}
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}
			component, serves := ComponentOf(p, &p.Spec.Containers[0])
			if component != tc.component || serves != tc.serves {
				t.Errorf("%q %v, want %q %v", component, serves, tc.component, tc.serves)
			}
		})
	}
}

func TestHandleSurvivesTheWire(t *testing.T) {
	in := Handle{Request: "1", Pod: "p", Revision: "r", Token: "t", Wire: "w"}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Handle
	if err := json.Unmarshal(data, &out); err != nil || in != out {
		t.Errorf("%+v, %v", out, err)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	// The sleep is between two looks at a real server.
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited 10 s for %s", what)
}
