package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The strings of the contract, spelled out: a test that took them from the
// product could not notice a change.
const (
	readFailed   = "required Kubernetes API request failed; check access and connectivity"
	notConfirmed = "action not confirmed; noninteractive input requires --yes"
	identity     = "action refused: target identity is missing or unsafe"
	deleting     = "action refused: target is being deleted"
	bounds       = "action refused: safety inputs exceed inspection bounds"
	placement    = "action refused: placement sources and derived services cannot be mutated"
	noRuntime    = "action refused: active runtime is unavailable, inconsistent or unbound"
	stale        = "action refused: controller safety evidence is stale or inconsistent"
	mailbox      = "action refused: a rollout promote or rollback mailbox is present"
	alreadyOn    = "action refused: service is already paused; freeze is preserved"
	notPaused    = "action refused: service has no recognized pause"
	nothing      = "action refused: no applicable active rollout or lifecycle work was observed"
	unsafeValue  = "action refused: a logical annotation value is unsafe to preview"
	conflict     = "guarded annotation patch rejected; refresh rollout status and retry explicitly"
	unbound      = "API response is not bound to the request; outcome unknown, check rollout status"
	deadline     = "context deadline exceeded"
	canceled     = "context canceled"
)

func TestActions(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range actionCases() {
		t.Run(c.verb+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
		if seen[c.verb+c.name] {
			t.Errorf("two cases are called %s %s", c.verb, c.name)
		}
		seen[c.verb+c.name] = true
	}
}

func actionCases() []*actionCase {
	var cases []*actionCase
	for _, v := range verbs() {
		shared := slices.Concat(modeCases(v), usageCases(v), readCases(v), targetCases(v.ready), patchCases(v), retryCases(v))
		if !v.serviceOnly {
			shared = slices.Concat(shared, dependencyCases(v.ready), runtimeCases(v.ready),
				[]*actionCase{{name: "other ome namespace", fixture: v.ready(), flags: []string{"--yes", "--ome-namespace=ops", "--dry-run=client"}}})
		}
		if v.prompts {
			shared = append(shared, promptCases(v.ready)...)
		}
		if v.replicaVerb() {
			shared = append(shared, secondReadCases(v)...)
		}
		for _, c := range shared {
			c.verb = v.name
		}
		cases = append(cases, shared...)
	}
	return slices.Concat(cases, pauseCases(), resumeCases(), scaleCases(), releaseCases(), repinCases(), canaryCases())
}

// modeCases: dry runs, formats, streams that can't be written.
func modeCases(v *verb) []*actionCase {
	ready, wrote := v.ready, v.words.wrote
	return []*actionCase{
		{name: "real table", fixture: ready(), patches: 1},
		{name: "real wide", fixture: ready(), flags: []string{"--yes", "-o", "wide"}, patches: 1},
		{name: "real json", fixture: ready(), flags: []string{"--yes", "-o", "json"}, patches: 1},
		{name: "real yaml", fixture: ready(), flags: []string{"--yes", "-o", "yaml"}, patches: 1},
		{name: "client dry run", fixture: ready(), flags: []string{"--yes", "--dry-run", "client"}},
		{name: "client dry run json", fixture: ready(), flags: []string{"--yes", "--dry-run=client", "-o=json"}},
		{name: "client dry run needs no patch right", fixture: ready(), user: "reader", flags: []string{"--yes", "--dry-run=client"}},
		{name: "server dry run", fixture: ready(), flags: []string{"--yes", "--dry-run", "server"}, patches: 1},
		{name: "server dry run json", fixture: ready(), flags: []string{"--yes", "--dry-run=server", "-o=json"}, patches: 1},
		{name: "server dry run without patch right", fixture: ready(), user: "reader", flags: []string{"--yes", "--dry-run=server"}, code: 1, message: v.words.failed, patches: 1},
		{name: "stdout broken", fixture: ready(), brokenOut: true, code: 1, message: wrote, patches: 1},
		{name: "stdout broken client dry run", fixture: ready(), brokenOut: true, flags: []string{"--yes", "--dry-run=client"}, code: 1, message: wrote},
		{name: "stdout broken server dry run", fixture: ready(), brokenOut: true, flags: []string{"--yes", "--dry-run=server"}, code: 1, message: wrote, patches: 1},
		{name: "preview can't be written", fixture: ready(), brokenErr: true, code: 1, message: v.words.previewFailed},
	}
}

// promptCases: every way to answer, and not to.
func promptCases(ready func() *fixture) []*actionCase {
	typed := func(name, text string, code int) *actionCase {
		c := &actionCase{name: name, fixture: ready(), flags: []string{}, terminal: true, stdin: text, code: code, patches: 1}
		if code != 0 {
			c.message, c.patches = notConfirmed, 0
		}
		return c
	}
	return []*actionCase{
		typed("answer y", "y\n", 0),
		typed("answer yes in capitals", "YES\n", 0),
		typed("answer with spaces", " y \n", 0),
		typed("answer n", "n\n", 1),
		typed("answer empty", "\n", 1),
		typed("answer yes please", "yes please\n", 1),
		typed("answer too long", "y                 \n", 1),
		typed("end of input", "", 1),
		typed("end of input after y", "y", 1),
		{name: "no terminal", fixture: ready(), flags: []string{}, stdin: "y\n", code: 1, message: notConfirmed},
		{name: "no terminal client dry run", fixture: ready(), flags: []string{"--dry-run=client"}, stdin: "y\n", code: 1, message: notConfirmed},
		{name: "prompt in client dry run", fixture: ready(), flags: []string{"--dry-run=client"}, terminal: true, stdin: "y\n"},
		{name: "prompt in server dry run", fixture: ready(), flags: []string{"--dry-run=server"}, terminal: true, stdin: "n\n", code: 1, message: notConfirmed},
		{name: "ctrl-c at the prompt", fixture: ready(), flags: []string{}, terminal: true, hangs: true,
			atPrompt: func(r *running) { r.cancel() }, code: 1, message: canceled},
		{name: "time runs out at the prompt", fixture: ready(), flags: []string{}, terminal: true, hangs: true,
			budget: 3 * time.Second, code: 1, message: deadline},
	}
}

// usageCases: nothing is read.
func usageCases(v *verb) []*actionCase {
	line := func(name, message string, words ...string) *actionCase {
		return &actionCase{name: name, line: words, code: 1, message: v.words.usage(message), says: message}
	}
	context := "selected kubeconfig context is unavailable or unsafe"
	if !v.prompts {
		context = scaleContext
	}
	nowhere := line("unknown context", "resolve workload namespace failed", "chat", "--context=nowhere", "--yes")
	if nowhere.says = ""; !v.prompts {
		nowhere.message = scaleContext
	}
	return []*actionCase{
		line("no argument", "exactly one inference service is required", "-n", "prod", "--yes"),
		line("two arguments", "exactly one inference service is required", "a", "b", "--yes"),
		line("bad output", "output must be table, wide, json or yaml", "chat", "-o", "name"),
		line("bad dry run", "dry-run must be none, client or server", "chat", "--dry-run=yes"),
		line("bad output before bad dry run", "output must be table, wide, json or yaml", "chat", "-o", "x", "--dry-run=x"),
		line("unknown flag", "unknown flag: --force", "chat", "--force"),
		line("bad name", "invalid inference service name", "Chat", "--yes"),
		line("secret as name", "invalid inference service name", "sk-abcdefghijklmnopqrst", "--yes"),
		line("bad namespace", "resolved workload namespace is invalid", "chat", "-n", "Prod", "--yes"),
		nowhere,
		{name: "unsafe context", line: []string{"chat", "--yes"}, user: "unsafe-context", code: 1, message: context},
		{name: "no context", line: []string{"chat", "--server=https://127.0.0.1:1", "--yes"}, kubeconfig: "/dev/null", code: 1, message: context},
		{name: "no kubeconfig file", line: []string{"chat", "--yes"}, kubeconfig: "/nonexistent/config", code: 1,
			message: v.words.usage("resolve workload namespace failed")},
	}
}

// readCases: any failed read ends the action with one string.
func readCases(v *verb) []*actionCase {
	const services = "/inferenceservices/chat"
	ready, last := v.ready, "clusterservingruntimes"
	if v.serviceOnly {
		last = services
	}
	return []*actionCase{
		{name: "service not found", code: 1, message: readFailed},
		{name: "service forbidden", fixture: ready(), user: "stranger", code: 1, message: readFailed},
		{name: "server unreachable", line: []string{"chat", "-n", "prod", "--yes"}, user: "nobody-listens", code: 1, message: readFailed},
		{name: "server error", fixture: ready(), hook: on("GET", services, answer(500, metav1.StatusReasonInternalError, "etcd is down\x1b[31m")), code: 1, message: readFailed},
		{name: "answer unreadable", fixture: ready(), hook: on("GET", services, rewrite(func(o map[string]any) { o["spec"] = "x" })), code: 1, message: readFailed},
		{name: "read past request timeout", fixture: ready(), flags: []string{"--yes", "--request-timeout=2s"}, hook: on("GET", services, stall), code: 1, message: deadline},
		{name: "read past budget", fixture: ready(), budget: 2 * time.Second, hook: on("GET", last, stall), code: 1, message: deadline},
		{name: "ctrl-c during a read", fixture: ready(), hook: func(r *running) hook {
			return matching("GET", services, func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
				r.cancel()
				return stall(next, req)
			})
		}, code: 1, message: canceled},
	}
}

