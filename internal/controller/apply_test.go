package controller

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// fullBench has one of everything to write.
func fullBench(t *testing.T) *bench {
	t.Helper()
	engine, decoder := testReplica(v1beta1.EngineComponent), testReplica(v1beta1.DecoderComponent)
	old := testPod("old", v1beta1.EngineComponent)
	b := newBench(t, testService(), engine, decoder, old, testPod("d", v1beta1.DecoderComponent), testCoreService("gone"), testCoreService("changed"))

	next := engine.DeepCopy()
	next.Spec.Replicas = ptr.To[int32](3)
	changed := testCoreService("changed")
	changed.Spec.PublishNotReadyAddresses = true
	b.decision = core.Decision{
		Status: &v1beta1.InferenceServiceStatus{ObservedGeneration: 3}, StatusUrgent: true,
		Components: []core.ComponentDecision{{
			Type:            v1beta1.EngineComponent,
			CreateRevisions: []*appsv1.ControllerRevision{testRevision("svc-engine-new", v1beta1.EngineComponent)},
			DeleteRevisions: []*appsv1.ControllerRevision{testRevision("svc-engine-old", v1beta1.EngineComponent)},
			UpdateReplica:   next,
			ReplicaStatus:   &v1beta1.InferenceReplicaStatus{Replicas: 1}, ReplicaStatusUrgent: true,
			Pods: []core.PodAction{
				{Verb: core.PodCreate, Pod: testPod("new", v1beta1.EngineComponent)},
				{Verb: core.PodUnserve, Pod: old, Reason: "Replaced"},
			},
			RemoveReplicaAnnotations: map[string]string{v1beta1.ReleaseHeldRevisionAnnotation: "0a1b2c3d"},
		}, {
			Type:          v1beta1.DecoderComponent,
			ReplicaStatus: &v1beta1.InferenceReplicaStatus{Replicas: 1, ObservedGeneration: 2}, ReplicaStatusUrgent: true,
			Pods: []core.PodAction{{Verb: core.PodDelete, Pod: testPod("d", v1beta1.DecoderComponent)}},
		}},
		CreateServices:    []*corev1.Service{testCoreService("created")},
		UpdateServices:    []*corev1.Service{changed},
		DeleteServices:    []*corev1.Service{testCoreService("gone")},
		RemoveAnnotations: map[string]string{"ome.io/rollout-promote": "abc123"},
	}
	return b
}

func TestWritesInOrder(t *testing.T) {
	b := fullBench(t)
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	got := b.writer.log()
	// Side by side means in any order, so the log is compared by stage.
	stages := []string{
		"revision create svc-engine-new", "service-status patch svc",
		"replica patch svc-engine", "replica-status patch svc-engine", "pod-", "revision delete svc-engine-old",
		"service ", "replica-annotation patch svc-engine", "annotation patch svc",
	}
	last := -1
	for _, stage := range stages {
		at := indexOf(engineLinesAndShared(got), stage)
		if at <= last {
			t.Errorf("%q is at %d, not after %d, in %q", stage, at, last, got)
		}
		last = at
	}
	want := []string{
		"annotation patch svc", "pod-create create new", "pod-delete delete d", "pod-gate patch old",
		"replica patch svc-engine", "replica-annotation patch svc-engine",
		"replica-status patch svc-decoder", "replica-status patch svc-engine",
		"revision create svc-engine-new", "revision delete svc-engine-old",
		"service create created", "service delete gone", "service patch changed", "service-status patch svc",
	}
	sortedGot := slices.Sorted(slices.Values(got))
	if diff := cmp.Diff(want, sortedGot); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func engineLinesAndShared(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		return strings.HasSuffix(l, "-decoder") || strings.HasSuffix(l, " d")
	})
}

