package cli

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// The strings of repin.
const (
	repinNoRun    = "rollout repin refused: no active pinned run"
	repinEmpty    = "rollout repin refused: empty live plans are not supported by this command"
	repinEvidence = "rollout repin refused: controller plan evidence is missing, stale or inconsistent"
	repinPinned   = "rollout repin refused: the current plan is already pinned"
	repinTopology = "rollout repin refused: live and pinned rollout topology differ"
	repinCanaries = "rollout repin refused: this command supports at most one canary group"
	repinMailbox  = "rollout repin refused: a rollout action mailbox is already present"
	repinUnknown  = "rollout repin request outcome unknown; do not replay, check rollout explain"
)

// Digests of progressions: maxSurge 1 and 2, and a blue-green one.
const (
	surge1    = "rp1:74e7029e7f20"
	surge2    = "rp1:415d73b73137"
	blueGreen = "rp1:cca45ec1fb0f"

	driftCondition = "RolloutPlanDrift"
	readyCondition = "RolloutPlanReady"
	pinnedAt       = "2026-09-28T14:00:00Z"
	driftedAt      = "2026-09-28T14:03:00Z"
	future         = "2026-09-28T14:10:00Z"
)

func surge(n int64) map[string]any { return map[string]any{"maxSurge": n} }

func driftMessage(group, live, pinned string) string {
	return "groups[" + group + "]: live render " + live + " differs from pinned " + pinned + "; the edit applies at the next run (or via ome.io/rollout-repin)"
}

func condition(kind, status, reason, message, since string) map[string]any {
	c := map[string]any{"type": kind, "status": status, "reason": reason}
	for key, value := range map[string]string{"message": message, "lastTransitionTime": since} {
		if value != "" {
			c[key] = value
		}
	}
	return c
}

// drifted is a service whose run pinned maxSurge 1, and whose spec was edited to 2.
func drifted() *fixture {
	f := rolling()
	set(f.service, []any{map[string]any{"components": []any{"engine", "decoder"}, "rollingUpdate": surge(2)}}, "spec", "rollout", "groups")
	pin(f, pinnedGroup(surge1, map[string]any{"components": []any{"engine", "decoder"}, "rollingUpdate": surge(1)}))
	report(f, map[string]any{"index": int64(0), "source": "Inline", "observedDigest": surge2})
	conditions(f, condition(readyCondition, "True", "Pinned", "run chat-9c1e44ab07d2", pinnedAt),
		condition(driftCondition, "True", "SpecNewerThanRun", driftMessage("0", surge2, surge1), driftedAt))
	unset("status", "rolloutCoordination")(f)
	return f
}

func pinnedGroup(digest string, group map[string]any) map[string]any {
	return map[string]any{"source": "Inline", "portableDigest": digest, "group": group}
}

// pin, report and conditions replace what the controller said.
func pin(f *fixture, groups ...any) {
	set(f.service, groups, "status", "rollout", "activeRun", "plan", "groups")
}

func report(f *fixture, groups ...any) { set(f.service, groups, "status", "rollout", "groups") }

func conditions(f *fixture, all ...map[string]any) {
	var list []any
	for _, c := range all {
		list = append(list, c)
	}
	set(f.service, list, "status", "conditions")
}

// driftedPair has a group of each kind, of which the second drifted. The first is
// blue-green because it says nothing else, and has no digest reported.
func driftedPair() *fixture {
	f := drifted()
	set(f.service, []any{map[string]any{"components": []any{"engine"}}, map[string]any{"components": []any{"decoder"}, "rollingUpdate": surge(2)}}, "spec", "rollout", "groups")
	set(f.service, "Concurrent", "spec", "rollout", "groupOrdering")
	pin(f, pinnedGroup(blueGreen, map[string]any{"components": []any{"engine"}, "blueGreen": map[string]any{}}),
		pinnedGroup(surge1, map[string]any{"components": []any{"decoder"}, "rollingUpdate": surge(1)}))
	report(f, map[string]any{"index": int64(0), "source": "Inline"}, map[string]any{"index": int64(1), "source": "Inline", "observedDigest": surge2})
	redrift(f, "True", "SpecNewerThanRun", driftMessage("1", surge2, surge1), driftedAt)
	return f
}

// redrift replaces the condition of the drift.
func redrift(f *fixture, status, reason, message, since string) {
	conditions(f, condition(readyCondition, "True", "Pinned", "run chat-9c1e44ab07d2", pinnedAt), condition(driftCondition, status, reason, message, since))
}

