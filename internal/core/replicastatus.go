package core

import (
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/rollout"
	"ome.io/ome/internal/core/rows"
)

// decideStatus words the replica's next status from the rows just decided.
func (c *component) decideStatus(w *World) {
	st := &c.status
	res := &c.result
	old := &c.Replica.Status
	st.ObservedGeneration = c.Replica.Generation
	st.Replicas, st.ReadyReplicas, st.ServingReplicas = res.Total, res.Ready, res.Serving
	st.AvailableReplicas, st.UpdatedReplicas, st.UpdatedReadyReplicas = res.Available, res.Updated, res.UpdatedReady
	st.UpdateRevision = c.target.Name
	if c.collision > 0 {
		st.CollisionCount = new(c.collision)
	}
	st.LabelSelector = labels.Set(selector(w.Key.Name, c.Type)).String()
	if c.aim.Name != c.target.Name {
		st.UpdatedReplicas, st.UpdatedReadyReplicas = c.onTarget()
	}
	if c.settledOnTarget() {
		st.CurrentRevision = c.aim.Name
	}
	st.RetryBlocks, st.Migrations = res.RetryBlocks, res.Migrations
	c.decideHold(w)
	c.decideReady(w)
	c.decideDiagnostics(w)

	if !c.encode(w) {
		return
	}
	if !c.sameRows || !sameReplicaStatus(st, old) {
		c.out.ReplicaStatus = st
		c.out.ReplicaStatusUrgent = c.urgent(old)
	}
}

// encode stores the rows in the status. Rows that did not change keep their form,
// unless the operator chose another one meanwhile.
func (c *component) encode(w *World) bool {
	target := v1beta1.InstanceStatusEncoding(w.Settings.InstanceStatus.Encoding)
	c.sameRows = slices.EqualFunc(c.rows, c.result.Rows, sameRow)
	if c.sameRows && rows.EncodingOf(&c.status) == target {
		return true
	}
	encoded, err := rows.Encode(c.result.Rows, rows.Options{Encoding: target, MaxDecoded: int(w.Settings.InstanceStatus.MaxDecodedInstances)})
	if err != nil {
		// Rows that cannot be stored authorize nothing.
		c.unreadable, c.out.Pods = err, nil
		return false
	}
	c.sameRows = c.sameRows && encoded.Encoding == rows.EncodingOf(&c.status)
	if !c.sameRows {
		rows.Apply(&c.status, encoded)
	}
	return true
}

// sameRow compares by identity first: a decision replaces what it changes and
// never writes to it.
func sameRow(a, b v1beta1.InstanceStatus) bool {
	return a.Index == b.Index && a.Phase == b.Phase && a.Incarnation == b.Incarnation &&
		a.RunningRevision == b.RunningRevision && a.TargetRevision == b.TargetRevision &&
		a.PodCount == b.PodCount && a.ServingPodCount == b.ServingPodCount && a.AvailablePodCount == b.AvailablePodCount &&
		a.Admitted == b.Admitted && a.ActiveOrdinal == b.ActiveOrdinal && a.ReadySince == b.ReadySince &&
		(a.Operation == b.Operation || apiequality.Semantic.DeepEqual(a.Operation, b.Operation)) && a.LastFailure == b.LastFailure &&
		len(a.Conditions) == len(b.Conditions) && slices.Equal(a.Announced, b.Announced)
}

// onTarget counts the rows that run what the spec wants while all go somewhere else.
func (c *component) onTarget() (updated, ready int32) {
	for i := range c.result.Rows {
		if row := &c.result.Rows[i]; row.RunningRevision == c.target.Name {
			updated++
			if row.Phase == v1beta1.InstanceReady {
				ready++
			}
		}
	}
	return updated, ready
}

// settledOnTarget: every desired Instance runs the target and none is on the way.
func (c *component) settledOnTarget() bool {
	return c.result.Settled && c.result.Total >= c.desired && c.desired > 0 && c.aim.Name != ""
}

func (c *component) decideHold(w *World) {
	hold, st := c.result.Hold, &c.status
	if hold == nil {
		st.RolloutHold = nil
		return
	}
	next := &v1beta1.RolloutHold{Gate: hold.Gate, Reason: hold.Reason, Target: c.aim.Name, Since: metav1.NewTime(w.Now)}
	if old := st.RolloutHold; old != nil && old.Gate == next.Gate && old.Target == next.Target {
		next.Since = old.Since
	}
	st.RolloutHold = next
}

