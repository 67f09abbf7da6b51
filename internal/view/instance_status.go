package view

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rows"
	"ome.io/ome/internal/render"
)

// InstanceStatusReport is the report of `instance status`.
type InstanceStatusReport = Report[InstanceStatus]

// InstanceReads is what was read about one Instance.
type InstanceReads struct {
	Component v1beta1.ComponentType
	Index     int32
	Runtime   RuntimeRead
	Replicas  ReplicaReads
	Pods      PodReads
	Events    EventReads
}

// RuntimeRead is the runtime that a service names, or why there is none.
type RuntimeRead struct {
	render.Runtime
	// Failed is the class of a failed read or the reason why nothing resolves.
	Failed string
}

// PodReads is the pods that carry the labels of an Instance.
type PodReads struct {
	Items     []corev1.Pod
	Truncated bool
	Failed    string
}

// EventReads is the Warning events about a replica and about pods.
type EventReads struct {
	Items     []corev1.Event
	Truncated bool
	Failed    string
}

// InstanceStatus is everything known about one Instance.
type InstanceStatus struct {
	State      string           `json:"state"`
	Component  string           `json:"component"`
	Index      int32            `json:"index"`
	Deployment Deployment       `json:"deployment"`
	Replica    *InstanceReplica `json:"inferenceReplica,omitempty"`
	Encoding   Encoding         `json:"encoding"`
	Instance   *InstanceRow     `json:"instance,omitempty"`
	Migrations []InstanceMove   `json:"migrations"`
	Pods       InstancePods     `json:"pods"`
	Events     InstanceEvents   `json:"events"`
	Issues     []InstanceIssue  `json:"issues"`
}

// Deployment is how a component runs, and what decided it.
type Deployment struct {
	Mode   string `json:"mode"`
	Source string `json:"source,omitempty"`
	// Origin is the object that decided, as Kind/name.
	Origin   string `json:"origin,omitempty"`
	Evidence string `json:"evidence"`
}

// InstanceReplica is the InferenceReplica of the component.
type InstanceReplica struct {
	Name               string `json:"name"`
	UID                string `json:"uid"`
	Generation         int64  `json:"generation"`
	ObservedGeneration int64  `json:"observedGeneration"`
	ParentGeneration   string `json:"parentGeneration,omitempty"`
	CurrentRevision    string `json:"currentRevision,omitempty"`
	UpdateRevision     string `json:"updateRevision,omitempty"`
	Evidence           string `json:"evidence"`
}

// Encoding is the stored form of the rows.
type Encoding struct {
	Name     string `json:"name,omitempty"`
	Evidence string `json:"evidence"`
	Reason   string `json:"reason,omitempty"`
}

// InstanceRow is the stored row.
type InstanceRow struct {
	Incarnation      int64              `json:"incarnation"`
	Phase            string             `json:"phase"`
	RunningRevision  string             `json:"runningRevision,omitempty"`
	TargetRevision   string             `json:"targetRevision,omitempty"`
	Pods             PodCounts          `json:"pods"`
	Admitted         bool               `json:"admitted"`
	ActiveOrdinal    int32              `json:"activeOrdinal"`
	ReadySince       string             `json:"readySince,omitempty"`
	ReadySinceSource string             `json:"readySinceEvidence,omitempty"`
	Conditions       []InstanceCond     `json:"conditions"`
	Announced        []string           `json:"announced"`
	Operation        *InstanceOperation `json:"operation,omitempty"`
	LastFailure      *InstanceFailure   `json:"lastFailure,omitempty"`
}

// InstanceCond is one condition of an Instance.
type InstanceCond struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Since   string `json:"lastTransitionTime,omitempty"`
}

// InstanceOperation is the work in flight.
type InstanceOperation struct {
	ID             string `json:"id"`
	Type           string `json:"type"`
	Step           string `json:"step"`
	Reason         string `json:"reason,omitempty"`
	RetryCount     int32  `json:"retryCount"`
	TargetRevision string `json:"targetRevision,omitempty"`
	StartedAt      string `json:"startedAt,omitempty"`
	LastProgressAt string `json:"lastProgressAt,omitempty"`
	// Deadline is absent while the clock is parked.
	Deadline          string   `json:"deadline,omitempty"`
	Parked            bool     `json:"parked"`
	Waiting           string   `json:"waiting,omitempty"`
	CapacityRefusedAt string   `json:"capacityRefusedAt,omitempty"`
	Strategy          string   `json:"strategy,omitempty"`
	SurgeIndex        *int32   `json:"surgeIndex,omitempty"`
	FromNode          string   `json:"fromNode,omitempty"`
	HintTargetNodes   []string `json:"hintTargetNodes"`
	RequestUUID       string   `json:"requestUUID,omitempty"`
}

