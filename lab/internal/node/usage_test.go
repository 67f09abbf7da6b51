package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/lab/internal/stub"
)

type countingProcess struct {
	*fakeProcess
	requests int64
}

func (p *countingProcess) Requests() int64 { return p.requests }

// TestUsage follows one pod's usage from its start through load, an edit of its behaviour, a crash and the
// death of its node.
func TestUsage(t *testing.T) {
	w := newWorld(t, pod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Image = "lab.ome.io/engine:v1-pull0s-start0s-cpu100m-cost20ms"
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	}))
	w.m.advance()
	e := &entry{machine: w.m, key: types.NamespacedName{Namespace: "ns", Name: "p"}, node: "lab-00"}
	k := &kubelet{env: *w.m.env, pods: map[types.NamespacedName]*entry{e.key: e}, down: map[string]bool{}}
	proc := &countingProcess{fakeProcess: w.process, requests: 7}
	c := w.m.containers[0]
	c.proc = proc
	alive := true
	used := func() string {
		pods, nodes := k.used([]NodeState{{Name: "lab-00", Alive: alive}, {Name: "lab-01", Alive: true}})
		line := ""
		for _, p := range pods {
			line += fmt.Sprintf("%s/%s %dm ", p.Namespace, p.Name, p.Milli)
		}
		for _, n := range nodes {
			line += fmt.Sprintf("%s %dm ", n.Name, n.Milli)
		}
		return line
	}
	window := func(requests int64) string {
		w.now = w.now.Add(usageWindow)
		proc.requests += requests
		k.sample()
		return used()
	}
	const nobody = "lab-00 0m lab-01 0m "
	steps := []struct {
		what string
		do   func() string
		want string
	}{
		{"before the first sample", used, nobody},
		{"the first sample only begins a window", func() string { return window(3) }, nobody},
		{"at rest", func() string { return window(0) }, "ns/p 100m lab-00 100m lab-01 0m "},
		{"40 requests a second of 20 ms", func() string { return window(80) }, "ns/p 900m lab-00 900m lab-01 0m "},
		{"at most its limit", func() string { return window(1000) }, "ns/p 2000m lab-00 2000m lab-01 0m "},
		{"its behaviour changed", func() string {
			next := w.m.pod.DeepCopy()
			next.Annotations = map[string]string{stub.AnnotationBehaviour: "cpu1500m"}
			w.m.see(next)
			w.m.advance()
			return window(0)
		}, "ns/p 1500m lab-00 1500m lab-01 0m "},
		{"another run", func() string { c.id = "again"; proc.requests = 0; return window(5) }, nobody},
		{"another run's first window", func() string { return window(0) }, "ns/p 1500m lab-00 1500m lab-01 0m "},
		{"its node is dead", func() string { alive = false; k.down["lab-00"] = true; return window(0) }, "lab-01 0m "},
		{"its node is back", func() string { alive = true; delete(k.down, "lab-00"); return window(0) }, nobody},
		{"it does not run", func() string { c.phase = crashWait; return window(0) }, nobody},
	}
	for _, s := range steps {
		if diff := cmp.Diff(s.want, s.do()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.what, diff)
		}
	}
	if usageWindow != 2*time.Second {
		t.Errorf("the steps count on windows of 2 s, not %s", usageWindow)
	}
}
