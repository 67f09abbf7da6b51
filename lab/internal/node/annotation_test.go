package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/lab/internal/stub"
)

func ask(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{stub.AnnotationBehaviour: text} }
}

func TestAPodThatIsAskedToFail(t *testing.T) {
	up := func(t *testing.T) *world {
		w := newWorld(t, pod(image("v1-pull0s-start1s")))
		w.step(time.Minute)
		w.want("Running ready main(running x0)")
		return w
	}
	t.Run("crash loop until it may run", func(t *testing.T) {
		w := up(t)
		w.edit(ask("crash-exitcode3"))
		w.step(time.Second)
		w.want("Running ContainersNotReady main(CrashLoopBackOff x1)")
		if last := w.m.pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 3 {
			t.Errorf("last state %+v, want exit code 3", last)
		}
		w.step(10 * time.Second)
		w.want("Running ContainersNotReady main(CrashLoopBackOff x2)")
		w.edit(ask(""))
		w.step(20 * time.Second)
		w.want("Running ready main(running x3)")
	})
	t.Run("crash once", func(t *testing.T) {
		w := up(t)
		w.edit(ask("crash2s-times1"))
		w.want("Running ready main(running x0)")
		w.step(3 * time.Second)
		w.want("Running ready main(running x1)")
		w.step(time.Hour)
		w.want("Running ready main(running x1)")
	})
	t.Run("not ready, and ready again", func(t *testing.T) {
		w := up(t)
		w.edit(ask("neverready-err50"))
		w.want("Running ContainersNotReady main(running x0)")
		if w.process.behaviour.ErrorRate != .5 {
			t.Errorf("the server wasn't told: %+v", w.process.behaviour)
		}
		w.edit(ask(""))
		w.want("Running ready main(running x0)")
	})
	t.Run("a start that is cut short", func(t *testing.T) {
		w := newWorld(t, pod(image("v1-pull0s-start30m")))
		w.step(time.Minute)
		w.want("Running ContainersNotReady main(running x0)")
		w.edit(ask("start2s"))
		w.step(time.Second)
		w.want("Running ContainersNotReady main(running x0)")
		w.edit(ask("start2s-err50"))
		w.step(time.Second)
		w.want("Running ready main(running x0)")
		w.edit(ask(""))
		w.step(time.Second)
		w.want("Running ready main(running x0)")
	})
	t.Run("a misspelt word changes nothing and is in the log", func(t *testing.T) {
		w := up(t)
		w.edit(ask("crahs"))
		w.step(time.Minute)
		w.want("Running ready main(running x0)")
		lines, _, _, _ := w.logs.Since(0)
		if len(lines) == 0 || lines[len(lines)-1].Text != `nothing changes: annotation lab.ome.io/behaviour="crahs": "crahs" is unknown to the lab; lab/README.md lists the words it reads` {
			t.Errorf("log: %v", lines)
		}
	})
	t.Run("a registry that is back", func(t *testing.T) {
		w := up(t)
		w.edit(ask("unpullable"))
		w.step(time.Minute)
		w.want("Running ready main(running x0)")
		w.edit(image("v2"))
		w.process.exited()
		w.step(3 * time.Second)
		w.want("Running ContainersNotReady main(ImagePullBackOff x0)")
		w.edit(ask(""))
		w.step(10 * time.Second)
		w.want("Running ready main(running x1)")
	})
	t.Run("a misspelt word keeps a new pod from running", func(t *testing.T) {
		w := newWorld(t, pod(ask("crahs")))
		w.step(time.Minute)
		w.want("Pending ContainersNotReady main(CreateContainerConfigError x0)")
		w.edit(ask(""))
		w.step(5 * time.Second)
		w.want("Running ready main(running x0)")
	})
}

// A run of ten minutes forgives earlier crashes.
func TestBackOffIsForgotten(t *testing.T) {
	w := newWorld(t, pod(image("v1-pull0s-crash11m")))
	for n, want := range []string{"Running ready main(running x1)", "Running ready main(running x2)", "Running ready main(running x3)"} {
		w.step(11*time.Minute + time.Second)
		if got := w.line(); got != want {
			t.Errorf("after crash %d: %q, want %q", n+1, got, want)
		}
	}
}