// TestDependencies fails one kind of write at a time: what depends on it must
// not be sent, and everything else must.
func TestDependencies(t *testing.T) {
	tests := map[string]struct {
		fail    string // the line to fail
		missing []string
	}{
		"revision": {
			fail:    "revision create svc-engine-new",
			missing: []string{"pod-create create new", "pod-gate patch old", "replica patch svc-engine", "replica-annotation patch svc-engine", "replica-status patch svc-engine", "revision delete svc-engine-old"},
		},
		"service status": {
			fail: "service-status patch svc",
			missing: []string{
				"annotation patch svc", "pod-create create new", "pod-delete delete d", "pod-gate patch old",
				"replica patch svc-engine", "replica-annotation patch svc-engine", "replica-status patch svc-decoder", "replica-status patch svc-engine",
				"revision delete svc-engine-old", "service create created", "service delete gone", "service patch changed",
			},
		},
		"replica": {
			fail:    "replica patch svc-engine",
			missing: []string{"pod-create create new", "pod-gate patch old", "replica-annotation patch svc-engine", "replica-status patch svc-engine", "revision delete svc-engine-old"},
		},
		"replica status": {
			fail:    "replica-status patch svc-engine",
			missing: []string{"pod-create create new", "pod-gate patch old", "replica-annotation patch svc-engine", "revision delete svc-engine-old"},
		},
		"a sibling's status":     {fail: "replica-status patch svc-decoder", missing: []string{"pod-delete delete d"}},
		"a pod":                  {fail: "pod-gate patch old", missing: []string{"revision delete svc-engine-old"}},
		"a Service":              {fail: "service create created"},
		"an annotation":          {fail: "annotation patch svc"},
		"a replica's annotation": {fail: "replica-annotation patch svc-engine"},
	}
	whole := fullBench(t)
	if _, err := whole.pass(t); err != nil {
		t.Fatal(err)
	}
	all := slices.Sorted(slices.Values(whole.writer.log()))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := fullBench(t)
			b.writer.answer = func(w *Write) error {
				if string(w.Kind)+" "+string(w.Verb)+" "+w.Object.GetName() == test.fail {
					return conflict(w)
				}
				return nil
			}
			again, err := b.pass(t)
			if err != nil || again != conflictFirst {
				t.Errorf("a conflict must requeue quietly: after %v, %v", again, err)
			}
			want := slices.DeleteFunc(slices.Clone(all), func(l string) bool { return slices.Contains(test.missing, l) })
			if diff := cmp.Diff(want, slices.Sorted(slices.Values(b.writer.log()))); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	gr := schema.GroupResource{Resource: "pods"}
	invalid := func(message string, causes ...metav1.StatusCause) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422, Message: message, Details: &metav1.StatusDetails{Causes: causes}}}
	}
	patch := &Write{Verb: VerbPatch, PatchType: types.MergePatchType}
	jsonPatch := &Write{Verb: VerbPatch, PatchType: types.JSONPatchType}
	create, remove := &Write{Verb: VerbCreate}, &Write{Verb: VerbDelete}
	tests := map[string]struct {
		w    *Write
		err  error
		want outcome
	}{
		"none":                         {patch, nil, written},
		"conflict":                     {patch, apierrors.NewConflict(gr, "p", errors.New("x")), conflicted},
		"create exists":                {create, apierrors.NewAlreadyExists(gr, "p"), conflicted},
		"patch of nothing":             {patch, apierrors.NewNotFound(gr, "p"), conflicted},
		"create in no namespace":       {create, apierrors.NewNotFound(gr, "p"), refused},
		"delete of nothing":            {remove, apierrors.NewNotFound(gr, "p"), written},
		"delete of another UID":        {remove, apierrors.NewConflict(gr, "p", errors.New("uid")), conflicted},
		"failed test":                  {jsonPatch, invalid("the server rejected our request due to an error in our request"), conflicted},
		"a webhook's answer to a test": {jsonPatch, invalid("admission webhook \"x\" denied the request"), refused},
		"schema violation":             {jsonPatch, invalid("bad", metav1.StatusCause{Field: "spec"}), refused},
		"invalid merge patch":          {patch, invalid("bad"), refused},
		"forbidden":                    {create, apierrors.NewForbidden(gr, "p", errors.New("quota")), refused},
		"too many requests":            {create, apierrors.NewTooManyRequests("later", 1), failed},
		"too large for etcd":           {patch, &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "etcdserver: request is too large"}}, refused},
		"server timeout":               {create, apierrors.NewServerTimeout(gr, "create", 1), doubtful},
		"internal error":               {create, apierrors.NewInternalError(errors.New("x")), doubtful},
		"connection lost":              {create, errors.New("read tcp: connection reset by peer"), doubtful},
		"our own deadline":             {create, context.DeadlineExceeded, doubtful},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := classify(test.w, test.err); got != test.want {
				t.Errorf("classify(%v) = %v, want %v", test.err, got.result(), test.want.result())
			}
		})
	}
}

// TestStatusPatch: the status patch carries the version that the spec's write
// returned, and the generation that it returned.
func TestStatusPatch(t *testing.T) {
	b := fullBench(t)
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	var spec, status map[string]any
	var after string
	for _, w := range b.writer.writes {
		switch {
		case w.Kind == WriteReplica:
			after = w.Object.GetResourceVersion()
			mustUnmarshal(t, w.Patch, &spec)
		case w.Kind == WriteReplicaStatus && w.Object.GetName() == "svc-engine":
			mustUnmarshal(t, w.Patch, &status)
		}
	}
	if diff := cmp.Diff(map[string]any{"metadata": map[string]any{"resourceVersion": "60"}, "spec": map[string]any{"replicas": 3.0}}, spec); diff != "" {
		t.Errorf("spec patch (-want +got):\n%s", diff)
	}
	// The fake API server answers the spec's write with generation 7.
	want := map[string]any{
		"metadata": map[string]any{"resourceVersion": after},
		"status":   map[string]any{"observedGeneration": 7.0, "replicas": 1.0},
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("status patch (-want +got):\n%s", diff)
	}
}

