package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/lab/internal/stub"
)

func TestImageUpdateInPlace(t *testing.T) {
	w := newWorld(t, pod(func(p *corev1.Pod) { p.Labels[stub.LabelRevision] = "one" }))
	w.step(5 * time.Second)
	first, old := w.process, w.m.pod.Status.ContainerStatuses[0]

	w.edit(func(p *corev1.Pod) {
		image("v2-pull1s-start2s")(p)
		p.Labels = map[string]string{stub.LabelRevision: "two"}
	})
	if !first.stopped || first.killed {
		t.Fatalf("the old container should get SIGTERM first: %+v", first)
	}
	if got := w.m.pod.Status.ObservedGeneration; got != 2 {
		t.Errorf("observedGeneration %d, want 2", got)
	}
	if first.labels[stub.LabelRevision] != "one" {
		t.Error("the old container answers in the name of the new revision")
	}
	w.want("Running ContainersNotReady main(running x0)")
	first.exited()
	w.settle()
	// As with a real kubelet, the status is that of the container that was, until there is another.
	w.want("Running ContainersNotReady main(exited 0 x0)")
	if now := w.m.pod.Status.ContainerStatuses[0]; now.Image != old.Image || now.ImageID != old.ImageID || now.ContainerID != old.ContainerID {
		t.Errorf("while the image is pulled: %+v", now)
	}
	w.step(time.Second)
	w.want("Running ContainersNotReady main(running x1)")
	w.step(2 * time.Second)
	w.want("Running ready main(running x1)")
	now := w.m.pod.Status.ContainerStatuses[0]
	if now.ContainerID == old.ContainerID || now.ImageID == old.ImageID || now.Image != "lab.ome.io/engine:v2-pull1s-start2s" {
		t.Errorf("a new container should run the new image: %+v", now)
	}
	if last := now.LastTerminationState.Terminated; last == nil || last.ContainerID != old.ContainerID {
		t.Errorf("last state %+v, want the old container", last)
	}
	if first == w.process || w.process.labels[stub.LabelRevision] != "two" {
		t.Errorf("want a new listener of the new revision: %+v", w.process)
	}

	w.edit(image("v3-unpullable"))
	w.process.exited()
	w.settle()
	w.step(30 * time.Second)
	w.want("Running ContainersNotReady main(ImagePullBackOff x1)")
	stuck := w.m.pod.Status.ContainerStatuses[0]
	if last := stuck.LastTerminationState.Terminated; last == nil || last.ContainerID != now.ContainerID || stuck.Image != now.Image {
		t.Errorf("an image that can't be pulled leaves the container that was: %+v", stuck)
	}
	w.edit(image("v2-pull1s-start2s"))
	w.step(3 * time.Second)
	w.want("Running ready main(running x2)")
}

func TestImageUpdateWaitsForTheHook(t *testing.T) {
	w := newWorld(t, pod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}}
	}))
	w.step(5 * time.Second)
	w.edit(image("v2"))
	w.step(4 * time.Second)
	if w.process.stopped {
		t.Fatal("stopped during its preStop hook")
	}
	w.want("Running ready main(running x0)")
	w.edit(image("v3")) // a second change of mind
	w.step(time.Second)
	if !w.process.stopped {
		t.Fatal("no SIGTERM after the hook")
	}
	w.step(30 * time.Second)
	w.want("Running ready main(running x1)")
	if got := w.m.pod.Status.ContainerStatuses[0]; got.Image != "lab.ome.io/engine:v3" || got.LastTerminationState.Terminated.ExitCode != 137 {
		t.Errorf("want the newest image after a kill at the end of the grace period: %+v", got)
	}
}
