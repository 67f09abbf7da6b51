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
	for _, row := range keep[d.in.Desired:] {
		cost := max(1, d.podsOf(row.Index).listed)
		if d.in.DeleteBatch > 0 && removing > 0 && removing+cost > d.in.DeleteBatch {
			return // removals under way end first; their events bring the next pass
		}
		removing += cost
		row.LastFailure = nil
		d.open(row, v1beta1.OperationDelete, v1beta1.StepDrain, "", "scale-down")
		row.ReadySince = nil
	}
}

// buildRevision is what a new or rebuilt Instance runs: the target, unless a pause or
// a gate keeps the component from moving to it; then what it ran, or what the others
// run. It is empty when no template of it can be had.
func (d *decider) buildRevision(running string) string {
	can := func(name string) bool { return d.in.Revisions[name].Template != nil }
	if d.mayStart() && can(d.in.Target.Name) {
		return d.in.Target.Name
	}
	if can(running) {
		return running
	}
	for i := range d.rows {
		if name := d.rows[i].RunningRevision; can(name) {
			return name
		}
	}
	if can(d.in.Target.Name) {
		return d.in.Target.Name
	}
	return ""
}

// openRepairs rebuilds Instances that lost their pod. A pause does not stop it, a
// freeze does.
func (d *decider) openRepairs() {
	if d.in.Frozen {
		return
	}
	for i := range d.rows {
		row := &d.rows[i]
		if row.Phase != v1beta1.InstancePending || row.Operation != nil {
			continue
		}
		revision := d.buildRevision(row.RunningRevision)
		if revision == "" || (d.in.Paused && revision != row.RunningRevision) {
			d.hold(d.in.StartHold)
			continue
		}
		if d.full() {
			d.hold(d.fullHold())
			return
		}
		d.open(row, v1beta1.OperationCreate, v1beta1.StepCreatePods, revision, "its pod is gone")
		d.advanceCreate(row)
	}
}

// openCreates adds the missing Instances at the lowest free indexes.
func (d *decider) openCreates() {
	if d.in.Paused {
		return
	}
	used := make(map[int32]bool, len(d.rows))
	var have int32
	for i := range d.rows {
		used[d.rows[i].Index] = true
		if d.rows[i].Phase != v1beta1.InstanceDeleting {
			have++
		}
	}
	next, made := int32(0), int32(0)
	for ; have < d.in.Desired; have++ {
		revision := d.buildRevision("")
		if revision == "" {
			d.hold(d.in.StartHold)
			break
		}
		if d.full() {
			d.hold(d.fullHold()) // the end of any operation brings the next pass
			break
		}
		if d.in.CreateBatch > 0 && made >= d.in.CreateBatch {
			d.wakeAt(d.in.Now) // the rest in the next pass
			break
		}
		for used[next] || d.byIndex[next] != nil {
			next++
		}
		used[next] = true
		made++
		row := v1beta1.InstanceStatus{Index: next, Incarnation: 1}
		d.open(&row, v1beta1.OperationCreate, v1beta1.StepCreatePods, revision, "scale-up")
		d.rows = append(d.rows, row)
		d.advanceCreate(&d.rows[len(d.rows)-1])
	}
	slices.SortStableFunc(d.rows, func(a, b v1beta1.InstanceStatus) int { return cmp.Compare(a.Index, b.Index) })
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

func (d *decider) openOperations() (n int32) {
	for i := range d.rows {
		if d.rows[i].Operation != nil {
			n++
		}
	}
	return n
}

// openUpdates starts updates within the budget: Instances that don't serve first,
// since they cost nobody anything, then the highest index.
func (d *decider) openUpdates() {
	var candidates []*v1beta1.InstanceStatus
	for i := range d.rows {
		row := &d.rows[i]
		if row.Phase == v1beta1.InstanceReady && row.Operation == nil && row.RunningRevision != d.in.Target.Name {
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
	broken := func(row *v1beta1.InstanceStatus) bool {
		p := d.podsOf(row.Index).bySlot[row.ActiveOrdinal]
		return p.live() && p.broken && d.podsOf(row.Index).listed == 1
	}
	slices.SortStableFunc(candidates, func(a, b *v1beta1.InstanceStatus) int {
		ba, bb := broken(a), broken(b)
		switch {
		case ba && !bb:
			return -1
		case bb && !ba:
			return 1
		}
		return cmp.Compare(b.Index, a.Index)
	})
	used, opened := d.slotsUsed(), d.openOperations()
	for _, row := range candidates {
		if d.in.MaxOpen > 0 && opened >= d.in.MaxOpen {
			d.res.Hold = d.fullHold()
			return
		}
		if broken(row) {
			d.open(row, v1beta1.OperationUpdate, v1beta1.StepDrain, d.in.Target.Name, "new revision; the old pod cannot come up")
		} else {
			if used+1 > d.in.MaxSurge {
				d.res.Hold = d.budgetHold(used)
				return
			}
			used++
			d.open(row, v1beta1.OperationUpdate, v1beta1.StepSurge, d.in.Target.Name, "new revision")
		}
		opened++
		d.advanceUpdate(row)
	}
}
