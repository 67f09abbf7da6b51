package instance

import (
	"fmt"
	"time"

	"ome.io/ome/api/v1beta1"
)

// explain finds what keeps a pod of an open operation from coming up and says it in
// the hold: behind an exhausted budget there is often one pod that will never be
// ready, and a person should not have to look for it.
func (d *decider) explain() {
	cause := d.blocked()
	switch {
	case cause == "":
	case d.res.Hold == nil:
		d.res.Hold = &Hold{Gate: v1beta1.GateBudget, Reason: cause}
	case d.res.Hold != d.in.StartHold && d.res.Hold.Gate == v1beta1.GateBudget:
		d.res.Hold.Reason += "; " + cause
	}
}

// roomAdvice says until when the attempt waits for room, and names the strategy that does
// without a spare place.
func (d *decider) roomAdvice(row *v1beta1.InstanceStatus, p *pod) (advice string) {
	if d.in.UnschedulableGrace > 0 && !d.in.Paused {
		advice = "; the attempt ends at " + p.unscheduledSince().Add(d.in.UnschedulableGrace).UTC().Format(time.RFC3339)
	}
	if op := row.Operation; op.Type == v1beta1.OperationUpdate && op.Strategy == v1beta1.SurgeThenDrain && d.serves(row) {
		advice += "; SurgeThenDrain needs room for one more pod: free it, or set lifecycle.updateStrategy.type: RecreatePod, which stops the old pod first"
	}
	return advice
}

// blocked words the first thing, in index order, that time alone will not end.
func (d *decider) blocked() string {
	for i := range d.rows {
		row := &d.rows[i]
		slot := d.building(row)
		if slot < 0 {
			continue
		}
		p := d.podsOf(row.Index).bySlot[slot]
		switch {
		case p == nil:
			name := PodName(d.in.Prefix, d.in.Component, row.Index, slot)
			text := d.in.RefusedPods[name].Text
			if len(d.in.RefusedPods) == 0 {
				text = d.in.Refusal
			}
			if text != "" {
				return fmt.Sprintf("the API server refused pod %s: %s", name, text)
			}
		case p.terminating && !d.in.Now.Before(p.graceEnds()):
			return fmt.Sprintf("pod %s is past its deletion grace on node %s and holds the name of its successor; if the node is gone, delete the pod with --force",
				p.obj.Name, p.obj.Spec.NodeName)
		case p.broken:
			return fmt.Sprintf("pod %s cannot start: %s; mend the spec or go back to the previous one", p.obj.Name, p.brokenBy())
		case p.unschedulable:
			return fmt.Sprintf("no node has room for pod %s: %s%s", p.obj.Name, p.noRoom(), d.roomAdvice(row, p))
		case p.gated:
			return fmt.Sprintf("pod %s waits for its scheduling gate %s, which a queue or quota system removes", p.obj.Name, p.obj.Spec.SchedulingGates[0].Name)
		}
	}
	return ""
}
