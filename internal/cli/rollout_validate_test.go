package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ome.io/ome/internal/testenv"
)

// TestRolloutValidate: a stored service under the reader role.
func TestRolloutValidate(t *testing.T) {
	s := rolloutScene(t)
	stamped := settled()
	stamped.service.SetName("calm")
	set(stamped.service, []any{map[string]any{"type": "RolloutPlanReady", "status": "True", "reason": "NoActiveRun", "lastTransitionTime": "2026-09-28T14:00:00Z"}}, "status", "conditions")
	create(t, stamped.service, s.namespace)
	s.name(stamped.service, "<calm>")
	behind := settled()
	behind.service.SetName("behind")
	set(behind.service, map[string]any{"observedGeneration": int64(7)}, "status", "rollout")
	set(behind.service, []any{map[string]any{"type": "RolloutPlanReady", "status": "True", "reason": "NoActiveRun", "lastTransitionTime": "2026-09-28T14:00:00Z"}}, "status", "conditions")
	create(t, behind.service, s.namespace)
	s.name(behind.service, "<behind>")
	broken := rolling()
	broken.service.SetName("broken")
	set(broken.service, map[string]any{"groups": []any{map[string]any{"components": []any{"engine", "router"}, "soak": "5m"}}}, "spec", "rollout")
	create(t, broken.service, s.namespace)
	s.name(broken.service, "<broken>")
	const invalid, unverified = "rollout validation found invalid configuration", "rollout validation could not verify all prerequisites"
	s.check(t, "validate", []rolloutRead{
		{"healthy", "", false, "rollout validate calm", 0, ""},
		{"healthy on a terminal", "", true, "rollout validate calm", 0, ""},
		{"in a run", "", false, "rollout validate chat", 0, ""},
		{"behind", "", false, "rollout validate behind", 2, unverified},
		{"invalid", "", false, "rollout validate broken", 2, invalid},
		{"invalid wide", "", false, "rollout validate broken -o wide", 2, invalid},
		{"invalid json", "", false, "rollout validate broken -o json", 2, invalid},
		{"not found", "", false, "rollout validate nope", 1, `get InferenceService: inferenceservices.ome.io "nope" not found`},
		{"name and file", "", false, "rollout validate chat -f x.yaml", 1, "an inference service and a file can't be validated together"},
		{"neither", "", false, "rollout validate", 1, "exactly one inference service is required"},
		{"bad output", "", false, "rollout validate chat -o name", 1, "output must be table, wide, json or yaml"},
	})
	if r := (readRun{out: brokenWriter{}}).do(t.Context(), "rollout", "validate", "calm", "-n", s.namespace); r.code != 1 || errorLine(r.stderr) != "write rollout validate report failed" {
		t.Errorf("broken stdout: exit %d, %s", r.code, r.stderr)
	}
}

