package view

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rows"
	"ome.io/ome/internal/render"
)

// instanceCase is a file of testdata/instance.
type instanceCase struct {
	Component                                               v1beta1.ComponentType
	Index                                                   int32
	Service                                                 v1beta1.InferenceService
	Runtime                                                 render.Runtime
	Replicas                                                []v1beta1.InferenceReplica
	Pods                                                    []corev1.Pod
	Events                                                  []corev1.Event
	Truncated                                               bool
	RuntimeFailed, ReplicasFailed, PodsFailed, EventsFailed string
}

func (c *instanceCase) reads() *InstanceReads {
	return &InstanceReads{
		Component: c.Component, Index: c.Index, Runtime: RuntimeRead{c.Runtime, c.RuntimeFailed},
		Replicas: ReplicaReads{c.Replicas, c.Truncated, c.ReplicasFailed},
		Pods:     PodReads{c.Pods, c.Truncated, c.PodsFailed}, Events: EventReads{c.Events, c.Truncated, c.EventsFailed},
	}
}

// TestInstanceGolden draws the three reports about the objects of each file.
func TestInstanceGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/instance/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c instanceCase
			if err := yaml.UnmarshalStrict(raw, &c); err != nil {
				t.Fatal(err)
			}
			before := c
			before.Service, before.Replicas = *c.Service.DeepCopy(), slices.Clone(c.Replicas)
			for i := range before.Replicas {
				before.Replicas[i] = *c.Replicas[i].DeepCopy()
			}
			in := c.reads()
			list, blocks, status := BuildInstanceList(&c.Service, &in.Replicas, now), BuildRetryBlocks(&c.Service, c.Component, &in.Replicas, now, now), BuildInstanceStatus(&c.Service, in, now, now)
			if diff := cmp.Diff(before, c); diff != "" {
				t.Errorf("a report wrote to its input:\n%s", diff)
			}
			var b strings.Builder
			draw(t, &b, "list", InstanceListTable(list), 0)
			draw(t, &b, "list on 60 columns", InstanceListTable(list), 60)
			drawJSON(t, &b, list)
			draw(t, &b, "retry-blocks", InstanceRetryBlocksTable(blocks), 0)
			drawJSON(t, &b, blocks)
			draw(t, &b, "status", InstanceStatusTable(status), 0)
			draw(t, &b, "status, wide", InstanceStatusWide(status), 0)
			drawJSON(t, &b, status)
			compareFile(t, strings.TrimSuffix(file, ".yaml")+".txt", b.String())
		})
	}
}

func draw(t *testing.T, b *strings.Builder, name string, table *Table, width int) {
	t.Helper()
	fmt.Fprintf(b, "-- %s --\n", name)
	if err := table.Write(b, width); err != nil {
		t.Fatal(err)
	}
}

func drawJSON(t *testing.T, b *strings.Builder, report any) {
	t.Helper()
	j, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(b, "-- json --\n%s\n", j)
}

func compareFile(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// ownService and ownReplica are a service and its engine replica with nothing wrong.
func ownService() *v1beta1.InferenceService {
	s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: "prod", UID: "s-1", Generation: 7}}
	s.Spec.DeploymentMode = v1beta1.OMENativeMode
	s.Spec.Engine = &v1beta1.EngineSpec{}
	return s
}

func ownReplica() *v1beta1.InferenceReplica {
	yes, replicas := true, int32(2)
	r := &v1beta1.InferenceReplica{ObjectMeta: metav1.ObjectMeta{Name: "chat-engine", Namespace: "prod", UID: "r-1", Generation: 4, ResourceVersion: "9",
		Annotations:     map[string]string{v1beta1.ParentGenerationAnnotation: "7"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "ome.io/v1beta1", Kind: "InferenceService", Name: "chat", UID: "s-1", Controller: &yes}}}}
	r.Spec = v1beta1.InferenceReplicaSpec{Component: v1beta1.EngineComponent, ParentRef: &v1beta1.ParentRef{Name: "chat"}, Replicas: &replicas}
	r.Status = v1beta1.InferenceReplicaStatus{ObservedGeneration: 4, Replicas: 2, ReadyReplicas: 2, InstanceStatuses: []v1beta1.InstanceStatus{
		{Index: 0, Phase: v1beta1.InstanceReady}, {Index: 1, Phase: v1beta1.InstanceReady}}}
	return r
}

