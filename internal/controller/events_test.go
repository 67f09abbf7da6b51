package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// heard records events as "name: type reason message".
type heard struct{ all []string }

var _ events.EventRecorder = &heard{}

func (h *heard) Eventf(about, _ runtime.Object, kind, reason, _, format string, args ...any) {
	h.all = append(h.all, fmt.Sprintf("%s: %s %s %s", about.(client.Object).GetName(), kind, reason, fmt.Sprintf(format, args...)))
}

// take returns what was told since the last call, in order of text.
func (h *heard) take() []string {
	out := slices.Sorted(slices.Values(h.all))
	h.all = nil
	return out
}

// TestEventsFollowTheStatus: what tells of a component's status comes after it was
// written, once, and to the object that it is about.
func TestEventsFollowTheStatus(t *testing.T) {
	b := newBench(t, testService(), testReplica(v1beta1.EngineComponent), testReplica(v1beta1.DecoderComponent))
	h := &heard{}
	b.recorder = h
	told := []core.Event{
		{Reason: "OnTheService", Message: "m", Warning: true},
		{Object: v1beta1.EngineComponent, Reason: "OnTheReplica", Message: "m"},
	}
	status := &v1beta1.InferenceReplicaStatus{Replicas: 1, ObservedGeneration: 2}
	b.decision = core.Decision{
		Events: []core.Event{{Reason: "OfTheService", Message: "m"}},
		// Not urgent: the events make it so.
		Components: []core.ComponentDecision{{Type: v1beta1.EngineComponent, ReplicaStatus: status, Events: told}},
	}
	b.states.of(testKey).replicaWritten[v1beta1.EngineComponent] = b.clock.Now()
	b.writer.answer = func(w *Write) error {
		if w.Kind == WriteReplicaStatus {
			return conflict(w)
		}
		return nil
	}
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"svc: Normal OfTheService m"}, h.take()); diff != "" {
		t.Errorf("without the status (-want +got):\n%s", diff)
	}
	b.writer.answer = nil
	if _, err := b.next(t); err != nil {
		t.Fatal(err)
	}
	want := []string{"svc-engine: Normal OnTheReplica m", "svc: Normal OfTheService m", "svc: Warning OnTheService m"}
	if diff := cmp.Diff(want, h.take()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if indexOf(b.writer.log(), "replica-status patch svc-engine") < 0 {
		t.Errorf("the status was held back: %q", b.writer.log())
	}

	// With the service gone its replica hears.
	if err := b.fakes[kindService].Delete(testService()); err != nil {
		t.Fatal(err)
	}
	b.decision.Components[0].ReplicaStatus = nil
	if _, err := b.next(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"svc-engine: Normal OnTheReplica m", "svc-engine: Warning OnTheService m"}, h.take()); diff != "" {
		t.Errorf("without a service (-want +got):\n%s", diff)
	}
}

// TestUndecodableRowsAreToldOnce for as long as they stay so.
func TestUndecodableRowsAreToldOnce(t *testing.T) {
	replica := testReplica(v1beta1.EngineComponent)
	replica.Status.InstanceStatusEncoding = "ColumnarV3"
	b := newBench(t, testService(), replica)
	h := &heard{}
	b.recorder = h
	const rowsOfTomorrow = `svc-engine: Warning InstanceStatusDecodeFailed encoding_unknown: status.instanceStatusEncoding: ` +
		`encoding "ColumnarV3" is not known to this release; a newer manager may have written it (encoding_unknown); its pods and its status ` +
		`are left alone until the Instances can be read; correct the field, or run the release of the manager that wrote it`
	for i, step := range []struct {
		reason string
		want   []string
	}{
		{"encoding_unknown", []string{rowsOfTomorrow}},
		{"encoding_unknown", nil},
		{"", nil},
		{"encoding_unknown", []string{rowsOfTomorrow}},
	} {
		b.decision.Components = []core.ComponentDecision{{Type: v1beta1.EngineComponent, CodecError: step.reason}}
		if _, err := b.next(t); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, h.take()); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}

	limited := replica.DeepCopy()
	limited.Status.InstanceStatusEncoding = v1beta1.InstanceStatusColumnarV2
	limited.Status.InstanceStatusColumns = &v1beta1.InstanceStatusColumns{Members: "0-20000"}
	b.put(t, limited)
	b.decision.Components[0].CodecError = "cardinality_limit"
	if _, err := b.next(t); err != nil {
		t.Fatal(err)
	}
	if got := h.take(); len(got) != 1 || !strings.Contains(got[0], "raise the setting omenativeStatus.maxDecodedInstances, now 20000") {
		t.Errorf("told %q", got)
	}
	// Rows that could not be written are in no stored object.
	b.put(t, testReplica(v1beta1.EngineComponent))
	b.decision.Components[0].CodecError = "encode"
	if _, err := b.next(t); err != nil || len(h.take()) > 0 {
		t.Errorf("told of rows that are fine: %v", err)
	}
}

