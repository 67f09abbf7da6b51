package view

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// TestGroupsAreShownAsTheyRun: what the report calls a group is what executes it.
func TestGroupsAreShownAsTheyRun(t *testing.T) {
	kinds := map[string]v1beta1.RolloutGroup{
		"none":           {},
		"blueGreen":      {BlueGreen: &v1beta1.GroupBlueGreen{}},
		"canary":         {Canary: &v1beta1.GroupCanary{}},
		"rolling":        {RollingUpdate: &v1beta1.GroupRollingUpdate{}},
		"policy":         {PolicyRef: &v1beta1.RolloutPolicyRef{Name: "p"}},
		"policy=strange": {PolicyRef: &v1beta1.RolloutPolicyRef{Name: "p", Progression: "strange"}},
		"policy=canary":  {PolicyRef: &v1beta1.RolloutPolicyRef{Name: "p", Progression: v1beta1.ProgressionCanary}},
		"policy=rolling": {PolicyRef: &v1beta1.RolloutPolicyRef{Name: "p", Progression: v1beta1.ProgressionRollingUpdate}},
		"shadowed":       {Canary: &v1beta1.GroupCanary{}, PolicyRef: &v1beta1.RolloutPolicyRef{Name: "p"}},
	}
	// Each word is kind:component[+component].
	for groups, want := range map[string]string{
		"none:engine+decoder":                           "BlueGreen:engine+decoder",
		"rolling:engine+decoder canary:router":          "RollingUpdate:engine+decoder Canary:router",
		"shadowed:engine":                               "Canary:engine",
		"policy:engine":                                 "Unknown:engine",
		"policy=strange:engine":                         "Unknown:engine",
		"policy=rolling:engine":                         "RollingUpdate:engine",
		"none:engine blueGreen:decoder":                 "Sequential:engine+decoder",
		"none:router policy=canary:engine none:decoder": "Sequential:router+decoder Canary:engine",
		"none:engine none:decoder none:router":          "Sequential:engine+decoder+router",
		"none:engine rolling:decoder":                   "BlueGreen:engine RollingUpdate:decoder",
		"none:engine none:decoder+router":               "BlueGreen:engine BlueGreen:decoder+router",
		"none:engine policy:decoder":                    "BlueGreen:engine Unknown:decoder",
	} {
		s := &v1beta1.InferenceService{}
		s.Spec.Rollout = &v1beta1.RolloutSpec{}
		for _, word := range strings.Fields(groups) {
			kind, members, _ := strings.Cut(word, ":")
			g := kinds[kind]
			for _, c := range strings.Split(members, "+") {
				g.Components = append(g.Components, v1beta1.ComponentType(c))
			}
			s.Spec.Rollout.Groups = append(s.Spec.Rollout.Groups, g)
		}
		var got, executed []string
		for _, g := range BuildRolloutStatus(s, now).Content.Groups {
			got = append(got, g.Strategy+":"+strings.Join(g.Components, "+"))
			executed = append(executed, strings.Join(g.Components, "+"))
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", groups, diff)
		}
		if strings.Contains(want, StateUnknown) {
			continue // no unit can be derived before the policy is read
		}
		var units []string
		for _, u := range plan.Units(s.Spec.Rollout.Groups) {
			var members []string
			for _, c := range u.Components(s.Spec.Rollout.Groups) {
				members = append(members, string(c))
			}
			units = append(units, strings.Join(members, "+"))
		}
		slices.Sort(units)
		slices.Sort(executed)
		if diff := cmp.Diff(units, executed); diff != "" {
			t.Errorf("%s: units (-executed +shown):\n%s", groups, diff)
		}
	}
}
