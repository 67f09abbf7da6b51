package instance

import (
	"ome.io/ome/api/v1beta1"
)

// advance moves one row as far as its pods allow in this pass.
func (d *decider) advance(row *v1beta1.InstanceStatus) {
	switch {
	case row.Phase == v1beta1.InstanceFailed:
		d.atFailed(row)
		return
	case row.Operation == nil:
		d.atRest(row)
		return
	}
	if d.judge(row) {
		return
	}
	d.escalate(row)
	id, acted := row.Operation.ID, len(d.res.Pods)
	d.step(row)
	if op := row.Operation; op != nil && op.ID == id && op.Type != v1beta1.OperationDelete && row.Phase != v1beta1.InstanceFailed && len(d.res.Pods) == acted {
		d.judgeStill(row)
	}
}

// step makes the next move of the row's operation.
func (d *decider) step(row *v1beta1.InstanceStatus) {
	switch op := row.Operation; {
	case op.Type == v1beta1.OperationCreate:
		d.advanceCreate(row)
	case op.Type == v1beta1.OperationRestart:
		d.advanceRestart(row)
	case op.Type == v1beta1.OperationDelete:
		d.advanceDelete(row)
	case op.Type == v1beta1.OperationUpdate && op.Step == v1beta1.StepInPlace:
		d.advanceInPlace(row)
	case op.Type == v1beta1.OperationUpdate && rebuilds(op):
		d.advanceRebuild(row)
	case op.Type == v1beta1.OperationUpdate:
		d.advanceUpdate(row)
	}
}

// atRest looks after a row without an operation.
func (d *decider) atRest(row *v1beta1.InstanceStatus) {
	if row.Phase != v1beta1.InstanceReady {
		return // Pending rows are opened by openRepairs
	}
	s := d.podsOf(row.Index)
	active, other := s.bySlot[row.ActiveOrdinal], s.bySlot[1-row.ActiveOrdinal]
	switch {
	case !active.live() && other.live() && d.revisionOf(other.hash) != "":
		// What is left of the Instance is in the other slot: the row follows it.
		row.ActiveOrdinal, row.RunningRevision = 1-row.ActiveOrdinal, d.revisionOf(other.hash)
		active, other = other, active
	case !active.live() && other.live():
		if d.in.Frozen {
			return
		}
		d.open(row, v1beta1.OperationUpdate, v1beta1.StepDrain, row.RunningRevision, "its pod is of no known revision")
		d.advanceUpdate(row)
		return
	case !active.live():
		d.lost(row, active)
		return
	}
	if ((other != nil && !other.terminating) || len(s.strays) > 0) && !d.in.Frozen {
		d.open(row, v1beta1.OperationUpdate, v1beta1.StepSurge, row.RunningRevision, "an extra pod")
		d.advanceUpdate(row)
		return
	}
	if active.hash != d.hashOf(row.RunningRevision) && d.revisionOf(active.hash) != "" {
		// It was changed in place and the row left it half way.
		if active.transition() != nil {
			if !d.in.Frozen {
				d.openInPlace(row, row.RunningRevision, "back to the revision that runs")
				d.advanceInPlace(row)
			}
			return
		}
		row.RunningRevision = d.revisionOf(active.hash)
	}
	if active.hash == d.hashOf(row.RunningRevision) && active.transition() != nil && active.moved() && !d.in.Paused {
		// It failed half way and came about by itself: the rest is to put the record away.
		d.openInPlace(row, row.RunningRevision, "its images changed late")
		d.advanceInPlace(row)
		return
	}
	if active.containersReady && !active.gate && active.moved() {
		d.act(PodServe, active, nil, "InRotation")
	}
}

