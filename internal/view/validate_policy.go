package view

import (
	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/validate"
)

// policy judges a RolloutPolicy that stands beside the service in a file, and lets the plan use it. One of
// another namespace is none of the service's.
func (v *validator) policy(p *v1beta1.RolloutPolicy) {
	result := validate.RolloutPolicy(p, nil, asAdmitted)
	named := "RolloutPolicy " + safe(p.Name) + ": "
	for _, problem := range result.Errors {
		v.out.Problems = append(v.out.Problems, policyProblem(named, problem))
	}
	for _, problem := range result.Warnings {
		v.out.Advice = append(v.out.Advice, policyProblem(named, problem))
	}
	if p.Namespace == v.isvc.Namespace || p.Namespace == "" || v.isvc.Namespace == "" {
		v.policies[p.Name] = plan.NewPolicy(p, result.Denial())
	}
}

func policyProblem(named string, p validate.Problem) ValidateProblem {
	return ValidateProblem{Check: checkRefs, Code: p.Code, Field: safe(p.Field), Text: safeTo(named+p.String(), maxReason)}
}
