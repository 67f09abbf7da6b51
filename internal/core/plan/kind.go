package plan

import "ome.io/ome/api/v1beta1"

// Kind is how a group moves: its own progression, else what its policy is said
// to hold, else blue-green.
func Kind(g *v1beta1.RolloutGroup) v1beta1.Progression {
	switch {
	case g.Canary != nil:
		return v1beta1.ProgressionCanary
	case g.BlueGreen != nil:
		return v1beta1.ProgressionBlueGreen
	case g.RollingUpdate != nil:
		return v1beta1.ProgressionRollingUpdate
	case g.PolicyRef != nil && g.PolicyRef.Progression != "":
		return g.PolicyRef.Progression
	}
	return v1beta1.ProgressionBlueGreen
}

// inline is true when the group carries a progression itself, which then wins
// over a policy.
func inline(g *v1beta1.RolloutGroup) bool {
	return g.Canary != nil || g.BlueGreen != nil || g.RollingUpdate != nil
}

// UnitKind is what executes a unit.
type UnitKind string

const (
	// UnitIndependent is one blue-green or rolling-update group.
	UnitIndependent UnitKind = "Independent"
	// UnitSequence is a list of single-component blue-green groups that take turns.
	UnitSequence UnitKind = "Sequence"
	// UnitCanary is one canary group.
	UnitCanary UnitKind = "Canary"
)

// Unit is what one executor drives. Units of a plan run beside each other.
type Unit struct {
	Kind UnitKind
	// Groups are places in the group list, in turn order.
	Groups []int
}

// Index is the place of the unit's first group, which names it in status.
func (u Unit) Index() int { return u.Groups[0] }

// Components are the members of a unit, in group order.
func (u Unit) Components(groups []v1beta1.RolloutGroup) []v1beta1.ComponentType {
	var out []v1beta1.ComponentType
	for _, i := range u.Groups {
		out = append(out, groups[i].Components...)
	}
	return out
}

// Sequence is true when the groups that are no canaries take turns: two or more
// blue-green groups of one component each.
func Sequence(groups []v1beta1.RolloutGroup) bool {
	n := 0
	for i := range groups {
		g := &groups[i]
		switch {
		case Kind(g) == v1beta1.ProgressionCanary:
		case Kind(g) != v1beta1.ProgressionBlueGreen || len(g.Components) != 1:
			return false
		default:
			n++
		}
	}
	return n >= 2
}

// Units derives what executes the groups. Canary units come first. The declared
// ordering is no input: it decides what is admitted, not what runs.
func Units(groups []v1beta1.RolloutGroup) []Unit {
	var units []Unit
	var rest []int
	for i := range groups {
		g := &groups[i]
		if Kind(g) == v1beta1.ProgressionCanary {
			units = append(units, Unit{Kind: UnitCanary, Groups: []int{i}})
			continue
		}
		rest = append(rest, i)
	}
	if Sequence(groups) {
		return append(units, Unit{Kind: UnitSequence, Groups: rest})
	}
	for _, i := range rest {
		units = append(units, Unit{Kind: UnitIndependent, Groups: []int{i}})
	}
	return units
}

// GroupsOf takes the groups out of a pinned plan.
func GroupsOf(p v1beta1.RolloutPlan) []v1beta1.RolloutGroup {
	out := make([]v1beta1.RolloutGroup, len(p.Groups))
	for i := range p.Groups {
		out[i] = p.Groups[i].Group
	}
	return out
}
