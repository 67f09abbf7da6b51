package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/google/go-cmp/cmp"
)

func testPod(name, image string, conditions ...corev1.PodConditionType) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
	for _, c := range conditions {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue})
	}
	return p
}

func leaving(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return p
}

func TestARollIsServingThenGone(t *testing.T) {
	o := newObserver()
	o.see(testPod("old-1", "v1", corev1.PodReady))
	o.see(testPod("old-2", "v1", corev1.PodReady))
	o.expect("v2", 2)
	type seen struct{ serving, gone bool }
	check := func(step string, want seen) {
		t.Helper()
		if got := (seen{!o.watched.serving.IsZero(), !o.watched.gone.IsZero()}); got != want {
			t.Errorf("%s: %+v, want %+v", step, got, want)
		}
	}
	check("at the start", seen{})
	o.see(testPod("new-1", "v2", corev1.PodReady))
	o.see(testPod("new-2", "v2"))
	check("one new pod is not ready", seen{})
	o.see(leaving(testPod("old-1", "v1")))
	o.see(testPod("new-2", "v2", corev1.PodReady))
	check("one old pod is in place", seen{})
	o.see(leaving(testPod("old-2", "v1")))
	check("the old pods are leaving", seen{serving: true})
	o.remove("old-1")
	check("one is still there", seen{serving: true})
	o.remove("old-2")
	check("both are gone", seen{serving: true, gone: true})
	if o.watched.mostPods != 4 || o.watched.leastReady != 2 {
		t.Errorf("most pods %d, least ready %d; want 4 and 2", o.watched.mostPods, o.watched.leastReady)
	}

	o.completed()
	got, err := o.wait(t.Context(), time.Minute, func(t rollTimes) bool { return !t.complete.IsZero() })
	if err != nil || got.serving.IsZero() {
		t.Errorf("wait: %+v, %v", got, err)
	}
}

// A pod that is updated in place counts when it runs the new image, not when it is
// asked to.
func TestAnUpdateInPlaceCountsOnceItRuns(t *testing.T) {
	pod := func(spec, runs string, ready ...corev1.PodConditionType) *corev1.Pod {
		p := testPod("p", spec, ready...)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Image: runs}}
		return p
	}
	o := newObserver()
	o.see(pod("v1", "v1", corev1.PodReady))
	o.expect("v2", 1)
	for _, step := range []struct {
		name string
		pod  *corev1.Pod
		want bool
	}{
		{"it is still ready on the old image", pod("v2", "v1", corev1.PodReady), false},
		{"the new image runs and is not ready", pod("v2", "v2"), false},
		{"it is ready on the new image", pod("v2", "v2", corev1.PodReady), true},
	} {
		o.see(step.pod)
		if got := !o.watched.serving.IsZero() && !o.watched.gone.IsZero(); got != step.want {
			t.Errorf("%s: over: %t", step.name, got)
		}
	}
	if o.watched.mostPods != 1 || o.watched.leastReady != 0 {
		t.Errorf("most pods %d, least ready %d; want 1 and 0", o.watched.mostPods, o.watched.leastReady)
	}
}

func TestADipOfReadyPodsShows(t *testing.T) {
	o := newObserver()
	o.see(testPod("old-1", "v1", corev1.PodReady))
	o.see(testPod("old-2", "v1", corev1.PodReady))
	o.expect("v2", 2)
	o.see(testPod("old-1", "v1"))
	if o.watched.leastReady != 1 {
		t.Errorf("least ready %d, want 1", o.watched.leastReady)
	}
}

