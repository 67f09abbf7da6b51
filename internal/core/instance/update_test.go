package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

func TestSurgeThenDrain(t *testing.T) {
	t.Run("step by step: the new pod in the other slot, then the old one out, unrouted, deleted", func(t *testing.T) {
		w := started(t, 1)
		w.floor, w.most = 1, 1
		w.target("b")
		w.pass()
		w.rows("0 Updating a>b Surge")
		w.calls("Create 0/1 b")
		if op := w.row(0).Operation; op.Strategy != v1beta1.SurgeThenDrain || op.TargetRevision != "svc-engine-b" || op.ID == "" {
			t.Errorf("%+v", op)
		}
		w.kubelet()
		w.pass()
		w.calls("Serve 0/1 b")
		w.pass() // serving, and not yet reachable
		w.calls()
		w.kubelet()
		w.pass()
		w.rows("0 Updating a>b SurgeDrain")
		w.calls("Unserve 0/0 a")
		w.pass() // still routed
		w.calls()
		w.kubelet()
		w.pass()
		w.calls("Delete 0/0 a")
		w.pass() // Terminating is enough
		w.rows("0 Ready b slot1")
		w.calls()
		w.kubelet()
		w.settle()
		w.wantPods("0/1 b")
		if r := w.row(0); r.Incarnation != 1 || r.TargetRevision != "" || r.Operation != nil {
			t.Errorf("%+v", r)
		}
	})
	t.Run("the next update goes back to slot 0", func(t *testing.T) {
		w := started(t, 1)
		w.target("b")
		w.settle()
		w.target("c")
		w.settle()
		w.rows("0 Ready c")
		w.wantPods("0/0 c")
	})
	t.Run("minReadySeconds counts from Ready, before the old pod leaves", func(t *testing.T) {
		w := started(t, 1)
		w.in.MinReady = time.Minute
		w.target("b")
		w.run(59 * time.Second)
		w.wantPods("0/0 a", "0/1 b")
		w.never("Unserve 0/0")
		w.run(time.Second)
		w.settle()
		w.wantPods("0/1 b")
	})
	t.Run("a listed pod is not enough at minReadySeconds 0: it must serve and be reached", func(t *testing.T) {
		w := started(t, 1)
		w.target("b")
		w.pass()
		w.kubelet()
		for range 5 {
			w.pass()
			w.never("Unserve 0/0")
		}
	})
	t.Run("a live extra pod of a failed attempt is evicted first and not charged twice", func(t *testing.T) {
		w := started(t, 2)
		w.floor, w.most = 2, 1
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.rows("0 Ready a", "1 Failed a")
		w.wantPods("0/0 a", "1/0 a", "1/1 b")
		extra := w.pod("1/1").UID
		w.target("c")
		w.settle()
		w.rows("0 Ready c slot1", "1 Ready c slot1")
		for _, p := range w.pods {
			if p.UID == extra {
				t.Error("the extra pod is still there")
			}
		}
	})
	t.Run("a live extra pod holds its slot against the others", func(t *testing.T) {
		w := started(t, 2)
		w.sick["1/1"] = "CrashLoopBackOff"
		w.in.Relocations, w.in.Retry.InitialBackoff = 0, time.Minute
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.rows("0 Ready a", "1 Failed a")
		w.in.RetryBlocks = nil
		w.row(1).Phase = v1beta1.InstanceReady
		w.pass()
		w.holds(v1beta1.GateBudget)
		w.never("Create 0/1")
	})
	t.Run("an old pod that cannot come up is replaced at once and costs no surge", func(t *testing.T) {
		w := started(t, 2)
		w.in.MaxSurge, w.most = 1, 1
		w.sick["0/0"] = "CrashLoopBackOff"
		w.in.StuckGrace = time.Hour
		w.kubelet()
		w.target("b")
		w.pass()
		w.rows("0 Updating a>b Drain", "1 Updating a>b Surge")
		w.settle()
		w.rows("0 Ready b slot1", "1 Ready b slot1")
	})
	t.Run("the strategy of an update under way is pinned, and the next start takes the new one", func(t *testing.T) {
		w := started(t, 2)
		w.slow["1/1"] = true
		w.target("b")
		w.settle()
		w.strategy(v1beta1.RecreatePod)
		w.settle()
		if op := w.row(1).Operation; op == nil || op.Strategy != v1beta1.SurgeThenDrain || op.Step != v1beta1.StepSurge {
			t.Errorf("%+v", op)
		}
		delete(w.slow, "1/1")
		w.settle()
		w.rows("0 Ready b incarnation 2", "1 Ready b slot1")
	})
	t.Run("an old pod that dies while the new one starts is not made again beside it", func(t *testing.T) {
		w := started(t, 1)
		w.most = 1
		w.slow["b"] = true
		w.target("b")
		w.settle()
		w.lose("0/0")
		w.settle()
		w.rows("0 Updating a>b Surge")
		delete(w.slow, "b")
		w.settle()
		w.rows("0 Ready b slot1")
		w.never("Create 0/0")
	})
	t.Run("completion counts pods of the target only", func(t *testing.T) {
		w := started(t, 2)
		w.target("b")
		w.slow["b"] = true
		w.settle()
		c := w.last.Counts
		if c.Updated != 0 || c.UpdatedReady != 0 || c.Settled || c.Total != 2 || c.Ready != 2 || c.Serving != 2 || c.Surging != 1 {
			t.Errorf("%+v", c)
		}
		delete(w.slow, "b")
		w.settle()
		if c := w.last.Counts; c.Updated != 2 || c.UpdatedReady != 2 || !c.Settled {
			t.Errorf("%+v", c)
		}
	})
}

