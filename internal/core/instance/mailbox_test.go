package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

func TestRelease(t *testing.T) {
	for _, value := range []string{"svc-engine-b", "b"} {
		t.Run("a held revision, named "+value+", tries again with all its attempts", func(t *testing.T) {
			w := started(t, 1)
			exhaust(w)
			w.in.Release = new(value)
			w.settle()
			w.told(v1beta1.EventRetryBlockReleased, 1, "engine", "svc-engine-b")
			w.rows("0 Updating a>b Surge")
			w.run(time.Minute)
			w.settle()
			w.block("b", "Backoff 1/1")
		})
	}
	t.Run("a block in another state is left, and the answer names the state", func(t *testing.T) {
		w := started(t, 1)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.in.Release = new("b")
		w.settle()
		w.told(v1beta1.EventRetryBlockReleaseSkipped, 1, "Backoff")
		w.block("b", "Backoff 1/1")
		if !w.events[len(w.events)-1].Warning {
			t.Error("it is not a warning")
		}
		w.run(time.Minute)
		w.settle()
		w.in.Release = new("b")
		w.settle()
		w.told(v1beta1.EventRetryBlockReleaseSkipped, 2, "RetryInProgress")
	})
	for _, value := range []string{"svc-engine-c", "", "*", "svc-engine-bb"} {
		t.Run("no block of "+value, func(t *testing.T) {
			w := started(t, 1)
			exhaust(w)
			w.in.Release = new(value)
			w.pass()
			w.told(v1beta1.EventRetryBlockReleaseSkipped, 1, "no retry block")
			w.block("b", "Held 3/3")
			if got := w.last.Consumed[v1beta1.ReleaseHeldRevisionAnnotation]; got != value || len(w.last.Consumed) != 1 {
				t.Errorf("consumed %v", w.last.Consumed)
			}
		})
	}
	t.Run("a pause answers it too, and what it frees waits for the resume", func(t *testing.T) {
		w := started(t, 1)
		exhaust(w)
		w.in.Paused = true
		w.in.Release = new("b")
		w.settle()
		w.told(v1beta1.EventRetryBlockReleased, 1)
		w.block("b", "")
		w.rows("0 Failed a")
		w.in.Paused = false
		w.settle()
		w.rows("0 Updating a>b Surge")
	})
	t.Run("a value that comes twice changes nothing twice", func(t *testing.T) {
		w := started(t, 1)
		exhaust(w)
		w.in.Release = new("b")
		w.settle()
		rows := w.summaries()
		w.in.Release = new("b")
		w.settle()
		w.told(v1beta1.EventRetryBlockReleased, 1)
		w.told(v1beta1.EventRetryBlockReleaseSkipped, 1)
		w.rows(rows...)
	})
}

