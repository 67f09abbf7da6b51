package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

func TestMaxSurge(t *testing.T) {
	t.Run("slots are pods beyond one for each Instance, and never more than the budget", func(t *testing.T) {
		for _, budget := range []int32{1, 2, 3} {
			w := started(t, 5)
			w.in.MaxSurge, w.most, w.floor = budget, int(budget), 5
			w.target("b")
			w.pass()
			if got := len(w.acts); got != int(budget) {
				t.Errorf("budget %d: %v", budget, w.acts)
			}
			w.settle()
			for _, r := range w.in.Rows {
				if r.RunningRevision != "svc-engine-b" {
					t.Fatalf("%v", w.summaries())
				}
			}
		}
	})
	t.Run("a Terminating pod counts until its grace is over, and the wake is then", func(t *testing.T) {
		w := started(t, 2)
		w.most = 1
		w.stays["1/0"] = true
		w.target("b")
		w.settle()
		w.rows("0 Ready a", "1 Ready b slot1")
		w.holds(v1beta1.GateBudget, "surge budget 1 exhausted (would become 2)", "Terminating pod svc-engine-1-default-0")
		w.run(grace - time.Second)
		w.rows("0 Ready a", "1 Ready b slot1")
		w.most = 2
		w.run(time.Second)
		w.settle()
		w.rows("0 Ready b slot1", "1 Ready b slot1")
	})
	t.Run("it stops counting when it is gone", func(t *testing.T) {
		w := started(t, 2)
		w.most = 1
		w.stays["1/0"] = true
		w.target("b")
		w.settle()
		w.stays["1/0"] = false
		w.settle()
		w.rows("0 Ready b slot1", "1 Ready b slot1")
	})
	t.Run("the live extra pod of a failed attempt counts, once, and is named", func(t *testing.T) {
		w := started(t, 3)
		w.most = 1
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.rows("0 Ready a", "1 Ready a", "2 Failed a")
		// It is kept by a partition that leaves only another Instance to move.
		w.in.RetryBlocks = nil
		w.in.MaxOpen = 500
		w.row(2).Operation = &v1beta1.InstanceOperation{ID: "x", Type: v1beta1.OperationRestart, Step: v1beta1.StepDrain, TargetRevision: "svc-engine-a"}
		w.pass()
		w.holds(v1beta1.GateBudget, "exhausted (would become 2)")
	})
	t.Run("an ended extra pod of a failed attempt does not lock its Instance out", func(t *testing.T) {
		w := started(t, 1)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		delete(w.sick, "b")
		w.change("0/1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		w.run(time.Minute)
		w.settle()
		w.rows("0 Ready b slot1")
	})
	t.Run("a pod that is yet to come counts, in either slot", func(t *testing.T) {
		w := started(t, 2)
		for _, next := range []string{"b", "c"} {
			w.refuse = func(*corev1.Pod) *Refusal { return &Refusal{Kind: RefusedQuota, Text: "full"} }
			w.target(next)
			w.run(time.Minute)
			open := 0
			for _, r := range w.in.Rows {
				if r.Operation != nil {
					open++
				}
			}
			if open != 1 {
				t.Errorf("to %s: %v", next, w.summaries())
			}
			w.refuse = nil
			w.run(time.Minute)
		}
		w.rows("0 Ready c", "1 Ready c")
	})
	t.Run("a budget of zero names the number to change and the strategy that would work", func(t *testing.T) {
		w := started(t, 1)
		w.in.MaxSurge = 0
		w.target("b")
		w.settle()
		w.rows("0 Ready a")
		w.holds(v1beta1.GateBudget, "surge budget 0 exhausted (would become 1)", "rollingUpdate.maxSurge: 0", "raise it to 1 or more", "RecreatePod")
	})
	t.Run("a surge does not read maxUnavailable, a rebuild does not read maxSurge", func(t *testing.T) {
		w := started(t, 1)
		w.in.MaxUnavailable = 0
		w.target("b")
		w.settle()
		w.rows("0 Ready b slot1")
		w.strategy(v1beta1.RecreatePod)
		w.in.MaxSurge, w.in.MaxUnavailable = 0, 1
		w.target("c")
		w.settle()
		w.rows("0 Ready c slot1 incarnation 2")
	})
}

func TestMaxUnavailable(t *testing.T) {
	for _, s := range []v1beta1.UpdateStrategyType{v1beta1.RecreatePod, v1beta1.InPlaceIfPossible, v1beta1.InPlaceOnly} {
		t.Run("zero under "+string(s), func(t *testing.T) {
			w := started(t, 1)
			w.strategy(s)
			w.in.MaxUnavailable = 0
			w.target("b")
			w.settle()
			w.rows("0 Ready a")
			w.holds(v1beta1.GateBudget, "unavailability budget 0 exhausted (would become 1)", "lifecycle.updateStrategy.rollingUpdate.maxUnavailable: 0", string(s), "raise it to 1 or more", "SurgeThenDrain")
			w.in.UnavailableField = "spec.rollout.groups[0].rollingUpdate"
			w.settle()
			w.holds(v1beta1.GateBudget, "with spec.rollout.groups[0].rollingUpdate.maxUnavailable: 0 the strategy "+string(s))
		})
		t.Run("one by one under "+string(s), func(t *testing.T) {
			w := started(t, 3)
			w.strategy(s)
			w.floor, w.most = 2, 0
			w.target("b")
			w.pass()
			w.holds(v1beta1.GateBudget, "unavailability budget 1 exhausted (would become 2)")
			w.settle()
			w.holds("")
			if w.last.Counts.Updated != 3 {
				t.Errorf("%v", w.summaries())
			}
		})
	}
	t.Run("an Instance that does not serve by itself counts, and is named", func(t *testing.T) {
		w := started(t, 3)
		w.strategy(v1beta1.RecreatePod)
		w.in.Partition, w.in.StuckGrace = 1, 0
		w.slow["0/0"] = true
		w.kubelet()
		w.target("b")
		w.settle()
		w.rows("0 Ready a", "1 Ready a", "2 Ready a")
		w.holds(v1beta1.GateBudget, "exhausted (would become 2)", "Instance 0 does not serve and counts")
	})
	t.Run("Instances that restart count", func(t *testing.T) {
		w := started(t, 3)
		w.strategy(v1beta1.RecreatePod)
		w.in.RestartPolicy, w.slow["0/0"] = v1beta1.RestartRecreateInstance, true
		w.lose("0/0")
		w.settle()
		w.target("b")
		w.settle()
		w.rows("0 Restarting a>a Drain incarnation 2", "1 Ready a", "2 Ready a")
		w.holds(v1beta1.GateBudget, "would become 2")
	})
}

func TestPartition(t *testing.T) {
	t.Run("it keeps the lowest indexes back", func(t *testing.T) {
		w := started(t, 4)
		w.in.Partition = 3
		w.target("b")
		w.settle()
		w.rows("0 Ready a", "1 Ready a", "2 Ready a", "3 Ready b slot1")
		if c := w.last.Counts; c.KeptBack != 3 || c.Updated != 1 {
			t.Errorf("%+v", c)
		}
		w.holds("")
		w.in.Partition = 0
		w.settle()
		if c := w.last.Counts; c.KeptBack != 0 || c.Updated != 4 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("it counts, and does not compare: gaps in the indexes deadlock nothing", func(t *testing.T) {
		w := empty(t)
		for _, index := range []int32{3, 7, 8, 20} {
			w.in.Rows = append(w.in.Rows, ready(index, "a", 0))
			p, _ := podAt{index, 0, "a", "offered"}.build()
			p.Spec = *rev("a").Template().Spec.DeepCopy()
			w.pods = append(w.pods, p)
		}
		w.in.Desired = 4
		w.kubelet()
		w.settle()
		w.floor = 4
		w.in.Partition = 2
		w.target("b")
		w.settle()
		w.rows("3 Ready a", "7 Ready a", "8 Ready b slot1", "20 Ready b slot1")
	})
	t.Run("those on the target do not count among the kept", func(t *testing.T) {
		w := started(t, 4)
		w.target("b")
		w.in.Partition = 2
		w.settle()
		w.in.Desired = 6
		w.settle()
		w.rows("0 Ready a", "1 Ready a", "2 Ready b slot1", "3 Ready b slot1", "4 Ready b", "5 Ready b")
		w.in.Partition = 1
		w.settle()
		w.rows("0 Ready a", "1 Ready b slot1", "2 Ready b slot1", "3 Ready b slot1", "4 Ready b", "5 Ready b")
	})
	t.Run("one that moves already goes on, and another is kept instead", func(t *testing.T) {
		w := started(t, 3)
		w.slow["b"] = true
		w.target("b")
		w.settle()
		w.rows("0 Ready a", "1 Ready a", "2 Updating a>b Surge")
		w.in.Partition = 3
		delete(w.slow, "b")
		w.settle()
		w.rows("0 Ready a", "1 Ready a", "2 Ready b slot1")
	})
	t.Run("a kept Instance that lost its pod gets it at the revision it ran", func(t *testing.T) {
		w := started(t, 2)
		w.in.Partition = 1
		w.target("b")
		w.settle()
		w.lose("0/0")
		w.settle()
		w.rows("0 Ready a", "1 Ready b slot1")
	})
	t.Run("a partition of the whole count moves nothing", func(t *testing.T) {
		w := started(t, 2)
		w.in.Partition = 2
		w.target("b")
		w.run(time.Hour)
		w.allCalls()
	})
}

// The order in which one update is judged: the first thing that denies it is what the
// hold says.
func TestAdmissionOrder(t *testing.T) {
	gate := &Hold{Gate: v1beta1.GateSequential, Reason: "decoder first"}
	t.Run("a pause before everything", func(t *testing.T) {
		w := started(t, 1)
		w.in.Paused, w.in.StartHold, w.in.MaxSurge = true, gate, 0
		w.target("b")
		w.run(time.Hour)
		w.rows("0 Ready a")
		w.allCalls()
	})
	t.Run("then the gates of the rollout", func(t *testing.T) {
		w := started(t, 1)
		exhaust(w)
		w.in.StartHold, w.in.MaxSurge = gate, 0
		w.settle()
		w.holds(v1beta1.GateSequential, "decoder first")
	})
	t.Run("then the partition, which is no hold", func(t *testing.T) {
		w := started(t, 1)
		exhaust(w)
		w.in.Partition, w.in.MaxSurge = 1, 0
		w.settle()
		w.holds("")
	})
	t.Run("then retry authority", func(t *testing.T) {
		w := started(t, 2)
		exhaust(w)
		w.in.MaxSurge = 0
		w.settle()
		w.holds(v1beta1.GateHeld)
	})
	t.Run("then the budget", func(t *testing.T) {
		w := started(t, 1)
		w.in.MaxSurge = 0
		w.target("b")
		w.settle()
		w.holds(v1beta1.GateBudget)
	})
	t.Run("the limit of open operations names its setting", func(t *testing.T) {
		w := started(t, 3)
		w.in.MaxSurge, w.in.MaxOpen = 3, 2
		w.slow["b"] = true
		w.target("b")
		w.settle()
		w.rows("0 Ready a", "1 Updating a>b Surge", "2 Updating a>b Surge")
		w.holds(v1beta1.GateBudget, "2 operations are open", "lifecycle.maxOpenOperations")
	})
	t.Run("the hold goes when nothing is left to roll", func(t *testing.T) {
		w := started(t, 1)
		w.in.MaxSurge = 0
		w.target("b")
		w.settle()
		w.target("a")
		w.settle()
		w.holds("")
	})
	t.Run("one that needs a slot does not keep the one that holds it from starting", func(t *testing.T) {
		w := started(t, 2)
		w.in.MaxSurge = 2
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.rows("0 Failed a", "1 Failed a")
		w.lose("1/1")
		w.in.MaxSurge = 1
		w.run(time.Minute)
		w.settle()
		w.rows("0 Updating a>b Surge", "1 Failed a")
	})
	t.Run("candidates: Failed ones, broken ones, those that do not serve, then the highest index", func(t *testing.T) {
		w := started(t, 5)
		w.strategy(v1beta1.RecreatePod)
		w.in.MaxUnavailable, w.in.StuckGrace = NoBudget, time.Hour
		w.row(1).Phase = v1beta1.InstanceFailed
		w.change("1/0", func(p *corev1.Pod) { w.condition(p, corev1.ContainersReady, false) })
		w.sick["2/0"], w.slow["0/0"], w.slow["1/0"] = "CrashLoopBackOff", true, true
		w.kubelet()
		w.target("b")
		w.pass()
		w.calls("Unserve 1/0 a", "Unserve 2/0 a", "Unserve 0/0 a", "Unserve 4/0 a", "Unserve 3/0 a")
	})
}

// What keeps a pod from coming up is named, of the pod that it is about.
func TestTheHoldNamesTheCause(t *testing.T) {
	t.Run("of two pods to come, the one that was refused", func(t *testing.T) {
		w := started(t, 2)
		w.in.MaxSurge = 2
		w.refuse = func(p *corev1.Pod) *Refusal {
			if p.Name == "svc-engine-1-default-1" {
				return &Refusal{Kind: RefusedOther, Text: "denied by policy"}
			}
			return nil
		}
		w.target("b")
		w.pass()
		w.lose("0/1")
		w.in.Refusal = "denied by policy"
		w.pass()
		w.holds(v1beta1.GateBudget, "refused pod svc-engine-1-default-1: denied by policy")
	})
	t.Run("a write of another kind that was refused", func(t *testing.T) {
		w := started(t, 1)
		w.target("b")
		w.refuse = func(*corev1.Pod) *Refusal { return &Refusal{} }
		w.pass()
		w.in.RefusedPods, w.in.Refusal = nil, "no"
		w.in.RefusedPods = map[string]Refusal{}
		w.pass()
		w.holds(v1beta1.GateBudget, "refused pod svc-engine-0-default-1: no")
	})
	t.Run("behind an exhausted budget, the pod that holds it up", func(t *testing.T) {
		w := started(t, 2)
		w.in.StuckGrace = time.Hour
		w.sick["b"] = "ImagePullBackOff"
		w.target("b")
		w.settle()
		w.holds(v1beta1.GateBudget, "exhausted (would become 2)", "pod svc-engine-1-default-1 cannot start: ImagePullBackOff in container ome-container", "mend the spec")
	})
	t.Run("a pod past its grace on a node that says nothing does not hold its Instance up", func(t *testing.T) {
		w := empty(t)
		w.slow["a"] = true
		w.in.MaxSurge = 0
		w.settle()
		w.stays["0/0"] = true
		w.change("0/0", func(p *corev1.Pod) { p.DeletionTimestamp = w.leaveAt() })
		w.stays["0/1"] = true
		w.pass()
		w.run(grace - time.Second)
		w.never("Create 0/1")
		w.run(time.Second)
		w.settle()
		w.wantPods("0/0 a leaving", "0/1 a")
	})
}
