package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

func TestScaleUp(t *testing.T) {
	t.Run("missing Instances get the lowest free indexes, in incarnation 1", func(t *testing.T) {
		w := started(t, 4)
		w.in.Rows = append(w.in.Rows[:1], w.in.Rows[2:]...)
		w.lose("1/0")
		w.in.Desired = 5
		w.pass()
		w.rows("0 Ready a", "1 Creating ->a CreatePods", "2 Ready a", "3 Ready a", "4 Creating ->a CreatePods")
		w.settle()
		w.rows("0 Ready a", "1 Ready a", "2 Ready a", "3 Ready a", "4 Ready a")
	})
	t.Run("a batch bounds the creations of a pass and does not wait for readiness", func(t *testing.T) {
		w := empty(t)
		w.slow["a"] = true
		w.in.Desired, w.in.CreateBatch = 7, 3
		for _, want := range []int{3, 6, 7} {
			w.pass()
			if got := len(w.pods); got != want {
				t.Errorf("%d pods, want %d", got, want)
			}
			if want < 7 && !w.last.Wake.Equal(w.in.Now) {
				t.Errorf("the next pass is at %s", w.last.Wake)
			}
		}
	})
	t.Run("no batch, no bound", func(t *testing.T) {
		w := empty(t)
		w.in.Desired = 300
		w.pass()
		if len(w.pods) != 300 {
			t.Errorf("%d pods", len(w.pods))
		}
	})
	t.Run("a scale-up in the middle of a roll starts at the target", func(t *testing.T) {
		w := started(t, 2)
		w.floor, w.most = 2, 1
		w.target("b")
		w.pass()
		w.in.Desired = 4
		w.settle()
		w.rows("0 Ready b slot1", "1 Ready b slot1", "2 Ready b", "3 Ready b")
	})
	t.Run("a gate keeps new Instances on what the others run", func(t *testing.T) {
		w := started(t, 1)
		w.in.StartHold = &Hold{Gate: v1beta1.GatePlan, Reason: "not yet"}
		w.target("b")
		w.in.Desired = 2
		w.settle()
		w.rows("0 Ready a", "1 Ready a")
	})
	t.Run("a pause creates none", func(t *testing.T) {
		w := started(t, 1)
		w.in.Paused = true
		w.in.Desired = 2
		w.run(time.Hour)
		w.rows("0 Ready a")
		w.in.Paused = false
		w.settle()
		w.rows("0 Ready a", "1 Ready a")
	})
}