func TestGatePatch(t *testing.T) {
	b := fullBench(t)
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	for _, w := range b.writer.writes {
		if w.Kind != WritePodGate {
			continue
		}
		const want = `{"metadata":{"resourceVersion":"70","uid":"old-uid"},"status":{"conditions":[{"type":"ome.io/serving","status":"False","reason":"Replaced","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`
		if diff := cmp.Diff(want, string(w.Patch)); diff != "" || w.Subresource != "status" || w.PatchType != types.StrategicMergePatchType {
			t.Errorf("gate patch to %q (-want +got):\n%s", w.Subresource, diff)
		}
	}
}

// TestMailboxRemoval: a request goes only with the status that answers it, and only as
// the request and from the object that were read.
func TestMailboxRemoval(t *testing.T) {
	b := fullBench(t)
	b.decision.Components[0].UpdateReplica = nil
	b.decision.Components[0].ReplicaStatusUrgent = false
	b.decision.Components[0].ReplicaStatus.ObservedGeneration = 2
	b.states.of(testKey).replicaWritten[v1beta1.EngineComponent] = b.clock.Now() // a mere counter would wait now
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	log := b.writer.log()
	if status, removal := indexOf(log, "replica-status patch svc-engine"), indexOf(log, "replica-annotation"); status < 0 || removal < status {
		t.Errorf("status at %d, removal at %d in %q", status, removal, log)
	}
	want := map[WriteKind]string{
		WriteReplicaAnnotation: `[{"op":"test","path":"/metadata/uid","value":"engine-uid"},` +
			`{"op":"test","path":"/metadata/annotations/ome.io~1release-held-revision","value":"0a1b2c3d"},` +
			`{"op":"remove","path":"/metadata/annotations/ome.io~1release-held-revision"}]`,
		WriteAnnotation: `[{"op":"test","path":"/metadata/uid","value":"svc-uid"},` +
			`{"op":"test","path":"/metadata/annotations/ome.io~1rollout-promote","value":"abc123"},` +
			`{"op":"remove","path":"/metadata/annotations/ome.io~1rollout-promote"}]`,
	}
	for _, w := range b.writer.writes {
		if patch, ok := want[w.Kind]; ok {
			if diff := cmp.Diff(patch, string(w.Patch)); diff != "" || w.PatchType != types.JSONPatchType || w.Subresource != "" {
				t.Errorf("%s (-want +got):\n%s", w.Kind, diff)
			}
		}
	}

	// With nothing to write in the status, nothing keeps it.
	b = newBench(t, testService(), testReplica(v1beta1.EngineComponent))
	b.decision.Components = []core.ComponentDecision{{Type: v1beta1.EngineComponent, RemoveReplicaAnnotations: map[string]string{"a": "1", "b": "2"}}}
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"replica-annotation patch svc-engine", "replica-annotation patch svc-engine"}, b.writer.log()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDeletesCarryUIDs(t *testing.T) {
	b := fullBench(t)
	b.decision.Components[0].Pods = append(b.decision.Components[0].Pods, core.PodAction{Verb: core.PodKill, Pod: testPod("killed", v1beta1.EngineComponent)})
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	deletes := 0
	for _, w := range b.writer.writes {
		if w.Verb != VerbDelete {
			continue
		}
		deletes++
		if w.UID == "" {
			t.Errorf("delete of %s has no UID", w.Object.GetName())
		}
		if killed := w.Object.GetName() == "killed"; killed != (w.GracePeriod != nil && *w.GracePeriod == 0) {
			t.Errorf("delete of %s has grace period %v", w.Object.GetName(), w.GracePeriod)
		}
	}
	if deletes != 4 {
		t.Errorf("%d deletes, want 4", deletes)
	}
}

