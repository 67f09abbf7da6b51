package cli

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"ome.io/ome/api/v1beta1"
)

// The strings of release-held.
const (
	notReleasable  = "action refused: no exact current valid Held retry block is releasable"
	releasePending = "action refused: a release-held mailbox is already present; inspect instance retry-blocks"
	badComponent   = "component must be engine, decoder or router"
	badRevision    = "revision must be a full target revision or eight lowercase hex"
)

func releaseCases() []*actionCase {
	var cases []*actionCase
	for _, group := range [][]*actionCase{releaseFlags(), releaseReplicas(), releaseBlocks()} {
		for _, c := range group {
			c.verb = "release-held"
			cases = append(cases, c)
		}
	}
	return cases
}

func releaseFlags() []*actionCase {
	bare := func(name, message string, flags ...string) *actionCase {
		return &actionCase{name: name, bare: true, line: append([]string{"chat", "-n", "prod", "--yes"}, flags...), code: 1, message: message}
	}
	cases := []*actionCase{
		bare("no component", badComponent, "--revision=bbbbbbbb"),
		bare("unknown component", badComponent, "--component=predictor", "--revision=bbbbbbbb"),
		bare("no revision", badRevision, "--component=engine"),
	}
	for _, r := range []string{"bbbbbbb", "bbbbbbbbb", "BBBBBBBB", "gggggggg", "chat-engine-", "chat-engine-bbbb", "Chat-engine-bbbbbbbb", "-bbbbbbbb", "bbbbbbbb-"} {
		cases = append(cases, bare("revision "+r, badRevision, "--component=engine", "--revision="+r))
	}
	return cases
}

// releaseRefusal is a case that a change to the held service makes refused.
func releaseRefusal(message, name, says string, edit func(*fixture)) *actionCase {
	return &actionCase{name: name, fixture: held().with(edit), code: 1, message: message, says: says}
}