// TestListEvidence: each word of the EVIDENCE column has a status that earns it.
func TestListEvidence(t *testing.T) {
	columns := func(c v1beta1.InstanceStatusColumns) func(*v1beta1.InferenceReplica) {
		return func(r *v1beta1.InferenceReplica) {
			r.Status.InstanceStatuses, r.Status.InstanceStatusEncoding, r.Status.InstanceStatusColumns = nil, v1beta1.InstanceStatusColumnarV2, &c
		}
	}
	ready := []v1beta1.InstancePhaseGroup{{Value: v1beta1.InstanceReady, Indexes: "0-1"}}
	for _, c := range []struct {
		want string
		edit func(*v1beta1.InferenceReplica)
	}{
		{"OK", func(*v1beta1.InferenceReplica) {}},
		{"OK", columns(v1beta1.InstanceStatusColumns{Members: "0-1", Phases: ready})},
		{"SPARSE", func(r *v1beta1.InferenceReplica) { r.Status.InstanceStatuses[1].Index = 5 }},
		{"EMPTY", func(r *v1beta1.InferenceReplica) { r.Status.InstanceStatuses = nil }},
		{"STALE:3/4", func(r *v1beta1.InferenceReplica) { r.Status.ObservedGeneration = 3 }},
		{"STALE:PARENT", func(r *v1beta1.InferenceReplica) { r.Annotations[v1beta1.ParentGenerationAnnotation] = "6" }},
		{"NOT-OBSERVED", func(r *v1beta1.InferenceReplica) { r.Status.ObservedGeneration = 0 }},
		{"PARENT-UNAVL", func(r *v1beta1.InferenceReplica) { r.Annotations = nil }},
		{"BAD:GEN", func(r *v1beta1.InferenceReplica) { r.Status.ObservedGeneration = 5 }},
		{"BAD:GEN", func(r *v1beta1.InferenceReplica) { r.Status.ObservedGeneration = -1 }},
		{"BAD:PARENT", func(r *v1beta1.InferenceReplica) { r.Annotations[v1beta1.ParentGenerationAnnotation] = "8" }},
		{"BAD:PARENT", func(r *v1beta1.InferenceReplica) { r.Annotations[v1beta1.ParentGenerationAnnotation] = "+7" }},
		{"BAD:DUP-IDX", func(r *v1beta1.InferenceReplica) { r.Status.InstanceStatuses[1].Index = 0 }},
		{"BAD:INSTANCE", func(r *v1beta1.InferenceReplica) { r.Status.InstanceStatuses[1].Index = -1 }},
		{"BAD:INSTANCE", func(r *v1beta1.InferenceReplica) { r.Status.InstanceStatuses[0].ActiveOrdinal = 2 }},
		{"BAD:COUNTS", func(r *v1beta1.InferenceReplica) { r.Status.InstanceStatuses[0].ServingPodCount = 1 }},
		{"BAD:COUNTS", columns(v1beta1.InstanceStatusColumns{Members: "0-1", Phases: ready, PodCounts: []v1beta1.InstanceCountGroup{{Value: 0, Indexes: "0"}}})},
		{"BAD:REVISION", func(r *v1beta1.InferenceReplica) { r.Status.InstanceStatuses[0].RunningRevision = "chat-engine-XYZ" }},
		{"BAD:REVISION", columns(v1beta1.InstanceStatusColumns{Members: "0-1", Phases: ready, RunningRevisions: []v1beta1.InstanceRevisionGroup{{Indexes: "0"}}})},
		{"BAD:PHASE", func(r *v1beta1.InferenceReplica) { r.Status.InstanceStatuses[0].Phase = "Odd" }},
		{"BAD:PHASE", columns(v1beta1.InstanceStatusColumns{Members: "0-2", Phases: ready})},
		{"BAD", columns(v1beta1.InstanceStatusColumns{Members: "1-0", Phases: ready})},
		{"BAD", func(r *v1beta1.InferenceReplica) { r.Status.InstanceStatusEncoding = "RowsV9" }},
		{"ROWS-LIMIT", columns(v1beta1.InstanceStatusColumns{Members: "0-20000", Phases: []v1beta1.InstancePhaseGroup{{Value: v1beta1.InstanceReady, Indexes: "0-20000"}}})},
		{"ROWS-LIMIT", func(r *v1beta1.InferenceReplica) {
			r.Status.InstanceStatuses = make([]v1beta1.InstanceStatus, MaxRows+1)
		}},
	} {
		r := ownReplica()
		c.edit(r)
		table := InstanceListTable(BuildInstanceList(ownService(), &ReplicaReads{Items: []v1beta1.InferenceReplica{*r}}, now))
		if got := table.Rows[0][6]; got != c.want {
			t.Errorf("%s, want %s: %v", got, c.want, table.Rows)
		}
	}
}

