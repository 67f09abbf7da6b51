package sim

import (
	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rollout"
)

// canaryRecords are all records as stored.
func (c *Cluster) canaryRecords() map[v1beta1.ComponentType]rollout.CanaryRecord {
	if c.actual.service == nil {
		return nil
	}
	out := map[v1beta1.ComponentType]rollout.CanaryRecord{}
	for kind, s := range c.actual.service.Status.Components {
		if s.Canary != nil {
			out[kind] = rollout.CanaryRecord{Status: s.Canary, Phase: s.RolloutPhase}
		}
	}
	return out
}

// ForgetSamples loses what was measured, as a restart of the controller does.
func (c *Cluster) ForgetSamples() { c.samples, c.dirty = nil, true }
