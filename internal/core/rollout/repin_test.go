package rollout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

func rollingSpec(surge int32) *v1beta1.RolloutSpec {
	spec := pd()
	spec.Groups[0].RollingUpdate = &v1beta1.GroupRollingUpdate{MaxSurge: new(intstr.FromInt32(surge))}
	return spec
}

func TestRepin(t *testing.T) {
	digest := func(s *v1beta1.RolloutSpec) string { return plan.PinnedDigest(plan.Resolve(s).Plan) }
	other := rollingSpec(1)
	other.Groups[0].Components = []v1beta1.ComponentType{engine, decoder, router}
	ratio := rollingSpec(2)
	ratio.Groups[0].MaintainRatio = &v1beta1.MaintainRatio{}
	cases := []struct {
		name         string
		spec         *v1beta1.RolloutSpec
		value        string
		noRun        bool
		pause        Pause
		event, now   string
		stays, empty bool
	}{
		{name: "the digest of the live plan pins it", spec: rollingSpec(2), value: digest(rollingSpec(2)), now: digest(rollingSpec(2)),
			event: "RolloutPlanRepinned: run svc-1 repinned: " + digest(rollingSpec(1)) + " -> " + digest(rollingSpec(2))},
		{name: "now asks for no digest", spec: rollingSpec(2), value: "now", now: digest(rollingSpec(2)), event: "RolloutPlanRepinned: run svc-1 repinned"},
		{name: "a digest that is pinned already says nothing", spec: rollingSpec(1), value: digest(rollingSpec(1)), now: digest(rollingSpec(1))},
		{name: "another edit came in between", spec: rollingSpec(3), value: digest(rollingSpec(2)), now: digest(rollingSpec(1)),
			event: "RolloutRepinRejected: expected render digest " + digest(rollingSpec(2)) + " but the current render is " + digest(rollingSpec(3))},
		{name: "other members are no matter of a digest", spec: other, value: digest(other), now: digest(rollingSpec(1)),
			event: "RolloutRepinRejected: groups[0] has another components than the run pinned"},
		{name: "nor is a ratio", spec: ratio, value: digest(ratio), now: digest(rollingSpec(1)), event: "RolloutRepinRejected: groups[0] has another maintainRatio"},
		{name: "no groups any more", spec: nil, value: "now", now: digest(rollingSpec(1)), event: "RolloutRepinRejected: the spec has no rollout groups"},
		{name: "a plan that does not render", spec: &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{{Components: []v1beta1.ComponentType{engine, decoder},
			PolicyRef: &v1beta1.RolloutPolicyRef{Name: "slow", Progression: v1beta1.ProgressionRollingUpdate}}}}, value: "now", now: digest(rollingSpec(1)),
			event: "RolloutRepinRejected: the current source does not render: PlanInvalid"},
		{name: "not a digest", spec: rollingSpec(2), value: "rp1:XYZ", now: digest(rollingSpec(1)), event: `RolloutRepinRejected: "rp1:XYZ" is neither "now" nor a digest`},
		{name: "without a run", spec: rollingSpec(2), value: "now", noRun: true, event: "RolloutRepinRejected: no run is open"},
		{name: "a pause keeps the request", spec: rollingSpec(2), value: "now", pause: Recover, stays: true, now: digest(rollingSpec(1))},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			previous := &v1beta1.RolloutStatus{}
			members := []Member{member(engine, "b", "b"), member(decoder, "b", "b")}
			if !tc.noRun {
				previous.ActiveRun = run("b", "b")
				previous.ActiveRun.Plan = plan.Resolve(rollingSpec(1)).Plan
				members = []Member{member(engine, "a", "b"), member(decoder, "a", "b")}
			}
			before := previous.DeepCopy()
			res := Decide(Input{Now: t0.Add(1e9), Service: "svc", Spec: tc.spec, Previous: previous, Pause: tc.pause, Members: members, Repin: &tc.value}, plan.Resolve(tc.spec))
			var event string
			for _, e := range res.Events {
				event += e.Reason + ": " + e.Message
				if e.Warning != (e.Reason == v1beta1.EventRolloutRepinRejected) {
					t.Errorf("%+v", e)
				}
			}
			if !strings.HasPrefix(event, tc.event) || (tc.event == "") != (event == "") {
				t.Errorf("event %q, want %q", event, tc.event)
			}
			if _, gone := res.Consumed[v1beta1.RolloutRepinAnnotation]; gone == tc.stays {
				t.Errorf("consumed: %v", gone)
			}
			if !tc.noRun {
				got := res.Status.ActiveRun
				if d := plan.PinnedDigest(got.Plan); d != tc.now {
					t.Errorf("pinned %s, want %s", d, tc.now)
				}
				if moved := !got.PinnedAt.Equal(&before.ActiveRun.PinnedAt); moved != strings.HasPrefix(event, "RolloutPlanRepinned") {
					t.Errorf("pinnedAt moved: %v", moved)
				}
				if got.RunID != "svc-1" || !got.OpenedAt.Equal(&before.ActiveRun.OpenedAt) || cmp.Diff(got.TargetRevisions, before.ActiveRun.TargetRevisions) != "" {
					t.Errorf("the run changed: %+v", got)
				}
			}
			if diff := cmp.Diff(before, previous); diff != "" {
				t.Errorf("the input was written to:\n%s", diff)
			}
		})
	}
}
