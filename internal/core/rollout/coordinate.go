package rollout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
)

// Progress is what a component's Instances just did.
type Progress struct {
	instance.Counts
	// Changing is true while the component has a revision to roll to.
	Changing bool
	// Staged is true while only a partition keeps its Instances back.
	Staged bool
}

// Coordinate words the state of each non-canary group. The plan is the pinned one
// during a run and the live one otherwise.
func Coordinate(in Input, res Result, live plan.Resolution, previous *v1beta1.RolloutCoordinationStatus,
	progress map[v1beta1.ComponentType]Progress) (*v1beta1.RolloutCoordinationStatus, []instance.Event) {
	if !res.Configured {
		return nil, nil
	}
	groups := live.Plan.Groups
	if res.Status.ActiveRun != nil {
		groups = res.Status.ActiveRun.Plan.Groups
	}
	var out []v1beta1.CoordinationGroupStatus
	var events []instance.Event
	run := res.Status.ActiveRun
	list := make([]v1beta1.RolloutGroup, len(groups))
	for i := range groups {
		list[i] = groups[i].Group
	}
	for _, u := range plan.Units(list) {
		if u.Kind == plan.UnitCanary {
			continue
		}
		old := groupNamed(previous, strconv.Itoa(u.Index()))
		status, event := coordinateUnit(in, run, list, u, old, progress)
		if event != nil {
			events = append(events, *event)
		}
		out = append(out, status)
	}
	if len(out) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(out, func(a, b v1beta1.CoordinationGroupStatus) int { return strings.Compare(a.Name, b.Name) })
	return &v1beta1.RolloutCoordinationStatus{Groups: out}, events
}

// Transitions are the groups that came into another phase.
func Transitions(previous, next *v1beta1.RolloutCoordinationStatus) (out []Count) {
	if next == nil || next == previous {
		return nil
	}
	for i := range next.Groups {
		g := &next.Groups[i]
		if groupNamed(previous, g.Name).Phase != g.Phase {
			out = append(out, Count{Kind: CountGroupTransition, Group: g.Name, Label: string(g.Phase)})
		}
	}
	return out
}

// coordinateUnit words one unit: a group, or the groups of a sequence as one.
func coordinateUnit(in Input, run *v1beta1.RolloutRun, list []v1beta1.RolloutGroup, u plan.Unit, old v1beta1.CoordinationGroupStatus,
	progress map[v1beta1.ComponentType]Progress) (v1beta1.CoordinationGroupStatus, *instance.Event) {
	now := metav1.NewTime(in.Now)
	g := &list[u.Index()]
	members := u.Components(list)
	status := v1beta1.CoordinationGroupStatus{
		Name: strconv.Itoa(u.Index()), ObservedGeneration: in.Generation, Components: members,
		Policy: v1beta1.CoordinationBlueGreen, Order: g.Order,
		LastTransitionTime: old.LastTransitionTime, LastFinished: finishes(old.LastFinished, run, members, progress, now),
	}
	budget := plan.DefaultBudget()
	switch {
	case u.Kind == plan.UnitSequence:
		status.Policy, status.Order = v1beta1.CoordinationSequential, members
		status.CurrentComponent, status.PreviousComponent = cursor(members, progress)
	case g.RollingUpdate != nil:
		status.Policy = v1beta1.CoordinationRollingUpdate
		if g.RollingUpdate.MaxSurge != nil {
			budget = *g.RollingUpdate.MaxSurge
		}
	}
	if g.MaintainRatio != nil && u.Kind != plan.UnitSequence {
		status.ObservedRatio = observed(in, members, progress)
	}
	var at v1beta1.ComponentType
	status.Phase, at = phase(in, members, run != nil, progress)
	status.CompositePhase = string(status.Phase)
	switch status.Phase {
	case v1beta1.CoordinationIdle:
	case v1beta1.CoordinationPaused:
		status.Message = fmt.Sprintf("paused by the annotation %s: %q", v1beta1.RolloutPausedAnnotation, in.Pause)
	case v1beta1.CoordinationFailed:
		status.CompositePhase = string(at) + "." + string(status.Phase)
		status.Message = fmt.Sprintf("%s has a failed Instance", at)
	default:
		status.CompositePhase = string(at) + "." + string(status.Phase)
		if u.Kind == plan.UnitSequence && status.Phase == v1beta1.CoordinationWaiting && at != members[0] {
			status.CompositePhase = "Sequential.AwaitingNextComponent"
		}
		if status.Phase == v1beta1.CoordinationSurging || status.Phase == v1beta1.CoordinationWaiting {
			status.ObservedSurge = &budget
		}
	}
	if old.Phase == status.Phase && status.LastTransitionTime != nil {
		return status, nil
	}
	status.LastTransitionTime = &now
	if status.Phase != v1beta1.CoordinationFailed {
		return status, nil
	}
	consequence := "the other components go on"
	if u.Kind == plan.UnitSequence {
		consequence = "the components after it wait"
	}
	return status, &instance.Event{Warning: true, Reason: v1beta1.EventCoordinationGroupFailed,
		Message: fmt.Sprintf("group %s: %s; %s", status.Name, status.Message, consequence)}
}

