package core

import (
	"slices"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/rollout"
)

// readCanaries fills in what a service's status and annotations say of canaries.
func readCanaries(w *World, in *rollout.Input) {
	in.DefaultReadyTimeout = w.Settings.Rollout.DefaultReadyTimeout
	in.ReadyTimeout = w.Service.Annotations[v1beta1.RolloutReadyTimeoutAnnotation]
	in.Repin = serviceMailbox(w, v1beta1.RolloutRepinAnnotation)
	in.Promote = serviceMailbox(w, v1beta1.RolloutPromoteAnnotation)
	in.Rollback = serviceMailbox(w, v1beta1.RolloutRollbackAnnotation)
	in.Resume = serviceMailbox(w, v1beta1.RolloutResumeAnnotation)
	for c, s := range w.Service.Status.Components {
		if s.Canary != nil {
			if in.Canaries == nil {
				in.Canaries = map[v1beta1.ComponentType]rollout.CanaryRecord{}
			}
			in.Canaries[c] = rollout.CanaryRecord{Status: s.Canary, Phase: s.RolloutPhase}
		}
	}
}

func serviceMailbox(w *World, key string) *string {
	if v, ok := w.Service.Annotations[key]; ok {
		return &v
	}
	return nil
}

// targets are what the spec asks of each component.
func targets(components []*component) map[v1beta1.ComponentType]string {
	out := make(map[v1beta1.ComponentType]string, len(components))
	for _, c := range components {
		if c.Declared && !c.foreign {
			out[c.Type] = c.target.Hash
		}
	}
	return out
}

// hold points the component at the revision that a rejected canary keeps it on.
func (c *component) hold(held map[v1beta1.ComponentType]string) {
	c.aim = c.target
	hash, ok := held[c.Type]
	if !ok {
		return
	}
	c.held = true
	if hash != c.target.Hash {
		c.aim = c.revisionOf(hash)
	}
}

// follow takes what the rollout decided in this pass.
func (c *component) follow(permit rollout.Permit) {
	c.partition, c.rollbackTo = permit.Partition, ""
	if permit.Aim == "" {
		return
	}
	if c.aim.Hash != permit.Aim {
		c.aim = c.revisionOf(permit.Aim)
	}
	c.rollbackTo = c.aim.Name
}

// revisionOf finds a revision by its hash. One that is gone has the hash alone: nothing
// can be built from it, and nothing is moved to another revision instead.
func (c *component) revisionOf(hash string) instance.Revision {
	for _, r := range c.known {
		if r.Hash == hash {
			return r
		}
	}
	return instance.Revision{Name: c.Replica.Name + "-" + hash, Hash: hash}
}

// hasRevision is true for a revision that is there to go back to.
func (c *component) hasRevision(hash string) bool {
	for _, r := range c.known {
		if r.Hash == hash && r.Template != nil {
			return true
		}
	}
	return false
}

// base is the number of Instances that a canary's capacity is taken of.
func (c *component) base() int32 {
	if c.Template == nil {
		return max(1, c.desired)
	}
	return max(1, min(c.Template.MinReplicas, c.desired))
}

// pacing is what the replica is told of the rollout; nil for nothing.
func (c *component) pacing() *v1beta1.Pacing {
	if c.partition == nil && c.rollbackTo == "" {
		return nil
	}
	return &v1beta1.Pacing{Partition: c.partition, RollbackToRevision: c.rollbackTo}
}

// lostStable is the hold of a component whose stable revision somebody deleted.
func (c *component) lostStable() *instance.Hold {
	if c.aim.Name == c.target.Name || c.hasRevision(c.aim.Hash) {
		return nil
	}
	return &instance.Hold{Gate: v1beta1.GatePlan, Reason: "the revision " + c.aim.Name + " that the rolled-back canary returns to does not exist any more; apply another spec"}
}

// canaryStatus writes the records of this pass into the components' status: the record
// and its weights under the primary, and no phase of their own for the other members.
func canaryStatus(w *World, components []*component, canaries map[v1beta1.ComponentType]rollout.Canary, next map[v1beta1.ComponentType]v1beta1.ComponentStatus) {
	for primary, canary := range canaries {
		if len(canary.Members) == 0 {
			canary.Members = []v1beta1.ComponentType{primary}
		}
		for _, c := range components {
			member := c.Type
			cs, ok := next[member]
			if !ok || !slices.Contains(canary.Members, member) {
				continue
			}
			if member == primary {
				cs.Canary, cs.RolloutPhase = canary.Status, canary.Phase
			} else {
				cs.RolloutPhase = ""
			}
			if rollout.InFlight(canary.Status) || rollout.Rejected(canary.Status) {
				was := w.Service.Status.Components[member]
				cs.LatestRolledoutRevision, cs.PreviousRolledoutRevision = was.LatestRolledoutRevision, was.PreviousRolledoutRevision
				cs.Traffic = c.weights(w, member == primary, canary.Status)
			}
			next[member] = cs
		}
	}
}

// weights are the recorded ones: those of the last step whose capacity was met. Members
// other than the primary have none of their own and stay with their stable revision.
func (c *component) weights(w *World, primary bool, s *v1beta1.CanaryStatus) []v1beta1.TrafficTarget {
	stable, weight := s.StableRevisionHash, s.ObservedTrafficWeight
	for _, m := range s.Members {
		if m.Component == c.Type {
			stable = m.Stable
		}
	}
	if !primary || stable == s.CanaryRevisionHash {
		weight = 0 // it has one revision, and two entries may not have one name
	}
	var out []v1beta1.TrafficTarget
	if weight > 0 {
		out = append(out, c.weight(w, s.CanaryRevisionHash, weight, "canary"))
	}
	if weight < 100 {
		out = append(out, c.weight(w, stable, 100-weight, "stable"))
	}
	return out
}

func (c *component) weight(w *World, hash string, percent int32, tag string) v1beta1.TrafficTarget {
	return v1beta1.TrafficTarget{RevisionName: RevisionServiceName(w.Key.Name, c.Type, hash), Percent: percent, Tag: tag,
		LatestRevision: new(tag == "canary"), PairingProtocol: c.revisionOf(hash).Token}
}
