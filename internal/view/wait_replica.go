package view

import (
	"slices"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rows"
)

// migration judges the record of a request, wherever among the service's replicas
// it is.
func (w *Waiter) migration(s *v1beta1.InferenceService, reads *ReplicaReads, reference time.Time) bool {
	o := &WaitedMove{RequestID: w.Predicate.RequestID, Phase: stateNotReported, Validity: stateUnavailable}
	w.last.Migration = o
	j := judge(s, reads)
	var found []*v1beta1.MigrationStatus
	for _, c := range v1beta1.Components() {
		for _, r := range j.byComponent[c] {
			for i := range r.Status.Migrations {
				if m := &r.Status.Migrations[i]; m.RequestUUID == o.RequestID {
					found = append(found, m)
					o.Component = string(c)
				}
			}
		}
	}
	switch {
	case len(found) == 0:
		w.last.Reason, w.last.Evidence = "MigrationNotRecorded", EvidenceUnavailable
		return false
	case len(found) > 1, found[0].StartedAt.After(reference), found[0].CompletedAt != nil && found[0].CompletedAt.After(reference):
		o.Validity, w.last.Reason = stateInvalid, "InvalidMigration"
		return false
	}
	o.Phase, o.Validity = safe(string(found[0].Phase)), valid
	switch found[0].Phase {
	case v1beta1.MigrationCompleted, v1beta1.MigrationFailed, v1beta1.MigrationRelocated:
		o.MigrationOutcome = o.Phase
		w.last.Reason = "MigrationMatched"
		return true
	case v1beta1.MigrationAccepted, v1beta1.MigrationSurgePending, v1beta1.MigrationSurgeReady, v1beta1.MigrationDraining,
		v1beta1.MigrationPending, v1beta1.MigrationInProgress:
		w.last.Reason = "MigrationInProgress"
	default:
		o.Validity, w.last.Reason = stateInvalid, "InvalidMigration"
	}
	return false
}

// replicaState is why a replica can't be judged yet, in words that all predicates
// about one replica share.
type replicaState int

const (
	replicaUsable replicaState = iota
	replicaMissing
	replicaReplaced
	replicaDeleting
	replicaStale
	replicaIncomplete
	replicaInvalid
	replicaPlaced
	replicaNoTarget
)

// find binds the wait to a replica of the component and says what it is worth.
func (w *Waiter) find(s *v1beta1.InferenceService, reads *ReplicaReads) (*replicaView, replicaState) {
	p := w.Predicate
	if placed(s) {
		return nil, replicaPlaced
	}
	if t := s.Status.Components[p.Component].ScaleTargetRef; t != nil && t.Kind != v1beta1.InferenceReplicaKind {
		return nil, replicaNoTarget
	}
	j := judge(s, reads)
	found := j.byComponent[p.Component]
	switch {
	case len(found) > 1:
		return nil, replicaInvalid
	case len(found) == 0 && reads.Truncated:
		return nil, replicaIncomplete
	case len(found) == 0 && j.rejected:
		return nil, replicaInvalid
	case len(found) == 0:
		return nil, replicaMissing
	}
	r := found[0]
	if p.ReplicaIs != "" && r.Name != p.ReplicaIs {
		return r, replicaInvalid
	}
	if w.replicaUID == "" {
		w.replicaUID = string(r.UID)
	}
	switch {
	case string(r.UID) != w.replicaUID:
		return r, replicaReplaced
	case r.DeletionTimestamp != nil:
		return r, replicaDeleting
	case r.malformed():
		return r, replicaInvalid
	case r.standing != "":
		return r, replicaStale
	}
	return r, replicaUsable
}

// replica judges the predicates about one replica. A replica of another UID than
// the one that the wait is bound to ends it: it could only time out.
func (w *Waiter) replica(s *v1beta1.InferenceService, reads *ReplicaReads, reference time.Time) (matched bool, outcome string) {
	r, state := w.find(s, reads)
	if state == replicaReplaced {
		outcome = OutcomeReplaced
	}
	var id *WaitedReplicaID
	freshness := stateUnavailable
	if r != nil {
		id = &WaitedReplicaID{safe(r.Name), safe(string(r.UID))}
		freshness = freshCurrent
		switch {
		case r.malformed():
			freshness = stateInvalid
		case r.standing == IssueStatusUnobserved:
			freshness = freshUnobserved
		case r.standing != "":
			freshness = freshStale
		}
	}
	switch w.Predicate.Family {
	case WaitReplicaReady:
		matched = w.readyReplicas(r, state, id, freshness)
	case WaitReplicaCount:
		matched = w.currentReplicas(r, state, id, freshness)
	default:
		matched = w.held(r, state, id, freshness, reference)
	}
	return matched, outcome
}

// unusable gives a count predicate its reason and validity; false when the
// replica can be judged.
func (w *Waiter) unusable(state replicaState, family string) (validity string, yes bool) {
	switch state {
	case replicaUsable:
		return valid, false
	case replicaStale:
		w.last.Reason = family + "NotMatched"
		return valid, true
	case replicaMissing, replicaIncomplete:
		w.last.Reason, w.last.Evidence = family+"NotRecorded", EvidenceUnavailable
		return stateUnavailable, true
	case replicaNoTarget, replicaPlaced:
		w.last.Evidence = EvidenceUnavailable
		if family == "ReplicaScale" {
			w.last.Reason = "UnsupportedReplicaScaleTarget"
			return stateUnavailable, true
		}
	}
	w.last.Reason = "Invalid" + family + "Evidence"
	return stateInvalid, true
}

