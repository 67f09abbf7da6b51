package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
)

func TestDrainOverdue(t *testing.T) {
	t.Run("a removal past its deadline is told once, counted, and goes on", func(t *testing.T) {
		w := started(t, 2)
		w.stays["1/0"] = true
		w.in.Desired = 1
		w.run(30*time.Minute - time.Second)
		w.told(v1beta1.EventDrainOverdue, 0)
		w.run(time.Second)
		w.settle()
		w.told(v1beta1.EventDrainOverdue, 1, "Instance engine-1", "30m0s")
		if w.last.Counts.Overdue != 1 {
			t.Errorf("%+v", w.last.Counts)
		}
		w.rows("0 Ready a", "1 Deleting a>- Drain")
		w.run(time.Hour)
		w.told(v1beta1.EventDrainOverdue, 1)
		w.told(v1beta1.EventInstanceFailed, 0)
		w.stays["1/0"] = false
		w.settle()
		w.rows("0 Ready a")
		if w.last.Counts.Overdue != 0 {
			t.Errorf("%+v", w.last.Counts)
		}
	})
	t.Run("in the other phase nothing is overdue", func(t *testing.T) {
		w := started(t, 1)
		w.slow["b"] = true
		w.target("b")
		w.run(2 * time.Hour)
		w.told(v1beta1.EventDrainOverdue, 0)
	})
}

func nodeOf(ready corev1.ConditionStatus, since time.Time, tainted *time.Time) *corev1.Node {
	n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(since)},
	}}}
	if tainted != nil {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, TimeAdded: &metav1.Time{Time: *tainted}}}
	}
	return n
}

func TestForceDelete(t *testing.T) {
	// leaving is a component whose Instance 1 leaves, with a pod that does not go.
	leaving := func(t *testing.T) *world {
		w := started(t, 2)
		w.in.ForceDelete = config.ForceDelete{OverdueSlack: 5 * time.Minute, NodeUnreachableThreshold: 2 * time.Minute}
		w.stays["1/0"] = true
		w.change("1/0", func(p *corev1.Pod) { p.Spec.NodeName = "gone" })
		w.in.Desired = 1
		w.settle()
		return w
	}
	long := t0.Add(-time.Hour)
	cases := []struct {
		name     string
		node     *corev1.Node
		looked   bool
		evidence string
	}{
		{"a node that is gone", nil, true, "node-gone"},
		{"a node with the unreachable taint", nodeOf(corev1.ConditionUnknown, t0.Add(24*time.Hour), &long), true, "node-unreachable-taint"},
		{"a node that is not ready", nodeOf(corev1.ConditionFalse, long, nil), true, "node-not-ready"},
		{"a node that says nothing", nodeOf(corev1.ConditionUnknown, long, nil), true, "node-not-ready"},
		{"a node that is Ready, taint or not", nodeOf(corev1.ConditionTrue, long, &long), true, ""},
		{"a node that nobody looked at", nil, false, ""},
		{"a node without a Ready condition", &corev1.Node{}, true, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			w := leaving(t)
			if tc.looked {
				w.in.Nodes = map[string]*corev1.Node{"gone": tc.node}
			}
			w.run(grace + 5*time.Minute - time.Second)
			w.told(v1beta1.EventPodForceDeleted, 0)
			w.never("ForceDelete")
			w.run(time.Second)
			w.settle()
			if tc.evidence == "" {
				w.run(time.Hour)
				w.never("ForceDelete")
				w.rows("0 Ready a", "1 Deleting a>- Drain")
				return
			}
			w.told(v1beta1.EventPodForceDeleted, 1, "svc-engine-1-default-0", "gone", tc.evidence)
			w.rows("0 Ready a")
		})
	}
	t.Run("a node that went silent not long ago is waited for, to the second", func(t *testing.T) {
		w := leaving(t)
		w.run(grace + 5*time.Minute)
		w.in.Nodes = map[string]*corev1.Node{"gone": nodeOf(corev1.ConditionUnknown, w.in.Now.Add(-time.Minute), nil)}
		w.run(59 * time.Second)
		w.never("ForceDelete")
		w.run(time.Second)
		w.settle()
		w.told(v1beta1.EventPodForceDeleted, 1)
	})
	for _, f := range []config.ForceDelete{{}, {OverdueSlack: time.Minute}, {NodeUnreachableThreshold: time.Minute}} {
		t.Run("off unless both values are set", func(t *testing.T) {
			w := leaving(t)
			w.in.ForceDelete, w.in.Nodes = f, map[string]*corev1.Node{"gone": nil}
			w.run(10 * time.Hour)
			w.never("ForceDelete")
		})
	}
	t.Run("a pod that a finalizer holds is named once and never forced", func(t *testing.T) {
		w := leaving(t)
		w.in.Nodes = map[string]*corev1.Node{"gone": nil}
		w.change("1/0", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} })
		w.run(10 * time.Hour)
		w.never("ForceDelete")
		w.told(v1beta1.EventPodDeleteBlockedByFinalizer, 1, "svc-engine-1-default-0", "example.com/hold")
		w.told(v1beta1.EventPodForceDeleted, 0)
	})
	t.Run("an update that waits for a pod of a dead node forces it", func(t *testing.T) {
		w := started(t, 1)
		w.in.ForceDelete = config.ForceDelete{OverdueSlack: time.Minute, NodeUnreachableThreshold: time.Minute}
		w.strategy(v1beta1.RecreatePod)
		w.in.Nodes = map[string]*corev1.Node{"n1": nil}
		w.stays["0/0"], w.stays["0/1"] = true, true
		w.target("b")
		w.settle()
		w.slow["b"] = true
		w.run(grace + time.Minute)
		w.settle()
		w.told(v1beta1.EventPodForceDeleted, 1, "node-gone")
	})
	t.Run("a restart does not", func(t *testing.T) {
		w := started(t, 1)
		w.in.ForceDelete = config.ForceDelete{OverdueSlack: time.Minute, NodeUnreachableThreshold: time.Minute}
		w.in.RestartPolicy, w.in.Nodes = v1beta1.RestartRecreateInstance, map[string]*corev1.Node{"n1": nil}
		w.stays["0/0"] = true
		w.slow["a"] = true
		w.crash("0/0", "ome-container")
		w.run(20 * time.Minute)
		w.never("ForceDelete")
	})
	t.Run("a pod of phase Unknown that must go is deleted, then forced once its node is dead", func(t *testing.T) {
		w := started(t, 1)
		w.in.ForceDelete = config.ForceDelete{OverdueSlack: time.Minute, NodeUnreachableThreshold: time.Minute}
		w.strategy(v1beta1.RecreatePod)
		w.stays["0/0"] = true
		w.slow["b"] = true
		w.change("0/0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown })
		w.target("b")
		w.settle()
		w.rows("0 Updating a>b Drain waiting NodeUnknown incarnation 2")
		w.in.Nodes = map[string]*corev1.Node{"n1": nil}
		w.run(grace + time.Minute)
		w.settle()
		w.told(v1beta1.EventPodForceDeleted, 1)
		if w.row(0).Operation.Waiting != "" {
			t.Errorf("%v", w.summaries())
		}
	})
}