// TestOvertaken: only a replica of the service itself can make the read of the
// service old.
func TestOvertaken(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*v1beta1.InferenceReplica)
		want bool
	}{
		"same generation": {func(*v1beta1.InferenceReplica) {}, false},
		"newer":           {func(r *v1beta1.InferenceReplica) { r.Annotations[v1beta1.ParentGenerationAnnotation] = "8" }, true},
		"older":           {func(r *v1beta1.InferenceReplica) { r.Annotations[v1beta1.ParentGenerationAnnotation] = "6" }, false},
		"somebody else's": {func(r *v1beta1.InferenceReplica) {
			r.Annotations[v1beta1.ParentGenerationAnnotation], r.OwnerReferences = "8", nil
		}, false},
	} {
		r := ownReplica()
		c.edit(r)
		if got := Overtaken(ownService(), &ReplicaReads{Items: []v1beta1.InferenceReplica{*r}}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestListWithoutRows: there is always a row, and it says why there is nothing.
func TestListWithoutRows(t *testing.T) {
	bare := func() *v1beta1.InferenceService {
		s := ownService()
		s.Spec.Engine = nil
		return s
	}
	for _, c := range []struct {
		name    string
		service *v1beta1.InferenceService
		reads   ReplicaReads
		want    [][]string
	}{
		{"nothing declared", bare(), ReplicaReads{}, [][]string{{"-", "-", "-", "-", "-", "-", "OK"}}},
		{"not projected", ownService(), ReplicaReads{}, [][]string{{"engine", "-", "-", "-", "-", "-", "NOT-REPORTED"}}},
		{"forbidden", bare(), ReplicaReads{Failed: "Forbidden"}, [][]string{{"summary", "-", "-", "-", "-", "-", "SOURCE-UNAVL"}}},
		{"forbidden and declared", ownService(), ReplicaReads{Failed: "Forbidden"},
			[][]string{{"engine", "-", "-", "-", "-", "-", "UNAVAILABLE"}, {"summary", "-", "-", "-", "-", "-", "SOURCE-UNAVL"}}},
		{"more than one page", bare(), ReplicaReads{Truncated: true}, [][]string{{"summary", "-", "-", "-", "-", "-", "TRUNCATED"}}},
		{"somebody else's", bare(), ReplicaReads{Items: []v1beta1.InferenceReplica{{}}}, [][]string{{"summary", "-", "-", "-", "-", "-", "REJECTED"}}},
	} {
		if diff := cmp.Diff(c.want, InstanceListTable(BuildInstanceList(c.service, &c.reads, now)).Rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestEncodingDoesNotShow: how the rows are stored changes no report, but for the
// field that names the encoding.
func TestEncodingDoesNotShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []v1beta1.InstanceStatus
		for _, index := range rapid.SliceOfNDistinct(rapid.Int32Range(0, 40), 1, 12, rapid.ID[int32]).Draw(t, "indexes") {
			row := v1beta1.InstanceStatus{Index: index,
				Phase:           rapid.SampledFrom([]v1beta1.InstancePhase{v1beta1.InstanceReady, v1beta1.InstanceFailed, v1beta1.InstanceUpdating}).Draw(t, "phase"),
				RunningRevision: rapid.SampledFrom([]string{"", "chat-engine-5d0f21c8", "odd name"}).Draw(t, "revision"),
				PodCount:        rapid.Int32Range(0, 2).Draw(t, "pods"), ServingPodCount: rapid.Int32Range(0, 2).Draw(t, "serving"),
				Admitted: rapid.Bool().Draw(t, "admitted"), ActiveOrdinal: rapid.Int32Range(0, 1).Draw(t, "ordinal"), Incarnation: rapid.Int64Range(0, 3).Draw(t, "incarnation")}
			if rapid.Bool().Draw(t, "operation") {
				row.Operation = &v1beta1.InstanceOperation{ID: "x", Type: v1beta1.OperationUpdate, Step: v1beta1.StepSurge, StartedAt: metav1.NewTime(now), LastProgressAt: metav1.NewTime(now)}
			}
			list = append(list, row)
		}
		dense, columnar := ownReplica(), ownReplica()
		dense.Status.InstanceStatuses = list
		encoded, err := rows.Encode(list, rows.Options{Encoding: v1beta1.InstanceStatusColumnarV2, MaxDecoded: MaxRows})
		if err != nil {
			t.Fatal(err)
		}
		rows.Apply(&columnar.Status, encoded)
		all := func(r *v1beta1.InferenceReplica) string {
			reads := ReplicaReads{Items: []v1beta1.InferenceReplica{*r}}
			in := &InstanceReads{Component: v1beta1.EngineComponent, Index: list[0].Index, Replicas: reads}
			status := BuildInstanceStatus(ownService(), in, now, now)
			status.Content.Encoding.Name = ""
			b, err := json.Marshal([]any{BuildInstanceList(ownService(), &reads, now), BuildRetryBlocks(ownService(), v1beta1.EngineComponent, &reads, now, now), status})
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		if diff := cmp.Diff(all(dense), all(columnar)); diff != "" {
			t.Errorf("dense and columnar differ:\n%s", diff)
		}
	})
}

// TestNothingUnsafeIsShown: whatever text is in an object, the screen stays whole
// and secrets stay out.
func TestNothingUnsafeIsShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			return string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, name)) + rapid.SampledFrom([]string{"", "\x1b[2J", "\u202e", " password=correcthorse ", strings.Repeat("x", 100_000)}).Draw(t, name+" tail")
		}
		r := ownReplica()
		r.Annotations[v1beta1.ReleaseHeldRevisionAnnotation] = text("mailbox")
		r.Status.CurrentRevision = text("current")
		row := &r.Status.InstanceStatuses[0]
		row.Phase, row.RunningRevision = v1beta1.InstancePhase(text("phase")), text("revision")
		row.Operation = &v1beta1.InstanceOperation{ID: text("id"), Type: v1beta1.InstanceOperationType(text("type")), Step: text("step"), Waiting: text("waiting"), Reason: text("reason"), HintTargetNodes: []string{text("node")}}
		row.LastFailure = &v1beta1.InstanceTermination{PodName: text("pod"), Reason: text("why"), Message: text("message")}
		row.Conditions = []metav1.Condition{{Type: text("condition"), Message: text("text")}}
		row.Announced = []string{text("announced")}
		r.Status.RetryBlocks = []v1beta1.RetryBlock{{TargetRevision: text("target"), State: v1beta1.RetryState(text("state")), Reason: text("block")}}
		r.Status.Migrations = []v1beta1.MigrationStatus{{RequestUUID: text("uuid"), Message: text("moved")}}
		s := ownService()
		s.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{"engine": {
			ScaleTargetRef: &v1beta1.ScaleTargetRef{APIVersion: text("apiVersion"), Kind: text("kind"), Name: text("target name")},
			Autoscaler:     &v1beta1.ComponentAutoscalerStatus{Class: v1beta1.AutoscalerClass(text("class")), SpecSource: text("source"), Conditions: []metav1.Condition{{Type: text("scaler condition")}}}}}
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: text("pod name"), Namespace: "prod", UID: "p-1", OwnerReferences: []metav1.OwnerReference{{Kind: "InferenceReplica", Name: "chat-engine", UID: "r-1", Controller: r.OwnerReferences[0].Controller}}}}
		pod.Status.Message = text("pod message")
		event := corev1.Event{Type: "Warning", Message: text("event"), InvolvedObject: corev1.ObjectReference{UID: "p-1", Namespace: "prod", Name: text("object")}}
		reads := ReplicaReads{Items: []v1beta1.InferenceReplica{*r}}
		in := &InstanceReads{Component: v1beta1.EngineComponent, Replicas: reads, Runtime: RuntimeRead{Failed: text("runtime")}, Pods: PodReads{Items: []corev1.Pod{pod}}, Events: EventReads{Items: []corev1.Event{event}}}
		list, blocks, status := BuildInstanceList(s, &reads, now), BuildRetryBlocks(s, v1beta1.EngineComponent, &reads, now, now), BuildInstanceStatus(s, in, now, now)
		scale := BuildAutoscaleStatus(s, &AutoscaleLive{}, now, now)
		for _, table := range []*Table{InstanceListTable(list), InstanceRetryBlocksTable(blocks), InstanceStatusTable(status), InstanceStatusWide(status), AutoscaleStatusTable(scale), AutoscaleStatusWide(scale)} {
			for _, cells := range append(table.Rows, table.Header) {
				if len(cells) != len(table.Header) {
					t.Fatalf("%d cells under %d headers", len(cells), len(table.Header))
				}
				for _, cell := range cells {
					if strings.ContainsFunc(cell, func(r rune) bool { return !unicode.IsGraphic(r) }) || strings.Contains(cell, "correcthorse") {
						t.Fatalf("cell %q", cell)
					}
				}
			}
		}
		for _, report := range []any{list, blocks, status, scale} {
			b, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > 32<<10 || strings.Contains(string(b), "correcthorse") || strings.Contains(string(b), "\\u001b") || strings.ContainsRune(string(b), '\u202e') {
				t.Fatalf("%d bytes: %.2000s", len(b), b)
			}
		}
	})
}

