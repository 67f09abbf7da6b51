package instance

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

func TestRestartPolicy(t *testing.T) {
	recreate := func(t *testing.T, n int32) *world {
		w := started(t, n)
		w.in.RestartPolicy = v1beta1.RestartRecreateInstance
		return w
	}
	t.Run("a container that restarted rebuilds its Instance, step by step", func(t *testing.T) {
		w := recreate(t, 1)
		w.crash("0/0", "ome-container")
		w.pass()
		w.rows("0 Restarting a>a Drain incarnation 2")
		w.calls("Unserve 0/0 a")
		w.told(v1beta1.EventRestartTriggered, 1, "Instance engine-0", "incarnation 2", "OOMKilled")
		w.pass() // still routed
		w.calls()
		w.kubelet()
		w.pass()
		w.calls("Delete 0/0 a")
		w.pass() // not gone yet
		w.calls()
		w.kubelet()
		w.pass()
		w.calls("Create 0/0 a")
		w.kubelet()
		w.pass()
		w.calls("Serve 0/0 a")
		w.told(v1beta1.EventRestartCompleted, 0)
		w.kubelet()
		w.pass()
		w.rows("0 Ready a incarnation 2")
		w.told(v1beta1.EventRestartCompleted, 1, "incarnation 2")
		if p := w.pod("0/0"); p.Labels[v1beta1.InstanceIncarnationLabel] != "2" {
			t.Errorf("%v", p.Labels)
		}
		f := w.row(0).LastFailure
		if f == nil || f.ContainerName != "ome-container" || f.ExitCode == nil || *f.ExitCode != 137 || f.Reason != "OOMKilled" {
			t.Errorf("%+v", f)
		}
	})
	t.Run("minReadySeconds belongs to a restart", func(t *testing.T) {
		w := recreate(t, 1)
		w.in.MinReady = time.Minute
		w.crash("0/0", "ome-container")
		w.settle()
		w.rows("0 Restarting a>a Drain incarnation 2")
		w.run(time.Minute)
		w.settle()
		w.rows("0 Ready a incarnation 2")
	})
	t.Run("a sidecar does not count", func(t *testing.T) {
		w := recreate(t, 1)
		w.crash("0/0", "proxy")
		w.run(time.Hour)
		w.rows("0 Ready a")
	})
	t.Run("an init container does not count", func(t *testing.T) {
		w := recreate(t, 1)
		w.change("0/0", func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "ome-container", RestartCount: 3, LastTerminationState: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(w.in.Now)}}}}
		})
		w.run(time.Hour)
		w.rows("0 Ready a")
	})
	t.Run("a restart that ended before the Instance was Ready does not count", func(t *testing.T) {
		w := empty(t)
		w.in.RestartPolicy = v1beta1.RestartRecreateInstance
		w.slow["a"] = true
		w.run(10 * time.Second)
		w.crash("0/0", "ome-container")
		w.later(10 * time.Second)
		delete(w.slow, "a")
		w.run(time.Hour)
		w.rows("0 Ready a")
		w.told(v1beta1.EventRestartTriggered, 0)
	})
	// Times in the API are whole seconds, and a kubelet's clock is not ours.
	for name, off := range map[string]time.Duration{
		"in the second in which its pod came into rotation": 0,
		"by a kubelet whose clock is behind":                -2 * time.Second,
	} {
		t.Run("a restart "+name, func(t *testing.T) {
			w := recreate(t, 1)
			w.crash("0/0", "ome-container")
			w.change("0/0", func(p *corev1.Pod) {
				i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1beta1.ServingReadinessGate })
				p.Status.ContainerStatuses[0].LastTerminationState.Terminated.FinishedAt = metav1.NewTime(p.Status.Conditions[i].LastTransitionTime.Add(off))
			})
			w.settle()
			w.rows("0 Ready a incarnation 2")
			w.told(v1beta1.EventRestartTriggered, 1, "OOMKilled")
		})
	}
	t.Run("a restart that ended in the second in which the pod came into rotation, but before, does not count", func(t *testing.T) {
		w := empty(t)
		w.in.RestartPolicy = v1beta1.RestartRecreateInstance
		w.slow["a"] = true
		w.run(10 * time.Second)
		w.crash("0/0", "ome-container")
		delete(w.slow, "a")
		w.settle()
		w.run(time.Hour)
		w.rows("0 Ready a")
		w.told(v1beta1.EventRestartTriggered, 0)
	})
	t.Run("a gate that somebody else turned tells by its time", func(t *testing.T) {
		w := recreate(t, 1)
		w.change("0/0", func(p *corev1.Pod) {
			for i := range p.Status.Conditions {
				p.Status.Conditions[i].Message = ""
			}
		})
		w.later(time.Minute)
		w.crash("0/0", "ome-container")
		w.settle()
		w.rows("0 Ready a incarnation 2")
	})
	t.Run("a pod in phase Failed", func(t *testing.T) {
		w := recreate(t, 1)
		w.change("0/0", func(p *corev1.Pod) { p.Status.Phase, p.Status.Message = corev1.PodFailed, "evicted" })
		w.settle()
		w.rows("0 Ready a incarnation 2")
		w.told(v1beta1.EventRestartTriggered, 1, "PodFailed")
	})
	t.Run("a pod that is gone", func(t *testing.T) {
		w := recreate(t, 1)
		w.lose("0/0")
		w.settle()
		w.rows("0 Ready a incarnation 2")
		w.told(v1beta1.EventRestartTriggered, 1, "PodGone")
	})
	t.Run("None replaces a pod that is gone, in the same incarnation, and leaves restarted containers to the kubelet", func(t *testing.T) {
		w := started(t, 1)
		w.in.RestartPolicy = v1beta1.RestartNone
		w.crash("0/0", "ome-container")
		w.run(time.Hour)
		w.rows("0 Ready a")
		w.lose("0/0")
		w.pass()
		w.rows("0 Creating a>a CreatePods")
		w.kubelet()
		w.settle()
		w.rows("0 Ready a")
		w.change("0/0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		w.settle()
		w.rows("0 Ready a")
		w.told(v1beta1.EventRestartTriggered, 0)
	})
	t.Run("policy restarts need no budget", func(t *testing.T) {
		w := recreate(t, 3)
		w.in.MaxUnavailable = 0
		for _, p := range []string{"0/0", "1/0", "2/0"} {
			w.crash(p, "ome-container")
		}
		w.pass()
		w.rows("0 Restarting a>a Drain incarnation 2", "1 Restarting a>a Drain incarnation 2", "2 Restarting a>a Drain incarnation 2")
		w.told(v1beta1.EventRepairHeld, 0)
	})
	t.Run("a restart keeps the revision that runs", func(t *testing.T) {
		w := recreate(t, 1)
		w.in.Partition = 1
		w.target("b")
		w.crash("0/0", "ome-container")
		w.settle()
		w.rows("0 Ready a incarnation 2")
	})
	t.Run("a restart that is not done within the timeout fails", func(t *testing.T) {
		w := recreate(t, 1)
		w.stays["0/0"] = true
		w.crash("0/0", "ome-container")
		w.pass()
		w.clock(0, "30m0s")
	})
	t.Run("a pod without an incarnation keeps the restart waiting", func(t *testing.T) {
		w := recreate(t, 1)
		w.crash("0/0", "ome-container")
		w.change("0/0", func(p *corev1.Pod) { delete(p.Labels, v1beta1.InstanceIncarnationLabel) })
		w.run(10 * time.Minute)
		w.rows("0 Restarting a>a Drain incarnation 2")
		w.never("Delete 0/0")
		w.told(v1beta1.EventFoundOrphan, 1, "svc-engine-0-default-0", v1beta1.InstanceIncarnationLabel)
		w.lose("0/0")
		w.settle()
		w.rows("0 Ready a incarnation 2")
	})
	t.Run("consecutive restarts wait longer each time, up to five minutes", func(t *testing.T) {
		w := recreate(t, 1)
		for i, wait := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute} {
			w.run(time.Second)
			w.crash("0/0", "ome-container")
			if wait > 0 {
				w.settle()
				if op := w.row(0).Operation; op == nil || op.Waiting != v1beta1.WaitingRestartBackoff || op.Deadline != nil {
					t.Fatalf("restart %d: %+v", i, op)
				}
				if w.serving() != 1 {
					t.Errorf("restart %d: out while it waits", i)
				}
				if got := w.last.Wake.Sub(w.in.Now); got != wait {
					t.Errorf("restart %d waits %s, want %s", i, got, wait)
				}
				w.run(wait)
			}
			w.settle()
			if r := w.row(0); r.Phase != v1beta1.InstanceReady || r.Incarnation != int64(i)+2 {
				t.Fatalf("restart %d: %v", i, w.summaries())
			}
		}
	})
	t.Run("ten minutes in rotation begin the count anew", func(t *testing.T) {
		w := recreate(t, 1)
		for range 3 {
			w.crash("0/0", "ome-container")
			w.run(5 * time.Minute)
		}
		w.run(10 * time.Minute)
		w.crash("0/0", "ome-container")
		w.settle()
		w.rows("0 Ready a incarnation 5")
	})
	t.Run("also when the pod is gone without a trace", func(t *testing.T) {
		w := recreate(t, 1)
		for range 3 {
			w.crash("0/0", "ome-container")
			w.run(5 * time.Minute)
		}
		w.run(24 * time.Hour)
		w.lose("0/0")
		w.settle()
		w.rows("0 Ready a incarnation 5")
	})
}

