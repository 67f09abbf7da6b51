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
		n := d.heldPods(s)
		if row.Phase == v1beta1.InstanceDeleting {
			used += max(0, n-1)
			continue
		}
		if d.willCreate(row, s) {
			n++
		}
		used += max(0, n-1)
	}
	return used
}

func (d *decider) heldPods(s *slots) (n int32) {
	s.all(func(p *pod) {
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

// willCreate is true while the row's operation has its pod still to create.
func (d *decider) willCreate(row *v1beta1.InstanceStatus, s *slots) bool {
	if row.Operation == nil {
		return false
	}
	switch row.Operation.Type {
	case v1beta1.OperationCreate:
		return s.bySlot[row.ActiveOrdinal] == nil
	case v1beta1.OperationUpdate:
		return row.Operation.Step != v1beta1.StepDrain && s.bySlot[keepSlot(row)] == nil
	}
	return false
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
