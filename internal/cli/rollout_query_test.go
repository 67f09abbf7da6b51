package cli

import (
	"strings"
	"testing"
)

// TestRolloutQuery: the mode that asks the queries of a canary, as far as a reader's rights
// and this computer's address go; the answers themselves are tested in internal/prom.
func TestRolloutQuery(t *testing.T) {
	namespace := newNamespace(t)
	f := sampled()
	group := canaryGroup(canarySteps(), "engine", "decoder")
	group["canary"].(map[string]any)["prometheus"] = map[string]any{"serverAddress": "http://127.0.0.1:1"}
	pin(f, pinnedCanary(group))
	f.store(t, namespace)
	none := newNamespace(t)
	settled().store(t, none)
	for _, c := range []struct {
		words, message string
		code           int
		has            []string
	}{
		{"chat -n " + namespace + " --query", "some analysis queries gave no value to judge", 2, []string{"GROUP   STEP   METRIC", "0       2      error-rate", "Inconclusive", "127.0.0.1"}},
		{"chat -n " + namespace + " --query -o json", "some analysis queries gave no value to judge", 2, []string{`"kind": "RolloutQueryReport"`, `"usable": false`, `"verdict": "Inconclusive"`, `"query": "up"`}},
		{"chat -n " + none + " --query", "the service has no analysis to query", 1, nil},
		{"chat -n " + namespace + " --query -o name", "output must be table, wide, json or yaml", 1, nil},
		{"-f chat.yaml --query", "--query needs a stored inference service", 1, nil},
	} {
		r := readRun{}.do(t.Context(), append([]string{"rollout", "validate"}, strings.Fields(c.words)...)...)
		if r.code != c.code || errorLine(r.stderr) != c.message {
			t.Errorf("%s: exit %d, want %d; error %q, want %q", c.words, r.code, c.code, errorLine(r.stderr), c.message)
		}
		for _, text := range c.has {
			if !strings.Contains(r.stdout, text) {
				t.Errorf("%s: no %q in:\n%s", c.words, text, r.stdout)
			}
		}
		if c.code == 2 && !strings.Contains(r.stderr, "can't be read (NotFound") {
			t.Errorf("%s: there are no settings, and it isn't told: %s", c.words, r.stderr)
		}
	}
}