func TestScaleDown(t *testing.T) {
	t.Run("Ready ones of the lowest indexes stay", func(t *testing.T) {
		w := started(t, 4)
		w.in.Desired = 2
		w.pass()
		w.rows("0 Ready a", "1 Ready a", "2 Deleting a>- Drain", "3 Deleting a>- Drain")
		w.settle()
		w.rows("0 Ready a", "1 Ready a")
	})
	t.Run("no Ready one leaves while another stays", func(t *testing.T) {
		w := started(t, 3)
		w.row(0).Phase, w.row(0).Operation = v1beta1.InstanceFailed, nil
		w.change("0/0", func(p *corev1.Pod) { w.condition(p, corev1.ContainersReady, false) })
		w.slow["0/0"] = true
		w.in.Desired = 2
		w.pass()
		w.rows("0 Deleting a>- Drain", "1 Ready a", "2 Ready a")
	})
	t.Run("of those that are not Ready the lowest indexes stay", func(t *testing.T) {
		w := empty(t)
		w.slow["a"] = true
		w.in.Desired = 3
		w.settle()
		w.in.Desired = 1
		w.pass()
		w.rows("0 Creating ->a CreatePods", "1 Deleting ->- Drain", "2 Deleting ->- Drain")
	})
	t.Run("a removal drains: out, unrouted, deleted, gone, and the row with it", func(t *testing.T) {
		w := started(t, 2)
		w.in.Desired = 1
		w.pass()
		w.calls("Unserve 1/0 a")
		w.pass()
		w.calls()
		w.kubelet()
		w.pass()
		w.calls("Delete 1/0 a")
		w.pass()
		w.rows("0 Ready a", "1 Deleting a>- Drain")
		w.kubelet()
		w.pass()
		w.rows("0 Ready a")
	})
	t.Run("a batch counts pods on their way out, Terminating ones too, and the rest follows", func(t *testing.T) {
		w := started(t, 5)
		w.in.DeleteBatch, w.in.Desired = 2, 1
		w.stays["4/0"], w.stays["3/0"] = true, true
		w.settle()
		w.rows("0 Ready a", "1 Ready a", "2 Ready a", "3 Deleting a>- Drain", "4 Deleting a>- Drain")
		w.stays["4/0"] = false
		w.settle()
		w.rows("0 Ready a", "3 Deleting a>- Drain")
		w.stays["3/0"] = false
		w.settle()
		w.rows("0 Ready a")
	})
	t.Run("an Instance is never split: one over the batch goes alone", func(t *testing.T) {
		w := started(t, 3)
		w.slow["b"] = true
		w.in.MaxSurge = 3
		w.target("b")
		w.settle()
		w.in.DeleteBatch, w.in.Desired = 1, 1
		w.pass()
		w.rows("0 Updating a>b Surge", "1 Updating a>b Surge", "2 Deleting a>- Drain")
	})
	t.Run("what does not fit stops the choice: none behind it goes first", func(t *testing.T) {
		w := started(t, 4)
		w.in.Partition = 2
		w.slow["b"] = true
		w.in.MaxSurge = 4
		w.target("b")
		w.settle()
		w.rows("0 Ready a", "1 Ready a", "2 Updating a>b Surge", "3 Updating a>b Surge")
		w.in.DeleteBatch, w.in.Desired = 3, 1
		w.pass()
		w.rows("0 Ready a", "1 Ready a", "2 Updating a>b Surge", "3 Deleting a>- Drain")
	})
	t.Run("one without a pod costs one", func(t *testing.T) {
		w := started(t, 3)
		for _, i := range []int32{1, 2} {
			w.row(i).Phase = v1beta1.InstancePending
		}
		w.lose("1/0")
		w.lose("2/0")
		w.in.DeleteBatch, w.in.Desired = 1, 1
		w.pass()
		w.rows("0 Ready a", "1 Pending a")
		if !w.last.Wake.Equal(w.in.Now) {
			t.Errorf("the next pass is at %s: no event will bring it", w.last.Wake)
		}
		w.pass()
		w.rows("0 Ready a")
		w.allCalls()
	})
	t.Run("nothing is begun for one that waits to leave", func(t *testing.T) {
		w := started(t, 4)
		w.in.DeleteBatch, w.in.Desired = 1, 1
		w.stays["3/0"], w.slow["b"] = true, true
		w.pass()
		w.target("b")
		w.lose("2/0")
		w.settle()
		w.rows("0 Updating a>b Surge", "1 Ready a", "2 Pending a", "3 Deleting a>- Drain")
		w.never("Create 1/1")
		w.never("Create 2/0")
	})
	t.Run("everything leaves when nothing is desired", func(t *testing.T) {
		w := started(t, 3)
		w.in.Desired = 0
		w.settle()
		w.rows()
		w.wantPods()
		if !w.last.Counts.Settled {
			t.Errorf("%+v", w.last.Counts)
		}
	})
	t.Run("the scale-down of a roll leaves no pod behind", func(t *testing.T) {
		w := started(t, 3)
		w.slow["b"] = true
		w.target("b")
		w.settle()
		w.in.Desired = 1
		delete(w.slow, "b")
		w.settle()
		w.rows("0 Ready b slot1")
		w.wantPods("0/1 b")
	})
}
