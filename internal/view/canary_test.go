package view

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
)

// canaried is a service in the middle of a canary of engine and decoder, at its first step.
func canaried(edit func(*v1beta1.InferenceService, *v1beta1.ComponentStatus)) *v1beta1.InferenceService {
	entered := metav1.NewTime(now.Add(-12 * time.Minute))
	group := v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{"engine", "decoder"}, Canary: &v1beta1.GroupCanary{Steps: []v1beta1.RolloutGroupStep{
		{Capacity: intstr.FromString("25%"), Traffic: 10, Pause: &v1beta1.RolloutPause{}},
		{Capacity: intstr.FromString("100%"), Traffic: 100},
	}}}
	s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: "prod", UID: "u", Generation: 2}}
	s.Spec.Engine, s.Spec.Decoder = &v1beta1.EngineSpec{}, &v1beta1.DecoderSpec{}
	s.Spec.Rollout = &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{group}}
	s.Status.Rollout = &v1beta1.RolloutStatus{ObservedGeneration: 2, ActiveRun: &v1beta1.RolloutRun{RunID: "chat-1",
		Plan: v1beta1.RolloutPlan{Groups: []v1beta1.RunGroup{{Source: v1beta1.SourceInline, Group: group}}}}}
	engine := v1beta1.ComponentStatus{RolloutPhase: v1beta1.RolloutPaused,
		Traffic: []v1beta1.TrafficTarget{{RevisionName: "chat-engine-rev-bbbbbbbb", Percent: 10}, {RevisionName: "chat-engine-rev-aaaaaaaa", Percent: 90}},
		Canary: &v1beta1.CanaryStatus{ObservedGeneration: 2, CanaryRevisionHash: "bbbbbbbb", StableRevisionHash: "aaaaaaaa",
			ObservedTrafficWeight: 10, StepEnteredTime: &entered}}
	edit(s, &engine)
	if s.Status.Components == nil {
		s.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{}
	}
	s.Status.Components["engine"] = engine
	return s
}

