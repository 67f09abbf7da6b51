package instance

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

func TestInPlace(t *testing.T) {
	begin := func(t *testing.T, n int32) *world {
		w := started(t, n)
		w.strategy(v1beta1.InPlaceIfPossible)
		return w
	}
	t.Run("step by step: out, unrouted, one patch, the image that runs, in, the record dropped", func(t *testing.T) {
		w := begin(t, 1)
		before := w.pod("0/0").DeepCopy()
		w.target("b")
		w.pass()
		w.rows("0 Updating a>b InPlace")
		w.calls("Unserve 0/0 a")
		w.pass() // still routed
		w.calls()
		w.kubelet()
		w.pass()
		w.calls("Update 0/0 a")
		a := w.last.Pods[0]
		if a.Operation != w.row(0).Operation.ID {
			t.Errorf("%+v", a)
		}
		if diff := cmp.Diff(map[string]string{"ome-container": "b"}, a.Patch.Images); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]string{v1beta1.RevisionHashLabel: "b"}, a.Patch.Labels); diff != "" {
			t.Error(diff)
		}
		var note map[string]any
		if err := json.Unmarshal([]byte(*a.Patch.Annotations[v1beta1.InPlaceImageTransitionAnnotation]), &note); err != nil {
			t.Fatal(err)
		}
		old := before.Status.ContainerStatuses[0]
		want := map[string]any{
			"targetImages": map[string]any{"ome-container": "b"},
			"from":         map[string]any{"ome-container": map[string]any{"containerID": old.ContainerID, "image": "a", "imageID": old.ImageID}},
		}
		if diff := cmp.Diff(want, note); diff != "" {
			t.Errorf("the record (-want +got):\n%s", diff)
		}
		// The kubelet has not seen it: everything still says ready, of the old process.
		w.old["0/0"] = true
		w.kubelet()
		for range 3 {
			w.pass()
			w.calls()
			w.kubelet()
		}
		delete(w.old, "0/0")
		w.kubelet()
		w.pass()
		w.calls("Serve 0/0 b")
		w.kubelet()
		w.pass()
		w.calls("Update 0/0 b")
		if v, ok := w.last.Pods[0].Patch.Annotations[v1beta1.InPlaceImageTransitionAnnotation]; !ok || v != nil {
			t.Errorf("%+v", w.last.Pods[0].Patch)
		}
		w.kubelet()
		w.pass()
		w.rows("0 Ready b")
		after := w.pod("0/0")
		if after.UID != before.UID || after.Name != before.Name || after.Spec.NodeName != before.Spec.NodeName || after.Annotations[v1beta1.InPlaceImageTransitionAnnotation] != "" ||
			after.Labels[v1beta1.InstanceIncarnationLabel] != "1" {
			t.Errorf("%+v", after.ObjectMeta)
		}
		if got := after.Status.ContainerStatuses[0].Image; got != "b" {
			t.Errorf("it runs %s", got)
		}
	})
	t.Run("a new container that is not ready is not done", func(t *testing.T) {
		w := begin(t, 1)
		w.slow["b"] = true
		w.target("b")
		w.settle()
		w.rows("0 Updating a>b InPlace")
		w.never("Serve")
		delete(w.slow, "b")
		w.settle()
		w.rows("0 Ready b")
	})
	t.Run("minReadySeconds counts from the return to rotation", func(t *testing.T) {
		w := begin(t, 1)
		w.in.MinReady = time.Minute
		w.target("b")
		w.run(59 * time.Second)
		w.rows("0 Updating a>b InPlace")
		w.run(time.Second)
		w.settle()
		w.rows("0 Ready b")
	})
	t.Run("kept in rotation, its gate never turns", func(t *testing.T) {
		w := begin(t, 1)
		w.in.KeepInRotation = true
		w.target("b")
		w.settle()
		w.rows("0 Ready b")
		w.never("Unserve")
		w.never("Serve")
		if r := w.row(0); r.ReadySince == nil || !r.ReadySince.Time.Equal(w.in.Now) {
			t.Errorf("ready since %v", r.ReadySince)
		}
	})
	t.Run("kept in rotation, the container that stopped for it is no trouble", func(t *testing.T) {
		w := begin(t, 1)
		w.in.KeepInRotation, w.in.RestartPolicy = true, v1beta1.RestartRecreateInstance
		w.target("b")
		w.pass()
		w.crash("0/0", "ome-container")
		w.kubelet()
		w.run(time.Hour)
		w.rows("0 Ready b")
		w.told(v1beta1.EventRestartTriggered, 0)
	})
	t.Run("anything but images is a new pod", func(t *testing.T) {
		w := begin(t, 1)
		w.target("x")
		w.pass()
		w.rows("0 Updating a>x Drain incarnation 2")
		w.settle()
		w.rows("0 Ready x incarnation 2")
		w.never("Update")
	})
	t.Run("labels and annotations of the template are a new pod as well", func(t *testing.T) {
		w := begin(t, 1)
		r := rev("b")
		template := r.Template()
		template.Labels = map[string]string{"team": "x"}
		r.Template = func() *corev1.PodTemplateSpec { return template }
		w.in.Revisions[r.Name] = r
		w.target("b")
		w.settle()
		w.rows("0 Ready b incarnation 2")
	})
	t.Run("so is another pairing protocol", func(t *testing.T) {
		w := begin(t, 1)
		r := rev("b")
		r.Token = "v2"
		w.in.Revisions[r.Name] = r
		w.target("b")
		w.settle()
		w.rows("0 Ready b incarnation 2")
	})
	t.Run("reverted before the patch, the pod only returns to rotation", func(t *testing.T) {
		w := begin(t, 1)
		uid := w.pod("0/0").UID
		w.target("b")
		w.pass()
		w.kubelet()
		w.target("a")
		w.settle()
		w.rows("0 Ready a")
		w.never("Update")
		w.never("Delete")
		if w.pod("0/0").UID != uid {
			t.Error("another pod")
		}
	})
	t.Run("reverted after the patch, before the kubelet saw it, the old image is asked for again and the old container runs on", func(t *testing.T) {
		w := begin(t, 1)
		uid, container := w.pod("0/0").UID, w.pod("0/0").Status.ContainerStatuses[0].ContainerID
		w.old["0/0"] = true
		w.target("b")
		w.settle()
		if got := w.pod("0/0").Spec.Containers[0].Image; got != "b" {
			t.Fatalf("it asks for %s", got)
		}
		w.target("a")
		w.settle()
		delete(w.old, "0/0")
		w.settle()
		w.rows("0 Ready a")
		if p := w.pod("0/0"); p.UID != uid || p.Spec.Containers[0].Image != "a" || p.Status.ContainerStatuses[0].ContainerID != container ||
			p.Annotations[v1beta1.InPlaceImageTransitionAnnotation] != "" {
			t.Errorf("%v %v", p.ObjectMeta, p.Status.ContainerStatuses)
		}
	})
	t.Run("reverted after the new image ran, the old one runs again in the same pod", func(t *testing.T) {
		w := begin(t, 1)
		uid := w.pod("0/0").UID
		w.slow["b"] = true
		w.target("b")
		w.settle()
		w.target("a")
		w.settle()
		w.rows("0 Ready a")
		if p := w.pod("0/0"); p.UID != uid || p.Status.ContainerStatuses[0].Image != "a" {
			t.Errorf("%v %v", p.ObjectMeta, p.Status.ContainerStatuses)
		}
	})
	t.Run("reverted after it failed, the same", func(t *testing.T) {
		w := begin(t, 1)
		uid := w.pod("0/0").UID
		exhaust(w)
		w.rows("0 Failed a")
		w.target("a")
		w.settle()
		w.rows("0 Ready a")
		if w.pod("0/0").UID != uid {
			t.Error("another pod")
		}
	})
	t.Run("on to a revision that needs a new pod, from one that cannot start", func(t *testing.T) {
		w := begin(t, 1)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.settle()
		w.target("x")
		w.settle()
		w.rows("0 Ready x incarnation 2")
	})
	t.Run("the pod is lost on the way: a new one is made", func(t *testing.T) {
		w := begin(t, 1)
		w.slow["b"] = true
		w.target("b")
		w.settle()
		w.lose("0/0")
		delete(w.slow, "b")
		w.settle()
		w.rows("0 Ready b incarnation 2")
	})
	t.Run("an image that cannot be pulled has its grace from the patch, not from the pod's birth", func(t *testing.T) {
		w := begin(t, 1)
		w.run(10 * time.Hour)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.run(59 * time.Second)
		w.rows("0 Updating a>b InPlace")
		w.run(time.Second)
		w.settle()
		w.rows("0 Failed a")
		w.block("b", "Backoff 1/1")
	})
	t.Run("it never exceeds the budget", func(t *testing.T) {
		w := begin(t, 5)
		w.in.MaxUnavailable, w.floor, w.most = 2, 3, 0
		w.target("b")
		w.settle()
		w.rows("0 Ready b", "1 Ready b", "2 Ready b", "3 Ready b", "4 Ready b")
	})
}

