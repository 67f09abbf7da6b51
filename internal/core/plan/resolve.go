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

// Resolve works out the plan of a service. It fails closed: a plan that it can't
// execute as written parks, and never runs as something simpler.
func Resolve(spec *v1beta1.RolloutSpec) Resolution {
	var r Resolution
	if spec == nil || len(spec.Groups) == 0 {
		return r
	}
	taken := map[v1beta1.ComponentType]int{}
	for i := range spec.Groups {
		r.resolveGroup(i, &spec.Groups[i], taken)
	}
	r.Units = Units(GroupsOf(r.Plan))
	return r
}

func (r *Resolution) resolveGroup(i int, g *v1beta1.RolloutGroup, taken map[v1beta1.ComponentType]int) {
	pinned := v1beta1.RunGroup{Source: v1beta1.SourceInline, Group: *g.DeepCopy()}
	live := v1beta1.GroupResolution{Index: int32(i), Source: v1beta1.SourceInline, PolicyRef: g.PolicyRef.DeepCopy()}
	pinned.Group.PolicyRef = nil

	switch {
	case g.PolicyRef != nil && inline(g):
		live.ShadowedPolicyRef = &v1beta1.ShadowedRolloutPolicy{Name: g.PolicyRef.Name}
	case g.PolicyRef != nil:
		live.Source, pinned.Source = v1beta1.SourcePolicy, v1beta1.SourcePolicy
		pinned.PolicyRef = g.PolicyRef.DeepCopy()
		// The policy's kind keeps the shape of the plan right while it is parked.
		switch Kind(g) {
		case v1beta1.ProgressionCanary:
			pinned.Group.Canary = &v1beta1.GroupCanary{}
		case v1beta1.ProgressionRollingUpdate:
			pinned.Group.RollingUpdate = &v1beta1.GroupRollingUpdate{}
		default:
			pinned.Group.BlueGreen = &v1beta1.GroupBlueGreen{}
		}
	case !inline(g):
		pinned.Group.BlueGreen = &v1beta1.GroupBlueGreen{}
	}

	if problem := invalid(i, g, taken); problem != "" {
		r.park(v1beta1.ReasonPlanInvalid, "groups[%d]: %s", i, problem)
	}
	if live.Source == v1beta1.SourcePolicy {
		r.park(v1beta1.ReasonPolicyNotFound,
			"groups[%d].policyRef: RolloutPolicy %q can't be found, because this release reads no rollout policies; write the progression into the group",
			i, g.PolicyRef.Name)
	} else if digest, err := GroupDigest(g); err != nil {
		r.park(v1beta1.ReasonPlanInvalid, "groups[%d]: %v", i, err)
	} else {
		live.ObservedDigest, pinned.PortableDigest = digest, digest
	}
	switch Kind(g) {
	case v1beta1.ProgressionCanary:
		r.park(v1beta1.ReasonPlanInvalid, "groups[%d].canary: this release does not run canary groups; use blueGreen: {}", i)
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