func TestRecreatePod(t *testing.T) {
	t.Run("step by step: out, unrouted, deleted, gone, made again in the next incarnation", func(t *testing.T) {
		w := started(t, 1)
		w.strategy(v1beta1.RecreatePod)
		w.most = 0
		w.target("b")
		w.pass()
		w.rows("0 Updating a>b Drain incarnation 2")
		w.calls("Unserve 0/0 a")
		w.pass()
		w.calls()
		w.kubelet()
		w.pass()
		w.calls("Delete 0/0 a")
		w.pass() // its name is not free
		w.calls()
		w.kubelet()
		w.pass()
		w.calls("Create 0/0 b")
		if p := w.pod("0/0"); p.Labels[v1beta1.InstanceIncarnationLabel] != "2" {
			t.Errorf("%v", p.Labels)
		}
		w.kubelet()
		w.pass()
		w.calls("Serve 0/0 b")
		w.kubelet()
		w.pass()
		w.rows("0 Ready b incarnation 2")
	})
	t.Run("it is never below the floor", func(t *testing.T) {
		w := started(t, 5)
		w.strategy(v1beta1.RecreatePod)
		w.in.MaxUnavailable, w.floor, w.most = 2, 3, 0
		w.target("b")
		w.settle()
		for _, r := range w.in.Rows {
			if r.RunningRevision != "svc-engine-b" || r.Incarnation != 2 {
				t.Fatalf("%v", w.summaries())
			}
		}
	})
	t.Run("nor with minReadySeconds", func(t *testing.T) {
		w := started(t, 3)
		w.strategy(v1beta1.RecreatePod)
		w.in.MinReady, w.floor = time.Minute, 2
		w.target("b")
		w.run(59 * time.Second)
		w.rows("0 Ready a", "1 Ready a", "2 Updating a>b Drain incarnation 2")
		w.run(5 * time.Minute)
		w.rows("0 Ready b incarnation 2", "1 Ready b incarnation 2", "2 Ready b incarnation 2")
	})
	t.Run("a new pod that serves already is not given up for the next revision before its turn", func(t *testing.T) {
		w := started(t, 2)
		w.strategy(v1beta1.RecreatePod)
		w.in.MinReady, w.floor = time.Minute, 1
		w.target("b")
		w.run(10 * time.Second)
		w.rows("0 Ready a", "1 Updating a>b Drain incarnation 2")
		w.target("c")
		w.settle()
		w.rows("0 Ready a", "1 Updating a>b Drain incarnation 2")
		w.never("Unserve 1/0 b")
		w.run(10 * time.Minute)
		w.rows("0 Ready c incarnation 2", "1 Ready c incarnation 3")
	})
	t.Run("a budget that is not set takes everything down", func(t *testing.T) {
		w := started(t, 4)
		w.strategy(v1beta1.RecreatePod)
		w.in.MaxUnavailable = NoBudget
		w.target("b")
		w.pass()
		w.calls("Unserve 3/0 a", "Unserve 2/0 a", "Unserve 1/0 a", "Unserve 0/0 a")
	})
	t.Run("an Instance that does not serve counts, costs nothing itself and goes first", func(t *testing.T) {
		w := started(t, 3)
		w.strategy(v1beta1.RecreatePod)
		w.in.StuckGrace = time.Hour
		w.slow["0/0"] = true
		w.kubelet()
		w.target("b")
		w.pass()
		w.rows("0 Updating a>b Drain incarnation 2", "1 Ready a", "2 Ready a")
		w.holds(v1beta1.GateBudget, "unavailability budget 1 exhausted (would become 2)")
		delete(w.slow, "0/0")
		w.floor = 2
		w.settle()
		w.rows("0 Ready b incarnation 2", "1 Ready b incarnation 2", "2 Ready b incarnation 2")
	})
	t.Run("unhealthy old Instances of a zero budget are still replaced", func(t *testing.T) {
		w := started(t, 2)
		w.strategy(v1beta1.RecreatePod)
		w.in.StuckGrace, w.in.MaxUnavailable = time.Hour, 0
		w.sick["0/0"], w.sick["1/0"] = "CrashLoopBackOff", "CrashLoopBackOff"
		w.kubelet()
		w.target("b")
		w.pass()
		delete(w.sick, "0/0")
		delete(w.sick, "1/0")
		w.settle()
		w.rows("0 Ready b incarnation 2", "1 Ready b incarnation 2")
	})
	t.Run("a template without a spare place: the old pod leaves first", func(t *testing.T) {
		w := started(t, 1)
		w.strategy(v1beta1.RecreatePod)
		w.noRoom = "no GPU is free"
		w.target("b")
		for range 4 {
			w.pass()
			w.kubelet()
		}
		w.noRoom = ""
		w.settle()
		w.rows("0 Ready b incarnation 2")
	})
	t.Run("a node that never confirms the end does not hold the name: the other slot takes over", func(t *testing.T) {
		w := started(t, 1)
		w.strategy(v1beta1.RecreatePod)
		w.stays["0/0"] = true
		w.target("b")
		w.run(grace - time.Second)
		w.never("Create")
		w.run(time.Second)
		w.settle()
		w.rows("0 Ready b slot1 incarnation 2")
	})
	t.Run("the pod of the new incarnation is lost: its successor waits for its grace", func(t *testing.T) {
		w := started(t, 1)
		w.strategy(v1beta1.RecreatePod)
		w.slow["b"], w.most = true, 0
		w.target("b")
		w.settle()
		w.stays["0/0"] = true
		w.change("0/0", func(p *corev1.Pod) { p.DeletionTimestamp = w.leaveAt() })
		w.settle()
		w.wantPods("0/0 b leaving")
		w.run(grace - time.Second)
		w.wantPods("0/0 b leaving")
		w.most = -1
		w.run(time.Second)
		delete(w.slow, "b")
		w.settle()
		w.rows("0 Ready b slot1 incarnation 2")
	})
}