// dependencyCases: so does a failed read of what the change depends on.
func dependencyCases(ready func() *fixture) []*actionCase {
	missing := func(name, value string, path ...string) *actionCase {
		return &actionCase{name: name, fixture: ready().with(func(f *fixture) { set(f.service, value, path...) }), code: 1, message: readFailed}
	}
	return []*actionCase{
		{name: "model forbidden", fixture: ready(), user: "modelless", code: 1, message: readFailed},
		missing("model missing", "none", "spec", "model", "name"),
		missing("namespaced model missing", "BaseModel", "spec", "model", "kind"),
		missing("runtime missing", "none", "spec", "runtime", "name"),
		missing("namespaced runtime missing", "ServingRuntime", "spec", "runtime", "kind"),
	}
}

// targetCases: the checks that every action makes on the service.
func targetCases(ready func() *fixture) []*actionCase {
	const services = "/inferenceservices/chat"
	rewritten := func(name, message string, edit func(map[string]any)) *actionCase {
		return &actionCase{name: name, fixture: ready(), hook: on("GET", services, rewrite(edit)), code: 1, message: message}
	}
	stored := func(name, message string, edit func(*fixture)) *actionCase {
		return &actionCase{name: name, fixture: ready().with(edit), code: 1, message: message}
	}
	return []*actionCase{
		rewritten("another object answers", identity, func(o map[string]any) { metadata(o)["name"] = "other" }),
		rewritten("uid missing", identity, func(o map[string]any) { delete(metadata(o), "uid") }),
		rewritten("resourceVersion missing", identity, func(o map[string]any) { delete(metadata(o), "resourceVersion") }),
		rewritten("resourceVersion unsafe", identity, func(o map[string]any) { metadata(o)["resourceVersion"] = "1\x1b[2J" }),
		rewritten("generation missing", identity, func(o map[string]any) { delete(metadata(o), "generation") }),
		rewritten("over 1 MiB", bounds, func(o map[string]any) { o["filler"] = strings.Repeat("x", 1<<20) }),
		rewritten("nested too deep", bounds, func(o map[string]any) {
			deep := any("x")
			for range 70 {
				deep = []any{deep}
			}
			o["filler"] = deep
		}),
		stored("257 annotations", bounds, func(f *fixture) {
			for i := range 257 {
				f.annotate(fmt.Sprintf("filler-%d", i), "x")
			}
		}),
		stored("64 KiB of metadata", bounds, func(f *fixture) { f.annotate("filler", strings.Repeat("x", 64<<10)) }),
		stored("placement finalizer", placement, func(f *fixture) { f.service.SetFinalizers([]string{"ome.io/placement"}) }),
		stored("spec.placement", placement, func(f *fixture) { set(f.service, map[string]any{"requirements": "gpu=true"}, "spec", "placement") }),
		stored("status.placement", placement, func(f *fixture) { set(f.service, map[string]any{"phase": "Placed"}, "status", "placement") }),
		stored("placement annotation", placement, func(f *fixture) { f.annotate("ome.io/cluster-selector", "zone=a") }),
		stored("placement label", placement, func(f *fixture) { f.service.SetLabels(map[string]string{"ome.io/placement-origin": "u1"}) }),
		{name: "being deleted", fixture: ready().with(func(f *fixture) { f.service.SetFinalizers([]string{"example.com/hold"}) }),
			hook: func(r *running) hook { r.remove(); return http.RoundTripper.RoundTrip }, code: 1, message: deleting},
	}
}