// TestCanaryTraffic: each way in which a record can contradict the plan or itself, and
// those in which it only seems to.
func TestCanaryTraffic(t *testing.T) {
	weights := func(pairs ...any) []v1beta1.TrafficTarget {
		var out []v1beta1.TrafficTarget
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, v1beta1.TrafficTarget{RevisionName: pairs[i].(string), Percent: int32(pairs[i+1].(int))})
		}
		return out
	}
	const fresh, old = "chat-engine-rev-bbbbbbbb", "chat-engine-rev-aaaaaaaa"
	for _, c := range []struct {
		name  string
		edit  func(*v1beta1.InferenceService, *v1beta1.ComponentStatus)
		want  string
		codes []string
	}{
		{"as planned", func(*v1beta1.InferenceService, *v1beta1.ComponentStatus) {}, "Valid Current", nil},
		{"nothing recorded yet", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) { *e = v1beta1.ComponentStatus{} }, "NotApplicable NotApplicable", nil},
		{"no stamp", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) { e.Canary.ObservedGeneration = 0 }, "Valid Unverifiable", nil},
		{"record behind", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) { e.Canary.ObservedGeneration = 1 }, "Unverifiable Stale", nil},
		{"record missing", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) { e.Canary = nil }, "Unverifiable Unverifiable", []string{IssueCanaryStatusMissing}},
		{"two records of a unit", func(s *v1beta1.InferenceService, _ *v1beta1.ComponentStatus) {
			s.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{"decoder": {Canary: &v1beta1.CanaryStatus{}}}
		}, "Unverifiable Current", []string{IssueCanaryStatusUnexpected}},
		{"step outside the plan", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) { e.Canary.CurrentStep = 3 }, "Unverifiable Current", []string{IssueCanaryStepInvalid}},
		{"weights short of 100", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) { e.Traffic = weights(fresh, 10, old, 80) }, "Unverifiable Current", []string{IssueTrafficInvalid}},
		{"a weight twice", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) { e.Traffic = weights(old, 50, old, 50) }, "Unverifiable Current", []string{IssueTrafficInvalid}},
		{"weight of another component", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) {
			e.Traffic = weights("chat-router-rev-aaaaaaaa", 100)
		}, "Unverifiable Current", []string{IssueTrafficInvalid}},
		{"weight out of range", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) {
			e.Traffic = weights(fresh, 110, old, -10)
		}, "Unverifiable Current", []string{IssueTrafficInvalid}},
		{"nine weights", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) {
			e.Traffic = make([]v1beta1.TrafficTarget, 9)
		}, "Unverifiable Current", []string{IssueTrafficInvalid}},
		{"weights and record differ", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) { e.Traffic = weights(fresh, 20, old, 80) }, "Unverifiable Current", []string{IssueTrafficInvalid}},
		{"weight of no step", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) {
			e.Traffic, e.Canary.ObservedTrafficWeight = weights(fresh, 40, old, 60), 40
		}, "Unverifiable Current", []string{IssueCanaryWeightInvalid}},
		{"still the weight of the step before", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) {
			e.Canary.CurrentStep, e.Canary.StepEnteredTime, e.RolloutPhase = 1, nil, v1beta1.RolloutPending
		}, "Valid Current", nil},
		{"the weight of the step before after the step was entered", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) { e.Canary.CurrentStep = 1 }, "Unverifiable Current", []string{IssueCanaryWeightInvalid}},
		{"held before a weight", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) {
			e.Canary.CurrentStep, e.Canary.StepEnteredTime, e.Canary.PreStepHold = 1, nil, true
		}, "Valid Current", nil},
		{"done", func(s *v1beta1.InferenceService, e *v1beta1.ComponentStatus) {
			s.Status.Rollout.ActiveRun, e.RolloutPhase = nil, v1beta1.RolloutStable
			e.Canary.CurrentStep, e.Traffic, e.Canary.ObservedTrafficWeight = 7, weights(fresh, 100), 100
		}, "Valid Current", nil},
		{"rolled back", func(s *v1beta1.InferenceService, e *v1beta1.ComponentStatus) {
			s.Status.Rollout.ActiveRun, e.RolloutPhase, e.Canary.RolledBackRevisionHash = nil, v1beta1.RolloutRolledBack, "bbbbbbbb"
			e.Traffic, e.Canary.ObservedTrafficWeight = weights(old, 100), 0
		}, "Valid Current", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := BuildRolloutValidate(canaried(c.edit), now).Content
			var found []ValidateCheck
			for _, check := range report.Checks {
				if check.Check == checkCanaryTraffic {
					found = append(found, check)
				}
			}
			if len(found) != 1 || found[0].Component != "engine" {
				t.Fatalf("checks %+v", found)
			}
			if got := found[0].Result + " " + found[0].Freshness; got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if diff := cmp.Diff(append([]string{}, c.codes...), found[0].Codes); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
			told := 0
			for _, p := range report.Advice {
				if p.Check == checkCanaryTraffic {
					told++
				}
			}
			if told != len(c.codes) {
				t.Errorf("%d texts for %d codes", told, len(c.codes))
			}
		})
	}
}

// TestCanaryTextCantTouchTheScreen: what a query or a controller wrote is made harmless
// in every form.
func TestCanaryTextCantTouchTheScreen(t *testing.T) {
	evil := "x\x1b[2J\u202e\npassword=hunter2hunter2"
	s := canaried(func(s *v1beta1.InferenceService, e *v1beta1.ComponentStatus) {
		e.RolloutPhase = v1beta1.RolloutFailed
		e.Canary.Failed = &v1beta1.CanaryFailure{Reason: v1beta1.CanaryFailureReason(evil)}
		e.Canary.MetricResults = []v1beta1.MetricResult{{Name: evil, Value: evil, Operator: evil, Threshold: evil, Message: evil, Query: evil}}
		e.Canary.LastRequest = &v1beta1.CanaryRequest{Key: evil, Value: evil, Outcome: evil}
		e.Canary.CanaryRevisionHash, e.Canary.StableRevisionHash, e.Canary.RolledBackRevisionHash = evil, evil, evil
	})
	r := BuildRolloutExplain(s, now)
	text := RolloutExplainText(r, now, 80) + drawReport(t, r, RolloutExplainTable, RolloutExplainWide)
	for _, r := range text {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Fatalf("%q gets out:\n%q", r, text)
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Error("shows a password:\n" + text)
	}
}

