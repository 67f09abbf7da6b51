package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// primary is the component that keeps a canary group's state.
func (g *group) primary() string {
	var members []v1beta1.ComponentType
	for _, c := range g.Components {
		members = append(members, v1beta1.ComponentType(c))
	}
	return string(plan.CanaryPrimary(members))
}

// canary adds the step that a component's canary is at.
func (b *statusBuilder) canary(c v1beta1.ComponentType, st *v1beta1.ComponentStatus, g *group, out *RolloutComponent) {
	if g == nil || g.canary == nil {
		// The steps of a policy can't be seen here, but they are steps.
		if st.Canary != nil && (g == nil || g.Strategy != strategyCanary) {
			b.issue(IssueCanaryStatusUnexpected, nil, c)
		}
		return
	}
	index := g.Index
	primary := v1beta1.ComponentType(g.primary())
	state, phase := st.Canary, st.RolloutPhase
	if primary != c {
		at := b.isvc.Status.Components[primary]
		state, phase = at.Canary, at.RolloutPhase
	} else if state == nil && phase != "" && phase != v1beta1.RolloutStable {
		b.issue(IssueCanaryStatusMissing, &index, c)
	}
	if state == nil {
		return
	}
	steps := g.canary.Steps
	open := b.isvc.Status.Rollout != nil && b.isvc.Status.Rollout.ActiveRun != nil
	if state.CurrentStep < 0 || int(state.CurrentStep) > len(steps) || len(steps) == 0 {
		// Without a run the record is of a plan that isn't kept any more.
		if primary == c && (open || state.CurrentStep < 0) {
			b.issue(IssueCanaryStepInvalid, &index, c)
		}
		return
	}
	out.Step = stepOf(steps, state, phase)
	if primary == c && out.Step.Gate == string(plan.GateAnalysis) && inconclusive(state) {
		b.issue(IssueAnalysisInconclusive, &index, c)
	}
}

// stepOf is where a canary is, or was when it gave up: then nothing is left to wait for.
func stepOf(steps []v1beta1.RolloutGroupStep, state *v1beta1.CanaryStatus, phase v1beta1.RolloutPhase) *Step {
	at := min(int(state.CurrentStep), len(steps)-1)
	out := &Step{Current: at + 1, Total: len(steps), ObservedTraffic: state.ObservedTrafficWeight}
	if phase == v1beta1.RolloutRollingBack || phase == v1beta1.RolloutRolledBack {
		return out
	}
	out.Capacity, out.TargetTraffic = oneLine(steps[at].Capacity.String()), steps[at].Traffic
	if int(state.CurrentStep) < len(steps) {
		out.Gate = string(plan.StepGate(&steps[at]))
	}
	return out
}

// atRest is true when a canary has ended, in whichever way.
func atRest(st *v1beta1.ComponentStatus) bool {
	return st.RolloutPhase == "" || st.RolloutPhase == v1beta1.RolloutStable || st.RolloutPhase == v1beta1.RolloutRolledBack
}

// inconclusive is true when the last sample of some metric gave no value to judge.
func inconclusive(c *v1beta1.CanaryStatus) bool {
	return slices.ContainsFunc(c.MetricResults, func(m v1beta1.MetricResult) bool { return !m.Passed && m.Value == "" })
}

