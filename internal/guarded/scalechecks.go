package guarded

import (
	"fmt"
	"math"
	"slices"

	"ome.io/ome/api/v1beta1"
)

// owner is who sets the count of a component, and what says so.
type owner struct {
	class             v1beta1.AutoscalerClass
	managedBy, source string
}

func (o owner) String() string { return string(o.class) + " / " + o.managedBy }

// overwrites words when the count is lost.
func (o owner) overwrites() string {
	switch o.class {
	case v1beta1.AutoscalerExternal:
		return "here a scaler of your own, if there is one"
	case v1beta1.AutoscalerNone:
		return "here the manager itself, which goes back to minReplicas within moments"
	case v1beta1.AutoscalerKEDA:
		return "here KEDA, at its next decision"
	}
	return "here the HorizontalPodAutoscaler, at its next decision"
}

var managers = map[v1beta1.AutoscalerClass]string{
	v1beta1.AutoscalerHPA:      v1beta1.AutoscalerManagedByOME,
	v1beta1.AutoscalerKEDA:     v1beta1.AutoscalerManagedByOME,
	v1beta1.AutoscalerExternal: v1beta1.AutoscalerManagedByExternal,
	v1beta1.AutoscalerNone:     v1beta1.AutoscalerManagedByNone,
}

// owner resolves the whole block from the first layer that has one.
func (s Scale) owner(ev *Evidence) owner {
	out := owner{class: v1beta1.AutoscalerHPA, source: "default"}
	own, base := s.extensions(ev)
	switch {
	case own.Autoscaler != nil:
		out.class, out.source = own.Autoscaler.Class, "isvc"
	case own.AutoscalerPolicyRef != nil:
		out.source = "policy"
	case base.Autoscaler != nil:
		out.class, out.source = base.Autoscaler.Class, "runtime"
	case base.AutoscalerPolicyRef != nil:
		out.source = "policy"
	}
	if out.class == "" {
		out.class = v1beta1.AutoscalerHPA
	}
	out.managedBy = managers[out.class]
	return out
}

// extensions are the component's settings in the service and in the runtime; never nil.
func (s Scale) extensions(ev *Evidence) (own, base *v1beta1.ComponentExtensionSpec) {
	if own = ev.Service.Spec.Extension(s.Component); own == nil {
		own = &v1beta1.ComponentExtensionSpec{}
	}
	if base = ev.runtimeExtension(s.Component); base == nil {
		base = &v1beta1.ComponentExtensionSpec{}
	}
	return own, base
}

type countBounds struct{ least, most int32 }

func (b countBounds) String() string { return fmt.Sprintf("%d..%d", b.least, b.most) }

// bounds come from the service, else the runtime. The operator's defaults don't
// count: nobody chose them for this service. Without a maximum the minimum is it.
func (s Scale) bounds(ev *Evidence) countBounds {
	own, base := s.extensions(ev)
	pick := func(values ...*int) int32 {
		for _, v := range values {
			if v != nil && *v > 0 {
				return int32(min(*v, math.MaxInt32))
			}
		}
		return 0
	}
	least := int32(1)
	if n := own.MinReplicas; n != nil {
		least = max(1, pick(n))
	} else {
		least = max(1, pick(base.MinReplicas))
	}
	return countBounds{least, max(least, pick(own.MaxReplicas, base.MaxReplicas))}
}

// partition is the largest number of Instances that a rolling update holds back.
func (s Scale) partition(ev *Evidence) int32 {
	most := int32(0)
	consider := func(l *v1beta1.LifecycleSpec) {
		if l != nil && l.UpdateStrategy != nil && l.UpdateStrategy.RollingUpdate != nil && l.UpdateStrategy.RollingUpdate.Partition != nil {
			most = max(most, *l.UpdateStrategy.RollingUpdate.Partition)
		}
	}
	own, base := s.extensions(ev)
	if consider(own.Lifecycle); most == 0 {
		consider(base.Lifecycle)
	}
	o := ev.replica(s.Component).Object
	consider(o.Spec.Lifecycle)
	if p := o.Spec.Pacing; p != nil && p.Partition != nil {
		most = max(most, *p.Partition)
	}
	return most
}

func (s Scale) wayOut(ev *Evidence) string {
	return "to see it: " + ev.Command("autoscale status")
}

func (s Scale) refuseTooManyRows(ev *Evidence) *Error {
	if ev.listProblem != nil {
		return ev.listProblem
	}
	for _, r := range s.proofs(ev) {
		if e := r.undecodable; e != nil && e.Message == MsgBounds {
			return e
		}
	}
	return nil
}

