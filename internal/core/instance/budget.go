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

// building is the slot whose pod the row's operation brings up, -1 for none.
func (d *decider) building(row *v1beta1.InstanceStatus) int32 {
	if row.Operation != nil {
		switch row.Operation.Type {
		case v1beta1.OperationCreate:
			return row.ActiveOrdinal
		case v1beta1.OperationUpdate:
			if row.Operation.Step != v1beta1.StepDrain {
				return keepSlot(row)
			}
		}
	}
	return -1
}

// budgetHold words the denial, naming a pod that holds a slot when there is one.
func (d *decider) budgetHold(used int32) *Hold {
	reason := fmt.Sprintf("per-Component surge budget %d exhausted (would become %d)", d.in.MaxSurge, used+1)
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
			case !p.terminating && row.Operation == nil && extra == nil:
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