func TestCrashLoopRepair(t *testing.T) {
	loop := func(w *world, names ...string) {
		for _, n := range names {
			w.sick[n] = "CrashLoopBackOff"
		}
		w.kubelet()
	}
	for _, policy := range []v1beta1.InstanceRestartPolicy{v1beta1.RestartNone, v1beta1.RestartRecreateInstance} {
		t.Run("under "+string(policy), func(t *testing.T) {
			w := started(t, 2)
			w.in.RestartPolicy = policy
			loop(w, "0/0")
			w.pass()
			w.rows("0 Restarting a>a Drain incarnation 2", "1 Ready a")
			delete(w.sick, "0/0")
			w.kubelet()
			w.settle()
			w.rows("0 Ready a incarnation 2", "1 Ready a")
			w.told(v1beta1.EventRestartTriggered, 1, "CrashLoopBackOff")
		})
	}
	t.Run("a young pod has its grace", func(t *testing.T) {
		w := started(t, 1)
		w.in.StuckGrace = 10 * time.Minute
		loop(w, "0/0")
		w.settle()
		w.rows("0 Ready a")
		w.run(9 * time.Minute)
		w.settle()
		w.rows("0 Restarting a>a Drain incarnation 2")
	})
	t.Run("at most the budget at one time", func(t *testing.T) {
		w := started(t, 4)
		w.in.MaxUnavailable = 2
		loop(w, "0/0", "1/0", "2/0", "3/0")
		w.pass()
		w.rows("0 Restarting a>a Drain incarnation 2", "1 Restarting a>a Drain incarnation 2", "2 Ready a", "3 Ready a")
		w.told(v1beta1.EventRepairHeld, 2, "Budget", "unavailability budget 2 exhausted (would become 3)")
		w.settle()
		w.told(v1beta1.EventRepairHeld, 2)
	})
	t.Run("updates that keep an Instance out use the same budget", func(t *testing.T) {
		w := started(t, 3)
		w.strategy(v1beta1.RecreatePod)
		w.slow["b"], w.in.Partition = true, 2
		w.target("b")
		w.settle()
		w.rows("0 Ready a", "1 Ready a", "2 Updating a>b Drain incarnation 2")
		loop(w, "0/0")
		w.settle()
		w.rows("0 Ready a", "1 Ready a", "2 Updating a>b Drain incarnation 2")
		w.told(v1beta1.EventRepairHeld, 1, "Instance engine-0", "Budget")
	})
	t.Run("a budget that is not set limits nothing", func(t *testing.T) {
		w := started(t, 2)
		w.in.MaxUnavailable = NoBudget
		loop(w, "0/0", "1/0")
		w.pass()
		w.rows("0 Restarting a>a Drain incarnation 2", "1 Restarting a>a Drain incarnation 2")
	})
	t.Run("a budget of zero blocks it, says so once, and names the number to change", func(t *testing.T) {
		w := started(t, 1)
		w.in.MaxUnavailable = 0
		loop(w, "0/0")
		w.run(10 * time.Hour)
		w.rows("0 Ready a")
		w.told(v1beta1.EventRepairHeld, 1, "Instance engine-0", "CrashLoopBackOff", "maxUnavailable: 0", "raise it to 1")
		w.holds(v1beta1.GateBudget, "maxUnavailable: 0 no crash loop is repaired: raise it to 1 or more")
		for _, e := range w.events {
			if e.Reason == v1beta1.EventRepairHeld && !e.Warning {
				t.Error("it is not a warning")
			}
		}
		w.in.MaxUnavailable = 1
		w.settle()
		w.rows("0 Restarting a>a Drain incarnation 2")
	})
	t.Run("before Ready a crash is what starting is like", func(t *testing.T) {
		w := empty(t)
		w.in.Relocations = 0
		w.sick["a"] = "CrashLoopBackOff"
		w.run(30 * time.Second)
		w.rows("0 Creating ->a CreatePods")
		w.told(v1beta1.EventRestartTriggered, 0)
	})
	t.Run("one that comes up by itself during the backoff is left alone", func(t *testing.T) {
		w := started(t, 1)
		loop(w, "0/0")
		w.pass()
		delete(w.sick, "0/0")
		w.kubelet()
		w.settle()
		w.rows("0 Ready a incarnation 2")
		w.run(2 * time.Minute)
		loop(w, "0/0")
		w.settle()
		w.rows("0 Restarting a>a Drain waiting RestartBackoff incarnation 2")
		delete(w.sick, "0/0")
		w.kubelet()
		w.settle()
		w.rows("0 Ready a incarnation 2")
	})
	t.Run("a new revision does not wait for the backoff of the old one's restarts", func(t *testing.T) {
		w := started(t, 1)
		w.in.RestartPolicy = v1beta1.RestartRecreateInstance
		for range 6 {
			w.crash("0/0", "ome-container")
			w.run(6 * time.Minute)
		}
		loop(w, "a")
		w.settle()
		if op := w.row(0).Operation; op == nil || op.Waiting != v1beta1.WaitingRestartBackoff {
			t.Fatalf("%v", w.summaries())
		}
		w.target("b")
		w.settle()
		if r := w.row(0); r.RunningRevision != "svc-engine-b" || r.Phase != v1beta1.InstanceReady {
			t.Errorf("%v", w.summaries())
		}
	})
}