// cursor is the first member of a sequence with something to roll, and the one before.
func cursor(members []v1beta1.ComponentType, progress map[v1beta1.ComponentType]Progress) (now, before v1beta1.ComponentType) {
	for k, c := range members {
		if p, ok := progress[c]; ok && (p.Changing || p.Failed > 0) {
			if k > 0 {
				before = members[k-1]
			}
			return c, before
		}
	}
	return "", ""
}

// observed is the arithmetic of a ratio as people see it.
func observed(in Input, members []v1beta1.ComponentType, progress map[v1beta1.ComponentType]Progress) *v1beta1.ObservedRatio {
	r := &v1beta1.ObservedRatio{Original: map[v1beta1.ComponentType]int32{}, Current: map[v1beta1.ComponentType]int32{}, NewPods: map[v1beta1.ComponentType]int32{}}
	for _, c := range members {
		if m := in.member(c); m != nil {
			r.Original[c] = m.Desired
			r.Current[c] = progress[c].Serving
			r.NewPods[c] = progress[c].UpdatedReady
		}
	}
	return r
}

// finishes stamps each member that the run changed when it has come to rest on its
// target, once a run. Soaks count from there.
func finishes(old []v1beta1.ComponentFinish, run *v1beta1.RolloutRun, members []v1beta1.ComponentType,
	progress map[v1beta1.ComponentType]Progress, now metav1.Time) []v1beta1.ComponentFinish {
	if run == nil {
		return old
	}
	if now.Before(&run.OpenedAt) {
		now = run.OpenedAt // the clock was set back meanwhile: it would be stamped in every pass
	}
	if whole := now.Truncate(time.Second); !whole.Equal(now.Time) {
		now = metav1.NewTime(whole.Add(time.Second)) // stored in whole seconds, a soak must not get shorter
	}
	out := old
	for _, c := range members {
		p, ok := progress[c]
		if !ok || !changedIn(run, c) || p.Changing || !p.Settled || p.Failed > 0 {
			continue
		}
		i := slices.IndexFunc(out, func(f v1beta1.ComponentFinish) bool { return f.Component == c })
		if i >= 0 && !out[i].Time.Before(&run.OpenedAt) {
			continue
		}
		out = slices.Clone(out)
		if i >= 0 {
			out[i].Time = now
		} else {
			out = append(out, v1beta1.ComponentFinish{Component: c, Time: now})
		}
	}
	return out
}

func groupNamed(s *v1beta1.RolloutCoordinationStatus, name string) v1beta1.CoordinationGroupStatus {
	if s != nil {
		for i := range s.Groups {
			if s.Groups[i].Name == name {
				return s.Groups[i]
			}
		}
	}
	return v1beta1.CoordinationGroupStatus{}
}

// phase sums the members: the worst word wins, then the earliest stage, so that a
// group is only Idle when every member is.
func phase(in Input, members []v1beta1.ComponentType, open bool, progress map[v1beta1.ComponentType]Progress) (v1beta1.CoordinationPhase, v1beta1.ComponentType) {
	changing := false
	var failed, surging, draining, waiting, staged v1beta1.ComponentType
	for _, c := range members {
		p, ok := progress[c]
		if !ok {
			continue
		}
		changing = changing || p.Changing
		switch {
		case p.Failed > 0:
			failed = first(failed, c)
		case !p.Changing:
		case p.Staged:
			staged = first(staged, c)
		case p.Surging > 0:
			surging = first(surging, c)
		case p.Draining > 0:
			draining = first(draining, c)
		default:
			waiting = first(waiting, c)
		}
	}
	switch {
	case failed != "":
		return v1beta1.CoordinationFailed, failed
	case !changing && !open:
		return v1beta1.CoordinationIdle, ""
	case in.Pause != NotPaused:
		return v1beta1.CoordinationPaused, ""
	case surging != "":
		return v1beta1.CoordinationSurging, surging
	case draining != "":
		return v1beta1.CoordinationDraining, draining
	case waiting != "":
		return v1beta1.CoordinationWaiting, waiting
	case staged != "":
		return v1beta1.CoordinationStaged, staged
	}
	// Every member is on its target; the next pass closes the run.
	return v1beta1.CoordinationScalingDown, members[0]
}

func first(a, b v1beta1.ComponentType) v1beta1.ComponentType {
	if a != "" {
		return a
	}
	return b
}

// CoordinationReady words RolloutCoordinationReady from the phases of the same write.
func CoordinationReady(s *v1beta1.RolloutCoordinationStatus) (status metav1.ConditionStatus, reason, message string) {
	settled, paused := true, false
	for i := range s.Groups {
		switch g := &s.Groups[i]; g.Phase {
		case v1beta1.CoordinationFailed:
			return metav1.ConditionFalse, v1beta1.ReasonGroupFailed, "group " + g.Name + ": " + g.Message
		case v1beta1.CoordinationIdle, v1beta1.CoordinationStaged:
		case v1beta1.CoordinationPaused:
			settled, paused = false, true
		default:
			settled = false
		}
	}
	switch {
	case settled:
		return metav1.ConditionTrue, v1beta1.ReasonGroupsSettled, ""
	case paused:
		return metav1.ConditionUnknown, v1beta1.ReasonGroupsPaused, "a pause holds the groups"
	}
	return metav1.ConditionUnknown, v1beta1.ReasonGroupsProgressing, ""
}