// releaseReplicas: the replicas must be the service's own, current, and readable.
func releaseReplicas() []*actionCase {
	no := func(name, says string, edit func(*fixture)) *actionCase {
		return releaseRefusal(notReleasable, name, says, edit)
	}
	decoder := func(v any, path ...string) func(*fixture) {
		return func(f *fixture) { set(f.replicas["decoder"], v, path...) }
	}
	mark := func(v string) map[string]any { return map[string]any{"ome.io/controller-write": v} }
	router := no("component not declared", "isn't an OMENative component", func(*fixture) {})
	router.bare, router.flags = true, []string{"--yes", "--component=router", "--revision=bbbbbbbb"}
	pending := func(name, value string) *actionCase {
		return releaseRefusal(releasePending, name, "ome.io/release-held-revision", onEngine(map[string]any{"ome.io/release-held-revision": value}, "metadata", "annotations"))
	}
	return []*actionCase{
		router,
		no("component runs as a Deployment", "isn't an OMENative component", func(f *fixture) {
			unset("spec", "deploymentMode")(f)
			set(f.service, "OMENative", "spec", "decoder", "annotations", "ome.io/deploymentMode")
		}),
		no("replica missing", "Missing", func(f *fixture) { delete(f.replicas, "engine") }),
		no("component claimed twice", "2 InferenceReplicas claim", func(f *fixture) {
			f.replicas["other"] = replica("engine")
			f.replicas["other"].SetName("chat-second")
		}),
		no("replica under a wrong name", "doesn't go with the name", func(f *fixture) { f.replicas["engine"].SetName("chat-second") }),
		no("replica of another parent", "spec.parentRef", onEngine("other", "spec", "parentRef", "name")),
		no("replica without owner", "controller owner", func(f *fixture) { f.replicas["engine"].SetOwnerReferences([]metav1.OwnerReference{}) }),
		no("replica of an older generation", "ome.io/parent-generation", onEngine(map[string]any{"ome.io/parent-generation": "0"}, "metadata", "annotations")),
		no("replica status behind", "status.observedGeneration is 0", onEngine(int64(0), "status", "observedGeneration")),
		no("replica without the controller's mark", "ome.io/controller-write", onEngine(mark("false"), "metadata", "annotations")),
		{name: "replica being deleted", fixture: held().with(func(f *fixture) { f.replicas["engine"].SetFinalizers([]string{"example.com/hold"}) }),
			hook: deletingReplica("chat-engine"), code: 1, message: notReleasable, says: "is being deleted"},
		no("sibling of an older generation", `"chat-decoder"`, decoder(map[string]any{"ome.io/parent-generation": "0"}, "metadata", "annotations")),
		no("sibling status behind", `"chat-decoder"`, decoder(int64(0), "status", "observedGeneration")),
		no("sibling without the controller's mark", `"chat-decoder"`, decoder(mark("yes"), "metadata", "annotations")),
		pending("mailbox present", "chat-engine-cccccccc"), pending("same request present", "chat-engine-bbbbbbbb"), pending("empty mailbox present", ""),
		releaseRefusal(stale, "rows don't decode", "", func(f *fixture) { columnsOf(f, "0-3", "0-2") }),
		{name: "undecodable sibling", fixture: held(), hook: on("GET", "/inferencereplicas", undecodable("chat-decoder")), code: 1, message: stale},
		{name: "replica changed while read", fixture: held(), hook: on("GET", "/inferencereplicas/chat-engine", rewrite(func(o map[string]any) { metadata(o)["resourceVersion"] = "1" })),
			code: 1, message: stale, says: "changed while it was read"},
		releaseRefusal(bounds, "2049 rows", "2048", onEngine(readyRows(2049), "status", "instanceStatuses")),
		releaseRefusal(bounds, "2049 rows of a sibling", "2048", decoder(readyRows(2049), "status", "instanceStatuses")),
		releaseRefusal(bounds, "257 migrations", "256", onEngine(manyMigrations(257), "status", "migrations")),
		{name: "too many replicas", fixture: held(), hook: on("GET", "/inferencereplicas", crowd), code: 1, message: bounds},
		{name: "replicas forbidden", fixture: held(), user: "replicaless", code: 1, message: readFailed, says: "Forbidden"},
		{name: "replica read fails", fixture: held(), hook: on("GET", "/inferencereplicas/chat-engine", answer(503, metav1.StatusReasonServiceUnavailable, "starting")), code: 1, message: readFailed},
		{name: "replica uid unsafe", fixture: held(), hook: everyReplica(func(m map[string]any) { m["uid"] = "u\u202e1" }), code: 1, message: unsafeValue},
		{name: "2048 rows", flags: []string{"--yes", "--dry-run=client"}, fixture: held().with(onEngine(readyRows(2048), "status", "instanceStatuses"))},
		{name: "rows in columns", flags: []string{"--yes", "--dry-run=client"}, fixture: held().with(func(f *fixture) { columnsOf(f, "0", "0") })},
		{name: "paused", patches: 1, fixture: held().with(func(f *fixture) { f.annotate("ome.io/rollout-paused", "true") })},
		{name: "frozen", flags: []string{"--yes", "--dry-run=client"}, fixture: held().with(func(f *fixture) { f.annotate("ome.io/rollout-paused", "freeze") })},
		{name: "pause not recognized", flags: []string{"--yes", "--dry-run=client"}, fixture: held().with(func(f *fixture) { f.annotate("ome.io/rollout-paused", "false") })},
		{name: "promote pending is no matter", flags: []string{"--yes", "--dry-run=client"}, fixture: held().with(func(f *fixture) { f.annotate("ome.io/rollout-promote", "bbbbbbbb") })},
	}
}

