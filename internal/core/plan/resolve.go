package plan

import (
	"fmt"
	"strings"

	"ome.io/ome/api/v1beta1"
)

// Resolution is what a run that starts now would pin.
type Resolution struct {
	// Plan holds every group, also while the plan is parked, so that a reader
	// knows whose components wait.
	Plan v1beta1.RolloutPlan
	// Groups is the always-current view for status.
	Groups []v1beta1.GroupResolution
	// Units execute the plan.
	Units []Unit
	// Reason and Message say why no run may open; empty when one may.
	Reason, Message string
}

// Parked is true while no run may open.
func (r *Resolution) Parked() bool { return r.Reason != "" }

func (r *Resolution) park(reason, format string, args ...any) {
	if r.Reason == "" { // the first cause in group order is the one to mend first
		r.Reason, r.Message = reason, fmt.Sprintf(format, args...)
	}
}

// Resolve works out the plan of a service from its spec alone.
func Resolve(spec *v1beta1.RolloutSpec) Resolution { return Sources{}.Resolve(spec) }

// Resolve works out the plan of a service from its spec and what that refers to. It
// fails closed: a plan that it can't execute as written parks, and never runs as
// something simpler.
func (from Sources) Resolve(spec *v1beta1.RolloutSpec) Resolution {
	var r Resolution
	if spec == nil || len(spec.Groups) == 0 {
		return r
	}
	taken := map[v1beta1.ComponentType]int{}
	for i := range spec.Groups {
		r.resolveGroup(i, &spec.Groups[i], &from, taken)
	}
	r.Units = Units(GroupsOf(r.Plan))
	return r
}

func (r *Resolution) resolveGroup(i int, g *v1beta1.RolloutGroup, from *Sources, taken map[v1beta1.ComponentType]int) {
	pinned := v1beta1.RunGroup{Source: v1beta1.SourceInline, Group: *g.DeepCopy()}
	live := v1beta1.GroupResolution{Index: int32(i), Source: v1beta1.SourceInline, PolicyRef: g.PolicyRef.DeepCopy()}
	pinned.Group.PolicyRef = nil

	if problem := invalid(i, g, taken); problem != "" {
		r.park(v1beta1.ReasonPlanInvalid, "groups[%d]: %s", i, problem)
	}
	switch {
	case g.PolicyRef != nil && inline(g):
		live.ShadowedPolicyRef = from.shadowed(g.PolicyRef)
	case g.PolicyRef != nil:
		live.Source = v1beta1.SourcePolicy
		r.takePolicy(i, g.PolicyRef, from, &pinned)
	case !inline(g):
		pinned.Group.BlueGreen = &v1beta1.GroupBlueGreen{}
	}
	if live.Source == v1beta1.SourceInline {
		digest, err := GroupDigest(g)
		if err != nil {
			r.park(v1beta1.ReasonPlanInvalid, "groups[%d]: %v", i, err)
		}
		pinned.PortableDigest = digest
	}
	live.ObservedDigest = pinned.PortableDigest
	if name := from.unbound(pinned.Group.Canary); name != "" {
		r.park(v1beta1.ReasonProviderUnbound, "groups[%d]: metric provider %q is not bound in this cluster's metricProviders configuration", i, name)
	}
	r.Plan.Groups = append(r.Plan.Groups, pinned)
	r.Groups = append(r.Groups, live)
}

// invalid says what is wrong with a group that admission should have refused: a
// stored object may be older than the rule.
func invalid(i int, g *v1beta1.RolloutGroup, taken map[v1beta1.ComponentType]int) string {
	var kinds []string
	if g.Canary != nil {
		kinds = append(kinds, "canary")
	}
	if g.BlueGreen != nil {
		kinds = append(kinds, "blueGreen")
	}
	if g.RollingUpdate != nil {
		kinds = append(kinds, "rollingUpdate")
	}
	if len(kinds) > 1 {
		return fmt.Sprintf("%s are set together; keep one", strings.Join(kinds, " and "))
	}
	if g.Canary != nil && len(g.Canary.Steps) == 0 {
		return "canary has no steps; the last one must have traffic 100"
	}
	if len(g.Components) == 0 {
		return "components is empty; name router, engine or decoder"
	}
	for _, c := range g.Components {
		if !v1beta1.IsComponent(c) {
			return fmt.Sprintf("component %q does not exist; use router, engine or decoder", c)
		}
		if other, ok := taken[c]; ok {
			return fmt.Sprintf("component %q is in groups[%d] already; name it once", c, other)
		}
		taken[c] = i
	}
	return ""
}
