package guarded

import (
	"fmt"

	"ome.io/ome/api/v1beta1"
)

// checkConsistent refuses evidence that contradicts itself: an action that
// decides from it would act on a state the controller isn't in.
func checkConsistent(ev *Evidence) *Error {
	if e := ev.replicasProblem(); e != nil {
		return e
	}
	if e := checkStamps(ev); e != nil {
		return e
	}
	for i := range ev.Replicas {
		if e := ev.checkLag(&ev.Replicas[i]); e != nil {
			return e
		}
	}
	return checkCanaries(ev)
}

// checkStamps compares the generations that the service's status carries.
func checkStamps(ev *Evidence) *Error {
	s := ev.Service
	stale := func(format string, args ...any) *Error {
		return Refuse(MsgStale, fmt.Sprintf(format, args...), ev.waitForController())
	}
	if s.Status.ObservedGeneration > s.Generation {
		return stale("status.observedGeneration %d is ahead of metadata.generation %d", s.Status.ObservedGeneration, s.Generation)
	}
	if ro := s.Status.Rollout; ro != nil && ro.ObservedGeneration != 0 && ro.ObservedGeneration != s.Generation {
		return stale("status.rollout.observedGeneration is %d and the service is at generation %d", ro.ObservedGeneration, s.Generation)
	}
	return nil
}

// checkLag refuses a replica that doesn't show what the service asks for now.
func (ev *Evidence) checkLag(r *Replica) *Error {
	if e := ev.lag(r); e != nil {
		return e
	}
	o := r.Object
	if paused := recognizedPause(ev.Service.Annotations[v1beta1.RolloutPausedAnnotation]); o.Spec.Paused != paused {
		return Refuse(MsgStale, fmt.Sprintf("InferenceReplica %s: spec.paused is %t and the annotation %s says %t",
			Quote(o.Name), o.Spec.Paused, v1beta1.RolloutPausedAnnotation, paused), ev.waitForController())
	}
	return nil
}

// checkCanaries compares the canaries' states with the plan that the run pinned.
func checkCanaries(ev *Evidence) *Error {
	stale := func(format string, args ...any) *Error {
		return Refuse(MsgStale, fmt.Sprintf(format, args...), ev.waitForController())
	}
	for _, c := range ev.canaries() {
		if c.status == nil {
			continue
		}
		if n := len(c.steps); c.status.CurrentStep < 0 || int(c.status.CurrentStep) > n {
			return stale("canary of pinned group %d: currentStep is %d and the plan has %d steps", c.group, c.status.CurrentStep, n)
		}
		if got := c.status.CanaryRevisionHash; got != "" && c.target != "" && got != c.target {
			return stale("canary of pinned group %d: canaryRevisionHash is %s and the run's target is %s", c.group, Clean(got), Clean(c.target))
		}
	}
	return nil
}

func recognizedPause(v string) bool {
	return v == v1beta1.PauseTrue || v == v1beta1.PauseFreeze
}

// checkWork refuses when there is nothing that a pause could hold.
func checkWork(ev *Evidence) *Error {
	if ev.hasWork() {
		return nil
	}
	return Refuse(MsgNothingActive,
		"no open run, no component in a rollout phase, no Instance with an operation, no migration",
		"to see it: "+ev.Command("rollout status"))
}

func (ev *Evidence) hasWork() bool {
	st := &ev.Service.Status
	if st.Rollout != nil && st.Rollout.ActiveRun != nil {
		return true
	}
	for _, c := range st.Components {
		switch c.RolloutPhase {
		case v1beta1.RolloutPending, v1beta1.RolloutCanarying, v1beta1.RolloutBlueGreenStandby,
			v1beta1.RolloutPaused, v1beta1.RolloutPromoting, v1beta1.RolloutRollingBack:
			return true
		}
	}
	if st.RolloutCoordination != nil {
		for _, g := range st.RolloutCoordination.Groups {
			switch g.Phase {
			case v1beta1.CoordinationSurging, v1beta1.CoordinationWaiting, v1beta1.CoordinationShifting,
				v1beta1.CoordinationDraining, v1beta1.CoordinationScalingDown, v1beta1.CoordinationRollingBack:
				return true
			}
		}
	}
	for _, r := range ev.Replicas {
		if replicaHasWork(&r) {
			return true
		}
	}
	return false
}

func replicaHasWork(r *Replica) bool {
	desired := int32(1)
	if n := r.Object.Spec.Replicas; n != nil && *n > 0 {
		desired = *n
	}
	return r.Object.Status.Replicas != desired || r.work() != ""
}

// work names what is under way in a replica apart from a count that isn't reached
// yet; empty when nothing is.
func (r *Replica) work() string {
	st := &r.Object.Status
	if st.UpdateRevision != st.CurrentRevision {
		return fmt.Sprintf("status.updateRevision is %s and status.currentRevision %s", Quote(Clean(st.UpdateRevision)), Quote(Clean(st.CurrentRevision)))
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		switch {
		case row.Operation != nil:
			return fmt.Sprintf("Instance %d has the operation %s", row.Index, Clean(string(row.Operation.Type)))
		case active(row):
			return fmt.Sprintf("Instance %d is %s", row.Index, row.Phase)
		}
	}
	for _, m := range st.Migrations {
		if !terminal(m.Phase) {
			return "migration " + Clean(m.RequestUUID) + " is " + Clean(string(m.Phase))
		}
	}
	return ""
}
