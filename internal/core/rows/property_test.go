package rows

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
)

func drawRows(t *rapid.T) []v1beta1.InstanceStatus {
	indexes := rapid.SliceOfNDistinct(rapid.OneOf(rapid.Int32Range(0, 60), rapid.Int32Range(0, 1<<31-1)), 1, 40, rapid.ID[int32]).Draw(t, "indexes")
	phases := []v1beta1.InstancePhase{v1beta1.InstancePending, v1beta1.InstanceCreating, v1beta1.InstanceReady, v1beta1.InstanceUpdating,
		v1beta1.InstanceRestarting, v1beta1.InstanceMigrating, v1beta1.InstanceFailed, v1beta1.InstanceDeleting}
	revisions := []string{"", "a-engine-00000001", "a-engine-00000002", "B-engine", "ü"}
	at := metav1.NewTime(time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC))
	rows := make([]v1beta1.InstanceStatus, len(indexes))
	for i, index := range indexes {
		r := v1beta1.InstanceStatus{
			Index: index, Phase: rapid.SampledFrom(phases).Draw(t, "phase"),
			Incarnation:     rapid.SampledFrom([]int64{0, 1, 2, -3, 1 << 60}).Draw(t, "incarnation"),
			RunningRevision: rapid.SampledFrom(revisions).Draw(t, "running"), TargetRevision: rapid.SampledFrom(revisions).Draw(t, "target"),
			PodCount: rapid.Int32Range(0, 3).Draw(t, "pods"), ServingPodCount: rapid.Int32Range(0, 3).Draw(t, "serving"),
			AvailablePodCount: rapid.Int32Range(0, 3).Draw(t, "available"),
			Admitted:          rapid.Bool().Draw(t, "admitted"), ActiveOrdinal: rapid.Int32Range(0, 1).Draw(t, "ordinal"),
		}
		switch rapid.IntRange(0, 6).Draw(t, "record") {
		case 0:
			r.Conditions = []metav1.Condition{{Type: "Drained", Status: "True", Reason: "R", Message: "<&>", LastTransitionTime: at}}
		case 1:
			r.ReadySince = &at
		case 2:
			r.Operation = &v1beta1.InstanceOperation{ID: "x", Type: v1beta1.OperationUpdate, Step: "Surge", StartedAt: at, LastProgressAt: at}
		case 3:
			r.LastFailure = &v1beta1.InstanceTermination{PodName: "p"}
		case 4:
			r.Announced = []string{"InstanceFailed@x"}
		}
		rows[i] = r
	}
	return rows
}

// Both forms give the rows back, through JSON as the API server stores it.
func TestPropertyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		for _, form := range []Encoded{
			{Encoding: v1beta1.InstanceStatusDenseV1, Rows: normalized(rows)},
			{Encoding: v1beta1.InstanceStatusColumnarV2, Columns: columnsOf(normalized(rows))},
		} {
			var s v1beta1.InferenceReplicaStatus
			Apply(&s, form)
			raw, err := json.Marshal(&s)
			if err != nil {
				t.Fatal(err)
			}
			var stored v1beta1.InferenceReplicaStatus
			if err := json.Unmarshal(raw, &stored); err != nil {
				t.Fatal(err)
			}
			back, err := Decode(&stored, len(rows))
			if err != nil {
				t.Fatalf("%s does not decode: %v", raw, err)
			}
			if diff := cmp.Diff(rows, back); diff != "" {
				t.Fatalf("%s (-rows +back):\n%s", form.Encoding, diff)
			}
			if form.Columns != nil {
				if diff := cmp.Diff(stored.InstanceStatusColumns, columnsOf(back)); diff != "" {
					t.Fatalf("columns are not canonical (-stored +again):\n%s", diff)
				}
				if len(rows) > 1 {
					if _, err := Decode(&stored, len(rows)-1); err == nil || err.(*DecodeError).Reason != CardinalityLimit {
						t.Fatalf("one row above the bound: error %v", err)
					}
				}
			}
		}
	})
}

// The floor that spares writing a list out is never above its real size.
func TestPropertyFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := normalized(drawRows(t))
		raw, err := json.Marshal(rows)
		if err != nil {
			t.Fatal(err)
		}
		if floor := denseFloor(rows); floor > len(raw) {
			t.Fatalf("floor %d, size %d: %s", floor, len(raw), raw)
		}
	})
}

// One changed byte in stored columns is refused, or is itself canonical.
func TestPropertyChangedByte(t *testing.T) {
	refused, accepted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var s v1beta1.InferenceReplicaStatus
		Apply(&s, Encoded{Columns: columnsOf(normalized(drawRows(t)))})
		raw, err := json.Marshal(&s)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			at := rapid.IntRange(0, len(raw)-1).Draw(t, "at")
			changed := append([]byte(nil), raw...)
			changed[at] = rapid.SampledFrom([]byte(`0123456789,-"[]:aRe `)).Draw(t, "byte")
			var stored v1beta1.InferenceReplicaStatus
			if json.Unmarshal(changed, &stored) != nil {
				continue
			}
			rows, err := Decode(&stored, 4096)
			if err != nil {
				refused++
				continue
			}
			accepted++
			if stored.InstanceStatusColumns == nil {
				continue
			}
			if diff := cmp.Diff(stored.InstanceStatusColumns, columnsOf(rows)); diff != "" {
				t.Fatalf("%s decodes and is not canonical (-stored +again):\n%s", changed, diff)
			}
		}
	})
	if refused == 0 || accepted == 0 {
		t.Errorf("%d changes refused and %d accepted: the test reaches only one side", refused, accepted)
	}
}