// lost handles a Ready Instance without a live pod.
func (d *decider) lost(row *v1beta1.InstanceStatus, last *pod) {
	if d.in.RestartPolicy == v1beta1.RestartRecreateInstance && !d.in.Frozen && !d.held(row.RunningRevision) &&
		d.in.Revisions[row.RunningRevision].Template != nil && !d.full() {
		f := newFailure(PodName(d.in.Prefix, d.in.Component, row.Index, row.ActiveOrdinal), "PodGone", "its pod is gone", false)
		if last != nil && last.over {
			f.Reason, f.Message = reasonPodFailed, last.obj.Status.Message
		}
		d.openRestart(row, f)
		return
	}
	row.Phase, row.ReadySince = v1beta1.InstancePending, nil
}

// atFailed looks after a row whose last attempt failed: what serves goes on serving, and
// a pod that came up after all is taken.
func (d *decider) atFailed(row *v1beta1.InstanceStatus) {
	s := d.podsOf(row.Index)
	if op := row.Operation; op != nil {
		if p := s.bySlot[row.ActiveOrdinal]; p.live() && p.containersReady && p.hash == d.hashOf(op.TargetRevision) {
			d.revive(row)
		}
		return
	}
	target := d.in.Target
	if p := s.bySlot[row.ActiveOrdinal]; row.RunningRevision == target.Name && p.live() && p.transition() != nil && p.hash != target.Hash && !d.in.Paused {
		// It failed in place and the spec went back: so does the pod.
		d.openInPlace(row, target.Name, "the previous revision is wanted again")
		d.advanceInPlace(row)
		return
	}
	may := target.Hash != "" && d.mayStart() && !d.held(target.Name) && !d.kept[row.Index]
	for slot, p := range s.bySlot {
		if !p.live() || !p.containersReady {
			continue
		}
		active := int32(slot) == row.ActiveOrdinal
		switch {
		case active && p.hash == d.hashOf(row.RunningRevision) && (row.RunningRevision == target.Name || target.Hash == "" || d.kept[row.Index]):
			d.settle(row, row.RunningRevision)
			return
		case active && row.RunningRevision == "" && d.revisionOf(p.hash) != "" && !d.held(d.revisionOf(p.hash)) && !d.in.Paused:
			d.open(row, v1beta1.OperationCreate, v1beta1.StepCreatePods, d.revisionOf(p.hash), "its pod came up late")
			d.advanceCreate(row)
			return
		case p.hash != target.Hash || row.RunningRevision == "" || !may:
		case !active:
			d.open(row, v1beta1.OperationUpdate, v1beta1.StepSurge, target.Name, "its pod came up late")
			d.advanceUpdate(row)
			return
		case p.transition() != nil:
			if p.moved() {
				d.openInPlace(row, target.Name, "its pod came up late")
				d.advanceInPlace(row)
				return
			}
		default:
			d.open(row, v1beta1.OperationUpdate, v1beta1.StepDrain, target.Name, "its pod came up late")
			row.Operation.Strategy, row.Incarnation = d.pinned(), max(1, p.incarnation)
			d.advanceRebuild(row)
			return
		}
	}
	if p := s.bySlot[row.ActiveOrdinal]; p.live() && p.containersReady && !p.gate && p.hash == d.hashOf(row.RunningRevision) {
		d.act(PodServe, p, nil, "InRotation")
	}
}

