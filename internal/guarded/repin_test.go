package guarded

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/rollout"
)

// admitted draws groups that admission takes: others never get into a plan.
var admitted = rapid.Custom(func(t *rapid.T) []v1beta1.RolloutGroup { return drawGroups(t, "groups") }).
	Filter(func(g []v1beta1.RolloutGroup) bool {
		r := plan.Resolve(&v1beta1.RolloutSpec{Groups: g})
		return !r.Parked()
	})

// TestTheControllerTakesWhatRepinAsksFor: for edits of every kind of group, the action
// either refuses or asks for the digest by which the controller takes the plan, and it
// refuses no plan that the controller would take.
func TestTheControllerTakesWhatRepinAsksFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opened := time.Date(2026, 9, 28, 14, 0, 0, 0, time.UTC)
		before, after := admitted.Draw(t, "before"), admitted.Draw(t, "after")
		if rapid.Bool().Draw(t, "same shape") {
			after = cloneGroups(before)
			for i := range after {
				if after[i].RollingUpdate != nil {
					after[i].RollingUpdate = drawBudget(t)
				}
			}
		}
		pinned := plan.Resolve(&v1beta1.RolloutSpec{Groups: before})
		spec := &v1beta1.RolloutSpec{Groups: after}
		live := plan.Resolve(spec)
		if pinned.Parked() || live.Parked() {
			t.Fatalf("a plan that is admitted parks: %s %s", pinned.Message, live.Message)
		}
		run := &v1beta1.RolloutRun{RunID: "chat-9c1e44ab07d2", OpenedAt: metav1.NewTime(opened), PinnedAt: metav1.NewTime(opened), Plan: pinned.Plan}
		// Every component is behind, so that the run stays open whichever it is about.
		var members []rollout.Member
		for _, c := range v1beta1.Components() {
			run.TargetRevisions = append(run.TargetRevisions, v1beta1.RunTarget{Component: c, Revision: "bbbbbbbb", StableRevision: "aaaaaaaa"})
			members = append(members, rollout.Member{Component: c, Target: "bbbbbbbb", Stable: "aaaaaaaa", Behind: true})
		}
		reason, message := plan.DriftReason(pinned.Plan, live.Plan)
		status, edited := corev1.ConditionTrue, metav1.NewTime(opened.Add(time.Minute))
		if reason == v1beta1.ReasonInSync {
			status = corev1.ConditionFalse
		}
		now := opened.Add(time.Hour)
		ev := &Evidence{Name: "chat", Namespace: "prod", Context: "c", Now: now, ServerNow: now, Service: &v1beta1.InferenceService{
			ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: "prod", Generation: 2},
			Spec:       v1beta1.InferenceServiceSpec{Rollout: spec},
			Status: v1beta1.InferenceServiceStatus{
				Rollout: &v1beta1.RolloutStatus{ObservedGeneration: 2, ActiveRun: run, Groups: live.Groups},
				Conditions: []v1beta1.DuckCondition{
					{Type: v1beta1.ConditionRolloutPlanReady, Status: corev1.ConditionTrue, Reason: v1beta1.ReasonPinned, LastTransitionTime: &run.OpenedAt},
					{Type: v1beta1.ConditionRolloutPlanDrift, Status: status, Reason: reason, Message: message, LastTransitionTime: &edited},
				},
			},
		}}
		action := Repin()
		var refused *Error
		for _, refuse := range action.Refusals {
			if refused == nil {
				refused = refuse(ev)
			}
		}
		value := plan.PinnedDigest(live.Plan)
		if refused == nil {
			value = *action.Change(ev).Annotations[0].Value
			rows, _ := action.Preview(ev)
			if len(rows) == 0 {
				t.Fatal("nothing to confirm")
			}
		}
		res := rollout.Decide(rollout.Input{Now: now, Service: "chat", Generation: 2, Spec: spec, Previous: ev.Service.Status.Rollout, Repin: &value,
			Members: members}, live)
		if now := res.Status.ActiveRun; now == nil || now.RunID != run.RunID {
			t.Fatalf("it isn't the same run any more: %v", res.Events)
		}
		took := !res.Status.ActiveRun.PinnedAt.Equal(&run.PinnedAt)
		if took != (refused == nil) {
			t.Fatalf("refused: %v, and the controller took it: %t (%v)", refused, took, res.Events)
		}
		if took {
			if diff := cmp.Diff(live.Plan, res.Status.ActiveRun.Plan); diff != "" {
				t.Fatalf("another plan was taken (-live +pinned):\n%s", diff)
			}
		} else if refused.Message != MsgRepinPinned && refused.Message != MsgRepinTopology {
			t.Fatalf("refused with %q %v", refused.Message, refused.Details)
		}
	})
}

