package controller

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/settings"
)

func testNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}},
		Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}}}
}

// goingBench has pods on nodes n00, n01 and so on, whose deletionTimestamp has just come.
func goingBench(t *testing.T, pods int, lifecycle string) *bench {
	t.Helper()
	replica := testReplica(v1beta1.EngineComponent)
	b := newBench(t, testService(), replica, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ome", Name: settings.ConfigMapName}, Data: map[string]string{"lifecycle": lifecycle}})
	b.live.nodes = map[string]*corev1.Node{}
	for i := range pods {
		pod := testPod(fmt.Sprintf("p%02d", i), v1beta1.EngineComponent)
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(b.clock.Now()))
		pod.Spec.NodeName = fmt.Sprintf("n%02d", i)
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(replica, v1beta1.SchemeGroupVersion.WithKind("InferenceReplica"))}
		b.live.nodes[pod.Spec.NodeName] = testNode(pod.Spec.NodeName)
		b.put(t, pod)
	}
	return b
}

const forceDelete = `{"forceDelete":{"overdueSlack":"1m","nodeUnreachableThreshold":"5m"}}`

func TestNodesOfOverduePods(t *testing.T) {
	edit := func(name string, change func(*corev1.Pod)) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			obj, _ := b.fakes[kindPod].Get("ns/" + name)
			pod := obj.(*corev1.Pod).DeepCopy()
			change(pod)
			b.put(t, pod)
		}
	}
	tests := map[string]struct {
		lifecycle string
		change    func(*testing.T, *bench)
		after     time.Duration
		want      []string
		again     time.Duration
	}{
		"overdue by the slack":       {want: []string{"n00", "n01"}, again: nodeAgain},
		"not by the slack yet":       {after: time.Minute - time.Second},
		"not configured":             {lifecycle: `{}`},
		"half configured":            {lifecycle: `{"forceDelete":{"overdueSlack":"1m"}}`},
		"one stays":                  {change: edit("p00", func(p *corev1.Pod) { p.DeletionTimestamp = nil }), want: []string{"n01"}, again: nodeAgain},
		"one was never scheduled":    {change: edit("p00", func(p *corev1.Pod) { p.Spec.NodeName = "" }), want: []string{"n01"}, again: nodeAgain},
		"one is somebody else's":     {change: edit("p00", func(p *corev1.Pod) { p.OwnerReferences = nil }), want: []string{"n01"}, again: nodeAgain},
		"both are on one node":       {change: edit("p00", func(p *corev1.Pod) { p.Spec.NodeName = "n01" }), want: []string{"n01"}, again: nodeAgain},
		"one node is gone":           {change: func(_ *testing.T, b *bench) { delete(b.live.nodes, "n01") }, want: []string{"n00", "n01"}, again: nodeAgain},
		"the API server is not well": {change: func(_ *testing.T, b *bench) { b.live.err = errors.New("no") }, again: nodeFresh},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.lifecycle == "" {
				test.lifecycle = forceDelete
			}
			if test.after == 0 {
				test.after = time.Minute
			}
			b := goingBench(t, 2, test.lifecycle)
			if test.change != nil {
				test.change(t, b)
			}
			b.clock.Step(test.after)
			again, err := b.pass(t)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(b.world.Nodes))); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			for name, node := range b.world.Nodes {
				if stored := b.live.nodes[name]; (node == nil) != (stored == nil) || node != nil && (node.Name != name || node.ManagedFields != nil || node.Status.Images != nil) {
					t.Errorf("%s: %v", name, node)
				}
			}
			if again != test.again {
				t.Errorf("again after %v, want %v", again, test.again)
			}
			if test.lifecycle != forceDelete && len(b.live.nodeReads) > 0 {
				t.Errorf("read %v", b.live.nodeReads)
			}
		})
	}
}

// TestNodesAreReadInTurns: no pass reads many, none is read twice in a few seconds, and
// each has its turn.
func TestNodesAreReadInTurns(t *testing.T) {
	const count = 100
	b := goingBench(t, count, forceDelete)
	b.clock.Step(time.Minute)
	last, longest := map[string]time.Time{}, time.Duration(0)
	for range 60 {
		b.live.nodeReads = nil
		again, err := b.pass(t)
		if err != nil {
			t.Fatal(err)
		}
		if again != nodeFresh || len(b.live.nodeReads) > nodeReads {
			t.Fatalf("read %d, again after %v", len(b.live.nodeReads), again)
		}
		now := b.clock.Now()
		for _, name := range b.live.nodeReads {
			if was, ok := last[name]; ok {
				if now.Sub(was) < nodeFresh {
					t.Fatalf("%s was read twice in %v", name, now.Sub(was))
				}
				longest = max(longest, now.Sub(was))
			}
			last[name] = now
		}
		for name := range b.world.Nodes {
			if now.Sub(last[name]) >= nodeFresh {
				t.Fatalf("%s was read %v ago", name, now.Sub(last[name]))
			}
		}
		b.clock.Step(time.Second)
	}
	if len(last) != count || longest > 10*time.Second {
		t.Errorf("%d of %d nodes had a turn, the longest wait was %v", len(last), count, longest)
	}
	// A cluster that is well again costs nothing.
	b.clock.Step(nodeKept)
	b.nodes.due(nil, b.clock.Now())
	if n := len(b.nodes.known); n > 0 {
		t.Errorf("%d nodes are remembered", n)
	}
}
