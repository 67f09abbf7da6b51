package sim

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// Explained is nil when each component is at its goal or its status says what keeps
// it from there.
func (c *Cluster) Explained() error {
	if c.actual.service == nil {
		return nil
	}
	var all []error
	for _, kind := range order {
		short := c.restedComponent(kind)
		if short == nil || c.Paused() || c.reason(kind) != "" || c.overlooked(kind) {
			continue
		}
		all = append(all, fmt.Errorf("%s rests short of its goal and nothing says why: %w", kind, short))
	}
	return errors.Join(all...)
}

// overlooked is true while a pod crashes and the operator asked that nobody looks.
func (c *Cluster) overlooked(kind v1beta1.ComponentType) bool {
	if c.Settings.Lifecycle.StuckPodGracePeriod > 0 {
		return false
	}
	for _, p := range c.actual.pods {
		if p.Labels[v1beta1.ComponentLabel] == string(kind) && !is(p, corev1.ContainersReady) {
			return true
		}
	}
	return false
}

// reason is the first thing in a component's status that a person could act on.
func (c *Cluster) reason(kind v1beta1.ComponentType) string {
	r := c.actual.replicas[kind]
	if r == nil {
		for _, cond := range c.actual.service.Status.Conditions {
			if strings.EqualFold(cond.Type, string(kind)+"Ready") && cond.Status == corev1.ConditionFalse {
				return cond.Message
			}
		}
		return ""
	}
	if h := r.Status.RolloutHold; h != nil && h.Reason != "" {
		return h.Reason
	}
	for _, row := range c.Rows(kind) {
		switch {
		case row.Operation != nil && row.Operation.Waiting != "":
			return row.Operation.Waiting
		case row.Phase == v1beta1.InstanceFailed && row.LastFailure != nil && row.LastFailure.Reason != "":
			return row.LastFailure.Reason
		}
	}
	for _, cond := range r.Status.Conditions {
		switch {
		case cond.Type == v1beta1.ConditionReady && cond.Reason == "Staged":
			return cond.Message
		case cond.Type == v1beta1.ConditionReady && cond.Status == metav1.ConditionFalse && c.Broken[kind]:
			return cond.Message
		case cond.Type == "DrainOverdue" && cond.Status == metav1.ConditionTrue:
			return cond.Message
		}
	}
	return ""
}

// Describe words the state of everything, for a test that fails.
func (c *Cluster) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %s; paused %v, quota %d, webhook down %v, queued %v, room %v, bad nodes %v\n",
		c.Now.Format("15:04:05.000"), c.Paused(), c.Quota, c.WebhookDown, c.Queued, c.Room, c.BadNodes)
	fmt.Fprintf(&b, "settings: %+v %s\n", c.Settings.Lifecycle, c.Settings.InstanceStatus.Encoding)
	for _, name := range c.Nodes() {
		fmt.Fprintf(&b, "node %s alive %v\n", name, alive(c.actual.nodes[name]))
	}
	for _, kind := range order {
		r := c.actual.replicas[kind]
		if r == nil {
			continue
		}
		fmt.Fprintf(&b, "%s: %+v desired %d, current %s, update %s, annotations %v\n", kind, c.Pieces[kind], c.Desired(kind),
			r.Status.CurrentRevision, r.Status.UpdateRevision, r.Annotations)
		fmt.Fprintf(&b, "  hold %+v\n", r.Status.RolloutHold)
		for _, k := range r.Status.RetryBlocks {
			fmt.Fprintf(&b, "  block %+v\n", k)
		}
		for _, k := range r.Status.Migrations {
			fmt.Fprintf(&b, "  migration %+v\n", k)
		}
		for _, row := range c.Rows(kind) {
			fmt.Fprintf(&b, "  row %d %s slot %d incarnation %d running %s target %s failure %+v op %+v\n", row.Index, row.Phase, row.ActiveOrdinal,
				row.Incarnation, row.RunningRevision, row.TargetRevision, row.LastFailure, row.Operation)
		}
		for _, p := range c.Pods() {
			if p.Labels[v1beta1.ComponentLabel] != string(kind) {
				continue
			}
			fmt.Fprintf(&b, "  pod %s at %s on %q phase %s deleted %v serving %v routed %v sick %v hangs %v finalizers %v", short(p), p.Labels[v1beta1.RevisionHashLabel],
				p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp, serving(p), c.actual.offered[p.UID], c.Sick[p.UID], c.hangs(p), p.Finalizers)
			for _, s := range p.Status.ContainerStatuses {
				fmt.Fprintf(&b, " [%s %s %s restarts %d ready %v waiting %v]", s.Name, s.Image, s.ContainerID, s.RestartCount, s.Ready, s.State.Waiting)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
