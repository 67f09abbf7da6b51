package instance

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// mainContainer is the container whose restarts count: sidecars do not.
const mainContainer = "ome-container"

// rising is the pod that the row's operation brings up, nil while there is none.
func (d *decider) rising(row *v1beta1.InstanceStatus) *pod {
	slot := d.building(row)
	if slot < 0 {
		return nil
	}
	p := d.podsOf(row.Index).bySlot[slot]
	if p == nil || p.terminating || p.hash != d.hashOf(row.Operation.TargetRevision) {
		return nil
	}
	if rebuilds(row.Operation) && p.incarnation != row.Incarnation {
		return nil
	}
	if row.Operation.Step != v1beta1.StepInPlace && leftover(p, row.Operation) {
		return nil
	}
	return p
}

// leftover is true for a pod that an earlier attempt left and that did not come up: a new
// attempt replaces it, and is not judged by it.
func leftover(p *pod, op *v1beta1.InstanceOperation) bool {
	return op.RetryCount > 0 && !p.containersReady && p.operation() != op.ID
}

// rebuilds is true for an operation that removes every pod before it makes a new one.
func rebuilds(op *v1beta1.InstanceOperation) bool {
	return op.Step == v1beta1.StepDrain &&
		(op.Type == v1beta1.OperationRestart || (op.Type == v1beta1.OperationUpdate && op.Strategy != v1beta1.SurgeThenDrain))
}

// judge keeps the clock of an operation and ends the operation when it failed. It is
// true then, and nothing more is to be done for the row in this pass.
func (d *decider) judge(row *v1beta1.InstanceStatus) bool {
	op := row.Operation
	if op.Type == v1beta1.OperationDelete {
		if op.Deadline != nil {
			d.wakeAt(op.Deadline.Time)
		}
		return false
	}
	if op.Waiting == v1beta1.WaitingRestartBackoff || row.Phase == v1beta1.InstanceFailed {
		return false
	}
	p := d.rising(row)
	token, parked := d.heldFromOutside(row, p)
	d.keepClock(row, token, parked)
	if p.serving() {
		return false // an Instance that serves is never failed
	}
	if d.turns(row) {
		return false // the spec moved on, and so will the operation
	}
	if slot := d.building(row); slot >= 0 && d.held(op.TargetRevision) && d.podsOf(row.Index).bySlot[slot] == nil {
		// The revision was held before this attempt made its pod: it gets none.
		row.Phase, d.openKnown = v1beta1.InstanceFailed, false
		if op.Type != v1beta1.OperationRestart {
			d.forget(row)
			row.Operation, row.TargetRevision = nil, ""
		}
		return true
	}
	return d.endIfFailed(row, p, parked)
}

// endIfFailed ends an operation that failed; it is true then.
func (d *decider) endIfFailed(row *v1beta1.InstanceStatus, p *pod, parked bool) bool {
	f := d.failureOf(row, p, parked)
	if f == nil {
		return false
	}
	d.fail(row, f)
	return true
}

// judgeStill is for an operation that the next target should have taken over, and that
// had to go on with its own: it fails like any other.
func (d *decider) judgeStill(row *v1beta1.InstanceStatus) {
	p := d.rising(row)
	if _, parked := d.heldFromOutside(row, p); !p.serving() && d.turns(row) {
		d.endIfFailed(row, p, parked)
	}
}

// turns is true for an operation that the next target takes over.
func (d *decider) turns(row *v1beta1.InstanceStatus) bool {
	op, want := row.Operation, d.wants(row)
	if op.Type == v1beta1.OperationRestart || op.TargetRevision == want || d.in.Paused || d.in.Revisions[want].Template == nil {
		return false
	}
	return want == row.RunningRevision || (d.mayStart() && d.mayAttempt(want) == nil)
}