func TestTheSetterSetsEachGateOnce(t *testing.T) {
	client := fake.NewClientset(testPod("p", "v1", corev1.ContainersReady))
	var patches atomic.Int32
	first := make(chan struct{}, 8)
	client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		n := patches.Add(1)
		if a.GetSubresource() != "status" {
			t.Errorf("patch of subresource %q", a.GetSubresource())
		}
		defer func() { first <- struct{}{} }()
		if n == 1 {
			return true, nil, fmt.Errorf("try again")
		}
		return true, testPod("p", "v1"), nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newSetter(client, servingGate)
	s.run(ctx)
	s.see(testPod("p", "v1"))                                      // its containers are not ready
	s.see(leaving(testPod("p", "v1", corev1.ContainersReady)))     // it goes
	s.see(testPod("p", "v1", corev1.ContainersReady, servingGate)) // it is set
	s.see(testPod("p", "v1", corev1.ContainersReady))              // fails
	<-first
	for patches.Load() < 2 {
		s.see(testPod("p", "v1", corev1.ContainersReady)) // an event after the failure
	}
	<-first
	for range 10 {
		s.see(testPod("p", "v1", corev1.ContainersReady))
	}
	if n := patches.Load(); n != 2 || len(s.todo) != 0 {
		t.Errorf("%d patches and %d to come, want 2: the one that failed and one more", n, len(s.todo))
	}
}

func TestATemplateLikeAPodOfOurs(t *testing.T) {
	p := testPod("p", "v1")
	p.Annotations = map[string]string{"a": "b"}
	grace, priority := int64(5), int32(0)
	p.Spec.TerminationGracePeriodSeconds, p.Spec.Priority, p.Spec.NodeName = &grace, &priority, "node-1"
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: servingGate}}
	p.Spec.Volumes = []corev1.Volume{{Name: "model"}, {Name: "kube-api-access-x7"}}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-x7"}, {Name: "model"}}
	want := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace, Volumes: []corev1.Volume{{Name: "model"}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: servingGate}},
			Containers:     []corev1.Container{{Name: "c", Image: "v1", VolumeMounts: []corev1.VolumeMount{{Name: "model"}}}},
		},
	}
	if diff := cmp.Diff(want, templateOf(p, true)); diff != "" {
		t.Errorf("gated (-want +got):\n%s", diff)
	}
	want.Spec.ReadinessGates = nil
	if diff := cmp.Diff(want, templateOf(p, false)); diff != "" {
		t.Errorf("plain (-want +got):\n%s", diff)
	}
}

func TestAStatusThatSaysTheRollIsOver(t *testing.T) {
	replica := func(change func(map[string]any)) map[string]any {
		st := map[string]any{"observedGeneration": int64(2), "currentRevision": "b", "updateRevision": "b",
			"replicas": int64(3), "readyReplicas": int64(3), "updatedReplicas": int64(3), "servingReplicas": int64(3)}
		change(st)
		return map[string]any{"metadata": map[string]any{"generation": int64(2)}, "status": st}
	}
	for name, c := range map[string]struct {
		change func(map[string]any)
		want   bool
	}{
		"settled":               {func(map[string]any) {}, true},
		"another revision runs": {func(s map[string]any) { s["currentRevision"] = "a" }, false},
		"one is not ready":      {func(s map[string]any) { s["readyReplicas"] = int64(2) }, false},
		"an old generation":     {func(s map[string]any) { s["observedGeneration"] = int64(1) }, false},
		"no status":             {func(s map[string]any) { clear(s) }, false},
	} {
		if got := replicaSettled(replica(c.change), 3); got != c.want {
			t.Errorf("replica, %s: %t", name, got)
		}
	}
	deployment := func(updated int64) map[string]any {
		return map[string]any{"metadata": map[string]any{"generation": int64(2)}, "status": map[string]any{"observedGeneration": int64(2),
			"replicas": int64(3), "updatedReplicas": updated, "readyReplicas": int64(3), "availableReplicas": int64(3)}}
	}
	if !deploymentSettled(deployment(3), 3) || deploymentSettled(deployment(2), 3) {
		t.Error("a Deployment is settled when all its pods are updated and available, and not before")
	}
}

func TestTheOrderTurnsRound(t *testing.T) {
	all := []*contestant{{name: "a"}, {name: "b"}, {name: "c"}}
	names := func(round int) (out string) {
		for _, c := range inTurn(all, round) {
			out += c.name
		}
		return out
	}
	if names(1)+names(2)+names(3) != "abccbaabc" {
		t.Errorf("order %s, %s, %s", names(1), names(2), names(3))
	}
}
