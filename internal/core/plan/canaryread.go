package plan

import (
	"fmt"
	"slices"
	"strings"

	"ome.io/ome/api/v1beta1"
)

// Gate is what opens a canary step.
type Gate string

const (
	GateImmediate Gate = "Immediate"
	GateTimed     Gate = "Timed"
	GateManual    Gate = "Manual"
	GateAnalysis  Gate = "Analysis"
)

// StepGate is the gate of a step. An analysis decides whatever else the step sets, and
// a duration of nothing waits for nobody.
func StepGate(step *v1beta1.RolloutGroupStep) Gate {
	switch {
	case step.Analysis != nil:
		return GateAnalysis
	case step.Pause == nil, step.Pause.Duration != nil && step.Pause.Duration.Duration <= 0:
		return GateImmediate
	case step.Pause.Duration != nil:
		return GateTimed
	}
	return GateManual
}

// CanaryPrimary is the member that keeps a canary group's state.
func CanaryPrimary(components []v1beta1.ComponentType) v1beta1.ComponentType {
	for _, c := range []v1beta1.ComponentType{v1beta1.RouterComponent, v1beta1.EngineComponent, v1beta1.DecoderComponent} {
		if slices.Contains(components, c) {
			return c
		}
	}
	return v1beta1.EngineComponent
}

// maxTrafficEntries is the most weights that a component records.
const maxTrafficEntries = 8

// CanaryTrafficProblem says how the weights that a canary's primary has recorded
// contradict each other or the canary's record; empty when they don't.
func CanaryTrafficProblem(service string, primary v1beta1.ComponentType, st *v1beta1.ComponentStatus) string {
	where := fmt.Sprintf("status.components.%s", primary)
	if len(st.Traffic) > maxTrafficEntries {
		return fmt.Sprintf("%s.traffic has %d entries, more than %d", where, len(st.Traffic), maxTrafficEntries)
	}
	sum, seen := int32(0), map[string]int32{}
	for i, t := range st.Traffic {
		switch hash, ok := strings.CutPrefix(t.RevisionName, service+"-"+string(primary)+"-rev-"); {
		case !ok || hash == "" || strings.Trim(hash, "0123456789abcdefghijklmnopqrstuvwxyz") != "":
			return fmt.Sprintf("%s.traffic[%d].revisionName %q is no revision of the component", where, i, t.RevisionName)
		case t.Percent < 0 || t.Percent > 100:
			return fmt.Sprintf("%s.traffic[%d].percent is %d", where, i, t.Percent)
		default:
			if _, again := seen[hash]; again {
				return fmt.Sprintf("%s.traffic names revision %s twice", where, hash)
			}
			seen[hash] = t.Percent
			sum += t.Percent
		}
	}
	if len(st.Traffic) > 0 && sum != 100 {
		return fmt.Sprintf("the weights of %s.traffic add up to %d, not 100", where, sum)
	}
	c := st.Canary
	if c == nil {
		return ""
	}
	if w := c.ObservedTrafficWeight; w < 0 || w > 100 {
		return fmt.Sprintf("%s.canary.observedTrafficWeight is %d", where, w)
	}
	// A primary that the change leaves alone has one revision, which carries everything.
	alone := c.CanaryRevisionHash == "" || c.CanaryRevisionHash == c.StableRevisionHash
	if got := seen[c.CanaryRevisionHash]; len(st.Traffic) > 0 && !alone && got != c.ObservedTrafficWeight {
		return fmt.Sprintf("%s.canary.observedTrafficWeight is %d and its traffic gives revision %s %d", where, c.ObservedTrafficWeight, c.CanaryRevisionHash, got)
	}
	return ""
}

// CanaryWeightProblem says how the recorded weight differs from that of the step which
// the canary is at; empty when it doesn't. The weight of a step is recorded when its
// Instances are ready, so until then that of the step before stands.
func CanaryWeightProblem(primary v1beta1.ComponentType, steps []v1beta1.RolloutGroupStep, st *v1beta1.ComponentStatus) string {
	c := st.Canary
	if c == nil || c.CurrentStep < 0 || int(c.CurrentStep) >= len(steps) || c.RolledBackRevisionHash != "" || c.ObservedTrafficWeight == steps[c.CurrentStep].Traffic {
		return ""
	}
	before := int32(0)
	if c.CurrentStep > 0 {
		before = steps[c.CurrentStep-1].Traffic
	}
	// A repin may have put other steps in place of those that led here.
	entering := c.PreStepHold || st.RolloutPhase == v1beta1.RolloutPending || st.RolloutPhase == v1beta1.RolloutFailed
	if c.StepEnteredTime == nil && (entering || c.ObservedTrafficWeight == before) {
		return ""
	}
	return fmt.Sprintf("status.components.%s.canary.observedTrafficWeight is %d, and step %d of %d has %d",
		primary, c.ObservedTrafficWeight, c.CurrentStep+1, len(steps), steps[c.CurrentStep].Traffic)
}
