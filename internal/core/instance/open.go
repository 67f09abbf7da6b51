package instance

import (
	"cmp"
	"fmt"
	"slices"

	"ome.io/ome/api/v1beta1"
)

// openDeletes chooses what leaves when there are more rows than desired: Ready
// rows stay before others, low indexes before high ones.
func (d *decider) openDeletes() {
	keep := make([]*v1beta1.InstanceStatus, 0, len(d.rows))
	var removing int32
	for i := range d.rows {
		if row := &d.rows[i]; row.Phase != v1beta1.InstanceDeleting {
			keep = append(keep, row)
		} else {
			removing += d.podsOf(row.Index).listed
		}
	}
	if len(keep) <= int(d.in.Desired) {
		return
	}
	slices.SortStableFunc(keep, func(a, b *v1beta1.InstanceStatus) int {
		ra, rb := a.Phase == v1beta1.InstanceReady, b.Phase == v1beta1.InstanceReady
		switch {
		case ra && !rb:
			return -1
		case rb && !ra:
			return 1
		}
		return cmp.Compare(a.Index, b.Index)
	})
	// From the back: while a batch holds the rest up, no Ready one has left before them.
	victims, bare := keep[d.in.Desired:], false
	for i, row := range slices.Backward(victims) {
		listed := d.podsOf(row.Index).listed
		if d.in.DeleteBatch > 0 && removing > 0 && removing+max(1, listed) > d.in.DeleteBatch {
			// Removals under way end first; their events bring the next pass.
			if bare {
				d.wakeSoon() // the end of a row without pods is no event
			}
			d.doomed = make(map[int32]bool, i+1)
			for _, row := range victims[:i+1] {
				d.doomed[row.Index] = true
			}
			return
		}
		removing += max(1, listed)
		bare = bare || listed == 0
		row.LastFailure = nil
		d.open(row, v1beta1.OperationDelete, v1beta1.StepDrain, "", "scale-down")
		row.ReadySince = nil
	}
}

// keepBack finds the Instances that the partition keeps: those of the lowest indexes
// that do not run the target and are not on their way to it. One that still comes up at
// another revision counts: it may be Ready, and free to move, later in this very pass.
func (d *decider) keepBack() {
	if d.in.Partition <= 0 {
		return
	}
	d.kept = make(map[int32]bool, d.in.Partition)
	for i := range d.rows { // in index order
		row := &d.rows[i]
		if int32(len(d.kept)) == d.in.Partition {
			return
		}
		moving := row.Operation != nil && row.Operation.TargetRevision == d.in.Target.Name
		at := row.RunningRevision
		if at == "" && row.Operation != nil && d.runs(row.Operation.TargetRevision) {
			at = row.Operation.TargetRevision // it comes up at a revision that others leave
		}
		if row.Phase != v1beta1.InstanceDeleting && at != "" && at != d.in.Target.Name && !moving {
			d.kept[row.Index] = true
		}
	}
}

// runs is true for a revision that some Instance runs.
func (d *decider) runs(revision string) bool {
	return slices.ContainsFunc(d.rows, func(r v1beta1.InstanceStatus) bool { return r.RunningRevision == revision })
}

// wants is what an operation under way should lead to: the target, or what the Instance
// runs when a partition keeps it back and the revision it was on its way to is wanted no
// more.
func (d *decider) wants(row *v1beta1.InstanceStatus) string {
	if d.kept[row.Index] && d.in.Revisions[row.RunningRevision].Template != nil {
		return row.RunningRevision
	}
	return d.in.Target.Name
}

// buildRevision is what a new or rebuilt Instance runs: the target, unless a pause, a
// gate, the partition or a failed attempt keeps it from that; then what it ran, or what
// the others run. Without any it says what it waits for.
func (d *decider) buildRevision(row *v1beta1.InstanceStatus) (string, *Hold) {
	can := func(name string) bool { return d.in.Revisions[name].Template != nil && !d.held(name) }
	running := ""
	if row != nil {
		running = row.RunningRevision
	}
	target := d.in.Target.Name
	var why *Hold
	if d.mayStart() && (row == nil || !d.kept[row.Index]) && d.in.Revisions[target].Template != nil {
		if why = d.mayAttempt(target); why == nil {
			return target, nil
		}
	}
	if can(running) {
		return running, nil
	}
	if running != "" && d.held(running) {
		return "", d.mayAttempt(running)
	}
	for i := range d.rows {
		if name := d.rows[i].RunningRevision; can(name) && d.mayAttempt(name) == nil {
			return name, nil
		}
	}
	if why != nil {
		return "", why
	}
	if can(target) && d.mayAttempt(target) == nil {
		return target, nil
	}
	return "", d.in.StartHold
}