// runtimeCases: no runtime in force, no action.
func runtimeCases(ready func() *fixture) []*actionCase {
	refuse := func(name string, edit func(*fixture)) *actionCase {
		return &actionCase{name: name, fixture: ready().with(edit), code: 1, message: noRuntime}
	}
	runtime := func(field string, value any) func(*fixture) {
		return func(f *fixture) { set(f.service, value, "spec", "runtime", field) }
	}
	return []*actionCase{
		refuse("fronts standalone replicas", func(f *fixture) {
			f.owned = false
			f.replicas = nil
			f.set("spec", map[string]any{"replicaRefs": map[string]any{"engine": []any{"pool"}}})
		}),
		refuse("no runtime named", func(f *fixture) { unstructured.RemoveNestedField(f.service.Object, "spec", "runtime") }),
		refuse("autoSync off", runtime("autoSync", false)),
		refuse("leftover pin", func(f *fixture) { set(f.service, "cr-rt1-0a1b2c3d", "status", "pinnedRevisionName") }),
		refuse("runtime disabled", runtime("name", "disabled")),
		refuse("runtime inherits", runtime("name", "child")),
		refuse("no OMENative component", func(f *fixture) {
			set(f.service, "RawDeployment", "spec", "deploymentMode")
			unstructured.RemoveNestedField(f.service.Object, "spec", "rollout")
		}),
		refuse("runtime reported missing", func(f *fixture) {
			set(f.service, []any{map[string]any{"type": "RuntimeReady", "status": "False", "reason": "RuntimeNotFound", "message": "no runtime"}}, "status", "conditions")
		}),
	}
}