// minimum is how many Instances must serve for the component to count as ready.
func (c *component) minimum() int32 {
	l := c.lifecycle()
	if l == nil || l.UpdateStrategy == nil || l.UpdateStrategy.RollingUpdate == nil || l.UpdateStrategy.RollingUpdate.MaxUnavailable == nil {
		return c.desired
	}
	n, err := plan.Budget(*l.UpdateStrategy.RollingUpdate.MaxUnavailable, c.desired)
	if err != nil {
		return c.desired
	}
	return max(0, c.desired-n)
}

// changing is true while some Instance has a revision to roll to, or is rolling.
func (c *component) changing() bool {
	if c.aim.Name == "" {
		return false
	}
	if c.status.CurrentRevision != "" && c.status.CurrentRevision != c.aim.Name {
		return true
	}
	for i := range c.result.Rows {
		row := &c.result.Rows[i]
		if row.Phase == v1beta1.InstanceDeleting {
			continue
		}
		if row.RunningRevision != "" && row.RunningRevision != c.aim.Name {
			return true
		}
		if row.Operation != nil && row.Operation.Type == v1beta1.OperationUpdate {
			return true
		}
	}
	return false
}

func (c *component) decideReady(w *World) {
	res := &c.result
	cond := metav1.Condition{Type: v1beta1.ConditionReady, ObservedGeneration: c.Replica.Generation}
	minimum := c.minimum()
	switch {
	case c.TemplateError != nil && c.Template == nil:
		cond.Status, cond.Reason, cond.Message = metav1.ConditionFalse, c.TemplateError.Reason, c.TemplateError.Message
	case res.Failed > 0:
		cond.Status, cond.Reason, cond.Message = metav1.ConditionFalse, v1beta1.ReasonInstanceFailed, "an Instance is in phase Failed"+c.firstFailure()
	case c.staged():
		cond.Status, cond.Reason = metav1.ConditionTrue, v1beta1.ReasonStaged
		cond.Message = fmt.Sprintf("staged at partition %d: %d/%d Instances on %s, %d held on the prior revision",
			res.KeptBack, res.Updated, res.Total, c.aim.Name, res.KeptBack)
	case c.changing():
		cond.Status, cond.Reason = metav1.ConditionUnknown, v1beta1.ReasonRolloutInProgress
		cond.Message = fmt.Sprintf("rolling out %s (%d/%d Instances on target)", c.aim.Name, res.Updated, res.Total)
		if w.Service != nil && rollout.PauseOf(w.Service.Annotations) != rollout.NotPaused {
			cond.Message += fmt.Sprintf("; paused until kubectl ome rollout resume %s -n %s", w.Key.Name, w.Key.Namespace)
		}
	case c.desired == 0:
		cond.Status, cond.Reason, cond.Message = metav1.ConditionFalse, v1beta1.ReasonNoReplicas, "no Instance is desired"
	case res.Ready >= c.desired && res.Serving >= c.desired:
		cond.Status, cond.Reason = metav1.ConditionTrue, v1beta1.ReasonAllInstancesReady
		cond.Message = fmt.Sprintf("%d/%d Instances ready", res.Ready, c.desired)
	case res.Serving >= minimum:
		cond.Status, cond.Reason = metav1.ConditionTrue, v1beta1.ReasonMinimumAvailable
		cond.Message = fmt.Sprintf("%d/%d Instances serving (minimum %d)", res.Serving, c.desired, minimum)
	default:
		cond.Status, cond.Reason = metav1.ConditionFalse, v1beta1.ReasonReplicaCountMismatch
		cond.Message = fmt.Sprintf("%d/%d Instances serving, need %d", res.Serving, c.desired, minimum)
	}
	cond.LastTransitionTime = metav1.NewTime(w.Now)
	c.status.Conditions = cloneConditions(c.status.Conditions)
	meta.SetStatusCondition(&c.status.Conditions, cond)
}

// firstFailure names the Failed Instance of the lowest index and its cause.
func (c *component) firstFailure() string {
	for i := range c.result.Rows {
		if row := &c.result.Rows[i]; row.Phase == v1beta1.InstanceFailed && row.LastFailure != nil {
			return fmt.Sprintf(": Instance %d, %s of pod %s", row.Index, row.LastFailure.Reason, row.LastFailure.PodName)
		}
	}
	return ""
}

