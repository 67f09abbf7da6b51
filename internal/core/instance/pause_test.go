package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

// each runs a case under a pause and under a freeze.
func each(t *testing.T, name string, do func(t *testing.T, pause func(*world), frozen bool)) {
	t.Helper()
	t.Run(name+" (pause)", func(t *testing.T) { do(t, func(w *world) { w.in.Paused = true }, false) })
	t.Run(name+" (freeze)", func(t *testing.T) { do(t, func(w *world) { w.in.Paused, w.in.Frozen = true, true }, true) })
}

func resume(w *world) { w.in.Paused, w.in.Frozen = false, false }

func TestPause(t *testing.T) {
	each(t, "no update opens", func(t *testing.T, pause func(*world), _ bool) {
		for _, s := range strategies {
			w := started(t, 2)
			w.strategy(s)
			pause(w)
			w.target("b")
			w.run(time.Hour)
			w.rows("0 Ready a", "1 Ready a")
			w.allCalls()
			resume(w)
			w.settle()
			if w.last.Counts.Updated != 2 {
				t.Errorf("%s: %v", s, w.summaries())
			}
		}
	})
	each(t, "no creation opens", func(t *testing.T, pause func(*world), _ bool) {
		w := started(t, 1)
		pause(w)
		w.in.Desired = 3
		w.run(time.Hour)
		w.allCalls()
	})
	each(t, "no attempt opens after a failure", func(t *testing.T, pause func(*world), _ bool) {
		w := started(t, 1)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(time.Minute)
		w.settle()
		pause(w)
		w.all = nil
		w.run(time.Hour)
		w.rows("0 Failed a")
		w.allCalls()
		if w.serving() != 1 {
			t.Error("the old pod does not serve on")
		}
	})
	each(t, "a surge stops before its drain, both pods serve", func(t *testing.T, pause func(*world), _ bool) {
		w := started(t, 1)
		w.target("b")
		w.pass()
		pause(w)
		w.run(time.Hour)
		w.rows("0 Updating a>b Surge waiting Paused")
		w.wantPods("0/0 a", "0/1 b")
		w.never("Unserve")
		for _, p := range w.pods {
			if !w.is(p, corev1.PodReady) {
				t.Errorf("pod %s does not serve", short(p))
			}
		}
		resume(w)
		w.settle()
		w.rows("0 Ready b slot1")
	})
	each(t, "a surge whose old pod left rotation already ends", func(t *testing.T, pause func(*world), _ bool) {
		w := started(t, 1)
		w.target("b")
		for w.row(0).Operation == nil || w.row(0).Operation.Step != v1beta1.StepSurgeDrain {
			w.pass()
			w.kubelet()
		}
		pause(w)
		w.settle()
		w.rows("0 Ready b slot1")
	})
	each(t, "updates that took capacity out finish", func(t *testing.T, pause func(*world), _ bool) {
		for _, s := range []v1beta1.UpdateStrategyType{v1beta1.RecreatePod, v1beta1.InPlaceIfPossible, v1beta1.InPlaceOnly} {
			w := started(t, 2)
			w.strategy(s)
			w.target("b")
			w.pass()
			pause(w)
			w.settle()
			if r := w.row(1); r.Phase != v1beta1.InstanceReady || r.RunningRevision != "svc-engine-b" || w.row(0).RunningRevision != "svc-engine-a" {
				t.Errorf("%s: %v", s, w.summaries())
			}
			if w.serving() != 2 {
				t.Errorf("%s: %d serve", s, w.serving())
			}
		}
	})
	each(t, "creations under way finish", func(t *testing.T, pause func(*world), _ bool) {
		w := empty(t)
		w.pass()
		pause(w)
		w.settle()
		w.rows("0 Ready a")
	})
	each(t, "a restart that the policy asks for", func(t *testing.T, pause func(*world), frozen bool) {
		w := started(t, 1)
		w.in.RestartPolicy = v1beta1.RestartRecreateInstance
		w.target("b")
		pause(w)
		w.crash("0/0", "ome-container")
		w.settle()
		if frozen {
			w.rows("0 Ready a")
			w.allCalls()
			resume(w)
			w.target("a")
			w.settle()
		}
		w.rows("0 Ready a incarnation 2")
	})
	each(t, "a crash loop's repair", func(t *testing.T, pause func(*world), frozen bool) {
		w := started(t, 1)
		pause(w)
		w.sick["0/0"] = "CrashLoopBackOff"
		w.kubelet()
		w.pass()
		if frozen {
			w.rows("0 Ready a")
			w.calls()
			return
		}
		w.rows("0 Restarting a>a Drain incarnation 2")
		delete(w.sick, "0/0")
		w.kubelet()
		w.settle()
		w.rows("0 Ready a incarnation 2")
	})
	each(t, "a restart under way finishes", func(t *testing.T, pause func(*world), _ bool) {
		w := started(t, 1)
		w.in.RestartPolicy = v1beta1.RestartRecreateInstance
		w.crash("0/0", "ome-container")
		w.pass()
		pause(w)
		w.settle()
		w.rows("0 Ready a incarnation 2")
	})
	each(t, "a lost pod under None", func(t *testing.T, pause func(*world), frozen bool) {
		w := started(t, 1)
		w.target("b")
		pause(w)
		w.lose("0/0")
		w.pass()
		if frozen {
			w.rows("0 Pending a")
			w.run(time.Hour)
			w.rows("0 Pending a")
			w.allCalls()
			return
		}
		w.settle()
		w.rows("0 Ready a")
	})
	each(t, "scale-down and teardown go on", func(t *testing.T, pause func(*world), _ bool) {
		w := started(t, 3)
		pause(w)
		w.in.Desired = 1
		w.settle()
		w.rows("0 Ready a")
		w.in.Desired = 0
		w.settle()
		w.rows()
	})
	each(t, "clocks are parked", func(t *testing.T, pause func(*world), _ bool) {
		w := started(t, 1)
		w.strategy(v1beta1.RecreatePod)
		w.slow["b"] = true
		w.target("b")
		w.settle()
		pause(w)
		w.run(100 * time.Hour)
		w.rows("0 Updating a>b Drain incarnation 2")
		w.clock(0, "parked")
	})
	each(t, "graces go on counting and act at the resume", func(t *testing.T, pause func(*world), _ bool) {
		w := started(t, 1)
		w.noRoom = "full"
		w.target("b")
		w.settle()
		pause(w)
		w.run(15 * time.Minute)
		w.told(v1beta1.EventInstanceFailed, 0)
		resume(w)
		w.settle()
		w.told(v1beta1.EventInstanceFailed, 1, "Unschedulable")
	})
	each(t, "Ready without a pod is told truthfully", func(t *testing.T, pause func(*world), _ bool) {
		w := started(t, 2)
		pause(w)
		w.refuse = func(*corev1.Pod) *Refusal { return &Refusal{Kind: RefusedQuota, Text: "full"} }
		w.lose("1/0")
		w.pass()
		if r := w.row(1); r.Phase == v1beta1.InstanceReady || r.ServingPodCount != 0 {
			t.Errorf("%v", w.summaries())
		}
		if c := w.last.Counts; c.Serving != 1 || c.Ready != 1 {
			t.Errorf("%+v", c)
		}
	})
	each(t, "a revert in a pause moves nothing until the resume", func(t *testing.T, pause func(*world), _ bool) {
		w := started(t, 1)
		w.target("b")
		w.pass()
		pause(w)
		w.settle()
		w.all = nil
		w.target("a")
		w.run(time.Hour)
		w.allCalls()
		resume(w)
		w.settle()
		w.rows("0 Ready a")
		w.wantPods("0/0 a")
	})
}
