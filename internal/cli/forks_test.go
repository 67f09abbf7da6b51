package cli

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fork is one way that the contract says an action can go.
type fork struct {
	name string
	// verbs it belongs to.
	verbs []string
	// shows recognises a case that takes the fork, by what it sets up and expects
	// and not by its name.
	shows func(*actionCase) bool
}

// Sets of actions that share forks.
var (
	everyVerb     = []string{"pause", "resume", "scale", "release-held", "repin", "promote", "rollback", "retry"}
	runtimeVerbs  = []string{"pause", "resume", "scale", "release-held", "promote", "rollback", "retry"}
	rolloutVerbs  = []string{"pause", "resume", "repin", "promote", "rollback", "retry"}
	replicaVerbs  = []string{"scale", "release-held"}
	promptedVerbs = []string{"pause", "resume", "release-held", "repin", "promote", "rollback", "retry"}
	mailboxVerbs  = []string{"pause", "resume", "scale", "promote", "rollback", "retry"}
	readingVerbs  = []string{"pause", "scale", "release-held", "promote", "rollback", "retry"}
	// unsafeVerbs show a value that they didn't make themselves.
	unsafeVerbs = []string{"pause", "resume", "scale", "release-held"}
)

// forks collects the forks of the contract.
type forks []fork

func (all *forks) add(verbs []string, name string, shows func(*actionCase) bool) {
	*all = append(*all, fork{name, verbs, shows})
}

// fails adds a fork for each message.
func (all *forks) fails(verbs []string, code int, messages ...string) {
	for _, m := range messages {
		all.add(verbs, m, func(c *actionCase) bool { return c.ends(code, m) })
	}
}

// because adds a fork for each cause of one message.
func (all *forks) because(verb, message string, causes ...string) {
	for _, says := range causes {
		all.add([]string{verb}, message+" ("+says+")", func(c *actionCase) bool { return c.ends(1, message) && strings.Contains(c.says, says) })
	}
}

// contractForks lists the contract, independently of the case table.
func contractForks() []fork {
	var all forks
	words := func(c *actionCase) verbWords { return verbNamed(c.verb).words }
	dry := func(c *actionCase) string { return c.option("--dry-run", "none") }
	for _, mode := range []string{"none", "client", "server"} {
		all.add(everyVerb, "dry run "+mode, func(c *actionCase) bool { return c.succeeds() && dry(c) == mode })
		all.add(promptedVerbs, "not confirmed, dry run "+mode, func(c *actionCase) bool { return c.ends(1, notConfirmed) && dry(c) == mode })
	}
	for _, output := range []string{"table", "wide", "json", "yaml"} {
		all.add(everyVerb, "output "+output, func(c *actionCase) bool { return c.succeeds() && c.option("-o", "table") == output })
	}
	all.add(promptedVerbs, "confirmed at the prompt", func(c *actionCase) bool { return c.succeeds() && c.terminal && !c.has("--yes") })
	all.add(promptedVerbs, "no terminal and no --yes", func(c *actionCase) bool { return c.ends(1, notConfirmed) && !c.terminal })

	for _, message := range []string{
		"exactly one inference service is required", "output must be table, wide, json or yaml", "dry-run must be none, client or server",
		"unknown flag: --force", "invalid inference service name", "resolved workload namespace is invalid",
		"resolve workload namespace failed", "selected kubeconfig context is unavailable or unsafe",
	} {
		all.add(everyVerb, message, func(c *actionCase) bool {
			return c.ends(1, words(c).usage(message)) && (c.says == message || words(c).usage(message) != scaleArguments)
		})
	}
	all.fails(everyVerb, 1, identity, deleting, bounds, placement)
	all.fails(runtimeVerbs, 1, noRuntime)
	all.fails(unsafeVerbs, 1, unsafeValue)
	all.fails(mailboxVerbs, 1, mailbox)
	all.fails(readingVerbs, 1, stale)
	all.add(everyVerb, "preview can't be written", func(c *actionCase) bool { return c.ends(1, words(c).previewFailed) && c.brokenErr })
	all.add(everyVerb, "result can't be written", func(c *actionCase) bool { return c.ends(1, words(c).wrote) && c.brokenOut })
	all.fails([]string{"pause"}, 1, alreadyOn, nothing)
	all.fails([]string{"resume"}, 1, notPaused, "--discard-pending-actions requires --yes")

	// Where a request ended decides what the person knows.
	for _, end := range []string{readFailed, deadline, canceled} {
		all.add(everyVerb, "before the patch: "+end, func(c *actionCase) bool { return c.ends(1, end) && c.patches == 0 })
	}
	all.add(everyVerb, "the patch failed", func(c *actionCase) bool { return c.ends(1, words(c).failed) && c.patches == 1 && c.says == "" })
	all.add(everyVerb, "nobody knows whether the patch was stored", func(c *actionCase) bool { return c.ends(1, words(c).lost) && c.patches == 1 && c.says == "" })
	all.add(everyVerb, "the patch ran out of time", func(c *actionCase) bool { return c.ends(1, words(c).late) && c.patches == 1 && c.says == deadline })
	all.add(everyVerb, "the patch was given up", func(c *actionCase) bool { return c.ends(1, words(c).aborted) && c.patches == 1 && c.says == canceled })
	all.add(everyVerb, "the patch is forbidden", func(c *actionCase) bool { return c.ends(1, words(c).failed) && c.patches == 1 && c.says == "Forbidden" })
	all.add(everyVerb, "the answer is foreign", func(c *actionCase) bool { return c.ends(1, words(c).unbound) && c.patches == 1 })
	all.add(everyVerb, "exit 3: the target changed", func(c *actionCase) bool { return c.ends(3, words(c).conflict) && c.patches == 1 })
	all.add(everyVerb, "exit 3 in a server dry run", func(c *actionCase) bool { return c.ends(3, words(c).conflict) && dry(c) == "server" })
	retried := func(c *actionCase) bool { return c.has("--retry-on-status-change") }
	all.add(everyVerb, "retry on status change, applied", func(c *actionCase) bool { return c.succeeds() && retried(c) && c.patches == 1 })
	all.add(rolloutVerbs, "retry on status change, more than the status changed", func(c *actionCase) bool {
		return c.ends(3, words(c).conflict) && retried(c) && c.patches == 0
	})
	all.add(replicaVerbs, "retry on status change, more than the status changed", func(c *actionCase) bool {
		return c.ends(3, words(c).changed) && retried(c) && c.patches == 0
	})
	all.add(replicaVerbs, "retry on status change, the second read failed", func(c *actionCase) bool {
		return c.ends(words(c).goneCode, words(c).changed) && retried(c) && c.patches == 0
	})
	secondReadForks(&all)
	runtimeForks(&all)
	pauseForks(&all)
	scaleForks(&all)
	releaseForks(&all)
	repinForks(&all)
	canaryForks(&all)
	return all
}