// staged is true while only the partition keeps Instances from the target.
func (c *component) staged() bool {
	kept := c.result.KeptBack
	if kept == 0 || c.aim.Name == "" {
		return false
	}
	for i := range c.result.Rows {
		row := &c.result.Rows[i]
		if row.Phase != v1beta1.InstanceReady || row.Operation != nil {
			return false
		}
		if row.RunningRevision != c.aim.Name {
			kept--
		}
	}
	return kept == 0
}

// decideDiagnostics words the conditions that explain and change nothing else. They
// appear with their first trouble: a replica that never had any carries none.
func (c *component) decideDiagnostics(w *World) {
	res := &c.result
	say := func(kind string, yes bool, reasonYes, reasonNo, message, calm string) {
		if !yes && meta.FindStatusCondition(c.status.Conditions, kind) == nil {
			return
		}
		cond := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reasonNo, Message: calm,
			ObservedGeneration: c.Replica.Generation, LastTransitionTime: metav1.NewTime(w.Now)}
		if yes {
			cond.Status, cond.Reason, cond.Message = metav1.ConditionTrue, reasonYes, message
		}
		meta.SetStatusCondition(&c.status.Conditions, cond)
	}
	say(v1beta1.ConditionRolloutStalled, res.Stalled > 0 && c.changing(), v1beta1.ReasonInstancesFailing, v1beta1.ReasonProgressing,
		fmt.Sprintf("%d Instances failed on their way to %s%s", res.Stalled, c.aim.Name, c.firstFailure()),
		"no Instance failed on its way to the target")
	say(v1beta1.ConditionDrainOverdue, res.Overdue > 0, v1beta1.ReasonDrainsOverdue, v1beta1.ReasonDrainsWithinDeadline,
		fmt.Sprintf("%d removals are past their deadline and go on%s", res.Overdue, res.OverdueFor), "every removal is within its deadline")
	timeout := c.readyTimeout(w)
	say(v1beta1.ConditionInstanceReadyTimeoutUnconfigured, timeout <= 0, v1beta1.ReasonInstanceReadyTimeoutUnconfigured,
		v1beta1.ReasonInstanceReadyTimeoutConfigured,
		"no instanceReadyTimeout is set: an attempt may wait for ever; set lifecycle.instanceReadyTimeout on the component or in the operator's settings",
		fmt.Sprintf("an attempt has %s", timeout))
}

func cloneConditions(in []metav1.Condition) []metav1.Condition {
	return append(make([]metav1.Condition, 0, len(in)+1), in...)
}

// urgent is false when the write would only move counters, times and texts.
func (c *component) urgent(old *v1beta1.InferenceReplicaStatus) bool {
	a, b := c.status, *old
	if a.ObservedGeneration != b.ObservedGeneration || a.CurrentRevision != b.CurrentRevision ||
		a.UpdateRevision != b.UpdateRevision || a.LabelSelector != b.LabelSelector || len(c.result.Rows) != len(c.rows) ||
		(a.RolloutHold == nil) != (b.RolloutHold == nil) {
		return true
	}
	if a.RolloutHold != nil && (a.RolloutHold.Gate != b.RolloutHold.Gate || a.RolloutHold.Target != b.RolloutHold.Target) {
		return true
	}
	x, y := meta.FindStatusCondition(a.Conditions, v1beta1.ConditionReady), meta.FindStatusCondition(b.Conditions, v1beta1.ConditionReady)
	if (x == nil) != (y == nil) || (x != nil && (x.Status != y.Status || x.Reason != y.Reason)) {
		return true
	}
	if len(a.RetryBlocks) != len(b.RetryBlocks) || len(a.Migrations) != len(b.Migrations) {
		return true
	}
	for i := range a.RetryBlocks {
		if x, y := &a.RetryBlocks[i], &b.RetryBlocks[i]; x.State != y.State || x.TargetRevision != y.TargetRevision {
			return true
		}
	}
	for i := range c.rows {
		r, s := &c.result.Rows[i], &c.rows[i]
		if r.Index != s.Index || r.Phase != s.Phase || r.RunningRevision != s.RunningRevision || r.ActiveOrdinal != s.ActiveOrdinal ||
			r.Incarnation != s.Incarnation || r.LastFailure != s.LastFailure || len(r.Announced) != len(s.Announced) ||
			!sameOperation(r.Operation, s.Operation) {
			return true
		}
	}
	return false
}

func sameOperation(a, b *v1beta1.InstanceOperation) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID == b.ID && a.Step == b.Step && a.Waiting == b.Waiting && a.TargetRevision == b.TargetRevision
}
