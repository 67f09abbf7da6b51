package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// resting is a service with two engines that is as it should be.
func resting(t *testing.T) (*snapshot, expectation) {
	t.Helper()
	s := &snapshot{replicas: map[string]replica{}}
	text := `{"metadata":{"name":"pd","generation":3},"spec":{"a":"b"},"status":{"observedGeneration":3,"conditions":[{"type":"Ready","status":"True"}]}}`
	var r replica
	replicaText := `{"metadata":{"name":"pd-engine","generation":2,"uid":"u"},
		"spec":{"component":"engine","runners":[{"name":"default","template":{"spec":{"containers":[{"name":"c","image":"i:v2"}]}}}]},
		"status":{"observedGeneration":2,"replicas":2,"servingReplicas":2,"updatedReplicas":2,"currentRevision":"pd-engine-h","updateRevision":"pd-engine-h",
		"instanceStatuses":[
			{"index":0,"phase":"Ready","incarnation":1,"runningRevision":"pd-engine-h","podCount":1,"servingPodCount":1},
			{"index":1,"phase":"Ready","incarnation":2,"runningRevision":"pd-engine-h","podCount":1,"servingPodCount":1,"activeOrdinal":1}]}}`
	for from, into := range map[string]any{text: &s.service, replicaText: &r} {
		if err := json.Unmarshal([]byte(from), into); err != nil {
			t.Fatal(err)
		}
	}
	r.Spec["replicas"] = int64(2) // as the client decodes a number
	s.replicas["engine"] = r
	owner := []metav1.OwnerReference{{Kind: "InferenceReplica", Name: "pd-engine", UID: "u", Controller: ptr.To(true)}}
	for i, ordinal := range []string{"0", "1"} {
		s.pods = append(s.pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "pd-engine-" + strconv.Itoa(i), OwnerReferences: owner, Labels: map[string]string{
				labelService: "pd", labelComponent: "engine", labelIndex: strconv.Itoa(i), labelOrdinal: ordinal, labelLife: strconv.Itoa(i + 1), labelRevision: "h"}},
			Spec:   corev1.PodSpec{Containers: []corev1.Container{{Image: "i:v2"}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		})
	}
	s.revisions = []appsv1.ControllerRevision{
		{ObjectMeta: metav1.ObjectMeta{Name: "pd-engine-g", OwnerReferences: owner}, Data: runtime.RawExtension{Raw: []byte("1")}},
		{ObjectMeta: metav1.ObjectMeta{Name: "pd-engine-h", OwnerReferences: owner}, Data: runtime.RawExtension{Raw: []byte("2")}},
	}
	for _, name := range []string{"pd", "pd-engine", "pd-engine-headless", "pd-engine-rev-h", "pd-engine-rev-h-headless"} {
		s.services = append(s.services, corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return s, expectation{
		spec: map[string]any{"a": "b"}, counts: map[string]int32{"engine": 2},
		intent: map[string]map[string]any{"engine": r.intent()}, revision: map[string]string{"engine": "pd-engine-h"},
	}
}

func TestDifferences(t *testing.T) {
	cases := map[string]struct {
		change func(s *snapshot, r *replica)
		says   string // nothing when empty
	}{
		"at rest":               {func(*snapshot, *replica) {}, ""},
		"spec":                  {func(s *snapshot, _ *replica) { s.service.Spec["a"] = "c" }, "the service's spec"},
		"late service status":   {func(s *snapshot, _ *replica) { s.service.Metadata.Generation++ }, "generation 3 of 4"},
		"open run":              {func(s *snapshot, _ *replica) { s.service.Status.Rollout.ActiveRun = map[string]any{} }, "open run"},
		"not ready":             {func(s *snapshot, _ *replica) { s.service.Status.Conditions = nil }, "not Ready"},
		"replica's spec":        {func(_ *snapshot, r *replica) { r.Spec["paused"] = true }, "the replica's spec"},
		"count":                 {func(_ *snapshot, r *replica) { r.Spec["replicas"] = int64(3) }, "3 replicas asked for"},
		"late replica status":   {func(_ *snapshot, r *replica) { r.Status.ObservedGeneration = 1 }, "generation 1 of 2"},
		"revision":              {func(_ *snapshot, r *replica) { r.Status.UpdateRevision = "pd-engine-g" }, "an undisturbed roll has pd-engine-h"},
		"lost revision":         {func(s *snapshot, _ *replica) { s.revisions = s.revisions[:1] }, "no ControllerRevision holds"},
		"revision twice":        {func(s *snapshot, _ *replica) { s.revisions[0].Data.Raw = []byte("2") }, "hold the same template"},
		"hold":                  {func(_ *snapshot, r *replica) { r.Status.RolloutHold = &hold{Gate: "x"} }, "hold &{Gate:x"},
		"phase":                 {func(_ *snapshot, r *replica) { r.Status.InstanceStatuses[0].Phase = "Updating" }, "row 0"},
		"open operation":        {func(_ *snapshot, r *replica) { r.Status.InstanceStatuses[1].Operation = map[string]any{} }, "row 1"},
		"row of an old target":  {func(_ *snapshot, r *replica) { r.Status.InstanceStatuses[1].TargetRevision = "x" }, "row 1"},
		"missing row":           {func(_ *snapshot, r *replica) { r.Status.InstanceStatuses = r.Status.InstanceStatuses[:1] }, "1 rows, want 2"},
		"pod outside rows":      {func(s *snapshot, _ *replica) { s.pods = append(s.pods, corev1.Pod{}) }, "is in no row"},
		"pod of the other slot": {func(s *snapshot, _ *replica) { s.pods[1].Labels[labelOrdinal] = "0" }, "is in no row"},
		"pod of another life":   {func(s *snapshot, _ *replica) { s.pods[1].Labels[labelLife] = "1" }, "row 1 has 0 pods"},
		"old pod":               {func(s *snapshot, _ *replica) { s.pods[0].Labels[labelRevision] = "g" }, "row 0 has 0 pods"},
		"leaving pod":           {func(s *snapshot, _ *replica) { s.pods[0].DeletionTimestamp = &metav1.Time{} }, "row 0 has 0 pods"},
		"orphan":                {func(s *snapshot, _ *replica) { s.pods[0].OwnerReferences = nil }, "row 0 has 0 pods"},
		"two pods in a row":     {func(s *snapshot, _ *replica) { s.pods = append(s.pods, s.pods[0]) }, "row 0 has 2 pods"},
		"missing pod":           {func(s *snapshot, _ *replica) { s.pods = s.pods[1:] }, "row 0 has 0 pods"},
		"unready pod":           {func(s *snapshot, _ *replica) { s.pods[0].Status.Conditions = nil }, "is not ready"},
		"image":                 {func(s *snapshot, _ *replica) { s.pods[0].Spec.Containers[0].Image = "i:v1" }, "runs i:v1"},
		"left Service":          {func(s *snapshot, _ *replica) { s.services = append(s.services, s.services[0]) }, "the Services"},
		"no replica":            {func(s *snapshot, _ *replica) { s.replicas = nil }, "engine has no replica"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, want := resting(t)
			r := s.replicas["engine"]
			c.change(s, &r)
			if s.replicas != nil {
				s.replicas["engine"] = r
			}
			got := strings.Join(s.differences(want), "\n")
			if !strings.Contains(got, c.says) || (c.says == "") != (got == "") {
				t.Errorf("want %q, got:\n%s", c.says, got)
			}
		})
	}
}
