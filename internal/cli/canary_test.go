package cli

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// The strings of the actions on a canary. Those of holds and retries are ours.
const (
	pausedCanary = "action refused: globally paused canary cannot consume a request"
	promoteGate  = "action refused: promote requires an active indefinite manual gate; analysis requires explicit override"
	noHold       = "action refused: promote --release-hold requires a pre-step hold whose Instances are ready"
	retryNothing = "action refused: retry requires a failed or rolled-back canary whose revision the spec still asks for"
	retryPending = "action refused: a rollout retry mailbox is already present"

	enteredAt = "2026-09-28T14:01:00Z"
)

// Steps of the canary under test, one with each gate. The last one is manual.
const (
	manualStep = iota
	analysisStep
	timedStep
	immediateStep
	lastStep
)

func canarySteps() []any {
	step := func(capacity string, traffic int64, more map[string]any) map[string]any {
		s := map[string]any{"capacity": capacity, "traffic": traffic}
		for k, v := range more {
			s[k] = v
		}
		return s
	}
	manual := map[string]any{"pause": map[string]any{}}
	return []any{
		step("25%", 10, manual),
		step("50%", 50, map[string]any{"analysis": map[string]any{"interval": "1m0s", "failureLimit": int64(3), "metrics": []any{
			map[string]any{"name": "error-rate", "query": "up", "operator": "LT", "threshold": "1"},
			map[string]any{"name": "p95-latency", "query": "up", "operator": "LT", "threshold": "2"},
		}}}),
		step("75%", 75, map[string]any{"pause": map[string]any{"duration": "10m0s"}}),
		step("80%", 80, nil),
		step("100%", 100, manual),
	}
}

// canaryGroup is a canary of components by steps, and pinnedCanary its record in a run.
func canaryGroup(steps []any, components ...any) map[string]any {
	return map[string]any{"components": components, "canary": map[string]any{"steps": steps}}
}

func pinnedCanary(group map[string]any) map[string]any {
	var g v1beta1.RolloutGroup
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(group, &g); err != nil {
		panic(err)
	}
	digest, err := plan.GroupDigest(&g)
	if err != nil {
		panic(err)
	}
	return pinnedGroup(digest, group)
}

// canarying is a service whose engine and decoder wait together at a step of a canary,
// with the weight of the step recorded.
func canarying(at int) *fixture {
	f := rolling()
	unset("status", "rolloutCoordination")(f)
	group := canaryGroup(canarySteps(), "engine", "decoder")
	set(f.service, []any{group}, "spec", "rollout", "groups")
	pin(f, pinnedCanary(group))
	set(f.replicas["decoder"], "chat-decoder-dddddddd", "status", "updateRevision")
	phase := "Paused"
	if at == lastStep {
		phase = "Promoting"
	}
	weight := canarySteps()[at].(map[string]any)["traffic"].(int64)
	canaryState(f, "engine", "bbbbbbbb", "aaaaaaaa", phase, weight, map[string]any{"currentStep": int64(at), "stepEnteredTime": enteredAt})
	return f
}

// canaryState writes the record of a canary on its primary, with the weights that go with it.
func canaryState(f *fixture, primary, hash, stable, phase string, weight int64, fields map[string]any) {
	c := map[string]any{"observedGeneration": int64(1), "targetID": "t1", "canaryRevisionHash": hash, "stableRevisionHash": stable, "observedTrafficWeight": weight}
	for k, v := range fields {
		c[k] = v
	}
	var traffic []any
	for _, t := range []struct {
		hash, tag string
		percent   int64
	}{{hash, "canary", weight}, {stable, "stable", 100 - weight}} {
		if t.percent > 0 {
			traffic = append(traffic, map[string]any{"revisionName": "chat-" + primary + "-rev-" + t.hash, "percent": t.percent, "tag": t.tag, "latestRevision": t.tag == "canary"})
		}
	}
	set(f.service, map[string]any{"rolloutPhase": phase, "traffic": traffic, "canary": c}, "status", "components", primary)
}

func promotable() *fixture { return canarying(manualStep) }

// sampled is a canary at its analysis step, with one failure counted.
func sampled() *fixture {
	return canarying(analysisStep).with(func(f *fixture) {
		record(f, "engine", map[string]any{"analysisFailedChecks": int64(1), "lastEvaluationTime": "2026-09-28T14:03:00Z", "metricResults": []any{
			map[string]any{"name": "error-rate", "passed": true, "value": "0.4", "operator": "LT", "threshold": "1", "time": "2026-09-28T14:03:00Z"},
			map[string]any{"name": "p95-latency", "passed": false, "value": "2.31", "operator": "LT", "threshold": "2", "time": "2026-09-28T14:03:00Z"},
		}})
	})
}

