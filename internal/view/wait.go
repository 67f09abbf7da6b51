package view

import (
	"time"

	"ome.io/ome/api/v1beta1"
)

// WaitReport is the report of `wait`.
type WaitReport = Report[Wait]

// WaitFamily is a kind of predicate.
type WaitFamily string

// The predicates.
const (
	WaitReady        WaitFamily = "condition"
	WaitRollout      WaitFamily = "rollout"
	WaitMigration    WaitFamily = "migration"
	WaitReplicaReady WaitFamily = "replicas=ready"
	WaitReplicaCount WaitFamily = "replicas=current"
	WaitRuntimeSync  WaitFamily = "runtime-sync"
	WaitHeld         WaitFamily = "held-revision"
)

// WaitPredicate is what to wait for.
type WaitPredicate struct {
	Family WaitFamily
	// Want is the status of the condition, or the word of the rollout.
	Want       string
	RequestID  string
	Component  v1beta1.ComponentType
	Replicas   int32
	Revision   string
	ReplicaIs  string
	ReplicaUID string
}

// Requested is the predicate as the report shows it.
func (p *WaitPredicate) Requested() string {
	switch p.Family {
	case WaitReady:
		return "Ready=" + p.Want
	case WaitRollout:
		return "Rollout=" + map[string]string{"stable": "Stable", "failed": "Failed", "rolled-back": "RolledBack", "paused": "Paused"}[p.Want]
	case WaitMigration:
		return "Migration=Terminal"
	case WaitReplicaReady:
		return "Replicas=Ready"
	case WaitReplicaCount:
		return "Replicas=Current"
	case WaitRuntimeSync:
		return "RuntimeSync=Acknowledged"
	}
	return "HeldRevision=Unheld"
}

// Watches is true for a predicate on the service alone that a watch can follow.
func (p *WaitPredicate) Watches() bool { return p.Family == WaitReady || p.Family == WaitRollout }

// NeedsReplicas is true for a predicate on the InferenceReplicas.
func (p *WaitPredicate) NeedsReplicas() bool {
	switch p.Family {
	case WaitMigration, WaitReplicaReady, WaitReplicaCount, WaitHeld:
		return true
	}
	return false
}

// Wait is how the wait ended and what the last check saw.
type Wait struct {
	Requested string `json:"requested"`
	Outcome   string `json:"outcome"`
	Reason    string `json:"reason"`
	Evidence  string `json:"evidence"`

	Observed      *WaitObserved  `json:"observed,omitempty"`
	Rollout       *WaitedRollout `json:"rollout,omitempty"`
	Migration     *WaitedMove    `json:"migration,omitempty"`
	ReadyReplicas *WaitedReady   `json:"readyReplicas,omitempty"`
	Scale         *WaitedScale   `json:"scale,omitempty"`
	RuntimeSync   *WaitedSync    `json:"runtimeSync,omitempty"`
	HeldRevision  *WaitedHeld    `json:"heldRevision,omitempty"`

	ElapsedMilliseconds int64      `json:"elapsedMilliseconds"`
	Counts              WaitCounts `json:"counts"`
	SourceMethod        string     `json:"sourceMethod"`
	PollingFallback     bool       `json:"pollingFallback"`

	predicate *WaitPredicate
}

// WaitCounts is what the wait cost.
type WaitCounts struct {
	Gets         int `json:"gets"`
	Watches      int `json:"watches"`
	Polls        int `json:"polls"`
	Events       int `json:"events"`
	Observations int `json:"observations"`
}

// WaitObserved is the Ready condition.
type WaitObserved struct {
	Status              string         `json:"status"`
	Validity            string         `json:"validity"`
	GenerationFreshness string         `json:"generationFreshness"`
	Inspection          WaitInspection `json:"inspection"`
}

// WaitInspection is how much of a list was looked at.
type WaitInspection struct {
	State     string   `json:"state"`
	Total     int      `json:"total"`
	Inspected int      `json:"inspected"`
	Warnings  []string `json:"warnings"`
}

// WaitedRollout is what `rollout status` would say.
type WaitedRollout struct {
	ReportedState       string         `json:"reportedState"`
	State               string         `json:"state"`
	Validity            string         `json:"validity"`
	Evidence            string         `json:"evidence"`
	Epoch               string         `json:"epoch"`
	CoordinationReady   string         `json:"coordinationReady"`
	GenerationFreshness string         `json:"generationFreshness"`
	Expansion           string         `json:"expansion"`
	Inspection          WaitInspection `json:"inspection"`
	Issues              []Issue        `json:"issues"`
}

// WaitedMove is a migration's record.
type WaitedMove struct {
	RequestID        string `json:"requestID"`
	Phase            string `json:"migrationPhase"`
	MigrationOutcome string `json:"migrationOutcome,omitempty"`
	Component        string `json:"component,omitempty"`
	Validity         string `json:"validity"`
}

// WaitedReady is a component's ready count.
type WaitedReady struct {
	Component string           `json:"component"`
	Target    int32            `json:"targetReplicas"`
	Observed  *int32           `json:"observedReplicas,omitempty"`
	Replica   *WaitedReplicaID `json:"inferenceReplica,omitempty"`
	Validity  string           `json:"validity"`
	Freshness string           `json:"freshness"`
}

// WaitedReplicaID is the replica that the wait is bound to.
type WaitedReplicaID struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// WaitedScale is a component's wanted and present count.
type WaitedScale struct {
	Component string           `json:"component"`
	Target    int32            `json:"targetReplicas"`
	Spec      *int32           `json:"specReplicas,omitempty"`
	Current   *int32           `json:"currentReplicas,omitempty"`
	Ready     *int32           `json:"readyReplicas,omitempty"`
	Replica   *WaitedReplicaID `json:"inferenceReplica,omitempty"`
	Encoding  string           `json:"statusEncoding,omitempty"`
	Validity  string           `json:"validity"`
	Freshness string           `json:"freshness"`
}