// TestStatusThatDoesNotFit is told once, retried at a growing pace, and authorizes nothing.
func TestStatusThatDoesNotFit(t *testing.T) {
	etcd := apierrors.NewInternalError(errors.New("etcdserver: request is too large"))
	etcd.ErrStatus.Message = "etcdserver: request is too large"
	grpc := apierrors.NewInternalError(errors.New("x"))
	grpc.ErrStatus.Message = "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097200 vs. 2097152)"
	for name, answer := range map[string]error{
		"API server": apierrors.NewRequestEntityTooLargeError("limit is 3145728"), "etcd": etcd, "client of etcd": grpc,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, testService(), testReplica(v1beta1.EngineComponent))
			h := &heard{}
			b.recorder = h
			b.decision.Components = []core.ComponentDecision{{
				Type: v1beta1.EngineComponent, ReplicaStatusUrgent: true,
				ReplicaStatus: &v1beta1.InferenceReplicaStatus{Replicas: 9, ObservedGeneration: 2, InstanceStatuses: []v1beta1.InstanceStatus{{Index: 3}}},
				Pods:          []core.PodAction{{Verb: core.PodCreate, Pod: testPod("a", v1beta1.EngineComponent)}},
			}}
			fits := false
			b.writer.answer = func(w *Write) error {
				if w.Kind == WriteReplicaStatus && !fits {
					return answer
				}
				return nil
			}
			var all []string
			for range 3 {
				again, err := b.next(t)
				if err == nil || again == 0 {
					t.Fatalf("again after %v, %v", again, err)
				}
				if got := b.writer.log(); len(creations(b)) > 0 {
					t.Fatalf("wrote %q", got)
				}
				all = append(all, slices.DeleteFunc(h.take(), func(e string) bool { return strings.Contains(e, "WriteRefused") })...)
			}
			if len(b.live.reads) > 0 {
				t.Errorf("looked for a write that can't have happened: %v", b.live.reads)
			}
			if len(all) != 1 || !strings.HasPrefix(all[0], "svc-engine: Warning StatusSizeExceeded the status of 9 Instances has ") ||
				!strings.Contains(all[0], " bytes in encoding DenseV1") || !strings.Contains(all[0], "instanceStatusEncoding: ColumnarV2") {
				t.Errorf("told %q", all)
			}
			fits = true
			if _, err := b.next(t); err != nil {
				t.Fatal(err)
			}
			fits = false
			if _, err := b.next(t); err == nil || !strings.Contains(strings.Join(h.take(), "\n"), "Warning StatusSizeExceeded") {
				t.Error("the next episode is not told")
			}
		})
	}
}

// TestConversionIsTold by the write that makes it.
func TestConversionIsTold(t *testing.T) {
	stored := testReplica(v1beta1.EngineComponent)
	stored.Status.Replicas = 4
	b := newBench(t, testService(), stored)
	h := &heard{}
	b.recorder = h
	columns := &v1beta1.InferenceReplicaStatus{Replicas: 5, ObservedGeneration: 2,
		InstanceStatusEncoding: v1beta1.InstanceStatusColumnarV2, InstanceStatusColumns: &v1beta1.InstanceStatusColumns{Members: "0-4"}}
	b.decision.Components = []core.ComponentDecision{{Type: v1beta1.EngineComponent, ReplicaStatus: columns, ReplicaStatusUrgent: true}}
	b.writer.answer = conflict
	if _, err := b.next(t); err != nil || len(h.take()) > 0 {
		t.Errorf("told of a write that did not happen: %v", err)
	}
	b.writer.answer = nil
	if _, err := b.next(t); err != nil {
		t.Fatal(err)
	}
	want := []string{"svc-engine: Normal InstanceStatusConverted the rows of 5 Instances are stored as ColumnarV2 now, and were as DenseV1"}
	if diff := cmp.Diff(want, h.take()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A replica whose first rows are columns was converted from nothing.
	empty := testReplica(v1beta1.EngineComponent)
	b.put(t, empty)
	if _, err := b.next(t); err != nil || len(h.take()) > 0 {
		t.Errorf("told of the first rows: %v", err)
	}
}
