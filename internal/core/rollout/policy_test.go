package rollout

import (
	"testing"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// TestAParkedPolicyHoldsEveryKind: whatever a group expects of its policy, without it no run opens and
// nobody who has something to roll to starts.
func TestAParkedPolicyHoldsEveryKind(t *testing.T) {
	for _, kind := range []v1beta1.Progression{v1beta1.ProgressionCanary, v1beta1.ProgressionBlueGreen, v1beta1.ProgressionRollingUpdate} {
		spec := &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{{
			Components: []v1beta1.ComponentType{engine, decoder}, PolicyRef: &v1beta1.RolloutPolicyRef{Name: "gone", Progression: kind},
		}}}
		live := plan.Sources{Policies: map[string]plan.Policy{}}.Resolve(spec)
		in := inputOf(spec, member(engine, "a", "b"), member(decoder, "a", "b"))
		in.Previous = nil
		res := Decide(in, live)
		if res.ParkReason != v1beta1.ReasonPolicyNotFound || res.Status.ActiveRun != nil {
			t.Errorf("%s: parked for %q, run %v", kind, res.ParkReason, res.Status.ActiveRun)
		}
		for _, c := range []v1beta1.ComponentType{engine, decoder} {
			if hold := res.Permits[c].Hold; hold == nil || hold.Gate != v1beta1.GatePlan {
				t.Errorf("%s: hold of %s: %+v", kind, c, hold)
			}
		}
	}
}

// TestARunOutlivesItsPolicy: an open run goes on as it was pinned, whatever becomes of the policy.
func TestARunOutlivesItsPolicy(t *testing.T) {
	spec := &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{{
		Components: []v1beta1.ComponentType{engine, decoder}, PolicyRef: &v1beta1.RolloutPolicyRef{Name: "green", Progression: v1beta1.ProgressionBlueGreen},
	}}}
	green := plan.NewPolicy(&v1beta1.RolloutPolicy{Spec: v1beta1.RolloutPolicySpec{BlueGreen: &v1beta1.GroupBlueGreen{}}}, "")
	in := inputOf(spec, member(engine, "a", "b"), member(decoder, "a", "b"))
	in.Previous = nil
	first := Decide(in, plan.Sources{Policies: map[string]plan.Policy{"green": green}}.Resolve(spec))
	if first.Status.ActiveRun == nil || first.Status.ActiveRun.Plan.Groups[0].Source != v1beta1.SourcePolicy {
		t.Fatalf("run %+v", first.Status.ActiveRun)
	}
	in.Previous = first.Status
	then := Decide(in, plan.Sources{Policies: map[string]plan.Policy{}}.Resolve(spec))
	if then.Status.ActiveRun == nil || then.Status.ActiveRun.RunID != first.Status.ActiveRun.RunID || then.ParkReason != "" || then.Permits[engine].Hold != nil {
		t.Errorf("after the policy went: run %+v, parked %q, hold %+v", then.Status.ActiveRun, then.ParkReason, then.Permits[engine].Hold)
	}
}