// TestQuietStatus: counters wait, everything else does not, and the wait has a wake.
func TestQuietStatus(t *testing.T) {
	b := newBench(t, testService(), testReplica(v1beta1.EngineComponent))
	write := func(n int32, urgent bool) (time.Duration, []string) {
		t.Helper()
		b.writer.reset()
		b.decision = core.Decision{
			Status: &v1beta1.InferenceServiceStatus{ObservedGeneration: int64(n)}, StatusUrgent: urgent,
			Components: []core.ComponentDecision{{
				Type: v1beta1.EngineComponent, ReplicaStatus: &v1beta1.InferenceReplicaStatus{Replicas: n, ObservedGeneration: 2}, ReplicaStatusUrgent: urgent,
			}},
		}
		for _, f := range b.fakes {
			f.version = "9000"
		}
		again, err := b.pass(t)
		if err != nil {
			t.Fatal(err)
		}
		return again, b.writer.log()
	}
	both := []string{"service-status patch svc", "replica-status patch svc-engine"}
	steps := []struct {
		after  time.Duration
		urgent bool
		again  time.Duration
		writes []string
	}{
		{0, false, 0, both}, // the first one: nobody knows when the last was
		{time.Second, false, 14 * time.Second, nil},
		{4 * time.Second, false, 10 * time.Second, nil},
		{time.Second, true, 0, both},
		{time.Second, false, 14 * time.Second, nil},
		{14 * time.Second, false, 0, both},
	}
	for i, step := range steps {
		b.clock.Step(step.after)
		again, writes := write(int32(i+1), step.urgent)
		if diff := cmp.Diff(step.writes, writes); diff != "" {
			t.Errorf("step %d: writes (-want +got):\n%s", i, diff)
		}
		if again != step.again {
			t.Errorf("step %d: looks again after %v, want %v", i, again, step.again)
		}
	}
}

func TestNothingToWrite(t *testing.T) {
	isvc, replica := testService(), testReplica(v1beta1.EngineComponent)
	b := newBench(t, isvc, replica)
	b.decision = core.Decision{
		Status: isvc.Status.DeepCopy(), StatusUrgent: true,
		Components: []core.ComponentDecision{{
			Type: v1beta1.EngineComponent, UpdateReplica: replica.DeepCopy(), ReplicaStatus: replica.Status.DeepCopy(), ReplicaStatusUrgent: true,
		}},
	}
	if again, err := b.pass(t); err != nil || again != 0 {
		t.Errorf("again %v, %v", again, err)
	}
	if got := b.writer.log(); len(got) > 0 {
		t.Errorf("equal objects were written: %q", got)
	}
}

func TestDecisionsMayNotWriteToTheirInput(t *testing.T) {
	b := newBench(t, testService())
	b.decide = func(w core.World) core.Decision {
		w.Service.Annotations["x"] = "y"
		return core.Decision{}
	}
	if _, err := b.pass(t); err == nil || !strings.Contains(err.Error(), "deciding changed its input") {
		t.Errorf("err = %v", err)
	}
}

func mustUnmarshal(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// TestFailuresKeepTheWake: a pass with errors is tried again with a growing delay,
// and no later than the decision asked for.
func TestFailuresKeepTheWake(t *testing.T) {
	b := creating(t)
	b.writer.answer = func(w *Write) error {
		return apierrors.NewTooManyRequests("later", 1)
	}
	fail := func(wake time.Duration) time.Duration {
		t.Helper()
		b.clock.Step(time.Minute)
		b.decision.Wake = time.Time{}
		if wake > 0 {
			b.decision.Wake = b.clock.Now().Add(wake)
		}
		again, err := b.pass(t)
		if err == nil {
			t.Fatal("no error")
		}
		return again
	}
	for i, step := range []struct{ wake, again time.Duration }{
		{0, 100 * time.Millisecond},
		{time.Hour, 200 * time.Millisecond},
		{250 * time.Millisecond, 250 * time.Millisecond}, // 400ms by the backoff
		{time.Millisecond, paceLeast},
		{0, 1600 * time.Millisecond},
	} {
		if again := fail(step.wake); again != step.again {
			t.Errorf("failure %d: again after %v, want %v", i, again, step.again)
		}
	}
	for range 10 {
		fail(0)
	}
	if again := fail(time.Hour); again != failureLast {
		t.Errorf("again after %v, want %v", again, failureLast)
	}
	// What reaches the queue has a time and no error: the queue would forget the one for the other.
	b.clock.Step(time.Minute)
	b.decision.Wake = b.clock.Now().Add(3 * time.Second)
	if res, err := b.Reconcile(t.Context(), testKey); err != nil || res.RequeueAfter != 3*time.Second {
		t.Errorf("result %+v, %v", res, err)
	}
	b.writer.answer = nil
	b.clock.Step(time.Minute)
	b.decision.Wake = time.Time{}
	if again, err := b.pass(t); err != nil || again != 0 {
		t.Errorf("a pass without errors looks again after %v: %v", again, err)
	}
	b.writer.answer = func(*Write) error { return apierrors.NewTooManyRequests("later", 1) }
	for _, f := range b.fakes {
		f.version = "9000"
	}
	if again := fail(0); again != failureFirst {
		t.Errorf("the first failure after a good pass: again after %v", again)
	}
}