// readyReplicas compares the ready count. Only the count matters: indices may
// have gaps.
func (w *Waiter) readyReplicas(r *replicaView, state replicaState, id *WaitedReplicaID, freshness string) bool {
	p := w.Predicate
	o := &WaitedReady{Component: string(p.Component), Target: p.Replicas, Replica: id, Freshness: freshness}
	w.last.ReadyReplicas = o
	if r != nil {
		o.Observed = &r.Status.ReadyReplicas
	}
	var unusable bool
	if o.Validity, unusable = w.unusable(state, "ReplicaReady"); unusable {
		return false
	}
	if !plausible(r) {
		o.Validity, w.last.Reason = stateInvalid, "InvalidReplicaReadyEvidence"
		return false
	}
	if r.Status.ReadyReplicas == p.Replicas {
		w.last.Reason = "ReplicaReadyMatched"
		return true
	}
	w.last.Reason = "ReplicaReadyNotMatched"
	return false
}

// plausible is false for counts that can't be, and for rows that can't be read:
// the manager works on neither.
func plausible(r *replicaView) bool {
	st := &r.Status
	return r.decodeErr == nil && !r.tooMany && st.Replicas >= 0 && st.ReadyReplicas >= 0 && st.ReadyReplicas <= st.Replicas
}

// currentReplicas compares the wanted and the present count.
func (w *Waiter) currentReplicas(r *replicaView, state replicaState, id *WaitedReplicaID, freshness string) bool {
	p := w.Predicate
	o := &WaitedScale{Component: string(p.Component), Target: p.Replicas, Replica: id, Freshness: freshness}
	w.last.Scale = o
	if r != nil {
		o.Spec, o.Current, o.Ready = r.Spec.Replicas, &r.Status.Replicas, &r.Status.ReadyReplicas
		o.Encoding = safe(string(rows.EncodingOf(&r.Status)))
	}
	var unusable bool
	if o.Validity, unusable = w.unusable(state, "ReplicaScale"); unusable {
		return false
	}
	switch {
	case !plausible(r) || len(r.rows) != int(r.Status.Replicas):
		o.Validity, w.last.Reason = stateInvalid, "InvalidReplicaScaleEvidence"
	case r.Spec.Replicas == nil:
		o.Validity, w.last.Reason = stateUnavailable, "ReplicaScaleNotRecorded"
	case *r.Spec.Replicas == p.Replicas && r.Status.Replicas == p.Replicas:
		w.last.Reason = "ReplicaScaleMatched"
		return true
	default:
		w.last.Reason = "ReplicaScaleNotMatched"
	}
	return false
}

// held judges the retry block of a revision and the request to release it.
func (w *Waiter) held(r *replicaView, state replicaState, id *WaitedReplicaID, freshness string, reference time.Time) bool {
	p := w.Predicate
	o := &WaitedHeld{Component: string(p.Component), Revision: p.Revision, Replica: id, Target: StateUnknown, Mailbox: StateUnknown, Validity: stateUnavailable, Freshness: freshness}
	w.last.HeldRevision = o
	reason := map[replicaState]string{
		replicaMissing: "ReplicaMissing", replicaReplaced: "ReplicaReplaced", replicaDeleting: "Deleting", replicaStale: "SourceStale",
		replicaIncomplete: "SourceIncomplete", replicaInvalid: "SourceInvalid", replicaPlaced: "UnsupportedPlacement", replicaNoTarget: "SourceInvalid",
	}[state]
	if reason != "" {
		w.last.Reason = reason
		if state != replicaStale {
			w.last.Evidence = EvidenceUnavailable
		}
		if state == replicaInvalid {
			o.Validity = stateInvalid
		}
		return false
	}
	o.Mailbox = "Absent"
	if v, ok := r.Annotations[v1beta1.ReleaseHeldRevisionAnnotation]; ok {
		o.Mailbox = "Superseded"
		if v == p.Revision || r.Name+"-"+v == p.Revision {
			o.Mailbox = "Pending"
		}
	}
	o.Validity = valid
	if r.decodeErr != nil {
		o.Validity, w.last.Reason = stateInvalid, "InvalidStatus"
		return false
	}
	o.Target = "Absent"
	if len(r.Status.RetryBlocks) > maxBlocks {
		o.Target, o.Validity, w.last.Reason = StateUnknown, stateInvalid, "InvalidRetryBlocks"
		return false
	}
	if i := slices.IndexFunc(r.Status.RetryBlocks, func(b v1beta1.RetryBlock) bool { return b.TargetRevision == p.Revision }); i >= 0 {
		if len(blockProblems(r.Name, r.Status.RetryBlocks, i, reference)) > 0 {
			o.Target, o.Validity, w.last.Reason = StateUnknown, stateInvalid, "InvalidRetryBlocks"
			return false
		}
		o.Target = string(r.Status.RetryBlocks[i].State)
	}
	switch {
	case o.Mailbox == "Pending":
		w.last.Reason = "MailboxPending"
	case o.Mailbox == "Superseded":
		w.last.Reason = "MailboxSuperseded"
	case o.Target == string(v1beta1.RetryHeld):
		w.last.Reason = "Held"
	default:
		w.last.Reason = "Unheld"
		return true
	}
	return false
}
