package cli

import "testing"

// TestCanaryReads: what people see of a canary at an analysis gate and of a rejected one.
func TestCanaryReads(t *testing.T) {
	for name, f := range map[string]*fixture{"analysis": sampled(), "rejected": rejected()} {
		s := &scene{namespace: newNamespace(t)}
		set(f.service, map[string]any{}, "status", "components", "decoder")
		f.store(t, s.namespace)
		s.name(f.service, "<service>")
		s.check(t, "canary", []rolloutRead{
			{name + " status", "", true, "rollout status chat", 0, ""},
			{name + " status in a pipe", "", false, "rollout status chat", 0, ""},
			{name + " explain", "", true, "rollout explain chat", 0, ""},
			{name + " explain json", "", false, "rollout explain chat -o json", 0, ""},
			{name + " history", "", true, "rollout history chat", 0, ""},
		})
	}
}
