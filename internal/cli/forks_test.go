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
	// verb it belongs to; both when empty.
	verb string
	// shows recognises a case that takes the fork, by what it sets up and expects
	// and not by its name.
	shows func(*actionCase) bool
}

// contractForks lists the contract, independently of the case table.
func contractForks() []fork {
	var all []fork
	add := func(verb, name string, shows func(*actionCase) bool) { all = append(all, fork{name, verb, shows}) }

	for _, mode := range []string{"none", "client", "server"} {
		add("", "dry run "+mode, func(c *actionCase) bool { return c.succeeds() && c.option("--dry-run", "none") == mode })
		add("", "not confirmed, dry run "+mode, func(c *actionCase) bool {
			return c.ends(1, notConfirmed) && c.option("--dry-run", "none") == mode
		})
	}
	for _, output := range []string{"table", "wide", "json", "yaml"} {
		add("", "output "+output, func(c *actionCase) bool { return c.succeeds() && c.option("-o", "table") == output })
	}
	add("", "confirmed at the prompt", func(c *actionCase) bool { return c.succeeds() && c.terminal && !c.has("--yes") })
	add("", "no terminal and no --yes", func(c *actionCase) bool { return c.ends(1, notConfirmed) && !c.terminal })

	fails := func(verb string, code int, messages ...string) {
		for _, m := range messages {
			add(verb, m, func(c *actionCase) bool { return c.ends(code, m) })
		}
	}
	fails("", 1,
		"exactly one inference service is required", "output must be table, wide, json or yaml", "dry-run must be none, client or server",
		"unknown flag: --force", "invalid inference service name", "resolved workload namespace is invalid",
		"resolve workload namespace failed", "selected kubeconfig context is unavailable or unsafe",
		identity, deleting, bounds, placement, noRuntime, unsafeValue, mailbox,
		"write action preview failed; no request submitted", "write rollout action result failed; check rollout status")
	fails("pause", 1, alreadyOn, nothing, stale)
	fails("resume", 1, notPaused, "--discard-pending-actions requires --yes")

	// Where a request ended decides what the person knows.
	for _, end := range []string{readFailed, deadline, canceled} {
		add("", "before the patch: "+end, func(c *actionCase) bool { return c.ends(1, end) && c.patches == 0 })
		add("", "after the patch: "+end, func(c *actionCase) bool { return c.ends(1, end) && c.patches == 1 })
	}
	add("", unbound, func(c *actionCase) bool { return c.ends(1, unbound) && c.patches == 1 })
	add("", "exit 3: the target changed", func(c *actionCase) bool { return c.ends(3, conflict) && c.patches == 1 })
	add("", "exit 3 in a server dry run", func(c *actionCase) bool { return c.ends(3, conflict) && c.option("--dry-run", "none") == "server" })
	add("", "retry on status change, applied", func(c *actionCase) bool { return c.succeeds() && c.has("--retry-on-status-change") && c.patches == 1 })
	add("", "retry on status change, more than the status changed", func(c *actionCase) bool {
		return c.ends(3, conflict) && c.has("--retry-on-status-change") && c.patches == 0
	})

	pausedAt := func(depth string) func(*actionCase) bool {
		return func(c *actionCase) bool { return c.succeeds() && c.annotation("ome.io/rollout-paused") == depth }
	}
	add("resume", "from true", pausedAt("true"))
	add("resume", "from freeze", pausedAt("freeze"))
	add("resume", "discards pending requests", func(c *actionCase) bool {
		return c.succeeds() && c.has("--discard-pending-actions") && c.annotation("ome.io/rollout-promote") != "" && c.annotation("ome.io/rollout-rollback") != ""
	})
	add("pause", "2048 rows pass", func(c *actionCase) bool {
		rows, _, _ := unstructured.NestedSlice(c.replicaOf("engine"), "status", "instanceStatuses")
		return c.succeeds() && len(rows) == 2048
	})
	add("pause", "columns are read like a list", func(c *actionCase) bool {
		encoding, _, _ := unstructured.NestedString(c.replicaOf("engine"), "status", "instanceStatusEncoding")
		return c.succeeds() && encoding == "ColumnarV2"
	})

	// How the active runtime is found.
	add("", "runtime named, unpinned", func(c *actionCase) bool { return c.succeeds() && c.runtime("name") == "rt1" && c.pin() == "" })
	add("", "fronts standalone replicas", func(c *actionCase) bool {
		_, refs, _ := unstructured.NestedMap(c.serviceOf(), "spec", "replicaRefs")
		return c.ends(1, noRuntime) && refs
	})
	add("", "runtime disabled", func(c *actionCase) bool { return c.ends(1, noRuntime) && c.runtime("name") == "disabled" })
	pinned := func(c *actionCase) bool { return c.runtime("autoSync") == false && c.pin() != "" }
	add("", "runtime chosen by the model", func(c *actionCase) bool { return c.succeeds() && c.fixture != nil && c.runtime("name") == nil })
	add("", "runtime pinned by status.pinnedRevisionName", func(c *actionCase) bool { return c.succeeds() && pinned(c) && c.runtime("revision") == nil })
	add("", "runtime pinned by spec.runtime.revision", func(c *actionCase) bool { return c.succeeds() && c.runtime("revision") != nil })
	add("", "unpinned service with a leftover status.pinnedRevisionName", func(c *actionCase) bool {
		return c.succeeds() && c.runtime("autoSync") != false && c.pin() != ""
	})
	add("", "runtime that inherits", func(c *actionCase) bool { return c.succeeds() && c.runtime("name") == "child" })
	add("", "pinned revision that can't be used", func(c *actionCase) bool { return c.ends(1, noRuntime) && pinned(c) })
	return all
}

// leftForLater are the forks that need a runtime resolved through its stored
// revisions, its parents or a model. Today they all end as "no active runtime".
var leftForLater = []string{
	"runtime chosen by the model",
	"runtime pinned by status.pinnedRevisionName",
	"runtime pinned by spec.runtime.revision",
	"unpinned service with a leftover status.pinnedRevisionName",
	"runtime that inherits",
	"pinned revision that can't be used",
}

// TestEveryForkIsCoveredOrLeft: each fork of the contract is either taken by a case
// of the table or listed as left, and each case takes a fork.
func TestEveryForkIsCoveredOrLeft(t *testing.T) {
	cases := actionCases()
	known := map[string]bool{}
	takes := map[*actionCase]bool{}
	for _, f := range contractForks() {
		known[f.name] = true
		verbs := []string{"pause", "resume"}
		if f.verb != "" {
			verbs = []string{f.verb}
		}
		for _, verb := range verbs {
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
