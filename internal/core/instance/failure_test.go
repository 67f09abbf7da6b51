package instance

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

// Each cause: when it fails an attempt, what the row remembers, and whether it is the
// revision's own fault.
func TestFailureCauses(t *testing.T) {
	stuckFor := func(reason string) func(*world) {
		return func(w *world) { w.sick["b"] = reason }
	}
	cases := []struct {
		name  string
		cause func(*world)
		// after is when the attempt fails, 0 for never.
		after   time.Duration
		reason  string
		message string
		counted bool
	}{
		{"an image that cannot be pulled", stuckFor("ImagePullBackOff"), time.Minute, "ImagePullBackOff", "because of ImagePullBackOff", true},
		{"an image whose pull failed", stuckFor("ErrImagePull"), time.Minute, "ErrImagePull", "", true},
		{"an image name that is none", stuckFor("InvalidImageName"), time.Minute, "InvalidImageName", "", true},
		{"a configuration that is not there", stuckFor("CreateContainerConfigError"), time.Minute, "CreateContainerConfigError", "", true},
		{"a crash loop", stuckFor("CrashLoopBackOff"), time.Minute, "CrashLoopBackOff", "", false},
		{"a container that cannot be made", stuckFor("CreateContainerError"), time.Minute, "CreateContainerError", "", false},
		{"a container that cannot be run", stuckFor("RunContainerError"), time.Minute, "RunContainerError", "", false},
		{"a reason that passes by itself", stuckFor("ContainerCreating"), 30 * time.Minute, "ContainersNotReady", "", false},
		{"containers that never become ready", func(w *world) { w.slow["b"] = true }, 30 * time.Minute, "ContainersNotReady", "did not serve within 30m0s", false},
		{"no room", func(w *world) { w.noRoom = "Insufficient nvidia.com/gpu" }, 15 * time.Minute, "Unschedulable", "Insufficient nvidia.com/gpu", false},
		{"a spec that the API server never takes", func(w *world) {
			w.refuse = func(*corev1.Pod) *Refusal {
				return &Refusal{Kind: RefusedInvalid, Text: "spec.containers[0].image: Required"}
			}
		}, time.Nanosecond, "InvalidPodSpec", "spec.containers[0].image: Required", true},
		{"a namespace on its way out", func(w *world) {
			w.refuse = func(*corev1.Pod) *Refusal {
				return &Refusal{Kind: RefusedTerminating, Text: "namespace is being terminated"}
			}
		}, time.Nanosecond, "NamespaceTerminating", "being terminated", false},
		{"a webhook that refuses, until the deadline", func(w *world) {
			w.refuse = func(*corev1.Pod) *Refusal { return &Refusal{Kind: RefusedOther, Text: "denied"} }
		}, 30 * time.Minute, "DeadlineExceeded", "", false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			w := started(t, 1)
			w.in.Relocations = 0
			tc.cause(w)
			w.target("b")
			w.settle()
			if tc.after > time.Second {
				w.run(tc.after - time.Second)
				w.told(v1beta1.EventInstanceFailed, 0)
				w.run(time.Second)
				w.settle()
			}
			w.told(v1beta1.EventInstanceFailed, 1, "Instance engine-0", "Update of revision svc-engine-b", tc.reason)
			w.rows("0 Failed a")
			f := w.row(0).LastFailure
			if f == nil || f.Reason != tc.reason || !strings.Contains(f.Message, tc.message) || f.PodName != "svc-engine-0-default-1" || !f.Time.Time.Equal(w.in.Now) {
				t.Errorf("the row remembers %+v", f)
			}
			counted := "Backoff 1/0"
			if tc.counted {
				counted = "Backoff 1/1"
			}
			w.block("b", counted)
			if w.serving() != 1 {
				t.Error("the old pod does not serve on")
			}
		})
	}
}

