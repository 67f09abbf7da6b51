package cli

import (
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The strings of scale.
const (
	scaleOverride   = "manual scale is transient and requires --override-autoscaler --yes for every ownership class"
	scaleSource     = "manual scale source evidence is unavailable or inconsistent"
	scalePolicy     = "manual scale requires locally verifiable autoscaling; winning policy resolution is unavailable"
	scaleIncomplete = "manual scale requires complete current selected replica and Scale evidence"
	scaleActive     = "manual scale refused: selected lifecycle, migration or rollout work is active"
	scaleBounds     = "manual scale replicas must be positive and within verified bounds and partitions"
)

func scaleCases() []*actionCase {
	var cases []*actionCase
	for _, group := range [][]*actionCase{
		scaleFlags(), scaleSources(), scaleReplicas(), scaleEvidence(), scaleWork(), scaleCounts(), scaleOwners(), scaleRuns(),
	} {
		for _, c := range group {
			c.verb = "scale"
			cases = append(cases, c)
		}
	}
	return cases
}

// onEngine changes the engine's replica of a fixture.
func onEngine(v any, path ...string) func(*fixture) {
	return func(f *fixture) { set(f.replicas["engine"], v, path...) }
}

// onService changes the service of a fixture.
func onService(v any, path ...string) func(*fixture) {
	return func(f *fixture) { set(f.service, v, path...) }
}

func unset(path ...string) func(*fixture) {
	return func(f *fixture) { unstructured.RemoveNestedField(f.service.Object, path...) }
}

// scaleRefusal is a case that a change to the scalable service makes refused.
func scaleRefusal(message, name, says string, edit func(*fixture)) *actionCase {
	return &actionCase{name: name, fixture: scalable().with(edit), code: 1, message: message, says: says}
}

// scaleFlags: what is decided before anything is read, and in which order.
func scaleFlags() []*actionCase {
	bare := func(name, message, says string, flags ...string) *actionCase {
		return &actionCase{name: name, bare: true, line: append([]string{"chat", "-n", "prod"}, flags...), code: 1, message: message, says: says}
	}
	counted := func(n string) *actionCase {
		return bare("replicas "+n, scaleArguments, "replicas must be a plain decimal number", "--component=engine", "--replicas="+n, "--override-autoscaler", "--yes")
	}
	with := func(name, message, says string, flags ...string) *actionCase {
		c := bare(name, message, says, append([]string{"--component=engine", "--replicas=2"}, flags...)...)
		return c
	}
	cases := []*actionCase{
		bare("no component", scaleArguments, "component must be engine, decoder or router", "--replicas=2", "--override-autoscaler", "--yes"),
		bare("unknown component", scaleArguments, "component must be engine, decoder or router", "--component=predictor", "--replicas=2", "--override-autoscaler", "--yes"),
		bare("no replicas", scaleArguments, "replicas must be a plain decimal number", "--component=engine", "--override-autoscaler", "--yes"),
		with("override without yes", scaleArguments, "--override-autoscaler requires --yes", "--override-autoscaler"),
		with("yes without override", scaleOverride, "", "--yes"),
		with("neither override nor yes", scaleOverride, ""),
		with("override without yes in a client dry run", scaleArguments, "--override-autoscaler requires --yes", "--override-autoscaler", "--dry-run=client"),
		with("bad ome namespace", scaleArguments, "--ome-namespace", "--override-autoscaler", "--yes", "--ome-namespace=OME"),
		with("bad request timeout", scaleArguments, "request-timeout must be a duration", "--override-autoscaler", "--yes", "--request-timeout=soon"),
		with("unsafe context flag", scaleArguments, "selected kubeconfig context", "--override-autoscaler", "--yes", "--context=a\u202eb"),
		{name: "kubeconfig namespace invalid", line: []string{"chat", "--yes"}, user: "odd-namespace", code: 1, message: "scale namespace is unavailable or invalid"},
		{name: "never prompts", fixture: scalable(), flags: []string{}, terminal: true, stdin: "y\n", code: 1, message: scaleArguments, says: "--override-autoscaler requires --yes"},
	}
	for _, n := range []string{"0", "-1", "+2", "02", "2.0", "0x2", "2147483648", "two"} {
		cases = append(cases, counted(n))
	}
	return cases
}

// scaleSources: runtime, policy and class must be settled.
func scaleSources() []*actionCase {
	source := func(name, says string, edit func(*fixture)) *actionCase {
		return scaleRefusal(scaleSource, name, says, edit)
	}
	engine := func(v any, path ...string) func(*fixture) {
		return onService(v, append([]string{"status", "components", "engine", "autoscaler"}, path...)...)
	}
	router := source("component not declared", "isn't an OMENative component", func(*fixture) {})
	router.bare, router.flags = true, []string{"--yes", "--component=router", "--replicas=2", "--override-autoscaler"}
	return []*actionCase{
		source("sync pending", "a runtime sync is pending", func(f *fixture) { f.annotate("ome.io/runtime-sync", "t2") }),
		source("sync annotation removed after use", "a runtime sync is pending", onService("t1", "status", "lastRuntimeSyncToken")),
		source("scaling policy is proportional", "scalingPolicy.mode", onService(map[string]any{"mode": "Proportional"}, "spec", "scalingPolicy")),
		router,
		source("component runs as a Deployment", "isn't an OMENative component", func(f *fixture) {
			unset("spec", "deploymentMode")(f)
			set(f.service, "OMENative", "spec", "decoder", "annotations", "ome.io/deploymentMode")
		}),
		source("autoscaler not reported", "isn't reported yet", unset("status", "components", "engine", "autoscaler")),
		source("class reported is another", "reports KEDA / ome from default", engine("KEDA", "class")),
		source("owner reported is another", "reports HPA / external from default", engine("external", "managedBy")),
		source("source reported is another", "reports HPA / ome from runtime", engine("runtime", "specSource")),
		scaleRefusal(scalePolicy, "policy without an inline block", "AutoscalerPolicy", onService(map[string]any{"name": "shared"}, "spec", "engine", "autoscalerPolicyRef")),
		scaleRefusal(scalePolicy, "policy reported", "AutoscalerPolicy", engine("policy", "specSource")),
		{name: "inline block over a policy", flags: []string{"--yes", "--dry-run=client"}, fixture: scalable().with(func(f *fixture) {
			onService(map[string]any{"name": "shared"}, "spec", "engine", "autoscalerPolicyRef")(f)
			onService(map[string]any{"class": "HPA"}, "spec", "engine", "autoscaler")(f)
			engine("isvc", "specSource")(f)
		})},
		{name: "sync done", flags: []string{"--yes", "--dry-run=client"}, fixture: scalable().with(func(f *fixture) {
			f.annotate("ome.io/runtime-sync", "t1")
			onService("t1", "status", "lastRuntimeSyncToken")(f)
		})},
	}
}

// scaleReplicas: the one replica that the status names, read twice alike.
func scaleReplicas() []*actionCase {
	incomplete := func(name, says string, edit func(*fixture)) *actionCase {
		return scaleRefusal(scaleIncomplete, name, says, edit)
	}
	target := func(field, value string) func(*fixture) {
		return onService(value, "status", "components", "engine", "scaleTargetRef", field)
	}
	rewritten := func(name string, edit func(map[string]any)) *actionCase {
		return &actionCase{name: name, fixture: scalable(), hook: on("GET", "/scale", rewrite(edit)), code: 1, message: scaleIncomplete, says: "changed while it was read"}
	}
	return []*actionCase{
		incomplete("scale target not reported", "isn't reported yet", unset("status", "components", "engine", "scaleTargetRef")),
		incomplete("scale target is a Deployment", "scaleTargetRef names Deployment", target("kind", "Deployment")),
		incomplete("scale target is another replica", `names InferenceReplica "chat-decoder"`, target("name", "chat-decoder")),
		incomplete("replica missing", "Missing", func(f *fixture) { delete(f.replicas, "engine") }),
		incomplete("component claimed twice", "2 InferenceReplicas claim", func(f *fixture) {
			f.replicas["other"] = replica("engine")
			f.replicas["other"].SetName("chat-second")
		}),
		incomplete("component claimed under another name", "claims component engine", func(f *fixture) { f.replicas["engine"].SetName("chat-second") }),
		{name: "replica being deleted", fixture: scalable().with(func(f *fixture) { f.replicas["engine"].SetFinalizers([]string{"example.com/hold"}) }),
			hook: deletingReplica("chat-engine"), code: 1, message: scaleIncomplete, says: "is being deleted"},
		incomplete("count unset", "has no spec.replicas", func(f *fixture) { unstructured.RemoveNestedField(f.replicas["engine"].Object, "spec", "replicas") }),
		incomplete("count zero", "has no spec.replicas", onEngine(int64(0), "spec", "replicas")),
		rewritten("scale of another object", func(o map[string]any) { metadata(o)["uid"] = "11111111-2222-3333-4444-555555555555" }),
		rewritten("scale of another version", func(o map[string]any) { metadata(o)["resourceVersion"] = "1" }),
		rewritten("scale says another count", func(o map[string]any) { o["spec"].(map[string]any)["replicas"] = 3 }),
		{name: "scale subresource forbidden", fixture: scalable(), user: "scaleless", code: 1, message: readFailed, says: "Forbidden"},
		{name: "scale subresource fails", fixture: scalable(), hook: on("GET", "/scale", answer(503, metav1.StatusReasonServiceUnavailable, "starting")), code: 1, message: readFailed},
		{name: "scale answer too large", fixture: scalable(), hook: on("GET", "/scale", rewrite(func(o map[string]any) { o["filler"] = string(make([]byte, 1<<20)) })), code: 1, message: bounds},
		{name: "replicas forbidden", fixture: scalable(), user: "replicaless", code: 1, message: readFailed},
	}
}

// scaleEvidence: the controller's evidence must be current, safe to show, and small
// enough to look through.
func scaleEvidence() []*actionCase {
	old := func(name, says string, edit func(*fixture)) *actionCase { return scaleRefusal(stale, name, says, edit) }
	behind := map[string]any{"ome.io/parent-generation": "0"}
	return []*actionCase{
		old("replica of an older generation", "annotation ome.io/parent-generation", onEngine(behind, "metadata", "annotations")),
		old("replica status behind", "status.observedGeneration is 0", onEngine(int64(0), "status", "observedGeneration")),
		old("replica without owner", "controller owner", func(f *fixture) { f.replicas["engine"].SetOwnerReferences([]metav1.OwnerReference{}) }),
		old("replica of another parent", "spec.parentRef", onEngine("other", "spec", "parentRef", "name")),
		old("replica still paused", "spec.paused", onEngine(true, "spec", "paused")),
		old("service status behind", "status.observedGeneration is 0", onService(int64(0), "status", "observedGeneration")),
		old("rollout status behind", "status.rollout.observedGeneration is 7", onService(int64(7), "status", "rollout", "observedGeneration")),
		old("rollout status has an issue", "GroupStatusMissing", unset("status", "rolloutCoordination")),
		old("rows don't decode", "", func(f *fixture) { columnsOf(f, "0-3", "0-2") }),
		{name: "undecodable marker", fixture: scalable(), hook: on("GET", "/inferencereplicas", undecodable("chat-engine")), code: 1, message: stale},
		scaleRefusal(bounds, "2049 rows", "2048", onEngine(readyRows(2049), "status", "instanceStatuses")),
		scaleRefusal(bounds, "257 migrations", "256", onEngine(manyMigrations(257), "status", "migrations")),
		{name: "too many replicas", fixture: scalable(), hook: on("GET", "/inferencereplicas", crowd), code: 1, message: bounds},
		{name: "2048 rows", flags: []string{"--yes", "--dry-run=client"}, fixture: scalable().with(onEngine(readyRows(2048), "status", "instanceStatuses"))},
		{name: "rows in columns", flags: []string{"--yes", "--dry-run=client"}, fixture: scalable().with(func(f *fixture) { columnsOf(f, "0", "0") })},
		// Out of a run a sibling is no part of the request.
		{name: "sibling stale", flags: []string{"--yes", "--dry-run=client"}, fixture: scalable().with(func(f *fixture) { set(f.replicas["decoder"], int64(0), "status", "observedGeneration") })},
		{name: "sibling undecodable", fixture: scalable(), flags: []string{"--yes", "--dry-run=client"}, hook: on("GET", "/inferencereplicas", undecodable("chat-decoder"))},
		{name: "replica uid unsafe", fixture: scalable(), hook: everyReplica(func(m map[string]any) { m["uid"] = "u\u202e1" }), code: 1, message: unsafeValue},
		{name: "model identity unsafe", fixture: scalable(), hook: on("GET", "clusterbasemodels", rewrite(func(o map[string]any) { metadata(o)["resourceVersion"] = "1\x1b[2J" })), code: 1, message: unsafeValue},
		scaleRefusal(mailbox, "promote pending", "ome.io/rollout-promote", func(f *fixture) { f.annotate("ome.io/rollout-promote", "bbbbbbbb") }),
		scaleRefusal(mailbox, "rollback annotation says false", "ome.io/rollout-rollback", func(f *fixture) { f.annotate("ome.io/rollout-rollback", "false") }),
		{name: "paused", flags: []string{"--yes"}, patches: 1, fixture: scalable().with(func(f *fixture) {
			f.annotate("ome.io/rollout-paused", "true")
			for _, r := range f.replicas {
				set(r, true, "spec", "paused")
			}
		})},
		{name: "release mailbox is no matter", flags: []string{"--yes", "--dry-run=client"},
			fixture: scalable().with(onEngine(map[string]any{"ome.io/release-held-revision": "chat-engine-bbbbbbbb"}, "metadata", "annotations"))},
	}
}

// scaleWork: nothing may move in the component or its group.
func scaleWork() []*actionCase {
	active := func(name, says string, edit func(*fixture)) *actionCase {
		return scaleRefusal(scaleActive, name, says, edit)
	}
	row := func(fields map[string]any) func(*fixture) {
		fields["index"] = int64(0)
		return onEngine([]any{fields}, "status", "instanceStatuses")
	}
	cases := []*actionCase{
		active("an Instance has an operation", "has the operation Update", onEngine(replica("engine").Object["status"].(map[string]any)["instanceStatuses"], "status", "instanceStatuses")),
		active("an operation in columns", "has the operation Restart", func(f *fixture) {
			columnsOf(f, "0", "0", map[string]any{"index": int64(0), "operation": map[string]any{
				"id": "op1", "type": "Restart", "step": "Drain", "startedAt": "2026-09-28T14:00:00Z", "lastProgressAt": "2026-09-28T14:00:00Z"}})
		}),
		active("between revisions", "status.updateRevision", onEngine("chat-engine-bbbbbbbb", "status", "updateRevision")),
		active("a migration", "is Draining", onEngine([]any{migration("11111111-2222-3333-4444-555555555555", "Draining")}, "status", "migrations")),
		active("a rollback", "rolls back to", onEngine("chat-engine-99999999", "spec", "pacing", "rollbackToRevision")),
		active("a run moves the component", "run chat-9c1e44ab07d2", runOf([]any{"engine", "decoder"}, "engine")),
		active("a run moves the group", "run chat-9c1e44ab07d2", runOf([]any{"engine", "decoder"}, "decoder")),
	}
	for _, phase := range []string{"Pending", "Creating", "Updating", "Restarting", "Migrating", "Deleting"} {
		cases = append(cases, active("an Instance is "+phase, "Instance 0 is "+phase, row(map[string]any{"phase": phase})))
	}
	for _, phase := range []string{"Canarying", "BlueGreenStandby", "Pending", "Paused", "Promoting", "RollingBack", "RolledBack", "Failed"} {
		cases = append(cases, active("component phase "+phase, "rollout phase "+phase, onService(phase, "status", "components", "engine", "rolloutPhase")))
	}
	for _, phase := range []string{"Surging", "Waiting", "Shifting", "Draining", "ScalingDown", "Staged", "Failed", "RollingBack", "Paused"} {
		cases = append(cases, active("group phase "+phase, "phase "+phase, func(f *fixture) {
			set(f.service, []any{map[string]any{"name": "0", "components": []any{"engine", "decoder"}, "policy": "BlueGreen", "phase": phase}}, "status", "rolloutCoordination", "groups")
		}))
	}
	return append(cases,
		&actionCase{name: "the decoder's work is no matter", flags: []string{"--yes", "--dry-run=client"}, fixture: scalable().with(func(f *fixture) {
			set(f.replicas["decoder"], []any{map[string]any{"index": int64(0), "phase": "Restarting"}}, "status", "instanceStatuses")
		})},
		&actionCase{name: "a failed Instance is no work", flags: []string{"--yes", "--dry-run=client"}, fixture: scalable().with(row(map[string]any{"phase": "Failed"}))},
		&actionCase{name: "an ended migration is no work", flags: []string{"--yes", "--dry-run=client"},
			fixture: scalable().with(onEngine([]any{migration("11111111-2222-3333-4444-555555555555", "Completed")}, "status", "migrations"))},
		&actionCase{name: "fewer Instances than asked for", flags: []string{"--yes", "-o=json"}, patches: 1, fixture: scalable().with(onEngine(int64(3), "spec", "replicas"))},
		&actionCase{name: "fewer Instances than asked for, wide", flags: []string{"--yes", "-o=wide"}, patches: 1, fixture: scalable().with(onEngine(int64(3), "spec", "replicas"))},
	)
}

// scaleCounts: bounds and partitions.
func scaleCounts() []*actionCase {
	count := func(name string, n int, ok bool, edit func(*fixture)) *actionCase {
		c := &actionCase{name: fmt.Sprintf("%s, to %d", name, n), bare: true, fixture: scalable().with(edit),
			flags: []string{"--component=engine", fmt.Sprintf("--replicas=%d", n), "--override-autoscaler", "--yes", "--dry-run=client"}}
		if !ok {
			c.code, c.message = 1, scaleBounds
		}
		return c
	}
	engine := func(fields map[string]any) func(*fixture) { return onService(fields, "spec", "engine") }
	none := func(*fixture) {}
	partition := func(n int64) map[string]any {
		return map[string]any{"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"partition": n}}}
	}
	withPartition := func(f *fixture) { set(f.service, partition(3), "spec", "engine", "lifecycle") }
	noRollout := func(f *fixture) { unset("spec", "rollout")(f); unset("status", "rolloutCoordination")(f) }
	return []*actionCase{
		count("1..4", 1, true, none), count("1..4", 4, true, none), count("1..4", 5, false, none),
		count("2..4", 1, false, engine(map[string]any{"minReplicas": int64(2), "maxReplicas": int64(4)})),
		count("no maximum", 2, true, engine(map[string]any{"minReplicas": int64(2)})),
		count("no maximum", 3, false, engine(map[string]any{"minReplicas": int64(2)})),
		count("no bounds", 1, true, engine(map[string]any{})), count("no bounds", 2, false, engine(map[string]any{})),
		count("minimum 0", 1, true, engine(map[string]any{"minReplicas": int64(0)})),
		count("maximum 0", 2, false, engine(map[string]any{"minReplicas": int64(1), "maxReplicas": int64(0)})),
		count("maximum below minimum", 3, true, engine(map[string]any{"minReplicas": int64(3), "maxReplicas": int64(2)})),
		count("bounds of the runtime", 6, true, func(f *fixture) { engine(map[string]any{})(f); boundedRuntime(f) }),
		count("bounds of the runtime", 7, false, func(f *fixture) { engine(map[string]any{})(f); boundedRuntime(f) }),
		count("minimum of the service, maximum of the runtime", 6, true, func(f *fixture) {
			engine(map[string]any{"minReplicas": int64(5)})(f)
			boundedRuntime(f)
		}),
		count("partition of the service", 2, false, withPartition), count("partition of the service", 3, true, withPartition),
		count("partition of the replica", 2, false, func(f *fixture) { onEngine(partition(3), "spec", "lifecycle")(f); noRollout(f) }),
		count("partition of the pacing", 2, false, func(f *fixture) {
			onEngine(int64(4), "spec", "replicas")(f)
			onEngine(int64(3), "spec", "pacing", "partition")(f)
		}),
		count("partition of the runtime", 2, false, func(f *fixture) { onService("staged", "spec", "runtime", "name")(f) }),
	}
}

// boundedRuntime names the runtime that has bounds and a scaler.
func boundedRuntime(f *fixture) {
	set(f.service, "bounded", "spec", "runtime", "name")
	set(f.service, map[string]any{"class": "External", "managedBy": "external", "specSource": "runtime"}, "status", "components", "engine", "autoscaler")
}

// scaleOwners: every ownership class, each with its source, and a count that falls.
func scaleOwners() []*actionCase {
	owned := func(class, manager string, block map[string]any, flags ...string) *actionCase {
		return &actionCase{name: "class " + class, flags: append([]string{"--yes"}, flags...), patches: 1, fixture: scalable().with(func(f *fixture) {
			set(f.service, block, "spec", "engine", "autoscaler")
			set(f.service, map[string]any{"class": class, "managedBy": manager, "specSource": "isvc"}, "status", "components", "engine", "autoscaler")
		})}
	}
	down := &actionCase{name: "fewer", bare: true, flags: []string{"--component=engine", "--replicas=1", "--override-autoscaler", "--yes", "-o=json"}, patches: 1,
		fixture: scalable().with(func(f *fixture) {
			onEngine(int64(3), "spec", "replicas")(f)
			onEngine(int64(3), "status", "replicas")(f)
		})}
	unchanged := &actionCase{name: "the count it has", bare: true, flags: []string{"--component=engine", "--replicas=1", "--override-autoscaler", "--yes"}, patches: 1, fixture: scalable()}
	return []*actionCase{
		owned("HPA", "ome", map[string]any{"class": "HPA"}), owned("External", "external", map[string]any{"class": "External"}, "-o=json"),
		owned("None", "none", map[string]any{"class": "None"}),
		owned("KEDA", "ome", map[string]any{"class": "KEDA", "keda": map[string]any{"triggers": []any{map[string]any{"type": "cron", "metadata": map[string]any{"desiredReplicas": "2"}}}}}),
		{name: "class of the runtime", flags: []string{"--yes", "--dry-run=client", "-o=json"}, fixture: scalable().with(boundedRuntime)},
		down, unchanged,
	}
}

// scaleRuns: a run elsewhere is allowed, and then every replica is part of the proof.
func scaleRuns() []*actionCase {
	elsewhere := func(f *fixture) {
		set(f.service, map[string]any{"minReplicas": int64(1), "maxReplicas": int64(1)}, "spec", "router")
		groups := []any{map[string]any{"components": []any{"engine", "decoder"}}, map[string]any{"components": []any{"router"}}}
		set(f.service, groups, "spec", "rollout", "groups")
		set(f.service, "Concurrent", "spec", "rollout", "groupOrdering")
		runOf([]any{"engine", "decoder"}, "router")(f)
		set(f.service, []any{
			map[string]any{"name": "0", "components": []any{"engine", "decoder"}, "policy": "BlueGreen", "phase": "Idle"},
			map[string]any{"name": "1", "components": []any{"router"}, "policy": "BlueGreen", "phase": "Surging"},
		}, "status", "rolloutCoordination", "groups")
		set(f.service, map[string]any{"rolloutPhase": "Promoting"}, "status", "components", "router")
		f.replicas["router"] = replica("router")
	}
	refused := func(name, message, says string, edit func(*fixture)) *actionCase {
		return scaleRefusal(message, "run elsewhere, "+name, says, func(f *fixture) { elsewhere(f); edit(f) })
	}
	router := func(v any, path ...string) func(*fixture) {
		return func(f *fixture) { set(f.replicas["router"], v, path...) }
	}
	return []*actionCase{
		{name: "run elsewhere", flags: []string{"--yes", "-o=json"}, patches: 1, fixture: scalable().with(elsewhere)},
		{name: "run elsewhere, wide", flags: []string{"--yes", "-o=wide", "--dry-run=client"}, fixture: scalable().with(elsewhere)},
		refused("sibling stale", stale, `"chat-router"`, router(int64(0), "status", "observedGeneration")),
		refused("sibling of an older generation", stale, `"chat-router"`, router(map[string]any{"ome.io/parent-generation": "0"}, "metadata", "annotations")),
		refused("sibling of another owner", stale, `"chat-router"`, func(f *fixture) { f.replicas["router"].SetOwnerReferences([]metav1.OwnerReference{}) }),
		refused("sibling with 2049 rows", bounds, `"chat-router"`, router(readyRows(2049), "status", "instanceStatuses")),
	}
}

// runOf opens a run whose groups are the first one and the router's, and that moves
// one component.
func runOf(first []any, moves string) func(*fixture) {
	return func(f *fixture) {
		group := func(components []any) map[string]any {
			return map[string]any{"source": "Inline", "portableDigest": "rp1:cca45ec1fb0f", "group": map[string]any{"components": components, "blueGreen": map[string]any{}}}
		}
		groups, members := []any{group(first)}, first
		if moves == "router" {
			groups, members = append(groups, group([]any{"router"})), append(members, "router")
		}
		var targets []any
		for _, c := range members {
			revision := "aaaaaaaa"
			if c == moves {
				revision = "bbbbbbbb"
			}
			targets = append(targets, map[string]any{"component": c, "revision": revision, "stableRevision": "aaaaaaaa"})
		}
		set(f.service, map[string]any{"runID": "chat-9c1e44ab07d2", "openedAt": "2026-09-28T14:00:00Z", "pinnedAt": "2026-09-28T14:00:00Z",
			"targetRevisions": targets, "plan": map[string]any{"groups": groups}}, "status", "rollout", "activeRun")
	}
}

func readyRows(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = map[string]any{"index": int64(i), "phase": "Ready"}
	}
	return out
}

func manyMigrations(n int) []any {
	var all []any
	for i := range n {
		all = append(all, migration(fmt.Sprintf("11111111-2222-3333-4444-%012d", i), "Completed"))
	}
	return all
}

// columnsOf stores the engine's rows as columns.
func columnsOf(f *fixture, members, ready string, entries ...any) {
	r := f.replicas["engine"]
	unstructured.RemoveNestedField(r.Object, "status", "instanceStatuses")
	set(r, "ColumnarV2", "status", "instanceStatusEncoding")
	columns := map[string]any{"members": members, "phases": []any{map[string]any{"value": "Ready", "indexes": ready}}}
	if entries != nil {
		columns["entries"] = entries
	}
	set(r, columns, "status", "instanceStatusColumns")
}

// undecodable gives a replica an encoding that nobody knows.
func undecodable(name string) hook {
	return rewrite(func(o map[string]any) {
		items, _ := o["items"].([]any)
		for _, i := range items {
			if item := i.(map[string]any); metadata(item)["name"] == name {
				item["status"].(map[string]any)["instanceStatusEncoding"] = "ColumnarV9"
			}
		}
	})
}

// everyReplica changes the metadata of replicas and scales in every answer.
func everyReplica(edit func(map[string]any)) func(*running) hook {
	return on("GET", "/inferencereplicas", rewrite(func(o map[string]any) {
		items, ok := o["items"].([]any)
		if !ok {
			edit(metadata(o))
		}
		for _, i := range items {
			edit(metadata(i.(map[string]any)))
		}
	}))
}

// crowd makes a list of replicas longer than an action looks through.
func crowd(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	return rewrite(func(o map[string]any) {
		items, _ := o["items"].([]any)
		for len(items) > 0 && len(items) < 33 {
			items = append(items, items[0])
		}
		o["items"] = items
	})(next, req)
}

// TestScaleSaysWhatRolloutStatusSays: the two codes that say nothing about safety are
// the only ones left out.
func TestScaleSaysWhatRolloutStatusSays(t *testing.T) {
	s := serviceFrom(t, scalable())
	s.Status.Rollout.ObservedGeneration = 0
	view := rolloutView(s, "engine")
	if len(view.Issues) != 0 || view.Phase != "Stable" || view.GroupPhase != "Idle" {
		t.Errorf("%+v", view)
	}
	s.Status.RolloutCoordination = nil
	if view = rolloutView(s, "engine"); len(view.Issues) != 1 || view.Issues[0] != "GroupStatusMissing(group=0)" {
		t.Errorf("%+v", view)
	}
}
