package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

func TestClock(t *testing.T) {
	t.Run("an attempt has the whole timeout, and its end needs no event", func(t *testing.T) {
		w := started(t, 1)
		w.slow["b"] = true
		w.in.Relocations = 0
		w.target("b")
		w.settle()
		w.clock(0, "30m0s")
		w.run(30*time.Minute - time.Second)
		w.rows("0 Updating a>b Surge")
		w.run(time.Second)
		w.settle()
		w.rows("0 Failed a")
		w.told(v1beta1.EventInstanceFailed, 1, "ContainersNotReady", "30m0s")
	})
	t.Run("without a timeout there is no deadline", func(t *testing.T) {
		w := started(t, 1)
		w.in.ReadyTimeout = 0
		w.slow["b"] = true
		w.target("b")
		w.run(100 * time.Hour)
		w.rows("0 Updating a>b Surge")
		w.clock(0, "parked")
	})
	t.Run("a changed timeout is for operations opened later and for those without a deadline", func(t *testing.T) {
		w := started(t, 2)
		w.in.MaxSurge = 2
		w.in.Relocations = 0
		w.slow["b"] = true
		w.target("b")
		w.settle()
		w.in.ReadyTimeout = time.Hour
		w.settle()
		w.clock(0, "30m0s")
		w.row(1).Operation.Deadline = nil
		w.settle()
		w.clock(0, "30m0s")
		w.clock(1, "1h0m0s")
	})
	t.Run("an Instance that serves is never failed", func(t *testing.T) {
		w := started(t, 1)
		w.in.MinReady = 2 * time.Hour
		w.target("b")
		w.run(time.Hour)
		w.rows("0 Updating a>b Surge")
		w.told(v1beta1.EventInstanceFailed, 0)
		w.run(time.Hour)
		w.settle()
		w.rows("0 Ready b slot1")
	})
	t.Run("a refusal for quota parks the clock, and a clean creation grants the whole window", func(t *testing.T) {
		w := started(t, 1)
		w.refuse = func(*corev1.Pod) *Refusal { return &Refusal{Kind: RefusedQuota, Text: "exceeded quota: gpus"} }
		w.target("b")
		w.run(10 * time.Minute)
		w.rows("0 Updating a>b Surge waiting QuotaExceeded")
		w.holds(v1beta1.GateBudget, "the API server refused pod svc-engine-0-default-1: exceeded quota: gpus")
		w.clock(0, "parked")
		if at := w.row(0).Operation.CapacityRefusedAt; at == nil || !at.Time.Equal(t0.Add(time.Minute)) {
			t.Errorf("refused at %v", at)
		}
		w.run(10 * time.Hour)
		w.rows("0 Updating a>b Surge waiting QuotaExceeded")
		w.refuse, w.slow["b"] = nil, true
		w.settle()
		w.rows("0 Updating a>b Surge")
		w.clock(0, "30m0s")
		if at := w.row(0).Operation.CapacityRefusedAt; at != nil {
			t.Errorf("still refused at %v", at)
		}
	})
	t.Run("a manager that begins anew still knows of the refusal", func(t *testing.T) {
		w := started(t, 1)
		w.refuse = func(*corev1.Pod) *Refusal { return &Refusal{Kind: RefusedQuota, Text: "exceeded quota: gpus"} }
		w.target("b")
		w.settle()
		w.in.RefusedPods = map[string]Refusal{}
		w.pass()
		w.rows("0 Updating a>b Surge waiting QuotaExceeded")
		w.clock(0, "parked")
		w.calls("Create 0/1 b")
	})
	t.Run("no room parks the clock until its own grace, and room grants the whole window", func(t *testing.T) {
		w := started(t, 1)
		w.noRoom = "0/5 nodes are available: 5 Insufficient nvidia.com/gpu."
		w.target("b")
		w.run(14 * time.Minute)
		w.rows("0 Updating a>b Surge waiting Unschedulable")
		w.clock(0, "parked")
		w.holds(v1beta1.GateBudget, "no node has room for pod svc-engine-0-default-1", "Insufficient nvidia.com/gpu",
			"lifecycle.updateStrategy.type: RecreatePod")
		w.noRoom, w.slow["b"] = "", true
		w.settle()
		w.rows("0 Updating a>b Surge")
		w.clock(0, "30m0s")
		w.holds("")
	})
	t.Run("a scheduling gate parks the clock without a token, and is named", func(t *testing.T) {
		w := started(t, 1)
		w.gated = true
		w.target("b")
		w.run(10 * time.Hour)
		w.rows("0 Updating a>b Surge")
		w.clock(0, "parked")
		w.holds(v1beta1.GateBudget, "waits for its scheduling gate kueue.x-k8s.io/admission")
		if w.row(0).Admitted {
			t.Error("the Instance counts as admitted")
		}
		w.slow["b"] = true
		w.change("0/1", func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
		w.settle()
		w.clock(0, "30m0s")
		if !w.row(0).Admitted {
			t.Error("the Instance does not count as admitted")
		}
	})
	t.Run("a pod that must go first on a silent node parks the clock", func(t *testing.T) {
		w := started(t, 1)
		w.strategy(v1beta1.RecreatePod)
		w.target("b")
		w.stays["0/0"] = true
		w.change("0/0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown })
		w.settle()
		w.rows("0 Updating a>b Drain waiting NodeUnknown incarnation 2")
		w.clock(0, "parked")
		w.stays["0/0"] = false
		w.settle()
		w.rows("0 Ready b incarnation 2")
	})
	t.Run("a pause parks the clock, and its end grants the whole window", func(t *testing.T) {
		w := started(t, 1)
		w.slow["b"] = true
		w.target("b")
		w.run(20 * time.Minute)
		w.clock(0, "10m0s")
		w.in.Paused = true
		w.run(10 * time.Hour)
		w.clock(0, "parked")
		w.in.Paused = false
		w.settle()
		w.clock(0, "30m0s")
	})
	t.Run("a surge that is held before its drain says Paused", func(t *testing.T) {
		w := started(t, 1)
		w.target("b")
		w.in.MinReady = time.Minute
		w.settle()
		w.in.Paused = true
		w.run(10 * time.Minute)
		w.rows("0 Updating a>b Surge waiting Paused")
		w.clock(0, "parked")
		w.wantPods("0/0 a", "0/1 b")
		w.in.Paused = false
		w.settle()
		w.rows("0 Ready b slot1")
	})
	t.Run("an old pod that left rotation early is told and does not park", func(t *testing.T) {
		w := started(t, 1)
		w.slow["b"] = true
		w.target("b")
		w.settle()
		w.sick["0/0"] = "CrashLoopBackOff"
		w.kubelet()
		w.settle()
		w.rows("0 Updating a>b Surge waiting SourceUnrouted")
		w.clock(0, "30m0s")
	})
	t.Run("a removal has a deadline too, and a pause does not park it", func(t *testing.T) {
		w := started(t, 2)
		w.in.Paused, w.in.Desired = true, 1
		w.stays["1/0"] = true
		w.settle()
		w.rows("0 Ready a", "1 Deleting a>- Drain")
		w.clock(1, "30m0s")
	})
}

// Of a hold and of an attempt that runs, the time that is not parked is never less than
// the timeout.
func TestParkedTimeIsNotCounted(t *testing.T) {
	w := started(t, 1)
	w.slow["b"] = true
	w.in.Relocations = 0
	w.target("b")
	w.settle()
	for range 5 {
		w.run(29 * time.Minute)
		w.rows("0 Updating a>b Surge")
		w.in.Paused = true
		w.run(time.Hour)
		w.in.Paused = false
		w.settle()
	}
	w.told(v1beta1.EventInstanceFailed, 0)
	w.run(30 * time.Minute)
	w.settle()
	w.told(v1beta1.EventInstanceFailed, 1)
	if f := w.row(0).LastFailure; f == nil || f.Time == nil || !f.Time.Time.Equal(w.in.Now) {
		t.Errorf("failure %+v at %s", f, w.in.Now)
	}
}