// heldFromOutside names what holds the operation, and says whether its clock stands
// still meanwhile.
func (d *decider) heldFromOutside(row *v1beta1.InstanceStatus, p *pod) (token string, parked bool) {
	op := row.Operation
	s := d.podsOf(row.Index)
	slot := d.building(row)
	refusal, refused := d.refused(row, slot)
	switch {
	case refused && refusal.Kind == RefusedQuota:
		return v1beta1.WaitingQuotaExceeded, true
	case p == nil && !refused && op.CapacityRefusedAt != nil && (slot < 0 || s.bySlot[slot] == nil):
		// It was refused before, and nobody has asked again yet.
		return v1beta1.WaitingQuotaExceeded, true
	case p != nil && p.unschedulable:
		return v1beta1.WaitingUnschedulable, true
	case p == nil && d.nodeSilent(row, s):
		return v1beta1.WaitingNodeUnknown, true
	case d.in.Paused && op.Waiting == v1beta1.WaitingPaused:
		return v1beta1.WaitingPaused, true
	case d.in.Paused, p != nil && p.gated:
		return "", true
	case op.Type == v1beta1.OperationUpdate && op.Step == v1beta1.StepSurge && op.TargetRevision != row.RunningRevision:
		if old := s.bySlot[row.ActiveOrdinal]; old.live() && !old.serving() {
			return v1beta1.WaitingSourceUnrouted, false
		}
	}
	return "", false
}

// nodeSilent is true while a pod that has to go first sits on a node that says nothing.
func (d *decider) nodeSilent(row *v1beta1.InstanceStatus, s *slots) (silent bool) {
	slot, all := d.building(row), rebuilds(row.Operation)
	s.all(func(p *pod) {
		if all || p.ordinal == slot {
			silent = silent || p.unknown || (p.terminating && !d.in.Now.Before(p.graceEnds()))
		}
	})
	return silent
}

// keepClock writes token and deadline where they differ. When a hold ends the whole
// window is granted again.
func (d *decider) keepClock(row *v1beta1.InstanceStatus, token string, parked bool) {
	op := row.Operation
	deadline := op.Deadline
	switch {
	case parked || d.in.ReadyTimeout <= 0:
		deadline = nil
	case deadline == nil:
		deadline = new(metav1.NewTime(d.in.Now.Add(d.in.ReadyTimeout)))
	}
	refusedAt := op.CapacityRefusedAt
	switch {
	case token != v1beta1.WaitingQuotaExceeded:
		refusedAt = nil
	case refusedAt == nil:
		refusedAt = new(metav1.NewTime(d.in.Now))
	}
	if op.Waiting != token || (deadline == nil) != (op.Deadline == nil) || (refusedAt == nil) != (op.CapacityRefusedAt == nil) {
		op = d.edit(row)
		op.Waiting, op.Deadline, op.CapacityRefusedAt = token, deadline, refusedAt
	}
	if deadline != nil && !d.rising(row).serving() {
		d.wakeAt(deadline.Time)
	}
}

// refused is the API server's answer to the creation of the pod of a slot.
func (d *decider) refused(row *v1beta1.InstanceStatus, slot int32) (Refusal, bool) {
	if slot < 0 || len(d.in.RefusedPods) == 0 || d.podsOf(row.Index).bySlot[slot] != nil {
		return Refusal{}, false
	}
	r, ok := d.in.RefusedPods[PodName(d.in.Prefix, d.in.Component, row.Index, slot)]
	return r, ok
}

// newDeadline is the deadline of an operation that begins now.
func (d *decider) newDeadline(kind v1beta1.InstanceOperationType) *metav1.Time {
	if d.in.ReadyTimeout <= 0 || (d.in.Paused && kind != v1beta1.OperationDelete) {
		return nil
	}
	return new(metav1.NewTime(d.in.Now.Add(d.in.ReadyTimeout)))
}

// after is true once the time since then has passed; else the decider wakes at its end.
// A grace of 0 never passes.
func (d *decider) after(since time.Time, grace time.Duration) bool {
	if grace <= 0 {
		return false
	}
	due := since.Add(grace)
	if d.in.Now.Before(due) {
		d.wakeAt(due)
		return false
	}
	return true
}
