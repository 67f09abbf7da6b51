package core

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/rollout"
)

var groupVersion = v1beta1.SchemeGroupVersion.String()

// serviceStatus words the next status of the service from what this pass decided.
func serviceStatus(w *World, components []*component, in rollout.Input, res rollout.Result, live plan.Resolution, out *Decision) {
	st := new(w.Service.Status) // shallow: what changes is replaced, never written to
	st.ObservedGeneration = w.Service.Generation
	st.Rollout = res.Status

	progress := make(map[v1beta1.ComponentType]rollout.Progress, len(components))
	declared := map[v1beta1.ComponentType]bool{}
	var entry *component
	for _, c := range components {
		if !c.Declared {
			continue
		}
		declared[c.Type] = true
		if c.foreign {
			continue
		}
		progress[c.Type] = rollout.Progress{Counts: c.result.Counts, Changing: c.changing(), Staged: c.staged()}
		if c.Type == v1beta1.RouterComponent || entry == nil {
			entry = c
		}
	}
	var events []Event
	st.RolloutCoordination, events = rollout.Coordinate(in, res, live, st.RolloutCoordination, progress)
	out.Events, out.Counts = append(out.Events, events...), append(out.Counts, rollout.Transitions(w.Service.Status.RolloutCoordination, st.RolloutCoordination)...)

	next := make(map[v1beta1.ComponentType]v1beta1.ComponentStatus, len(components))
	for _, c := range components {
		if c.Declared {
			next[c.Type] = c.componentStatus(w, in.Pause)
		}
	}
	canaryStatus(w, components, res.Canaries, next)
	st.Components = next
	st.Canary = nil
	if entry != nil {
		st.Canary = next[entry.Type].Canary
	}
	if st.Canary == nil {
		st.Canary = next[v1beta1.EngineComponent].Canary
	}

	conditions := newConditions(w, st.Conditions)
	ready := true
	for _, c := range components {
		if !c.Declared {
			continue
		}
		status, reason, message := c.readiness()
		conditions.set(v1beta1.ComponentReadyCondition(c.Type), status, reason, message)
		if c.Type == v1beta1.EngineComponent {
			ready = status == corev1.ConditionTrue
		}
	}
	for _, kind := range []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent, v1beta1.RouterComponent} {
		if !declared[kind] {
			conditions.drop(v1beta1.ComponentReadyCondition(kind))
		}
	}
	runtimeReady(components, conditions)
	conditions.set(v1beta1.ConditionIngressReady, corev1.ConditionTrue, v1beta1.ReasonIngressDisabled, "")
	switch {
	case !declared[v1beta1.EngineComponent]:
		conditions.set(v1beta1.ConditionReady, corev1.ConditionFalse, v1beta1.ReasonNoReplicas, "the service runs no engine in OMENative mode")
	case ready:
		conditions.set(v1beta1.ConditionReady, corev1.ConditionTrue, v1beta1.ReasonReady, "")
	default:
		conditions.set(v1beta1.ConditionReady, corev1.ConditionFalse, v1beta1.ReasonInsufficientAvailable, "the engine is not ready")
	}
	previousGone(components, conditions)
	settingsValid(w, conditions)
	rolloutConditions(res, live, st, conditions)
	st.Conditions = conditions.list

	if entry != nil && entry.Replica != nil {
		st.URL = "http://" + w.Key.Name + "." + w.Key.Namespace + ".svc.cluster.local"
		st.Address = kept(st.Address, v1beta1.Addressable{URL: st.URL})
	}
	if !sameServiceStatus(st, &w.Service.Status, exactly) {
		out.Status = st
		out.StatusUrgent = !sameServiceStatus(st, &w.Service.Status, byWeight)
	}
}

