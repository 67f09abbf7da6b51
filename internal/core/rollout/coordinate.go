package rollout

import (
	"fmt"
	"strconv"

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
	now := metav1.NewTime(in.Now)
	for i := range groups {
		g := &groups[i].Group
		if g.Canary != nil {
			continue
		}
		name := strconv.Itoa(i)
		old := groupNamed(previous, name)
		status := v1beta1.CoordinationGroupStatus{
			Name: name, ObservedGeneration: in.Generation, Components: g.Components,
			Policy: v1beta1.CoordinationBlueGreen, Order: g.Order,
			LastTransitionTime: old.LastTransitionTime, LastFinished: old.LastFinished,
		}
		if g.RollingUpdate != nil {
			status.Policy = v1beta1.CoordinationRollingUpdate
		}
		var at v1beta1.ComponentType
		status.Phase, at = phase(in, g.Components, res.Status.ActiveRun != nil, progress)
		switch status.Phase {
		case v1beta1.CoordinationIdle:
			status.CompositePhase = string(status.Phase)
		default:
			status.CompositePhase = string(at) + "." + string(status.Phase)
		}
		switch status.Phase {
		case v1beta1.CoordinationFailed:
			status.Message = fmt.Sprintf("%s has a failed Instance", at)
		case v1beta1.CoordinationPaused:
			status.CompositePhase = string(status.Phase)
			status.Message = fmt.Sprintf("paused by the annotation %s: %q", v1beta1.RolloutPausedAnnotation, in.Pause)
		case v1beta1.CoordinationSurging, v1beta1.CoordinationWaiting:
			status.ObservedSurge = new(plan.DefaultBudget())
		}
		if old.Phase != status.Phase || status.LastTransitionTime == nil {
			status.LastTransitionTime = &now
			if status.Phase == v1beta1.CoordinationFailed {
				events = append(events, instance.Event{Warning: true, Reason: v1beta1.EventCoordinationGroupFailed,
					Message: fmt.Sprintf("group %s: %s; the other components go on", name, status.Message)})
			}
			if status.Phase == v1beta1.CoordinationIdle && old.Phase != "" {
				status.LastFinished = finishedNow(old.LastFinished, g.Components, now)
			}
		}
		out = append(out, status)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return &v1beta1.RolloutCoordinationStatus{Groups: out}, events
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

func finishedNow(old []v1beta1.ComponentFinish, members []v1beta1.ComponentType, now metav1.Time) []v1beta1.ComponentFinish {
	out := make([]v1beta1.ComponentFinish, 0, len(members))
	for _, c := range members {
		out = append(out, v1beta1.ComponentFinish{Component: c, Time: now})
	}
	return out
}

// phase sums the members: the worst word wins, then the earliest stage, so that a
// group is only Idle when every member is.
func phase(in Input, members []v1beta1.ComponentType, open bool, progress map[v1beta1.ComponentType]Progress) (v1beta1.CoordinationPhase, v1beta1.ComponentType) {
	changing := false
	var failed, surging, draining, waiting v1beta1.ComponentType
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
