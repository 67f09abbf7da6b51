package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"ome.io/ome/api/keda"
	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/settings"
)

func testHPA(name string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "hpa-uid", ResourceVersion: "90", Labels: labelsOf(v1beta1.EngineComponent)},
		Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: new(int32(1)), MaxReplicas: 3},
	}
}

func testScaledObject(name string) *keda.ScaledObject {
	return &keda.ScaledObject{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "so-uid", ResourceVersion: "91", Labels: labelsOf(v1beta1.EngineComponent)}}
}

// TestScalerWrites: what each verb sends, after everything that keeps the service running.
func TestScalerWrites(t *testing.T) {
	b := newBench(t, testService(), testHPA("svc-engine"))
	next := testHPA("svc-engine")
	next.Spec.MaxReplicas = 9
	b.decision = core.Decision{
		CreateServices: nil,
		CreateScalers:  []core.Scaler{{Component: v1beta1.DecoderComponent, HPA: testHPA("svc-decoder")}},
		UpdateScalers:  []core.Scaler{{Component: v1beta1.EngineComponent, HPA: next}},
		DeleteScalers:  []core.Scaler{{Component: v1beta1.RouterComponent, ScaledObject: testScaledObject("scaledobject-svc-router")}},
		Status:         &v1beta1.InferenceServiceStatus{URL: "x"}, StatusUrgent: true,
	}
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	var patch map[string]any
	for _, w := range b.writer.writes {
		switch {
		case w.Kind == WriteScaler && w.Verb == VerbPatch:
			if err := json.Unmarshal(w.Patch, &patch); err != nil {
				t.Fatal(err)
			}
		case w.Kind == WriteScaler && w.Verb == VerbDelete && w.UID != "so-uid":
			t.Errorf("delete without the UID that was judged: %q", w.UID)
		}
	}
	want := map[string]any{"metadata": map[string]any{"resourceVersion": "90"}, "spec": map[string]any{"maxReplicas": float64(9)}}
	if diff := cmp.Diff(want, patch); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	log := b.writer.log()
	if len(log) != 4 || log[0] != "service-status patch svc" {
		t.Errorf("sent %q", log)
	}
	for _, line := range []string{"scaler create svc-decoder", "scaler patch svc-engine", "scaler delete scaledobject-svc-router"} {
		if indexOf(log, line) < 1 {
			t.Errorf("%q was not sent after the status: %q", line, log)
		}
	}
}

// TestRefusedScaler: core is told, of the scaler alone, and no more once it is accepted.
func TestRefusedScaler(t *testing.T) {
	b := newBench(t, testService(), testReplica(v1beta1.EngineComponent), testReplica(v1beta1.DecoderComponent))
	b.decision = core.Decision{
		Components:    []core.ComponentDecision{{Type: v1beta1.EngineComponent, Pods: []core.PodAction{{Verb: core.PodCreate, Pod: testPod("a", v1beta1.EngineComponent)}}}, {Type: v1beta1.DecoderComponent}},
		CreateScalers: []core.Scaler{{Component: v1beta1.EngineComponent, HPA: testHPA("svc-engine")}},
	}
	told := func() string {
		for _, c := range b.world.Components {
			if c.Refusal != "" || c.Type != v1beta1.EngineComponent && c.ScalerRefusal.Text != "" {
				t.Errorf("%s was told more than it should: %q %q", c.Type, c.Refusal, c.ScalerRefusal.Text)
			}
		}
		return b.world.Components[0].ScalerRefusal.Text
	}
	answer := error(apierrors.NewForbidden(schema.GroupResource{Resource: "horizontalpodautoscalers"}, "svc-engine", errors.New("it is Tuesday")))
	b.writer.answer = func(w *Write) error {
		if w.Kind == WriteScaler {
			return answer
		}
		return nil
	}
	const text = `horizontalpodautoscalers "svc-engine" is forbidden: it is Tuesday`
	if again, err := b.next(t); err == nil || again != paceLeast || told() != "" || indexOf(b.writer.log(), "pod-create create a") < 0 {
		t.Fatalf("first pass: again %v, %v, told %q, sent %q", again, err, told(), b.writer.log())
	}
	if _, err := b.next(t); err == nil || told() != text {
		t.Errorf("second pass: %v, told %q", err, told())
	}
	// Another failure in between is no acceptance.
	answer = apierrors.NewTooManyRequestsError("later")
	if _, err := b.next(t); err == nil {
		t.Error("no error")
	}
	if _, err := b.next(t); err == nil || told() != text {
		t.Errorf("after another failure: %v, told %q", err, told())
	}
	b.writer.answer = nil
	if again, err := b.next(t); err != nil || again != paceLeast || told() != text {
		t.Errorf("accepted: again %v, %v, told %q", again, err, told())
	}
	if again, err := b.next(t); err != nil || again != 0 || told() != "" {
		t.Errorf("after: again %v, %v, told %q", again, err, told())
	}
}

