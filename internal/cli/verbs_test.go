package cli

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// verbWords are the strings of the contract that differ between the actions.
type verbWords struct {
	conflict, wrote, previewFailed string
	// unbound is said of a foreign answer. failed, late and aborted are said when
	// the patch failed, ran out of time, or was given up.
	unbound, failed, late, aborted string
	// lost is said when nobody knows whether the patch was stored.
	lost string
	// changed is said when the second read differs; changedCode and goneCode are
	// the exit codes when it differs and when it fails.
	changed               string
	changedCode, goneCode int
	// usage words a mistake in the command line anew.
	usage func(string) string
}

// verb is an action under test.
type verb struct {
	name string
	// path is the command and base the flags that it can't do without.
	path, base []string
	// kind and object name what the patch is for.
	kind, object string
	// prompts is false for an action that never asks.
	prompts bool
	// mailbox is the annotation that the action sets or removes. serviceOnly is true
	// when it reads nothing but the service.
	mailbox     string
	serviceOnly bool
	// ready is a cluster in which the action succeeds.
	ready func() *fixture
	words verbWords
}

func same(s string) string { return s }

// verbs are the guarded actions, in the order of their cases.
func verbs() []*verb {
	rollout := verbWords{
		conflict: conflict, unbound: unbound, failed: readFailed, lost: readFailed, late: deadline, aborted: canceled, usage: same,
		wrote:         "write rollout action result failed; check rollout status",
		previewFailed: "write action preview failed; no request submitted",
	}
	repin := rollout
	repin.conflict = "guarded annotation patch rejected; refresh rollout explain and retry explicitly"
	repin.wrote = "write rollout action result failed; check rollout explain"
	repin.unbound, repin.lost, repin.late, repin.aborted = repinUnknown, repinUnknown, repinUnknown, repinUnknown
	return []*verb{
		{name: "pause", path: []string{"rollout", "pause"}, kind: "InferenceService", object: "chat", prompts: true, mailbox: "ome.io/rollout-paused",
			ready: rolling, words: rollout},
		{name: "resume", path: []string{"rollout", "resume"}, kind: "InferenceService", object: "chat", prompts: true, mailbox: "ome.io/rollout-paused",
			ready: func() *fixture { return paused("true") }, words: rollout},
		{name: "scale", path: []string{"scale"}, kind: "InferenceReplica", object: "chat-engine", ready: scalable, mailbox: "ome.io/release-held-revision",
			base: []string{"--component=engine", "--replicas=2", "--override-autoscaler"},
			words: verbWords{
				conflict: "guarded scale precondition rejected; inspect current status and prepare a new request",
				wrote:    "write scale result failed; API acceptance may already have occurred; inspect current status", previewFailed: "write scale preview failed; no request submitted",
				unbound: scaleUnknown, failed: scaleUnknown, lost: scaleUnknown, late: scaleUnknown, aborted: scaleUnknown,
				changed: "manual scale source changed; inspect current status and prepare a new request", changedCode: 1, goneCode: 1,
				usage: scaleUsage,
			}},
		{name: "release-held", path: []string{"instance", "release-held"}, kind: "InferenceReplica", object: "chat-engine", prompts: true, ready: held, mailbox: "ome.io/release-held-revision",
			base: []string{"--component=engine", "--revision=chat-engine-bbbbbbbb"},
			words: verbWords{
				conflict: "guarded held-release rejected; inspect instance retry-blocks",
				wrote:    "write held-release result failed; request outcome may be unknown, inspect instance retry-blocks", previewFailed: "write action preview failed; no request submitted",
				unbound: releaseUnknown, failed: releaseUnknown, lost: releaseUnknown, late: releaseUnknown, aborted: releaseUnknown,
				changed: "held-release preview became stale; inspect instance retry-blocks and retry explicitly", changedCode: 3, goneCode: 3,
				usage: same,
			}},
		{name: "repin", path: []string{"rollout", "repin"}, kind: "InferenceService", object: "chat", prompts: true, serviceOnly: true,
			mailbox: "ome.io/rollout-repin", ready: drifted, words: repin},
		{name: "promote", path: []string{"rollout", "promote"}, kind: "InferenceService", object: "chat", prompts: true, mailbox: "ome.io/rollout-promote", ready: promotable, words: rollout},
		{name: "rollback", path: []string{"rollout", "rollback"}, kind: "InferenceService", object: "chat", prompts: true, mailbox: "ome.io/rollout-rollback", ready: promotable, words: rollout},
		{name: "retry", path: []string{"rollout", "retry"}, kind: "InferenceService", object: "chat", prompts: true, mailbox: "ome.io/rollout-resume", ready: rejected, words: rollout},
	}
}