// releaseBlocks: every block of the component must be valid, and one held one meant.
func releaseBlocks() []*actionCase {
	const meant = "chat-engine-bbbbbbbb"
	with := func(fields map[string]any) map[string]any {
		b := heldBlock(meant)
		maps.Copy(b, fields)
		maps.DeleteFunc(b, func(_ string, v any) bool { return v == nil })
		return b
	}
	blocks := func(name, says string, all ...map[string]any) *actionCase {
		return releaseRefusal(notReleasable, name, says, func(f *fixture) { f.block(all...) })
	}
	malformed := func(name, says string, fields map[string]any) *actionCase {
		return blocks("malformed: "+name, says, with(fields))
	}
	// What the schema refuses can only come from another version of it.
	rewritten := func(name, says string, edit func(map[string]any)) *actionCase {
		return &actionCase{name: "malformed: " + name, fixture: held(), hook: on("GET", "/inferencereplicas", rewrite(func(o map[string]any) {
			items, _ := o["items"].([]any)
			for _, i := range items {
				status := i.(map[string]any)["status"].(map[string]any)
				if all, ok := status["retryBlocks"].([]any); ok {
					edit(all[0].(map[string]any))
				}
			}
		})), code: 1, message: notReleasable, says: says}
	}
	hash := func(c *actionCase) *actionCase {
		c.bare, c.flags = true, append([]string{"--component=engine", "--revision=bbbbbbbb"}, c.flags...)
		return c
	}
	backoff := with(map[string]any{"targetRevision": "chat-engine-cccccccc", "state": "Backoff", "nextRetryAt": "2026-09-28T14:06:00Z"})
	future := map[string]any{"lastFailureAt": "2026-09-28T14:10:00Z"}
	duplicate := &actionCase{name: "malformed: the same revision twice", fixture: held(), code: 1, message: notReleasable, says: "two blocks",
		hook: on("GET", "/inferencereplicas", rewrite(func(o map[string]any) {
			items, _ := o["items"].([]any)
			for _, i := range items {
				status := i.(map[string]any)["status"].(map[string]any)
				if all, ok := status["retryBlocks"].([]any); ok {
					status["retryBlocks"] = append(all, all[0])
				}
			}
		}))}
	return []*actionCase{
		hash(&actionCase{name: "by hash", fixture: held(), flags: []string{"--yes", "-o=json"}, patches: 1}),
		blocks("no block", "has no retry block"),
		blocks("another block only", "has no retry block", heldBlock("chat-engine-cccccccc")),
		blocks("in backoff", "is Backoff", with(map[string]any{"state": "Backoff", "nextRetryAt": "2026-09-28T14:06:00Z"})),
		blocks("in progress", "is RetryInProgress", with(map[string]any{"state": "RetryInProgress"})),
		hash(blocks("hash of two blocks", "has 2 retry blocks", heldBlock(meant), heldBlock("old-chat-engine-bbbbbbbb"))),
		hash(blocks("hash of a foreign revision", "isn't about a revision", heldBlock("old-chat-engine-bbbbbbbb"))),
		hash(blocks("hash of no block", "has no retry block", heldBlock("chat-engine-cccccccc"))),
		malformed("no attempts", "attemptsStarted is 0", map[string]any{"attemptsStarted": int64(0)}),
		malformed("next retry in a held block", "nextRetryAt is set", map[string]any{"nextRetryAt": "2026-09-28T14:06:00Z"}),
		malformed("last failure in the future", "lastFailureAt 2026-09-28T14:10:00Z is in the future", future),
		malformed("first failure in the future", "is in the future", map[string]any{"firstFailureAt": "2026-09-28T14:10:00Z", "lastFailureAt": nil}),
		malformed("failures out of order", "lastFailureAt is before firstFailureAt", map[string]any{"lastFailureAt": "2026-09-28T13:40:00Z"}),
		malformed("no revision", "targetRevision is empty", map[string]any{"targetRevision": ""}),
		rewritten("unknown state", `state "Lost" is unknown`, func(b map[string]any) { b["state"] = "Lost" }),
		duplicate,
		blocks("another block malformed", "attemptsStarted is 0", heldBlock(meant), func() map[string]any {
			b := heldBlock("chat-engine-cccccccc")
			b["attemptsStarted"] = int64(0)
			return b
		}()),
		{name: "beside a block in backoff", flags: []string{"--yes"}, patches: 1, fixture: held().with(func(f *fixture) { f.block(backoff, heldBlock(meant)) })},
		{name: "a sibling's malformed block is no matter", flags: []string{"--yes", "--dry-run=client"}, fixture: held().with(func(f *fixture) {
			set(f.replicas["decoder"], []any{with(map[string]any{"targetRevision": "chat-decoder-bbbbbbbb", "attemptsStarted": int64(0)})}, "status", "retryBlocks")
		})},
		{name: "no failure on record", flags: []string{"--yes", "--dry-run=client"}, fixture: held().with(func(f *fixture) {
			f.block(with(map[string]any{"firstFailureAt": nil, "lastFailureAt": nil, "reason": nil}))
		})},
		{name: "reason that can't be shown is cleaned", flags: []string{"--yes", "--dry-run=client"}, fixture: held().with(func(f *fixture) {
			f.block(with(map[string]any{"reason": "Error\x1b[2J key sk-abcdefghijklmnopqrst"}))
		})},
		// The server's clock decides, whatever this computer's says.
		{name: "failed in this computer's future", flags: []string{"--yes", "--dry-run=client"}, serverNow: now.Add(time.Hour),
			fixture: held().with(func(f *fixture) { f.block(with(future)) })},
		{name: "malformed: failed in the server's future", fixture: held(), serverNow: now.Add(-time.Hour), code: 1, message: notReleasable, says: "is in the future"},
	}
}

// deletingReplica deletes a replica before the first request.
func deletingReplica(name string) func(*running) hook {
	return func(r *running) hook {
		r.removeObject("InferenceReplica", name)
		return forward
	}
}

// serviceFrom is the fixture's service as a value.
func serviceFrom(t *testing.T, f *fixture) *v1beta1.InferenceService {
	t.Helper()
	var s v1beta1.InferenceService
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.service.Object, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}
