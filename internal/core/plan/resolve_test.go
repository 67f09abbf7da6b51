package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ome.io/ome/api/v1beta1"
)

const blueGreen = "rp1:cca45ec1fb0f"

func TestResolveNothing(t *testing.T) {
	for _, spec := range []*v1beta1.RolloutSpec{nil, {}, {PairingProtocol: "kv-v2"}} {
		r := Resolve(spec)
		if diff := cmp.Diff(Resolution{}, r); diff != "" || r.Parked() || PinnedDigest(r.Plan) != "" {
			t.Errorf("%+v resolves to something:\n%s", spec, diff)
		}
	}
}

func TestResolveDefaultGroup(t *testing.T) {
	spec := &v1beta1.RolloutSpec{Groups: groups(t, `{components: [engine, decoder]}`)}
	before := spec.DeepCopy()
	r := Resolve(spec)
	want := Resolution{
		Plan: v1beta1.RolloutPlan{Groups: []v1beta1.RunGroup{{
			Source: v1beta1.SourceInline, PortableDigest: blueGreen, Group: group(t, `{components: [engine, decoder], blueGreen: {}}`),
		}}},
		Groups: []v1beta1.GroupResolution{{Index: 0, Source: v1beta1.SourceInline, ObservedDigest: blueGreen}},
		Units:  []Unit{{UnitIndependent, []int{0}}},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("resolution (-want +got):\n%s", diff)
	}
	if PinnedDigest(r.Plan) != "rp1:8aa97d86f011" {
		t.Errorf("plan digest %s", PinnedDigest(r.Plan))
	}
	if diff := cmp.Diff(before, spec); diff != "" {
		t.Errorf("the spec changed:\n%s", diff)
	}
	r.Plan.Groups[0].Group.Components[0] = "changed"
	if diff := cmp.Diff(before, spec); diff != "" {
		t.Errorf("the plan shares memory with the spec:\n%s", diff)
	}
}

func TestResolveShadowedPolicy(t *testing.T) {
	r := Resolve(&v1beta1.RolloutSpec{Groups: groups(t, `{components: [engine], blueGreen: {}, policyRef: {name: slow, progression: canary, kind: RolloutPolicy}}`)})
	ref := &v1beta1.RolloutPolicyRef{Name: "slow", Progression: v1beta1.ProgressionCanary, Kind: "RolloutPolicy"}
	want := []v1beta1.GroupResolution{{Source: v1beta1.SourceInline, PolicyRef: ref, ObservedDigest: blueGreen, ShadowedPolicyRef: &v1beta1.ShadowedRolloutPolicy{Name: "slow"}}}
	if diff := cmp.Diff(want, r.Groups); diff != "" || r.Parked() {
		t.Errorf("groups (-want +got), parked %q:\n%s", r.Reason, diff)
	}
	if g := r.Plan.Groups[0]; g.PolicyRef != nil || g.Group.PolicyRef != nil {
		t.Errorf("a pinned inline group names a policy: %+v", g)
	}
}

func TestResolveTwoUnits(t *testing.T) {
	r := Resolve(&v1beta1.RolloutSpec{GroupOrdering: v1beta1.GroupOrderingConcurrent, Groups: groups(t, `{components: [engine, decoder]}`, `{components: [router]}`)})
	if r.Parked() || len(r.Units) != 2 || PinnedDigest(r.Plan) != "rp1:d1c91353aa70" {
		t.Errorf("parked %q, units %v, digest %s", r.Message, r.Units, PinnedDigest(r.Plan))
	}
}