// onHold is a canary whose step a repin has made heavier: its Instances are ready, and
// the weight waits.
func onHold() *fixture {
	f := canarying(manualStep)
	canaryState(f, "engine", "bbbbbbbb", "aaaaaaaa", "Paused", 10, map[string]any{"currentStep": int64(analysisStep), "preStepHold": true})
	return f
}

// record sets fields of a canary; nil removes one.
func record(f *fixture, primary string, fields map[string]any) {
	for k, v := range fields {
		path := []string{"status", "components", primary, "canary", k}
		if v == nil {
			unstructured.RemoveNestedField(f.service.Object, path...)
			continue
		}
		set(f.service, v, path...)
	}
}

func phase(f *fixture, primary, word string) {
	set(f.service, word, "status", "components", primary, "rolloutPhase")
}

// failedAt is a canary that failed at a step.
func failedAt(step int, reason string) *fixture {
	return canarying(step).with(func(f *fixture) {
		phase(f, "engine", "Failed")
		record(f, "engine", map[string]any{"stepEnteredTime": nil, "failed": map[string]any{"reason": reason, "time": "2026-09-28T14:04:00Z"}})
	})
}

// rejected is a service whose canary was rolled back, and whose run is closed.
func rejected() *fixture {
	f := canarying(manualStep)
	unset("status", "rollout", "activeRun")(f)
	set(f.service, map[string]any{"runID": "chat-9c1e44ab07d2", "outcome": "RolledBack", "openedAt": pinnedAt, "closedAt": "2026-09-28T14:04:00Z"}, "status", "rollout", "lastRun")
	canaryState(f, "engine", "bbbbbbbb", "aaaaaaaa", "RolledBack", 0, map[string]any{"currentStep": int64(0), "rolledBackRevisionHash": "bbbbbbbb", "members": []any{
		map[string]any{"component": "engine", "stable": "aaaaaaaa", "rejected": "bbbbbbbb"}, map[string]any{"component": "decoder", "stable": "cccccccc", "rejected": "dddddddd"}}})
	return f
}

// twoCanaries has a canary of engine and decoder and one of the router.
func twoCanaries() *fixture {
	f := promotable()
	set(f.service, map[string]any{"minReplicas": int64(1), "maxReplicas": int64(1)}, "spec", "router")
	f.replicas["router"] = replica("router")
	set(f.replicas["router"], "chat-router-ffffffff", "status", "updateRevision")
	group := canaryGroup(canarySteps(), "engine", "decoder")
	other := canaryGroup(canarySteps(), "router")
	set(f.service, []any{group, other}, "spec", "rollout", "groups")
	set(f.service, "Concurrent", "spec", "rollout", "groupOrdering")
	pin(f, pinnedCanary(group), pinnedCanary(other))
	targets, _, _ := unstructured.NestedSlice(f.service.Object, "status", "rollout", "activeRun", "targetRevisions")
	set(f.service, append(targets, map[string]any{"component": "router", "revision": "ffffffff", "stableRevision": "eeeeeeee"}), "status", "rollout", "activeRun", "targetRevisions")
	canaryState(f, "router", "ffffffff", "eeeeeeee", "Paused", 10, map[string]any{"currentStep": int64(manualStep), "stepEnteredTime": enteredAt})
	return f
}

// twoRejected are the same two canaries, both given up.
func twoRejected() *fixture {
	f := twoCanaries()
	unset("status", "rollout", "activeRun")(f)
	for primary, hash := range map[string][2]string{"engine": {"bbbbbbbb", "aaaaaaaa"}, "router": {"ffffffff", "eeeeeeee"}} {
		canaryState(f, primary, hash[0], hash[1], "RolledBack", 0, map[string]any{"currentStep": int64(0), "rolledBackRevisionHash": hash[0]})
	}
	return f
}

func canaryCases() []*actionCase {
	cases := slices.Concat(canarySharedCases("promote", promotable), canarySharedCases("rollback", promotable), canarySharedCases("retry", rejected))
	return slices.Concat(cases, canaryEvidenceCases("promote"), canaryEvidenceCases("rollback"), promoteCases(), rollbackCases(), retryRevisionCases())
}