// InstanceFailure is the last recorded failure.
type InstanceFailure struct {
	Pod       string `json:"pod"`
	Container string `json:"container,omitempty"`
	Reason    string `json:"reason,omitempty"`
	ExitCode  *int32 `json:"exitCode,omitempty"`
	Message   string `json:"message,omitempty"`
	Time      string `json:"time,omitempty"`
}

// InstanceMove is a migration that the Instance takes part in.
type InstanceMove struct {
	RequestUUID string `json:"requestUUID"`
	Role        string `json:"role"`
	Phase       string `json:"phase"`
	Trigger     string `json:"trigger"`
	Source      int32  `json:"sourceInstance"`
	Surge       *int32 `json:"surgeInstance,omitempty"`
	StartedAt   string `json:"startedAt,omitempty"`
	Deadline    string `json:"deadline,omitempty"`
	CompletedAt string `json:"completedAt,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Message     string `json:"message,omitempty"`
}

// States of the report.
const (
	InstanceMissing      = "Missing"
	InstanceNotProjected = "NotProjected"
	InstanceNotNative    = "NotOMENative"
)

// Issue codes of one Instance.
const (
	IssueRuntimeUnavailable = "RuntimeUnavailable"
	IssueTimeInFuture       = "TimeInFuture"
)

// Bounds of the lists in a row.
const (
	maxInstanceConditions = 16
	maxAnnounced          = 16
	maxNodes              = 16
	maxMoves              = 16
)

// BuildInstanceStatus explains one Instance. The reference time decides which
// recorded times lie in the future.
func BuildInstanceStatus(s *v1beta1.InferenceService, in *InstanceReads, reference, now time.Time) *InstanceStatusReport {
	j := judge(s, &in.Replicas)
	out := InstanceStatus{
		Component: string(in.Component), Index: in.Index, Deployment: deployment(s, in),
		Encoding: Encoding{Evidence: EvidenceUnavailable}, Migrations: []InstanceMove{}, Issues: j.issues,
		Pods: InstancePods{State: EvidenceUnavailable, Items: []InstancePod{}}, Events: InstanceEvents{State: EvidenceUnavailable, Items: []InstanceEvent{}},
	}
	b := &instanceBuilder{in: in, out: &out, reference: reference}
	if out.Deployment.Evidence == EvidenceUnavailable {
		b.issue(IssueRuntimeUnavailable, safe(in.Runtime.Failed))
	}
	found := j.byComponent[in.Component]
	switch {
	case in.Replicas.Failed != "":
		out.State = stateUnavailable
	case len(found) == 0 && out.Deployment.Evidence == EvidenceUnavailable:
		out.State = stateUnavailable
	case len(found) == 0 && out.Deployment.Mode != string(v1beta1.OMENativeMode):
		out.State = InstanceNotNative
	case len(found) == 0:
		out.State = InstanceNotProjected
	case len(found) > 1:
		b.issue(IssueDuplicateComponent, fmt.Sprintf("%d InferenceReplicas", len(found)))
		out.State = statePartial
	default:
		b.replica(found[0])
	}
	if out.State == EvidenceReported && len(out.Issues) > 0 {
		out.State = statePartial
	}
	return &InstanceStatusReport{
		APIVersion: APIVersion, Kind: "InstanceStatusReport", Metadata: Metadata{s.Namespace, s.Name}, CollectedAt: stamp(now),
		Sources: b.sources(j.sources(s, &in.Replicas, now, in.Component), s, now), Content: out, Warnings: warningsOf(out.Issues),
	}
}

// deployment resolves how the component runs. A missing runtime leaves it open
// unless the service decides alone.
func deployment(s *v1beta1.InferenceService, in *InstanceReads) Deployment {
	mode, source := render.Mode(s, in.Runtime.Spec, in.Component)
	d := Deployment{Mode: string(mode), Source: string(source), Evidence: EvidenceDeclared,
		Origin: v1beta1.InferenceServiceKind + "/" + s.Name}
	runtime := source == render.FromRuntimeAnnotation
	if source == render.FromLeaderWorkerShape || source == render.FromDefault {
		d.Evidence = EvidenceComputed
	}
	switch {
	case in.Runtime.Failed != "" && !source.BeforeRuntime():
		return Deployment{Mode: StateUnknown, Evidence: EvidenceUnavailable}
	case runtime:
		d.Origin = in.Runtime.Kind + "/" + safe(in.Runtime.Name)
	}
	return d
}

type instanceBuilder struct {
	in        *InstanceReads
	out       *InstanceStatus
	reference time.Time
}

func (b *instanceBuilder) issue(code, detail string) {
	index := b.in.Index
	b.out.Issues = append(b.out.Issues, InstanceIssue{Code: code, Component: string(b.in.Component), Index: &index, Detail: detail})
}

func (b *instanceBuilder) replica(r *replicaView) {
	out := b.out
	out.Replica = &InstanceReplica{
		Name: safe(r.Name), UID: safe(string(r.UID)), Generation: r.Generation, ObservedGeneration: r.Status.ObservedGeneration,
		ParentGeneration: safeTo(r.Annotations[v1beta1.ParentGenerationAnnotation], 24),
		CurrentRevision:  safe(r.Status.CurrentRevision), UpdateRevision: safe(r.Status.UpdateRevision), Evidence: r.evidence(),
	}
	r.addIssues(func(i InstanceIssue) { out.Issues = append(out.Issues, i) })
	out.Encoding = Encoding{Name: safe(string(rows.EncodingOf(&r.Status))), Evidence: EvidenceReported}
	out.State = EvidenceReported
	b.pods(r)
	b.events(r)
	switch {
	case r.tooMany:
		out.Encoding.Evidence, out.Encoding.Reason = EvidenceUnavailable, string(rows.CardinalityLimit)
		out.State = statePartial
		return
	case r.decodeErr != nil:
		out.Encoding.Evidence, out.Encoding.Reason = EvidenceMalformed, string(r.decodeErr.Reason)
		out.State = statePartial
		return
	}
	b.moves(r)
	i, ok := slices.BinarySearchFunc(r.rows, b.in.Index, func(row v1beta1.InstanceStatus, index int32) int { return int(row.Index) - int(index) })
	if !ok {
		out.State = InstanceMissing
		return
	}
	if kind := badRow(r.Name, &r.rows[i]); kind != "" {
		b.issue(IssueRowInvalid, kind)
	}
	out.Instance = b.row(&r.rows[i])
}

// when is a recorded time; one in the future is an issue, and shown all the same.
func (b *instanceBuilder) when(field string, t *metav1.Time) string {
	if t != nil && t.After(b.reference) {
		b.issue(IssueTimeInFuture, field+"="+stamp(t.Time))
	}
	return timePtr(t)
}

func (b *instanceBuilder) row(r *v1beta1.InstanceStatus) *InstanceRow {
	out := &InstanceRow{
		Incarnation: r.Incarnation, Phase: safe(string(r.Phase)), RunningRevision: safe(r.RunningRevision), TargetRevision: safe(r.TargetRevision),
		Pods: PodCounts{r.PodCount, r.ServingPodCount, r.AvailablePodCount}, Admitted: r.Admitted, ActiveOrdinal: r.ActiveOrdinal,
		ReadySince: b.when("readySince", r.ReadySince), Conditions: []InstanceCond{}, Announced: []string{},
	}
	switch {
	case out.ReadySince != "":
		out.ReadySinceSource = EvidenceReported
	case r.Phase == v1beta1.InstanceReady:
		// The manager reads it from the pod's gate, and so does this.
		if since := b.gateSince(r.ActiveOrdinal); since != "" {
			out.ReadySince, out.ReadySinceSource = since, EvidenceObserved
		}
	}
	for _, c := range r.Conditions[:min(len(r.Conditions), maxInstanceConditions)] {
		out.Conditions = append(out.Conditions, InstanceCond{safe(c.Type), safe(string(c.Status)), safe(c.Reason), safe(c.Message),
			b.when("conditions["+safe(c.Type)+"].lastTransitionTime", &c.LastTransitionTime)})
	}
	slices.SortStableFunc(out.Conditions, func(a, c InstanceCond) int { return strings.Compare(a.Type, c.Type) })
	for _, a := range r.Announced[:min(len(r.Announced), maxAnnounced)] {
		out.Announced = append(out.Announced, safe(a))
	}
	if op := r.Operation; op != nil {
		out.Operation = &InstanceOperation{
			ID: safe(op.ID), Type: safe(string(op.Type)), Step: safe(op.Step), Reason: safe(op.Reason), RetryCount: op.RetryCount,
			TargetRevision: safe(op.TargetRevision), StartedAt: b.when("operation.startedAt", &op.StartedAt),
			LastProgressAt: b.when("operation.lastProgressAt", &op.LastProgressAt), Deadline: timePtr(op.Deadline), Parked: op.Deadline == nil,
			Waiting: safe(op.Waiting), CapacityRefusedAt: b.when("operation.capacityRefusedAt", op.CapacityRefusedAt), Strategy: safe(string(op.Strategy)),
			SurgeIndex: op.SurgeIndex, FromNode: safe(op.FromNode), HintTargetNodes: safeList(op.HintTargetNodes, maxNodes), RequestUUID: safe(op.RequestUUID),
		}
	}
	if f := r.LastFailure; f != nil {
		out.LastFailure = &InstanceFailure{safe(f.PodName), safe(f.ContainerName), safe(f.Reason), f.ExitCode, safe(f.Message), b.when("lastFailure.time", f.Time)}
	}
	return out
}

func (b *instanceBuilder) moves(r *replicaView) {
	for i := range r.Status.Migrations {
		m := &r.Status.Migrations[i]
		role := ""
		switch {
		case m.SourceInstance == b.in.Index:
			role = "Source"
		case m.SurgeInstance != nil && *m.SurgeInstance == b.in.Index:
			role = "Surge"
		default:
			continue
		}
		b.out.Migrations = append(b.out.Migrations, InstanceMove{
			safe(m.RequestUUID), role, safe(string(m.Phase)), safe(string(m.Trigger)), m.SourceInstance, m.SurgeInstance,
			b.when("migrations.startedAt", &m.StartedAt), timePtr(&m.Deadline), b.when("migrations.completedAt", m.CompletedAt), safe(m.Reason), safe(m.Message),
		})
	}
	// The newest first; old ones are history.
	slices.SortStableFunc(b.out.Migrations, func(x, y InstanceMove) int {
		return strings.Compare(y.StartedAt+y.RequestUUID, x.StartedAt+x.RequestUUID)
	})
	b.out.Migrations = b.out.Migrations[:min(len(b.out.Migrations), maxMoves)]
}

func (b *instanceBuilder) sources(out []Source, s *v1beta1.InferenceService, now time.Time) []Source {
	rt := &b.in.Runtime
	source := Source{Kind: rt.Kind, Name: safe(rt.Name), Evidence: EvidenceObserved, CollectedAt: stamp(now)}
	if rt.Spec == nil {
		source.Kind, source.Evidence = v1beta1.ClusterServingRuntimeKind, EvidenceUnavailable
		if ref := s.Spec.Runtime; ref != nil {
			source.Name = safe(ref.Name)
			if ref.Kind != nil && *ref.Kind == v1beta1.ServingRuntimeKind {
				source.Kind = *ref.Kind
			}
		}
	}
	if source.Kind == v1beta1.ServingRuntimeKind {
		source.Namespace = s.Namespace
	}
	return append(out, source,
		Source{Kind: "Pod", Namespace: s.Namespace, Evidence: readEvidence(b.in.Pods.Failed), CollectedAt: stamp(now)},
		Source{Kind: "Event", Namespace: s.Namespace, Evidence: readEvidence(b.in.Events.Failed), CollectedAt: stamp(now)})
}

func readEvidence(failed string) string {
	if failed != "" {
		return EvidenceUnavailable
	}
	return EvidenceObserved
}

func safeList(in []string, limit int) []string {
	out := []string{}
	for _, s := range in[:min(len(in), limit)] {
		out = append(out, safe(s))
	}
	return out
}

// ParseIndex reads the index of an Instance.
func ParseIndex(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != s {
		return 0, errors.New("an index is a whole number from 0, without sign or leading zeros")
	}
	return int32(n), nil
}
