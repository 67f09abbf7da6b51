package controller

import (
	"strconv"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rollout"
	"ome.io/ome/internal/metrics"
)

// counts raises the counters of what this pass stored in the service's status. A pass
// whose write failed is decided again, and counts then.
func (p *pass) counts() {
	if !p.committed[""] {
		return
	}
	namespace, service := p.world.Key.Namespace, p.world.Key.Name
	for _, c := range p.decision.Counts {
		component := string(c.Component)
		switch c.Kind {
		case rollout.CountRepin:
			metrics.Repin(namespace, c.Label)
		case rollout.CountGroupTransition:
			metrics.GroupTransition(namespace, service, c.Group, c.Label)
		case rollout.CountCanaryStep:
			metrics.CanaryStepped(namespace, service, component)
		case rollout.CountCanaryComplete:
			metrics.CanaryCompleted(namespace, service)
		case rollout.CountCanaryRollback:
			metrics.CanaryRolledBack(namespace, service, component, c.Label)
		case rollout.CountCanaryFailed:
			metrics.CanaryFailed(namespace, service, component, c.Label)
		case rollout.CountCanaryEvaluation:
			metrics.CanaryEvaluated(namespace, service, component, c.Label)
		}
	}
	for _, v := range p.decision.Values {
		if value, err := strconv.ParseFloat(v.Value, 64); err == nil {
			metrics.CanaryMetric(namespace, service, string(v.Component), v.Metric, value)
		}
	}
	if p.decision.Status == nil {
		return
	}
	for c, s := range p.decision.Status.Components {
		canaryAt(namespace, service, c, s.Canary)
	}
}

// canaryAt sets the gauges of one canary: where it is, or zero once it is over.
func canaryAt(namespace, service string, c v1beta1.ComponentType, s *v1beta1.CanaryStatus) {
	switch {
	case s == nil:
	case rollout.InFlight(s):
		metrics.CanaryAt(namespace, service, string(c), s.CurrentStep, s.ObservedTrafficWeight, s.AnalysisFailedChecks)
	default:
		metrics.CanaryAt(namespace, service, string(c), 0, 0, 0)
	}
}