func repinCases() []*actionCase {
	cases := slices.Concat(repinSuccesses(), repinRefusals(), repinEvidenceCases())
	for _, c := range cases {
		c.verb = "repin"
	}
	return cases
}

func repinSuccesses() []*actionCase {
	const dry = "--dry-run=client"
	fine := func(name string, f *fixture, edit func(*fixture)) *actionCase {
		return &actionCase{name: name, fixture: f.with(edit), flags: []string{"--yes", dry, "-o=json"}}
	}
	none := func(*fixture) {}
	unstamped := func(f *fixture) { unset("status", "rollout", "observedGeneration")(f) }
	return []*actionCase{
		{name: "two groups", fixture: driftedPair(), patches: 1},
		{name: "reads the service alone", fixture: drifted(), user: "modelless", flags: []string{"--yes", dry}},
		{name: "no annotations at all", fixture: drifted().with(func(f *fixture) { f.service.SetAnnotations(nil) }), patches: 1},
		{name: "paused", fixture: drifted().annotate("ome.io/rollout-paused", "true"), patches: 1},
		fine("frozen", drifted().annotate("ome.io/rollout-paused", "freeze"), none),
		fine("status without a stamp", drifted(), unstamped),
		fine("progression of its own over a policy", drifted(), func(f *fixture) {
			group := map[string]any{"components": []any{"engine", "decoder"}, "rollingUpdate": surge(2), "policyRef": map[string]any{"name": "slow", "progression": "rollingUpdate"}}
			set(f.service, []any{group}, "spec", "rollout", "groups")
			report(f, map[string]any{"index": int64(0), "source": "Inline", "observedDigest": surge2, "shadowedPolicyRef": map[string]any{"name": "slow"}})
		}),
		{name: "one canary group", fixture: drifted().with(editedCanary), patches: 1},
		{name: "edited policy", fixture: drifted().with(fromPolicy("slow", surge2)), patches: 1},
		fine("edited policy and a status without a stamp", drifted(), func(f *fixture) {
			fromPolicy("slow", surge2)(f)
			unstamped(f)
		}),
		// The server's clock decides, whatever this computer's says.
		{name: "drifted in this computer's future", fixture: drifted().with(func(f *fixture) {
			redrift(f, "True", "SpecNewerThanRun", driftMessage("0", surge2, surge1), future)
		}), serverNow: now.Add(time.Hour), flags: []string{"--yes", dry}},
	}
}

// editedCanary has a canary of which the last step was pinned alone.
func editedCanary(f *fixture) {
	half, all := v1beta1.RolloutGroupStep{Capacity: intstr.FromString("50%"), Traffic: 50}, v1beta1.RolloutGroupStep{Capacity: intstr.FromString("100%"), Traffic: 100}
	group := func(steps ...v1beta1.RolloutGroupStep) (digest string, group map[string]any) {
		g := v1beta1.RolloutGroup{
			Components: []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent}, Canary: &v1beta1.GroupCanary{Steps: steps},
		}
		digest, err := plan.GroupDigest(&g)
		if err == nil {
			group, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&g)
		}
		if err != nil {
			panic(err) // of constants
		}
		return digest, group
	}
	was, pinned := group(all)
	is, live := group(half, all)
	set(f.service, []any{live}, "spec", "rollout", "groups")
	pin(f, pinnedGroup(was, pinned))
	report(f, map[string]any{"index": int64(0), "source": "Inline", "observedDigest": is})
	redrift(f, "True", "SpecNewerThanRun", driftMessage("0", is, was), driftedAt)
}

// fromPolicy gives the group's progression to a policy, which has that digest now.
func fromPolicy(name, digest string) func(*fixture) {
	return func(f *fixture) {
		ref := map[string]any{"name": name, "progression": "rollingUpdate"}
		set(f.service, []any{map[string]any{"components": []any{"engine", "decoder"}, "policyRef": ref}}, "spec", "rollout", "groups")
		report(f, map[string]any{"index": int64(0), "source": "Policy", "observedDigest": digest, "policyRef": ref})
		redrift(f, "True", "PolicyNewerThanRun", driftMessage("0", digest, surge1), driftedAt)
	}
}