func TestFailure(t *testing.T) {
	t.Run("a grace that is not set never ends", func(t *testing.T) {
		w := started(t, 1)
		w.in.StuckGrace, w.in.UnschedulableGrace, w.in.ReadyTimeout = 0, 0, 0
		w.sick["b"] = "ImagePullBackOff"
		w.target("b")
		w.run(100 * time.Hour)
		w.told(v1beta1.EventInstanceFailed, 0)
		w.holds(v1beta1.GateBudget, "cannot start: ImagePullBackOff in container ome-container")
	})
	t.Run("an init container counts as well", func(t *testing.T) {
		w := started(t, 1)
		w.slow["b"] = true
		w.target("b")
		w.settle()
		w.change("0/1", func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}}}
		})
		w.run(time.Minute)
		w.settle()
		f := w.row(0).LastFailure
		if f == nil || f.ContainerName != "fetch" || f.Reason != "ErrImagePull" || f.ExitCode == nil || *f.ExitCode != 3 {
			t.Errorf("the row remembers %+v", f)
		}
	})
	t.Run("the process never ran: no exit code", func(t *testing.T) {
		w := started(t, 1)
		w.sick["b"] = "InvalidImageName"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		if f := w.row(0).LastFailure; f == nil || f.ExitCode != nil || f.ContainerName != "ome-container" {
			t.Errorf("the row remembers %+v", f)
		}
	})
	t.Run("ready containers that never pass the gates say so", func(t *testing.T) {
		w := started(t, 1)
		w.in.Relocations = 0
		w.target("b")
		w.pass()
		// The kubelet keeps PodReady False: another readiness gate of the template.
		hold := func() {
			w.kubelet()
			w.change("0/1", func(p *corev1.Pod) { w.condition(p, corev1.PodReady, false) })
			w.in.Routed[w.pod("0/1").UID] = false
		}
		hold()
		w.pass()
		hold()
		// Its gate was refused as well, so that it does not serve.
		w.change("0/1", func(p *corev1.Pod) { w.condition(p, v1beta1.ServingReadinessGate, false) })
		w.later(30 * time.Minute)
		w.pass()
		if f := w.row(0).LastFailure; f == nil || f.Reason != "ReadinessGateNotSatisfied" {
			t.Errorf("the row remembers %+v", f)
		}
	})
	t.Run("what failed is remembered after the recovery, and a clean roll does not overwrite it", func(t *testing.T) {
		w := started(t, 1)
		w.sick["b"] = "ImagePullBackOff"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		delete(w.sick, "b")
		w.target("c")
		w.settle()
		w.rows("0 Ready c slot1")
		if f := w.row(0).LastFailure; f == nil || f.Reason != "ImagePullBackOff" {
			t.Errorf("the row remembers %+v", f)
		}
	})
	t.Run("a pod that ended before it served is made again until the deadline, one warning each", func(t *testing.T) {
		w := empty(t)
		w.slow["a"] = true
		w.settle()
		for range 3 {
			w.change("0/0", func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" })
			w.settle()
			w.wantPods("0/0 a")
		}
		w.told(v1beta1.EventTerminalPodRecycled, 3, "svc-engine-0-default-0", "Evicted")
		w.told(v1beta1.EventInstanceFailed, 0)
		w.rows("0 Creating ->a CreatePods")
	})
	t.Run("a long message is cut", func(t *testing.T) {
		w := started(t, 1)
		w.refuse = func(*corev1.Pod) *Refusal { return &Refusal{Kind: RefusedInvalid, Text: strings.Repeat("é", 2000)} }
		w.target("b")
		w.settle()
		if got := len(w.row(0).LastFailure.Message); got > 256 {
			t.Errorf("%d bytes", got)
		}
	})
	t.Run("a pause keeps the graces counting, and what they bring comes with the resume", func(t *testing.T) {
		w := started(t, 1)
		w.sick["b"] = "ImagePullBackOff"
		w.target("b")
		w.run(30 * time.Second)
		w.in.Paused = true
		w.run(time.Hour)
		w.rows("0 Updating a>b Surge")
		w.told(v1beta1.EventInstanceFailed, 0)
		w.in.Paused = false
		w.settle()
		w.rows("0 Failed a")
		w.told(v1beta1.EventInstanceFailed, 1)
	})
}

