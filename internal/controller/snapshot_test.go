package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/settings"
)

func testRuntime() *v1beta1.ClusterServingRuntime {
	runner := &v1beta1.RunnerSpec{Container: corev1.Container{Name: "ome-container", Image: "engine:v1"}}
	return &v1beta1.ClusterServingRuntime{
		ObjectMeta: metav1.ObjectMeta{Name: "rt", UID: "rt-uid", ResourceVersion: "10"},
		Spec: v1beta1.ServingRuntimeSpec{
			EngineConfig:  &v1beta1.EngineSpec{Runner: runner},
			DecoderConfig: &v1beta1.DecoderSpec{Runner: runner},
		},
	}
}

func TestSnapshot(t *testing.T) {
	isvc := testService()
	isvc.Spec.Runtime = &v1beta1.ServingRuntimeRef{Name: "rt"}
	router := testReplica(v1beta1.RouterComponent) // no longer declared
	router.UID = "router-uid"
	misnamed := testReplica(v1beta1.DecoderComponent)
	misnamed.Name = "handmade"
	standalone := testReplica(v1beta1.EngineComponent)
	standalone.Name, standalone.Spec.ParentRef = "svc-engine-2", nil
	mine, earlier := testRevision("svc-engine-a", v1beta1.EngineComponent), testRevision("svc-engine-b", v1beta1.EngineComponent)
	mine.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(testReplica(v1beta1.EngineComponent), v1beta1.SchemeGroupVersion.WithKind("InferenceReplica"))}
	earlier.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(router, v1beta1.SchemeGroupVersion.WithKind("InferenceReplica"))}
	headless := testCoreService("svc-engine-headless")
	headless.Spec.PublishNotReadyAddresses = true
	elsewhere := testPod("other", v1beta1.EngineComponent)
	elsewhere.Namespace = "elsewhere"
	b := newBench(t, isvc, testRuntime(), testReplica(v1beta1.EngineComponent), router, misnamed, standalone, mine, earlier,
		testPod("b", v1beta1.EngineComponent), testPod("a", v1beta1.EngineComponent), testPod("r", v1beta1.RouterComponent), elsewhere,
		headless, testCoreService("svc-engine"),
		testSlice("svc-engine", true, "a-uid"), testSlice("svc-engine-headless", true, "a-uid", "b-uid"), testSlice("svc-engine-rev-x", false, "b-uid"),
		testSlice("already-deleted", true, "r-uid"))
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}

	type component struct {
		Type              v1beta1.ComponentType
		Declared, Replica bool
		Image, Error      string
		Pods, Revisions   []string
	}
	var got []component
	for _, c := range b.world.Components {
		line := component{Type: c.Type, Declared: c.Declared, Replica: c.Replica != nil}
		if c.Template != nil {
			line.Image = c.Template.Runners[0].Template.Spec.Containers[0].Image
		}
		if c.TemplateError != nil {
			line.Error = c.TemplateError.Reason
		}
		for _, p := range c.Pods {
			line.Pods = append(line.Pods, p.Name)
		}
		for _, r := range c.Revisions {
			line.Revisions = append(line.Revisions, r.Name)
		}
		got = append(got, line)
	}
	want := []component{
		{Type: v1beta1.EngineComponent, Declared: true, Replica: true, Image: "engine:v1", Pods: []string{"a", "b"}, Revisions: []string{"svc-engine-a"}},
		{Type: v1beta1.DecoderComponent, Declared: true, Image: "engine:v1"},
		{Type: v1beta1.RouterComponent, Replica: true, Pods: []string{"r"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	// b is only in a Service that publishes unready pods, and not ready elsewhere;
	// r is in a slice whose Service is gone, which may still be in use.
	if diff := cmp.Diff(map[types.UID]bool{"a-uid": true, "r-uid": true}, b.world.Components[0].Routed); diff != "" {
		t.Errorf("routed (-want +got):\n%s", diff)
	}
	if b.world.Seed == "" || !b.world.Now.Equal(b.clock.Now()) || b.world.Service != isvc || len(b.world.Services) != 2 {
		t.Errorf("world: seed %q, now %v, %d services", b.world.Seed, b.world.Now, len(b.world.Services))
	}
}

// TestTemplatesAreKept: a pass about pods renders nothing; a change of anything
// that goes into a template does.
func TestTemplatesAreKept(t *testing.T) {
	isvc := testService()
	isvc.Spec.Runtime = &v1beta1.ServingRuntimeRef{Name: "rt"}
	b := newBench(t, isvc, testRuntime())
	engine := func() *core.Template {
		t.Helper()
		b.clock.Step(time.Second)
		if _, err := b.pass(t); err != nil {
			t.Fatal(err)
		}
		return b.world.Components[0].Template
	}
	first := engine()
	b.put(t, testPod("p", v1beta1.EngineComponent))
	status := isvc.DeepCopy()
	status.ResourceVersion = "51"
	b.put(t, status)
	if engine() != first {
		t.Error("rendered again though nothing it depends on changed")
	}
	changes := map[string]client.Object{}
	spec := status.DeepCopy()
	spec.Generation++
	changes["the service's spec"] = spec
	annotated := spec.DeepCopy()
	annotated.Annotations = map[string]string{"team": "x"}
	changes["the service's annotations"] = annotated
	runtime := testRuntime()
	runtime.ResourceVersion = "11"
	changes["the runtime"] = runtime
	changes["the settings"] = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ome", Name: settings.ConfigMapName},
		Data:       map[string]string{"deploy": `{"minReadySeconds": 7}`},
	}
	last := engine()
	for _, what := range slices.Sorted(func(yield func(string) bool) {
		for k := range changes {
			if !yield(k) {
				return
			}
		}
	}) {
		b.put(t, changes[what])
		next := engine()
		if next == last {
			t.Errorf("not rendered again after a change of %s", what)
		}
		last = next
	}
	if last.MinReadySeconds != 7 {
		t.Errorf("minReadySeconds %d, want the setting's 7", last.MinReadySeconds)
	}
}

func TestTemplateErrors(t *testing.T) {
	isvc := testService()
	isvc.Spec.Runtime = &v1beta1.ServingRuntimeRef{Name: "missing"}
	b := newBench(t, isvc)
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	for _, c := range b.world.Components {
		if c.Template != nil || c.TemplateError == nil || c.TemplateError.Reason != v1beta1.ReasonRuntimeNotFound || !strings.Contains(c.TemplateError.Message, `"missing"`) {
			t.Errorf("%s: template %v, error %+v", c.Type, c.Template, c.TemplateError)
		}
	}
}

// TestEventsFindTheirServices covers every kind.
func TestEventsFindTheirServices(t *testing.T) {
	isvc := testService()
	isvc.Spec.Runtime, isvc.Spec.Model = &v1beta1.ServingRuntimeRef{Name: "rt"}, &v1beta1.ModelRef{Name: "m"}
	other := testService()
	other.Name = "other"
	b := newBench(t, isvc, other)
	meta := func(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	standalone := testReplica(v1beta1.EngineComponent)
	standalone.Spec.ParentRef = nil
	both := []string{"ns/other", "ns/svc"}
	svc := []string{"ns/svc"}
	tests := map[string]struct {
		obj  client.Object
		want []string
	}{
		"service":                {isvc, svc},
		"replica":                {testReplica(v1beta1.EngineComponent), svc},
		"standalone replica":     {standalone, nil},
		"pod":                    {testPod("p", v1beta1.EngineComponent), svc},
		"pod of nobody":          {&corev1.Pod{ObjectMeta: meta("ns", "p")}, nil},
		"revision":               {testRevision("r", v1beta1.EngineComponent), svc},
		"core Service":           {testCoreService("s"), svc},
		"slice":                  {testSlice("s", true), svc},
		"scaler":                 {testHPA("svc-engine"), svc},
		"KEDA's scaler":          {testScaledObject("scaledobject-svc-engine"), svc},
		"cluster runtime":        {&v1beta1.ClusterServingRuntime{ObjectMeta: meta("", "rt")}, svc},
		"runtime":                {&v1beta1.ServingRuntime{ObjectMeta: meta("ns", "rt")}, svc},
		"runtime elsewhere":      {&v1beta1.ServingRuntime{ObjectMeta: meta("x", "rt")}, nil},
		"another runtime":        {&v1beta1.ClusterServingRuntime{ObjectMeta: meta("", "rt2")}, nil},
		"cluster model":          {&v1beta1.ClusterBaseModel{ObjectMeta: meta("", "m")}, svc},
		"model":                  {&v1beta1.BaseModel{ObjectMeta: meta("ns", "m")}, svc},
		"model elsewhere":        {&v1beta1.BaseModel{ObjectMeta: meta("x", "m")}, nil},
		"settings that appeared": {&corev1.ConfigMap{ObjectMeta: meta("ome", settings.ConfigMapName)}, both},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t)
			handlerOf(b, kindOf(test.obj), q).OnAdd(test.obj, false)
			if diff := cmp.Diff(test.want, drain(q)); diff != "" {
				t.Errorf("added (-want +got):\n%s", diff)
			}
			handlerOf(b, kindOf(test.obj), q).OnDelete(toolscache.DeletedFinalStateUnknown{Obj: test.obj})
			if diff := cmp.Diff(test.want, drain(q)); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("moved to another service", func(t *testing.T) {
		q := newQueue(t)
		moved := testPod("p", v1beta1.EngineComponent)
		moved.Labels[v1beta1.InferenceServiceLabel] = "other"
		handlerOf(b, kindPod, q).OnUpdate(testPod("p", v1beta1.EngineComponent), moved)
		if diff := cmp.Diff(both, drain(q)); diff != "" {
			t.Errorf("updated (-want +got):\n%s", diff)
		}
	})
}

// TestSettings: a change that means nothing wakes nobody, and good settings are
// kept once.
func TestSettings(t *testing.T) {
	b := newBench(t, testService())
	q := newQueue(t)
	handler := handlerOf(b, kindConfigMap, q)
	good := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ome", Name: settings.ConfigMapName, ResourceVersion: "1"},
		Data:       map[string]string{"deploy": `{"minReadySeconds": 7}`},
	}
	annotated := good.DeepCopy()
	annotated.ResourceVersion = "2"
	annotated.Annotations = map[string]string{"note": "x"}
	handler.OnUpdate(good, annotated)
	if got := drain(q); got != nil {
		t.Errorf("an annotation woke %v", got)
	}
	changed := annotated.DeepCopy()
	changed.ResourceVersion = "3"
	changed.Data["deploy"] = `{"minReadySeconds": 8}`
	handler.OnUpdate(annotated, changed)
	if got := drain(q); len(got) != 1 {
		t.Errorf("a setting woke %v", got)
	}

	if err := keepLastGood(t.Context(), b.writer, nil, changed); err != nil {
		t.Fatal(err)
	}
	if got := b.writer.log(); !slices.Equal(got, []string{"settings patch " + settings.ConfigMapName}) {
		t.Fatalf("writes %q", got)
	}
	b.writer.reset()
	kept := changed.DeepCopy()
	set, _ := settings.Parse(changed.Data, nil)
	kept.Annotations[settings.LastGoodAnnotation] = settings.Encode(set)
	if err := keepLastGood(t.Context(), b.writer, nil, kept); err != nil {
		t.Fatal(err)
	}
	if got := b.writer.log(); len(got) > 0 {
		t.Errorf("kept again: %q", got)
	}

	// The typo that follows falls back to what was kept.
	kept.Data["deploy"] = `{"minReadySeconds": "eight"}`
	b.put(t, kept)
	if got, _ := b.settings.get(b.stores); got.Deploy.MinReadySeconds != 8 {
		t.Errorf("minReadySeconds %d, want the last good 8", got.Deploy.MinReadySeconds)
	}
}

// TestSettingsProblems: what is wrong reaches the decisions of every service,
// also when it changes no value, and is gone when it is mended.
func TestSettingsProblems(t *testing.T) {
	b := newBench(t, testService())
	q := newQueue(t)
	handler := handlerOf(b, kindConfigMap, q)
	version := 0
	write := func(deploy string, annotations map[string]string) *corev1.ConfigMap {
		version++
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ome", Name: settings.ConfigMapName, ResourceVersion: fmt.Sprint(version), Annotations: annotations},
			Data:       map[string]string{"deploy": deploy},
		}
	}
	old := write(`{}`, nil)
	kept := map[string]string{settings.LastGoodAnnotation: settings.Encode(config.Default())}
	const bad = `deploy: minReadySeconds: "eight": must be a whole number, 0 or more; using the `
	for _, step := range []struct {
		cm    *corev1.ConfigMap
		wakes bool
		told  []string
	}{
		{write(`{"minReadySeconds": "eight"}`, nil), true, []string{bad + "default"}},
		{write(`{"minReadySeconds": "eight"}`, map[string]string{"note": "x"}), false, []string{bad + "default"}},
		{write(`{"minReadySeconds": "eight"}`, kept), true, []string{bad + "last good value"}},
		{write(`{"minReadySeconds": 0}`, kept), true, nil},
	} {
		handler.OnUpdate(old, step.cm)
		if woken := len(drain(q)) > 0; woken != step.wakes {
			t.Errorf("%s: woken = %v", step.cm.Data, woken)
		}
		b.put(t, step.cm)
		b.clock.Step(time.Second)
		if _, err := b.pass(t); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.told, b.world.SettingsProblems); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.cm.Data, diff)
		}
		old = step.cm
	}
}

