package instance

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

// escalate looks after pods that outlive their deletion. A pod of a dead node is removed
// from the API once that is configured; one that a finalizer holds is only named.
func (d *decider) escalate(row *v1beta1.InstanceStatus) {
	op := row.Operation
	if op.Type == v1beta1.OperationDelete && op.Deadline != nil && !d.in.Now.Before(op.Deadline.Time) &&
		d.once(row, v1beta1.EventDrainOverdue, op.ID) {
		d.warn(v1beta1.EventDrainOverdue, "the removal of Instance %s-%d is past its deadline of %s and goes on", d.in.Component, row.Index, d.in.ReadyTimeout)
	}
	if !d.in.ForceDelete.Enabled() || op.Type == v1beta1.OperationRestart {
		return
	}
	d.podsOf(row.Index).all(func(p *pod) {
		if !p.terminating || !d.after(p.graceEnds(), d.in.ForceDelete.OverdueSlack) {
			return
		}
		if len(p.obj.Finalizers) > 0 {
			if d.once(row, v1beta1.EventPodDeleteBlockedByFinalizer, op.ID) {
				d.warn(v1beta1.EventPodDeleteBlockedByFinalizer, "pod %s is overdue, and finalizer %s holds it", p.obj.Name, p.obj.Finalizers[0])
			}
			return
		}
		if evidence := d.nodeDead(p.obj.Spec.NodeName); evidence != "" {
			d.act(PodForceDelete, p, op, "NodeDead")
			d.warn(v1beta1.EventPodForceDeleted, "pod %s on node %s is force-deleted: %s", p.obj.Name, p.obj.Spec.NodeName, evidence)
		}
	})
}

// nodeDead is the evidence that a node is dead, "" while it may live. A node that says
// it is Ready is never dead.
func (d *decider) nodeDead(name string) string {
	node, looked := d.in.Nodes[name]
	switch {
	case name == "" || !looked:
		return ""
	case node == nil:
		return "node-gone"
	}
	long := func(since time.Time) bool { return d.after(since, d.in.ForceDelete.NodeUnreachableThreshold) }
	var ready *corev1.NodeCondition
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			ready = c
		}
	}
	if ready != nil && ready.Status == corev1.ConditionTrue {
		return ""
	}
	for _, t := range node.Spec.Taints {
		if t.Key == corev1.TaintNodeUnreachable && t.TimeAdded != nil && long(t.TimeAdded.Time) {
			return "node-unreachable-taint"
		}
	}
	if ready != nil && long(ready.LastTransitionTime.Time) {
		return "node-not-ready"
	}
	return ""
}

// nameOverdue words what keeps a removal beyond its deadline.
func (d *decider) nameOverdue(s *slots) {
	s.all(func(p *pod) {
		if d.res.OverdueFor != "" {
			return
		}
		d.res.OverdueFor = fmt.Sprintf(": pod %s on node %s is still there", p.obj.Name, orElse(p.obj.Spec.NodeName, "(none)"))
		switch {
		case len(p.obj.Finalizers) > 0:
			d.res.OverdueFor += "; finalizer " + p.obj.Finalizers[0] + " holds it, and its owner has to let it go"
		case p.terminating:
			d.res.OverdueFor += "; it ends with its server, and if the node is gone, delete the pod with --force or set lifecycle.forceDelete"
		case p.routed || p.ready:
			d.res.OverdueFor += "; it leaves when no EndpointSlice offers it any more"
		}
	})
}