func TestInPlaceOnly(t *testing.T) {
	t.Run("anything but images is refused once for each target, and the Instances stay", func(t *testing.T) {
		w := started(t, 2)
		w.strategy(v1beta1.InPlaceOnly)
		w.floor = 2
		w.target("x")
		w.run(time.Hour)
		w.rows("0 Ready a", "1 Ready a")
		w.told(v1beta1.EventInPlaceUpdateNotPossible, 2, "svc-engine-x", "more than container images")
		w.holds(v1beta1.GatePlan, "InPlaceOnly", "svc-engine-x", "InPlaceIfPossible or RecreatePod")
		w.allCalls()
		w.target("y")
		w.run(time.Hour)
		w.told(v1beta1.EventInPlaceUpdateNotPossible, 4, "svc-engine-y")
		w.strategy(v1beta1.InPlaceIfPossible)
		w.floor = 1
		w.settle()
		w.rows("0 Ready y incarnation 2", "1 Ready y incarnation 2")
	})
	t.Run("images are changed in place", func(t *testing.T) {
		w := started(t, 1)
		w.strategy(v1beta1.InPlaceOnly)
		w.target("b")
		w.settle()
		w.rows("0 Ready b")
	})
	t.Run("a failing change in place does not keep the next target from its own verdict", func(t *testing.T) {
		w := started(t, 1)
		w.strategy(v1beta1.InPlaceOnly)
		w.sick["b"] = "ErrImagePull"
		w.target("b")
		w.settle()
		w.target("x")
		w.run(2 * time.Minute)
		w.settle()
		w.told(v1beta1.EventInstanceFailed, 1)
		w.told(v1beta1.EventInPlaceUpdateNotPossible, 1)
		w.holds(v1beta1.GatePlan, "InPlaceOnly")
	})
}