// TestUnusedSettingsAreToldOnce: a warning for each, and no problem.
func TestUnusedSettingsAreToldOnce(t *testing.T) {
	b := newBench(t, testService())
	recorder := events.NewFakeRecorder(10)
	told := func(lifecycle string) []string {
		t.Helper()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ome", Name: settings.ConfigMapName}, Data: map[string]string{"lifecycle": lifecycle}}
		b.put(t, cm)
		if _, problems := b.settings.get(b.stores); problems != nil {
			t.Errorf("%s: problems %q", lifecycle, problems)
		}
		b.settings.tellUnused(recorder, cm)
		var out []string
		for len(recorder.Events) > 0 {
			out = append(out, <-recorder.Events)
		}
		return out
	}
	const warning = "Warning SettingNotUsed lifecycle: scaleDownRequeueInterval: not used by this release; remove it, or expect nothing of it"
	for i, step := range []struct {
		lifecycle string
		want      []string
	}{
		{`{"scaleDownRequeueInterval": "1h"}`, []string{warning}},
		{`{"scaleDownRequeueInterval": "2h"}`, nil},
		{`{}`, nil},
		{`{"scaleDownRequeueInterval": "1h"}`, []string{warning}},
	} {
		if diff := cmp.Diff(step.want, told(step.lifecycle)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestNoSettingsMeansDefaults(t *testing.T) {
	b := newBench(t)
	if diff := cmp.Diff(config.Default(), first(b.settings.get(b.stores))); diff != "" {
		t.Error(diff)
	}
}

func first[A, B any](a A, _ B) A { return a }

func TestTrimPod(t *testing.T) {
	pod := testPod("p", v1beta1.EngineComponent)
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "A", Value: "B"}}}}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ServingReadinessGate}}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
	pod.Status.Phase = corev1.PodRunning
	out, err := trimPod(pod.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	pod.ManagedFields, pod.Spec.Containers[0].Env = nil, nil
	if diff := cmp.Diff(pod, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseCrash(t *testing.T) {
	tests := map[string]struct {
		want *Crash
		err  string
	}{
		"after:pod-create:3":      {want: &Crash{After: true, Kind: WritePodCreate, N: 3}},
		"before:service-status:1": {want: &Crash{Kind: WriteServiceStatus, N: 1}},
		"after:pod-create":        {err: "needs three parts"},
		"during:pod-create:1":     {err: "starts with neither before nor after"},
		"after:pods:1":            {err: "unknown kind of write"},
		"after:pod-create:0":      {err: "N must be a number above 0"},
	}
	for text, test := range tests {
		got, err := ParseCrash(text)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: err = %v, want %q", text, err, test.err)
		}
	}
}

// TestCrash: the Nth write of the kind, sent or not sent.
func TestCrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		next := &fakeWriter{}
		sentAtDeath := -1
		w := &crashWriter{next: next, crash: Crash{After: after, Kind: WritePodCreate, N: 2}}
		w.kill = func() { sentAtDeath = max(sentAtDeath, len(next.writes)) }
		for _, k := range []WriteKind{WritePodCreate, WritePodDelete} {
			if err := w.Write(context.Background(), &Write{Kind: k, Verb: VerbCreate, Object: testPod("p", v1beta1.EngineComponent)}); err != nil {
				t.Fatal(err)
			}
		}
		if sentAtDeath >= 0 {
			t.Fatalf("died at the first pod-create or at another kind")
		}
		w.kill = func() {
			if sentAtDeath < 0 {
				sentAtDeath = len(next.writes)
			}
		}
		if err := w.Write(context.Background(), &Write{Kind: WritePodCreate, Verb: VerbCreate, Object: testPod("p", v1beta1.EngineComponent)}); err != nil {
			t.Fatal(err)
		}
		want := 2
		if after {
			want = 3
		}
		if sentAtDeath != want {
			t.Errorf("after=%v: died with %d writes sent, want %d", after, sentAtDeath, want)
		}
	}
}

func newQueue(t *testing.T) queue {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())
	t.Cleanup(q.ShutDown)
	return q
}

func drain(q queue) []string {
	var out []string
	for q.Len() > 0 {
		key, _ := q.Get()
		out = append(out, key.String())
		q.Done(key)
	}
	slices.Sort(out)
	return out
}

func handlerOf(b *bench, k kind, q queue) toolscache.ResourceEventHandler {
	if k == kindConfigMap {
		return settingsEvents(b.stores, q, func(*corev1.ConfigMap) {})
	}
	return keyEvents(b.stores, k, q)
}
