package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Labels as documented; this package reads the cluster as any other program would.
const (
	labelService   = "ome.io/inferenceservice"
	labelComponent = "component"
	labelIndex     = "ome.io/instance-index"
	labelOrdinal   = "ome.io/pod-ordinal"
	labelLife      = "ome.io/instance-incarnation"
	labelRevision  = "ome.io/revision-hash"
	labelToken     = "ome.io/pairing-protocol"
)

// service is what is read of an InferenceService.
type service struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     map[string]any    `json:"spec"`
	Status   struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		Rollout            struct {
			ActiveRun any `json:"activeRun"`
		} `json:"rollout"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Reason string `json:"reason"`
}

func (s *service) ready() bool {
	return slices.ContainsFunc(s.Status.Conditions, func(c condition) bool { return c.Type == "Ready" && c.Status == "True" })
}

// replica is what is read of an InferenceReplica.
type replica struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     map[string]any    `json:"spec"`
	Status   struct {
		ObservedGeneration int64        `json:"observedGeneration"`
		Replicas           int64        `json:"replicas"`
		ServingReplicas    int64        `json:"servingReplicas"`
		UpdatedReplicas    int64        `json:"updatedReplicas"`
		CurrentRevision    string       `json:"currentRevision"`
		UpdateRevision     string       `json:"updateRevision"`
		InstanceStatuses   []row        `json:"instanceStatuses"`
		Columns            *columns     `json:"instanceStatusColumns"`
		RetryBlocks        []retryBlock `json:"retryBlocks"`
		RolloutHold        *hold        `json:"rolloutHold"`
	} `json:"status"`
}

type retryBlock struct {
	TargetRevision  string `json:"targetRevision"`
	State           string `json:"state"`
	AttemptsStarted int64  `json:"attemptsStarted"`
	Reason          string `json:"reason"`
}

type hold struct {
	Gate   string `json:"gate"`
	Reason string `json:"reason"`
	Target string `json:"target"`
}

func (r *replica) component() string { s, _ := r.Spec["component"].(string); return s }
func (r *replica) desired() int64    { n, _ := r.Spec["replicas"].(int64); return n }

// intent is the spec without the count, which may belong to somebody else.
func (r *replica) intent() map[string]any {
	out := maps.Clone(r.Spec)
	delete(out, "replicas")
	return out
}

// row is one Instance as status tells it.
type row struct {
	Index           int64  `json:"index"`
	Phase           string `json:"phase"`
	Incarnation     int64  `json:"incarnation"`
	RunningRevision string `json:"runningRevision"`
	TargetRevision  string `json:"targetRevision"`
	PodCount        int64  `json:"podCount"`
	ServingPodCount int64  `json:"servingPodCount"`
	ActiveOrdinal   int64  `json:"activeOrdinal"`
	Operation       any    `json:"operation"`
}

type group[T any] struct {
	Value   T        `json:"value"`
	Indexes indexSet `json:"indexes"`
}

type indexSet string

func (s indexSet) each(f func(int64)) error {
	for _, term := range strings.FieldsFunc(string(s), func(r rune) bool { return r == ',' }) {
		from, to, ranged := strings.Cut(term, "-")
		first, err := strconv.ParseInt(from, 10, 32)
		if err != nil {
			return fmt.Errorf("index set %q: %w", s, err)
		}
		last := first
		if ranged {
			if last, err = strconv.ParseInt(to, 10, 32); err != nil {
				return fmt.Errorf("index set %q: %w", s, err)
			}
		}
		if last < first || last-first > 1000 {
			return fmt.Errorf("index set %q: range %q is no range of this test", s, term)
		}
		for i := first; i <= last; i++ {
			f(i)
		}
	}
	return nil
}

// columns is the stored form of rows in columns.
type columns struct {
	Members          indexSet        `json:"members"`
	Phases           []group[string] `json:"phases"`
	RunningRevisions []group[string] `json:"runningRevisions"`
	TargetRevisions  []group[string] `json:"targetRevisions"`
	Incarnations     []group[int64]  `json:"incarnations"`
	PodCounts        []group[int64]  `json:"podCounts"`
	ServingPodCounts []group[int64]  `json:"servingPodCounts"`
	ActiveOrdinalOne indexSet        `json:"activeOrdinalOne"`
	Entries          []struct {
		Index     int64 `json:"index"`
		Operation any   `json:"operation"`
	} `json:"entries"`
}

// rows reads both stored forms.
func (r *replica) rows() ([]row, error) {
	c := r.Status.Columns
	if c == nil {
		return r.Status.InstanceStatuses, nil
	}
	byIndex := map[int64]*row{}
	if err := c.Members.each(func(i int64) { byIndex[i] = &row{Index: i} }); err != nil {
		return nil, err
	}
	var stray error
	at := func(i int64) *row {
		if byIndex[i] == nil {
			stray = fmt.Errorf("a column of %s names index %d, which is no member", r.Metadata.Name, i)
			return &row{}
		}
		return byIndex[i]
	}
	err := cmp.Or(
		fill(c.Phases, func(i int64, v string) { at(i).Phase = v }),
		fill(c.RunningRevisions, func(i int64, v string) { at(i).RunningRevision = v }),
		fill(c.TargetRevisions, func(i int64, v string) { at(i).TargetRevision = v }),
		fill(c.Incarnations, func(i int64, v int64) { at(i).Incarnation = v }),
		fill(c.PodCounts, func(i int64, v int64) { at(i).PodCount = v }),
		fill(c.ServingPodCounts, func(i int64, v int64) { at(i).ServingPodCount = v }),
		c.ActiveOrdinalOne.each(func(i int64) { at(i).ActiveOrdinal = 1 }),
	)
	for _, e := range c.Entries {
		at(e.Index).Operation = e.Operation
	}
	if err = cmp.Or(err, stray); err != nil {
		return nil, err
	}
	var out []row
	for _, i := range slices.Sorted(maps.Keys(byIndex)) {
		out = append(out, *byIndex[i])
	}
	return out, nil
}

func fill[T any](groups []group[T], set func(int64, T)) error {
	for _, g := range groups {
		if err := g.Indexes.each(func(i int64) { set(i, g.Value) }); err != nil {
			return err
		}
	}
	return nil
}

// snapshot is everything that belongs to the services of one namespace.
type snapshot struct {
	service   service
	replicas  map[string]replica
	pods      []corev1.Pod
	revisions []appsv1.ControllerRevision
	services  []corev1.Service
}

func (l *lab) snapshot(ctx context.Context, ns, name string) (*snapshot, error) {
	s := &snapshot{replicas: map[string]replica{}}
	u, err := l.dynamic.Resource(services).Namespace(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if err := read(u, &s.service); err != nil {
		return nil, err
	}
	list, err := l.dynamic.Resource(replicas).Namespace(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		var r replica
		if err := read(&list.Items[i], &r); err != nil {
			return nil, err
		}
		s.replicas[r.component()] = r
	}
	pods, err := l.kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	revisions, err := l.kube.AppsV1().ControllerRevisions(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	svcs, err := l.kube.CoreV1().Services(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	s.pods, s.revisions, s.services = pods.Items, revisions.Items, svcs.Items
	return s, nil
}

func read(u *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("read %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return nil
}

// expectation is what a roll must end in.
type expectation struct {
	// spec of the service, as stored when it was applied.
	spec map[string]any
	// counts by component.
	counts map[string]int32
	// intent and revision of each replica, as an undisturbed manager made them.
	intent   map[string]map[string]any
	revision map[string]string
}

// differences says in which ways the cluster is not what was expected, or not at rest.
func (s *snapshot) differences(want expectation) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if d := gocmp.Diff(want.spec, s.service.Spec); d != "" {
		say("the service's spec (-want +got):\n%s", d)
	}
	if got := s.service.Status.ObservedGeneration; got != s.service.Metadata.Generation {
		say("the service's status reflects generation %d of %d", got, s.service.Metadata.Generation)
	}
	if s.service.Status.Rollout.ActiveRun != nil {
		say("the service has an open run")
	}
	if !s.service.ready() {
		say("the service is not Ready: %v", s.service.Status.Conditions)
	}
	if len(s.replicas) != len(want.counts) {
		say("%d replicas, want %d", len(s.replicas), len(want.counts))
	}
	hashes, complaints := s.revisionHashes()
	out = append(out, complaints...)
	accounted := map[string]bool{}
	names := []string{s.service.Metadata.Name}
	for _, comp := range slices.Sorted(maps.Keys(want.counts)) {
		r, ok := s.replicas[comp]
		if !ok {
			say("%s has no replica", comp)
			continue
		}
		hash := hashes[r.Status.UpdateRevision]
		names = append(names, r.Metadata.Name, r.Metadata.Name+"-headless", r.Metadata.Name+"-rev-"+hash, r.Metadata.Name+"-rev-"+hash+"-headless")
		for _, complaint := range s.component(&r, comp, want, hash, accounted) {
			say("%s: %s", comp, complaint)
		}
	}
	for i := range s.pods {
		if p := &s.pods[i]; !accounted[p.Name] {
			say("pod %s (%s, deleted %v) is in no row: labels %v", p.Name, p.Status.Phase, p.DeletionTimestamp != nil, p.Labels)
		}
	}
	var got []string
	for _, svc := range s.services {
		got = append(got, svc.Name)
	}
	slices.Sort(names)
	slices.Sort(got)
	if d := gocmp.Diff(names, got); d != "" {
		say("the Services (-want +got):\n%s", d)
	}
	return out
}

// revisionHashes maps the stored revisions to their hashes; no replica stores one template twice.
func (s *snapshot) revisionHashes() (map[string]string, []string) {
	hashes, data, complaints := map[string]string{}, map[string]string{}, []string(nil)
	for _, rev := range s.revisions {
		owner := metav1.GetControllerOf(&rev)
		if owner == nil {
			complaints = append(complaints, "ControllerRevision "+rev.Name+" has no controller")
			continue
		}
		hashes[rev.Name] = strings.TrimPrefix(rev.Name, owner.Name+"-")
		key := owner.Name + string(rev.Data.Raw)
		if data[key] != "" {
			complaints = append(complaints, "ControllerRevisions "+rev.Name+" and "+data[key]+" hold the same template")
		}
		data[key] = rev.Name
	}
	return hashes, complaints
}

// component checks one replica and marks the pods that its rows account for.
func (s *snapshot) component(r *replica, comp string, want expectation, hash string, accounted map[string]bool) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	count := int64(want.counts[comp])
	if d := gocmp.Diff(want.intent[comp], r.intent()); d != "" {
		say("the replica's spec (-undisturbed +got):\n%s", d)
	}
	if r.desired() != count {
		say("%d replicas asked for, want %d", r.desired(), count)
	}
	st := r.Status
	if st.ObservedGeneration != r.Metadata.Generation {
		say("status reflects generation %d of %d", st.ObservedGeneration, r.Metadata.Generation)
	}
	if st.UpdateRevision != want.revision[comp] || st.CurrentRevision != want.revision[comp] {
		say("revision %s serves and %s is rolled out, an undisturbed roll has %s", st.CurrentRevision, st.UpdateRevision, want.revision[comp])
	}
	if hash == "" {
		say("no ControllerRevision holds %s", st.UpdateRevision)
	}
	if st.Replicas != count || st.ServingReplicas != count || st.UpdatedReplicas != count {
		say("%d Instances, %d serve, %d updated, want %d", st.Replicas, st.ServingReplicas, st.UpdatedReplicas, count)
	}
	if st.RolloutHold != nil || len(st.RetryBlocks) > 0 {
		say("hold %+v, retry blocks %+v", st.RolloutHold, st.RetryBlocks)
	}
	rows, err := r.rows()
	if err != nil {
		say("%v", err)
	}
	if int64(len(rows)) != count {
		say("%d rows, want %d", len(rows), count)
	}
	for _, row := range rows {
		ideal := row
		ideal.Phase, ideal.RunningRevision, ideal.TargetRevision = "Ready", want.revision[comp], ""
		ideal.PodCount, ideal.ServingPodCount, ideal.Operation = 1, 1, nil
		if d := gocmp.Diff(ideal, row); d != "" {
			say("row %d (-want +got):\n%s", row.Index, d)
		}
		found := 0
		for i := range s.pods {
			p := &s.pods[i]
			if p.Labels[labelService] != s.service.Metadata.Name || p.Labels[labelComponent] != comp || p.Labels[labelIndex] != fmt.Sprint(row.Index) ||
				p.Labels[labelOrdinal] != fmt.Sprint(row.ActiveOrdinal) || p.Labels[labelLife] != fmt.Sprint(row.Incarnation) ||
				p.Labels[labelRevision] != hash || p.DeletionTimestamp != nil || !metav1.IsControlledBy(p, &r.Metadata) {
				continue
			}
			found++
			accounted[p.Name] = true
			if !podReady(p) {
				say("pod %s of row %d is not ready", p.Name, row.Index)
			}
			if image := wantImage(want.intent[comp]); p.Spec.Containers[0].Image != image {
				say("pod %s of row %d runs %s, want %s", p.Name, row.Index, p.Spec.Containers[0].Image, image)
			}
		}
		if found != 1 {
			say("row %d has %d pods of ordinal %d, incarnation %d and revision %s", row.Index, found, row.ActiveOrdinal, row.Incarnation, hash)
		}
	}
	return out
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// wantImage is the image in a replica's spec.
func wantImage(intent map[string]any) string {
	var spec struct {
		Runners []struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"runners"`
	}
	raw, err := json.Marshal(intent)
	if err != nil || json.Unmarshal(raw, &spec) != nil || len(spec.Runners) != 1 || len(spec.Runners[0].Template.Spec.Containers) == 0 {
		return "unreadable"
	}
	return spec.Runners[0].Template.Spec.Containers[0].Image
}

