package validate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
)

func policyOf(t *testing.T, spec string) *v1beta1.RolloutPolicy {
	t.Helper()
	p := &v1beta1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: "slow", Namespace: "prod"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatalf("%v\n%s", err, spec)
	}
	return p
}

const judged = `{interval: 1m, failureLimit: 1, metrics: [{name: errors, query: q, operator: LT, threshold: "1"}]}`

func TestRolloutPolicy(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		max        int32
		want       []string
	}{
		{"blue-green", `{blueGreen: {}}`, 0, nil},
		{"rolling update", `{rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}`, 0, nil},
		{"rolling update without budgets", `{rollingUpdate: {}}`, 0, nil},
		{"canary by percentage", `{canary: {steps: [{capacity: "25%", traffic: 25, pause: {}}, {capacity: "100%", traffic: 100}]}}`, 0, nil},
		{"canary with analysis", `{canary: {prometheus: {providerRef: {name: main}, headers: {X-Scope: a}}, steps: [{capacity: "25%", traffic: 25, analysis: ` + judged + `}, {capacity: "100%", traffic: 100}]}}`, 0, nil},
		{"nothing", `{}`, 0, []string{"spec: exactly one of canary, blueGreen, or rollingUpdate must be set (RolloutPolicyInvalid)"}},
		{"two progressions", `{blueGreen: {}, rollingUpdate: {}}`, 0, []string{"spec: exactly one of canary, blueGreen, or rollingUpdate must be set (RolloutPolicyInvalid)"}},
		{"negative budget", `{rollingUpdate: {maxSurge: -1}}`, 0, []string{"spec.rollingUpdate.maxSurge: -1 is negative; use 0 or more (InvalidRollingUpdateInteger)"}},
		{"quoted count", `{rollingUpdate: {maxUnavailable: "1"}}`, 0, []string{`spec.rollingUpdate.maxUnavailable: "1" is not a percentage from "0%" to "100%"; a count is written without quotes (InvalidRollingUpdatePercent)`}},
		{"no budget at all", `{rollingUpdate: {maxSurge: 0, maxUnavailable: "0%"}}`, 0, []string{
			"spec.rollingUpdate: maxSurge 0 and maxUnavailable 0% are both zero, so no Instance could ever move; set one of them above zero (ZeroBudgetPacingUnstartable)"}},
		{"count for a capacity", `{canary: {steps: [{capacity: 1, traffic: 10}, {capacity: "100%", traffic: 100}]}}`, 0, []string{
			`spec.canary.steps[0].capacity: 1 is a count, which fits services of one size only; use a percentage such as "25%" (RolloutPolicyInvalid)`}},
		{"rules of an inline canary", `{canary: {steps: [{capacity: "50%", traffic: 50}]}}`, 0, []string{
			`spec.canary.steps[0].traffic: 50 in the last step; it must be 100 (CanaryInvalid)`,
			`spec.canary.steps[0].capacity: "50%" in the last step; it must be "100%" (CanaryInvalid)`}},
		{"rules of an inline analysis", `{canary: {prometheus: {providerRef: {name: main}}, steps: [{capacity: "100%", traffic: 100, analysis: {interval: 0s, failureLimit: 1, metrics: [{name: errors, query: q, operator: LT, threshold: few}]}}]}}`, 0, []string{
			"spec.canary.steps[0].analysis: interval must be > 0 (AnalysisInvalid)",
			`spec.canary.steps[0].analysis.metrics[0] ("errors"): threshold "few" must be numeric (AnalysisInvalid)`}},
		{"address and Secret", `{canary: {prometheus: {serverAddress: "http://p", authRef: {name: s, key: k}}, steps: [{capacity: "100%", traffic: 100}]}}`, 0, []string{
			"spec.canary.prometheus.serverAddress is not allowed in a policy body; bind the server under metricProviders in the operator's settings and name it in providerRef (RolloutPolicyInvalid)",
			"spec.canary.prometheus.authRef is not allowed in a policy body; the Secret belongs to the binding under metricProviders in the operator's settings (RolloutPolicyInvalid)"}},
		{"analysis of nothing", `{canary: {steps: [{capacity: "50%", traffic: 50, analysis: ` + judged + `}, {capacity: "100%", traffic: 100}]}}`, 0, []string{
			"spec.canary.prometheus.providerRef is required when any step declares analysis; name a server of metricProviders in the operator's settings (RolloutPolicyInvalid)"}},
		{"analysis of a default", `{canary: {prometheus: {headers: {a: b}}, steps: [{capacity: "100%", traffic: 100, analysis: ` + judged + `}]}}`, 0, []string{
			"spec.canary.prometheus.providerRef is required when any step declares analysis; name a server of metricProviders in the operator's settings (RolloutPolicyInvalid)"}},
		{"as large as may be", `{rollingUpdate: {maxSurge: 1}}`, int32(len(`{"rollingUpdate":{"maxSurge":1}}`)), nil},
		{"too large", `{rollingUpdate: {maxSurge: 11}}`, int32(len(`{"rollingUpdate":{"maxSurge":1}}`)), []string{
			"spec: the progression takes 33 bytes and rollout.maxPinnedPlanBytes allows 32; use fewer steps or shorter queries (PlanTooLarge)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := policyOf(t, c.spec)
			opts := Options{PoliciesServed: true, MaxPlanBytes: c.max}
			var got []string
			for _, problem := range RolloutPolicy(p, nil, opts).Errors {
				got = append(got, problem.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			relabelled := p.DeepCopy()
			relabelled.Labels = map[string]string{"team": "a"}
			if r := RolloutPolicy(relabelled, p, opts); !r.OK() {
				t.Errorf("stored, it refuses another label: %s", r.Denial())
			}
			gone := p.DeepCopy()
			gone.DeletionTimestamp = &metav1.Time{}
			if r := RolloutPolicy(gone, nil, opts); !r.OK() {
				t.Errorf("on its way out, it keeps its finalizers: %s", r.Denial())
			}
		})
	}
}

func TestPolicyAnnotations(t *testing.T) {
	annotated := func(key, value string) *v1beta1.RolloutPolicy {
		p := policyOf(t, `{blueGreen: {}}`)
		if key != "" {
			p.Annotations = map[string]string{key: value}
		}
		return p
	}
	for _, c := range []struct{ key, value, denial, warning string }{
		{"ome.io/allow-in-use-delete", "true", "", ""},
		{"ome.io/allow-in-use-delete", "yes", "", `metadata.annotations[ome.io/allow-in-use-delete]: "yes" allows nothing; only "true" does`},
		{"ome.io/allow-in-use-delet", "true", "metadata.annotations[ome.io/allow-in-use-delet]: no such annotation; did you mean ome.io/allow-in-use-delete?", ""},
		{"example.com/owner", "a", "", ""},
	} {
		r := RolloutPolicy(annotated(c.key, c.value), annotated("", ""), Options{})
		if r.Denial() != c.denial || strings.Join(r.WarningTexts(), "; ") != c.warning {
			t.Errorf("%s=%s: refused %q, warned %q", c.key, c.value, r.Denial(), r.WarningTexts())
		}
		if r := RolloutPolicy(annotated(c.key, c.value), annotated(c.key, c.value), Options{}); !r.OK() || len(r.Warnings) > 0 {
			t.Errorf("%s=%s, stored: %s", c.key, c.value, verdict(r))
		}
	}
}

func TestPolicyInUse(t *testing.T) {
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("chat-%d", i)
	}
	slow, slower, green := policyOf(t, `{rollingUpdate: {maxSurge: 1}}`), policyOf(t, `{rollingUpdate: {maxSurge: 2}}`), policyOf(t, `{blueGreen: {}}`)
	allowed := slow.DeepCopy()
	allowed.Annotations = map[string]string{"ome.io/allow-in-use-delete": "true"}
	refused := slow.DeepCopy()
	refused.Annotations = map[string]string{"ome.io/allow-in-use-delete": "false"}
	const delete1 = `RolloutPolicy "slow" is referenced by 1 InferenceService(s): chat; remove the refs first, or set the ome.io/allow-in-use-delete="true" annotation to force deletion`
	for _, c := range []struct {
		name            string
		got             Result
		denial, warning string
	}{
		{"edit", PolicyUpdate(slower, slow, []string{"chat", "code"}), "",
			"spec: 2 InferenceService(s) refer to: chat, code; open runs keep what they pinned, and each takes this at its next run, or by repin"},
		{"edit of one that nobody uses", PolicyUpdate(green, slow, nil), "", ""},
		{"no edit", PolicyUpdate(slow, slow.DeepCopy(), []string{"chat"}), "", ""},
		{"another kind", PolicyUpdate(green, slow, []string{"chat"}),
			"spec: rollingUpdate to blueGreen changes the kind of a policy that 1 InferenceService(s) refer to: chat; create a new policy and refer to that (RolloutPolicyInvalid)", ""},
		{"delete", PolicyDelete(slow, []string{"chat"}), delete1, ""},
		{"delete of one that nobody uses", PolicyDelete(slow, nil), "", ""},
		{"delete, allowed", PolicyDelete(allowed, []string{"chat"}), "", ""},
		{"delete, not allowed", PolicyDelete(refused, []string{"chat"}), delete1, ""},
		{"delete with many users", PolicyDelete(slow, many),
			`RolloutPolicy "slow" is referenced by 12 InferenceService(s): chat-0, chat-1, chat-2, chat-3, chat-4, chat-5, chat-6, chat-7, chat-8, chat-9 and 2 more; remove the refs first, or set the ome.io/allow-in-use-delete="true" annotation to force deletion`, ""},
	} {
		if c.got.Denial() != c.denial || strings.Join(c.got.WarningTexts(), "; ") != c.warning {
			t.Errorf("%s:\nrefused %s\nwant    %s\nwarned %q\nwant   %q", c.name, c.got.Denial(), c.denial, c.got.WarningTexts(), c.warning)
		}
	}
}

