package cli

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// scaleForks are the refusals of scale with each of their causes, in the order of the
// contract, and the ways in which it goes ahead.
func scaleForks(all *forks) {
	only := []string{"scale"}
	all.because("scale", scaleArguments, "component must be", "replicas must be a plain decimal number", "--override-autoscaler requires --yes",
		"--ome-namespace", "request-timeout", "selected kubeconfig context")
	all.fails(only, 1, scaleOverride, "scale namespace is unavailable or invalid", scaleContext)
	all.add(only, "never prompts", func(c *actionCase) bool { return c.ends(1, scaleArguments) && c.terminal && !c.has("--yes") })
	all.add(only, "kubeconfig can't be read", func(c *actionCase) bool { return c.ends(1, readFailed) && c.kubeconfig != "" })
	all.add(only, "the scale can't be read", func(c *actionCase) bool { return c.ends(1, readFailed) && c.user == "scaleless" })

	all.because("scale", scaleSource, "isn't an OMENative component", "a runtime sync is pending", "scalingPolicy.mode", "isn't reported yet",
		"reports KEDA / ome", "reports HPA / external", "from runtime")
	token := func(c *actionCase) string {
		t, _, _ := unstructured.NestedString(c.serviceOf(), "status", "lastRuntimeSyncToken")
		return t
	}
	all.add(only, "sync annotation removed after use", func(c *actionCase) bool {
		return c.ends(1, scaleSource) && token(c) != "" && c.annotation("ome.io/runtime-sync") == ""
	})
	all.add(only, "sync acknowledged", func(c *actionCase) bool {
		return c.succeeds() && token(c) != "" && c.annotation("ome.io/runtime-sync") == token(c)
	})
	policy := func(c *actionCase) bool {
		_, ok, _ := unstructured.NestedMap(c.serviceOf(), "spec", "engine", "autoscalerPolicyRef")
		return ok
	}
	inline := func(c *actionCase) bool {
		_, ok, _ := unstructured.NestedMap(c.serviceOf(), "spec", "engine", "autoscaler")
		return ok
	}
	all.add(only, "policy without an inline block", func(c *actionCase) bool { return c.ends(1, scalePolicy) && policy(c) && !inline(c) })
	all.add(only, "policy reported", func(c *actionCase) bool { return c.ends(1, scalePolicy) && !policy(c) })
	all.add(only, "inline block over a policy", func(c *actionCase) bool { return c.succeeds() && policy(c) && inline(c) })

	all.because("scale", scaleIncomplete, "isn't reported yet", "scaleTargetRef names Deployment", `names InferenceReplica "chat-decoder"`, "Missing",
		"2 InferenceReplicas claim", "claims component engine", "is being deleted", "has no spec.replicas", "changed while it was read")
	all.because("scale", stale, "ome.io/parent-generation", "status.observedGeneration is 0", "controller owner", "spec.parentRef", "spec.paused",
		"status.rollout.observedGeneration", "GroupStatusMissing", `"chat-router"`)
	all.because("scale", bounds, "2048", "256", `"chat-router"`)

	all.because("scale", scaleActive, "has the operation Update", "has the operation Restart", "status.updateRevision", "is Draining", "rolls back to", "run chat-")
	for _, phase := range []string{"Pending", "Creating", "Updating", "Restarting", "Migrating", "Deleting"} {
		all.because("scale", scaleActive, "Instance 0 is "+phase)
	}
	for _, phase := range []string{"Canarying", "BlueGreenStandby", "Pending", "Paused", "Promoting", "RollingBack", "RolledBack", "Failed"} {
		all.because("scale", scaleActive, "rollout phase "+phase)
	}
	for _, phase := range []string{"Surging", "Waiting", "Shifting", "Draining", "ScalingDown", "Staged", "Failed", "RollingBack", "Paused"} {
		all.add(only, "group phase "+phase, func(c *actionCase) bool { return c.ends(1, scaleActive) && c.says == "phase "+phase })
	}
	running := func(c *actionCase) bool {
		_, ok, _ := unstructured.NestedMap(c.serviceOf(), "status", "rollout", "activeRun")
		return ok
	}
	all.add(only, "a run elsewhere", func(c *actionCase) bool { return c.succeeds() && running(c) })
	all.add(only, "a sibling out of a run", func(c *actionCase) bool {
		observed, _, _ := unstructured.NestedInt64(c.replicaOf("decoder"), "status", "observedGeneration")
		return c.succeeds() && !running(c) && c.fixture != nil && observed == 0
	})

	all.fails(only, 1, scaleBounds)
	limit := func(c *actionCase, field string) (int64, bool) {
		n, ok, _ := unstructured.NestedInt64(c.serviceOf(), "spec", "engine", field)
		return n, ok
	}
	bound := func(c *actionCase, field string) bool { _, ok := limit(c, field); return ok }
	asked := func(c *actionCase) string { return c.option("--replicas", "2") }
	all.add(only, "above the maximum", func(c *actionCase) bool { return c.ends(1, scaleBounds) && asked(c) == "5" })
	all.add(only, "below the minimum", func(c *actionCase) bool {
		n, _ := limit(c, "minReplicas")
		return c.ends(1, scaleBounds) && n == 2 && asked(c) == "1"
	})
	all.add(only, "at the maximum", func(c *actionCase) bool { return c.succeeds() && asked(c) == "4" })
	all.add(only, "no maximum, the minimum", func(c *actionCase) bool { return c.succeeds() && !bound(c, "maxReplicas") && asked(c) == "2" })
	all.add(only, "no maximum, above the minimum", func(c *actionCase) bool { return c.ends(1, scaleBounds) && !bound(c, "maxReplicas") && asked(c) == "3" })
	all.add(only, "no bounds, one", func(c *actionCase) bool { return c.succeeds() && !bound(c, "minReplicas") && asked(c) == "1" })
	all.add(only, "no bounds, more", func(c *actionCase) bool { return c.ends(1, scaleBounds) && !bound(c, "minReplicas") && asked(c) == "2" })
	all.add(only, "bounds of the runtime", func(c *actionCase) bool { return c.succeeds() && c.runtime("name") == "bounded" && asked(c) == "6" })
	all.add(only, "past the bounds of the runtime", func(c *actionCase) bool { return c.ends(1, scaleBounds) && c.runtime("name") == "bounded" })
	held := func(c *actionCase, object map[string]any, path ...string) bool {
		n, _, _ := unstructured.NestedInt64(object, path...)
		return c.ends(1, scaleBounds) && n == 3
	}
	rolling := []string{"lifecycle", "updateStrategy", "rollingUpdate", "partition"}
	all.add(only, "below the service's partition", func(c *actionCase) bool {
		return held(c, c.serviceOf(), append([]string{"spec", "engine"}, rolling...)...)
	})
	all.add(only, "below the replica's partition", func(c *actionCase) bool {
		return held(c, c.replicaOf("engine"), append([]string{"spec"}, rolling...)...)
	})
	all.add(only, "below the pacing's partition", func(c *actionCase) bool { return held(c, c.replicaOf("engine"), "spec", "pacing", "partition") })
	all.add(only, "below the runtime's partition", func(c *actionCase) bool { return c.ends(1, scaleBounds) && c.runtime("name") == "staged" })
	all.add(only, "at the partition", func(c *actionCase) bool {
		n, _, _ := unstructured.NestedInt64(c.serviceOf(), append([]string{"spec", "engine"}, rolling...)...)
		return c.succeeds() && n == 3
	})

	for _, class := range []string{"HPA", "KEDA", "External", "None"} {
		all.add(only, "class "+class, func(c *actionCase) bool {
			got, _, _ := unstructured.NestedString(c.serviceOf(), "spec", "engine", "autoscaler", "class")
			return c.succeeds() && got == class
		})
	}
	for _, source := range []string{"isvc", "runtime", "default"} {
		all.add(only, "source "+source, func(c *actionCase) bool {
			got, _, _ := unstructured.NestedString(c.serviceOf(), "status", "components", "engine", "autoscaler", "specSource")
			return c.succeeds() && got == source
		})
	}
	count := func(c *actionCase, section string) int64 {
		n, _, _ := unstructured.NestedInt64(c.replicaOf("engine"), section, "replicas")
		return n
	}
	all.add(only, "reported count differs", func(c *actionCase) bool {
		return c.succeeds() && c.fixture != nil && count(c, "spec") != count(c, "status")
	})
	all.add(only, "fewer than before", func(c *actionCase) bool { return c.succeeds() && asked(c) == "1" && count(c, "spec") == 3 })
	all.add(only, "the pause doesn't matter", func(c *actionCase) bool { return c.succeeds() && c.annotation("ome.io/rollout-paused") == "true" })
	all.fails([]string{"scale"}, 1, scaleUnknown)
}