// What becomes of the row.
func TestDisposition(t *testing.T) {
	t.Run("a failed creation is Failed without an operation and tries again", func(t *testing.T) {
		w := empty(t)
		w.sick["a"] = "ImagePullBackOff"
		w.run(time.Minute)
		w.settle()
		w.rows("0 Failed -")
		w.block("a", "Backoff 1/1")
		w.run(time.Minute)
		w.settle()
		w.rows("0 Creating ->a CreatePods")
		w.block("a", "RetryInProgress 2/1")
		delete(w.sick, "a")
		w.settle()
		w.rows("0 Ready a")
		w.block("a", "")
	})
	t.Run("a failed update of one pod is Failed without an operation, the old pod serves, and it tries again", func(t *testing.T) {
		w := started(t, 1)
		w.floor = 1
		w.sick["b"] = "ImagePullBackOff"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.rows("0 Failed a")
		w.wantPods("0/0 a", "0/1 b")
		delete(w.sick, "b")
		w.in.Target = w.in.Revisions["svc-engine-b"]
		w.change("0/1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }) // it does not come up late
		w.run(time.Minute)
		w.settle()
		w.rows("0 Ready b slot1")
	})
	t.Run("a pod that comes up after all is taken", func(t *testing.T) {
		w := started(t, 1)
		w.floor = 1
		w.slow["b"] = true
		w.in.Relocations = 0
		w.in.Retry.InitialBackoff = 100 * time.Hour
		w.target("b")
		w.run(30 * time.Minute)
		w.settle()
		w.rows("0 Failed a")
		delete(w.slow, "b")
		w.later(time.Second)
		w.settle()
		w.rows("0 Ready b slot1")
		w.block("b", "")
		w.never("Delete 0/1")
	})
	t.Run("a creation whose pod comes up after all is taken", func(t *testing.T) {
		w := empty(t)
		w.slow["a"], w.in.Relocations, w.in.Retry.InitialBackoff = true, 0, 100*time.Hour
		w.run(30 * time.Minute)
		w.settle()
		w.rows("0 Failed -")
		delete(w.slow, "a")
		w.later(time.Second)
		w.settle()
		w.rows("0 Ready a")
		w.block("a", "")
	})
	t.Run("a rebuilt pod that comes up after all is taken", func(t *testing.T) {
		w := started(t, 1)
		w.strategy(v1beta1.RecreatePod)
		w.slow["b"], w.in.Relocations, w.in.Retry.InitialBackoff = true, 0, 100*time.Hour
		w.target("b")
		w.run(30 * time.Minute)
		w.settle()
		w.rows("0 Failed a incarnation 2")
		delete(w.slow, "b")
		w.later(time.Second)
		w.settle()
		w.rows("0 Ready b incarnation 2")
		w.block("b", "")
	})
	t.Run("a failed restart keeps its operation and its pods", func(t *testing.T) {
		w := started(t, 1)
		w.in.RestartPolicy = v1beta1.RestartRecreateInstance
		w.slow["a"], w.in.Relocations, w.in.Retry.InitialBackoff = true, 0, 100*time.Hour
		w.lose("0/0")
		w.run(30 * time.Minute)
		w.settle()
		w.rows("0 Failed a>a Drain incarnation 2")
		w.clock(0, "parked")
		w.wantPods("0/0 a")
		w.told(v1beta1.EventInstanceFailed, 1, "Restart of revision svc-engine-a")
		w.told(v1beta1.EventAutoMigrationTriggered, 0)
		delete(w.slow, "a")
		w.settle()
		w.rows("0 Ready a incarnation 2")
		w.told(v1beta1.EventRestartCompleted, 1)
		w.block("a", "")
	})
	t.Run("a failed restart tries again after the backoff", func(t *testing.T) {
		w := started(t, 1)
		w.in.RestartPolicy, w.in.ReadyTimeout = v1beta1.RestartRecreateInstance, 5*time.Minute
		w.slow["a"], w.in.Relocations = true, 0
		w.lose("0/0")
		w.run(5 * time.Minute)
		w.settle()
		w.rows("0 Failed a>a Drain incarnation 2")
		first := w.pod("0/0").UID
		w.run(time.Minute)
		w.settle()
		w.rows("0 Restarting a>a Drain incarnation 3")
		if w.pod("0/0").UID == first {
			t.Error("it is the same pod")
		}
	})
	t.Run("a failed restart goes to a new revision at once", func(t *testing.T) {
		w := started(t, 1)
		w.in.RestartPolicy, w.slow["a"], w.in.Retry.InitialBackoff = v1beta1.RestartRecreateInstance, true, 100*time.Hour
		w.lose("0/0")
		w.run(30 * time.Minute)
		w.settle()
		w.target("b")
		w.settle()
		if r := w.row(0); r.Phase != v1beta1.InstanceReady || r.RunningRevision != "svc-engine-b" {
			t.Errorf("%v", w.summaries())
		}
	})
	t.Run("a Failed Instance that lost its serving pod gets it again while its target is held", func(t *testing.T) {
		w := started(t, 1)
		w.in.Retry.MaxAttempts = 1
		w.sick["b"] = "ImagePullBackOff"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.block("b", "Held 1/1")
		w.lose("0/0")
		w.lose("0/1")
		w.settle()
		w.rows("0 Ready a")
		w.holds(v1beta1.GateHeld)
	})
	t.Run("a Failed Instance that the partition keeps is Ready on what it runs", func(t *testing.T) {
		w := started(t, 2)
		w.in.Partition = 1
		w.sick["b"] = "ImagePullBackOff"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.rows("0 Ready a", "1 Failed a")
		w.in.Partition = 2
		w.settle()
		w.rows("0 Ready a", "1 Ready a")
		w.wantPods("0/0 a", "1/0 a")
	})
}

// A lost deadline is a lost pass: with nothing else going on every wait has its wake.
func TestEveryWaitWakes(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*world)
		want time.Duration
	}{
		{"a deadline", func(w *world) { w.slow["b"] = true }, 30 * time.Minute},
		{"a stuck pod's grace", func(w *world) { w.sick["b"] = "ErrImagePull" }, time.Minute},
		{"no room", func(w *world) { w.noRoom = "full" }, 15 * time.Minute},
		{"minReadySeconds", func(w *world) { w.in.MinReady = 40 * time.Second }, 40 * time.Second},
		{"a Terminating pod's grace, for the next surge", func(w *world) {
			w.in.Desired = 2
			w.settle()
			w.stays["1/0"] = true
		}, grace},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := started(t, 1)
			tc.set(w)
			w.target("b")
			w.settle()
			if got := w.last.Wake.Sub(w.in.Now); got != tc.want {
				t.Errorf("wakes in %s, want %s: %v", got, tc.want, w.summaries())
			}
		})
	}
	t.Run("the next attempt", func(t *testing.T) {
		w := started(t, 1)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		if got := w.last.Wake.Sub(w.in.Now); got != time.Minute {
			t.Errorf("wakes in %s", got)
		}
	})
	t.Run("a grace that ran out wakes nobody", func(t *testing.T) {
		w := started(t, 1)
		w.stays["0/0"] = true
		w.target("b")
		w.settle()
		w.run(time.Minute)
		w.settle()
		if !w.last.Wake.IsZero() {
			t.Errorf("wakes at %s", w.last.Wake)
		}
	})
}
