package controller_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rows"
)

// TestTwelveThousandRowsOnAnAPIServer stores a replica in the middle of a big roll.
// As columns it fits into an object with room to spare; as a list of rows the API
// server refuses it, and what was stored stays.
func TestTwelveThousandRowsOnAnAPIServer(t *testing.T) {
	const namespace, count = "many-rows", 12_000
	c := newClient(t)
	create(t, c, namespaceNamed(namespace))
	replica := &v1beta1.InferenceReplica{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tide-engine"},
		Spec: v1beta1.InferenceReplicaSpec{
			Component: v1beta1.EngineComponent, Replicas: new(int32(count)),
			Runners: []v1beta1.Runner{{Name: v1beta1.RunnerDefault, Size: 1, Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ome-container", Image: "lab.ome.io/engine:v1"}}},
			}}},
		},
	}
	create(t, c, replica)

	want := bigRoll(count)
	store := func(encoding v1beta1.InstanceStatusEncoding) (int, error) {
		encoded, err := rows.Encode(want, rows.Options{Encoding: encoding, MaxDecoded: 20_000})
		if err != nil {
			t.Fatal(err)
		}
		if encoded.Encoding != encoding {
			t.Fatalf("%d rows are written as %s, want %s", count, encoded.Encoding, encoding)
		}
		size, err := encoded.Size()
		if err != nil {
			t.Fatal(err)
		}
		next := replica.DeepCopy()
		next.Status.Replicas = count
		rows.Apply(&next.Status, encoded)
		return size, c.Status().Patch(t.Context(), next, client.MergeFrom(replica))
	}

	columns, err := store(v1beta1.InstanceStatusColumnarV2)
	if err != nil {
		t.Fatalf("%d rows as %d bytes of columns: %v", count, columns, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(replica), replica); err != nil {
		t.Fatal(err)
	}
	whole, err := json.Marshal(replica)
	if err != nil {
		t.Fatal(err)
	}
	if rows.EncodingOf(&replica.Status) != v1beta1.InstanceStatusColumnarV2 || replica.Status.InstanceStatuses != nil {
		t.Fatalf("stored as %s with %d listed rows", rows.EncodingOf(&replica.Status), len(replica.Status.InstanceStatuses))
	}
	got, err := rows.Decode(&replica.Status, 20_000)
	if err != nil {
		t.Fatalf("what the API server gives back: %v", err)
	}
	if !cmp.Equal(want, got) {
		t.Error("the rows came back changed")
	}
	version := replica.ResourceVersion

	list, err := store(v1beta1.InstanceStatusDenseV1)
	if err == nil {
		t.Fatalf("%d rows as %d bytes of a list were accepted, so this size needs no columns", count, list)
	}
	if text := strings.ToLower(err.Error()); !strings.Contains(text, "too large") && !strings.Contains(text, "larger than max") {
		t.Errorf("refused for another reason than size: %v", err)
	}
	t.Logf("%d rows: %d bytes as columns, %d bytes for the whole object; %d bytes as a list: %v", count, columns, len(whole), list, err)

	if err := c.Get(t.Context(), client.ObjectKeyFromObject(replica), replica); err != nil {
		t.Fatal(err)
	}
	if replica.ResourceVersion != version || replica.Status.InstanceStatusColumns == nil {
		t.Errorf("the refused write changed the object: version %s, was %s", replica.ResourceVersion, version)
	}
}

// bigRoll is a component in the middle of its roll: one row in fifty is moving,
// those above them have moved.
func bigRoll(n int) []v1beta1.InstanceStatus {
	const was, next = "tide-engine-0a1b2c3d", "tide-engine-7f9c4d2b"
	at := metav1.NewTime(time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC))
	out := make([]v1beta1.InstanceStatus, n)
	for i := range out {
		r := &out[i]
		*r = v1beta1.InstanceStatus{
			Index: int32(i), Phase: v1beta1.InstanceReady, Incarnation: 1, RunningRevision: was,
			PodCount: 1, ServingPodCount: 1, AvailablePodCount: 1, Admitted: true,
		}
		switch {
		case i%50 == 7:
			r.Phase, r.TargetRevision, r.PodCount = v1beta1.InstanceUpdating, next, 2
			r.Operation = &v1beta1.InstanceOperation{
				ID: fmt.Sprintf("0123456789ab-engine-%d", i), Type: v1beta1.OperationUpdate, Step: v1beta1.StepSurge,
				StartedAt: at, LastProgressAt: at, TargetRevision: next, Strategy: v1beta1.SurgeThenDrain,
			}
		case i > n/2:
			r.RunningRevision, r.ActiveOrdinal = next, 1
		}
	}
	return out
}