// releaseForks are the refusals of release-held with each of their causes, and the
// ways in which it goes ahead.
func releaseForks(all *forks) {
	only := []string{"release-held"}
	all.fails(only, 1, badComponent, badRevision, releasePending, releaseUnknown)
	all.because("release-held", notReleasable,
		"isn't an OMENative component", "Missing", "2 InferenceReplicas claim", "doesn't go with the name", "spec.parentRef", "controller owner",
		"ome.io/parent-generation", "status.observedGeneration is 0", "ome.io/controller-write", "is being deleted", `"chat-decoder"`,
		"has no retry block", "is Backoff", "is RetryInProgress", "has 2 retry blocks", "isn't about a revision",
		"attemptsStarted is 0", "nextRetryAt is set", "is in the future", "lastFailureAt is before firstFailureAt", "targetRevision is empty",
		`state "Lost" is unknown`, "two blocks")
	all.because("release-held", stale, "changed while it was read")
	all.because("release-held", bounds, "2048", "256")
	revision := func(c *actionCase) string { return c.option("--revision", "chat-engine-bbbbbbbb") }
	all.add(only, "by full name", func(c *actionCase) bool { return c.succeeds() && revision(c) == "chat-engine-bbbbbbbb" })
	all.add(only, "by hash", func(c *actionCase) bool { return c.succeeds() && revision(c) == "bbbbbbbb" })
	for _, depth := range []string{"", "true", "freeze", "false"} {
		all.add(only, "pause is "+depth, func(c *actionCase) bool { return c.succeeds() && c.annotation("ome.io/rollout-paused") == depth })
	}
	all.add(only, "the server's clock is ahead", func(c *actionCase) bool { return c.succeeds() && c.serverNow.After(now) })
	all.add(only, "the server's clock is behind", func(c *actionCase) bool {
		return c.ends(1, notReleasable) && !c.serverNow.IsZero() && c.serverNow.Before(now)
	})
}
