package view

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rows"
)

// MaxRows is how many Instance rows of a replica a report looks at, whichever way
// they are stored.
const MaxRows = 20_000

// Warning codes beside PartialData.
const (
	WarningStaleEvidence     = "StaleEvidence"
	WarningTruncated         = "Truncated"
	WarningSourceUnavailable = "SourceUnavailable"
)

// Evidence levels of what a replica's status says.
const (
	EvidenceUnavailable = "Unavailable"
	EvidenceComputed    = "Computed"
	EvidenceStale       = "Stale"
	EvidenceMalformed   = "Malformed"
)

// ReplicaReads is what was read of the InferenceReplicas that carry a service's label.
type ReplicaReads struct {
	Items []v1beta1.InferenceReplica
	// Truncated is true when there are more than were read.
	Truncated bool
	// Failed is the class of the failure, such as Forbidden; empty after a good read.
	Failed string
}

// InstanceIssue is something that keeps a report about Instances from being complete.
type InstanceIssue struct {
	Code      string `json:"code"`
	Component string `json:"component,omitempty"`
	Index     *int32 `json:"index,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

// Issue codes of the replica reads.
const (
	IssueCollectionUnavailable = "CollectionUnavailable"
	IssueCollectionTruncated   = "CollectionTruncated"
	IssueIdentityRejected      = "IdentityRejected"
	IssueComponentMissing      = "ComponentMissing"
	IssueDuplicateComponent    = "DuplicateComponent"
	IssueObservedGenerationBad = "ObservedGenerationInvalid"
	IssueStatusUnobserved      = "StatusUnobserved"
	IssueStatusStale           = "StatusStale"
	IssueParentMissing         = "ParentGenerationMissing"
	IssueParentBad             = "ParentGenerationInvalid"
	IssueParentAhead           = "ParentGenerationAhead"
	IssueParentStale           = "ParentStale"
	IssueRowsLimit             = "RowsLimitExceeded"
	IssueRowsMalformed         = "RowsMalformed"
	IssueSparseIndices         = "SparseIndices"
	IssueRowInvalid            = "RowInvalid"
)

// replicaView is one of a service's replicas with what its status is worth.
type replicaView struct {
	*v1beta1.InferenceReplica
	// standing is the first generation problem, an issue code; empty when the
	// status is about the newest spec of replica and service.
	standing string
	// rows are in the order of their index; decodeErr says why there are none.
	rows      []v1beta1.InstanceStatus
	decodeErr *rows.DecodeError
	tooMany   bool
}

func (r *replicaView) malformed() bool {
	switch r.standing {
	case IssueObservedGenerationBad, IssueParentBad, IssueParentAhead:
		return true
	}
	return false
}

// evidence is the level of what the status says.
func (r *replicaView) evidence() string {
	switch {
	case r.malformed() || r.decodeErr != nil:
		return EvidenceMalformed
	case r.tooMany || r.standing == IssueStatusUnobserved:
		return EvidenceUnavailable
	case r.standing != "":
		return EvidenceStale
	}
	return EvidenceReported
}

// sparse is true when an index between the first Instance and the last is free.
// Indices are a set and gaps are normal; readers who count on them want to know.
func (r *replicaView) sparse() bool {
	n := len(r.rows)
	return n > 0 && int(r.rows[n-1].Index) != n-1
}

// judged is a service's replicas, sorted into components.
type judged struct {
	byComponent map[v1beta1.ComponentType][]*replicaView
	issues      []InstanceIssue
	// rejected is true when an object claims the service and isn't its replica.
	rejected bool
}

func (j *judged) one(c v1beta1.ComponentType) *replicaView {
	if found := j.byComponent[c]; len(found) == 1 {
		return found[0]
	}
	return nil
}

// judge sorts the replicas that were read. It never trusts a label: an object
// belongs to the service when the service controls it.
func judge(s *v1beta1.InferenceService, reads *ReplicaReads) *judged {
	j := &judged{byComponent: map[v1beta1.ComponentType][]*replicaView{}, issues: []InstanceIssue{}}
	if reads.Failed != "" {
		j.issues = append(j.issues, InstanceIssue{Code: IssueCollectionUnavailable, Detail: safe(reads.Failed)})
		return j
	}
	if reads.Truncated {
		j.issues = append(j.issues, InstanceIssue{Code: IssueCollectionTruncated})
	}
	for i := range reads.Items {
		item := &reads.Items[i]
		if why := foreign(s, item); why != "" {
			j.rejected = true
			j.issues = append(j.issues, InstanceIssue{Code: IssueIdentityRejected, Detail: safe(item.Name) + ": " + why})
			continue
		}
		view := &replicaView{InferenceReplica: item, standing: standing(s, item)}
		view.decode()
		j.byComponent[item.Spec.Component] = append(j.byComponent[item.Spec.Component], view)
	}
	return j
}

// Overtaken is true when a replica was brought to a newer spec than the service that
// was read before it: the service has to be read again to judge it.
func Overtaken(s *v1beta1.InferenceService, reads *ReplicaReads) bool {
	return slices.ContainsFunc(reads.Items, func(r v1beta1.InferenceReplica) bool {
		return foreign(s, &r) == "" && standing(s, &r) == IssueParentAhead
	})
}

// standing is the first problem with the generations of a replica.
func standing(s *v1beta1.InferenceService, r *v1beta1.InferenceReplica) string {
	observed, parent := r.Status.ObservedGeneration, r.Annotations[v1beta1.ParentGenerationAnnotation]
	stamp, err := strconv.ParseInt(parent, 10, 64)
	switch {
	case r.Generation < 1 || observed < 0 || observed > r.Generation:
		return IssueObservedGenerationBad
	case parent != "" && (err != nil || stamp < 1 || strconv.FormatInt(stamp, 10) != parent):
		return IssueParentBad
	case parent != "" && stamp > s.Generation:
		return IssueParentAhead
	case observed == 0:
		return IssueStatusUnobserved
	case observed < r.Generation:
		return IssueStatusStale
	case parent == "":
		return IssueParentMissing
	case stamp < s.Generation:
		return IssueParentStale
	}
	return ""
}

// foreign says why an object isn't a replica of the service; empty when it is.
func foreign(s *v1beta1.InferenceService, r *v1beta1.InferenceReplica) string {
	switch {
	case r.Name == "" || r.UID == "" || r.Namespace != s.Namespace:
		return "name, UID or namespace is missing or another one"
	case !v1beta1.IsComponent(r.Spec.Component):
		return "spec.component is no component word"
	case r.Spec.ParentRef == nil || r.Spec.ParentRef.Name != s.Name:
		return "spec.parentRef names another service"
	case !controls(s, r.OwnerReferences):
		return "its one controller owner isn't the service"
	}
	return ""
}

// controls is true when the service is the one controller among the owners.
func controls(s *v1beta1.InferenceService, refs []metav1.OwnerReference) bool {
	found := false
	for _, ref := range refs {
		if ref.Controller == nil || !*ref.Controller {
			continue
		}
		if found || ref.APIVersion != v1beta1.GroupVersion.String() || ref.Kind != v1beta1.InferenceServiceKind ||
			ref.Name != s.Name || ref.UID != s.UID || s.UID == "" {
			return false
		}
		found = true
	}
	return found
}

// decode fills in the rows.
func (r *replicaView) decode() {
	if len(r.Status.InstanceStatuses) > MaxRows {
		r.tooMany = true
		return
	}
	decoded, err := rows.Decode(&r.Status, MaxRows)
	if err != nil {
		var de *rows.DecodeError
		if errors.As(err, &de) && de.Reason == rows.CardinalityLimit {
			r.tooMany = true
			return
		}
		r.decodeErr = de
		return
	}
	slices.SortFunc(decoded, func(a, b v1beta1.InstanceStatus) int { return int(a.Index) - int(b.Index) })
	r.rows = decoded
}

// Kinds of what is wrong with rows.
const (
	badDuplicate = "DUP-IDX"
	badRevision  = "REVISION"
	badCounts    = "COUNTS"
	badPhase     = "PHASE"
	badInstance  = "INSTANCE"
)

// badRows is the kind of a decoding error; empty when no kind fits.
func badRows(e *rows.DecodeError) string {
	field, _, _ := strings.Cut(strings.TrimPrefix(e.Field, "instanceStatusColumns."), "[")
	switch field {
	case "phases":
		return badPhase
	case "runningRevisions", "targetRevisions":
		return badRevision
	case "podCounts", "servingPodCounts", "availablePodCounts":
		return badCounts
	case "incarnations", "admitted", "activeOrdinalOne", "entries":
		return badInstance
	case "instanceStatuses":
		switch e.Reason {
		case rows.Overlap:
			return badDuplicate
		case rows.IndexOverflow:
			return badInstance
		}
	}
	return ""
}

// badRow is the kind of what is wrong with one row; empty when nothing is.
func badRow(replica string, r *v1beta1.InstanceStatus) string {
	switch {
	case !knownPhase(r.Phase):
		return badPhase
	case r.RunningRevision != "" && !revisionOf(replica, r.RunningRevision),
		r.TargetRevision != "" && !revisionOf(replica, r.TargetRevision):
		return badRevision
	case r.PodCount < 0, r.ServingPodCount < 0, r.AvailablePodCount < 0,
		r.ServingPodCount > r.PodCount, r.AvailablePodCount > r.PodCount:
		return badCounts
	case r.Incarnation < 0, r.ActiveOrdinal < 0, r.ActiveOrdinal > 1:
		return badInstance
	}
	return ""
}

func knownPhase(p v1beta1.InstancePhase) bool {
	switch p {
	case v1beta1.InstancePending, v1beta1.InstanceCreating, v1beta1.InstanceReady, v1beta1.InstanceUpdating,
		v1beta1.InstanceRestarting, v1beta1.InstanceMigrating, v1beta1.InstanceFailed, v1beta1.InstanceDeleting:
		return true
	}
	return false
}

// issue describes what is wrong with the replica as a whole.
func (r *replicaView) addIssues(add func(InstanceIssue)) {
	c := string(r.Spec.Component)
	if r.standing != "" {
		add(InstanceIssue{Code: r.standing, Component: c, Detail: r.generations()})
	}
	switch {
	case r.tooMany:
		add(InstanceIssue{Code: IssueRowsLimit, Component: c, Detail: fmt.Sprintf("more than %d Instance rows", MaxRows)})
	case r.decodeErr != nil:
		add(InstanceIssue{Code: IssueRowsMalformed, Component: c, Detail: safe(r.decodeErr.Error())})
	}
}

func (r *replicaView) generations() string {
	parent := r.Annotations[v1beta1.ParentGenerationAnnotation]
	if parent == "" {
		parent = "none"
	}
	return fmt.Sprintf("generation=%d observed=%d parent=%s", r.Generation, r.Status.ObservedGeneration, safeTo(parent, 24))
}

// expected are the components that have, or should have, Instances as far as the
// service itself and the replicas tell.
func (j *judged) expected(s *v1beta1.InferenceService) []v1beta1.ComponentType {
	var out []v1beta1.ComponentType
	for _, c := range v1beta1.Components() {
		declared := s.Spec.Extension(c) != nil && s.Spec.DeclaredMode(c) == v1beta1.OMENativeMode
		if declared || s.Status.Components[c].Lifecycle != nil || len(j.byComponent[c]) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// sources are the service and the replicas that were used.
func (j *judged) sources(s *v1beta1.InferenceService, reads *ReplicaReads, now time.Time, only v1beta1.ComponentType) []Source {
	out := []Source{{v1beta1.InferenceServiceKind, s.Namespace, s.Name, string(s.UID), s.Generation, EvidenceObserved, stamp(now)}}
	if reads.Failed != "" {
		return append(out, Source{Kind: v1beta1.InferenceReplicaKind, Namespace: s.Namespace, Evidence: EvidenceUnavailable, CollectedAt: stamp(now)})
	}
	for _, c := range v1beta1.Components() {
		for _, r := range j.byComponent[c] {
			if only == "" || only == c {
				out = append(out, Source{v1beta1.InferenceReplicaKind, r.Namespace, r.Name, string(r.UID), r.Generation, r.evidence(), stamp(now)})
			}
		}
	}
	return out
}

// incomplete is true for issues that take something away. Gaps in the indices are
// worth knowing and take nothing.
func incomplete(issues []InstanceIssue) bool {
	return slices.ContainsFunc(issues, func(i InstanceIssue) bool { return i.Code != IssueSparseIndices })
}

// warningsOf are the codes that issues amount to.
func warningsOf(issues []InstanceIssue) []Warning {
	out := []Warning{}
	if incomplete(issues) {
		out = append(out, Warning{WarningPartialData})
	}
	has := func(codes ...string) bool {
		return slices.ContainsFunc(issues, func(i InstanceIssue) bool { return slices.Contains(codes, i.Code) })
	}
	if has(IssueStatusStale, IssueParentStale) {
		out = append(out, Warning{WarningStaleEvidence})
	}
	if has(IssueCollectionTruncated, IssueBlocksTruncated, IssuePodsTruncated, IssueEventsTruncated, IssueRowsLimit) {
		out = append(out, Warning{WarningTruncated})
	}
	if has(IssueCollectionUnavailable, IssuePodsUnavailable, IssueEventsUnavailable, IssueRuntimeUnavailable) {
		out = append(out, Warning{WarningSourceUnavailable})
	}
	return out
}

func timePtr(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return stamp(t.Time)
}