// WaitedSync is the state of a runtime sync request.
type WaitedSync struct {
	RequestID           string `json:"requestID"`
	TokenState          string `json:"tokenState"`
	DriftState          string `json:"driftState"`
	PinState            string `json:"pinState"`
	PlacementState      string `json:"placementState"`
	Validity            string `json:"validity"`
	InspectedConditions int    `json:"inspectedConditions"`
	GenerationFreshness string `json:"generationFreshness"`
}

// WaitedHeld is the retry block of a revision.
type WaitedHeld struct {
	Component string           `json:"component"`
	Revision  string           `json:"revision"`
	Replica   *WaitedReplicaID `json:"inferenceReplica,omitempty"`
	Target    string           `json:"targetState"`
	Mailbox   string           `json:"mailboxState"`
	Validity  string           `json:"validity"`
	Freshness string           `json:"freshness"`
}

// Outcomes of a wait.
const (
	OutcomeMatched  = "Matched"
	OutcomeTimedOut = "TimedOut"
	OutcomeNotFound = "NotFound"
	OutcomeDeleted  = "Deleted"
	OutcomeReplaced = "Replaced"
)

// Source methods of the last check.
const (
	MethodInitialGET = "InitialGET"
	MethodWatch      = "Watch"
	MethodPoll       = "Poll"
	MethodRefreshGET = "RefreshGET"
)

// Words of validity and freshness.
const (
	valid                = "Valid"
	freshCurrent         = "Current"
	freshStale           = "Stale"
	freshUnobserved      = "Unobserved"
	freshUnverifiable    = "Unverifiable"
	inspectionComplete   = "Complete"
	inspectionPartial    = "Partial"
	reasonPredicateUnmet = "PredicateUnmet"
)

// Errors that end a wait without a report.
const (
	WaitConditionLimit = "ConditionInspectionLimit"
	WaitRolloutLimit   = "RolloutInspectionLimit"
)

// WaitInput is one look at the cluster.
type WaitInput struct {
	// Service is nil when it isn't there.
	Service  *v1beta1.InferenceService
	Replicas *ReplicaReads
}

// Waiter checks a predicate again and again. It binds itself to the first object
// it sees: another one of the same name never matches.
type Waiter struct {
	Predicate *WaitPredicate
	// uid is the service's, replicaUID that of the replica.
	uid, replicaUID string
	last            Wait
	// ended is set when the service itself ended the wait, before a check.
	ended bool
}

// NewWaiter starts with nothing seen.
func NewWaiter(p *WaitPredicate) *Waiter {
	w := &Waiter{Predicate: p, replicaUID: p.ReplicaUID}
	w.last = Wait{Requested: p.Requested(), Reason: reasonPredicateUnmet, Evidence: EvidenceUnavailable, predicate: p}
	return w
}

// Check judges one look. The outcome is empty while the wait goes on. failed is
// the error code of a status that is too large to look through.
func (w *Waiter) Check(in *WaitInput, reference time.Time) (outcome, failed string) {
	s := in.Service
	w.ended = true
	switch {
	case s == nil && w.uid == "":
		return OutcomeNotFound, ""
	case s == nil:
		return OutcomeDeleted, ""
	case w.uid != "" && string(s.UID) != w.uid:
		return OutcomeReplaced, ""
	case s.DeletionTimestamp != nil:
		w.uid = string(s.UID)
		return OutcomeDeleted, ""
	}
	w.uid, w.ended = string(s.UID), false
	// Only what this check saw: an older section must not outlive it.
	w.last = Wait{Requested: w.last.Requested, Evidence: EvidenceReported, predicate: w.Predicate}
	matched := false
	switch w.Predicate.Family {
	case WaitReady:
		matched, failed = w.ready(s, reference)
	case WaitRollout:
		matched, failed = w.rollout(s, reference)
	case WaitRuntimeSync:
		matched, failed = w.runtimeSync(s, reference)
	case WaitMigration:
		matched = w.migration(s, in.Replicas, reference)
	default:
		matched, outcome = w.replica(s, in.Replicas, reference)
	}
	if matched {
		outcome = OutcomeMatched
	}
	return outcome, failed
}

// Report is the end of the wait.
func (w *Waiter) Report(namespace, name, outcome string, elapsed time.Duration, counts WaitCounts, method string, fallback bool, now time.Time) *WaitReport {
	content := w.last
	content.Outcome, content.Counts, content.SourceMethod, content.PollingFallback = outcome, counts, method, fallback
	content.ElapsedMilliseconds = elapsed.Milliseconds()
	if w.ended {
		content.Reason = reasonPredicateUnmet
	}
	r := &WaitReport{APIVersion: APIVersion, Kind: "WaitReport", Metadata: Metadata{namespace, name}, CollectedAt: stamp(now),
		Sources: []Source{}, Content: content, Warnings: []Warning{}}
	if content.Evidence == EvidenceUnavailable {
		r.Warnings = append(r.Warnings, Warning{WarningPartialData})
	}
	return r
}

// generationFreshness compares a stamp with the generation it should have. A
// status without a stamp proves nothing either way.
func generationFreshness(observed, generation int64) string {
	switch {
	case observed == 0:
		return freshUnobserved
	case observed < 0 || observed > generation:
		return stateInvalid
	case observed < generation:
		return freshStale
	}
	return freshCurrent
}