const (
	scaleUnknown   = "scale request outcome unknown; inspect kubectl ome autoscale status before preparing another request"
	releaseUnknown = "held-release request outcome unknown; inspect instance retry-blocks before another explicit request"
	scaleArguments = "invalid scale arguments; require one service, component engine|decoder|router, positive base-10 --replicas, supported output/dry-run and valid namespace/context/timeout"
	scaleContext   = "scale context is unavailable or unsafe"
)

// scaleUsage is how scale words what the other actions say of a command line.
func scaleUsage(message string) string {
	switch message {
	case "selected kubeconfig context is unavailable or unsafe":
		return scaleContext
	case "resolve workload namespace failed":
		return readFailed
	}
	return scaleArguments
}

func verbNamed(name string) *verb {
	all := verbs()
	return all[slices.IndexFunc(all, func(v *verb) bool { return v.name == name })]
}

// replicaVerb reports whether the action's target is a replica: such an action
// reads twice.
func (v *verb) replicaVerb() bool { return v.kind == "InferenceReplica" }

// touchTarget writes the status of the action's target, as a controller does.
func (v *verb) touchTarget(r *running) { r.touch(v.kind, v.object, "again=1") }

// editTarget changes the spec of the action's target.
func (v *verb) editTarget(r *running) {
	if !v.replicaVerb() {
		edit(r)
		return
	}
	r.changeObject(v.kind, v.object, func(u *unstructured.Unstructured) { set(u, int64(5), "spec", "minReadySeconds") })
}

// annotateTarget sets an annotation of the action's target.
func (v *verb) annotateTarget(r *running, key, value string) {
	r.changeObject(v.kind, v.object, func(u *unstructured.Unstructured) {
		a := u.GetAnnotations()
		a[key] = value
		u.SetAnnotations(a)
	})
}

// scalable is a service at rest whose engine can be scaled from 1 to 4 Instances.
func scalable() *fixture {
	f := settled()
	set(f.service, map[string]any{"minReplicas": int64(1), "maxReplicas": int64(4)}, "spec", "engine")
	component := func(c, class, manager, source string) map[string]any {
		return map[string]any{
			"rolloutPhase":   "Stable",
			"autoscaler":     map[string]any{"class": class, "managedBy": manager, "specSource": source},
			"scaleTargetRef": map[string]any{"apiVersion": "ome.io/v1beta1", "kind": "InferenceReplica", "name": "chat-" + c},
		}
	}
	set(f.service, map[string]any{"engine": component("engine", "HPA", "ome", "default"), "decoder": component("decoder", "HPA", "ome", "default")}, "status", "components")
	set(f.service, []any{map[string]any{"name": "0", "components": []any{"engine", "decoder"}, "policy": "BlueGreen", "phase": "Idle"}}, "status", "rolloutCoordination", "groups")
	return f
}

// held is a service in the middle of a roll whose engine gave up on its target.
func held() *fixture {
	f := rolling()
	f.block(heldBlock("chat-engine-bbbbbbbb"))
	return f
}

func heldBlock(revision string) map[string]any {
	return map[string]any{"targetRevision": revision, "state": "Held", "attemptsStarted": int64(3), "countedFailures": int64(3),
		"firstFailureAt": "2026-09-28T13:50:00Z", "lastFailureAt": "2026-09-28T14:00:00Z", "reason": "ImagePullBackOff: e:v2 not found"}
}

// block sets the retry blocks of the engine.
func (f *fixture) block(blocks ...map[string]any) {
	var all []any
	for _, b := range blocks {
		all = append(all, b)
	}
	set(f.replicas["engine"], all, "status", "retryBlocks")
}