// TestRolloutValidateFile: offline, so no kubeconfig that works is needed and no
// request is sent.
func TestRolloutValidateFile(t *testing.T) {
	const head = "apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata: {name: chat, namespace: prod}\n"
	const good = head + "spec: {deploymentMode: OMENative, model: {name: m1}, runtime: {name: rt1}, engine: {}, decoder: {}, rollout: {groups: [{components: [engine, decoder]}]}}\n"
	refers := strings.Replace(good, "decoder]}", "decoder], policyRef: {name: slow, progression: rollingUpdate}}", 1)
	policy := func(spec string) string {
		return "apiVersion: ome.io/v1beta1\nkind: RolloutPolicy\nmetadata: {name: slow, namespace: prod}\nspec: {" + spec + "}\n---\n"
	}
	const invalid, unreadable = "rollout validation found invalid configuration", "file has no InferenceService that can be read"
	for _, c := range []struct {
		name, text, flags string
		code              int
		message, says     string
	}{
		{"good", good, "", 0, "", "Note: not checked offline: the ranges"},
		{"good json", good, " -o json", 0, "", ""},
		{"among others", "apiVersion: v1\nkind: Namespace\nmetadata: {name: prod}\n---\n" + good + "---\n# nothing\n", "", 0, "", "Note: 1 objects of other kinds are not looked at."},
		{"refused", head + "spec: {deploymentMode: OMENative, model: {name: m1}, runtime: {name: rt1}, engine: {}, decoder: {}, rollout: {groups: [{components: [engine], soak: 5m, rollingUpdate: {maxSurge: 120%}}, {components: [engine, router]}]}}\n", "", 2, invalid,
			`spec.rollout.groups[0].rollingUpdate.maxSurge: "120%" is not a percentage`},
		{"misspelt field", strings.Replace(good, "engine: {}", "enigne: {}", 1), "", 2, invalid, "correct the spelling or remove it"},
		{"two progressions", strings.Replace(good, "decoder]}", "decoder], blueGreen: {}, rollingUpdate: {}}", 1), "", 2, invalid,
			"spec.rollout: no run could open: groups[0]: blueGreen and rollingUpdate are set together; keep one (PlanInvalid)"},
		{"wrong type", strings.Replace(good, "engine: {}", "engine: {minReplicas: many}", 1), "", 1, unreadable, `spec.engine.minReplicas: "many": want a whole number`},
		{"policy beside it", policy("rollingUpdate: {maxSurge: 1}") + refers, "", 0, "", "whether the cluster has RolloutPolicies"},
		{"policy elsewhere", refers, "", 0, "", "the policies that it names exist"},
		{"policy of another kind", policy("blueGreen: {}") + refers, "", 2, invalid,
			`RolloutPolicy "slow" holds blueGreen and the group expects rollingUpdate; change policyRef.progression, or refer to another policy (ProgressionMismatch)`},
		{"broken policy", policy("rollingUpdate: {maxSurge: -1}") + refers, "", 2, invalid, "RolloutPolicy slow: spec.rollingUpdate.maxSurge: -1 is negative; use 0 or more (InvalidRollingUpdateInteger)"},
		{"policy of another namespace", strings.Replace(policy("blueGreen: {}"), "prod", "test", 1) + refers, "", 0, "", "the policies that it names exist"},
		{"misspelt policy", policy("rolingUpdate: {}") + refers, "", 1, unreadable, `unknown field "spec.rolingUpdate"`},
		{"reserved kind", strings.Replace(refers, "name: slow", "kind: ClusterRolloutPolicy, name: slow", 1), "", 2, invalid, `"ClusterRolloutPolicy" is reserved`},
		{"two services", good + "---\n" + good, "", 1, unreadable, "it holds more than one"},
		{"no service", "apiVersion: v1\nkind: Namespace\nmetadata: {name: prod}\n", "", 1, unreadable, "no document has apiVersion ome.io/v1beta1"},
		{"no name", strings.Replace(good, "name: chat, ", "", 1), "", 1, unreadable, "metadata.name is missing"},
		{"no YAML", "a: [", "", 1, unreadable, "document 1: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "service.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			r := readRun{user: "nobody-listens"}.do(t.Context(), append([]string{"rollout", "validate", "-f", path}, strings.Fields(c.flags)...)...)
			if r.code != c.code || errorLine(r.stderr) != c.message || !strings.Contains(r.stderr, c.says) {
				t.Errorf("exit %d, want %d; error %q, want %q; stderr lacks %q:\n%s", r.code, c.code, errorLine(r.stderr), c.message, c.says, r.stderr)
			}
			if c.code == 1 && r.stdout != "" || len(r.requests) > 0 {
				t.Errorf("stdout %q, requests %q", r.stdout, r.requests)
			}
			r.stderr = strings.ReplaceAll(r.stderr, path, "<file>")
			(&scene{namespace: "<ns>"}).golden(t, "validate", "file "+c.name, r)
		})
	}
	if r := (readRun{}).do(t.Context(), "rollout", "validate", "-f", filepath.Join(t.TempDir(), "absent.yaml")); r.code != 1 || errorLine(r.stderr) != "read file failed" {
		t.Errorf("no file: exit %d, %s", r.code, r.stderr)
	}
	big := filepath.Join(t.TempDir(), "big.yaml")
	if err := os.WriteFile(big, make([]byte, maxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := (readRun{}).do(t.Context(), "rollout", "validate", "-f", big); r.code != 1 || errorLine(r.stderr) != "read file failed" {
		t.Errorf("too big: exit %d, %s", r.code, r.stderr)
	}
}

// TestSamplesAreValid: what the documentation starts from passes.
func TestSamplesAreValid(t *testing.T) {
	for _, name := range []string{"mistral-pd.yaml", "mistral-pd-v2.yaml"} {
		r := readRun{}.do(t.Context(), "rollout", "validate", "-f", filepath.Join(testenv.Root(), "config", "samples", name))
		if r.code != 0 {
			t.Errorf("%s: exit %d, %s%s", name, r.code, r.stdout, r.stderr)
		}
	}
}