// canaryProgress says of each canary under way what it waits for.
func canaryProgress(s *v1beta1.InferenceService, r *RolloutStatusReport, now time.Time) string {
	var parts, names []string
	for _, c := range r.Content.Components {
		st := s.Status.Components[v1beta1.ComponentType(c.Type)]
		if c.Step == nil || st.Canary == nil || atRest(&st) || st.RolloutPhase == v1beta1.RolloutRollingBack || st.Canary.Failed != nil {
			continue
		}
		names = append(names, c.Type)
		parts = append(parts, fmt.Sprintf("step %d of %d", c.Step.Current, c.Step.Total)+canaryWait(&c, &st, stepsOf(s, c.Type), now))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	for i := range parts {
		parts[i] = names[i] + " " + parts[i]
	}
	return strings.Join(parts, "; ")
}

func canaryWait(c *RolloutComponent, st *v1beta1.ComponentStatus, steps []v1beta1.RolloutGroupStep, now time.Time) string {
	state := st.Canary
	since := ""
	if t := state.StepEnteredTime; t != nil {
		since = age(now.Sub(t.Time))
	}
	var step *v1beta1.RolloutGroupStep
	if at := int(state.CurrentStep); at >= 0 && at < len(steps) {
		step = &steps[at]
	}
	switch {
	case state.PreStepHold && st.RolloutPhase != v1beta1.RolloutPending:
		return ", held before its weight until you release it"
	case since == "":
		if t := state.CapacityWaitSince; t != nil {
			since = " (" + age(now.Sub(t.Time)) + ")"
		}
		return ", waiting for its Instances to be ready" + since
	case c.Step.Gate == string(plan.GateManual) && st.RolloutPhase != v1beta1.RolloutCanarying:
		return ", waiting for you to promote (" + since + ")"
	case c.Step.Gate == string(plan.GateTimed) && step != nil:
		return ", waiting for its timer (" + since + " of " + age(step.Pause.Duration.Duration) + ")"
	case c.Step.Gate == string(plan.GateAnalysis):
		if step == nil || step.Analysis == nil {
			return ", waiting for its analysis (" + since + ")"
		}
		return fmt.Sprintf(", waiting for its analysis (%s, %d of %d failures used)", since, state.AnalysisFailedChecks, step.Analysis.FailureLimit)
	}
	return " (" + since + ")"
}

// stepsOf are the steps of the canary that a component is the primary of, by the plan
// that counts.
func stepsOf(s *v1beta1.InferenceService, component string) []v1beta1.RolloutGroupStep {
	for _, g := range effectiveGroups(s) {
		if g.Canary != nil && string(plan.CanaryPrimary(g.Components)) == component {
			return g.Canary.Steps
		}
	}
	return nil
}

// effectiveGroups are those of the plan that the open run pinned, else of the spec.
func effectiveGroups(s *v1beta1.InferenceService) []v1beta1.RolloutGroup {
	if ro := s.Status.Rollout; ro != nil && ro.ActiveRun != nil {
		return plan.GroupsOf(ro.ActiveRun.Plan)
	}
	if s.Spec.Rollout == nil {
		return nil
	}
	return s.Spec.Rollout.Groups
}

// failureWords say why a canary parked.
func failureWords(reason v1beta1.CanaryFailureReason) string {
	text := map[v1beta1.CanaryFailureReason]string{
		v1beta1.CanaryCapacityTimeout:       "its Instances were not ready in time",
		v1beta1.CanaryAnalysisStalled:       "its analysis gave no verdict in time",
		v1beta1.CanaryStableRevisionMissing: "the revision to return to is not stored any more",
	}[reason]
	if text == "" {
		return oneLine(string(reason))
	}
	return text + " (" + string(reason) + ")"
}

// requested tells of requests to a canary that the controller hasn't taken yet.
func requested(s *v1beta1.InferenceService) string {
	text := ""
	for _, r := range []struct{ key, what string }{
		{v1beta1.RolloutPromoteAnnotation, "A promote is asked for"},
		{v1beta1.RolloutRollbackAnnotation, "A rollback is asked for"},
		{v1beta1.RolloutResumeAnnotation, "A retry is asked for"},
	} {
		v, ok := s.Annotations[r.key]
		if !ok || r.key == v1beta1.RolloutRollbackAnnotation && (v == "false" || rollingBack(s)) {
			continue
		}
		text += " " + r.what + "; the controller hasn't taken it yet."
	}
	return text
}

// rollingBack is true while a rollback that was asked for is under way, which keeps its request.
func rollingBack(s *v1beta1.InferenceService) bool {
	for _, c := range s.Status.Components {
		if c.RolloutPhase == v1beta1.RolloutRollingBack {
			return true
		}
	}
	return false
}
