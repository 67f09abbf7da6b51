package endpoints

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	corev1 "k8s.io/api/core/v1"
)

var service = types.NamespacedName{Namespace: "ns", Name: "svc"}

func slice(endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	port, name := int32(8080), "http"
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc-x", Labels: map[string]string{discoveryv1.LabelServiceName: "svc"}},
		Ports:      []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
		Endpoints:  endpoints,
	}
}

func endpoint(ip string, ready, serving, terminating bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{ip},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		TargetRef:  &corev1.ObjectReference{Namespace: "ns", Name: "pod-" + ip},
	}
}

func ips(list []Endpoint) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.IP)
	}
	return out
}

func TestRoutable(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []discoveryv1.Endpoint
		want []string
	}{
		"ready only":                            {[]discoveryv1.Endpoint{endpoint("a", true, true, false), endpoint("b", false, false, false)}, []string{"a"}},
		"terminating is out while one is ready": {[]discoveryv1.Endpoint{endpoint("a", true, true, false), endpoint("b", false, true, true)}, []string{"a"}},
		"terminating serves when none is ready": {[]discoveryv1.Endpoint{endpoint("a", false, false, false), endpoint("b", false, true, true)}, []string{"b"}},
		"terminating and not serving never":     {[]discoveryv1.Endpoint{endpoint("b", false, false, true)}, nil},
		"not ready and not terminating never":   {[]discoveryv1.Endpoint{endpoint("b", false, true, false)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := New(nil)
			w.set(slice(tc.in...))
			if diff := cmp.Diff(tc.want, ips(w.View(service, 0, nil).Routable())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestViewsLagAndKeepOrder(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	w := newWatcher(func(p types.NamespacedName) map[string]string { return map[string]string{"pod": p.Name} }, clk)
	w.set(slice(endpoint("a", true, true, false)))
	rng := rand.New(rand.NewPCG(1, 2))
	view := w.View(service, 2*time.Second, rng)
	if diff := cmp.Diff([]string{"a"}, ips(view.Routable())); diff != "" {
		t.Fatalf("a view begins with what is there: %s", diff)
	}
	if got := w.Labels(view.Routable()[0])["pod"]; got != "pod-a" {
		t.Errorf("labels of pod-a: got %q", got)
	}
	late := false
	for i := range 200 {
		before := ips(view.Routable())
		w.set(slice(endpoint("b", true, true, false)))
		w.set(slice(endpoint("c", true, true, false)))
		if i == 0 && !cmp.Equal(before, ips(view.Routable())) {
			t.Fatal("a change showed without any lag")
		}
		clk.Step(100 * time.Millisecond)
		if cmp.Equal([]string{"a"}, ips(view.Routable())) || cmp.Equal([]string{"b"}, ips(view.Routable())) {
			late = true
		}
		clk.Step(2 * time.Second)
		if diff := cmp.Diff([]string{"c"}, ips(view.Routable())); diff != "" {
			t.Fatalf("round %d: after the longest lag the last change must show: %s", i, diff)
		}
		w.set(slice(endpoint("a", true, true, false)))
		clk.Step(2*time.Second + time.Millisecond)
	}
	if !late {
		t.Error("no change took longer than 100 ms to show, out of 200")
	}
}

func TestKnownAndClose(t *testing.T) {
	w := New(nil)
	view := w.View(service, 0, nil)
	if view.Known() {
		t.Error("a service without slices is unknown")
	}
	s := slice()
	w.set(s)
	if !view.Known() || len(view.Routable()) != 0 {
		t.Error("an empty slice makes the service known, with nobody in it")
	}
	w.remove(s)
	if view.Known() {
		t.Error("the service is gone")
	}
	view.Close()
	w.set(slice(endpoint("a", true, true, false)))
	if len(view.Routable()) != 0 {
		t.Error("a closed view still follows")
	}
}
