package cli

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// inactiveCases: promote and rollback need a canary that is under way.
func inactiveCases(verb string) []*actionCase {
	no := func(name, says string, f *fixture, edit func(*fixture), flags ...string) *actionCase {
		return &actionCase{verb: verb, name: "inactive " + name, fixture: f.with(edit), flags: append([]string{"--yes"}, flags...), code: 1, message: nothing, says: says}
	}
	none := func(*fixture) {}
	return []*actionCase{
		no("no run", "no rollout run is open", settled(), none),
		no("rolled back and closed", "rollout retry", rejected(), none),
		no("no canary group", "has no canary group", rolling(), none),
		no("group is no canary", "group 0 of run", rolling(), none, "--group=0"),
		no("group isn't there", "group 2 of run", promotable(), none, "--group=2"),
		no("not begun", "hasn't begun", promotable(), unset("status", "components", "engine")),
		no("done", "all 5 steps are passed", promotable(), func(f *fixture) {
			canaryState(f, "engine", "bbbbbbbb", "aaaaaaaa", "Stable", 100, map[string]any{"currentStep": int64(5)})
		}),
		no("rolling back", "rolling back already", promotable(), func(f *fixture) {
			canaryState(f, "engine", "bbbbbbbb", "aaaaaaaa", "RollingBack", 0, map[string]any{"currentStep": int64(0), "rolledBackRevisionHash": "bbbbbbbb"})
		}),
		no("rolled back", "rolled back already", promotable(), func(f *fixture) {
			canaryState(f, "engine", "bbbbbbbb", "aaaaaaaa", "RolledBack", 0, map[string]any{"currentStep": int64(0), "rolledBackRevisionHash": "bbbbbbbb"})
		}),
		no("in no phase of a canary", `is "BlueGreenStandby"`, promotable(), func(f *fixture) { phase(f, "engine", "BlueGreenStandby") }),
	}
}

