package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

// exhaust lets revision b fail until it is held, three attempts with the default pace.
func exhaust(w *world) {
	w.t.Helper()
	w.sick["b"] = "ImagePullBackOff"
	w.target("b")
	w.run(time.Hour)
	w.settle()
	w.block("b", "Held 3/3")
}

func TestRetry(t *testing.T) {
	t.Run("an image that cannot be pulled: backoff, attempt, backoff, attempt, held, and released", func(t *testing.T) {
		w := started(t, 2)
		w.floor, w.most = 2, 1
		w.sick["b"] = "ImagePullBackOff"
		w.target("b")
		w.settle()
		w.rows("0 Ready a", "1 Updating a>b Surge")
		w.run(time.Minute)
		w.settle()
		b := w.block("b", "Backoff 1/1")
		if got := b.NextRetryAt.Sub(w.in.Now); got != time.Minute {
			t.Errorf("the second attempt comes in %s", got)
		}
		if b.Reason != "ImagePullBackOff" || !b.FirstFailureAt.Equal(b.LastFailureAt) || !b.LastFailureAt.Time.Equal(w.in.Now) {
			t.Errorf("%+v", b)
		}
		next := *b.NextRetryAt
		w.holds(v1beta1.GateRetryBlock, "svc-engine-b", "ImagePullBackOff", "attempt 2 starts at 2031-05-01T12:03:00Z")
		w.run(30 * time.Second)
		if b := w.block("b", "Backoff 1/1"); !b.NextRetryAt.Equal(&next) {
			t.Errorf("the time of the next attempt moved to %s", b.NextRetryAt)
		}
		w.rows("0 Ready a", "1 Failed a")

		w.run(30 * time.Second)
		w.settle()
		b = w.block("b", "RetryInProgress 2/1")
		if b.NextRetryAt != nil {
			t.Errorf("a next attempt at %s while one runs", b.NextRetryAt)
		}
		w.rows("0 Ready a", "1 Updating a>b Surge")
		w.run(time.Minute)
		w.settle()
		b = w.block("b", "Backoff 2/2")
		if got := b.NextRetryAt.Sub(w.in.Now); got != 2*time.Minute {
			t.Errorf("the third attempt comes in %s", got)
		}
		w.run(2 * time.Minute)
		w.settle()
		w.block("b", "RetryInProgress 3/2")
		w.told(v1beta1.EventRetryHeld, 0)
		w.run(time.Minute)
		w.settle()
		b = w.block("b", "Held 3/3")
		if b.NextRetryAt != nil {
			t.Errorf("a held revision has a next attempt at %s", b.NextRetryAt)
		}
		w.told(v1beta1.EventRetryHeld, 1, "svc-engine-b", "engine", "3 failures")
		w.holds(v1beta1.GateHeld, "failed 3 times", "kubectl ome instance release-held svc -n ns --component=engine --revision=svc-engine-b")
		w.rows("0 Ready a", "1 Failed a")

		w.run(100 * time.Hour)
		w.told(v1beta1.EventRetryHeld, 1)
		w.block("b", "Held 3/3")

		w.in.Release = new("svc-engine-b")
		w.settle()
		w.told(v1beta1.EventRetryBlockReleased, 1)
		w.block("b", "")
		w.rows("0 Ready a", "1 Updating a>b Surge")
		w.run(time.Minute)
		w.settle()
		w.block("b", "Backoff 1/1")
		w.run(time.Hour)
		w.settle()
		w.block("b", "Held 3/3")
		w.told(v1beta1.EventRetryHeld, 2)
	})
	t.Run("without a retry policy the first failure holds", func(t *testing.T) {
		w := started(t, 1)
		w.in.Retry.MaxAttempts = 0
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.block("b", "Held 1/1")
		w.told(v1beta1.EventRetryHeld, 1)
	})
	t.Run("the wait is capped", func(t *testing.T) {
		w := started(t, 1)
		w.in.Retry.MaxAttempts, w.in.Retry.MaxBackoff = 100, 5*time.Minute
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
			w.run(time.Minute)
			w.settle()
			if got := w.in.RetryBlocks[0].NextRetryAt.Sub(w.in.Now); got != want {
				t.Errorf("waits %s, want %s", got, want)
			}
			w.run(want)
			w.settle()
		}
	})
	t.Run("one attempt at a time: the others wait for how it ends", func(t *testing.T) {
		w := started(t, 3)
		w.in.MaxSurge = 3
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.settle()
		w.run(time.Minute)
		w.settle()
		w.run(time.Minute)
		w.settle()
		w.block("b", "RetryInProgress 2/1")
		w.rows("0 Failed a", "1 Failed a", "2 Updating a>b Surge")
		w.holds(v1beta1.GateRetryBlock, "attempt 2 at revision svc-engine-b is under way", "the others wait")
	})
	t.Run("a wave of four failures counts once", func(t *testing.T) {
		w := started(t, 4)
		w.in.MaxSurge, w.floor = 4, 4
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.settle()
		w.rows("0 Updating a>b Surge", "1 Updating a>b Surge", "2 Updating a>b Surge", "3 Updating a>b Surge")
		w.run(time.Minute)
		w.settle()
		w.told(v1beta1.EventInstanceFailed, 4)
		w.block("b", "Backoff 1/1")
	})
	t.Run("a wave whose failures come one after the other counts once", func(t *testing.T) {
		w := started(t, 2)
		w.in.MaxSurge = 2
		w.sick["1/1"], w.slow["b"] = "ErrImagePull", true
		w.target("b")
		w.settle()
		w.run(time.Minute)
		w.settle()
		w.block("b", "Backoff 1/1")
		w.rows("0 Updating a>b Surge", "1 Failed a")
		w.sick["0/1"] = "ErrImagePull"
		w.run(30 * time.Second)
		w.settle()
		w.rows("0 Failed a", "1 Failed a")
		w.block("b", "Backoff 1/1")
	})
	t.Run("an attempt that began in the very second of the failure is of its wave", func(t *testing.T) {
		w := started(t, 2)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(59 * time.Second)
		w.in.MaxSurge = 2
		// Two passes in one second: one opens the second update, the next sees the failure.
		w.in.StuckGrace = 10 * time.Minute
		w.later(time.Second)
		w.pass()
		w.in.StuckGrace = time.Minute
		w.pass()
		w.rows("0 Updating a>b Surge", "1 Failed a")
		w.run(time.Minute)
		w.settle()
		w.told(v1beta1.EventInstanceFailed, 2)
		if b := w.in.RetryBlocks[0]; b.CountedFailures != 1 {
			t.Errorf("%+v", b)
		}
	})
	t.Run("a straggler of the first wave does not spoil the second attempt", func(t *testing.T) {
		w := started(t, 2)
		w.in.MaxSurge, w.in.Relocations = 2, 0
		w.sick["1/1"], w.slow["b"] = "ErrImagePull", true
		w.target("b")
		w.settle()
		w.run(time.Minute)
		w.settle()
		delete(w.sick, "1/1")
		w.run(time.Minute)
		w.settle()
		w.block("b", "RetryInProgress 2/1")
		w.sick["0/1"] = "ErrImagePull"
		w.kubelet()
		w.settle()
		w.rows("0 Failed a", "1 Updating a>b Surge")
		w.block("b", "RetryInProgress 2/1")
	})
	t.Run("failures that are not the revision's own back off and never hold", func(t *testing.T) {
		w := started(t, 1)
		w.in.Relocations = 0
		w.sick["b"] = "CrashLoopBackOff"
		w.target("b")
		w.run(10 * time.Hour)
		w.told(v1beta1.EventRetryHeld, 0)
		if b := w.in.RetryBlocks[0]; b.CountedFailures != 0 || b.AttemptsStarted < 20 || b.State == v1beta1.RetryHeld {
			t.Errorf("%+v", b)
		}
	})
	t.Run("what is not the revision's own between does not use up attempts", func(t *testing.T) {
		w := started(t, 1)
		w.in.Relocations = 0
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.block("b", "Backoff 1/1")
		w.sick["b"] = "CrashLoopBackOff"
		w.run(10 * time.Minute)
		w.settle()
		if b := w.in.RetryBlocks[0]; b.CountedFailures != 1 || b.AttemptsStarted < 3 || b.State == v1beta1.RetryHeld {
			t.Errorf("%+v", b)
		}
	})
	t.Run("success clears the block", func(t *testing.T) {
		w := started(t, 2)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.block("b", "Backoff 1/1")
		delete(w.sick, "b")
		w.lose("1/1")
		w.settle()
		w.run(time.Minute)
		w.settle()
		w.block("b", "")
		w.rows("0 Ready b slot1", "1 Ready b slot1")
		w.holds("")
	})
	t.Run("a new revision starts without the verdict on the last one, which is forgotten", func(t *testing.T) {
		w := started(t, 1)
		w.floor = 1
		exhaust(w)
		w.target("c")
		w.settle()
		w.block("b", "")
		w.block("c", "")
		w.rows("0 Ready c slot1")
		w.sick["b"] = ""
		w.target("b")
		w.settle()
		w.rows("0 Ready b")
	})
	t.Run("a new revision that fails gets all its attempts", func(t *testing.T) {
		w := started(t, 1)
		exhaust(w)
		w.sick["c"] = "ErrImagePull"
		w.target("c")
		w.run(time.Minute)
		w.settle()
		w.block("c", "Backoff 1/1")
	})
	t.Run("raising the limits later does not release", func(t *testing.T) {
		w := started(t, 1)
		exhaust(w)
		w.in.Retry.MaxAttempts, w.in.ReadyTimeout = 100, 10*time.Hour
		w.run(time.Hour)
		w.block("b", "Held 3/3")
		w.rows("0 Failed a")
	})
	t.Run("another strategy does not reset the count", func(t *testing.T) {
		w := started(t, 1)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.strategy(v1beta1.RecreatePod)
		w.settle()
		w.block("b", "Backoff 1/1")
		w.run(time.Minute)
		w.settle()
		w.block("b", "RetryInProgress 2/1")
		if op := w.row(0).Operation; op == nil || op.Strategy != v1beta1.RecreatePod {
			t.Errorf("%+v", op)
		}
	})
	t.Run("a new index does not get around a held revision", func(t *testing.T) {
		w := started(t, 1)
		exhaust(w)
		w.all = nil
		w.in.Desired = 3
		w.settle()
		w.rows("0 Failed a", "1 Ready a", "2 Ready a")
		w.never("Create 1/0 b")
		w.never("Create 2/0 b")
	})
	t.Run("nor does a new index when nothing else runs", func(t *testing.T) {
		w := empty(t)
		w.sick["a"] = "ErrImagePull"
		w.run(time.Hour)
		w.settle()
		w.block("a", "Held 3/3")
		w.all = nil
		w.in.Desired = 3
		w.run(time.Hour)
		w.allCalls()
		w.holds(v1beta1.GateHeld)
	})
	t.Run("nor does a rebuilt Instance, whatever goes and comes", func(t *testing.T) {
		w := started(t, 2)
		exhaust(w)
		w.all = nil
		w.lose("0/0")
		w.settle()
		w.in.Desired = 1
		w.settle()
		w.in.Desired = 4
		w.settle()
		w.run(time.Hour)
		for i := range int32(4) {
			w.never("Create " + string('0'+i) + "/0 b")
			w.never("Create " + string('0'+i) + "/1 b")
		}
		if w.serving() < 3 {
			t.Errorf("%v", w.summaries())
		}
	})
	t.Run("an attempt that has no pod yet gets none once its revision is held", func(t *testing.T) {
		w := started(t, 2)
		w.in.MaxSurge, w.in.Retry.MaxAttempts = 2, 1
		w.refuse = func(p *corev1.Pod) *Refusal {
			if p.Name == "svc-engine-0-default-1" {
				return &Refusal{Kind: RefusedQuota, Text: "full"}
			}
			return nil
		}
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.block("b", "Held 1/1")
		w.rows("0 Failed a", "1 Failed a")
		w.refuse, w.all = nil, nil
		w.run(time.Hour)
		w.allCalls()
		if w.serving() != 2 {
			t.Errorf("%v", w.podNames())
		}
	})
	t.Run("an attempt that is scaled down gives its turn to another", func(t *testing.T) {
		w := started(t, 2)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		w.run(time.Minute)
		w.settle()
		w.block("b", "RetryInProgress 2/1")
		w.rows("0 Ready a", "1 Updating a>b Surge")
		delete(w.sick, "b")
		w.in.Desired = 1
		w.settle()
		w.rows("0 Ready b slot1")
		w.block("b", "")
	})
	t.Run("a revision whose Instances all came up late keeps no block", func(t *testing.T) {
		w := started(t, 1)
		w.in.RestartPolicy = v1beta1.RestartRecreateInstance
		w.slow["a"], w.in.Retry.InitialBackoff = true, 100*time.Hour
		w.lose("0/0")
		w.run(30 * time.Minute)
		w.settle()
		w.block("a", "Backoff 1/0")
		delete(w.slow, "a")
		w.run(time.Minute)
		w.rows("0 Ready a incarnation 2")
		w.block("a", "")
	})
}

