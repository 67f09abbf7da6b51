package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// checkPlanOptions judges what of the groups depends on the installation: whether it has
// RolloutPolicies, and how large a plan may be.
func checkPlanOptions(r *Result, s, old *v1beta1.InferenceService, opts Options) {
	if s.Spec.Rollout == nil || old != nil && equality.Semantic.DeepEqual(s.Spec.Rollout, old.Spec.Rollout) {
		return
	}
	for i := range s.Spec.Rollout.Groups {
		g := &s.Spec.Rollout.Groups[i]
		checkPolicyRef(r, groupField(i, ".policyRef"), g.PolicyRef, opts)
		checkPlanSize(r, fmt.Sprintf("spec.rollout.groups[%d]", i), g, opts)
	}
}

func checkPolicyRef(r *Result, field string, ref *v1beta1.RolloutPolicyRef, opts Options) {
	switch {
	case ref == nil:
	case !opts.PoliciesServed:
		r.refuse(field, CodeRolloutPolicyRefUnsupported,
			"RolloutPolicy is off in this installation; set canary, blueGreen or rollingUpdate in the group")
	case !plan.KnownPolicyKind(ref.Kind):
		r.refuse(field+".kind", CodeRolloutPolicyRefUnsupported, "%q is reserved; use %s, of the service's namespace", ref.Kind, v1beta1.RolloutPolicyKind)
	}
}
