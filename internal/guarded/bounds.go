package guarded

import (
	"fmt"

	"ome.io/ome/api/v1beta1"
)

// What an action is willing to look through. Past these a check would no longer
// be one.
const (
	maxDepth          = 64
	maxAnnotations    = 256
	maxLabels         = 256
	maxFinalizers     = 64
	maxConditions     = 64
	maxComponents     = 3
	maxMetadataBytes  = 64 << 10
	maxRunGroups      = 3
	maxCanarySteps    = 20
	maxStepMetrics    = 10
	maxTrafficWeights = 8
	maxReplicas       = 32
	maxRows           = 2048
	maxMigrations     = 256
)

// tooDeep reports whether JSON nests deeper than maxDepth. It runs before the
// decoder, which would recurse.
func tooDeep(raw []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// overBounds names the first bound that the service exceeds; empty when none.
func overBounds(s *v1beta1.InferenceService) string {
	bytes := 0
	for _, m := range []map[string]string{s.Annotations, s.Labels} {
		for k, v := range m {
			bytes += len(k) + len(v)
		}
	}
	for _, f := range s.Finalizers {
		bytes += len(f)
	}
	checks := []struct {
		what      string
		have, max int
	}{
		{"metadata.annotations", len(s.Annotations), maxAnnotations},
		{"metadata.labels", len(s.Labels), maxLabels},
		{"metadata.finalizers", len(s.Finalizers), maxFinalizers},
		{"bytes of annotations, labels and finalizers", bytes, maxMetadataBytes},
		{"status.conditions", len(s.Status.Conditions), maxConditions},
		{"status.components", len(s.Status.Components), maxComponents},
	}
	for _, c := range checks {
		if c.have > c.max {
			return fmt.Sprintf("%s: %d, at most %d are inspected", c.what, c.have, c.max)
		}
	}
	for name, c := range s.Status.Components {
		if n := len(c.Traffic); n > maxTrafficWeights {
			return fmt.Sprintf("status.components.%s.traffic: %d, at most %d are inspected", Clean(string(name)), n, maxTrafficWeights)
		}
	}
	if s.Status.Rollout == nil || s.Status.Rollout.ActiveRun == nil {
		return ""
	}
	groups := s.Status.Rollout.ActiveRun.Plan.Groups
	if len(groups) > maxRunGroups {
		return fmt.Sprintf("status.rollout.activeRun.plan.groups: %d, at most %d are inspected", len(groups), maxRunGroups)
	}
	for i, g := range groups {
		if g.Group.Canary == nil {
			continue
		}
		if n := len(g.Group.Canary.Steps); n > maxCanarySteps {
			return fmt.Sprintf("steps of pinned group %d: %d, at most %d are inspected", i, n, maxCanarySteps)
		}
		for j, step := range g.Group.Canary.Steps {
			if step.Analysis != nil && len(step.Analysis.Metrics) > maxStepMetrics {
				return fmt.Sprintf("metrics of step %d of pinned group %d: %d, at most %d are inspected",
					j, i, len(step.Analysis.Metrics), maxStepMetrics)
			}
		}
	}
	return ""
}
