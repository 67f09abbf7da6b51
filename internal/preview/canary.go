package preview

import (
	"fmt"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rollout"
	"ome.io/ome/internal/sim"
)

// canaryOf is a component's canary and the steps that it follows; nil without one.
func canaryOf(c *sim.Cluster, kind v1beta1.ComponentType) (*v1beta1.CanaryStatus, []v1beta1.RolloutGroupStep) {
	s := c.Service()
	st := s.Status.Components[kind].Canary
	run := openRun(s.Status.Rollout)
	if st == nil || run == nil {
		return nil, nil
	}
	for i := range run.Plan.Groups {
		g := &run.Plan.Groups[i].Group
		for _, member := range g.Components {
			if member == kind && g.Canary != nil {
				return st, g.Canary.Steps
			}
		}
	}
	return nil, nil
}

// gateText words the gate of a step as it is passed here.
func gateText(step *v1beta1.RolloutGroupStep) string {
	switch rollout.GateOf(step) {
	case rollout.GateManual:
		return "manual gate, assumed promoted"
	case rollout.GateAnalysis:
		return "analysis gate, assumed passed"
	case rollout.GateTimed:
		return "timed gate of " + step.Pause.Duration.Duration.String()
	}
	return "no gate"
}

// promote passes the first canary gate that a person or an analysis would have to open;
// true when there was one.
func (p *player) promote() bool {
	s := p.c.Service()
	if _, asked := s.Annotations[v1beta1.RolloutPromoteAnnotation]; asked || rollout.PauseOf(s.Annotations) != rollout.NotPaused {
		return false
	}
	for _, kind := range v1beta1.Components() {
		st, steps := canaryOf(p.c, kind)
		if st == nil || int(st.CurrentStep) >= len(steps) || st.StepEnteredTime == nil || st.Failed != nil || st.PromotedThrough != "" {
			continue
		}
		if st.CanaryRevisionHash == "" || st.RolledBackRevisionHash == st.CanaryRevisionHash {
			continue
		}
		step := &steps[st.CurrentStep]
		if g := rollout.GateOf(step); !st.PreStepHold && g != rollout.GateManual && g != rollout.GateAnalysis {
			continue
		}
		if p.promoted != nil {
			p.promoted(fmt.Sprintf("%s step %d/%d: %s", kind, st.CurrentStep+1, len(steps), gateText(step)))
		}
		p.c.Promote(st.CanaryRevisionHash)
		return true
	}
	return false
}

// steps are the steps that canaries are at.
func (r *recorder) steps() map[v1beta1.ComponentType]string {
	out := map[v1beta1.ComponentType]string{}
	for _, kind := range v1beta1.Components() {
		if st, steps := canaryOf(r.c, kind); st != nil && int(st.CurrentStep) < len(steps) {
			step := &steps[st.CurrentStep]
			out[kind] = fmt.Sprintf("%s step %d/%d: capacity %s, traffic %d", kind, st.CurrentStep+1, len(steps), step.Capacity.String(), step.Traffic)
		}
	}
	return out
}