// canarySharedCases: a pause, requests that wait, and replicas that can't be trusted.
func canarySharedCases(verb string, ready func() *fixture) []*actionCase {
	refuse := func(name, message, says string, edit func(*fixture)) *actionCase {
		return &actionCase{verb: verb, name: name, fixture: ready().with(edit), code: 1, message: message, says: says}
	}
	engine := func(v any, path ...string) func(*fixture) {
		return func(f *fixture) { set(f.replicas["engine"], v, path...) }
	}
	mailed := func(key, value string) func(*fixture) {
		return func(f *fixture) { f.annotate(key, value) }
	}
	pause := func(depth string) func(*fixture) {
		return func(f *fixture) {
			f.annotate("ome.io/rollout-paused", depth)
			for _, r := range f.replicas {
				set(r, true, "spec", "paused")
			}
		}
	}
	dry := []string{"--yes", "--dry-run=client"}
	return []*actionCase{
		refuse("paused", pausedCanary, `is "true"`, pause("true")),
		refuse("frozen", pausedCanary, `is "freeze"`, pause("freeze")),
		refuse("paused and promote pending", pausedCanary, `is "true"`, func(f *fixture) {
			pause("true")(f)
			mailed("ome.io/rollout-promote", "bbbbbbbb")(f)
		}),
		refuse("promote pending", mailbox, "ome.io/rollout-promote", mailed("ome.io/rollout-promote", "bbbbbbbb")),
		refuse("rollback pending", mailbox, "ome.io/rollout-rollback", mailed("ome.io/rollout-rollback", "true")),
		refuse("rollback annotation says false", mailbox, "ome.io/rollout-rollback", mailed("ome.io/rollout-rollback", "false")),
		{verb: verb, name: "unrecognized pause", fixture: ready().with(mailed("ome.io/rollout-paused", "false")), flags: dry},
		{verb: verb, name: "no annotations at all", fixture: ready().with(func(f *fixture) { f.service.SetAnnotations(nil) }), patches: 1},

		refuse("one member is no OMENative component", noRuntime, "component decoder of canary group 0", func(f *fixture) {
			set(f.service, map[string]any{"ome.io/deploymentMode": "RawDeployment"}, "spec", "decoder", "annotations")
			delete(f.replicas, "decoder")
		}),
		refuse("replica of another parent", stale, "spec.parentRef", engine("other", "spec", "parentRef", "name")),
		refuse("replica of an older generation", stale, "ome.io/parent-generation", engine(map[string]any{"ome.io/parent-generation": "0"}, "metadata", "annotations")),
		refuse("replica missing", stale, "Missing", func(f *fixture) { delete(f.replicas, "decoder") }),
		refuse("replica status behind", stale, "status.observedGeneration is 0", engine(int64(0), "status", "observedGeneration")),
		refuse("replica still paused", stale, "spec.paused", engine(true, "spec", "paused")),
		refuse("rollout status behind", stale, "status.rollout.observedGeneration", func(f *fixture) { set(f.service, int64(7), "status", "rollout", "observedGeneration") }),
		refuse("canary record behind", stale, "its observedGeneration is 7", func(f *fixture) { record(f, "engine", map[string]any{"observedGeneration": int64(7)}) }),
		refuse("2049 rows", bounds, "2048", engine(readyRows(2049), "status", "instanceStatuses")),
		{verb: verb, name: "2048 rows", fixture: ready().with(engine(readyRows(2048), "status", "instanceStatuses")), flags: dry},
		{verb: verb, name: "columns", fixture: ready().with(inColumns("0-3", "0-3")), flags: dry},
		refuse("columns that cover too little", stale, "", inColumns("0-3", "0-2")),
		{verb: verb, name: "replicas forbidden", fixture: ready(), user: "replicaless", code: 1, message: readFailed},
		{verb: verb, name: "group out of range", fixture: ready(), flags: []string{"--yes", "--group=3"}, code: 1, message: "group must be from 0 to 2"},
	}
}

func inColumns(members, phases string) func(*fixture) {
	return func(f *fixture) {
		r := f.replicas["engine"]
		unstructured.RemoveNestedField(r.Object, "status", "instanceStatuses")
		set(r, "ColumnarV2", "status", "instanceStatusEncoding")
		set(r, map[string]any{"members": members, "phases": []any{map[string]any{"value": "Ready", "indexes": phases}}}, "status", "instanceStatusColumns")
	}
}