// patchCases: everything that can happen to the one write.
func patchCases(v *verb) []*actionCase {
	w := v.words
	patch := func(name string, code int, message string, h hook) *actionCase {
		return &actionCase{name: name, fixture: v.ready(), hook: on("PATCH", "", h), code: code, message: message, patches: 1}
	}
	race := func(name string, code int, message string, do func(*running)) *actionCase {
		return &actionCase{name: name, fixture: v.ready(), hook: beforePatch(do), code: code, message: message, patches: 1}
	}
	deny := func(mode, message string) *actionCase {
		return &actionCase{name: "webhook denies with " + mode, fixture: v.ready(), labels: map[string]string{"deny": mode}, code: 1, message: message, patches: 1}
	}
	// Time enough to get as far as the patch, also for an action that reads twice.
	budget := 3 * time.Second
	if v.replicaVerb() {
		budget = 5 * time.Second
	}
	late := func(name string, c actionCase) *actionCase {
		c.name, c.fixture, c.code, c.message, c.patches, c.says = name, v.ready(), 1, w.late, 1, deadline
		c.hook = on("PATCH", "", stall)
		return &c
	}
	changed := race("spec changed before the patch in a server dry run", 3, w.conflict, v.editTarget)
	changed.flags = []string{"--yes", "--dry-run=server"}
	return []*actionCase{
		race("status moved before the patch", 3, w.conflict, v.touchTarget),
		race("spec changed before the patch", 3, w.conflict, v.editTarget),
		changed,
		race("annotation taken before the patch", 3, w.conflict, func(r *running) {
			switch {
			case v.replicaVerb():
				v.annotateTarget(r, v.mailbox, "cccccccc")
			case v.name == "repin":
				v.annotateTarget(r, v.mailbox, "now")
			default:
				v.annotateTarget(r, v.mailbox, "freeze")
			}
		}),
		race("recreated before the patch", 3, w.conflict, func(r *running) {
			r.removeObject(v.kind, v.object)
			u := rolling().service
			if v.replicaVerb() {
				u = replica("engine")
			}
			delete(u.Object, "status")
			create(r.t, u, r.namespace)
		}),
		race("deleted before the patch", 1, w.failed, func(r *running) { r.removeObject(v.kind, v.object) }),
		{name: "patch forbidden", fixture: v.ready(), user: "reader", code: 1, message: w.failed, patches: 1, says: "Forbidden"},
		deny("403", w.failed), deny("409", w.failed), deny("422", w.failed), deny("down", w.lost),
		patch("conflict answered as 409", 3, w.conflict, answer(409, metav1.StatusReasonConflict, "the object has been modified")),
		patch("validation answered as 422", 1, w.failed, answer(422, metav1.StatusReasonInvalid, "InferenceService.ome.io \"chat\" is invalid: spec.engine: Required value")),
		patch("unauthorized", 1, w.failed, answer(401, metav1.StatusReasonUnauthorized, "Unauthorized")),
		patch("too many requests", 1, w.failed, answer(429, metav1.StatusReasonTooManyRequests, "slow down")),
		patch("server unavailable", 1, w.lost, answer(503, metav1.StatusReasonServiceUnavailable, "starting")),
		patch("gateway timeout", 1, w.lost, answer(504, metav1.StatusReasonTimeout, "request did not complete within the allotted timeout")),
		patch("answer lost", 1, w.lost, lose),
		patch("answer of another object", 1, w.unbound, rewrite(func(o map[string]any) { metadata(o)["uid"] = "11111111-2222-3333-4444-555555555555" })),
		patch("answer without the change", 1, w.unbound, rewrite(func(o map[string]any) {
			if v.name == "scale" {
				o["spec"].(map[string]any)["replicas"] = 1
				return
			}
			a := metadata(o)["annotations"].(map[string]any)
			if _, ok := a[v.mailbox]; ok {
				delete(a, v.mailbox)
			} else {
				a[v.mailbox] = "true"
			}
		})),
		patch("answer is no object", 1, w.unbound, rewrite(func(o map[string]any) { clear(o); o["kind"] = "Surprise" })),
		patch("answer too large", 1, w.unbound, rewrite(func(o map[string]any) { o["filler"] = strings.Repeat("x", 1<<20) })),
		late("patch past request timeout", actionCase{flags: []string{"--yes", "--request-timeout=2s"}}),
		late("patch past budget", actionCase{budget: budget}),
		late("patch past request timeout in a server dry run", actionCase{flags: []string{"--yes", "--dry-run=server", "--request-timeout=2s"}}),
		{name: "ctrl-c during the patch", fixture: v.ready(), hook: func(r *running) hook {
			return matching("PATCH", "", func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
				r.cancel()
				return stall(next, req)
			})
		}, code: 1, message: w.aborted, patches: 1, says: canceled},
		{name: "server warns", fixture: v.ready(), hook: on("PATCH", "", func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if err == nil {
				resp.Header.Add("Warning", `299 - "maxReplicas is deprecated"`)
			}
			return resp, err
		}), patches: 1},
	}
}

