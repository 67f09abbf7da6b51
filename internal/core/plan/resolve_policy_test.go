package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
)

func policySpec(t *testing.T, text string) v1beta1.RolloutPolicySpec {
	t.Helper()
	var s v1beta1.RolloutPolicySpec
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

func policyNamed(t *testing.T, name, spec, problem string) Policy {
	return NewPolicy(&v1beta1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}, Spec: policySpec(t, spec)}, problem)
}

// bound are the sources of these tests.
func bound(t *testing.T) Sources {
	policies := map[string]Policy{}
	for name, spec := range map[string]string{
		"slow":     `{rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}`,
		"green":    `{blueGreen: {}}`,
		"steps":    `{canary: {steps: [{capacity: "100%", traffic: 100}]}}`,
		"measured": `{canary: {prometheus: {providerRef: {name: main}}, steps: [{capacity: "100%", traffic: 100}]}}`,
		"lost":     `{canary: {prometheus: {providerRef: {name: elsewhere}}, steps: [{capacity: "100%", traffic: 100}]}}`,
		"empty":    `{}`,
	} {
		policies[name] = policyNamed(t, name, spec, "")
	}
	policies["broken"] = policyNamed(t, "broken", `{rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}`, "spec.rollingUpdate: both are zero")
	return Sources{Policies: policies, Bound: func(name string) bool { return name == "main" }}
}

func member(policy, progression string) string {
	return fmt.Sprintf(`{components: [engine, decoder], soak: 5m, policyRef: {name: %s, progression: %s, kind: RolloutPolicy}}`, policy, progression)
}

