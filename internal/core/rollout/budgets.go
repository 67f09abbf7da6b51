package rollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
)

// budgets caps how many Instances of each member move at one time. A blue-green member
// moves a quarter of its replicas; a rolling-update member what the group sets.
func budgets(res *Result, in Input, g *v1beta1.RolloutGroup, index int) {
	for _, c := range g.Components {
		m := in.member(c)
		if m == nil || g.Canary != nil {
			continue
		}
		surge := plan.BlueGreenBudget(m.Desired)
		unavailable, field := surge, ""
		if r := g.RollingUpdate; r != nil {
			field = fmt.Sprintf("spec.rollout.groups[%d].rollingUpdate", index)
			surge, unavailable = resolved(r.MaxSurge, m.Desired), resolved(r.MaxUnavailable, m.Desired)
		}
		res.change(c, func(p *Permit) {
			p.MaxSurge, p.BudgetField = min(p.MaxSurge, surge), field
			if m.Strategy != v1beta1.SurgeThenDrain {
				p.MaxUnavailable = min(p.MaxUnavailable, unavailable)
			}
		})
	}
}

// resolved is a budget of the group in Instances; unset is the default quarter. What
// admission would have refused allows nothing rather than everything.
func resolved(v *intstr.IntOrString, desired int32) int32 {
	b := plan.DefaultBudget()
	if v != nil {
		b = *v
	}
	n, err := plan.Budget(b, desired)
	if err != nil {
		return 0
	}
	return n
}

// atMost narrows a quota. The first reason for a bound is kept, since it is the
// narrower promise that a person has to know of.
func atMost(q *instance.Quota, left int32, hold *instance.Hold) *instance.Quota {
	switch {
	case q != nil && q.Paired: // it bounds some of the pods only
		some := *q
		some.Rest = atMost(q.Rest, left, hold)
		return &some
	case q != nil && q.Left <= left:
		return q
	}
	return &instance.Quota{Left: max(0, left), Hold: hold}
}