// bringUp works on the pod of a slot until it is available at the revision.
func (d *decider) bringUp(row *v1beta1.InstanceStatus, slot int32, revision string) bool {
	op := row.Operation
	p := d.podsOf(row.Index).bySlot[slot]
	switch {
	case p == nil:
		rev := d.in.Revisions[revision]
		if rev.Template == nil || d.held(revision) {
			return false
		}
		if template := rev.Template(); template != nil {
			_, off := d.relocations(row.Index)
			d.res.Pods = append(d.res.Pods, PodAction{
				Verb: PodCreate, Operation: op.ID, Pod: build(d.in, rev, template, row, slot, op.ID, off)})
		}
		return false
	case p.terminating:
		// Its name is not free yet. Past its grace only a dead node still holds it.
		if due := p.graceEnds(); d.in.Now.Before(due) {
			d.wakeAt(due)
		}
		return false
	case p.over:
		if op.Type != v1beta1.OperationUpdate {
			d.warn(v1beta1.EventTerminalPodRecycled, "pod %s of Instance %s-%d ended (%s) before it served, and is made again",
				p.obj.Name, d.in.Component, row.Index, orElse(p.obj.Status.Reason, string(p.obj.Status.Phase)))
		}
		d.act(PodDelete, p, op, "Recycled")
		return false
	case p.serving() && p.hash != d.hashOf(revision) && d.in.Paused && op.Type == v1beta1.OperationUpdate && !rebuilds(op):
		// The spec moved on under the surge; while paused both of its pods run on.
		d.toWaiting(row, v1beta1.WaitingPaused)
		return false
	case p.hash != d.hashOf(revision), leftover(p, op):
		if p.serving() {
			if held := d.takeDrain(p, true); held != nil {
				// Its peers can talk to few others: the update goes on with this pod, and from
				// there to what is wanted.
				d.hold(held)
				if name := d.revisionOf(p.hash); name != "" && op.Type == v1beta1.OperationUpdate && !d.in.Paused {
					d.open(row, v1beta1.OperationUpdate, v1beta1.StepSurge, name, op.Reason)
				}
				return false
			}
		}
		d.remove(p, op, "Superseded")
		return false
	}
	if p.containersReady && !p.gate {
		d.act(PodServe, p, op, "InRotation")
		return false
	}
	ok, due := p.available(d.in)
	d.wakeAt(due)
	return ok
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// remove takes a pod out of rotation, waits until nothing routes to it, then
// deletes it. It is true once the delete request has been made.
func (d *decider) remove(p *pod, op *v1beta1.InstanceOperation, reason string) bool {
	switch {
	case p == nil || p.terminating:
		return true
	case d.in.SkipDrain:
		d.act(PodKill, p, op, reason)
	case p.gate:
		d.act(PodUnserve, p, op, reason)
	case p.routed || p.ready:
		// An EndpointSlice or the kubelet ends this wait. A pod that still counts as
		// Ready may be listed any moment, even if no slice lists it yet.
	default:
		d.act(PodDelete, p, op, reason)
	}
	return false
}

func (d *decider) advanceCreate(row *v1beta1.InstanceStatus) {
	s := d.podsOf(row.Index)
	_, known := d.in.Revisions[row.Operation.TargetRevision]
	_, there := d.in.Revisions[d.in.Target.Name]
	stale := row.Operation.TargetRevision != d.in.Target.Name && there
	may := d.mayStart() && !d.kept[row.Index] && d.mayAttempt(d.in.Target.Name) == nil
	if stale && (!known || (may && !s.bySlot[row.ActiveOrdinal].serving())) {
		// The spec moved on before this Instance served: start over at the new one.
		d.open(row, v1beta1.OperationCreate, v1beta1.StepCreatePods, d.in.Target.Name, row.Operation.Reason)
		row.Operation.RetryCount = d.beginAttempt(d.in.Target.Name)
	}
	d.otherSlotIfFree(row, s)
	if d.followServing(row, s) {
		return
	}
	d.removeStrays(s, row.Operation)
	if other := s.bySlot[1-row.ActiveOrdinal]; other != nil {
		d.remove(other, row.Operation, "Superseded")
		if s.bySlot[row.ActiveOrdinal] == nil && d.holdsSlot(other) && d.slotsUsed() > d.in.MaxSurge {
			return // both at once are one more than the budget has room for
		}
	}
	revision := row.Operation.TargetRevision
	if d.bringUp(row, row.ActiveOrdinal, revision) {
		d.settle(row, revision)
	}
}

// otherSlotIfFree moves a creation to the other name slot when its own is held by a
// pod on its way out and the budget has room for both.
func (d *decider) otherSlotIfFree(row *v1beta1.InstanceStatus, s *slots) {
	p := s.bySlot[row.ActiveOrdinal]
	if p == nil || !p.terminating || s.bySlot[1-row.ActiveOrdinal] != nil || len(s.strays) > 0 {
		return
	}
	extra := int32(0)
	if d.in.Now.Before(p.graceEnds()) {
		extra = 1
	}
	if d.slotsUsed()+extra <= d.in.MaxSurge {
		row.ActiveOrdinal = 1 - row.ActiveOrdinal
	}
}

// keepSlot is the slot whose pod an update keeps.
func keepSlot(row *v1beta1.InstanceStatus) int32 {
	if row.Operation.TargetRevision == row.RunningRevision {
		return row.ActiveOrdinal
	}
	return 1 - row.ActiveOrdinal
}

func (d *decider) advanceUpdate(row *v1beta1.InstanceStatus) {
	d.retarget(row)
	if row.Operation.Waiting == v1beta1.WaitingPaused && !d.in.Paused {
		d.toWaiting(row, "")
	}
	s := d.podsOf(row.Index)
	if d.followServing(row, s) || (row.Operation.Step == v1beta1.StepDrain && !d.clearBroken(row, s)) {
		return
	}
	keep := keepSlot(row)
	old := s.bySlot[1-keep]
	strays := d.removeStrays(s, row.Operation)

	if !d.bringUp(row, keep, row.Operation.TargetRevision) {
		// Going on draining would take the last serving pod out.
		d.toStep(row, v1beta1.StepSurge)
		if old.live() && old.containersReady && !old.gate {
			d.act(PodServe, old, row.Operation, "InRotation")
		}
		return
	}
	held := d.drainHold(row, old)
	switch {
	case old.live() && old.gate && (d.holdsDrain(row) || held != nil):
		// Both pods run on; one that already left rotation still goes.
		d.toStep(row, v1beta1.StepSurge)
		switch {
		case d.in.Paused:
			d.toWaiting(row, v1beta1.WaitingPaused)
		case held != nil:
			d.hold(held)
		default:
			d.res.Hold = d.in.StartHold
		}
	case old != nil && !old.terminating:
		d.toStep(row, v1beta1.StepSurgeDrain)
		d.remove(old, row.Operation, "Replaced")
	case strays:
		d.toStep(row, v1beta1.StepSurgeDrain)
	default:
		d.finish(row, keep)
	}
}

// followServing ends an operation whose next move would take out the only pod that
// serves: the row settles on that pod, and whatever is still wanted starts from
// there within its budget. It is how an update survives the loss of its old pod
// after the spec moved on.
func (d *decider) followServing(row *v1beta1.InstanceStatus, s *slots) bool {
	var only *pod
	for _, p := range s.bySlot {
		if p.serving() {
			if only != nil {
				return false
			}
			only = p
		}
	}
	if only == nil {
		return false
	}
	op := row.Operation
	wanted := only.hash == d.hashOf(op.TargetRevision)
	switch {
	case op.Type == v1beta1.OperationCreate:
		wanted = wanted && only.ordinal == row.ActiveOrdinal
	case op.Step == v1beta1.StepDrain:
		wanted = false // a pod that serves is not broken
	case only.ordinal == keepSlot(row):
	default:
		return false // the old pod serves until the new one does
	}
	name := d.revisionOf(only.hash)
	if wanted || name == "" {
		return false
	}
	row.ActiveOrdinal = only.ordinal
	d.settle(row, name)
	return true
}

// drainHold spends the quota of drains for an old pod that serves beside its successor.
// A drain back to the revision that runs only gives a surge back.
func (d *decider) drainHold(row *v1beta1.InstanceStatus, old *pod) *Hold {
	if !old.serving() || d.holdsDrain(row) {
		return nil
	}
	return d.takeDrain(old, row.Operation.TargetRevision == row.RunningRevision)
}

func (d *decider) takeDrain(p *pod, gives bool) *Hold {
	if d.in.Drains == nil {
		return nil
	}
	if d.drained == nil {
		d.drained = map[*Quota]int32{}
	}
	return d.in.Drains.takeDrain(p, gives, d.drained)
}

// holdsDrain is true while a pause or a gate keeps a serving old pod in rotation.
// A drain back to the revision that runs is held by a pause only.
func (d *decider) holdsDrain(row *v1beta1.InstanceStatus) bool {
	return d.in.Paused || (d.in.StartHold != nil && row.Operation.TargetRevision != row.RunningRevision)
}

// clearBroken removes a pod that can't come up, so that its successor takes its
// place without using the surge budget. It is true once nothing is left; a pod
// that recovered keeps its Instance instead.
func (d *decider) clearBroken(row *v1beta1.InstanceStatus, s *slots) bool {
	if active := s.bySlot[row.ActiveOrdinal]; active.live() && active.containersReady {
		d.settle(row, row.RunningRevision)
		return false
	}
	left := false
	s.all(func(p *pod) {
		d.remove(p, row.Operation, "Replaced")
		// Past its grace only a dead node still lists it.
		left = left || !p.terminating || d.in.Now.Before(p.graceEnds())
		if p.terminating {
			d.wakeAt(p.graceEnds())
		}
	})
	if left {
		return false
	}
	d.toStep(row, v1beta1.StepSurge)
	return true
}

func (d *decider) finish(row *v1beta1.InstanceStatus, keep int32) {
	row.ActiveOrdinal = keep
	d.settle(row, row.Operation.TargetRevision)
}

// retarget turns an update whose target is no longer wanted. Back to the revision
// that still runs needs no permit: it only gives capacity back. A new target takes
// over an update only while that costs no serving pod, and none that a pairing keeps; else
// the update ends first.
func (d *decider) retarget(row *v1beta1.InstanceStatus) {
	op, want := row.Operation, d.wants(row)
	if op.TargetRevision == want || d.in.Paused {
		return
	}
	s := d.podsOf(row.Index)
	active, other := s.bySlot[row.ActiveOrdinal], s.bySlot[1-row.ActiveOrdinal]
	switch {
	case want == row.RunningRevision && active.live():
		d.open(row, v1beta1.OperationUpdate, v1beta1.StepSurge, want, "the previous revision is wanted again")
	case want == row.RunningRevision && !other.serving() && op.Step != v1beta1.StepSurgeDrain:
		// Neither pod serves: the one that came up for nothing makes room first.
		d.open(row, v1beta1.OperationUpdate, v1beta1.StepDrain, want, "the previous revision is wanted again")
	case op.TargetRevision == row.RunningRevision:
		// An extra pod is on its way out: that ends first.
	case op.Step != v1beta1.StepSurgeDrain && d.mayStart() && d.mayAttempt(want) == nil && (active.serving() || !other.serving()) &&
		!(other.serving() && d.in.Drains.keeps(other)):
		d.open(row, v1beta1.OperationUpdate, op.Step, want, op.Reason)
		row.Operation.RetryCount = d.beginAttempt(want)
	}
}

// removeStrays is true while one of them has yet to be deleted.
func (d *decider) removeStrays(s *slots, op *v1beta1.InstanceOperation) (left bool) {
	for _, p := range s.strays {
		if p.serving() && !s.bySlot[0].serving() && !s.bySlot[1].serving() {
			left = true // it goes once another pod serves
			continue
		}
		left = !d.remove(p, op, "Stray") || left
	}
	return left
}

func (d *decider) advanceDelete(row *v1beta1.InstanceStatus) {
	s := d.podsOf(row.Index)
	if s.listed == 0 {
		if d.gone == nil {
			d.gone = map[int32]bool{}
		}
		d.gone[row.Index] = true
		return
	}
	silent := false
	s.all(func(p *pod) {
		d.remove(p, row.Operation, "ScaledDown")
		if p.terminating {
			if due := p.graceEnds(); d.in.Now.Before(due) {
				d.wakeAt(due)
			} else {
				silent = true // nobody but its node can say that it is gone
			}
		}
	})
	switch {
	case silent && row.Operation.Deadline == nil: // else it becomes overdue, which says so
		d.toWaiting(row, v1beta1.WaitingNodeUnknown)
	case row.Operation.Waiting == v1beta1.WaitingNodeUnknown:
		d.toWaiting(row, "")
	}
}
