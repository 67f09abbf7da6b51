package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// policies is a service that takes its progression from a RolloutPolicy.
type policies struct{ *pd }

func policiesOf(l *lab) policies {
	return policies{&pd{lab: l, ns: "policies", counts: map[string]int32{"engine": 2, "decoder": 2, "router": 1},
		rollout: `{"groups":[{"components":["engine","decoder"],"policyRef":{"name":"pace","progression":"rollingUpdate"}}]}`,
		// The lesser of a component's own budget and its group's counts.
		more: map[string]any{"lifecycle": strategy("SurgeThenDrain", "maxSurge", 2)}}}
}

// pace applies the policy, as a person would.
func (p policies) pace(ctx context.Context, t *testing.T, maxSurge int64) {
	t.Helper()
	p.apply(ctx, t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ome.io/v1beta1", "kind": "RolloutPolicy",
		"metadata": map[string]any{"namespace": p.ns, "name": "pace"},
		"spec":     map[string]any{"rollingUpdate": map[string]any{"maxSurge": maxSurge, "maxUnavailable": int64(0)}},
	}})
}

// refused: a default installation has no policies and says so; an administrator adds them.
func (p policies) refused(ctx context.Context, t *testing.T) {
	t.Helper()
	u := sampleService(t, "default", pdName, "", p.counts)
	if err := unstructured.SetNestedSlice(u.Object, []any{map[string]any{
		"components": []any{"engine", "decoder"}, "policyRef": map[string]any{"name": "pace", "progression": "rollingUpdate"},
	}}, "spec", "rollout", "groups"); err != nil {
		t.Fatal(err)
	}
	if err := p.install.Apply(ctx, []*unstructured.Unstructured{u}); err == nil || !strings.Contains(err.Error(), "(RolloutPolicyRefUnsupported)") {
		t.Errorf("a reference to a policy in a default installation: %v", err)
	}
	if out, code := p.run(ctx, t, "ome-lab", "kubectl", "apply", "-f", filepath.Join(checkout, "config", "components", "rolloutpolicy")); code != 0 {
		t.Fatalf("kubectl apply of the component: exit %d\n%s", code, out)
	}
}

// change: an edit of the policy in the middle of a run is drift until repin takes it into the run.
func (p policies) change(ctx context.Context, t *testing.T) {
	p.apply(ctx, t, namespace(p.ns))
	p.pace(ctx, t, 1)
	p.up(ctx, t, "v1", "v1")
	if out, code := p.ome(ctx, t, "rollout", "validate"); code != 0 {
		t.Errorf("rollout validate ended with %d:\n%s", code, out)
	}
	p.roll(ctx, t, "v2"+untold, "v2"+untold)
	p.starting(ctx, t, "engine", 1)
	p.pace(ctx, t, 2)
	p.until(ctx, t, "drift in the status", func(s *snapshot) []string {
		for _, c := range s.service.Status.Conditions {
			if c.Type == "RolloutPlanDrift" && c.Status == "True" {
				return nil
			}
		}
		return []string{fmt.Sprint(s.service.Status.Conditions)}
	})
	out, code := p.ome(ctx, t, "rollout", "explain")
	if code != 0 || !strings.Contains(out, "drift (") && !strings.Contains(out, "DRIFT") {
		t.Errorf("rollout explain ended with %d:\n%s", code, out)
	}
	s := p.look(ctx, t)
	if n := len(s.podsOf("engine", s.hashOf("engine"))); n != 1 {
		t.Errorf("%d new engines: the edit took effect in the run that is open", n)
	}
	if out, code := p.ome(ctx, t, "rollout", "repin", "--yes", "--retry-on-status-change"); code != 0 || !strings.Contains(out, "goes from rp1:") {
		t.Fatalf("rollout repin ended with %d:\n%s", code, out)
	}
	for _, comp := range []string{"engine", "decoder"} {
		p.starting(ctx, t, comp, 2)
		p.listen(ctx, t, comp)
	}
	p.settle(ctx, t)
	if got := p.events(ctx, t, p.ns, "RolloutPlanRepinned"); len(got) != 1 {
		t.Errorf("RolloutPlanRepinned events %q, want one", got)
	}
}