// TestPolicyRefs: what a service may refer to depends on the installation.
func TestPolicyRefs(t *testing.T) {
	refers := func(kind string) *v1beta1.InferenceService {
		s := sample(t)
		s.Spec.Rollout = &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{{
			Components: []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent},
			PolicyRef:  &v1beta1.RolloutPolicyRef{Name: "slow", Progression: v1beta1.ProgressionRollingUpdate, Kind: kind},
		}}}
		return s
	}
	inline := refers("")
	inline.Spec.Rollout.Groups[0].PolicyRef = nil
	inline.Spec.Rollout.Groups[0].RollingUpdate = &v1beta1.GroupRollingUpdate{MaxSurge: num(11)}
	const off = "spec.rollout.groups[0].policyRef: RolloutPolicy is off in this installation; set canary, blueGreen or rollingUpdate in the group (RolloutPolicyRefUnsupported)"
	for _, c := range []struct {
		name   string
		s, old *v1beta1.InferenceService
		opts   Options
		denial string
	}{
		{"off", refers("RolloutPolicy"), nil, Options{}, off},
		{"off, and stored", refers(""), refers(""), Options{}, ""},
		{"off, and new in the service", refers(""), sample(t), Options{}, off},
		{"on", refers("RolloutPolicy"), nil, Options{PoliciesServed: true}, ""},
		{"on, kind by default", refers(""), nil, Options{PoliciesServed: true}, ""},
		{"on, reserved kind", refers("ClusterRolloutPolicy"), nil, Options{PoliciesServed: true},
			`spec.rollout.groups[0].policyRef.kind: "ClusterRolloutPolicy" is reserved; use RolloutPolicy, of the service's namespace (RolloutPolicyRefUnsupported)`},
		{"inline and too large", inline, nil, Options{MaxPlanBytes: 32},
			"spec.rollout.groups[0]: the progression takes 33 bytes and rollout.maxPinnedPlanBytes allows 32; use fewer steps or shorter queries (PlanTooLarge)"},
		{"inline and too large, stored", inline, inline.DeepCopy(), Options{MaxPlanBytes: 32}, ""},
		{"inline, no cap", inline, nil, Options{}, ""},
	} {
		if got := InferenceService(c.s, c.old, c.opts).Denial(); got != c.denial {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.denial)
		}
	}
}
