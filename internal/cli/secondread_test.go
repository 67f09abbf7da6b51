package cli

import (
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// secondReadCases: what an action that reads twice does when the second read isn't
// the first one.
func secondReadCases(v *verb) []*actionCase {
	w := v.words
	moved := func(name, says string, do func(*running)) *actionCase {
		return &actionCase{name: "second read: " + name, fixture: v.ready(), hook: beforeSecondRead(do), code: w.changedCode, message: w.changed, says: says}
	}
	ends := func(name string, code int, message, says string, h func(*running) hook) *actionCase {
		return &actionCase{name: "second read: " + name, fixture: v.ready(), hook: h, code: code, message: message, says: says}
	}
	dry := moved("changed in a client dry run", `InferenceReplica "chat-engine"`, v.touchTarget)
	dry.flags = []string{"--yes", "--dry-run=client"}
	stalled := func(r *running, next http.RoundTripper, req *http.Request) (*http.Response, error) {
		return stall(next, req)
	}
	slow := ends("past request timeout", w.goneCode, w.changed, deadline, onRead(2, stalled))
	slow.flags = []string{"--yes", "--request-timeout=2s"}
	late := ends("past budget", 1, deadline, "", onRead(2, stalled))
	late.budget = 4 * time.Second
	return []*actionCase{
		moved("the replica's status moved", `InferenceReplica "chat-engine"`, v.touchTarget),
		moved("the replica's spec changed", `InferenceReplica "chat-engine"`, v.editTarget),
		moved("the service's status moved", `InferenceService "chat"`, (*running).touchStatus),
		moved("the service changed", `InferenceService "chat"`, edit),
		moved("a sibling moved", `InferenceReplica "chat-decoder"`, func(r *running) { r.touch("InferenceReplica", "chat-decoder", "again=1") }),
		moved("a sibling is gone", `InferenceReplica "chat-decoder"`, func(r *running) { r.removeObject("InferenceReplica", "chat-decoder") }),
		moved("a sibling came", `InferenceReplica "chat-router"`, func(r *running) {
			u := replica("router")
			delete(u.Object, "status")
			create(r.t, u, r.namespace)
		}),
		moved("the same rows in the other encoding", `InferenceReplica "chat-engine"`, reencode),
		ends("the runtime changed", w.changedCode, w.changed, `ClusterServingRuntime "rt1"`, second("clusterservingruntimes")),
		ends("the model changed", w.changedCode, w.changed, `ClusterBaseModel "m1"`, second("clusterbasemodels")),
		moved("the service is gone", "NotFound", (*running).remove),
		ends("server error", w.goneCode, w.changed, "InternalError", onRead(2, func(r *running, next http.RoundTripper, req *http.Request) (*http.Response, error) {
			return answer(500, metav1.StatusReasonInternalError, "etcd is down")(next, req)
		})),
		slow, late, dry,
		ends("ctrl-c", 1, canceled, "", onRead(2, func(r *running, next http.RoundTripper, req *http.Request) (*http.Response, error) {
			r.cancel()
			return stall(next, req)
		})),
	}
}

// second changes an object in its second answer: the shared ones can't be changed
// for one case.
func second(fragment string) func(*running) hook {
	return onNth(2, http.MethodGet, fragment, func(_ *running, next http.RoundTripper, req *http.Request) (*http.Response, error) {
		return rewrite(func(o map[string]any) { metadata(o)["labels"] = map[string]any{"edited": "yes"} })(next, req)
	})
}

// reencode stores the engine's one Ready row as columns.
func reencode(r *running) {
	r.changeStatus("InferenceReplica", "chat-engine", func(u *unstructured.Unstructured) {
		rows, _, err := unstructured.NestedSlice(u.Object, "status", "instanceStatuses")
		if err != nil || len(rows) != 1 {
			r.t.Fatalf("%d rows, %v", len(rows), err)
		}
		row := rows[0].(map[string]any)
		unstructured.RemoveNestedField(u.Object, "status", "instanceStatuses")
		set(u, "ColumnarV2", "status", "instanceStatusEncoding")
		columns := map[string]any{"members": "0", "phases": []any{map[string]any{"value": row["phase"], "indexes": "0"}}}
		if op, ok := row["operation"]; ok {
			columns["entries"] = []any{map[string]any{"index": int64(0), "operation": op}}
		}
		set(u, columns, "status", "instanceStatusColumns")
	})
}