// TestEveryCanaryHoldHasAWayOut: whatever a canary waits for, the report says what ends it.
func TestEveryCanaryHoldHasAWayOut(t *testing.T) {
	for phase, kind := range map[v1beta1.RolloutPhase]string{
		v1beta1.RolloutPaused: holdCanaryGate, v1beta1.RolloutPromoting: holdCanaryGate, v1beta1.RolloutPending: holdCanaryCapacity, v1beta1.RolloutFailed: holdCanaryFailed,
		v1beta1.RolloutRollingBack: holdCanaryRolling, v1beta1.RolloutRolledBack: holdCanaryRejected, v1beta1.RolloutStable: "",
	} {
		r := BuildRolloutExplain(canaried(func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) { e.RolloutPhase = phase }), now)
		got := ""
		for _, h := range r.Content.Holds {
			if got = h.Kind; h.WayOut == "" || h.Reason == "" || h.Component != "engine" || h.Group == nil || *h.Group != 0 {
				b, _ := json.Marshal(h)
				t.Errorf("%s: %s", phase, b)
			}
		}
		if len(r.Content.Holds) > 1 || got != kind {
			t.Errorf("%s: %q in %d holds, want %q", phase, got, len(r.Content.Holds), kind)
		}
	}
}

// TestWaitForAGate: a gate counts only while nothing is on its way that may end it.
func TestWaitForAGate(t *testing.T) {
	for _, c := range []struct {
		name    string
		edit    func(*v1beta1.InferenceService, *v1beta1.ComponentStatus)
		matched bool
	}{
		{"waits", func(*v1beta1.InferenceService, *v1beta1.ComponentStatus) {}, true},
		{"at its last step", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) {
			e.RolloutPhase, e.Canary.CurrentStep = v1beta1.RolloutPromoting, 1
		}, false},
		{"pending", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) { e.RolloutPhase = v1beta1.RolloutPending }, false},
		{"a promote is on its way", func(s *v1beta1.InferenceService, _ *v1beta1.ComponentStatus) {
			s.Annotations = map[string]string{v1beta1.RolloutPromoteAnnotation: "bbbbbbbb"}
		}, false},
		{"a rollback is on its way", func(s *v1beta1.InferenceService, _ *v1beta1.ComponentStatus) {
			s.Annotations = map[string]string{v1beta1.RolloutRollbackAnnotation: "true"}
		}, false},
		{"no rollback is asked for", func(s *v1beta1.InferenceService, _ *v1beta1.ComponentStatus) {
			s.Annotations = map[string]string{v1beta1.RolloutRollbackAnnotation: "false"}
		}, true},
		{"its last sample gave no value", func(_ *v1beta1.InferenceService, e *v1beta1.ComponentStatus) {
			e.Canary.MetricResults = []v1beta1.MetricResult{{Name: "m"}}
		}, true},
		{"of an older spec", func(s *v1beta1.InferenceService, _ *v1beta1.ComponentStatus) { s.Generation = 3 }, false},
	} {
		w := NewWaiter(&WaitPredicate{Family: WaitRollout, Want: "paused"})
		s := canaried(c.edit)
		s.Status.Components["decoder"] = v1beta1.ComponentStatus{}
		outcome, failed := w.Check(&WaitInput{Service: s}, now)
		if (outcome == OutcomeMatched) != c.matched || failed != "" {
			t.Errorf("%s: %q %q, %+v", c.name, outcome, failed, w.last.Rollout)
		}
	}
}
