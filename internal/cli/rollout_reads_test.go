package cli

import (
	"strings"
	"testing"
)

// rolloutScene is a service in the middle of a run that waits, whose spec changed since.
func rolloutScene(t *testing.T) *scene {
	s := &scene{namespace: newNamespace(t)}
	f := rolling()
	set(f.service, map[string]any{"groups": []any{map[string]any{"components": []any{"engine", "decoder"}, "rollingUpdate": map[string]any{"maxSurge": int64(1)}}}}, "spec", "rollout")
	set(f.service, []any{
		map[string]any{"type": "RolloutPlanReady", "status": "True", "reason": "Pinned", "message": "run chat-9c1e44ab07d2", "lastTransitionTime": "2026-09-28T14:00:00Z"},
		map[string]any{"type": "RolloutPlanDrift", "status": "True", "reason": "SpecNewerThanRun", "message": "groups[0]: live render rp1:18cc26dfed53 differs from pinned rp1:cca45ec1fb0f", "lastTransitionTime": "2026-09-28T14:02:00Z"},
	}, "status", "conditions")
	set(f.service, map[string]any{"engine": map[string]any{
		"latestReadyRevision": "chat-engine-rev-bbbbbbbb", "latestRolledoutRevision": "chat-engine-rev-aaaaaaaa",
		"lifecycle": map[string]any{"replicas": int64(3), "readyReplicas": int64(2), "servingReplicas": int64(2), "availableReplicas": int64(2),
			"updatedReplicas": int64(1), "updatedReadyReplicas": int64(0), "currentRevision": "chat-engine-aaaaaaaa", "updateRevision": "chat-engine-bbbbbbbb",
			"rolloutHold": map[string]any{"gate": "Budget", "reason": "per-Component surge budget 1 exhausted (would become 2), token=abcdef0123456789", "target": "chat-engine-bbbbbbbb", "since": "2026-09-28T14:01:00Z"}},
	}, "decoder": map[string]any{}}, "status", "components")
	set(f.service, []any{map[string]any{"runID": "chat-aaaa44ab07d2", "outcome": "RolledBack", "openedAt": "2026-09-27T10:00:00Z", "closedAt": "2026-09-27T11:00:00Z", "cause": "superseded by an edit"}}, "status", "rollout", "history")
	set(f.service, map[string]any{"runID": "chat-bbbb44ab07d2", "outcome": "Completed", "openedAt": "2026-09-28T10:00:00Z", "closedAt": "2026-09-28T11:00:00Z",
		"targetRevisions": []any{map[string]any{"component": "engine", "revision": "aaaaaaaa"}},
		"groups":          []any{map[string]any{"source": "Inline", "portableDigest": "rp1:cca45ec1fb0f"}}}, "status", "rollout", "lastRun")
	f.store(t, s.namespace)
	s.name(f.service, "<service>")
	return s
}

type rolloutRead struct {
	name     string
	user     string
	terminal bool
	words    string
	code     int
	message  string
}

// check runs reads against the API server under the reader role.
func (s *scene) check(t *testing.T, folder string, cases []rolloutRead) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := readRun{user: c.user, terminal: c.terminal}.do(t.Context(), append(strings.Fields(c.words), "-n", s.namespace)...)
			if r.code != c.code || errorLine(r.stderr) != c.message {
				t.Errorf("exit %d, want %d; error %q, want %q", r.code, c.code, errorLine(r.stderr), c.message)
			}
			if c.code == 1 && r.stdout != "" {
				t.Errorf("stdout after an error: %s", r.stdout)
			}
			if strings.Contains(r.stdout+r.stderr, "abcdef0123456789") {
				t.Error("shows a secret")
			}
			if len(r.requests) > 1 || len(r.requests) == 1 && !strings.HasPrefix(r.requests[0], "GET ") {
				t.Errorf("sent %q", r.requests)
			}
			s.golden(t, folder, c.name, r)
		})
	}
}

func TestRolloutExplain(t *testing.T) {
	s := rolloutScene(t)
	s.check(t, "explain", []rolloutRead{
		{"table", "", false, "rollout explain chat", 0, ""},
		{"table on a terminal", "", true, "rollout explain chat", 0, ""},
		{"wide", "", false, "rollout explain chat -o wide", 0, ""},
		{"json", "", false, "rollout explain chat -o json", 0, ""},
		{"yaml", "", false, "rollout explain chat -o yaml", 0, ""},
		{"json on a terminal", "", true, "rollout explain chat -o json", 0, ""},
		{"not found", "", false, "rollout explain nope", 1, `get InferenceService: inferenceservices.ome.io "nope" not found`},
		{"forbidden", "stranger", false, "rollout explain chat", 1,
			`get InferenceService: inferenceservices.ome.io "chat" is forbidden: User "stranger" cannot get resource "inferenceservices" in API group "ome.io" in the namespace "` + s.namespace + `"`},
		{"bad output", "", false, "rollout explain chat -o name", 1, "output must be table, wide, json or yaml"},
		{"no argument", "", false, "rollout explain", 1, "exactly one inference service is required"},
	})
	for _, terminal := range []bool{false, true} {
		r := readRun{out: brokenWriter{}, terminal: terminal}.do(t.Context(), "rollout", "explain", "chat", "-n", s.namespace)
		if r.code != 1 || errorLine(r.stderr) != "write rollout explain report failed" {
			t.Errorf("broken stdout: exit %d, %s", r.code, r.stderr)
		}
	}
}

func TestRolloutHistory(t *testing.T) {
	s := rolloutScene(t)
	s.check(t, "history", []rolloutRead{
		{"table", "", false, "rollout history chat", 0, ""},
		{"table on a terminal", "", true, "rollout history chat", 0, ""},
		{"wide", "", false, "rollout history chat -o wide", 0, ""},
		{"json", "", false, "rollout history chat -o json", 0, ""},
		{"not found", "", false, "rollout history nope", 1, `get InferenceService: inferenceservices.ome.io "nope" not found`},
		{"bad name", "", false, "rollout history Chat", 1, "invalid inference service name"},
		{"bad output", "", false, "rollout history chat -o name", 1, "output must be table, wide, json or yaml"},
	})
	if r := (readRun{out: brokenWriter{}}).do(t.Context(), "rollout", "history", "chat", "-n", s.namespace); r.code != 1 || errorLine(r.stderr) != "write rollout history report failed" {
		t.Errorf("broken stdout: exit %d, %s", r.code, r.stderr)
	}
}
