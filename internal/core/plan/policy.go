package plan

import "ome.io/ome/api/v1beta1"

// GroupOfPolicy is a group without members that moves by a policy's progression.
func GroupOfPolicy(s *v1beta1.RolloutPolicySpec) *v1beta1.RolloutGroup {
	return &v1beta1.RolloutGroup{Canary: s.Canary, BlueGreen: s.BlueGreen, RollingUpdate: s.RollingUpdate}
}

// PolicyOfGroup is the progression that a group writes inline, in the form of a policy. It is
// empty for a group that writes none.
func PolicyOfGroup(g *v1beta1.RolloutGroup) *v1beta1.RolloutPolicySpec {
	return &v1beta1.RolloutPolicySpec{Canary: g.Canary, BlueGreen: g.BlueGreen, RollingUpdate: g.RollingUpdate}
}

// OneProgression is true when a policy holds exactly one progression.
func OneProgression(s *v1beta1.RolloutPolicySpec) bool {
	n := 0
	for _, set := range []bool{s.Canary != nil, s.BlueGreen != nil, s.RollingUpdate != nil} {
		if set {
			n++
		}
	}
	return n == 1
}

// PolicyDigest is the portable digest of a policy: that of a group which writes the same
// progression inline. It is empty unless the policy holds exactly one.
func PolicyDigest(s *v1beta1.RolloutPolicySpec) (string, error) {
	if !OneProgression(s) {
		return "", nil
	}
	return GroupDigest(GroupOfPolicy(s))
}

// PolicyNames are the policies that groups refer to, one for each group that does, in group order.
// A group whose own progression wins refers to its policy all the same.
func PolicyNames(spec *v1beta1.RolloutSpec) []string {
	if spec == nil {
		return nil
	}
	var names []string
	for i := range spec.Groups {
		if ref := spec.Groups[i].PolicyRef; ref != nil && KnownPolicyKind(ref.Kind) {
			names = append(names, ref.Name)
		}
	}
	return names
}

// KnownPolicyKind is false for kinds that are only reserved.
func KnownPolicyKind(kind string) bool { return kind == "" || kind == v1beta1.RolloutPolicyKind }