// The same failures under each strategy end at the same verdict, and the old Instances
// that a strategy keeps serve on.
func TestRetryOfEachStrategy(t *testing.T) {
	for _, s := range []v1beta1.UpdateStrategyType{v1beta1.SurgeThenDrain, v1beta1.RecreatePod, v1beta1.InPlaceIfPossible, v1beta1.InPlaceOnly} {
		t.Run(string(s), func(t *testing.T) {
			w := started(t, 3)
			w.strategy(s)
			w.floor = 2
			if s == v1beta1.SurgeThenDrain {
				w.floor = 3
			}
			exhaust(w)
			w.told(v1beta1.EventRetryHeld, 1)
			w.holds(v1beta1.GateHeld)
			w.in.Release = new("b")
			delete(w.sick, "b")
			w.run(time.Minute)
			w.settle()
			for _, r := range w.in.Rows {
				if r.Phase != v1beta1.InstanceReady || r.RunningRevision != "svc-engine-b" {
					t.Fatalf("%v", w.summaries())
				}
			}
			w.block("b", "")
			for _, p := range w.pods {
				if p.Labels[v1beta1.RevisionHashLabel] != "b" || p.Spec.Containers[0].Image != "b" || !w.is(p, corev1.PodReady) {
					t.Errorf("pod %s %v", short(p), p.Labels)
				}
			}
		})
	}
}
