package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

func TestPodPatch(t *testing.T) {
	pod := testPod("p", v1beta1.EngineComponent)
	for _, name := range []string{"zeta", "alpha", "mid"} {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: name + ":v1"})
	}
	const meta = `"resourceVersion":"70","uid":"p-uid"`
	tests := map[string]struct {
		change *core.PodPatch
		want   string
		err    string
	}{
		"images, in the order of the pod": {
			change: &core.PodPatch{Images: map[string]string{"alpha": "alpha:v2", "zeta": "zeta:v2"}},
			want:   `{"metadata":{` + meta + `},"spec":{"containers":[{"name":"zeta","image":"zeta:v2"},{"name":"alpha","image":"alpha:v2"}]}}`,
		},
		"all in one request": {
			change: &core.PodPatch{
				Images:      map[string]string{"mid": "mid:v2"},
				Labels:      map[string]string{v1beta1.RevisionHashLabel: "0a1b2c3d"},
				Annotations: map[string]*string{"a": ptr.To("1"), "b": nil, "c": ptr.To("")},
			},
			want: `{"metadata":{"annotations":{"a":"1","b":null,"c":""},"labels":{"ome.io/revision-hash":"0a1b2c3d"},` + meta + `},"spec":{"containers":[{"name":"mid","image":"mid:v2"}]}}`,
		},
		"an annotation removed": {
			change: &core.PodPatch{Annotations: map[string]*string{"b": nil}},
			want:   `{"metadata":{"annotations":{"b":null},` + meta + `}}`,
		},
		"a container that is not there": {
			change: &core.PodPatch{Images: map[string]string{"zeta": "zeta:v2", "other": "x"}},
			err:    "not all of them are containers of the pod",
		},
		"nothing":  {change: &core.PodPatch{}, err: "changes nothing"},
		"no patch": {err: "changes nothing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := podPatch(pod, test.change)
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("err = %v, want %q", err, test.err)
			}
		})
	}
}

// TestPodVerbs: what each verb of core becomes.
func TestPodVerbs(t *testing.T) {
	pod := testPod("p", v1beta1.EngineComponent)
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i:v1"}}
	zero := ptr.To[int64](0)
	tests := []struct {
		action core.PodAction
		want   Write
	}{
		{core.PodAction{Verb: core.PodCreate}, Write{Kind: WritePodCreate, Verb: VerbCreate}},
		{core.PodAction{Verb: core.PodServe}, Write{Kind: WritePodGate, Verb: VerbPatch, Subresource: "status", PatchType: types.StrategicMergePatchType}},
		{core.PodAction{Verb: core.PodUnserve}, Write{Kind: WritePodGate, Verb: VerbPatch, Subresource: "status", PatchType: types.StrategicMergePatchType}},
		{core.PodAction{Verb: core.PodUpdate, Patch: &core.PodPatch{Images: map[string]string{"c": "i:v2"}}},
			Write{Kind: WritePodUpdate, Verb: VerbPatch, PatchType: types.StrategicMergePatchType}},
		{core.PodAction{Verb: core.PodDelete}, Write{Kind: WritePodDelete, Verb: VerbDelete, UID: "p-uid"}},
		{core.PodAction{Verb: core.PodKill}, Write{Kind: WritePodDelete, Verb: VerbDelete, UID: "p-uid", GracePeriod: zero}},
		{core.PodAction{Verb: core.PodForceDelete}, Write{Kind: WritePodForceDelete, Verb: VerbDelete, UID: "p-uid", GracePeriod: zero}},
	}
	var kinds []WriteKind
	for _, test := range tests {
		test.action.Pod = pod
		got, err := podWrite(&test.action, metav1.Now())
		if err != nil {
			t.Errorf("%s: %v", test.action.Verb, err)
			continue
		}
		if got.Object.GetName() != "p" || got.Object == pod {
			t.Errorf("%s writes to %s, or into what was read", test.action.Verb, got.Object.GetName())
		}
		kinds = append(kinds, got.Kind)
		got.Object, got.Patch = nil, nil
		if diff := cmp.Diff(test.want, *got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.action.Verb, diff)
		}
		// A refusal of the call is kept for as long as a decision asks for it.
		p := &pass{}
		d := &core.ComponentDecision{Pods: []core.PodAction{test.action}}
		if !p.asks(d, kinds[len(kinds)-1]) || p.asks(&core.ComponentDecision{}, kinds[len(kinds)-1]) {
			t.Errorf("%s: the decision is not seen to ask for it", test.action.Verb)
		}
	}
	for _, k := range WriteKinds() {
		if strings.HasPrefix(string(k), "pod-") && !slices.Contains(kinds, k) {
			t.Errorf("no verb leads to %s", k)
		}
	}
	if _, err := podWrite(&core.PodAction{Verb: "Move", Pod: pod}, metav1.Now()); err == nil {
		t.Error("an unknown verb became a write")
	}
}

// TestForceDeletedPodsAreAwaited: a pod that is already going looks the same after it
// was removed, until the cache shows that it is gone or that something holds it.
func TestForceDeletedPodsAreAwaited(t *testing.T) {
	going := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := testPod("dead", v1beta1.EngineComponent)
		pod.DeletionTimestamp = ptr.To(metav1.Now())
		change(pod)
		return pod
	}
	tests := map[string]struct {
		verb core.PodVerb
		then func(*testing.T, *bench)
		held bool
	}{
		"the cache lags":                  {core.PodForceDelete, func(*testing.T, *bench) {}, true},
		"an orderly delete was asked for": {core.PodDelete, func(*testing.T, *bench) {}, false},
		"it is gone": {core.PodForceDelete, func(t *testing.T, b *bench) {
			if err := b.fakes[kindPod].Delete(going(func(*corev1.Pod) {})); err != nil {
				t.Fatal(err)
			}
		}, false},
		"another has its name": {core.PodForceDelete, func(t *testing.T, b *bench) {
			b.put(t, going(func(p *corev1.Pod) { p.UID = "next" }))
		}, false},
		"a finalizer holds it": {core.PodForceDelete, func(t *testing.T, b *bench) {
			b.put(t, going(func(p *corev1.Pod) { p.Finalizers = []string{"x"} }))
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := going(func(*corev1.Pod) {})
			b := newBench(t, testService(), testReplica(v1beta1.EngineComponent), pod)
			b.decision.Components = []core.ComponentDecision{{Type: v1beta1.EngineComponent, Pods: []core.PodAction{{Verb: test.verb, Pod: pod}}}}
			if _, err := b.pass(t); err != nil {
				t.Fatal(err)
			}
			test.then(t, b)
			b.clock.Step(paceMost)
			if _, err := b.pass(t); err != nil {
				t.Fatal(err)
			}
			if held := b.decided == 1; held != test.held {
				t.Errorf("decided %d times", b.decided)
			}
		})
	}
}