// openRetries makes new attempts at Instances that failed and have no other revision to
// move to: what a kept restart or a failed creation left.
func (d *decider) openRetries() {
	if d.in.Frozen {
		return
	}
	for i := range d.rows {
		row := &d.rows[i]
		bereft := d.bereft(row)
		if row.Phase != v1beta1.InstanceFailed || d.doomed[row.Index] || (d.movesOn(row) && !bereft) {
			continue
		}
		if p := d.podsOf(row.Index).bySlot[row.ActiveOrdinal]; p.live() && p.containersReady && p.hash == d.hashOf(row.RunningRevision) {
			continue // the next pass sees that it came up
		}
		restart := row.Operation
		if restart == nil && d.in.Paused && !bereft {
			continue
		}
		revision := row.RunningRevision
		if revision == "" {
			var why *Hold
			if revision, why = d.buildRevision(nil); revision == "" {
				d.hold(why)
				continue
			}
		}
		if why := d.mayAttempt(revision); why != nil {
			d.hold(why)
			continue
		}
		if d.full() {
			d.hold(d.fullHold())
			return
		}
		attempt := d.beginAttempt(revision)
		if restart != nil {
			d.open(row, v1beta1.OperationRestart, v1beta1.StepDrain, revision, restart.Reason)
			row.Operation.RetryCount = restart.RetryCount + 1
			d.advanceRestart(row)
			continue
		}
		d.open(row, v1beta1.OperationCreate, v1beta1.StepCreatePods, revision, "another attempt")
		row.Operation.RetryCount = max(1, attempt)
		d.advanceCreate(row)
	}
}

// bereft is true for a Failed Instance whose pod of the revision that runs is gone while
// nothing may be tried at the target: it gets that pod again, as a Ready one would.
func (d *decider) bereft(row *v1beta1.InstanceStatus) bool {
	return row.Phase == v1beta1.InstanceFailed && row.Operation == nil && row.RunningRevision != "" &&
		!d.podsOf(row.Index).bySlot[row.ActiveOrdinal].live() && (!d.mayStart() || d.mayAttempt(d.in.Target.Name) != nil)
}

// movesOn is true for a row that has another revision to go to: openUpdates takes it.
func (d *decider) movesOn(row *v1beta1.InstanceStatus) bool {
	return row.RunningRevision != "" && row.RunningRevision != d.in.Target.Name && !d.kept[row.Index] &&
		d.in.Revisions[d.in.Target.Name].Template != nil
}

// openRepairs rebuilds Instances that lost their pod. A pause does not stop it, a
// freeze does.
func (d *decider) openRepairs() {
	if d.in.Frozen {
		return
	}
	for i := range d.rows {
		row := &d.rows[i]
		if row.Phase != v1beta1.InstancePending || row.Operation != nil || d.doomed[row.Index] {
			continue
		}
		revision, why := d.buildRevision(row)
		if revision == "" || (d.in.Paused && revision != row.RunningRevision) {
			d.hold(why)
			continue
		}
		if d.full() {
			d.hold(d.fullHold())
			return
		}
		d.open(row, v1beta1.OperationCreate, v1beta1.StepCreatePods, revision, "its pod is gone")
		if revision != row.RunningRevision {
			row.Operation.RetryCount = d.beginAttempt(revision)
		}
		d.advanceCreate(row)
	}
}

// openCreates adds the missing Instances at the lowest free indexes.
func (d *decider) openCreates() {
	if d.in.Paused {
		return
	}
	var have int32
	for i := range d.rows {
		if d.rows[i].Phase != v1beta1.InstanceDeleting {
			have++
		}
	}
	if have >= d.in.Desired {
		return
	}
	used := make(map[int32]bool, len(d.rows))
	for i := range d.rows {
		used[d.rows[i].Index] = true
	}
	next, made := int32(0), int32(0)
	for ; have < d.in.Desired; have++ {
		revision, why := d.buildRevision(nil)
		if revision == "" {
			d.hold(why)
			break
		}
		if d.full() {
			d.hold(d.fullHold()) // the end of any operation brings the next pass
			break
		}
		if d.in.CreateBatch > 0 && made >= d.in.CreateBatch {
			d.wakeSoon() // the rest in the next pass
			break
		}
		for used[next] || d.byIndex.get(next) != nil {
			next++
		}
		used[next] = true
		made++
		row := v1beta1.InstanceStatus{Index: next, Incarnation: 1}
		d.open(&row, v1beta1.OperationCreate, v1beta1.StepCreatePods, revision, "scale-up")
		row.Operation.RetryCount = d.beginAttempt(revision)
		d.rows = append(d.rows, row)
		d.advanceCreate(&d.rows[len(d.rows)-1])
	}
	d.sortRows()
}

