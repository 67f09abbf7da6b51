package rollout

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
)

// A hold on a budget of the group must not send its reader to the component's lifecycle.
func TestWhereABudgetStands(t *testing.T) {
	members := []Member{{Component: v1beta1.EngineComponent, Desired: 4, Strategy: v1beta1.RecreatePod}}
	of := func(g v1beta1.RolloutGroup) Permit {
		g.Components = []v1beta1.ComponentType{v1beta1.EngineComponent}
		res := Result{Permits: map[v1beta1.ComponentType]Permit{v1beta1.EngineComponent: {MaxSurge: instance.NoBudget, MaxUnavailable: instance.NoBudget}}}
		budgets(&res, Input{Members: members}, &g, 1)
		return res.Permits[v1beta1.EngineComponent]
	}
	if got := of(v1beta1.RolloutGroup{RollingUpdate: &v1beta1.GroupRollingUpdate{MaxUnavailable: ptr.To(intstr.FromInt32(0))}}); got.MaxUnavailable != 0 || got.BudgetField != "spec.rollout.groups[1].rollingUpdate" {
		t.Errorf("a rolling update of zero: %d by %q", got.MaxUnavailable, got.BudgetField)
	}
	if got := of(v1beta1.RolloutGroup{}); got.MaxUnavailable != 1 || got.BudgetField != "" {
		t.Errorf("blue-green: %d by %q, which nobody set", got.MaxUnavailable, got.BudgetField)
	}
}