// edit changes the stored service's spec.
func edit(r *running) {
	r.change(func(u *unstructured.Unstructured) { set(u, int64(3), "spec", "engine", "maxReplicas") })
}

// retryCases: a quiet target for people who ask for it.
func retryCases(v *verb) []*actionCase {
	w := v.words
	changed, goneMessage, goneCode := w.conflict, readFailed, 1
	if v.replicaVerb() {
		changed, goneMessage, goneCode = w.changed, w.changed, w.goneCode
	}
	retry := func(name string, code int, message string, patches int, meanwhile func(*running), flags ...string) *actionCase {
		c := &actionCase{name: name, fixture: v.ready(), flags: append([]string{"--retry-on-status-change", "-o=json"}, flags...), code: code, message: message, patches: patches}
		if v.prompts {
			c.terminal, c.stdin, c.atPrompt = true, "y\n", meanwhile
			return c
		}
		if c.flags = append(c.flags, "--yes"); meanwhile != nil {
			c.hook = beforeSecondRead(meanwhile)
		}
		return c
	}
	gone := retry("retry and the second read fails", goneCode, goneMessage, 0, (*running).remove)
	late := retry("retry and the status moves again", 3, w.conflict, 1, v.touchTarget)
	moved := late.hook
	late.hook = func(r *running) hook {
		patch := beforePatch(func(r *running) { r.touch(v.kind, v.object, "another=1") })(r)
		if moved == nil {
			return patch
		}
		read := moved(r)
		return func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPatch {
				return patch(next, req)
			}
			return read(next, req)
		}
	}
	cases := []*actionCase{
		retry("retry and nothing moved", 0, "", 1, nil),
		retry("retry and the status moved", 0, "", 1, v.touchTarget),
		retry("retry and an annotation changed", 3, changed, 0, func(r *running) { v.annotateTarget(r, "team", "other") }),
		retry("retry and the spec changed", 3, changed, 0, v.editTarget),
		retry("retry and it is refused now", 3, changed, 0, func(r *running) {
			u := r.service()
			set(u, map[string]any{"phase": "Placed"}, "status", "placement")
			if err := server.cluster.Status().Update(context.Background(), u); err != nil {
				r.t.Fatal(err)
			}
		}),
		retry("retry in a client dry run", 0, "", 0, v.touchTarget, "--dry-run=client"),
		gone, late,
	}
	if v.replicaVerb() {
		sibling := func(r *running) {
			r.changeObject("InferenceReplica", "chat-decoder", func(u *unstructured.Unstructured) { set(u, int64(5), "spec", "minReadySeconds") })
		}
		cases = append(cases,
			retry("retry and the service's status moved", 0, "", 1, (*running).touchStatus),
			retry("retry and the service's spec changed", 3, changed, 0, edit),
			retry("retry and a sibling's spec changed", 3, changed, 0, sibling),
			retry("retry and a sibling is gone", 3, changed, 0, func(r *running) { r.removeObject("InferenceReplica", "chat-decoder") }))
	}
	return cases
}