func TestResolveTakesAPolicy(t *testing.T) {
	const slow = "rp1:a5f55b4d1e85"
	from := bound(t)
	spec := &v1beta1.RolloutSpec{Groups: groups(t, member("slow", "rollingUpdate"))}
	before, stored := spec.DeepCopy(), from.Policies["slow"].Spec
	policyBefore := stored.DeepCopy()
	r := from.Resolve(spec)
	ref := &v1beta1.RolloutPolicyRef{Name: "slow", Progression: v1beta1.ProgressionRollingUpdate, Kind: "RolloutPolicy"}
	want := Resolution{
		Plan: v1beta1.RolloutPlan{Groups: []v1beta1.RunGroup{{
			Source: v1beta1.SourcePolicy, PolicyRef: ref, PolicyGeneration: 3, PortableDigest: slow,
			Group: group(t, `{components: [engine, decoder], soak: 5m, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}`),
		}}},
		Groups: []v1beta1.GroupResolution{{Index: 0, Source: v1beta1.SourcePolicy, PolicyRef: ref, ObservedDigest: slow}},
		Units:  []Unit{{UnitIndependent, []int{0}}},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Plan.Groups[0].Group.RollingUpdate.MaxSurge.IntVal = 7
	if diff := cmp.Diff(before, spec); diff != "" {
		t.Errorf("the spec was written to:\n%s", diff)
	}
	if diff := cmp.Diff(*policyBefore, stored); diff != "" {
		t.Errorf("the plan shares memory with the policy:\n%s", diff)
	}
}

// TestInlineWins: whatever becomes of the policy, the group's own progression runs.
func TestInlineWins(t *testing.T) {
	for _, c := range []struct{ policy, kind, would string }{
		{"slow", "RolloutPolicy", "rp1:a5f55b4d1e85"},
		{"green", "", blueGreen},
		{"broken", "", "rp1:c6693def8b64"},
		{"missing", "", ""},
		{"empty", "", ""},
		{"lost", "", "*"},
		{"slow", "ClusterRolloutPolicy", ""},
	} {
		g := fmt.Sprintf(`{components: [engine], blueGreen: {}, policyRef: {name: %s, progression: canary, kind: %q}}`, c.policy, c.kind)
		r := bound(t).Resolve(&v1beta1.RolloutSpec{Groups: groups(t, g)})
		if r.Parked() || r.Plan.Groups[0].Source != v1beta1.SourceInline || r.Plan.Groups[0].PolicyRef != nil || r.Groups[0].ObservedDigest != blueGreen {
			t.Errorf("%s: parked for %q, %+v", c.policy, r.Message, r.Plan.Groups[0])
		}
		got := r.Groups[0].ShadowedPolicyRef
		if c.would == "*" {
			c.would = bound(t).Policies[c.policy].Digest
		}
		if got == nil || got.Name != c.policy || got.WouldPinDigest != c.would {
			t.Errorf("%s %s: shadowed %+v, want digest %q", c.policy, c.kind, got, c.would)
		}
	}
}

func TestPoliciesPark(t *testing.T) {
	const (
		slow  = "rp1:a5f55b4d1e85"
		write = "or write the progression into the group"
	)
	off, unread := Sources{}, Sources{Unread: true}
	for _, c := range []struct {
		name, group     string
		from            *Sources
		reason, message string
		digest          string
	}{
		{"resolved", member("slow", "rollingUpdate"), nil, "", "", slow},
		{"missing", member("nobody", "blueGreen"), nil, "PolicyNotFound",
			`groups[0].policyRef: RolloutPolicy "nobody" does not exist in the service's namespace; create it, ` + write, ""},
		{"broken", member("broken", "rollingUpdate"), nil, "PolicyNotReady",
			`groups[0].policyRef: RolloutPolicy "broken" is not usable: spec.rollingUpdate: both are zero`, "*"},
		{"broken, and of another kind", member("broken", "canary"), nil, "PolicyNotReady",
			`groups[0].policyRef: RolloutPolicy "broken" is not usable: spec.rollingUpdate: both are zero`, "*"},
		{"empty", member("empty", "blueGreen"), nil, "PolicyNotReady",
			`groups[0].policyRef: RolloutPolicy "empty" is not usable: spec: exactly one of canary, blueGreen, or rollingUpdate must be set`, ""},
		{"mismatch", member("slow", "blueGreen"), nil, "ProgressionMismatch",
			`groups[0].policyRef: RolloutPolicy "slow" holds rollingUpdate and the group expects blueGreen; change policyRef.progression, or refer to another policy`, slow},
		{"no progression named", `{components: [engine], policyRef: {name: slow}}`, nil, "ProgressionMismatch",
			`groups[0].policyRef: RolloutPolicy "slow" holds rollingUpdate and the group expects ; change policyRef.progression, or refer to another policy`, slow},
		{"provider of a policy", member("lost", "canary"), nil, "ProviderUnbound",
			`groups[0]: metric provider "elsewhere" is not bound in this cluster's metricProviders configuration`, "*"},
		{"provider inline", `{components: [engine], canary: {prometheus: {providerRef: {name: elsewhere}}, steps: [{capacity: "100%", traffic: 100}]}}`, nil, "ProviderUnbound",
			`groups[0]: metric provider "elsewhere" is not bound in this cluster's metricProviders configuration`, "*"},
		{"reserved kind", `{components: [engine], policyRef: {name: slow, progression: rollingUpdate, kind: ClusterRolloutPolicy}}`, nil, "PlanInvalid",
			`groups[0].policyRef.kind: "ClusterRolloutPolicy" is reserved; use RolloutPolicy, ` + write, ""},
		{"feature off", member("slow", "rollingUpdate"), &off, "PlanInvalid",
			`groups[0].policyRef: RolloutPolicy "slow" can't be read: the manager found no RolloutPolicies in this cluster when it started; install their CRD and restart the manager, ` + write, ""},
		{"not looked up", member("slow", "rollingUpdate"), &unread, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := bound(t)
			if c.from != nil {
				from = *c.from
			}
			gs := groups(t, c.group)
			r := from.Resolve(&v1beta1.RolloutSpec{Groups: gs})
			if r.Reason != c.reason || r.Message != c.message {
				t.Errorf("parked for %s: %s\nwant %s: %s", r.Reason, r.Message, c.reason, c.message)
			}
			got := r.Groups[0].ObservedDigest
			if got != r.Plan.Groups[0].PortableDigest || c.digest == "*" && !strings.HasPrefix(got, "rp1:") || c.digest != "*" && got != c.digest {
				t.Errorf("digests %q and %q, want %q", got, r.Plan.Groups[0].PortableDigest, c.digest)
			}
			pinned := &r.Plan.Groups[0].Group
			if diff := cmp.Diff(gs[0].Components, pinned.Components); diff != "" || pinned.PolicyRef != nil || Kind(pinned) != Kind(&gs[0]) {
				t.Errorf("shape: %+v", pinned)
			}
		})
	}
}

// TestAParkedPlanRecovers: resolving is a lookup, so what mends the source mends the plan.
func TestAParkedPlanRecovers(t *testing.T) {
	spec := &v1beta1.RolloutSpec{Groups: groups(t, member("late", "blueGreen"))}
	from := bound(t)
	if r := from.Resolve(spec); r.Reason != "PolicyNotFound" {
		t.Fatalf("parked for %q", r.Reason)
	}
	from.Policies["late"] = policyNamed(t, "late", `{blueGreen: {}}`, "")
	if r := from.Resolve(spec); r.Parked() {
		t.Errorf("still parked: %s", r.Message)
	}
}

