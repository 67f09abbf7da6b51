package instance

import (
	"ome.io/ome/api/v1beta1"
)

// A rebuild takes every pod of an Instance out of rotation, deletes it, waits until
// none is left and makes a new one of the next incarnation. RecreatePod updates and
// restarts are rebuilds. Pods say by their incarnation label which side they are on.

// openRebuild opens a rebuild at a revision.
func (d *decider) openRebuild(row *v1beta1.InstanceStatus, kind v1beta1.InstanceOperationType, revision, reason string) {
	d.open(row, kind, v1beta1.StepDrain, revision, reason)
	if kind == v1beta1.OperationUpdate {
		row.Operation.Strategy = d.pinned()
	}
	row.Incarnation++
}

// pinned is the strategy that a rebuilding update records.
func (d *decider) pinned() v1beta1.UpdateStrategyType {
	if d.in.Strategy == v1beta1.SurgeThenDrain || d.in.Strategy == "" {
		return v1beta1.RecreatePod
	}
	return d.in.Strategy
}

func (d *decider) advanceRebuild(row *v1beta1.InstanceStatus) {
	s := d.podsOf(row.Index)
	if row.Operation.Type == v1beta1.OperationUpdate && d.retargetRebuild(row, s) {
		return
	}
	op := row.Operation
	if op.Type == v1beta1.OperationUpdate {
		for _, p := range s.bySlot {
			if p.live() && p.incarnation != row.Incarnation && p.hash != d.hashOf(op.TargetRevision) && op.TargetRevision != row.RunningRevision &&
				d.held(op.TargetRevision) && d.callOff(row, p) {
				return // it was held while the old pod was still there
			}
			if p.serving() && (p.incarnation != row.Incarnation || p.hash != d.hashOf(op.TargetRevision)) && !d.mayTakeOut(row) && d.callOff(row, p) {
				return
			}
		}
	}
	busy := false
	s.all(func(p *pod) {
		switch {
		case p.incarnation == row.Incarnation && p.hash == d.hashOf(op.TargetRevision):
		case p.incarnation == 0 && op.Type == v1beta1.OperationRestart && !p.terminating:
			busy = true
			if d.once(row, v1beta1.EventFoundOrphan, op.ID) {
				d.warn(v1beta1.EventFoundOrphan, "pod %s of Instance %s-%d has no %s label; the restart waits until it is gone",
					p.obj.Name, d.in.Component, row.Index, v1beta1.InstanceIncarnationLabel)
			}
		case p.terminating && !d.in.Now.Before(p.graceEnds()):
			// Its node may never confirm the end; its name may be in the way.
		default:
			busy = true
			if p.terminating {
				d.wakeAt(p.graceEnds())
			}
			d.remove(p, op, "Replaced")
		}
	})
	if busy {
		return
	}
	if p := s.bySlot[row.ActiveOrdinal]; p != nil && p.terminating && s.bySlot[1-row.ActiveOrdinal] == nil && !d.in.Now.Before(p.graceEnds()) {
		row.ActiveOrdinal = 1 - row.ActiveOrdinal
	}
	if d.bringUp(row, row.ActiveOrdinal, op.TargetRevision) {
		if op.Type == v1beta1.OperationRestart {
			d.tell(v1beta1.EventRestartCompleted, "Instance %s-%d serves again in incarnation %d", d.in.Component, row.Index, row.Incarnation)
		}
		d.settle(row, op.TargetRevision)
	}
}

// retargetRebuild follows a change of the target. It is true when the update ended
// because the pod that was to go is wanted again.
func (d *decider) retargetRebuild(row *v1beta1.InstanceStatus, s *slots) bool {
	op, want := row.Operation, d.wants(row)
	if op.TargetRevision == want || d.in.Paused {
		return false
	}
	for _, p := range s.bySlot {
		if want == row.RunningRevision && p.live() && p.incarnation != row.Incarnation && p.hash == d.hashOf(want) {
			row.Incarnation, row.ActiveOrdinal = p.incarnation, p.ordinal
			d.settle(row, want)
			return true
		}
	}
	if d.rising(row).serving() || d.in.Revisions[want].Template == nil {
		return false // it ends first
	}
	if want != row.RunningRevision && (!d.mayStart() || d.mayAttempt(want) != nil) {
		return false
	}
	strategy := op.Strategy
	d.open(row, v1beta1.OperationUpdate, v1beta1.StepDrain, want, op.Reason)
	row.Operation.Strategy, row.Operation.RetryCount = strategy, d.beginAttempt(want)
	return false
}