// refuseSource demands that what the count rests on is settled: the runtime, the
// scaling policy, and the class that the manager reports.
func (s Scale) refuseSource(ev *Evidence) *Error {
	no := func(format string, args ...any) *Error {
		return Refuse(msgScaleSource, fmt.Sprintf(format, args...), s.wayOut(ev))
	}
	st := &ev.Service.Status
	if !slices.Contains(ev.Native, s.Component) {
		return no("component %s isn't an OMENative component of the service", s.Component)
	}
	if token, _ := ev.Annotation(v1beta1.RuntimeSyncAnnotation); token != st.LastRuntimeSyncToken {
		return no("a runtime sync is pending: annotation %s is %s and status.lastRuntimeSyncToken %s",
			v1beta1.RuntimeSyncAnnotation, Quote(Clean(token)), Quote(Clean(st.LastRuntimeSyncToken)))
	}
	policy := ev.Service.Spec.ScalingPolicy
	if policy == nil {
		policy = ev.Runtime.ScalingPolicy
	}
	if policy != nil && policy.Mode != "" && policy.Mode != v1beta1.ScalingIndependent {
		return no("scalingPolicy.mode is %s; only %s components scale by themselves", Quote(Clean(string(policy.Mode))), v1beta1.ScalingIndependent)
	}
	want := s.owner(ev)
	if want.source == "policy" {
		return nil // the next refusal names it
	}
	got := st.Components[s.Component].Autoscaler
	switch {
	case got == nil:
		return no("status.components.%s.autoscaler isn't reported yet", s.Component)
	case got.SpecSource == "policy":
		return nil
	case got.Class != want.class || got.ManagedBy != want.managedBy || got.SpecSource != want.source:
		return no("status.components.%s.autoscaler reports %s / %s from %s, and the specs say %s from %s", s.Component,
			Clean(string(got.Class)), Clean(got.ManagedBy), Clean(got.SpecSource), want, want.source)
	}
	return nil
}

func (s Scale) refusePolicy(ev *Evidence) *Error {
	reported := ev.Service.Status.Components[s.Component].Autoscaler
	if s.owner(ev).source != "policy" && (reported == nil || reported.SpecSource != "policy") {
		return nil
	}
	return Refuse(msgScalePolicy, fmt.Sprintf("the scaler of component %s comes from an AutoscalerPolicy, which isn't read here", s.Component),
		fmt.Sprintf("set spec.%s.autoscaler in the service, or change the policy", s.Component))
}

// refuseIncomplete demands the one replica that the status names, with a count that
// the list and the scale subresource agree on.
func (s Scale) refuseIncomplete(ev *Evidence) *Error {
	no := func(format string, args ...any) *Error {
		return Refuse(msgScaleIncomplete, fmt.Sprintf(format, args...), s.wayOut(ev))
	}
	name := v1beta1.ReplicaName(ev.Name, s.Component)
	ref := ev.Service.Status.Components[s.Component].ScaleTargetRef
	switch {
	case ref == nil:
		return no("status.components.%s.scaleTargetRef isn't reported yet", s.Component)
	case ref.APIVersion != v1beta1.GroupVersion.String() || ref.Kind != v1beta1.InferenceReplicaKind || ref.Name != name:
		return no("status.components.%s.scaleTargetRef names %s %s of %s, not InferenceReplica %s", s.Component,
			Clean(ref.Kind), Quote(Clean(ref.Name)), Clean(ref.APIVersion), Quote(name))
	}
	switch n := ev.claims(s.Component); {
	case n == 0:
		return no("Missing: component %s has no InferenceReplica %s", s.Component, Quote(name))
	case n > 1:
		return no("%d InferenceReplicas claim component %s of the service", n, s.Component)
	}
	o := ev.replica(s.Component).Object
	switch count := o.Spec.Replicas; {
	case o.Name != name:
		return no("InferenceReplica %s claims component %s, whose replica is %s", Quote(Clean(o.Name)), s.Component, Quote(name))
	case o.DeletionTimestamp != nil:
		return no("InferenceReplica %s is being deleted", Quote(name))
	case count == nil || *count == 0:
		return no("InferenceReplica %s has no spec.replicas, so its count isn't anybody's yet", Quote(name))
	case ev.Selected == nil || ev.Selected.UID != string(o.UID) || ev.Selected.ResourceVersion != o.ResourceVersion ||
		ev.Selected.Replicas == nil || *ev.Selected.Replicas != *count:
		return no("InferenceReplica %s changed while it was read: its scale subresource says something else", Quote(name))
	}
	return nil
}