func pauseCases() []*actionCase {
	refuse := func(name, message string, f *fixture, edit func(*fixture)) *actionCase {
		return &actionCase{verb: "pause", name: name, fixture: f.with(edit), code: 1, message: message}
	}
	engine := func(v any, path ...string) func(*fixture) {
		return func(f *fixture) { set(f.replicas["engine"], v, path...) }
	}
	status := func(v any, path ...string) func(*fixture) {
		return func(f *fixture) { set(f.service, v, append([]string{"status"}, path...)...) }
	}
	none := func(*fixture) {}
	canary := func(step int64, hash, entered string) func(*fixture) {
		return func(f *fixture) {
			group := map[string]any{"components": []any{"engine", "decoder"}, "canary": map[string]any{"steps": []any{
				map[string]any{"capacity": "25%", "traffic": int64(10), "pause": map[string]any{"duration": "10m0s"}},
				map[string]any{"capacity": "100%", "traffic": int64(100)},
			}}}
			set(f.service, []any{group}, "spec", "rollout", "groups")
			set(f.service, []any{map[string]any{"source": "Inline", "group": group}}, "status", "rollout", "activeRun", "plan", "groups")
			unstructured.RemoveNestedField(f.service.Object, "status", "rolloutCoordination")
			set(f.service, map[string]any{"currentStep": step, "canaryRevisionHash": hash, "stableRevisionHash": "aaaaaaaa",
				"observedTrafficWeight": int64(10), "stepEnteredTime": entered}, "status", "components", "engine", "canary")
		}
	}
	columns := func(members, phases string, operations []any) func(*fixture) {
		return func(f *fixture) {
			r := f.replicas["engine"]
			unstructured.RemoveNestedField(r.Object, "status", "instanceStatuses")
			set(r, "ColumnarV2", "status", "instanceStatusEncoding")
			cols := map[string]any{"members": members, "phases": []any{map[string]any{"value": "Ready", "indexes": phases}}}
			if operations != nil {
				cols["entries"] = operations
			}
			set(r, cols, "status", "instanceStatusColumns")
		}
	}
	rows := func(n int) []any {
		out := make([]any, n)
		for i := range out {
			out[i] = map[string]any{"index": int64(i), "phase": "Ready"}
		}
		return out
	}
	work := func(name string, edit func(*fixture)) *actionCase {
		return &actionCase{verb: "pause", name: "work: " + name, fixture: settled().with(edit), flags: []string{"--yes", "--dry-run=client"}}
	}
	extra := func(name string, edit func(*unstructured.Unstructured)) *actionCase {
		return refuse(name, stale, rolling(), func(f *fixture) {
			r := replica("router")
			edit(r)
			f.replicas["router"] = r
		})
	}
	cases := []*actionCase{
		refuse("already paused", alreadyOn, paused("true"), none),
		refuse("already frozen", alreadyOn, paused("freeze"), none),
		refuse("promote pending", mailbox, rolling(), func(f *fixture) { f.annotate("ome.io/rollout-promote", "bbbbbbbb") }),
		refuse("rollback annotation says false", mailbox, rolling(), func(f *fixture) { f.annotate("ome.io/rollout-rollback", "false") }),
		refuse("paused and promote pending", alreadyOn, paused("true"), func(f *fixture) { f.annotate("ome.io/rollout-promote", "bbbbbbbb") }),
		refuse("unsafe value to replace", unsafeValue, rolling(), func(f *fixture) { f.annotate("ome.io/rollout-paused", "tr\tue") }),
		refuse("secret to replace", unsafeValue, rolling(), func(f *fixture) { f.annotate("ome.io/rollout-paused", "sk-abcdefghijklmnopqrst") }),
		refuse("nothing to pause", nothing, settled(), none),

		refuse("replica of another parent", stale, rolling(), engine("other", "spec", "parentRef", "name")),
		refuse("replica without parent", stale, rolling(), func(f *fixture) {
			unstructured.RemoveNestedField(f.replicas["engine"].Object, "spec", "parentRef")
		}),
		refuse("replica without owner", stale, rolling(), func(f *fixture) { f.replicas["engine"].SetOwnerReferences([]metav1.OwnerReference{}) }),
		refuse("replica owned by another service", stale, rolling(), func(f *fixture) {
			yes := true
			f.replicas["engine"].SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "ome.io/v1beta1", Kind: "InferenceService", Name: "chat", UID: "11111111-2222-3333-4444-555555555555", Controller: &yes}})
		}),
		refuse("replica of an older generation", stale, rolling(), engine(map[string]any{"ome.io/parent-generation": "0"}, "metadata", "annotations")),
		refuse("replica missing", stale, rolling(), func(f *fixture) { delete(f.replicas, "decoder") }),
		refuse("replica status behind", stale, rolling(), engine(int64(0), "status", "observedGeneration")),
		refuse("replica still paused", stale, rolling(), engine(true, "spec", "paused")),
		extra("replica under a wrong name", func(r *unstructured.Unstructured) { r.SetName("chat-extra") }),
		refuse("rollout status behind", stale, rolling(), status(int64(7), "rollout", "observedGeneration")),
		refuse("status ahead of spec", stale, rolling(), status(int64(9), "observedGeneration")),
		refuse("canary step outside the plan", stale, rolling(), canary(5, "bbbbbbbb", "2026-09-28T14:00:00Z")),
		refuse("canary of another target", stale, rolling(), canary(0, "eeeeeeee", "2026-09-28T14:00:00Z")),

		refuse("2049 rows", bounds, rolling(), engine(rows(2049), "status", "instanceStatuses")),
		refuse("2049 rows over an unrecognized value", bounds, rolling(), func(f *fixture) {
			set(f.replicas["engine"], rows(2049), "status", "instanceStatuses")
			f.annotate("ome.io/rollout-paused", "false")
		}),
		refuse("2049 rows in columns", bounds, rolling(), columns("0-2048", "0-2048", nil)),
		refuse("columns that cover too little", stale, rolling(), columns("0-3", "0-2", nil)),
		{verb: "pause", name: "2048 rows", fixture: rolling().with(engine(rows(2048), "status", "instanceStatuses")), flags: []string{"--yes", "--dry-run=client"}},
		{verb: "pause", name: "2048 rows in columns", fixture: rolling().with(columns("0-2047", "0-2047", nil)), flags: []string{"--yes", "--dry-run=client"}},
		{verb: "pause", name: "columns and a list decide alike", fixture: settled().with(columns("0", "0", nil)), code: 1, message: nothing},
		{verb: "pause", name: "undecodable marker", fixture: rolling(), hook: on("GET", "/inferencereplicas", rewrite(func(o map[string]any) {
			o["items"].([]any)[0].(map[string]any)["status"].(map[string]any)["instanceStatusEncoding"] = "ColumnarV9"
		})), code: 1, message: stale},
		{verb: "pause", name: "replicas forbidden", fixture: rolling(), user: "replicaless", code: 1, message: readFailed},
		{verb: "pause", name: "too many replicas", fixture: rolling(), hook: on("GET", "/inferencereplicas", rewrite(func(o map[string]any) {
			items := o["items"].([]any)
			for len(items) < 33 {
				items = append(items, items[0])
			}
			o["items"] = items
		})), code: 1, message: bounds},
		refuse("257 migrations", bounds, rolling(), func(f *fixture) {
			var all []any
			for i := range 257 {
				all = append(all, migration(fmt.Sprintf("11111111-2222-3333-4444-%012d", i), "Completed"))
			}
			set(f.replicas["engine"], all, "status", "migrations")
		}),

		work("an open run", status(rolling().service.Object["status"].(map[string]any)["rollout"], "rollout")),
		work("a component in a phase", status(map[string]any{"engine": map[string]any{"rolloutPhase": "Pending"}}, "components")),
		work("a group in a phase", status([]any{map[string]any{"name": "0", "phase": "Draining"}}, "rolloutCoordination", "groups")),
		work("a replica between revisions", engine("chat-engine-bbbbbbbb", "status", "updateRevision")),
		work("a replica short of Instances", engine(int64(4), "spec", "replicas")),
		work("an Instance with an operation", engine(replica("engine").Object["status"].(map[string]any)["instanceStatuses"], "status", "instanceStatuses")),
		work("an Instance in a phase", engine([]any{map[string]any{"index": int64(0), "phase": "Creating"}}, "status", "instanceStatuses")),
		work("an operation in columns", columns("0", "0", []any{map[string]any{"index": int64(0), "operation": map[string]any{
			"id": "op1", "type": "Update", "step": "Surge", "startedAt": "2026-09-28T14:00:00Z", "lastProgressAt": "2026-09-28T14:00:00Z"}}})),
		work("a migration", engine([]any{migration("11111111-2222-3333-4444-555555555555", "Draining")}, "status", "migrations")),

		{verb: "pause", name: "no annotations at all", fixture: rolling().with(func(f *fixture) { f.service.SetAnnotations(nil) }), patches: 1},
		{verb: "pause", name: "unrecognized value is replaced", fixture: rolling().with(func(f *fixture) { f.annotate("ome.io/rollout-paused", "false") }), patches: 1},
		{verb: "pause", name: "timed gate keeps ageing", fixture: rolling().with(canary(0, "bbbbbbbb", "2026-09-28T14:00:00Z")), flags: []string{"--yes", "--dry-run=client"}},
		{verb: "pause", name: "timed gate is due", fixture: rolling().with(canary(0, "bbbbbbbb", "2026-09-28T13:00:00Z")), flags: []string{"--yes", "--dry-run=client"}},
		{verb: "resume", name: "timed gate ran out", fixture: paused("true").with(canary(0, "bbbbbbbb", "2026-09-28T13:00:00Z")), flags: []string{"--yes", "--dry-run=client"}},
	}
	return cases
}