func TestReset(t *testing.T) {
	// failed is a component of one Instance that serves and one whose restart failed.
	failed := func(t *testing.T) *world {
		w := started(t, 2)
		w.in.RestartPolicy, w.in.Retry.InitialBackoff, w.in.ReadyTimeout = v1beta1.RestartRecreateInstance, time.Hour, 5*time.Minute
		w.slow["1/0"] = true
		w.lose("1/0")
		w.run(5 * time.Minute)
		w.settle()
		w.rows("0 Ready a", "1 Failed a>a Drain incarnation 2")
		w.in.ReadyTimeout = 30 * time.Minute
		return w
	}
	for _, value := range []string{"all", "1"} {
		t.Run("reset "+value+": the kept operation goes, and the rebuild waits for the backoff", func(t *testing.T) {
			w := failed(t)
			old := w.pod("1/0").UID
			w.in.Reset = new(value)
			w.settle()
			w.told(v1beta1.EventInstancesReset, 1, "engine", "1")
			w.told(v1beta1.EventInstancesResetSkipped, 0)
			w.rows("0 Ready a", "1 Failed a incarnation 2")
			w.block("a", "Backoff 1/0")
			delete(w.slow, "1/0")
			w.change("1/0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
			w.run(time.Hour)
			w.settle()
			w.rows("0 Ready a", "1 Ready a incarnation 2")
			if w.pod("1/0").UID == old {
				t.Error("the old pod is still there")
			}
		})
	}
	t.Run("the rebuild is at the target revision", func(t *testing.T) {
		w := failed(t)
		w.in.Partition = 0
		w.in.Reset = new("1")
		w.target("b")
		w.settle()
		w.rows("0 Ready b slot1", "1 Ready b slot1 incarnation 2")
	})
	t.Run("the rebuild waits for a held revision", func(t *testing.T) {
		w := started(t, 1)
		exhaust(w)
		w.in.Reset = new("all")
		w.settle()
		w.rows("0 Failed a")
		w.holds(v1beta1.GateHeld)
	})
	t.Run("the rebuild waits for a pause", func(t *testing.T) {
		w := failed(t)
		w.in.RetryBlocks = nil
		w.in.Paused = true
		w.in.Reset = new("1")
		w.settle()
		w.rows("0 Ready a", "1 Failed a incarnation 2")
		delete(w.slow, "1/0")
		w.in.Paused = false
		w.settle()
		w.rows("0 Ready a", "1 Ready a incarnation 2")
	})
	for _, tc := range []struct {
		name, value, want string
		set               func(*world)
	}{
		{"an Instance that is Ready", "0", "0 (still serving)", nil},
		{"an Instance that serves in spite of its failure", "1", "1 (still serving)", func(w *world) {
			w.sick["b"] = "ErrImagePull"
			w.target("b")
			w.run(time.Minute)
			w.settle()
		}},
		{"an Instance that is Ready and whose pod does not serve", "0", "0 (nothing to reset)", func(w *world) {
			w.change("0/0", func(p *corev1.Pod) { w.condition(p, corev1.ContainersReady, false) })
		}},
		{"an Instance that an update owns", "1", "1 (owned by Update)", func(w *world) {
			w.slow["b"] = true
			w.target("b")
			w.settle()
		}},
		{"an Instance that is leaving", "1", "1 (owned by Delete)", func(w *world) {
			w.stays["1/0"] = true
			w.in.Desired = 1
			w.settle()
		}},
		{"an Instance that is being made", "2", "2 (Phase=Creating)", func(w *world) {
			w.slow["a"] = true
			w.in.Desired = 3
			w.pass()
			w.pass()
		}},
		{"an Instance that restarts", "1", "1 (Phase=Restarting)", func(w *world) {
			w.in.RestartPolicy, w.slow["1/0"] = v1beta1.RestartRecreateInstance, true
			w.lose("1/0")
			w.pass()
		}},
		{"an Instance that is not there", "7", "7 (no such instance)", nil},
		{"several", "7,0", "7 (no such instance), 0 (still serving)", nil},
		{"all, and none failed", "all", "nothing to reset", nil},
	} {
		t.Run("left alone: "+tc.name, func(t *testing.T) {
			w := started(t, 2)
			if tc.set != nil {
				tc.set(w)
			}
			w.in.Reset = new(tc.value)
			w.pass()
			w.told(v1beta1.EventInstancesResetSkipped, 1, tc.want)
			w.told(v1beta1.EventInstancesReset, 0)
			if got := w.last.Consumed[v1beta1.ResetInstancesAnnotation]; got != tc.value {
				t.Errorf("consumed %v", w.last.Consumed)
			}
		})
	}
	for _, value := range []string{"", "ALL", "All", "01", "-1", "1,1", "1, 2", "1,", "+1", "4294967296", "1-3"} {
		t.Run("no value that means anything: "+value, func(t *testing.T) {
			w := failed(t)
			w.in.Reset = new(value)
			w.pass()
			w.told(v1beta1.EventInstancesResetRejected, 1, "engine", "0,3")
			w.told(v1beta1.EventInstancesReset, 0)
			w.rows("0 Ready a", "1 Failed a>a Drain incarnation 2")
			if got, ok := w.last.Consumed[v1beta1.ResetInstancesAnnotation]; got != value || !ok {
				t.Errorf("consumed %v", w.last.Consumed)
			}
		})
	}
}