func repinRefusals() []*actionCase {
	refuse := func(name, message, says string, edit func(*fixture)) *actionCase {
		return &actionCase{name: name, fixture: drifted().with(edit), code: 1, message: message, says: says}
	}
	live := func(groups ...any) func(*fixture) {
		return func(f *fixture) { set(f.service, groups, "spec", "rollout", "groups") }
	}
	pair := func(fields map[string]any) map[string]any {
		g := map[string]any{"components": []any{"engine", "decoder"}, "rollingUpdate": surge(2)}
		for k, v := range fields {
			if g[k] = v; v == nil {
				delete(g, k)
			}
		}
		return g
	}
	topology := func(name, says string, fields map[string]any) *actionCase {
		return refuse("topology: "+name, repinTopology, says, live(pair(fields)))
	}
	inSync := func(f *fixture) { redrift(f, "False", "InSync", "", pinnedAt) }
	canary := func(component string) map[string]any {
		return map[string]any{"components": []any{component}, "canary": map[string]any{"steps": []any{map[string]any{"capacity": "100%", "traffic": int64(100)}}}}
	}
	mailbox := func(name, key, value string) *actionCase {
		return refuse(name, repinMailbox, key, func(f *fixture) { f.annotate(key, value) })
	}
	unpinned := func(f *fixture) {
		set(f.service, map[string]any{"observedGeneration": int64(1)}, "status", "rollout")
	}
	alike := func(f *fixture) {
		inSync(f)
		live(pair(map[string]any{"rollingUpdate": surge(1)}))(f)
		report(f, map[string]any{"index": int64(0), "source": "Inline", "observedDigest": surge1})
	}
	return []*actionCase{
		{name: "at rest", fixture: settled(), code: 1, message: repinNoRun},
		refuse("no open run", repinNoRun, "activeRun is absent", unpinned),
		refuse("fronts standalone replicas", repinNoRun, "", func(f *fixture) {
			f.owned, f.replicas = false, nil
			f.set("spec", map[string]any{"replicaRefs": map[string]any{"engine": []any{"pool"}}})
			unset("status")(f)
		}),
		{name: "no rollout status", fixture: drifted(), hook: on("GET", "/inferenceservices/chat", rewrite(func(o map[string]any) {
			delete(o["status"].(map[string]any), "rollout")
		})), code: 1, message: repinNoRun},

		refuse("no rollout", repinEmpty, "spec.rollout.groups is empty", unset("spec", "rollout")),
		refuse("no groups", repinEmpty, "spec.rollout.groups is empty", live()),

		refuse("in sync", repinPinned, "False/InSync", alike),
		refuse("in sync and other members", repinPinned, "another components", func(f *fixture) {
			alike(f)
			live(pair(map[string]any{"components": []any{"engine"}, "rollingUpdate": surge(1)}))(f)
		}),
		refuse("in sync and other digests", repinPinned, "digests differ nevertheless", inSync),
		refuse("the same digests", repinPinned, "renders the same", func(f *fixture) {
			alike(f)
			redrift(f, "True", "SpecNewerThanRun", driftMessage("0", surge2, surge1), driftedAt)
		}),

		refuse("topology: number of groups", repinTopology, "pinned 1 groups and the spec has 2", func(f *fixture) {
			live(pair(nil), map[string]any{"components": []any{"router"}})(f)
			report(f, map[string]any{"index": int64(0), "source": "Inline", "observedDigest": surge2}, map[string]any{"index": int64(1), "source": "Inline", "observedDigest": blueGreen})
		}),
		refuse("topology: a group more and no other edit", repinTopology, "pinned 1 groups and the spec has 2", func(f *fixture) {
			live(pair(map[string]any{"rollingUpdate": surge(1)}), map[string]any{"components": []any{"router"}})(f)
			report(f, map[string]any{"index": int64(0), "source": "Inline", "observedDigest": surge1}, map[string]any{"index": int64(1), "source": "Inline", "observedDigest": blueGreen})
			redrift(f, "True", "SpecNewerThanRun", "groups: live render has 2 and the run pinned 1; the edit applies at the next run (or via ome.io/rollout-repin)", driftedAt)
		}),
		refuse("topology: kind", repinTopology, "another progression kind", func(f *fixture) {
			live(pair(map[string]any{"rollingUpdate": nil}))(f)
			report(f, map[string]any{"index": int64(0), "source": "Inline", "observedDigest": blueGreen})
			redrift(f, "True", "SpecNewerThanRun", driftMessage("0", blueGreen, surge1), driftedAt)
		}),
		topology("components", "another components", map[string]any{"components": []any{"engine", "decoder", "router"}}),
		topology("components in another order", "another components", map[string]any{"components": []any{"decoder", "engine"}}),
		topology("order", "another order", map[string]any{"order": []any{"decoder"}}),
		topology("soak", "another soak", map[string]any{"soak": "5m0s"}),
		topology("ratio", "another maintainRatio", map[string]any{"maintainRatio": map[string]any{"tolerance": int64(5)}}),

		refuse("two canary groups", repinCanaries, "groups[0] and groups[1]", live(canary("engine"), canary("decoder"))),

		mailbox("repin pending", "ome.io/rollout-repin", "rp1:1510b4e22f7e"),
		mailbox("repin of anything pending", "ome.io/rollout-repin", "now"),
		mailbox("empty repin pending", "ome.io/rollout-repin", ""),
		mailbox("promote pending", "ome.io/rollout-promote", "bbbbbbbb"),
		mailbox("rollback annotation says false", "ome.io/rollout-rollback", "false"),
		{name: "ome namespace is no flag of it", fixture: drifted(), flags: []string{"--yes", "--ome-namespace=ops"}, code: 1, message: "unknown flag: --ome-namespace"},
	}
}

