package guarded

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
)

func engineSubject(subresource string) Subject {
	return Subject{
		Ref: Ref{v1beta1.InferenceReplicaKind, v1beta1.InferenceReplicaResource, "prod", "chat-engine"}, Subresource: subresource,
		Target: Target{v1beta1.InferenceReplicaKind, "prod", "chat-engine", "u-1", "17"}, Annotations: map[string]string{"ome.io/controller-write": "true"},
	}
}

func TestPatchesOfAReplica(t *testing.T) {
	const guard = `[{"op":"test","path":"/metadata/uid","value":"u-1"},{"op":"test","path":"/metadata/resourceVersion","value":"17"},`
	for _, c := range []struct {
		name   string
		change Change
		want   string
	}{
		{"count", Change{Scale: &Count{2, 4}}, guard + `{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":4}]`},
		{"same count", Change{Scale: &Count{2, 2}}, guard + `{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":2}]`},
		{"release", Change{Annotations: []Annotation{{v1beta1.ReleaseHeldRevisionAnnotation, new("chat-engine-0badcafe")}}},
			guard + `{"op":"add","path":"/metadata/annotations/ome.io~1release-held-revision","value":"chat-engine-0badcafe"}]`},
	} {
		got, err := encodePatch(patchOps(engineSubject(""), c.change))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestAnswersOfAScale(t *testing.T) {
	answer := func(version, kind, ns, name, uid, spec string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q,"uid":%q},"spec":%s}`, version, kind, ns, name, uid, spec)
	}
	for _, c := range []struct {
		name, answer string
		bound        bool
	}{
		{"as asked", answer(scaleVersion, kindScale, "prod", "chat-engine", "u-1", `{"replicas":4}`), true},
		{"another count", answer(scaleVersion, kindScale, "prod", "chat-engine", "u-1", `{"replicas":5}`), false},
		{"no count", answer(scaleVersion, kindScale, "prod", "chat-engine", "u-1", `{}`), false},
		{"another uid", answer(scaleVersion, kindScale, "prod", "chat-engine", "u-2", `{"replicas":4}`), false},
		{"another name", answer(scaleVersion, kindScale, "prod", "chat-decoder", "u-1", `{"replicas":4}`), false},
		{"another namespace", answer(scaleVersion, kindScale, "test", "chat-engine", "u-1", `{"replicas":4}`), false},
		{"the replica itself", answer(v1beta1.GroupVersion.String(), v1beta1.InferenceReplicaKind, "prod", "chat-engine", "u-1", `{"replicas":4}`), false},
		{"another version", answer("autoscaling/v2", kindScale, "prod", "chat-engine", "u-1", `{"replicas":4}`), false},
		{"no object", `[]`, false},
	} {
		if got := unbound([]byte(c.answer), engineSubject(subresourceScale), Change{Scale: &Count{2, 4}}); (got == "") != c.bound {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestByHand(t *testing.T) {
	ev := &Evidence{Namespace: "prod", Context: "lab"}
	release := Change{Annotations: []Annotation{{v1beta1.ReleaseHeldRevisionAnnotation, new("chat-engine-0badcafe")}}}
	pending := engineSubject("")
	pending.Annotations = map[string]string{v1beta1.ReleaseHeldRevisionAnnotation: "x"}
	for _, c := range []struct {
		subject Subject
		change  Change
		want    string
	}{
		{engineSubject(subresourceScale), Change{Scale: &Count{2, 4}}, "kubectl scale inferencereplicas.ome.io chat-engine --replicas=4 --resource-version=17 -n prod --context=lab"},
		{engineSubject(""), release, "kubectl annotate inferencereplicas.ome.io chat-engine ome.io/release-held-revision=chat-engine-0badcafe --resource-version=17 -n prod --context=lab"},
		{pending, release, "kubectl annotate inferencereplicas.ome.io chat-engine ome.io/release-held-revision=chat-engine-0badcafe --overwrite --resource-version=17 -n prod --context=lab"},
		{Subject{}, release, ""},
	} {
		if diff := cmp.Diff(c.want, ev.byHand(c.subject, c.change)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestMalformedBlocks draws blocks and holds the rule against its definition.
func TestMalformedBlocks(t *testing.T) {
	now := time.Date(2026, 9, 28, 14, 0, 0, 0, time.UTC)
	instant := func(t *rapid.T, label string) *metav1.Time {
		n := rapid.IntRange(-3, 3).Draw(t, label)
		if n == -3 {
			return nil
		}
		return &metav1.Time{Time: now.Add(time.Duration(n) * time.Minute)}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := &v1beta1.RetryBlock{
			TargetRevision:  rapid.SampledFrom([]string{"", "chat-engine-0badcafe"}).Draw(t, "target"),
			State:           rapid.SampledFrom([]v1beta1.RetryState{"Backoff", "Held", "RetryInProgress", "Lost", ""}).Draw(t, "state"),
			AttemptsStarted: rapid.Int32Range(-1, 2).Draw(t, "attempts"),
			NextRetryAt:     instant(t, "next"), FirstFailureAt: instant(t, "first"), LastFailureAt: instant(t, "last"),
		}
		past := func(at *metav1.Time) bool { return at == nil || !at.After(now) }
		valid := b.TargetRevision != "" && (b.State == "Backoff" || b.State == "Held" || b.State == "RetryInProgress") && b.AttemptsStarted >= 1 &&
			(b.NextRetryAt == nil || b.State == "Backoff") && past(b.FirstFailureAt) && past(b.LastFailureAt) &&
			(b.FirstFailureAt == nil || b.LastFailureAt == nil || !b.LastFailureAt.Time.Before(b.FirstFailureAt.Time))
		if got := malformed(b, now); (got == "") != valid {
			t.Fatalf("%+v: %q", b, got)
		}
	})
}

func TestReleaseFlags(t *testing.T) {
	for revision, ok := range map[string]bool{
		"0badcafe": true, "chat-engine-0badcafe": true, "a.b-engine-0badcafe": true,
		"": false, "0badcaf": false, "0BADCAFE": false, "chat-engine-0badcafe1": false, "-0badcafe": false, "Chat-engine-0badcafe": false, "chat-engine-": false, "chat_engine-0badcafe": false,
	} {
		if err := (Release{v1beta1.EngineComponent, revision}).Check(); (err == nil) != ok {
			t.Errorf("%q: %v", revision, err)
		}
	}
}

// TestContinuedRowsLoseNothing: the parts of a value are the value.
func TestContinuedRowsLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value, width := rapid.String().Draw(t, "value"), rapid.IntRange(1, 20).Draw(t, "width")
		var all strings.Builder
		for i, r := range continued("label", value, width) {
			if (r.Label == "label") != (i == 0) || len([]rune(r.Value)) > width {
				t.Fatalf("row %d is %+v", i, r)
			}
			all.WriteString(r.Value)
		}
		if want := string([]rune(value)); all.String() != want {
			t.Fatalf("%q, want %q", all.String(), want)
		}
	})
}

func TestMovedSince(t *testing.T) {
	ref := func(name string) Ref {
		return Ref{v1beta1.InferenceReplicaKind, v1beta1.InferenceReplicaResource, "prod", name}
	}
	read := func(pairs ...string) *Evidence {
		ev := &Evidence{}
		for i := 0; i < len(pairs); i += 2 {
			ev.stored = append(ev.stored, stored{ref(pairs[i]), []byte(pairs[i+1])})
		}
		return ev
	}
	for _, c := range []struct {
		before, after *Evidence
		want          string
	}{
		{read("a", "1", "b", "2"), read("a", "1", "b", "2"), ""},
		{read("a", "1", "b", "2"), read("b", "2", "a", "1"), ""},
		{read("a", "1"), read("a", "2"), ref("a").String()},
		{read("a", "1"), read("a", "1", "b", "2"), ref("b").String() + ", which wasn't there,"},
		{read("a", "1", "b", "2"), read("a", "1"), ref("b").String() + ", which is gone,"},
		{read(), read(), ""},
	} {
		if got := c.after.movedSince(c.before); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestScaleJSONKeyOrder(t *testing.T) {
	var b strings.Builder
	r := &ActionResult{FollowUp: "f", Scale: &ScaleResult{Sources: []Identity{}, Issues: []string{}, Warnings: []string{}}}
	if err := PrintResult(&b, r, OutputJSON); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(b.String(), `"followUp"`)
	for _, key := range []string{"scale", "component", "subresource", "field", "priorReplicas", "requestedReplicas", "minReplicas", "maxReplicas", "class", "managedBy",
		"specSource", "override", "transient", "parent", "kind", "namespace", "name", "uid", "generation", "sources", "replicaGeneration", "parentGenerationStamp",
		"parentFreshness", "instances", "replicas", "ready", "serving", "available", "issues", "warnings"} {
		_, rest, found := strings.Cut(text, `"`+key+`":`)
		if !found {
			t.Fatalf("key %s is missing or out of order in\n%s", key, b.String())
		}
		text = rest
	}
	if strings.Contains(b.String(), "null") {
		t.Errorf("an empty list is null:\n%s", b.String())
	}
}
