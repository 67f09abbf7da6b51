package instance

import (
	"slices"

	"ome.io/ome/api/v1beta1"
)

// count writes what the pods show into the rows and sums them.
func (d *decider) count() {
	c := &d.res.Counts
	c.Settled = true
	targetHash := d.in.Target.Hash
	for i := range d.rows {
		row := &d.rows[i]
		s := d.podsOf(row.Index)
		var pods, ready, serving, available, updatedReady int32
		admitted := s.listed > 0
		s.all(func(p *pod) {
			if p.terminating || p.over {
				return
			}
			pods++
			admitted = admitted && !p.gated
			if p.containersReady {
				ready++
				if p.hash == targetHash {
					updatedReady++
				}
			}
			if p.serving() {
				serving++
			}
			// At the documented rule a listed pod is available once Ready for the window.
			if ok, due := p.readyFor(d.in); ok {
				available++
			} else {
				d.wakeAt(due)
			}
		})
		row.PodCount, row.ServingPodCount, row.AvailablePodCount = pods, serving, available
		row.Admitted = admitted && pods > 0

		c.Total++
		c.Pods += s.listed
		c.Ready += min(1, ready)
		c.Serving += min(1, serving)
		c.Available += min(1, available)
		if row.RunningRevision == d.in.Target.Name {
			c.Updated++
			c.UpdatedReady += min(1, updatedReady)
		}
		if row.Phase != v1beta1.InstanceReady || row.RunningRevision != d.in.Target.Name || row.Operation != nil {
			c.Settled = false
		}
		if row.Phase == v1beta1.InstanceFailed {
			c.Failed++
			if row.RunningRevision != d.in.Target.Name {
				c.Stalled++
			}
		}
		if op := row.Operation; op != nil {
			switch {
			case op.Type == v1beta1.OperationDelete:
				c.Deleting++
				if op.Deadline != nil && !d.in.Now.Before(op.Deadline.Time) {
					c.Overdue++
					d.nameOverdue(s)
				}
			case op.Type == v1beta1.OperationCreate:
				c.Creating++
			case op.Step == v1beta1.StepSurge:
				c.Surging++
			default:
				c.Draining++
			}
		}
	}
	c.KeptBack = int32(len(d.kept))
	if !slices.ContainsFunc(d.rows, func(r v1beta1.InstanceStatus) bool { return r.Phase != v1beta1.InstanceDeleting }) {
		c.Settled = c.Settled && len(d.rows) == 0
	}
}
