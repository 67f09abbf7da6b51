package instance

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// The phases, each from where it may come.
func TestPhases(t *testing.T) {
	t.Run("none to Creating to Ready, which clears target and operation", func(t *testing.T) {
		w := empty(t)
		w.in.MinReady = time.Minute
		w.pass()
		w.rows("0 Creating ->a CreatePods")
		w.kubelet()
		w.pass()
		w.calls("Serve 0/0 a")
		w.kubelet()
		w.run(59 * time.Second)
		w.rows("0 Creating ->a CreatePods")
		w.run(time.Second)
		w.settle()
		w.rows("0 Ready a")
		if r := w.row(0); r.TargetRevision != "" || r.Operation != nil || r.Incarnation != 1 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("Ready to Pending to Creating when the pod is gone, in the same incarnation", func(t *testing.T) {
		w := started(t, 1)
		w.in.Frozen, w.in.Paused = true, true
		w.lose("0/0")
		w.pass()
		w.rows("0 Pending a")
		w.in.Frozen, w.in.Paused = false, false
		w.pass()
		w.rows("0 Creating a>a CreatePods")
		if w.row(0).Operation.Reason == "" {
			t.Error("the operation has no reason")
		}
		w.kubelet()
		w.settle()
		w.rows("0 Ready a")
	})
	t.Run("Ready is sticky: a dip shows in the counts", func(t *testing.T) {
		w := started(t, 1)
		w.slow["0/0"] = true
		w.kubelet()
		w.settle()
		w.rows("0 Ready a")
		if r := w.row(0); r.ServingPodCount != 0 || r.PodCount != 1 {
			t.Errorf("%+v", r)
		}
		if c := w.last.Counts; c.Serving != 0 || c.Ready != 0 || c.Total != 1 {
			t.Errorf("%+v", c)
		}
		delete(w.slow, "0/0")
		w.settle()
		if r := w.row(0); r.ServingPodCount != 1 || r.AvailablePodCount != 1 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("Failed to Creating by a retry", func(t *testing.T) {
		w := empty(t)
		w.sick["a"] = "ErrImagePull"
		w.run(2 * time.Minute)
		w.settle()
		w.rows("0 Creating ->a CreatePods")
	})
	t.Run("Failed to Updating by a new revision, whose attempt is made at once", func(t *testing.T) {
		w := started(t, 1)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.target("c")
		w.pass()
		w.rows("0 Updating a>c Surge")
	})
	t.Run("a Failed creation follows a new revision", func(t *testing.T) {
		w := empty(t)
		w.sick["a"] = "ErrImagePull"
		w.run(time.Minute)
		w.settle()
		w.rows("0 Failed -")
		w.target("b")
		w.settle()
		w.rows("0 Ready b")
	})
	t.Run("Failed to Deleting", func(t *testing.T) {
		w := started(t, 1)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.in.Desired = 0
		w.settle()
		w.rows()
		w.wantPods()
	})
	t.Run("Updating to Deleting", func(t *testing.T) {
		w := started(t, 1)
		w.slow["b"] = true
		w.target("b")
		w.settle()
		w.in.Desired = 0
		w.pass()
		w.rows("0 Deleting a>- Drain")
		w.settle()
		w.wantPods()
	})
}

// A pass that is cut short anywhere is taken up by the next: nothing but what is stored
// and the pods says where an operation stands.
func TestEveryPassCanBeTheFirst(t *testing.T) {
	for _, s := range strategies {
		t.Run(string(s), func(t *testing.T) {
			w := started(t, 1)
			w.strategy(s)
			w.target("b")
			for range 40 {
				// The rows are stored, and the calls are lost: a manager that died between.
				was := slices.Clone(w.pods)
				rows := w.in.Rows
				w.pass()
				id := ""
				if op := w.row(0).Operation; op != nil {
					id = op.ID
				}
				w.pods = was
				w.pass()
				if op := w.row(0).Operation; op != nil && id != "" && op.ID != id && len(rows) > 0 && rows[0].Operation != nil {
					t.Fatalf("operation %s became %s: %v", id, op.ID, w.summaries())
				}
				w.kubelet()
			}
			w.settle()
			if r := w.row(0); r.Phase != v1beta1.InstanceReady || r.RunningRevision != "svc-engine-b" {
				t.Errorf("%v", w.summaries())
			}
		})
	}
}

// What the engine stamps on a pod of its own.
func TestPodOfAnInstance(t *testing.T) {
	w := started(t, 1)
	p := w.pod("0/0")
	if n := len(p.Spec.ReadinessGates); n != 1 || p.Spec.ReadinessGates[0].ConditionType != v1beta1.ServingReadinessGate {
		t.Errorf("%v", p.Spec.ReadinessGates)
	}
	for key, want := range map[string]string{
		v1beta1.InferenceServiceLabel: "svc", v1beta1.ComponentLabel: "engine", v1beta1.ManagedByLabel: v1beta1.ManagedByOMENative,
		v1beta1.InstanceIndexLabel: "0", v1beta1.InstanceIncarnationLabel: "1", v1beta1.RunnerLabel: "default", v1beta1.PodOrdinalLabel: "0",
		v1beta1.RevisionHashLabel: "a",
	} {
		if got := p.Labels[key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	if owner := metav1.GetControllerOf(p); owner == nil || owner.UID != "owner" {
		t.Errorf("owner %+v", owner)
	}
	if p.Annotations[v1beta1.OperationIDAnnotation] == "" {
		t.Error("no operation made it")
	}
	t.Run("on every strategy and at every creation", func(t *testing.T) {
		for _, s := range strategies {
			w := started(t, 2)
			w.strategy(s)
			w.target("b")
			w.settle()
			w.lose(short(w.pods[0]))
			w.settle()
			for _, p := range w.pods {
				if len(p.Spec.ReadinessGates) != 1 {
					t.Errorf("%s: pod %s has gates %v", s, short(p), p.Spec.ReadinessGates)
				}
			}
		}
	})
	t.Run("our gate is the only condition that is written", func(t *testing.T) {
		w := started(t, 1)
		w.target("b")
		for range 20 {
			w.pass()
			for _, a := range w.last.Pods {
				switch a.Verb {
				case PodCreate, PodServe, PodUnserve, PodDelete:
				default:
					t.Errorf("verb %s", a.Verb)
				}
			}
			w.kubelet()
		}
	})
}

func TestCounts(t *testing.T) {
	t.Run("a pod is Ready by its containers, serving with the gate, available after minReadySeconds", func(t *testing.T) {
		w := empty(t)
		w.in.MinReady = time.Minute
		w.pass()
		w.kubelet()
		w.pass()
		if c := w.last.Counts; c.Ready != 1 || c.Serving != 0 || c.Available != 0 {
			t.Errorf("started: %+v", c)
		}
		w.kubelet()
		w.pass()
		if c := w.last.Counts; c.Ready != 1 || c.Serving != 1 || c.Available != 0 {
			t.Errorf("serving: %+v", c)
		}
		w.run(time.Minute)
		w.settle()
		if c := w.last.Counts; c.Available != 1 || !c.Settled {
			t.Errorf("later: %+v", c)
		}
	})
	t.Run("a surge pod never makes an Instance count twice", func(t *testing.T) {
		w := started(t, 2)
		w.in.MaxSurge = 2
		w.in.MinReady = time.Hour
		w.target("b")
		w.settle()
		if c := w.last.Counts; c.Ready != 2 || c.Serving != 2 || c.Total != 2 || c.Pods != 4 {
			t.Errorf("%+v", c)
		}
		if r := w.row(0); r.PodCount != 2 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a pod on its way out counts for nothing", func(t *testing.T) {
		w := started(t, 1)
		w.stays["0/0"] = true
		w.change("0/0", func(p *corev1.Pod) { p.DeletionTimestamp = w.leaveAt() })
		w.pass()
		if c := w.last.Counts; c.Ready != 0 || c.Serving != 0 || c.Available != 0 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("a pod with a scheduling gate is not admitted", func(t *testing.T) {
		w := empty(t)
		w.gated = true
		w.settle()
		if w.row(0).Admitted {
			t.Error("admitted")
		}
		w.change("0/0", func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
		w.settle()
		if !w.row(0).Admitted {
			t.Error("not admitted")
		}
	})
	t.Run("an Instance without a pod is not admitted", func(t *testing.T) {
		w := empty(t)
		w.pass()
		if w.row(0).Admitted {
			t.Error("admitted")
		}
	})
}

// A pod that serves is what the row follows, wherever an operation expected it.
func TestTheRowFollowsWhatServes(t *testing.T) {
	t.Run("a creation whose pod serves in the other slot", func(t *testing.T) {
		w := started(t, 1)
		uid := w.pod("0/0").UID
		r := w.row(0)
		*r = creating(0, "a")
		r.ActiveOrdinal = 1
		w.settle()
		w.rows("0 Ready a")
		if w.pod("0/0").UID != uid || len(w.pods) != 1 {
			t.Errorf("%v", w.podNames())
		}
	})
	t.Run("a row at rest whose pod serves in the other slot", func(t *testing.T) {
		w := started(t, 1)
		w.floor = 1
		w.row(0).ActiveOrdinal = 1
		w.settle()
		w.rows("0 Ready a")
		w.allCalls()
	})
	t.Run("a pod that fits no slot stays until another one serves", func(t *testing.T) {
		w := started(t, 1)
		w.floor = 1
		w.change("0/0", func(p *corev1.Pod) { p.Labels[v1beta1.PodOrdinalLabel], p.Name = "7", "svc-engine-0-default-7" })
		w.settle()
		w.rows("0 Ready a")
		w.wantPods("0/0 a")
	})
	t.Run("a pod of an Instance that no row knows leaves in order", func(t *testing.T) {
		w := started(t, 2)
		w.in.Rows = w.in.Rows[:1]
		w.in.Desired = 1
		w.pass()
		w.calls("Unserve 1/0 a")
		w.settle()
		w.rows("0 Ready a")
		w.wantPods("0/0 a")
	})
}