// TestForeignScaler: an object that no cache of ours shows has the name. It is left alone.
func TestForeignScaler(t *testing.T) {
	b := newBench(t, testService(), testReplica(v1beta1.EngineComponent))
	b.decision = core.Decision{Components: []core.ComponentDecision{{Type: v1beta1.EngineComponent}},
		CreateScalers: []core.Scaler{{Component: v1beta1.EngineComponent, HPA: testHPA("svc-engine")}}}
	theirs := testHPA("svc-engine")
	theirs.Labels = nil
	b.live.objects[object{kindScaler, keyOf(theirs)}] = theirs
	b.writer.answer = func(w *Write) error {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "horizontalpodautoscalers"}, w.Object.GetName())
	}
	if _, err := b.next(t); err == nil {
		t.Fatal("no error")
	}
	if _, err := b.next(t); err == nil || b.world.Components[0].ScalerRefusal != (core.ScalerRefusal{Taken: true,
		Text: "HorizontalPodAutoscaler ns/svc-engine is not controlled by expected owner: nothing owns it; delete or rename it"}) {
		t.Errorf("%v, told %+v", err, b.world.Components[0].ScalerRefusal)
	}
	for _, line := range b.writer.log() {
		if line != "scaler create svc-engine" {
			t.Errorf("sent %q", line)
		}
	}
}

// TestScalerSnapshot: KEDA's objects are there where KEDA is.
func TestScalerSnapshot(t *testing.T) {
	b := newBench(t, testService(), testHPA("b"), testHPA("a"))
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	names := func() (out []string) {
		for _, o := range b.world.Scalers {
			out = append(out, o.Name)
		}
		for _, o := range b.world.ScaledObjects {
			out = append(out, o.Name)
		}
		return out
	}
	if diff := cmp.Diff([]string{"a", "b"}, names()); diff != "" || b.world.KEDAServed {
		t.Errorf("served %t (-want +got):\n%s", b.world.KEDAServed, diff)
	}
	f := &fakeStore{Indexer: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexersOf(kindScaledObject)), version: "100"}
	b.fakes[kindScaledObject], b.stores[kindScaledObject] = f, f
	b.put(t, testScaledObject("scaledobject-svc-engine"))
	if _, err := b.next(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "scaledobject-svc-engine"}, names()); diff != "" || !b.world.KEDAServed {
		t.Errorf("served %t (-want +got):\n%s", b.world.KEDAServed, diff)
	}
}

