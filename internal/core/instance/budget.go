package instance

import (
	"fmt"

	"ome.io/ome/api/v1beta1"
)

// slotsUsed counts surge slots: for each Instance the pods it has beyond one, and
// the one it is about to get. A Terminating pod counts until its grace is over,
// since its node may still be busy with it.
func (d *decider) slotsUsed() (used int32) {
	for i := range d.rows {
		row := &d.rows[i]
		s := d.podsOf(row.Index)
		used += max(0, d.podsHeld(row, s)-1)
	}
	return used
}

// podsHeld counts the pods of an Instance, and the one that its operation has yet
// to create: that one keeps its place while a predecessor of its name is leaving.
func (d *decider) podsHeld(row *v1beta1.InstanceStatus, s *slots) (n int32) {
	building := d.building(row)
	if building >= 0 && !s.bySlot[building].live() {
		n++
	}
	s.all(func(p *pod) {
		if p.ordinal == building && !p.live() {
			return
		}
		if p.terminating {
			if !d.in.Now.Before(p.graceEnds()) {
				return
			}
			d.wakeAt(p.graceEnds())
		}
		n++
	})
	return n
}

// holdsSlot is true for a pod that counts against a budget: ended pods do too, until
// they are gone.
func (d *decider) holdsSlot(p *pod) bool {
	return p != nil && (!p.terminating || d.in.Now.Before(p.graceEnds()))
}

// building is the slot whose pod the row's operation brings up, -1 for none.
func (d *decider) building(row *v1beta1.InstanceStatus) int32 {
	op := row.Operation
	if op == nil {
		return -1
	}
	switch op.Type {
	case v1beta1.OperationCreate:
		return row.ActiveOrdinal
	case v1beta1.OperationRestart:
		if op.Waiting == v1beta1.WaitingRestartBackoff || row.Phase == v1beta1.InstanceFailed {
			return -1
		}
		return row.ActiveOrdinal
	case v1beta1.OperationUpdate:
		switch {
		case op.Step == v1beta1.StepInPlace, rebuilds(op):
			return row.ActiveOrdinal
		case op.Step != v1beta1.StepDrain:
			return keepSlot(row)
		}
	}
	return -1
}

// disruptive is true for an operation that takes its Instance out while it lasts.
func disruptive(row *v1beta1.InstanceStatus) bool {
	op := row.Operation
	if op == nil || op.Waiting == v1beta1.WaitingRestartBackoff || row.Phase == v1beta1.InstanceFailed {
		return false
	}
	return op.Type == v1beta1.OperationRestart || (op.Type == v1beta1.OperationUpdate && op.Strategy != v1beta1.SurgeThenDrain)
}

// serves is true while some pod of the Instance is in rotation.
func (d *decider) serves(row *v1beta1.InstanceStatus) bool {
	s := d.podsOf(row.Index)
	for _, p := range s.bySlot {
		if p.serving() {
			return true
		}
	}
	for _, p := range s.strays {
		if p.serving() {
			return true
		}
	}
	return false
}

// unavailable counts the Instances that do not serve or are about to stop, and those
// that have yet to be made.
func (d *decider) unavailable() (n int32) {
	missing := d.in.Desired
	for i := range d.rows {
		row := &d.rows[i]
		if row.Phase == v1beta1.InstanceDeleting {
			continue
		}
		missing--
		if disruptive(row) || !d.serves(row) {
			n++
		}
	}
	return n + max(0, missing)
}

// mayTakeOut is true while the budget lets an update take a serving Instance out. It is
// asked again right before the act: since the operation was opened others may have
// stopped serving, or a lost write may have left this one in rotation.
func (d *decider) mayTakeOut(row *v1beta1.InstanceStatus) bool {
	if d.taken[row.Index] || !d.serves(row) {
		return true
	}
	down, missing := int32(1), d.in.Desired
	for i := range d.rows {
		other := &d.rows[i]
		if other.Phase == v1beta1.InstanceDeleting {
			continue
		}
		missing--
		if other.Index != row.Index && (d.taken[other.Index] || !d.serves(other)) {
			down++
		}
	}
	if down+max(0, missing) > d.in.MaxUnavailable {
		return false
	}
	if d.taken == nil {
		d.taken = map[int32]bool{}
	}
	d.taken[row.Index] = true
	return true
}

// callOff ends an update that must not take its serving pod out after all: the row
// rests on that pod, and the update begins again once there is room.
func (d *decider) callOff(row *v1beta1.InstanceStatus, p *pod) bool {
	name := d.revisionOf(p.hash)
	if name == "" {
		return false
	}
	row.ActiveOrdinal, row.Incarnation = p.ordinal, p.incarnation
	d.settle(row, name)
	return true
}

// out counts the Instances that an operation of ours keeps out.
func (d *decider) out() (n int32) {
	for i := range d.rows {
		if disruptive(&d.rows[i]) {
			n++
		}
	}
	return n
}

// unavailableHold words the denial of an update that would take an Instance out.
func (d *decider) unavailableHold(used int32) *Hold {
	reason := fmt.Sprintf("per-Component unavailability budget %d exhausted (would become %d)", d.in.MaxUnavailable, used+1)
	if d.in.MaxUnavailable == 0 {
		reason += "; with " + fieldOr(d.in.UnavailableField) + ".maxUnavailable: 0 "
		if d.in.Strategy == v1beta1.SurgeThenDrain || d.in.Strategy == "" {
			reason += "no crash loop is repaired: raise it to 1 or more"
		} else {
			reason += "the strategy " + string(d.in.Strategy) + " can move nothing: raise it to 1 or more, or use SurgeThenDrain"
		}
		return &Hold{Gate: v1beta1.GateBudget, Reason: reason}
	}
	for i := range d.rows {
		if row := &d.rows[i]; row.Phase != v1beta1.InstanceDeleting && row.Operation == nil && !d.serves(row) {
			reason += fmt.Sprintf("; Instance %d does not serve and counts", row.Index)
			break
		}
	}
	return &Hold{Gate: v1beta1.GateBudget, Reason: reason}
}

// fieldOr is where a budget was set.
func fieldOr(field string) string {
	if field == "" {
		return "lifecycle.updateStrategy.rollingUpdate"
	}
	return field
}

// budgetHold words the denial, naming a pod that holds a slot when there is one.
func (d *decider) budgetHold(used int32) *Hold {
	reason := fmt.Sprintf("per-Component surge budget %d exhausted (would become %d)", d.in.MaxSurge, used+1)
	if d.in.MaxSurge == 0 {
		reason += "; with " + fieldOr(d.in.SurgeField) + ".maxSurge: 0 the strategy SurgeThenDrain can move nothing: raise it to 1 or more, or use RecreatePod"
	}
	var terminating, extra *pod
	for i := range d.rows {
		row := &d.rows[i]
		s := d.podsOf(row.Index)
		if s.listed < 2 {
			continue
		}
		s.all(func(p *pod) {
			switch {
			case p.terminating && d.in.Now.Before(p.graceEnds()) && terminating == nil:
				terminating = p
			case !p.terminating && row.Operation == nil && extra == nil && p != s.bySlot[row.ActiveOrdinal]:
				extra = p
			}
		})
	}
	switch {
	case terminating != nil:
		reason += "; Terminating pod " + terminating.obj.Name + " still counts against the surge budget until its deletion grace elapses"
	case extra != nil:
		reason += "; extra pod " + extra.obj.Name + " holds a surge slot until a start on its Instance replaces it"
	}
	return &Hold{Gate: v1beta1.GateBudget, Reason: reason}
}