// What runs in a pod after a change of its image, as a kubelet reports it.
func TestMoved(t *testing.T) {
	note := `{"targetImages":{"ome-container":"repo/app:2"},"from":{"ome-container":{"containerID":"c1","image":"repo/app:1","imageID":"sha256:one"}}}`
	running := func(image, id, container string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "ome-container", Image: image, ImageID: id, ContainerID: container, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	}
	cases := []struct {
		name                 string
		note                 string
		status               []corev1.ContainerStatus
		observed, generation int64
		want                 bool
	}{
		{"the new image in a new container", note, []corev1.ContainerStatus{running("repo/app:2", "sha256:two", "c2")}, 0, 0, true},
		{"the old container, though it is ready", note, []corev1.ContainerStatus{running("repo/app:1", "sha256:one", "c1")}, 0, 0, false},
		{"the new name on the old container", note, []corev1.ContainerStatus{running("repo/app:2", "sha256:one", "c1")}, 0, 0, false},
		{"a new container of the old image: it crashed before the change", note, []corev1.ContainerStatus{running("repo/app:1", "sha256:one", "c2")}, 0, 0, false},
		{"another tag of the same digest in a new container", note, []corev1.ContainerStatus{running("repo/app:2", "sha256:one", "c2")}, 0, 0, true},
		{"a runtime that reports another name of the new image", note, []corev1.ContainerStatus{running("mirror/app@sha256:two", "sha256:two", "c2")}, 0, 0, true},
		{"a new container that does not run", note, []corev1.ContainerStatus{{Name: "ome-container", Image: "repo/app:2", ContainerID: "c2"}}, 0, 0, false},
		{"no container at all", note, nil, 0, 0, false},
		{"a kubelet that has not seen the change", note, []corev1.ContainerStatus{running("repo/app:2", "sha256:two", "c2")}, 3, 4, false},
		{"a kubelet that has", note, []corev1.ContainerStatus{running("repo/app:2", "sha256:two", "c2")}, 4, 4, true},
		{"the old image again, and the old container never stopped",
			`{"targetImages":{"ome-container":"repo/app:1"},"from":{"ome-container":{"containerID":"c1","image":"repo/app:1","imageID":"sha256:one"}}}`,
			[]corev1.ContainerStatus{running("repo/app:1", "sha256:one", "c1")}, 0, 0, true},
		{"the long form of a short name", `{"targetImages":{"ome-container":"app"},"from":{"ome-container":{"containerID":"c1","image":"docker.io/library/app:0"}}}`,
			[]corev1.ContainerStatus{running("docker.io/library/app:latest", "sha256:two", "c2")}, 0, 0, true},
		{"no record", "", []corev1.ContainerStatus{running("x", "y", "z")}, 0, 0, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := &corev1.Pod{}
			p.Generation, p.Status.ObservedGeneration = tc.generation, tc.observed
			p.Annotations = map[string]string{v1beta1.InPlaceImageTransitionAnnotation: tc.note}
			p.Status.ContainerStatuses = tc.status
			if got := (&pod{obj: p}).moved(); got != tc.want {
				t.Errorf("moved: %v", got)
			}
		})
	}
}