// TestMeasurementsWakeNobody: an HPA's status moves every few seconds under load.
func TestMeasurementsWakeNobody(t *testing.T) {
	b := newBench(t, testService())
	q := newQueue(t)
	handler := handlerOf(b, kindScaler, q)
	stored := func(version string, change func(*autoscalingv2.HorizontalPodAutoscaler)) *autoscalingv2.HorizontalPodAutoscaler {
		o := testHPA("svc-engine")
		o.ResourceVersion = version
		o.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.MetricSourceType(version)}}
		change(o)
		kept, err := trimScaler(o)
		if err != nil {
			t.Fatal(err)
		}
		return kept.(*autoscalingv2.HorizontalPodAutoscaler)
	}
	nothing := func(*autoscalingv2.HorizontalPodAutoscaler) {}
	handler.OnUpdate(stored("1", nothing), stored("2", nothing))
	if got := drain(q); got != nil {
		t.Errorf("a measurement woke %v", got)
	}
	for i, change := range []func(*autoscalingv2.HorizontalPodAutoscaler){
		func(o *autoscalingv2.HorizontalPodAutoscaler) { o.Status.CurrentReplicas = 2 },
		func(o *autoscalingv2.HorizontalPodAutoscaler) { o.Spec.MaxReplicas = 4 },
		func(o *autoscalingv2.HorizontalPodAutoscaler) {
			o.DeletionTimestamp = &metav1.Time{Time: b.clock.Now()}
		},
		func(o *autoscalingv2.HorizontalPodAutoscaler) {
			o.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: "ScalingActive"}}
		},
	} {
		handler.OnUpdate(stored("1", nothing), stored("2", change))
		if diff := cmp.Diff([]string{"ns/svc"}, drain(q)); diff != "" {
			t.Errorf("change %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestKEDAServed: an answer is kept, a failure to ask is none.
func TestKEDAServed(t *testing.T) {
	mapper := &fakeMapper{err: errors.New("no API server yet")}
	served := KEDAServed(mapper)
	if served() {
		t.Error("served without an answer")
	}
	mapper.err = nil
	if !served() {
		t.Error("not served")
	}
	mapper.err = &meta.NoKindMatchError{}
	if !served() {
		t.Error("the answer was not kept")
	}
	if KEDAServed(mapper)() {
		t.Error("served where the kind is unknown")
	}
	if fmt.Sprint(mapper.asked) != "{{keda.sh ScaledObject} [v1alpha1]}" {
		t.Errorf("asked for %v", mapper.asked)
	}
}

type fakeMapper struct {
	meta.RESTMapper
	err   error
	asked any
}

func (f *fakeMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	f.asked = struct {
		gk       schema.GroupKind
		versions []string
	}{gk, versions}
	return &meta.RESTMapping{}, f.err
}

// TestOperatorsBoundsReachTheHPA: a service that names no bounds follows the operator's.
func TestOperatorsBoundsReachTheHPA(t *testing.T) {
	isvc := testService()
	isvc.Spec.Runtime, isvc.Spec.Decoder = &v1beta1.ServingRuntimeRef{Name: "rt"}, nil
	replica := testReplica(v1beta1.EngineComponent)
	replica.Spec.Replicas = new(int32(2))
	replica.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(isvc, v1beta1.SchemeGroupVersion.WithKind("InferenceService"))}
	b := newBench(t, isvc, testRuntime(), replica)
	b.decide = core.Decide
	scaler := func() *Write {
		t.Helper()
		if _, err := b.next(t); err != nil {
			t.Fatal(err)
		}
		for i := range b.writer.writes {
			w := &b.writer.writes[i]
			if w.Kind == WriteScaler {
				return w
			}
			if w.Kind == WriteReplica && strings.Contains(string(w.Patch), `"replicas"`) {
				t.Errorf("the count was written: %s", w.Patch)
			}
		}
		return nil
	}
	w := scaler()
	if w == nil || w.Verb != VerbCreate {
		t.Fatalf("no HPA was made: %q", b.writer.log())
	}
	hpa := w.Object.(*autoscalingv2.HorizontalPodAutoscaler)
	if *hpa.Spec.MinReplicas != 1 || hpa.Spec.MaxReplicas != 3 {
		t.Errorf("bounds %d..%d, want the built-in 1..3", *hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas)
	}
	hpa.UID = "hpa-uid"
	b.put(t, hpa)
	if w := scaler(); w != nil {
		t.Errorf("at rest: %s %s", w.Verb, w.Patch)
	}
	b.put(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ome", Name: settings.ConfigMapName},
		Data:       map[string]string{"deploy": `{"replicas": {"defaultMinReplicas": 2, "defaultMaxReplicas": {"engine": 8}}}`},
	})
	w = scaler()
	if w == nil || w.Verb != VerbPatch {
		t.Fatalf("the HPA was not patched: %q", b.writer.log())
	}
	var patch struct {
		Spec map[string]any `json:"spec"`
	}
	if err := json.Unmarshal(w.Patch, &patch); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"minReplicas": float64(2), "maxReplicas": float64(8)}, patch.Spec); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}