// refuseStale demands that the controller's evidence is about the newest spec.
func (s Scale) refuseStale(ev *Evidence) *Error {
	stale := func(format string, args ...any) *Error {
		return Refuse(MsgStale, fmt.Sprintf(format, args...), ev.waitForController())
	}
	if got, want := ev.Service.Status.ObservedGeneration, ev.Service.Generation; got != want {
		return stale("status.observedGeneration is %d and the service is at generation %d", got, want)
	}
	if e := checkStamps(ev); e != nil {
		return e
	}
	for _, r := range s.proofs(ev) {
		if e := r.problem(); e != nil {
			return e
		}
		if e := ev.checkLag(r); e != nil {
			return e
		}
	}
	if issues := s.Rollout(ev.Service, s.Component).Issues; len(issues) > 0 {
		return stale("rollout status reports the issue %s", Clean(issues[0]))
	}
	return checkCanaries(ev)
}

// refuseActive refuses while anything moves that the count could interfere with: in
// the component, and in the group that moves with it.
func (s Scale) refuseActive(ev *Evidence) *Error {
	busy := func(format string, args ...any) *Error {
		return Refuse(msgScaleActive, fmt.Sprintf(format, args...), "wait until it is done: "+ev.Command("rollout status"))
	}
	view := s.Rollout(ev.Service, s.Component)
	switch view.Phase {
	case "", "Unknown", string(v1beta1.RolloutStable):
	default:
		return busy("component %s is in the rollout phase %s", s.Component, Clean(view.Phase))
	}
	switch view.GroupPhase {
	case "", string(v1beta1.RolloutStable), string(v1beta1.CoordinationIdle):
	default:
		return busy("the group of component %s is in the phase %s", s.Component, Clean(view.GroupPhase))
	}
	if s.inRun(ev) {
		return busy("run %s moves component %s or its group", Clean(ev.Service.Status.Rollout.ActiveRun.RunID), s.Component)
	}
	r := ev.replica(s.Component)
	if p := r.Object.Spec.Pacing; p != nil && p.RollbackToRevision != "" {
		return busy("InferenceReplica %s rolls back to %s", Quote(r.Object.Name), Quote(Clean(p.RollbackToRevision)))
	}
	if what := r.work(); what != "" {
		return busy("InferenceReplica %s: %s", Quote(r.Object.Name), what)
	}
	return nil
}

// inRun reports whether the open run moves the component or a member of its group.
func (s Scale) inRun(ev *Evidence) bool {
	ro := ev.Service.Status.Rollout
	if ro == nil || ro.ActiveRun == nil {
		return false
	}
	together := []v1beta1.ComponentType{s.Component}
	for _, g := range ro.ActiveRun.Plan.Groups {
		if slices.Contains(g.Group.Components, s.Component) {
			together = g.Group.Components
		}
	}
	return slices.ContainsFunc(ro.ActiveRun.TargetRevisions, func(t v1beta1.RunTarget) bool {
		return slices.Contains(together, t.Component) && t.Revision != t.StableRevision
	})
}

func (s Scale) refuseBounds(ev *Evidence) *Error {
	b, held := s.bounds(ev), s.partition(ev)
	switch {
	case s.Replicas < b.least || s.Replicas > b.most:
		return Refuse(msgScaleBounds, fmt.Sprintf("--replicas is %d, and the bounds of component %s are %s (minReplicas and maxReplicas of the service, else of its runtime; without maxReplicas only minReplicas)",
			s.Replicas, s.Component, b), fmt.Sprintf("change spec.%s.minReplicas or maxReplicas of the service", s.Component))
	case s.Replicas < held:
		return Refuse(msgScaleBounds, fmt.Sprintf("--replicas is %d, and the rolling update's partition holds back %d Instances of component %s", s.Replicas, held, s.Component),
			"ask for at least as many, or lower the partition")
	}
	return nil
}

// refuseUnsafe demands that every object the request rests on can be shown.
func (s Scale) refuseUnsafe(ev *Evidence) *Error {
	all := []Identity{ev.stored[0].identity()}
	all = append(all, s.sources(ev)...)
	for _, st := range ev.stored {
		if st.ref == ev.replicaRef(v1beta1.ReplicaName(ev.Name, s.Component)) {
			all = append(all, st.identity())
		}
	}
	for _, i := range all {
		if i.UID == "" || i.ResourceVersion == "" || Unsafe(i.Name) || Unsafe(i.UID) || Unsafe(i.ResourceVersion) {
			return Refuse(MsgUnsafeValue, "metadata.uid or metadata.resourceVersion of "+i.Kind+" "+Quote(Clean(i.Name))+" is missing or can't be shown")
		}
	}
	return nil
}
