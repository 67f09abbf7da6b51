package guarded

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
)

func TestClassify(t *testing.T) {
	status := func(code int32, reason metav1.StatusReason, message string, details *metav1.StatusDetails) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: details}}
	}
	failedTest := apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value failed", 0, false)
	for _, c := range []struct {
		name string
		err  error
		want outcome
	}{
		{"failed test", failedTest, outcomeConflict},
		{"failed test without details", status(422, metav1.StatusReasonInvalid, patchTestFailed, nil), outcomeConflict},
		{"stale replace", status(409, metav1.StatusReasonConflict, "the object has been modified", nil), outcomeConflict},
		{"validation with causes", status(422, metav1.StatusReasonInvalid, "is invalid", &metav1.StatusDetails{Kind: "InferenceService", Causes: []metav1.StatusCause{{Field: "spec"}}}), outcomeRejected},
		{"patch text with causes", status(422, metav1.StatusReasonInvalid, patchTestFailed, &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec"}}}), outcomeRejected},
		{"patch text with an object", status(422, metav1.StatusReasonInvalid, patchTestFailed, &metav1.StatusDetails{Name: "chat"}), outcomeRejected},
		{"other text", status(422, metav1.StatusReasonInvalid, "no", nil), outcomeRejected},
		{"webhook 409", status(409, metav1.StatusReasonConflict, webhookPrefix+`"x" denied the request: no`, nil), outcomeRejected},
		{"webhook 422", status(422, metav1.StatusReasonInvalid, webhookPrefix+`"x" denied the request: no`, nil), outcomeRejected},
		{"forbidden", status(403, metav1.StatusReasonForbidden, "no", nil), outcomeRejected},
		{"not found", status(404, metav1.StatusReasonNotFound, "no", nil), outcomeRejected},
		{"too many requests", status(429, metav1.StatusReasonTooManyRequests, "no", nil), outcomeRejected},
		{"internal", status(500, metav1.StatusReasonInternalError, "no", nil), outcomeUnknown},
		{"gateway timeout", status(504, metav1.StatusReasonTimeout, "no", nil), outcomeUnknown},
		{"network", errors.New("EOF"), outcomeUnknown},
		{"wrapped", fmt.Errorf("patch: %w", failedTest), outcomeConflict},
	} {
		if got := classify(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestUnsafe(t *testing.T) {
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl"
	for value, want := range map[string]bool{
		"true": false, "": false, "freeze": false, "größe 9": false, "desk-lamp-long-enough-name": false, "sk-short": false,
		"a\tb": true, "a\nb": true, "a\x1b[2J": true, "a\u200bb": true, "a\u202eb": true, "a\u00a0b": true, "\xff": true,
		"sk-abcdefghijklmnopqrst": true, "key sk-abcdefghijklmnopqrst": true, jwt: true, "Bearer " + jwt: true,
		strings.Repeat("ü", 768): false, strings.Repeat("x", 769): true,
	} {
		if got := Unsafe(value); got != want {
			t.Errorf("Unsafe(%q) = %t, want %t", value, got, want)
		}
	}
}

func TestCleanFitsOneSafeLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		c := Clean(s)
		if !utf8.ValidString(c) || utf8.RuneCountInString(c) > maxDetail {
			t.Fatalf("Clean(%q) = %q", s, c)
		}
		for _, r := range c {
			if !printable(r) {
				t.Fatalf("Clean(%q) keeps %q", s, r)
			}
		}
	})
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{
		"prod": "prod", "a/b:c@d": "a/b:c@d", "": "''", "my ctx": "'my ctx'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "ü": "'ü'",
	} {
		if got := ShellQuote(in); got != want {
			t.Errorf("ShellQuote(%q) = %s, want %s", in, got, want)
		}
	}
}

// TestPatchOnlyTestsCanFail applies generated patches to generated maps: every
// replace and remove must be preceded by a test of the same path, and the result
// must be the wanted one.
func TestPatchOnlyTestsCanFail(t *testing.T) {
	keys := []string{"ome.io/rollout-paused", "ome.io/rollout-promote", "a~b/c", "plain"}
	rapid.Check(t, func(t *rapid.T) {
		have := rapid.MapOf(rapid.SampledFrom(keys), rapid.String()).Draw(t, "have")
		var want []Annotation
		for _, k := range keys {
			switch rapid.IntRange(0, 2).Draw(t, k) {
			case 1:
				v := rapid.String().Draw(t, "value")
				want = append(want, Annotation{Key: k, Value: &v})
			case 2:
				want = append(want, Annotation{Key: k})
			}
		}
		ops := annotationOps(have, want)
		got := map[string]string{}
		for k, v := range have {
			got[k] = v
		}
		exists := len(have) > 0
		name := func(path string) string {
			s := strings.TrimPrefix(path, "/metadata/annotations/")
			return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
		}
		for i, op := range ops {
			switch op.Op {
			case "test":
				if got[name(op.Path)] != op.Value {
					t.Fatalf("test of %s fails on the object as read", op.Path)
				}
			case "replace", "remove":
				if i == 0 || ops[i-1].Op != "test" || ops[i-1].Path != op.Path {
					t.Fatalf("%s of %s without a test", op.Op, op.Path)
				}
				delete(got, name(op.Path))
				if op.Op == "replace" {
					got[name(op.Path)] = op.Value.(string)
				}
			case "add":
				if op.Path == "/metadata/annotations" {
					if exists {
						t.Fatal("an existing map is overwritten")
					}
					got = op.Value.(map[string]string)
				} else if !exists {
					t.Fatal("add to a map that isn't there")
				} else {
					got[name(op.Path)] = op.Value.(string)
				}
				exists = true
			}
		}
		expect := map[string]string{}
		for k, v := range have {
			expect[k] = v
		}
		for _, w := range want {
			delete(expect, w.Key)
			if w.Value != nil {
				expect[w.Key] = *w.Value
			}
		}
		if diff := cmp.Diff(expect, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestPatchKeepsEmptyValues(t *testing.T) {
	empty := ""
	b, err := encodePatch(annotationOps(map[string]string{"k": ""}, []Annotation{{Key: "k"}, {Key: "new", Value: &empty}}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"op":"test","path":"/metadata/annotations/k","value":""},{"op":"remove","path":"/metadata/annotations/k"},{"op":"add","path":"/metadata/annotations/new","value":""}]`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestTableCutsLongValues(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "-",
		strings.Repeat("x", 56): strings.Repeat("x", 56),
		strings.Repeat("x", 57): strings.Repeat("x", 53) + "...",
		strings.Repeat("ü", 57): strings.Repeat("ü", 53) + "...",
		strings.Repeat("ü", 56): strings.Repeat("ü", 56),
		"API accepted annotation request; convergence not observed.": "API accepted annotation request; convergence not obse...",
	} {
		if got := cut(in); got != want {
			t.Errorf("cut(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestResultJSONKeyOrder(t *testing.T) {
	var b strings.Builder
	r := &ActionResult{APIVersion: ResultAPIVersion, Kind: "ActionResult", RequestID: "r", RevisionHash: "h", Message: "a -> b"}
	if err := PrintResult(&b, r, OutputJSON); err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, key := range []string{"apiVersion", "kind", "collectedAt", "action", "target", "dryRun", "requestID", "revisionHash", "accepted", "applied", "message", "followUp"} {
		i := strings.Index(b.String(), `"`+key+`"`)
		if i <= at {
			t.Errorf("key %s is out of order in\n%s", key, b.String())
		}
		at = i
	}
	if !strings.Contains(b.String(), "a -> b") {
		t.Error("the arrow is escaped")
	}
}

func TestPlacementSignals(t *testing.T) {
	for _, key := range placementKeys {
		for _, s := range []*v1beta1.InferenceService{
			{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{key: ""}}},
			{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: ""}}},
		} {
			if placementSignal(s) == "" {
				t.Errorf("%s isn't noticed", key)
			}
		}
	}
	if got := placementSignal(&v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}}}); got != "" {
		t.Error(got)
	}
}

func TestOverBounds(t *testing.T) {
	many := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint(i)] = ""
		}
		return m
	}
	run := func(g ...v1beta1.RunGroup) *v1beta1.InferenceService {
		s := &v1beta1.InferenceService{}
		s.Status.Rollout = &v1beta1.RolloutStatus{ActiveRun: &v1beta1.RolloutRun{Plan: v1beta1.RolloutPlan{Groups: g}}}
		return s
	}
	canarySteps := func(n, metrics int) v1beta1.RunGroup {
		steps := make([]v1beta1.RolloutGroupStep, n)
		if n > 0 {
			steps[0].Analysis = &v1beta1.RolloutAnalysis{Metrics: make([]v1beta1.AnalysisMetric, metrics)}
		}
		return v1beta1.RunGroup{Group: v1beta1.RolloutGroup{Canary: &v1beta1.GroupCanary{Steps: steps}}}
	}
	traffic := func(n int) *v1beta1.InferenceService {
		s := &v1beta1.InferenceService{}
		s.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{"engine": {Traffic: make([]v1beta1.TrafficTarget, n)}}
		return s
	}
	labels := func(n int) *v1beta1.InferenceService {
		return &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Labels: many(n)}}
	}
	finalizers := func(n int) *v1beta1.InferenceService {
		return &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Finalizers: make([]string, n)}}
	}
	conditions := func(n int) *v1beta1.InferenceService {
		s := &v1beta1.InferenceService{}
		s.Status.Conditions = make([]v1beta1.DuckCondition, n)
		return s
	}
	for name, c := range map[string]struct {
		at, past *v1beta1.InferenceService
	}{
		"labels":     {labels(256), labels(257)},
		"finalizers": {finalizers(64), finalizers(65)},
		"conditions": {conditions(64), conditions(65)},
		"traffic":    {traffic(8), traffic(9)},
		"groups":     {run(make([]v1beta1.RunGroup, 3)...), run(make([]v1beta1.RunGroup, 4)...)},
		"steps":      {run(canarySteps(20, 0)), run(canarySteps(21, 0))},
		"metrics":    {run(canarySteps(1, 10)), run(canarySteps(1, 11))},
	} {
		if got := overBounds(c.at); got != "" {
			t.Errorf("%s at the bound: %s", name, got)
		}
		if got := overBounds(c.past); got == "" {
			t.Errorf("%s past the bound is accepted", name)
		}
	}
}

func FuzzTooDeep(f *testing.F) {
	f.Add([]byte(`{"a":[[["x"]]]}`))
	f.Add([]byte(`{"a":"\"[[[["}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			return
		}
		// A repeated key hides what it held before, so the decoded value may be
		// shallower than the text, never deeper.
		if d := depth(v); d > maxDepth && !tooDeep(raw) {
			t.Errorf("depth %d passes", d)
		}
	})
}

func depth(v any) int {
	most := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			most = max(most, depth(e))
		}
	case []any:
		for _, e := range v {
			most = max(most, depth(e))
		}
	default:
		return 0
	}
	return most + 1
}