func (d *decider) full() bool { return d.in.MaxOpen > 0 && d.openOperations() >= d.in.MaxOpen }

func (d *decider) fullHold() *Hold {
	return &Hold{Gate: v1beta1.GateBudget, Reason: fmt.Sprintf(
		"%d operations are open, the limit that lifecycle.maxOpenOperations sets", d.in.MaxOpen)}
}

// hold records why something waits, unless a reason is already known.
func (d *decider) hold(h *Hold) {
	if d.res.Hold == nil {
		d.res.Hold = h
	}
}

// openOperations counts those at work: what a failed restart keeps on its row is replaced
// by whatever comes next, and must not keep it from coming.
func (d *decider) openOperations() int32 {
	if !d.openKnown {
		d.openCount, d.openKnown = 0, true
		for i := range d.rows {
			if isOpen(&d.rows[i]) {
				d.openCount++
			}
		}
	}
	return d.openCount
}

// isOpen is true for a row with work under way; a Failed one keeps its operation to be
// looked at, and works on nothing.
func isOpen(row *v1beta1.InstanceStatus) bool {
	return row.Operation != nil && row.Phase != v1beta1.InstanceFailed
}

// openUpdates starts updates within the budget: Instances that don't serve first,
// since they cost nobody anything, then the highest index.
func (d *decider) openUpdates() {
	d.keepBack() // some may have become Ready in this pass
	var candidates []*v1beta1.InstanceStatus
	for i := range d.rows {
		row := &d.rows[i]
		idle := (row.Phase == v1beta1.InstanceReady && row.Operation == nil) || row.Phase == v1beta1.InstanceFailed ||
			(row.Operation != nil && row.Operation.Waiting == v1beta1.WaitingRestartBackoff)
		if idle && d.movesOn(row) && !d.doomed[row.Index] {
			candidates = append(candidates, row)
		}
	}
	if len(candidates) == 0 || d.in.Paused {
		return
	}
	if d.in.StartHold != nil {
		d.res.Hold = d.in.StartHold
		return
	}
	d.sortByUrgency(candidates)
	b := budgets{surge: d.slotsUsed(), unavailable: d.unavailable(), opened: d.openOperations()}
	for _, row := range candidates {
		if d.in.MaxOpen > 0 && b.opened >= d.in.MaxOpen {
			d.res.Hold = d.fullHold()
			return
		}
		if why := d.mayAttempt(d.in.Target.Name); why != nil {
			d.res.Hold = why
			return
		}
		if why, only := d.openUpdate(row, &b); why != nil {
			d.hold(why)
			if only {
				continue // this Instance can't; another may
			}
			return
		}
		b.opened++
	}
}

// startQuota spends the quota of starts for an Instance that serves. One that does not
// takes nothing from its siblings.
func (d *decider) startQuota(row *v1beta1.InstanceStatus) *Hold {
	if !d.serves(row) {
		return nil
	}
	return d.in.Starts.take(&d.started)
}

// budgets are what openUpdates spends.
type budgets struct{ surge, unavailable, opened int32 }

// sortByUrgency puts what is most urgent first and, among equals, the highest index.
// Each row is looked at once, and not at each comparison.
func (d *decider) sortByUrgency(rows []*v1beta1.InstanceStatus) {
	type ranked struct {
		urgency int
		row     *v1beta1.InstanceStatus
	}
	order := make([]ranked, len(rows))
	for i, row := range rows {
		order[i] = ranked{d.urgency(row), row}
	}
	slices.SortFunc(order, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.urgency, b.urgency), cmp.Compare(b.row.Index, a.row.Index))
	})
	for i := range order {
		rows[i] = order[i].row
	}
}