func migration(id, phase string) map[string]any {
	return map[string]any{"requestUUID": id, "trigger": "Manual", "sourceInstance": int64(0), "phase": phase,
		"startedAt": "2026-09-28T14:00:00Z", "deadline": "2026-09-28T15:00:00Z"}
}

func resumeCases() []*actionCase {
	const discard = "--discard-pending-actions"
	both := func() *fixture {
		return paused("freeze").annotate("ome.io/rollout-promote", "bbbbbbbb").annotate("ome.io/rollout-rollback", "true")
	}
	return []*actionCase{
		{verb: "resume", name: "from freeze", fixture: paused("freeze"), patches: 1},
		{verb: "resume", name: "not paused", fixture: rolling(), code: 1, message: notPaused},
		{verb: "resume", name: "unrecognized value", fixture: rolling().annotate("ome.io/rollout-paused", "True"), code: 1, message: notPaused},
		{verb: "resume", name: "not paused with discard", fixture: rolling().annotate("ome.io/rollout-promote", "bbbbbbbb"),
			flags: []string{"--yes", discard}, code: 1, message: notPaused},
		{verb: "resume", name: "promote pending", fixture: paused("true").annotate("ome.io/rollout-promote", "bbbbbbbb"), code: 1, message: mailbox},
		{verb: "resume", name: "rollback pending", fixture: paused("true").annotate("ome.io/rollout-rollback", "true"), code: 1, message: mailbox},
		{verb: "resume", name: "discard both", fixture: both(), flags: []string{"--yes", discard}, patches: 1},
		{verb: "resume", name: "discard with nothing pending", fixture: paused("true"), flags: []string{"--yes", discard}, patches: 1},
		{verb: "resume", name: "discard in a server dry run", fixture: both(), flags: []string{"--yes", discard, "--dry-run=server"}, patches: 1},
		{verb: "resume", name: "discard without yes", fixture: both(), flags: []string{discard}, terminal: true, stdin: "y\n", code: 1, message: discard + " requires --yes"},
		{verb: "resume", name: "unsafe mailbox under discard", fixture: paused("true").annotate("ome.io/rollout-promote", "b\u200bb"),
			flags: []string{"--yes", discard}, code: 1, message: unsafeValue},
		{verb: "resume", name: "reads no replicas", fixture: paused("true").with(func(f *fixture) { f.replicas = nil }), user: "oncall", patches: 1},
		{verb: "resume", name: "migration requests are counted", fixture: paused("true").annotate("ome.io/migration-request-v1-11111111-2222-3333-4444-555555555555", "{}"), patches: 1},
	}
}