// repinEvidenceCases: what the controller reports has to show a pinned plan that
// drifted, and to agree with itself.
func repinEvidenceCases() []*actionCase {
	no := func(name, says string, edit func(*fixture)) *actionCase {
		return &actionCase{name: "evidence: " + name, fixture: drifted().with(edit), code: 1, message: repinEvidence, says: says}
	}
	status := func(v any, path ...string) func(*fixture) {
		return func(f *fixture) { set(f.service, v, append([]string{"status"}, path...)...) }
	}
	ready := func(name, says, status, reason, since string) *actionCase {
		return no(name, says, func(f *fixture) {
			conditions(f, condition(readyCondition, status, reason, "", since), condition(driftCondition, "True", "SpecNewerThanRun", driftMessage("0", surge2, surge1), driftedAt))
		})
	}
	drift := func(name, says, status, reason, message, since string) *actionCase {
		return no(name, says, func(f *fixture) { redrift(f, status, reason, message, since) })
	}
	said := driftMessage("0", surge2, surge1)
	group := func(fields map[string]any) func(*fixture) {
		return func(f *fixture) {
			g := map[string]any{"index": int64(0), "source": "Inline", "observedDigest": surge2}
			for k, v := range fields {
				if g[k] = v; v == nil {
					delete(g, k)
				}
			}
			report(f, g)
		}
	}
	run := func(field, value string) func(*fixture) { return status(value, "rollout", "activeRun", field) }
	// What the schema refuses can only come from another version of it.
	rewritten := func(name, says string, edit func(plan map[string]any)) *actionCase {
		return &actionCase{name: "evidence: " + name, fixture: drifted(), code: 1, message: repinEvidence, says: says,
			hook: on("GET", "/inferenceservices/chat", rewrite(func(o map[string]any) {
				at, _, _ := unstructured.NestedFieldNoCopy(o, "status", "rollout", "activeRun", "plan", "groups")
				edit(at.([]any)[0].(map[string]any)["group"].(map[string]any))
			}))}
	}
	policy := func(f *fixture) {
		ref := map[string]any{"name": "slow", "progression": "rollingUpdate"}
		set(f.service, []any{map[string]any{"components": []any{"engine", "decoder"}, "policyRef": ref}}, "spec", "rollout", "groups")
		group(map[string]any{"source": "Policy", "observedDigest": nil, "policyRef": ref})(f)
		redrift(f, "True", "PolicyNewerThanRun", driftMessage("0", "(unresolvable)", surge1), driftedAt)
	}
	return []*actionCase{
		no("rollout status behind", "status.rollout.observedGeneration", status(int64(7), "rollout", "observedGeneration")),
		no("status ahead of spec", "status.observedGeneration 9", status(int64(9), "observedGeneration")),
		no("no conditions", "RolloutPlanReady is absent", func(f *fixture) { unset("status", "conditions")(f) }),
		no("drift not reported", "RolloutPlanDrift is absent", func(f *fixture) {
			conditions(f, condition(readyCondition, "True", "Pinned", "", pinnedAt))
		}),
		ready("plan parked", "False/PlanInvalid, not True/Pinned", "False", "PlanInvalid", pinnedAt),
		ready("plan without a run", "True/NoActiveRun, not True/Pinned", "True", "NoActiveRun", pinnedAt),
		ready("ready since no time", "lastTransitionTime of RolloutPlanReady is missing", "True", "Pinned", ""),
		ready("ready in the future", "lastTransitionTime of RolloutPlanReady is "+future, "True", "Pinned", future),
		ready("ready after the drift", "RolloutPlanReady came after that", "True", "Pinned", "2026-09-28T14:04:00Z"),
		drift("drift unknown", "Unknown/Waiting, not True", "Unknown", "Waiting", said, driftedAt),
		drift("no drift for another reason", "False/Waiting, not True", "False", "Waiting", "", driftedAt),
		drift("drift of a policy that the group doesn't use", "calls for True/SpecNewerThanRun", "True", "PolicyNewerThanRun", said, driftedAt),
		drift("drift for no reason known", "calls for True/SpecNewerThanRun", "True", "Surprise", said, driftedAt),
		drift("drift since no time", "lastTransitionTime of RolloutPlanDrift is missing", "True", "SpecNewerThanRun", said, ""),
		drift("drift in the future", "lastTransitionTime of RolloutPlanDrift is "+future, "True", "SpecNewerThanRun", said, future),
		drift("drift before the pin", "was pinned after that", "True", "SpecNewerThanRun", said, "2026-09-28T13:59:00Z"),
		drift("drift without a message", "names no groups", "True", "SpecNewerThanRun", "", driftedAt),
		drift("drift message unreadable", "names no groups", "True", "SpecNewerThanRun", "the plan changed", driftedAt),
		drift("drift of another live digest", "says "+blueGreen, "True", "SpecNewerThanRun", driftMessage("0", blueGreen, surge1), driftedAt),
		drift("drift of another pinned digest", "says "+surge2+" and "+blueGreen, "True", "SpecNewerThanRun", driftMessage("0", surge2, blueGreen), driftedAt),
		drift("drift of a group that isn't there", "names groups[1]", "True", "SpecNewerThanRun", driftMessage("1", surge2, surge1), driftedAt),
		drift("drift of other counts", "speaks of 2 live and 1 pinned groups", "True", "SpecNewerThanRun",
			"groups: live render has 2 and the run pinned 1; the edit applies at the next run (or via ome.io/rollout-repin)", driftedAt),
		{name: "evidence: drifted in the server's future", fixture: drifted(), serverNow: now.Add(-3 * time.Minute), code: 1, message: repinEvidence, says: "in the future"},
		no("opened in the future", "activeRun.openedAt is "+future, run("openedAt", future)),
		no("pinned in the future", "activeRun.pinnedAt is "+future, run("pinnedAt", future)),
		no("pinned before it opened", "is before openedAt", run("pinnedAt", "2026-09-28T13:00:00Z")),
		no("run of another service", "isn't an ID of a run", run("runID", "other-9c1e44ab07d2")),
		no("run ID of another form", "isn't an ID of a run", run("runID", "chat-9C1E44AB07D2")),
		no("run ID that can't be shown", "isn't an ID of a run", run("runID", "chat-\u202e9c1e44ab07d2")),
		no("pinned plan empty", "it has no groups", func(f *fixture) { pin(f) }),
		no("pinned digest missing", "portableDigest", func(f *fixture) {
			pin(f, map[string]any{"source": "Inline", "group": map[string]any{"components": []any{"engine", "decoder"}, "rollingUpdate": surge(1)}})
		}),
		no("pinned digest of another form", "portableDigest", func(f *fixture) {
			pin(f, pinnedGroup("rp2:74e7029e7f20", map[string]any{"components": []any{"engine", "decoder"}, "rollingUpdate": surge(1)}))
		}),
		no("pinned group without a progression", "has 0 progressions", func(f *fixture) {
			pin(f, pinnedGroup(surge1, map[string]any{"components": []any{"engine", "decoder"}}))
		}),
		rewritten("pinned group with two progressions", "has 2 progressions", func(g map[string]any) { g["blueGreen"] = map[string]any{} }),
		rewritten("pinned group without components", "has no components", func(g map[string]any) { g["components"] = []any{} }),
		rewritten("pinned reference to a policy", "refers to a policy", func(g map[string]any) {
			g["policyRef"] = map[string]any{"name": "slow", "progression": "rollingUpdate"}
		}),
		no("live groups not reported", "status.rollout.groups has 0 groups", func(f *fixture) { report(f) }),
		no("live groups in another order", "groups[0].index is 1", group(map[string]any{"index": int64(1)})),
		no("live group of another source", `source is "Policy"`, group(map[string]any{"source": "Policy"})),
		no("live digest missing", "observedDigest", group(map[string]any{"observedDigest": nil})),
		no("live digest of another form", "observedDigest", group(map[string]any{"observedDigest": "rp1:xyz"})),
		no("status without a stamp and of an older spec", "the spec renders "+surge2, func(f *fixture) {
			unset("status", "rollout", "observedGeneration")(f)
			group(map[string]any{"observedDigest": blueGreen})(f)
		}),
		no("live spec can't be run", "is in groups[0] already", func(f *fixture) {
			set(f.service, []any{map[string]any{"components": []any{"engine"}}, map[string]any{"components": []any{"engine"}}}, "spec", "rollout", "groups")
		}),
		no("policy missing", `the policy "slow" isn't resolved`, policy),
	}
}