func promoteCases() []*actionCase {
	const override, hold, dry = "--override-analysis", "--release-hold", "--dry-run=client"
	refuse := func(name, says string, f *fixture, edit func(*fixture), flags ...string) *actionCase {
		message := promoteGate
		if strings.Contains(strings.Join(flags, " "), hold) {
			message = noHold
		}
		return &actionCase{name: "gate " + name, fixture: f.with(edit), flags: append([]string{"--yes"}, flags...), code: 1, message: message, says: says}
	}
	none := func(*fixture) {}
	at := func(word string, fields map[string]any) func(*fixture) {
		return func(f *fixture) {
			phase(f, "engine", word)
			record(f, "engine", fields)
		}
	}
	unweighted := func(word string, step int64, weight int64) func(*fixture) {
		return func(f *fixture) {
			canaryState(f, "engine", "bbbbbbbb", "aaaaaaaa", word, weight, map[string]any{"currentStep": step})
		}
	}
	// A last step that doesn't end at 100 is refused by admission, so only an old plan has it.
	half := func(f *fixture) {
		steps := canarySteps()[:1]
		group := canaryGroup(steps, "engine", "decoder")
		set(f.service, []any{group}, "spec", "rollout", "groups")
		pin(f, pinnedCanary(group))
		phase(f, "engine", "Promoting")
	}
	cases := append(inactiveCases("promote"),
		&actionCase{name: "last step", fixture: canarying(lastStep), patches: 1},
		&actionCase{name: "last step with a delay", fixture: canarying(lastStep).with(func(f *fixture) {
			group := canaryGroup(canarySteps(), "engine", "decoder")
			set(&unstructured.Unstructured{Object: group}, int64(600), "canary", "scaleDownDelaySeconds")
			set(f.service, []any{group}, "spec", "rollout", "groups")
			pin(f, pinnedCanary(group))
		}), flags: []string{"--yes", dry}},
		&actionCase{name: "override", fixture: sampled(), flags: []string{"--yes", override}, patches: 1},
		&actionCase{name: "override json", fixture: sampled(), flags: []string{"--yes", override, "-o=json"}, patches: 1},
		&actionCase{name: "override in a server dry run", fixture: sampled(), flags: []string{"--yes", override, "--dry-run=server"}, patches: 1},
		&actionCase{name: "override before the first sample", fixture: canarying(analysisStep), flags: []string{"--yes", override, dry}},
		&actionCase{name: "override of an inconclusive sample", fixture: canarying(analysisStep).with(at("Paused", map[string]any{"lastEvaluationTime": enteredAt, "metricResults": []any{
			map[string]any{"name": "error-rate", "passed": false, "operator": "LT", "threshold": "1", "message": "no data\x1b[2J"}}})), flags: []string{"--yes", override, dry}},
		&actionCase{name: "override without yes", fixture: sampled(), flags: []string{override}, terminal: true, stdin: "y\n", code: 1, message: override + " requires --yes"},
		&actionCase{name: "release hold", fixture: onHold(), flags: []string{"--yes", hold}, patches: 1},
		&actionCase{name: "release hold without yes", fixture: onHold(), flags: []string{hold}, terminal: true, stdin: "y\n", code: 1, message: hold + " requires --yes"},
		&actionCase{name: "override and release hold", fixture: onHold(), flags: []string{"--yes", override, hold}, code: 1, message: override + " and " + hold + " exclude each other"},
		&actionCase{name: "group of two", fixture: twoCanaries(), flags: []string{"--yes", "--group=1", "-o=json"}, patches: 1},
		&actionCase{name: "group of one", fixture: promotable(), flags: []string{"--yes", "--group=0", dry}},
		&actionCase{name: "two groups of the same revision", fixture: twoCanaries().with(func(f *fixture) {
			canaryState(f, "router", "bbbbbbbb", "eeeeeeee", "Paused", 10, map[string]any{"currentStep": int64(0), "stepEnteredTime": enteredAt})
			list, _, _ := unstructured.NestedSlice(f.service.Object, "status", "rollout", "activeRun", "targetRevisions")
			list[2].(map[string]any)["revision"] = "bbbbbbbb"
			set(f.service, list, "status", "rollout", "activeRun", "targetRevisions")
		}), flags: []string{"--yes", "--group=1"}, code: 1, message: stale, says: "have the same canary revision"},
		&actionCase{name: "a retry waits too", fixture: promotable().annotate("ome.io/rollout-resume", "bbbbbbbb"), flags: []string{"--yes", dry}},

		refuse("analysis", "p95-latency: 1 of 3 failures used", sampled(), none),
		refuse("analysis of the other group", "--group=0 --override-analysis", twoCanaries(), func(f *fixture) {
			canaryState(f, "engine", "bbbbbbbb", "aaaaaaaa", "Paused", 50, map[string]any{"currentStep": int64(analysisStep), "stepEnteredTime": enteredAt})
		}, "--group=0"),
		refuse("timed", "opens by itself at 2026-09-28T14:11:00Z", canarying(timedStep), none),
		refuse("timed under override", "opens by itself", canarying(timedStep), none, override),
		refuse("immediate", "has no gate", canarying(immediateStep), none),
		refuse("manual under override", "has no analysis to override", promotable(), none, override),
		refuse("pending", "waits for its Instances", promotable(), unweighted("Pending", 0, 0)),
		refuse("pending at the second step", "waits for its Instances", sampled(), unweighted("Pending", analysisStep, 10), override),
		refuse("failed", "the canary failed at step 1 of 5: CapacityTimeout", failedAt(manualStep, "CapacityTimeout"), none),
		refuse("failed under override", "AnalysisStalled", failedAt(analysisStep, "AnalysisStalled"), none, override),
		refuse("being judged", "only when it is Paused", promotable(), at("Canarying", nil)),
		refuse("last step that waits as another", "only when it is Promoting", canarying(lastStep), at("Paused", nil)),
		refuse("last step short of all traffic", "its traffic is 10, not 100", promotable(), half),
		refuse("step not entered", "has no stepEnteredTime", promotable(), at("Paused", map[string]any{"stepEnteredTime": nil})),
		refuse("weight of another step", "the weight of step 1 of 5 is 10% and 30% is recorded", promotable(), func(f *fixture) {
			canaryState(f, "engine", "bbbbbbbb", "aaaaaaaa", "Paused", 30, map[string]any{"currentStep": int64(0), "stepEnteredTime": enteredAt})
		}),
		refuse("promote not finished", "promotedThrough is", promotable(), at("Paused", map[string]any{"promotedThrough": "bbbbbbbb"})),
		refuse("held before its weight", "a repin raised it from 10% to 50%", onHold(), none),
		refuse("held under override", "--release-hold --yes", onHold(), none, override),
		refuse("no hold to release", "isn't held before its weight", promotable(), none, hold),
		refuse("hold not ready", "waits for its Instances", onHold(), at("Pending", nil), hold),
		refuse("hold of a failed canary", "the canary failed", onHold(), at("Failed", map[string]any{"failed": map[string]any{"reason": "CapacityTimeout"}}), hold),
		refuse("hold and a promote not finished", "promotedThrough is", onHold(), at("Paused", map[string]any{"promotedThrough": "bbbbbbbb"}), hold),
	)
	for _, c := range cases {
		c.verb = "promote"
	}
	return cases
}

