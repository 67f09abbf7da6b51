package rows

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// rollout20k is the largest component in the middle of its roll: 500 open
// operations, 50 failures and one migration.
func rollout20k() []v1beta1.InstanceStatus {
	at := metav1.NewTime(time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC))
	deadline := metav1.NewTime(at.Add(30 * time.Minute))
	rows := restingRows(20_000)
	operation := func(r *v1beta1.InstanceStatus, i int) {
		r.Phase, r.TargetRevision, r.PodCount = v1beta1.InstanceUpdating, "chat-engine-7f9c4d2b", 2
		r.Operation = &v1beta1.InstanceOperation{
			ID: fmt.Sprintf("u-%d-7f9c4d2b-1", i), Type: v1beta1.OperationUpdate, Step: v1beta1.StepSurge, StartedAt: at, LastProgressAt: at,
			Deadline: &deadline, TargetRevision: "chat-engine-7f9c4d2b", Strategy: v1beta1.SurgeThenDrain,
		}
	}
	for i := range rows {
		r := &rows[i]
		switch {
		case i%40 == 7: // 500 of 20,000, never neighbours
			operation(r, i)
		case i%400 == 11: // 50
			r.Phase, r.ServingPodCount, r.AvailablePodCount, r.Incarnation = v1beta1.InstanceFailed, 0, 0, 2
			r.LastFailure = &v1beta1.InstanceTermination{PodName: fmt.Sprintf("chat-engine-%d-default-0", i), ContainerName: "ome-container",
				Reason: "OOMKilled", ExitCode: new(int32(137)), Message: "container exceeded its memory limit", Time: &at}
		case i > 15_000: // already on the new revision
			r.RunningRevision, r.ActiveOrdinal = "chat-engine-7f9c4d2b", 1
		}
	}
	m := &rows[19_998]
	m.Phase = v1beta1.InstanceMigrating
	m.Operation = &v1beta1.InstanceOperation{
		ID: "m-19998", Type: v1beta1.OperationMigrate, Step: v1beta1.StepCreateSurge, StartedAt: at, LastProgressAt: at, Deadline: &deadline,
		SurgeIndex: new(int32(20_000)), FromNode: "node-17", HintTargetNodes: []string{"node-3", "node-4"}, RequestUUID: "0d1f4c8e-5a3b-4f0e-9a51-6a2f6f0f7c11",
	}
	return rows
}

var options20k = Options{Encoding: v1beta1.InstanceStatusColumnarV2, MaxDecoded: 20_000}

func TestTwentyThousandRowsStaySmall(t *testing.T) {
	rows := rollout20k()
	operations, failures := 0, 0
	for i := range rows {
		if rows[i].Operation != nil {
			operations++
		}
		if rows[i].LastFailure != nil {
			failures++
		}
	}
	if operations != 501 || failures != 50 {
		t.Fatalf("the fixture holds %d operations and %d failures, want 500 and one migration, and 50", operations, failures)
	}
	e, err := Encode(rows, options20k)
	if err != nil {
		t.Fatal(err)
	}
	var s v1beta1.InferenceReplicaStatus
	Apply(&s, e)
	raw, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	if e.Columns == nil || len(raw) >= 256<<10 {
		t.Errorf("%s takes %d bytes of status, the budget is %d", e.Encoding, len(raw), 256<<10)
	}
	back, err := Decode(&s, 20_000)
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(rows, back) {
		t.Error("the rows did not come back")
	}
	t.Logf("%d bytes", len(raw))
}

// The budget: both ways in 50 ms, and less than 256 KiB.
func BenchmarkEncodeDecode20k(b *testing.B) {
	rows := rollout20k()
	b.ReportAllocs()
	for b.Loop() {
		e, err := Encode(rows, options20k)
		if err != nil || e.Columns == nil {
			b.Fatal(err)
		}
		var s v1beta1.InferenceReplicaStatus
		Apply(&s, e)
		if back, err := Decode(&s, 20_000); err != nil || len(back) != len(rows) {
			b.Fatal(len(back), err)
		}
	}
	b.StopTimer()
	if e, err := Encode(rows, options20k); err == nil {
		size, _ := e.Size()
		b.ReportMetric(float64(size), "stored-bytes")
	}
}

func BenchmarkEncode20k(b *testing.B) {
	rows := rollout20k()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(rows, options20k); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode20k(b *testing.B) {
	e, err := Encode(rollout20k(), options20k)
	if err != nil {
		b.Fatal(err)
	}
	var s v1beta1.InferenceReplicaStatus
	Apply(&s, e)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(&s, 20_000); err != nil {
			b.Fatal(err)
		}
	}
}