// urgency sorts what costs no budget before what does, and what failed before the rest:
// a candidate that the budget denies must not keep a free one from starting, least of
// all one whose start gives a slot back.
func (d *decider) urgency(row *v1beta1.InstanceStatus) int {
	failed := row.Phase == v1beta1.InstanceFailed
	switch {
	case failed && !d.serves(row):
		return 0
	case d.brokenAlone(row):
		return 1
	case !d.serves(row):
		return 2
	case failed && d.holdsSlot(d.podsOf(row.Index).bySlot[1-row.ActiveOrdinal]):
		return 3
	case failed:
		return 4
	}
	return 5
}

// brokenAlone is true for an Instance of one pod that can't come up.
func (d *decider) brokenAlone(row *v1beta1.InstanceStatus) bool {
	s := d.podsOf(row.Index)
	p := s.bySlot[row.ActiveOrdinal]
	return p.live() && p.broken && s.listed == 1
}

// openUpdate starts the update of one Instance by the strategy in force, or says why
// not. The refusal is the Instance's own when only is true, else the component's.
func (d *decider) openUpdate(row *v1beta1.InstanceStatus, b *budgets) (why *Hold, only bool) {
	target := d.in.Target.Name
	s := d.podsOf(row.Index)
	active := s.bySlot[row.ActiveOrdinal]
	if d.in.Strategy == v1beta1.SurgeThenDrain || d.in.Strategy == "" {
		step, reason, cost := v1beta1.StepSurge, "new revision", int32(1)
		switch failed := row.Phase == v1beta1.InstanceFailed; {
		case d.brokenAlone(row):
			step, reason, cost = v1beta1.StepDrain, "new revision; the old pod cannot come up", 0
		case failed && !d.serves(row):
			step, reason, cost = v1beta1.StepDrain, "another attempt", 0
		case failed && d.holdsSlot(s.bySlot[1-row.ActiveOrdinal]):
			reason, cost = "another attempt", 0 // what the last attempt left is charged already
		}
		if cost > 0 && b.surge+cost > d.in.MaxSurge {
			return d.budgetHold(b.surge), false
		}
		if why := d.startQuota(row); why != nil {
			return why, false
		}
		b.surge += cost
		retried := row.Phase == v1beta1.InstanceFailed
		attempt := d.beginAttempt(target)
		d.open(row, v1beta1.OperationUpdate, step, target, reason)
		if retried {
			attempt = max(1, attempt)
		}
		row.Operation.RetryCount = attempt
		d.advanceUpdate(row)
		return nil, false
	}

	from := row.RunningRevision
	if active.live() && d.revisionOf(active.hash) != "" {
		from = d.revisionOf(active.hash)
	}
	_, inPlace := d.images(from, target)
	// A pod that was changed to the target and failed there is tried again as it is.
	inPlace = inPlace || (from == target && active.live() && active.transition() != nil)
	inPlace = inPlace && d.in.Strategy != v1beta1.RecreatePod && active.live() && !active.unschedulable && len(s.strays) == 0 && !s.bySlot[1-row.ActiveOrdinal].live()
	if d.in.Strategy == v1beta1.InPlaceOnly && !inPlace && active.live() {
		if d.once(row, v1beta1.EventInPlaceUpdateNotPossible, d.in.Target.Hash) {
			d.warn(v1beta1.EventInPlaceUpdateNotPossible, "Instance %s-%d stays on revision %s: revision %s differs from it by more than container images",
				d.in.Component, row.Index, row.RunningRevision, target)
		}
		return &Hold{Gate: v1beta1.GatePlan, Reason: fmt.Sprintf(
			"update strategy InPlaceOnly cannot bring Instance %d to revision %s, which differs by more than container images; set lifecycle.updateStrategy.type: InPlaceIfPossible or RecreatePod",
			row.Index, target)}, true
	}
	if d.serves(row) {
		if b.unavailable+1 > d.in.MaxUnavailable {
			return d.unavailableHold(b.unavailable), false
		}
		if why := d.startQuota(row); why != nil {
			return why, false
		}
		b.unavailable++
	}
	attempt := d.beginAttempt(target)
	if row.Phase == v1beta1.InstanceFailed {
		attempt = max(1, attempt)
	}
	if inPlace {
		d.openInPlace(row, target, "new revision")
	} else {
		d.openRebuild(row, v1beta1.OperationUpdate, target, "new revision")
	}
	row.Operation.RetryCount = attempt
	d.advance(row)
	return nil, false
}