func TestResolveParks(t *testing.T) {
	for _, c := range []struct {
		name    string
		groups  []string
		reason  string
		message string
		digests []string
	}{
		{"policy without the feature", []string{`{components: [engine, decoder], policyRef: {name: slow, progression: rollingUpdate}}`}, "PlanInvalid",
			`groups[0].policyRef: RolloutPolicy "slow" can't be read: the manager found no RolloutPolicies in this cluster when it started; install their CRD and restart the manager, or write the progression into the group`,
			[]string{""}},
		{"a canary without steps", []string{`{components: [engine], canary: {}}`}, "PlanInvalid",
			`groups[0]: canary has no steps; the last one must have traffic 100`, []string{"rp1:805fae3ddf0f"}},
		{"two progressions", []string{`{components: [engine], blueGreen: {}, rollingUpdate: {}}`}, "PlanInvalid",
			`groups[0]: blueGreen and rollingUpdate are set together; keep one`, nil},
		{"no component", []string{`{components: []}`}, "PlanInvalid", `groups[0]: components is empty; name router, engine or decoder`, []string{blueGreen}},
		{"unknown component", []string{`{components: [gateway]}`}, "PlanInvalid", `groups[0]: component "gateway" does not exist; use router, engine or decoder`, []string{blueGreen}},
		{"component in two groups", []string{`{components: [engine, decoder]}`, `{components: [router, engine]}`}, "PlanInvalid",
			`groups[1]: component "engine" is in groups[0] already; name it once`, []string{blueGreen, blueGreen}},
		{"component twice in a group", []string{`{components: [engine, engine]}`}, "PlanInvalid", `groups[0]: component "engine" is in groups[0] already; name it once`, []string{blueGreen}},
	} {
		t.Run(c.name, func(t *testing.T) {
			gs := groups(t, c.groups...)
			r := Resolve(&v1beta1.RolloutSpec{Groups: gs})
			if r.Reason != c.reason || r.Message != c.message || !r.Parked() {
				t.Errorf("parked for %s: %s\nwant %s: %s", r.Reason, r.Message, c.reason, c.message)
			}
			// A parked plan still names every group, its members and its kind.
			if len(r.Plan.Groups) != len(gs) || len(r.Groups) != len(gs) {
				t.Fatalf("%d pinned and %d live groups of %d", len(r.Plan.Groups), len(r.Groups), len(gs))
			}
			for i := range gs {
				if diff := cmp.Diff(gs[i].Components, r.Plan.Groups[i].Group.Components); diff != "" {
					t.Errorf("members of groups[%d]:\n%s", i, diff)
				}
				if was, is := Kind(&gs[i]), Kind(&r.Plan.Groups[i].Group); was != is {
					t.Errorf("groups[%d]: pinned as %s, live %s", i, is, was)
				}
				if c.digests != nil && (r.Groups[i].ObservedDigest != c.digests[i] || r.Plan.Groups[i].PortableDigest != c.digests[i]) {
					t.Errorf("groups[%d]: digests %q and %q, want %q", i, r.Groups[i].ObservedDigest, r.Plan.Groups[i].PortableDigest, c.digests[i])
				}
			}
		})
	}
}

func live(t *testing.T, texts ...string) v1beta1.RolloutPlan {
	r := Resolve(&v1beta1.RolloutSpec{Groups: groups(t, texts...)})
	return r.Plan
}

func TestDrift(t *testing.T) {
	const (
		pair    = `{components: [engine, decoder]}`
		edited  = `{components: [engine, decoder], rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}`
		policy  = `{components: [engine, decoder], policyRef: {name: slow, progression: canary}}`
		router  = `{components: [router]}`
		applies = "; the edit applies at the next run (or via ome.io/rollout-repin)"
	)
	for _, c := range []struct {
		name         string
		pinned, live v1beta1.RolloutPlan
		reason, text string
	}{
		{"the same", live(t, pair), live(t, pair), "InSync", ""},
		{"spelled out", live(t, pair), live(t, `{components: [engine, decoder], blueGreen: {}}`), "InSync", ""},
		{"components and soak are no drift", live(t, pair), live(t, `{components: [engine], soak: 5m}`), "InSync", ""},
		{"progression", live(t, pair), live(t, edited), "SpecNewerThanRun", "groups[0]: live render rp1:a5f55b4d1e85 differs from pinned rp1:cca45ec1fb0f" + applies},
		{"second group", live(t, pair, router), live(t, pair, `{components: [router], rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}`), "SpecNewerThanRun",
			"groups[1]: live render rp1:a5f55b4d1e85 differs from pinned rp1:cca45ec1fb0f" + applies},
		{"policy", live(t, pair), live(t, policy), "PolicyNewerThanRun", "groups[0]: live render (unresolvable) differs from pinned rp1:cca45ec1fb0f" + applies},
		{"group added", live(t, pair), live(t, pair, router), "SpecNewerThanRun", "groups: live render has 2 and the run pinned 1" + applies},
		{"groups removed", live(t, pair), v1beta1.RolloutPlan{}, "SpecNewerThanRun", "groups: live render has 0 and the run pinned 1" + applies},
	} {
		t.Run(c.name, func(t *testing.T) {
			reason, text := DriftReason(c.pinned, c.live)
			if reason != c.reason || text != c.text {
				t.Errorf("%s: %s\nwant %s: %s", reason, text, c.reason, c.text)
			}
		})
	}
}