// repinForks are those of repin alone.
func repinForks(all *forks) {
	repin := []string{"repin"}
	all.fails(repin, 1, repinNoRun, repinEmpty, repinEvidence, repinPinned, repinTopology, repinCanaries, repinMailbox, "unknown flag: --ome-namespace")
	all.because("repin", repinPinned, "False/InSync", "renders the same")
	all.because("repin", repinTopology, "groups and the spec has", "progression kind", "components", "order", "soak", "maintainRatio")
	all.because("repin", repinMailbox, "ome.io/rollout-repin", "ome.io/rollout-promote", "ome.io/rollout-rollback")
	all.because("repin", repinEvidence, "status.rollout.observedGeneration", "status.observedGeneration 9", "RolloutPlanReady is absent", "RolloutPlanDrift is absent",
		"not True/Pinned", "lastTransitionTime of RolloutPlanReady", "lastTransitionTime of RolloutPlanDrift", "not True", "calls for", "was pinned after that",
		"came after that", "names no groups", "says "+blueGreen, "says "+surge2, "names groups[1]", "speaks of", "in the future", "activeRun.openedAt", "activeRun.pinnedAt",
		"is before openedAt", "isn't an ID of a run", "it has no groups", "portableDigest", "progressions", "has no components", "refers to a policy",
		"status.rollout.groups has", "index is", "source is", "observedDigest", "the spec renders", "is in groups[0] already", "isn't resolved")
	groups := func(c *actionCase) []any {
		list, _, _ := unstructured.NestedSlice(c.serviceOf(), "spec", "rollout", "groups")
		return list
	}
	has := func(c *actionCase, field string) bool {
		return slices.ContainsFunc(groups(c), func(g any) bool { return g.(map[string]any)[field] != nil })
	}
	own := func(c *actionCase) bool { return has(c, "rollingUpdate") || has(c, "blueGreen") || has(c, "canary") }
	all.add(repin, "a plan of one group", func(c *actionCase) bool { return c.succeeds() && len(groups(c)) == 1 })
	all.add(repin, "a plan of two groups, one without a reported digest", func(c *actionCase) bool { return c.succeeds() && len(groups(c)) == 2 })
	all.add(repin, "no right but that on the service is needed", func(c *actionCase) bool { return c.succeeds() && c.user == "modelless" })
	all.add(repin, "a pause doesn't refuse", func(c *actionCase) bool { return c.succeeds() && c.annotation("ome.io/rollout-paused") != "" })
	all.add(repin, "the server's clock decides", func(c *actionCase) bool { return c.succeeds() && !c.serverNow.IsZero() })
	all.add(repin, "a service that fronts standalone replicas has no run", func(c *actionCase) bool {
		_, refs, _ := unstructured.NestedMap(c.serviceOf(), "spec", "replicaRefs")
		return c.ends(1, repinNoRun) && refs
	})
	all.add(repin, "a progression of its own over a policy", func(c *actionCase) bool { return c.succeeds() && has(c, "policyRef") && own(c) })
	all.add(repin, "a plan from a policy", func(c *actionCase) bool { return c.succeeds() && has(c, "policyRef") && !own(c) })
	all.add(repin, "a plan with one canary group", func(c *actionCase) bool { return c.succeeds() && has(c, "canary") })
	all.add(repin, "drift of an edited policy", func(c *actionCase) bool {
		list, _, _ := unstructured.NestedSlice(c.serviceOf(), "status", "conditions")
		return c.succeeds() && slices.ContainsFunc(list, func(x any) bool {
			reason, _ := x.(map[string]any)["reason"].(string)
			return strings.HasPrefix(reason, "Policy")
		})
	})
}