func (c *component) componentStatus(w *World, pause rollout.Pause) v1beta1.ComponentStatus {
	cs := w.Service.Status.Components[c.Type] // shallow, as above
	replica := v1beta1.ReplicaName(w.Key.Name, c.Type)
	cs.URL = "http://" + replica + "." + w.Key.Namespace + ".svc.cluster.local"
	cs.ScaleTargetRef = kept(cs.ScaleTargetRef, v1beta1.ScaleTargetRef{APIVersion: groupVersion, Kind: "InferenceReplica", Name: replica})
	cs.Autoscaler = c.autoscalerStatus(w)
	if c.Replica == nil || c.foreign {
		cs.Lifecycle, cs.RolloutPhase = nil, ""
		return cs
	}
	st := &c.status
	cs.Lifecycle = &v1beta1.LifecycleStatus{
		ObservedGeneration: w.Service.Generation,
		CurrentRevision:    st.CurrentRevision, UpdateRevision: st.UpdateRevision,
		CollisionCount: st.CollisionCount, LabelSelector: st.LabelSelector,
		Replicas: st.Replicas, ReadyReplicas: st.ReadyReplicas, ServingReplicas: st.ServingReplicas,
		AvailableReplicas: st.AvailableReplicas, UpdatedReplicas: st.UpdatedReplicas, UpdatedReadyReplicas: st.UpdatedReadyReplicas,
		Conditions: st.Conditions, RolloutHold: st.RolloutHold,
	}
	switch changing := c.changing(); {
	case changing && pause != rollout.NotPaused:
		cs.RolloutPhase = v1beta1.RolloutPaused
	case changing:
		cs.RolloutPhase = v1beta1.RolloutPromoting
	case st.CurrentRevision != "":
		cs.RolloutPhase = v1beta1.RolloutStable
	default:
		cs.RolloutPhase = ""
	}
	if hash := c.known[st.CurrentRevision].Hash; hash != "" {
		name := RevisionServiceName(w.Key.Name, c.Type, hash)
		if cs.LatestRolledoutRevision != name {
			cs.PreviousRolledoutRevision, cs.LatestRolledoutRevision = cs.LatestRolledoutRevision, name
		}
		latest := true
		cs.Traffic = []v1beta1.TrafficTarget{{RevisionName: name, Percent: 100, LatestRevision: &latest,
			PairingProtocol: c.known[st.CurrentRevision].Token}}
		if cs.LatestReadyRevision == "" {
			cs.LatestReadyRevision = name
		}
	}
	if c.result.UpdatedReady > 0 && c.aim.Hash != "" {
		cs.LatestReadyRevision = RevisionServiceName(w.Key.Name, c.Type, c.aim.Hash)
	}
	return cs
}

// readiness is the component's own condition on the service.
func (c *component) readiness() (corev1.ConditionStatus, string, string) {
	switch {
	case c.unreadable != nil:
		return corev1.ConditionFalse, v1beta1.ReasonInsufficientAvailable,
			fmt.Sprintf("the Instance status of InferenceReplica %s can't be read and is left alone: %v", c.Replica.Name, c.unreadable)
	case c.Replica == nil && c.TemplateError != nil:
		return corev1.ConditionFalse, c.TemplateError.Reason, c.TemplateError.Message
	case c.Replica == nil || c.foreign || c.desired == 0:
		return corev1.ConditionFalse, v1beta1.ReasonNoReplicas, "no Instance exists yet"
	case c.result.Serving >= c.desired:
		return corev1.ConditionTrue, v1beta1.ReasonReady, ""
	case c.result.Serving > 0 && c.result.Serving >= c.minimum():
		return corev1.ConditionTrue, v1beta1.ReasonMinimumAvailable, fmt.Sprintf("%d/%d Instances serving", c.result.Serving, c.desired)
	}
	return corev1.ConditionFalse, v1beta1.ReasonInsufficientAvailable,
		fmt.Sprintf("%d/%d Instances serving, need %d", c.result.Serving, c.desired, max(1, c.minimum()))
}

// runtimeReady appears with the first problem and stays.
func runtimeReady(components []*component, conditions *conditionList) {
	for _, c := range components {
		if c.Declared && c.TemplateError != nil {
			conditions.set(v1beta1.ConditionRuntimeReady, corev1.ConditionFalse, c.TemplateError.Reason,
				fmt.Sprintf("%s: %s", c.Type, c.TemplateError.Message))
			return
		}
	}
	if conditions.has(v1beta1.ConditionRuntimeReady) {
		conditions.set(v1beta1.ConditionRuntimeReady, corev1.ConditionTrue, v1beta1.ReasonRuntimeResolved, "")
	}
}