// progress is how far a roll is, in a few words.
func (s *snapshot) progress() string {
	var parts []string
	for _, comp := range slices.Sorted(maps.Keys(s.replicas)) {
		r := s.replicas[comp]
		parts = append(parts, fmt.Sprintf("%s %d/%d", comp, r.Status.UpdatedReplicas, r.Status.Replicas))
	}
	return fmt.Sprintf("%s, %d pods", strings.Join(parts, ", "), len(s.pods))
}

func TestRowsInColumns(t *testing.T) {
	var r replica
	text := `{"metadata":{"name":"a"},"status":{"instanceStatusColumns":{"members":"0-1,3","phases":[{"value":"Ready","indexes":"0,3"},{"value":"Updating","indexes":"1"}],
		"runningRevisions":[{"value":"a-1","indexes":"0-1,3"}],"activeOrdinalOne":"3","incarnations":[{"value":2,"indexes":"0"}],"entries":[{"index":1,"operation":{"id":"x"}}]}}}`
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	got, err := r.rows()
	want := []row{
		{Index: 0, Phase: "Ready", Incarnation: 2, RunningRevision: "a-1"},
		{Index: 1, Phase: "Updating", RunningRevision: "a-1", Operation: map[string]any{"id": "x"}},
		{Index: 3, Phase: "Ready", RunningRevision: "a-1", ActiveOrdinal: 1},
	}
	if d := gocmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("rows (-want +got), err %v:\n%s", err, d)
	}
}