// secondReadForks: what the second read finds, and whether it ends at all.
func secondReadForks(all *forks) {
	words := func(c *actionCase) verbWords { return verbNamed(c.verb).words }
	unsent := func(c *actionCase) bool { return c.patches == 0 && !c.has("--retry-on-status-change") }
	for _, what := range []string{`InferenceService "chat"`, `InferenceReplica "chat-engine"`, `InferenceReplica "chat-decoder"`, `InferenceReplica "chat-router"`,
		`ClusterServingRuntime "rt1"`, `ClusterBaseModel "m1"`} {
		all.add(replicaVerbs, "second read: "+what+" changed", func(c *actionCase) bool {
			return c.ends(words(c).changedCode, words(c).changed) && unsent(c) && c.says == what
		})
	}
	for _, cause := range []string{"NotFound", "InternalError", deadline} {
		all.add(replicaVerbs, "second read failed: "+cause, func(c *actionCase) bool {
			return c.ends(words(c).goneCode, words(c).changed) && unsent(c) && c.says == cause
		})
	}
	all.add(replicaVerbs, "second read in a client dry run", func(c *actionCase) bool {
		return c.ends(words(c).changedCode, words(c).changed) && c.option("--dry-run", "none") == "client"
	})
}

// runtimeForks: how the active runtime is found.
func runtimeForks(all *forks) {
	all.add(runtimeVerbs, "runtime named, unpinned", func(c *actionCase) bool { return c.succeeds() && c.runtime("name") == "rt1" && c.pin() == "" })
	all.add(runtimeVerbs, "fronts standalone replicas", func(c *actionCase) bool {
		_, refs, _ := unstructured.NestedMap(c.serviceOf(), "spec", "replicaRefs")
		return c.ends(1, noRuntime) && refs
	})
	all.add(runtimeVerbs, "runtime disabled", func(c *actionCase) bool { return c.ends(1, noRuntime) && c.runtime("name") == "disabled" })
	pinned := func(c *actionCase) bool { return c.runtime("autoSync") == false && c.pin() != "" }
	all.add(runtimeVerbs, "runtime chosen by the model", func(c *actionCase) bool { return c.succeeds() && c.fixture != nil && c.runtime("name") == nil })
	all.add(runtimeVerbs, "runtime pinned by status.pinnedRevisionName", func(c *actionCase) bool { return c.succeeds() && pinned(c) && c.runtime("revision") == nil })
	all.add(runtimeVerbs, "runtime pinned by spec.runtime.revision", func(c *actionCase) bool { return c.succeeds() && c.runtime("revision") != nil })
	all.add(runtimeVerbs, "unpinned service with a leftover status.pinnedRevisionName", func(c *actionCase) bool {
		return c.succeeds() && c.runtime("autoSync") != false && c.pin() != ""
	})
	all.add(runtimeVerbs, "runtime that inherits", func(c *actionCase) bool { return c.succeeds() && c.runtime("name") == "child" })
	all.add(runtimeVerbs, "pinned revision that can't be used", func(c *actionCase) bool { return c.ends(1, noRuntime) && pinned(c) })
	all.add([]string{"scale"}, "pinned runtime has drifted", func(c *actionCase) bool { return c.ends(1, scaleSource) && pinned(c) })
}