// TestDriftOfPolicies: an edit of the policy drifts an open run as PolicyNewerThanRun, whatever
// the run was pinned from, and one that says the same doesn't.
func TestDriftOfPolicies(t *testing.T) {
	const applies = "; the edit applies at the next run (or via ome.io/rollout-repin)"
	edited := bound(t)
	edited.Policies["slow"] = policyNamed(t, "slow", `{rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}`, "")
	digest := edited.Policies["slow"].Digest
	gone := Sources{Policies: map[string]Policy{}}
	resolve := func(from Sources, g string) v1beta1.RolloutPlan {
		return from.Resolve(&v1beta1.RolloutSpec{Groups: groups(t, g)}).Plan
	}
	const inline = `{components: [engine, decoder], rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}`
	pinned := resolve(bound(t), member("slow", "rollingUpdate"))
	for _, c := range []struct {
		name, reason, text string
		pinned, live       v1beta1.RolloutPlan
	}{
		{"the same", "InSync", "", pinned, resolve(bound(t), member("slow", "rollingUpdate"))},
		{"edited", "PolicyNewerThanRun", "groups[0]: live render " + digest + " differs from pinned rp1:a5f55b4d1e85" + applies, pinned, resolve(edited, member("slow", "rollingUpdate"))},
		{"deleted", "PolicyNewerThanRun", "groups[0]: live render (unresolvable) differs from pinned rp1:a5f55b4d1e85" + applies, pinned, resolve(gone, member("slow", "rollingUpdate"))},
		{"written into the group", "InSync", "", pinned, resolve(bound(t), inline)},
		{"taken out of the group", "InSync", "", resolve(bound(t), inline), pinned},
		{"replaced by an inline one", "SpecNewerThanRun", "groups[0]: live render rp1:cca45ec1fb0f differs from pinned rp1:a5f55b4d1e85" + applies, pinned, resolve(bound(t), `{components: [engine, decoder]}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			reason, text := DriftReason(c.pinned, c.live)
			if reason != c.reason || text != c.text {
				t.Errorf("%s: %s\nwant %s: %s", reason, text, c.reason, c.text)
			}
		})
	}
}

// drawProgression draws a body that the schema admits.
func drawProgression(t *rapid.T) v1beta1.RolloutPolicySpec {
	budget := func(name string) *intstr.IntOrString {
		if !rapid.Bool().Draw(t, name+" set") {
			return nil
		}
		v := intstr.FromInt32(rapid.Int32Range(0, 9).Draw(t, name))
		if rapid.Bool().Draw(t, name+" percent") {
			v = intstr.FromString(fmt.Sprintf("%d%%", rapid.IntRange(0, 100).Draw(t, name)))
		}
		return &v
	}
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return v1beta1.RolloutPolicySpec{BlueGreen: &v1beta1.GroupBlueGreen{}}
	case 1:
		return v1beta1.RolloutPolicySpec{RollingUpdate: &v1beta1.GroupRollingUpdate{MaxSurge: budget("surge"), MaxUnavailable: budget("unavailable")}}
	}
	c := &v1beta1.GroupCanary{}
	for i := range rapid.IntRange(1, 4).Draw(t, "steps") {
		step := v1beta1.RolloutGroupStep{Capacity: intstr.FromString(fmt.Sprintf("%d%%", 20*i)), Traffic: rapid.Int32Range(0, 100).Draw(t, "traffic")}
		if rapid.Bool().Draw(t, "pause") {
			step.Pause = &v1beta1.RolloutPause{}
		}
		if rapid.Bool().Draw(t, "analysis") {
			step.Analysis = &v1beta1.RolloutAnalysis{FailureLimit: 1, Metrics: []v1beta1.AnalysisMetric{{
				Name: "a", Query: rapid.StringMatching(`[a-z<>&"{}]{1,8}`).Draw(t, "query"), Operator: "LT", Threshold: "1"}}}
		}
		c.Steps = append(c.Steps, step)
	}
	return v1beta1.RolloutPolicySpec{Canary: c}
}

// TestEqualBodiesHaveEqualDigests whatever their source and whoever asks, and other bodies don't.
func TestEqualBodiesHaveEqualDigests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body, other := drawProgression(t), drawProgression(t)
		inline := *GroupOfPolicy(&body)
		inline.Components = []v1beta1.ComponentType{v1beta1.EngineComponent}
		kind := Kind(&inline)
		refers := v1beta1.RolloutGroup{Components: inline.Components, PolicyRef: &v1beta1.RolloutPolicyRef{Name: "p", Progression: kind}}
		shadowed := inline
		shadowed.PolicyRef = refers.PolicyRef

		policy := &v1beta1.RolloutPolicy{Spec: body}
		from := Sources{Policies: map[string]Policy{"p": NewPolicy(policy, "")}}
		digest := func(g v1beta1.RolloutGroup) v1beta1.GroupResolution {
			return from.Resolve(&v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{g}}).Groups[0]
		}
		own, err := PolicyDigest(&body)
		if err != nil || own == "" {
			t.Fatalf("no digest: %v", err)
		}
		if a, b := digest(inline).ObservedDigest, digest(refers).ObservedDigest; a != own || b != own {
			t.Fatalf("inline %s, from a policy %s, of the policy %s", a, b, own)
		}
		if got := digest(shadowed); got.ObservedDigest != got.ShadowedPolicyRef.WouldPinDigest {
			t.Fatalf("removing the inline block changes nothing, but %s would become %s", got.ObservedDigest, got.ShadowedPolicyRef.WouldPinDigest)
		}
		another, _ := PolicyDigest(&other)
		if same := cmp.Equal(body, other); same != (another == own) {
			t.Fatalf("equal: %v, digests %s and %s", same, own, another)
		}
	})
}
