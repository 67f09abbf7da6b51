package cli

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// canaryForks are those of promote, rollback and retry alone.
func canaryForks(all *forks) {
	every, promote, rollback, retry := []string{"promote", "rollback", "retry"}, []string{"promote"}, []string{"rollback"}, []string{"retry"}
	all.fails(every, 1, pausedCanary, "group must be from 0 to 2")
	for _, verb := range every {
		all.because(verb, pausedCanary, `"true"`, `"freeze"`)
		all.because(verb, mailbox, "ome.io/rollout-promote", "ome.io/rollout-rollback")
		all.because(verb, noRuntime, "component decoder of canary group 0")
		all.because(verb, stale, "spec.parentRef", "ome.io/parent-generation", "Missing", "status.observedGeneration is 0", "spec.paused", "status.rollout.observedGeneration", "its observedGeneration")
		all.because(verb, bounds, "2048")
	}
	for _, verb := range []string{"promote", "rollback"} {
		all.because(verb, stale, "several canary groups", "the pinned digest is", "no target and stable revision", "has no canary status", "currentStep is", "canaryRevisionHash is", "is no revision hash",
			"stableRevisionHash is", "failed is set", "failed is unset", "rolledBackRevisionHash is set", "rolledBackRevisionHash is unset", "repeats none", "add up to", "is no revision of the component", "gives revision")
		all.because(verb, bounds, "traffic: 9")
		all.because(verb, nothing, "no rollout run is open", "rollout retry", "has no canary group", "group 0 of run", "group 2 of run", "hasn't begun", "steps are passed", "rolling back already", "rolled back already", "BlueGreenStandby")
	}
	all.because("promote", stale, "have the same canary revision")
	all.because("promote", promoteGate, "of 3 failures used", "--group=0 --override-analysis", "opens by itself", "has no gate", "has no analysis to override", "waits for its Instances", "CapacityTimeout", "AnalysisStalled",
		"only when it is Paused", "only when it is Promoting", "not 100", "has no stepEnteredTime", "is recorded", "promotedThrough is", "a repin raised it", "--release-hold --yes")
	all.because("promote", noHold, "isn't held before its weight", "waits for its Instances", "the canary failed", "promotedThrough is")
	all.fails(promote, 1, "--override-analysis requires --yes", "--release-hold requires --yes", "--override-analysis and --release-hold exclude each other")
	all.because("rollback", nothing, "isn't stored any more")
	all.fails(retry, 1, retryNothing, retryPending)
	all.because("retry", stale, "groups 1 (router) and 0 (engine)", "is no revision hash", "rolledBackRevisionHash is set", "failed is set")
	all.because("retry", retryNothing, "no canary of the service", "no canary of group 1", "is the primary of no canary group", "is still rolling back", `"chat-engine-aaaaaaaa"`, `"chat-decoder-99999999"`, `"chat-engine-99999999"`)

	value := func(c *actionCase, primary string, path ...string) any {
		v, _, _ := unstructured.NestedFieldNoCopy(c.serviceOf(), append([]string{"status", "components", primary}, path...)...)
		return v
	}
	groups := func(c *actionCase) int {
		list, _, _ := unstructured.NestedSlice(c.serviceOf(), "spec", "rollout", "groups")
		return len(list)
	}
	for _, p := range []string{"Pending", "Canarying", "Paused", "Promoting", "Failed"} {
		all.add(rollback, "from "+p, func(c *actionCase) bool { return c.succeeds() && value(c, "engine", "rolloutPhase") == p })
	}
	for _, step := range []int64{manualStep, analysisStep, timedStep, immediateStep, lastStep} {
		all.add(rollback, "from each step", func(c *actionCase) bool { return c.succeeds() && value(c, "engine", "canary", "currentStep") == step })
	}
	all.add([]string{"promote", "rollback"}, "status without stamps", func(c *actionCase) bool {
		return c.succeeds() && value(c, "engine", "canary") != nil && value(c, "engine", "canary", "observedGeneration") == nil
	})
	all.add(retry, "status without stamps", func(c *actionCase) bool {
		return c.succeeds() && value(c, "engine", "canary", "observedGeneration") == nil
	})
	all.add([]string{"promote", "rollback"}, "a copy for older readers", func(c *actionCase) bool {
		_, ok, _ := unstructured.NestedMap(c.serviceOf(), "status", "canary")
		return c.succeeds() && ok
	})
	all.add([]string{"promote", "rollback"}, "a retry waits too", func(c *actionCase) bool { return c.succeeds() && c.annotation("ome.io/rollout-resume") != "" })
	all.add(every, "one of two groups", func(c *actionCase) bool { return c.succeeds() && groups(c) == 2 && c.option("--group", "") == "1" })
	all.add(every, "the only group by its index", func(c *actionCase) bool { return c.succeeds() && groups(c) == 1 && c.option("--group", "") == "0" })
	all.add(every, "an unrecognized pause doesn't refuse", func(c *actionCase) bool { return c.succeeds() && c.annotation("ome.io/rollout-paused") == "false" })

	at := func(c *actionCase, step int64) bool {
		return c.succeeds() && value(c, "engine", "canary", "currentStep") == step
	}
	all.add(promote, "the last step", func(c *actionCase) bool { return at(c, lastStep) && c.patches == 1 })
	all.add(promote, "the last step with a delay", func(c *actionCase) bool { return at(c, lastStep) && c.patches == 0 })
	all.add(promote, "an analysis overridden", func(c *actionCase) bool { return at(c, analysisStep) && c.has("--override-analysis") && c.patches == 1 })
	all.add(promote, "an analysis overridden before its first sample", func(c *actionCase) bool {
		return at(c, analysisStep) && c.has("--override-analysis") && value(c, "engine", "canary", "metricResults") == nil
	})
	all.add(promote, "a hold released", func(c *actionCase) bool { return at(c, analysisStep) && c.has("--release-hold") })
	all.add(retry, "a failed canary", func(c *actionCase) bool { return c.succeeds() && value(c, "engine", "canary", "failed") != nil })
	all.add(retry, "a failed canary without a stable revision", func(c *actionCase) bool {
		return c.succeeds() && value(c, "engine", "canary", "failed", "reason") == "StableRevisionMissing"
	})
	all.add(retry, "a rejected canary beside an open run", func(c *actionCase) bool {
		_, open, _ := unstructured.NestedMap(c.serviceOf(), "status", "rollout", "activeRun")
		return c.succeeds() && open && value(c, "engine", "canary", "failed") == nil
	})
	all.add(retry, "a rejected canary without members", func(c *actionCase) bool {
		return c.succeeds() && value(c, "engine", "canary", "rolledBackRevisionHash") != nil && value(c, "engine", "canary", "members") == nil && groups(c) == 1
	})
	all.add(retry, "a rejected canary whose plan is that of a policy", func(c *actionCase) bool {
		list, _, _ := unstructured.NestedSlice(c.serviceOf(), "spec", "rollout", "groups")
		return c.succeeds() && len(list) == 1 && list[0].(map[string]any)["policyRef"] != nil
	})
	all.add(retry, "a rejection by its analysis", func(c *actionCase) bool { return c.succeeds() && value(c, "engine", "canary", "metricResults") != nil })
}
