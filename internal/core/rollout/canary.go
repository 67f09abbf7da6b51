package rollout

import (
	"slices"
	"strings"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// CanaryRecord is what a service's status keeps of one canary, under its primary.
type CanaryRecord struct {
	Status *v1beta1.CanaryStatus
	Phase  v1beta1.RolloutPhase
}

// Canary is the next record of a canary that is under way, or was rejected.
type Canary struct {
	CanaryRecord
	// Members are the components that move together; the first is the primary.
	Members []v1beta1.ComponentType
}

// Primary is the component that a canary group's record stands under: what requests
// reach first.
func Primary(g *v1beta1.RolloutGroup) v1beta1.ComponentType {
	for _, c := range []v1beta1.ComponentType{v1beta1.RouterComponent, v1beta1.EngineComponent} {
		if slices.Contains(g.Components, c) {
			return c
		}
	}
	return g.Components[0]
}

// InFlight is true from the arming of a canary until it completes or is rejected.
func InFlight(s *v1beta1.CanaryStatus) bool {
	return s != nil && s.StableRevisionHash != "" && s.RolledBackRevisionHash == ""
}

// Rejected is true for a canary that was rolled back, or is on its way back.
func Rejected(s *v1beta1.CanaryStatus) bool { return s != nil && s.RolledBackRevisionHash != "" }

// Held are the components that a rejected canary keeps on their stable revision, with
// its hash: until the spec asks for a set of revisions that is neither the rejected nor
// the stable one, or until a retry. Targets are what the spec asks for.
func Held(in Input, targets map[v1beta1.ComponentType]string) map[v1beta1.ComponentType]string {
	var out map[v1beta1.ComponentType]string
	for _, r := range in.Canaries {
		if !Rejected(r.Status) || !in.holds(r, targets) {
			continue
		}
		if out == nil {
			out = map[v1beta1.ComponentType]string{}
		}
		for _, m := range r.Status.Members {
			out[m.Component] = m.Stable
		}
	}
	return out
}

// holds is true while a rejected canary stays rejected. Under a pause nothing changes,
// and a request to roll back must be gone before a canary may start that it isn't meant for.
func (in *Input) holds(r CanaryRecord, targets map[v1beta1.ComponentType]string) bool {
	if in.Pause != NotPaused {
		return true
	}
	if r.Phase == v1beta1.RolloutRolledBack && in.retries(r.Status) {
		return false
	}
	return !otherTargets(r.Status, targets) || in.Rollback != nil
}

// otherTargets is true for targets that are neither the rejected nor the stable set. A
// member whose target is unknown proves nothing.
func otherTargets(s *v1beta1.CanaryStatus, targets map[v1beta1.ComponentType]string) bool {
	rejected, stable := true, true
	for _, m := range s.Members {
		t, ok := targets[m.Component]
		if !ok {
			continue // left the spec
		}
		if t == "" {
			return false
		}
		rejected = rejected && t == m.Rejected
		stable = stable && t == m.Stable
	}
	return !rejected && !stable
}

// retries is true while the mailbox asks to try this canary once more and was not
// answered yet.
func (in *Input) retries(s *v1beta1.CanaryStatus) bool {
	if in.Resume == nil || s == nil {
		return false
	}
	hash := s.RolledBackRevisionHash
	if hash == "" && s.Failed != nil {
		hash = s.CanaryRevisionHash
	}
	return hash != "" && names(*in.Resume, s, hash) && !spent(s, v1beta1.RolloutResumeAnnotation, *in.Resume)
}

// names is true for HASH, and for COMPONENT=HASH of any member.
func names(value string, s *v1beta1.CanaryStatus, hash string) bool {
	component, h, qualified := strings.Cut(value, "=")
	if !qualified {
		return value == hash
	}
	return h == hash && slices.ContainsFunc(s.Members, func(m v1beta1.CanaryMember) bool { return string(m.Component) == component })
}

// targetID is the identity of the revisions that a group is to reach. Another group's
// targets are no part of it.
func targetID(run *v1beta1.RolloutRun, members []v1beta1.ComponentType) string {
	var parts []string
	for _, t := range run.TargetRevisions {
		if slices.Contains(members, t.Component) {
			parts = append(parts, string(t.Component)+"="+t.Revision)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// Capacity is how many Instances of a component with that base run the new revision at
// a step. At the last step all do: nothing may be left to roll after the last gate. A
// capacity that can't be read allows nothing.
func Capacity(steps []v1beta1.RolloutGroupStep, step int, base int32) int32 {
	if step >= len(steps)-1 {
		return base
	}
	n, err := plan.Budget(steps[step].Capacity, base)
	if err != nil {
		return 0
	}
	return min(n, base)
}
