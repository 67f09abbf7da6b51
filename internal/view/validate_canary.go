package view

import (
	"fmt"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// checkCanaryTraffic holds what a canary has recorded against its plan and against
// itself. Only services with a canary have it.
const checkCanaryTraffic = "CANARY-TRAFFIC"

// IssueCanaryWeightInvalid: the recorded weight isn't that of the canary's step.
const IssueCanaryWeightInvalid = "CanaryWeightInvalid"

// canaries is one check for each canary group of a stored service.
func (v *validator) canaries() {
	if !v.stored {
		return
	}
	groups := effectiveGroups(v.isvc)
	for i := range groups {
		if g := &groups[i]; plan.Kind(g) == v1beta1.ProgressionCanary {
			v.canaryTraffic(i, g)
		}
	}
}

func (v *validator) canaryTraffic(index int, g *v1beta1.RolloutGroup) {
	primary := plan.CanaryPrimary(g.Components)
	st := v.isvc.Status.Components[primary]
	c := ValidateCheck{Check: checkCanaryTraffic, Component: string(primary), Result: ResultNotApplicable, Evidence: EvidenceReported, Freshness: freshNotApplicable}
	report := func(code, text string) {
		c.Result, c.Codes = ResultUnverifiable, append(c.Codes, code)
		if c.Freshness == freshNotApplicable {
			c.Freshness = freshUnverifiable
		}
		v.out.Advice = append(v.out.Advice, ValidateProblem{Check: checkCanaryTraffic, Component: string(primary), Code: code, Field: "status.components",
			Text: safeTo(fmt.Sprintf("groups[%d]: %s (%s)", index, text, code), maxReason)})
	}
	if st.Canary != nil {
		c.Result, c.Freshness = ResultValid, freshUnverifiable
		switch st.Canary.ObservedGeneration {
		case 0:
		case v.isvc.Generation:
			c.Freshness = freshCurrent
		default:
			c.Result, c.Freshness = ResultUnverifiable, freshStale
		}
	}
	for _, m := range g.Components {
		if m != primary && v.isvc.Status.Components[m].Canary != nil {
			report(IssueCanaryStatusUnexpected, fmt.Sprintf("component %s has a canary record, and that of the group is kept by %s", m, primary))
		}
	}
	if st.Canary == nil {
		if st.RolloutPhase != "" && st.RolloutPhase != v1beta1.RolloutStable {
			report(IssueCanaryStatusMissing, fmt.Sprintf("component %s is %s and has no canary record", primary, st.RolloutPhase))
		}
		v.add(c)
		return
	}
	steps := []v1beta1.RolloutGroupStep{}
	if ro := v.isvc.Status.Rollout; g.Canary != nil && ro != nil && ro.ActiveRun != nil {
		// Without a run the steps that the record is about aren't kept.
		steps = g.Canary.Steps
		if at := st.Canary.CurrentStep; at < 0 || int(at) > len(steps) {
			report(IssueCanaryStepInvalid, fmt.Sprintf("status.components.%s.canary.currentStep is %d and the plan has %d steps", primary, at, len(steps)))
		}
	}
	if text := plan.CanaryTrafficProblem(v.isvc.Name, primary, &st); text != "" {
		report(IssueTrafficInvalid, text)
	}
	if text := plan.CanaryWeightProblem(primary, steps, &st); text != "" {
		report(IssueCanaryWeightInvalid, text)
	}
	v.add(c)
}