func TestSafe(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"plain":                             "plain",
		"two  words\n\there":                "two words here",
		"größe 9":                           "größe 9",
		"\xff\xfe":                          "?",
		"key sk-abcdefghijklmnopqrst end":   "key [REDACTED] end",
		"desk-lamp-long-enough-name-here":   "desk-lamp-long-enough-name-here",
		"Authorization: Bearer abcdef12345": "Authorization: [REDACTED]",
		"api_key=abcdef0123":                "[REDACTED]",
		`{"password":"hunter22","a":1}`:     `{"[REDACTED]","a":1}`,
		"pull https://u:p@reg.example/x":    "pull https[REDACTED]reg.example/x",
		"-----BEGIN RSA PRIVATE KEY----- x": "[REDACTED]",
		"secret is missing":                 "secret is missing",
		"chat-engine-5d0f21c8":              "chat-engine-5d0f21c8",
		strings.Repeat("é", 300):            strings.Repeat("é", 253) + "...",
	} {
		if got := safe(in); got != want {
			t.Errorf("safe(%q) = %q, want %q", in, got, want)
		}
	}
	if got := safe(strings.Repeat("x", 100<<10)); len(got) != maxText {
		t.Errorf("100 KiB become %d bytes", len(got))
	}
}

// TestReleaseEligible: REL is YES only for what a release would be accepted for.
func TestReleaseEligible(t *testing.T) {
	past := metav1.NewTime(now.Add(-time.Hour))
	for name, c := range map[string]struct {
		edit func(*v1beta1.InferenceService, *v1beta1.InferenceReplica)
		want bool
	}{
		"held": {func(*v1beta1.InferenceService, *v1beta1.InferenceReplica) {}, true},
		"backoff": {func(_ *v1beta1.InferenceService, r *v1beta1.InferenceReplica) {
			r.Status.RetryBlocks[0].State = v1beta1.RetryBackoff
		}, false},
		"stale":            {func(_ *v1beta1.InferenceService, r *v1beta1.InferenceReplica) { r.Status.ObservedGeneration = 3 }, false},
		"parent moved":     {func(s *v1beta1.InferenceService, _ *v1beta1.InferenceReplica) { s.Generation = 8 }, false},
		"service deleting": {func(s *v1beta1.InferenceService, _ *v1beta1.InferenceReplica) { s.DeletionTimestamp = &past }, false},
		"replica deleting": {func(_ *v1beta1.InferenceService, r *v1beta1.InferenceReplica) { r.DeletionTimestamp = &past }, false},
		"from the future": {func(_ *v1beta1.InferenceService, r *v1beta1.InferenceReplica) {
			later := metav1.NewTime(now.Add(time.Second))
			r.Status.RetryBlocks[0].LastFailureAt = &later
		}, false},
	} {
		s, r := ownService(), ownReplica()
		r.Status.RetryBlocks = []v1beta1.RetryBlock{{TargetRevision: "chat-engine-5d0f21c8", State: v1beta1.RetryHeld, AttemptsStarted: 3, LastFailureAt: &past}}
		c.edit(s, r)
		report := BuildRetryBlocks(s, v1beta1.EngineComponent, &ReplicaReads{Items: []v1beta1.InferenceReplica{*r}}, now, now)
		if got := report.Content.Blocks[0].ReleaseEligible; got != c.want {
			t.Errorf("%s: %t, want %t; %+v", name, got, c.want, report.Content.Issues)
		}
	}
	empty := InstanceRetryBlocksTable(BuildRetryBlocks(ownService(), v1beta1.EngineComponent, &ReplicaReads{Items: []v1beta1.InferenceReplica{*ownReplica()}}, now, now))
	if diff := cmp.Diff([][]string{{"-", "EMPTY", "-", "-", "-", "NO", "-"}}, empty.Rows); diff != "" {
		t.Errorf("no blocks (-want +got):\n%s", diff)
	}
}

// BenchmarkInstanceList is a replica at its bound.
func BenchmarkInstanceList(b *testing.B) {
	r := ownReplica()
	var list []v1beta1.InstanceStatus
	for i := range int32(MaxRows) {
		list = append(list, v1beta1.InstanceStatus{Index: i, Phase: v1beta1.InstanceReady, RunningRevision: "chat-engine-5d0f21c8", PodCount: 1, ServingPodCount: 1})
	}
	encoded, err := rows.Encode(list, rows.Options{Encoding: v1beta1.InstanceStatusColumnarV2, MaxDecoded: MaxRows})
	if err != nil {
		b.Fatal(err)
	}
	rows.Apply(&r.Status, encoded)
	reads := &ReplicaReads{Items: []v1beta1.InferenceReplica{*r}}
	for b.Loop() {
		_ = InstanceListTable(BuildInstanceList(ownService(), reads, now)).Write(&strings.Builder{}, 0)
	}
}