// pauseForks are those of pause and resume alone, and of reading rows.
func pauseForks(all *forks) {
	resume := []string{"resume"}
	pausedAt := func(depth string) func(*actionCase) bool {
		return func(c *actionCase) bool { return c.succeeds() && c.annotation("ome.io/rollout-paused") == depth }
	}
	all.add(resume, "from true", pausedAt("true"))
	all.add(resume, "from freeze", pausedAt("freeze"))
	all.add(resume, "discards pending requests", func(c *actionCase) bool {
		return c.succeeds() && c.has("--discard-pending-actions") && c.annotation("ome.io/rollout-promote") != "" && c.annotation("ome.io/rollout-rollback") != ""
	})
	rows := func(c *actionCase) int {
		rows, _, _ := unstructured.NestedFieldNoCopy(c.replicaOf("engine"), "status", "instanceStatuses")
		list, _ := rows.([]any)
		return len(list)
	}
	all.add(readingVerbs, "2048 rows pass", func(c *actionCase) bool { return c.succeeds() && rows(c) == 2048 })
	all.add(readingVerbs, "2049 rows don't", func(c *actionCase) bool { return c.ends(1, bounds) && rows(c) == 2049 })
	all.add(readingVerbs, "columns are read like a list", func(c *actionCase) bool {
		encoding, _, _ := unstructured.NestedString(c.replicaOf("engine"), "status", "instanceStatusEncoding")
		return c.succeeds() && encoding == "ColumnarV2"
	})
	all.add(readingVerbs, "rows that don't decode", func(c *actionCase) bool {
		encoding, _, _ := unstructured.NestedString(c.replicaOf("engine"), "status", "instanceStatusEncoding")
		return c.ends(1, stale) && encoding == "ColumnarV2"
	})
}

// leftForLater are the forks that need a runtime resolved through its stored
// revisions, its parents or a model. Today they all end as "no active runtime".
// Drift of a runtime is a matter of pinned ones only.
var leftForLater = []string{
	"runtime chosen by the model",
	"runtime pinned by status.pinnedRevisionName",
	"runtime pinned by spec.runtime.revision",
	"unpinned service with a leftover status.pinnedRevisionName",
	"runtime that inherits",
	"pinned revision that can't be used",
	"pinned runtime has drifted",
}

// TestEveryForkIsCoveredOrLeft: each fork of the contract is either taken by a case
// of the table or listed as left, and each case takes a fork.
func TestEveryForkIsCoveredOrLeft(t *testing.T) {
	cases := actionCases()
	known := map[string]bool{}
	takes := map[*actionCase]bool{}
	for _, f := range contractForks() {
		known[f.name] = true
		for _, verb := range f.verbs {
			covered := ""
			for _, c := range cases {
				if c.verb == verb && f.shows(c) {
					covered, takes[c] = c.name, true
				}
			}
			switch left := slices.Contains(leftForLater, f.name); {
			case left && covered != "":
				t.Errorf("%s: %q is listed as left for later, and the case %q takes it", verb, f.name, covered)
			case !left && covered == "":
				t.Errorf("%s: no case takes %q; add one, or list it as left for later", verb, f.name)
			}
		}
	}
	for _, name := range leftForLater {
		if !known[name] {
			t.Errorf("%q is left for later and no fork of the contract", name)
		}
	}
	for _, c := range cases {
		if !takes[c] {
			t.Errorf("the case %s %q (exit %d, %q) takes no fork of the contract", c.verb, c.name, c.code, c.message)
		}
	}
}

func (c *actionCase) succeeds() bool { return c.code == 0 && c.message == "" }
func (c *actionCase) ends(code int, message string) bool {
	return c.code == code && c.message == message
}

// words are the command line after the verb, as far as the case sets it.
func (c *actionCase) words() []string {
	switch {
	case c.line != nil:
		return c.line
	case c.flags == nil:
		return []string{"--yes"}
	}
	return c.flags
}

func (c *actionCase) has(flag string) bool { return slices.Contains(c.words(), flag) }

// option finds a flag's value in either form.
func (c *actionCase) option(flag, otherwise string) string {
	words := c.words()
	for i, w := range words {
		if value, ok := strings.CutPrefix(w, flag+"="); ok {
			return value
		}
		if w == flag && i+1 < len(words) {
			return words[i+1]
		}
	}
	return otherwise
}

func (c *actionCase) serviceOf() map[string]any {
	if c.fixture == nil {
		return nil
	}
	return c.fixture.service.Object
}

func (c *actionCase) replicaOf(component string) map[string]any {
	if c.fixture == nil || c.fixture.replicas[component] == nil {
		return nil
	}
	return c.fixture.replicas[component].Object
}

func (c *actionCase) annotation(key string) string {
	value, _, _ := unstructured.NestedString(c.serviceOf(), "metadata", "annotations", key)
	return value
}

// runtime is a field of spec.runtime, nil when absent.
func (c *actionCase) runtime(field string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(c.serviceOf(), "spec", "runtime", field)
	return value
}

func (c *actionCase) pin() string {
	value, _, _ := unstructured.NestedString(c.serviceOf(), "status", "pinnedRevisionName")
	return value
}
