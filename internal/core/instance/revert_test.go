package instance

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
)

var strategies = []v1beta1.UpdateStrategyType{v1beta1.SurgeThenDrain, v1beta1.RecreatePod, v1beta1.InPlaceIfPossible, v1beta1.InPlaceOnly}

// From A to B and back to A after every number of steps that the roll takes: no pass
// takes more out than the budget, a pod of A that still runs as A is kept, and all end on A.
func TestRevertAtEveryStep(t *testing.T) {
	for _, s := range strategies {
		for _, n := range []int32{1, 3} {
			t.Run(fmt.Sprintf("%s with %d", s, n), func(t *testing.T) {
				for steps := 0; ; steps++ {
					w := started(t, n)
					w.strategy(s)
					w.floor, w.most = int(n)-1, 0
					if s == v1beta1.SurgeThenDrain {
						w.floor, w.most = int(n), 1
					}
					w.target("b")
					for range steps {
						w.pass()
						w.kubelet()
					}
					done := len(w.pods) == int(n)
					for _, r := range w.in.Rows {
						done = done && r.Phase == v1beta1.InstanceReady && r.RunningRevision == "svc-engine-b"
					}
					kept := map[string]types.UID{}
					for _, p := range w.pods {
						if p.DeletionTimestamp == nil && p.Labels[v1beta1.RevisionHashLabel] == "a" {
							kept[short(p)] = p.UID
						}
					}
					w.target("a")
					w.run(time.Hour)
					w.settle()
					for _, r := range w.in.Rows {
						if r.Phase != v1beta1.InstanceReady || r.RunningRevision != "svc-engine-a" {
							t.Fatalf("after %d steps: %v", steps, w.summaries())
						}
					}
					for name, uid := range kept {
						if i := w.podAt(name); i < 0 || w.pods[i].UID != uid {
							t.Errorf("after %d steps: pod %s of A, which still ran, is gone: %v", steps, name, w.all)
						}
					}
					if len(w.pods) != int(n) || w.serving() != int(n) {
						t.Errorf("after %d steps: %v", steps, w.podNames())
					}
					w.told(v1beta1.EventInstanceFailed, 0)
					if done {
						if steps < 4 {
							t.Errorf("the roll took %d steps", steps)
						}
						return
					}
				}
			})
		}
	}
}

// The same to a third revision: it starts from where the roll is, within the budget.
func TestRetargetAtEveryStep(t *testing.T) {
	for _, s := range strategies {
		t.Run(string(s), func(t *testing.T) {
			for steps := range 25 {
				w := started(t, 3)
				w.strategy(s)
				w.floor, w.most = 2, 0
				if s == v1beta1.SurgeThenDrain {
					w.floor, w.most = 3, 1
				}
				w.target("b")
				for range steps {
					w.pass()
					w.kubelet()
				}
				w.target("c")
				w.run(time.Hour)
				w.settle()
				for _, r := range w.in.Rows {
					if r.Phase != v1beta1.InstanceReady || r.RunningRevision != "svc-engine-c" {
						t.Fatalf("after %d steps: %v", steps, w.summaries())
					}
				}
				for _, p := range w.pods {
					if p.Spec.Containers[0].Image != "c" {
						t.Errorf("after %d steps: pod %s runs %s", steps, short(p), p.Spec.Containers[0].Image)
					}
				}
			}
		})
	}
}

// A bad revision that is reverted at each point of its failing: the pods of the serving
// revision stay, and nothing of the verdict on B is left for A.
func TestRevertOfABadRevision(t *testing.T) {
	for _, s := range strategies {
		for _, after := range []time.Duration{0, 30 * time.Second, time.Minute, 90 * time.Second, 2 * time.Minute, 3 * time.Minute, time.Hour} {
			t.Run(fmt.Sprintf("%s after %s", s, after), func(t *testing.T) {
				w := started(t, 3)
				w.strategy(s)
				w.floor = 2
				if s == v1beta1.SurgeThenDrain {
					w.floor = 3
				}
				w.sick["b"] = "ImagePullBackOff"
				w.target("b")
				w.run(after)
				w.settle()
				w.target("a")
				w.settle()
				for _, r := range w.in.Rows {
					if r.Phase != v1beta1.InstanceReady || r.RunningRevision != "svc-engine-a" {
						t.Fatalf("%v", w.summaries())
					}
				}
				w.block("a", "")
				w.block("b", "")
				w.holds("")
				if s == v1beta1.SurgeThenDrain {
					for _, name := range []string{"0/0", "1/0", "2/0"} {
						w.pod(name)
					}
				}
			})
		}
	}
}

// A partition binds an update under way too: when another revision is wanted, the
// Instances that are kept back return to what they run.
func TestPartitionHoldsAfterAnotherRevision(t *testing.T) {
	w := started(t, 4)
	w.in.MaxSurge = 4
	w.slow["b"], w.slow["c"] = true, true
	w.target("b")
	w.settle()
	w.in.Partition = 3
	w.target("c")
	w.settle()
	delete(w.slow, "c")
	w.settle()
	w.rows("0 Ready a", "1 Ready a", "2 Ready a", "3 Ready c slot1")
}

// Instances that come up at the revision that others are about to leave count for the
// partition before they are Ready.
func TestPartitionCountsWhatComesUp(t *testing.T) {
	w := started(t, 1)
	w.in.Desired, w.in.MaxSurge = 4, 4
	w.pass()
	w.kubelet()
	w.in.Partition = 3
	w.target("b")
	w.settle()
	w.rows("0 Ready a", "1 Ready a", "2 Ready a", "3 Ready b")
}