func rollbackCases() []*actionCase {
	const dry = "--dry-run=client"
	from := func(name string, f *fixture, edit func(*fixture)) *actionCase {
		return &actionCase{name: "from " + name, fixture: f.with(edit), flags: []string{"--yes", dry}}
	}
	none := func(*fixture) {}
	cases := append(inactiveCases("rollback"),
		from("Pending", promotable(), func(f *fixture) {
			canaryState(f, "engine", "bbbbbbbb", "aaaaaaaa", "Pending", 0, map[string]any{"currentStep": int64(0)})
		}),
		from("Canarying", promotable(), func(f *fixture) { phase(f, "engine", "Canarying") }),
		from("Paused", promotable(), none),
		from("Promoting", canarying(lastStep), none),
		from("Failed", failedAt(analysisStep, "AnalysisStalled"), none),
		from("an analysis gate", sampled(), none),
		from("a timed gate", canarying(timedStep), none),
		from("a step without a gate", canarying(immediateStep), none),
		from("a hold", onHold(), none),
		from("the weight of another step", promotable(), func(f *fixture) {
			canaryState(f, "engine", "bbbbbbbb", "aaaaaaaa", "Paused", 30, map[string]any{"currentStep": int64(0), "stepEnteredTime": enteredAt})
		}),
		from("a promote not finished", promotable(), func(f *fixture) { record(f, "engine", map[string]any{"promotedThrough": "bbbbbbbb"}) }),
		&actionCase{name: "from Failed for real", fixture: failedAt(manualStep, "CapacityTimeout"), patches: 1},
		&actionCase{name: "group of two", fixture: twoCanaries(), flags: []string{"--yes", "--group=1", "-o=json"}, patches: 1},
		&actionCase{name: "group of one", fixture: promotable(), flags: []string{"--yes", "--group=0", dry}},
		&actionCase{name: "a retry waits too", fixture: failedAt(manualStep, "CapacityTimeout").annotate("ome.io/rollout-resume", "bbbbbbbb"), flags: []string{"--yes", dry}},
		&actionCase{name: "inactive nothing to return to", fixture: failedAt(manualStep, "StableRevisionMissing"), code: 1, message: nothing, says: "isn't stored any more"},
	)
	for _, c := range cases {
		c.verb = "rollback"
	}
	return cases
}