// previousGone shows only while an earlier service of the name still has replicas.
func previousGone(components []*component, conditions *conditionList) {
	for _, c := range components {
		switch {
		case !c.foreign:
		case c.Replica.DeletionTimestamp != nil:
			conditions.set(v1beta1.ConditionPreviousGone, corev1.ConditionFalse, "WaitingForTeardown",
				fmt.Sprintf("InferenceReplica %s belongs to an earlier InferenceService of this name and is draining", c.Replica.Name))
			return
		case c.out.DeleteReplica:
			conditions.set(v1beta1.ConditionPreviousGone, corev1.ConditionFalse, "WaitingForTeardown",
				fmt.Sprintf("InferenceReplica %s belongs to an earlier InferenceService of this name and is being deleted", c.Replica.Name))
			return
		default:
			conditions.set(v1beta1.ConditionPreviousGone, corev1.ConditionFalse, "NameTaken",
				fmt.Sprintf("InferenceReplica %s is not this service's and has no owner that was: delete it, or give the service another name", c.Replica.Name))
			return
		}
	}
	conditions.drop(v1beta1.ConditionPreviousGone)
}

// settingsValid appears with the first bad setting and stays.
func settingsValid(w *World, conditions *conditionList) {
	switch {
	case len(w.SettingsProblems) > 0:
		conditions.set(v1beta1.ConditionSettingsValid, corev1.ConditionFalse, "InvalidValue", strings.Join(w.SettingsProblems, "; "))
	case conditions.has(v1beta1.ConditionSettingsValid):
		conditions.set(v1beta1.ConditionSettingsValid, corev1.ConditionTrue, "Valid", "")
	}
}

func rolloutConditions(res rollout.Result, live plan.Resolution, st *v1beta1.InferenceServiceStatus, conditions *conditionList) {
	if !res.Configured {
		conditions.drop(v1beta1.ConditionRolloutPlanReady)
		conditions.drop(v1beta1.ConditionRolloutPlanDrift)
		conditions.drop(v1beta1.ConditionRolloutCoordinationReady)
		return
	}
	run := res.Status.ActiveRun
	switch {
	case res.ParkReason != "":
		conditions.set(v1beta1.ConditionRolloutPlanReady, corev1.ConditionFalse, res.ParkReason, res.ParkMessage)
	case run != nil:
		conditions.set(v1beta1.ConditionRolloutPlanReady, corev1.ConditionTrue, v1beta1.ReasonPinned, "run "+run.RunID)
	default:
		conditions.set(v1beta1.ConditionRolloutPlanReady, corev1.ConditionTrue, v1beta1.ReasonNoActiveRun, "")
	}
	reason, message := v1beta1.ReasonInSync, ""
	if run != nil {
		reason, message = plan.DriftReason(run.Plan, live.Plan)
	}
	drift := corev1.ConditionTrue
	if reason == v1beta1.ReasonInSync {
		drift = corev1.ConditionFalse
	}
	conditions.set(v1beta1.ConditionRolloutPlanDrift, drift, reason, message)
	if st.RolloutCoordination == nil {
		conditions.drop(v1beta1.ConditionRolloutCoordinationReady)
		return
	}
	status, reason, message := rollout.CoordinationReady(st.RolloutCoordination)
	conditions.set(v1beta1.ConditionRolloutCoordinationReady, corev1.ConditionStatus(status), reason, message)
}

// conditionList edits a copy of the service's conditions.
type conditionList struct {
	now  metav1.Time
	list []v1beta1.DuckCondition
}

func newConditions(w *World, old []v1beta1.DuckCondition) *conditionList {
	return &conditionList{now: metav1.NewTime(w.Now), list: slices.Clone(old)}
}

func (l *conditionList) has(kind string) bool {
	return slices.ContainsFunc(l.list, func(c v1beta1.DuckCondition) bool { return c.Type == kind })
}

func (l *conditionList) drop(kind string) {
	l.list = slices.DeleteFunc(l.list, func(c v1beta1.DuckCondition) bool { return c.Type == kind })
}

func (l *conditionList) set(kind string, status corev1.ConditionStatus, reason, message string) {
	for i := range l.list {
		c := &l.list[i]
		if c.Type != kind {
			continue
		}
		if c.Status != status {
			c.LastTransitionTime = &l.now
		}
		c.Status, c.Reason, c.Message = status, reason, message
		return
	}
	l.list = append(l.list, v1beta1.DuckCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: &l.now})
}