// canaryEvidenceCases: the status has to agree with the run, and with itself, before
// anything else is looked at.
func canaryEvidenceCases(verb string) []*actionCase {
	no := func(name, says string, edit func(*fixture)) *actionCase {
		return &actionCase{verb: verb, name: "evidence " + name, fixture: promotable().with(edit), code: 1, message: stale, says: says}
	}
	field := func(name, says string, fields map[string]any) *actionCase {
		return no(name, says, func(f *fixture) { record(f, "engine", fields) })
	}
	targets := func(edit func([]any) []any) func(*fixture) {
		return func(f *fixture) {
			list, _, _ := unstructured.NestedSlice(f.service.Object, "status", "rollout", "activeRun", "targetRevisions")
			set(f.service, edit(list), "status", "rollout", "activeRun", "targetRevisions")
		}
	}
	weights := func(entries ...any) func(*fixture) {
		return func(f *fixture) { set(f.service, entries, "status", "components", "engine", "traffic") }
	}
	weight := func(revision string, percent int64) map[string]any {
		return map[string]any{"revisionName": revision, "percent": percent}
	}
	const stableName = "chat-engine-rev-aaaaaaaa"
	many := []any{weight(stableName, 93), weight("chat-engine-rev-30000000", 0)}
	for _, c := range []string{"b", "c", "d", "e", "f", "1", "2"} {
		many = append(many, weight("chat-engine-rev-"+c+"0000000", 1))
	}
	dry := []string{"--yes", "--dry-run=client"}
	return []*actionCase{
		no("several canary groups", "several canary groups", func(f *fixture) { *f = *twoCanaries() }),
		no("pinned digest of another plan", "the pinned digest is", func(f *fixture) {
			pin(f, pinnedGroup(blueGreen, canaryGroup(canarySteps(), "engine", "decoder")))
		}),
		no("member without a target", "no target and stable revision of component decoder", targets(func(list []any) []any { return list[:1] })),
		no("member without a stable revision", "no target and stable revision of component decoder", targets(func(list []any) []any {
			delete(list[1].(map[string]any), "stableRevision")
			return list
		})),
		no("phase without a record", "is Paused and has no canary status", unset("status", "components", "engine", "canary")),
		field("step outside the plan", "currentStep is 9", map[string]any{"currentStep": int64(9)}),
		field("another target", "canaryRevisionHash is eeeeeeee", map[string]any{"canaryRevisionHash": "eeeeeeee"}),
		field("no hash", "is no revision hash", map[string]any{"canaryRevisionHash": nil}),
		no("hash that can't be a value", "is no revision hash", func(f *fixture) {
			record(f, "engine", map[string]any{"canaryRevisionHash": "BB"})
			targets(func(list []any) []any {
				list[0].(map[string]any)["revision"] = "BB"
				return list
			})(f)
		}),
		field("another stable revision", "stableRevisionHash is", map[string]any{"stableRevisionHash": "eeeeeeee"}),
		field("failed and waiting", "failed is set", map[string]any{"failed": map[string]any{"reason": "CapacityTimeout"}}),
		field("rejected and waiting", "rolledBackRevisionHash is set", map[string]any{"rolledBackRevisionHash": "bbbbbbbb"}),
		no("failed for no reason", "failed is unset", func(f *fixture) { phase(f, "engine", "Failed") }),
		no("rolled back from nothing", "rolledBackRevisionHash is unset", func(f *fixture) { phase(f, "engine", "RolledBack") }),
		no("copy for older readers differs", "repeats none", func(f *fixture) {
			set(f.service, map[string]any{"currentStep": int64(3), "observedTrafficWeight": int64(10)}, "status", "canary")
		}),
		no("weights that don't add up", "add up to 90", weights(weight(stableName, 90))),
		no("weights of another component", "is no revision of the component", weights(weight("chat-router-rev-aaaaaaaa", 100))),
		no("weights of another record", "gives revision bbbbbbbb 20", weights(weight("chat-engine-rev-bbbbbbbb", 20), weight(stableName, 80))),
		{verb: verb, name: "evidence nine weights", fixture: promotable().with(weights(many...)), code: 1, message: bounds, says: "traffic: 9"},
		{verb: verb, name: "status without stamps", fixture: promotable().with(func(f *fixture) {
			unset("status", "rollout", "observedGeneration")(f)
			record(f, "engine", map[string]any{"observedGeneration": nil})
		}), flags: dry},
		{verb: verb, name: "copy for older readers", fixture: promotable().with(func(f *fixture) {
			c, _, _ := unstructured.NestedMap(f.service.Object, "status", "components", "engine", "canary")
			set(f.service, c, "status", "canary")
		}), flags: dry},
	}
}