func drawGroups(t *rapid.T, label string) []v1beta1.RolloutGroup {
	all := rapid.Permutation([]v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent, v1beta1.RouterComponent}).Draw(t, label)
	var groups []v1beta1.RolloutGroup
	for len(all) > 0 && (len(groups) == 0 || rapid.Bool().Draw(t, "another")) {
		n := rapid.IntRange(1, len(all)).Draw(t, "members")
		g := v1beta1.RolloutGroup{Components: all[:n]}
		all = all[n:]
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			g.BlueGreen = &v1beta1.GroupBlueGreen{}
		case 1:
			g.RollingUpdate = drawBudget(t)
		}
		if rapid.IntRange(0, 3).Draw(t, "ratio") == 0 {
			g.MaintainRatio = &v1beta1.MaintainRatio{}
		}
		if rapid.IntRange(0, 3).Draw(t, "soak") == 0 {
			g.Soak = &metav1.Duration{Duration: time.Duration(rapid.IntRange(1, 2).Draw(t, "minutes")) * time.Minute}
		}
		groups = append(groups, g)
	}
	return groups
}

func drawBudget(t *rapid.T) *v1beta1.GroupRollingUpdate {
	b := &v1beta1.GroupRollingUpdate{MaxSurge: new(intstr.FromInt32(rapid.Int32Range(0, 3).Draw(t, "surge")))}
	if rapid.Bool().Draw(t, "both") {
		b.MaxUnavailable = new(intstr.FromString("50%"))
	}
	return b
}

func cloneGroups(groups []v1beta1.RolloutGroup) []v1beta1.RolloutGroup {
	return (&v1beta1.RolloutSpec{Groups: groups}).DeepCopy().Groups
}

// TestRequestedDigest: the digest of a plan, worked out by hand.
func TestRequestedDigest(t *testing.T) {
	blueGreen := v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{v1beta1.EngineComponent}}
	rolling := v1beta1.RolloutGroup{RollingUpdate: &v1beta1.GroupRollingUpdate{}}
	policy := v1beta1.RolloutGroup{PolicyRef: &v1beta1.RolloutPolicyRef{Name: "slow", Progression: v1beta1.ProgressionBlueGreen}}
	for _, c := range []struct {
		name     string
		groups   []v1beta1.RolloutGroup
		observed []string
		want     string
	}{
		{"one group", []v1beta1.RolloutGroup{rolling}, []string{"rp1:bbbbbbbbbbbb"}, "rp1:1d153db2a5df"},
		{"a blue-green group without a report", []v1beta1.RolloutGroup{blueGreen, rolling}, []string{"", "rp1:74e7029e7f20"}, "rp1:86c52d52c02a"},
		{"a blue-green group that isn't reported at all", []v1beta1.RolloutGroup{blueGreen}, nil, plan.PlanDigest([]string{"rp1:cca45ec1fb0f"})},
		{"a rolling group without a report", []v1beta1.RolloutGroup{blueGreen, rolling}, []string{"rp1:cca45ec1fb0f", ""}, ""},
		{"a policy's group without a report", []v1beta1.RolloutGroup{policy}, []string{""}, ""},
		{"no groups", nil, nil, ""},
	} {
		ro := &v1beta1.RolloutStatus{}
		for i, digest := range c.observed {
			ro.Groups = append(ro.Groups, v1beta1.GroupResolution{Index: int32(i), ObservedDigest: digest})
		}
		ev := &Evidence{Service: &v1beta1.InferenceService{Spec: v1beta1.InferenceServiceSpec{Rollout: &v1beta1.RolloutSpec{Groups: c.groups}},
			Status: v1beta1.InferenceServiceStatus{Rollout: ro}}}
		if got := ev.requestedDigest(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if change := Repin().Change(ev); (c.want == "") != (len(change.Annotations) == 0) {
			t.Errorf("%s: the change is %v", c.name, change.Annotations)
		}
	}
}
