package validate

import (
	"fmt"
	"slices"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

func readsRollout(s *v1beta1.InferenceService) any {
	return []any{s.Spec.Rollout, readsModes(s)}
}

func groupField(i int, rest string) string { return fmt.Sprintf("spec.rollout.groups[%d]%s", i, rest) }

func checkGroups(r *Result, s *v1beta1.InferenceService) {
	if s.Spec.Rollout == nil {
		return
	}
	groups := s.Spec.Rollout.Groups
	checkMembers(r, s, groups)
	checkShape(r, s.Spec.Rollout)
	for i := range groups {
		g := &groups[i]
		if g.RollingUpdate != nil {
			checkPair(r, groupField(i, ".rollingUpdate"), g.RollingUpdate.MaxSurge, g.RollingUpdate.MaxUnavailable)
		}
		if t := g.MaintainRatio; t != nil && t.Tolerance != nil && *t.Tolerance > wideTolerance {
			r.warn(groupField(i, ".maintainRatio.tolerance"), CodeRatioToleranceTooHigh,
				"at %d%% the ratio is hardly kept at all; %d or less keeps the components in proportion", *t.Tolerance, wideTolerance)
		}
	}
}

// wideTolerance is the percentage above which a ratio stops meaning much.
const wideTolerance = 50

// checkMembers judges who is in which group.
func checkMembers(r *Result, s *v1beta1.InferenceService, groups []v1beta1.RolloutGroup) {
	home := map[v1beta1.ComponentType]int{}
	for i := range groups {
		canary := plan.Kind(&groups[i]) == v1beta1.ProgressionCanary
		for j, c := range groups[i].Components {
			field := groupField(i, fmt.Sprintf(".components[%d]", j))
			if !v1beta1.IsComponent(c) {
				r.refuse(field, memberCode(canary, CodeInvalidComponentInCoordinationGroup), "%q is not a component; use router, engine or decoder", c)
				continue
			}
			if at, taken := home[c]; taken {
				if at == i {
					r.refuse(field, CodeDuplicateComponentInCoordinationGroups, "%s is named twice in the group; name it once", c)
				} else {
					r.refuse(field, CodeDuplicateComponentInCoordinationGroups, "%s is in groups[%d] already; a component is in one group at most", c, at)
				}
				continue
			}
			home[c] = i
			if s.Spec.Extension(c) == nil {
				r.refuse(field, memberCode(canary, CodeOrphanCoordinationGroup), "the service declares no %s; add %s, or take %s out of the group", c, component(c, ""), c)
				continue
			}
			if mode := s.Spec.DeclaredMode(c); mode != v1beta1.OMENativeMode {
				code := CodeCoordinationRequiresOMENative
				if canary {
					code = CodeCanaryRequiresOMENative
				}
				r.refuse(field, code, "%s has deploymentMode=%q on the service; a component in a group declares OMENative, in spec.deploymentMode or in %s[%s]",
					c, mode, component(c, ".annotations"), v1beta1.DeploymentModeAnnotation)
			}
		}
	}
}

// memberCode is the code of a bad member: a canary group has one for them all.
func memberCode(canary bool, code string) string {
	if canary {
		return CodeCanaryInvalid
	}
	return code
}

// checkShape judges the list as a whole.
func checkShape(r *Result, rollout *v1beta1.RolloutSpec) {
	groups := rollout.Groups
	inSequence := plan.Sequence(groups)
	ordered := rollout.GroupOrdering != v1beta1.GroupOrderingConcurrent
	hasCanary := slices.ContainsFunc(groups, func(g v1beta1.RolloutGroup) bool { return plan.Kind(&g) == v1beta1.ProgressionCanary })
	if ordered && len(groups) >= 2 && (!inSequence || hasCanary) {
		r.refuse("spec.rollout.groupOrdering", CodeGroupOrderingNotHonored,
			"Sequential holds for one group, or for blueGreen groups of one component each; these %d groups would run at the same time; set Concurrent to accept that, or change the groups", len(groups))
	}
	for i := range groups {
		if len(groups[i].Order) > 0 {
			r.refuse(groupField(i, ".order"), CodeOrderNotHonored, "no progression applies an order inside a group; remove it")
		}
		if d := groups[i].Soak; d != nil && d.Duration < 0 {
			r.refuse(groupField(i, ".soak"), CodeSoakNotHonored, "%s is negative; use 0 or more", d.Duration)
		}
		if groups[i].Soak != nil && (!inSequence || plan.Kind(&groups[i]) == v1beta1.ProgressionCanary) {
			r.refuse(groupField(i, ".soak"), CodeSoakNotHonored,
				"%s applies between the groups of a sequence only, which is two or more blueGreen groups of one component each; remove it", groups[i].Soak.Duration)
		}
	}
}

// checkPairingChange refuses a change of token that could leave no engine and decoder to pair.
// Setting a first token and clearing one are always fine: an empty token pairs with anything.
func checkPairingChange(r *Result, s, old *v1beta1.InferenceService) {
	from, to := token(old), token(s)
	if from == "" || to == "" || from == to || s.Spec.Engine == nil || s.Spec.Decoder == nil {
		return
	}
	together := slices.ContainsFunc(s.Spec.Rollout.Groups, func(g v1beta1.RolloutGroup) bool {
		return plan.Kind(&g) != v1beta1.ProgressionRollingUpdate &&
			slices.Contains(g.Components, v1beta1.EngineComponent) && slices.Contains(g.Components, v1beta1.DecoderComponent)
	})
	if !together {
		r.refuse("spec.rollout.pairingProtocol", CodePairingProtocolChangeUncoordinated,
			"%q to %q changes engine and decoder, which don't roll together; put both in one blueGreen or canary group", from, to)
	}
}

func token(s *v1beta1.InferenceService) string {
	if s.Spec.Rollout == nil {
		return ""
	}
	return s.Spec.Rollout.PairingProtocol
}