func retryRevisionCases() []*actionCase {
	const dry = "--dry-run=client"
	refuse := func(name, message, says string, f *fixture, edit func(*fixture), flags ...string) *actionCase {
		return &actionCase{name: name, fixture: f.with(edit), flags: append([]string{"--yes"}, flags...), code: 1, message: message, says: says}
	}
	fine := func(name string, f *fixture, edit func(*fixture)) *actionCase {
		return &actionCase{name: name, fixture: f.with(edit), flags: []string{"--yes", dry}}
	}
	none := func(*fixture) {}
	update := func(component, revision string) func(*fixture) {
		return func(f *fixture) { set(f.replicas[component], revision, "status", "updateRevision") }
	}
	back := func(fields map[string]any) func(*fixture) {
		return func(f *fixture) { record(f, "engine", fields) }
	}
	cases := []*actionCase{
		{name: "failed", fixture: failedAt(manualStep, "CapacityTimeout"), patches: 1},
		fine("failed by its analysis", failedAt(analysisStep, "AnalysisStalled"), none),
		fine("failed without a stable revision", failedAt(manualStep, "StableRevisionMissing"), none),
		fine("rejected by its analysis", rejected(), back(map[string]any{"analysisFailedChecks": int64(3), "metricResults": []any{
			map[string]any{"name": "error-rate", "passed": false, "value": "2.31", "operator": "LT", "threshold": "1", "time": enteredAt}}})),
		fine("rejected beside an open run", rejected(), func(f *fixture) {
			set(f.service, promotable().service.Object["status"].(map[string]any)["rollout"].(map[string]any)["activeRun"], "status", "rollout", "activeRun")
		}),
		fine("record without members", rejected(), back(map[string]any{"members": nil})),
		fine("status without stamps", rejected(), func(f *fixture) {
			unset("status", "rollout", "observedGeneration")(f)
			record(f, "engine", map[string]any{"observedGeneration": nil})
		}),
		fine("plan from a policy", rejected(), func(f *fixture) {
			set(f.service, []any{map[string]any{"components": []any{"engine", "decoder"}, "policyRef": map[string]any{"name": "slow", "progression": "canary"}}}, "spec", "rollout", "groups")
		}),
		{name: "group of two", fixture: twoRejected(), flags: []string{"--yes", "--group=1", "-o=json"}, patches: 1},
		{name: "group of one", fixture: rejected(), flags: []string{"--yes", "--group=0", dry}},

		refuse("retry pending", retryPending, "ome.io/rollout-resume", rejected(), func(f *fixture) { f.annotate("ome.io/rollout-resume", "bbbbbbbb") }),
		refuse("several canaries", stale, "groups 1 (router) and 0 (engine)", twoRejected(), none),
		refuse("no hash", stale, "is no revision hash", rejected(), back(map[string]any{"rolledBackRevisionHash": "B"})),
		refuse("rejected and waiting", stale, "rolledBackRevisionHash is set", rejected(), func(f *fixture) { phase(f, "engine", "Paused") }),
		refuse("failed and waiting", stale, "failed is set", failedAt(manualStep, "CapacityTimeout"), func(f *fixture) { phase(f, "engine", "Paused") }),
		refuse("nothing failed", retryNothing, "no canary of the service has failed", promotable(), none),
		refuse("at rest", retryNothing, "no canary of the service has failed", settled(), none),
		refuse("nothing failed in the group", retryNothing, "no canary of group 1", rejected(), none, "--group=1"),
		refuse("no canary group any more", retryNothing, "is the primary of no canary group", rejected(), func(f *fixture) {
			set(f.service, []any{map[string]any{"components": []any{"engine", "decoder"}}}, "spec", "rollout", "groups")
		}),
		refuse("still rolling back", retryNothing, "is still rolling back", rejected(), func(f *fixture) { phase(f, "engine", "RollingBack") }),
		refuse("spec back at the stable revision", retryNothing, `the spec asks for revision "chat-engine-aaaaaaaa"`, rejected(), update("engine", "chat-engine-aaaaaaaa")),
		refuse("spec of another decoder", retryNothing, `the spec asks for revision "chat-decoder-99999999"`, rejected(), update("decoder", "chat-decoder-99999999")),
		refuse("failed and the spec moved on", retryNothing, `the spec asks for revision "chat-engine-99999999"`, failedAt(manualStep, "CapacityTimeout"), update("engine", "chat-engine-99999999")),
	}
	for _, c := range cases {
		c.verb = "retry"
	}
	return cases
}
