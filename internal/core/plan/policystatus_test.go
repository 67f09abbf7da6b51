package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

func TestPolicyStatus(t *testing.T) {
	start := time.Date(2026, 9, 28, 14, 0, 0, 0, time.UTC)
	bound := func(name string) bool { return name == "main" }
	stored := func(spec string) *v1beta1.RolloutPolicy {
		return &v1beta1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 4}, Spec: policySpec(t, spec)}
	}
	const canary = `{canary: {prometheus: {providerRef: {name: %s}}, steps: [{capacity: "100%%", traffic: 100}]}}`
	for _, c := range []struct {
		name, spec, problem string
		attached            int32
		want                []string
	}{
		{"valid and unused", `{blueGreen: {}}`, "", 0, []string{"Ready True BodyValid: groups can use it", "InUse False NoConsumers: no group of this namespace refers to it"}},
		{"valid and used", `{blueGreen: {}}`, "", 2, []string{"Ready True BodyValid: groups can use it", "InUse True Attached: groups of this namespace refer to it"}},
		{"provider bound", fmt.Sprintf(canary, "main"), "", 1, []string{"Ready True BodyValid: groups can use it", "InUse True Attached: groups of this namespace refer to it"}},
		{"provider unbound", fmt.Sprintf(canary, "other"), "", 1, []string{
			`Ready True ProviderUnbound: metric provider "other" is not bound in this cluster's metricProviders configuration; groups that use this policy wait until it is`,
			"InUse True Attached: groups of this namespace refer to it"}},
		{"invalid, and its provider unbound", fmt.Sprintf(canary, "other"), "spec.canary is wrong", 0, []string{
			"Ready False BodyInvalid: spec.canary is wrong", "InUse False NoConsumers: no group of this namespace refers to it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := stored(c.spec)
			got := PolicyStatus(p, c.problem, c.attached, bound, start)
			var words []string
			for _, cond := range got.Conditions {
				words = append(words, fmt.Sprintf("%s %s %s: %s", cond.Type, cond.Status, cond.Reason, cond.Message))
				if cond.ObservedGeneration != 4 || !cond.LastTransitionTime.Time.Equal(start) {
					t.Errorf("%+v", cond)
				}
			}
			if diff := cmp.Diff(c.want, words); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if digest, _ := PolicyDigest(&p.Spec); got.ObservedGeneration != 4 || got.AttachedGroups != c.attached || got.PortableDigest != digest || digest == "" {
				t.Errorf("%+v", got)
			}

			// Worked out again it is the same, later too.
			p.Status = got
			if diff := cmp.Diff(got, PolicyStatus(p, c.problem, c.attached, bound, start.Add(time.Hour))); diff != "" {
				t.Errorf("an hour later (-before +after):\n%s", diff)
			}
		})
	}

	// The time of a condition moves with its status, and what others wrote stays.
	p := stored(`{blueGreen: {}}`)
	p.Status = PolicyStatus(p, "", 0, bound, start)
	theirs := metav1.Condition{Type: "Approved", Status: metav1.ConditionTrue, Reason: "ByHand"}
	p.Status.Conditions = append([]metav1.Condition{theirs}, p.Status.Conditions...)
	later := start.Add(time.Hour)
	next := PolicyStatus(p, "", 1, bound, later)
	if len(next.Conditions) != 3 || !cmp.Equal(next.Conditions[0], theirs) || !next.Conditions[1].LastTransitionTime.Time.Equal(start) || !next.Conditions[2].LastTransitionTime.Time.Equal(later) {
		t.Errorf("%+v", next.Conditions)
	}
	if p.Status.Conditions[2].Status != metav1.ConditionFalse {
		t.Error("the status that was read was written to")
	}
}

func TestAttached(t *testing.T) {
	spec := &v1beta1.RolloutSpec{Groups: groups(t,
		`{components: [engine], policyRef: {name: slow, progression: blueGreen}}`,
		`{components: [decoder], blueGreen: {}, policyRef: {name: slow, progression: blueGreen, kind: RolloutPolicy}}`,
		`{components: [router], policyRef: {name: slow, progression: blueGreen, kind: ClusterRolloutPolicy}}`)}
	if got := Attached(spec, "slow"); got != 2 {
		t.Errorf("%d groups refer to it, want the one that uses it and the one that outranks it", got)
	}
	if got := Attached(spec, "other") + Attached(nil, "slow"); got != 0 {
		t.Errorf("%d groups refer to what they don't name", got)
	}
}
