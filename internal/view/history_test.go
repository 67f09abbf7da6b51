package view

import (
	"strings"
	"testing"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

func drawHistory(t *testing.T, s *v1beta1.InferenceService) string {
	r := BuildRolloutHistory(s, now)
	return "-- sentence --\n" + RolloutHistorySentence(s, r, now) + "\n" + drawReport(t, r, RolloutHistoryTable, RolloutHistoryWide)
}

func TestRolloutHistoryGolden(t *testing.T) { goldenServices(t, "history", drawHistory) }

// TestHistoryWindow: no status, an empty one and one with records are told apart.
func TestHistoryWindow(t *testing.T) {
	for want, ro := range map[string]*v1beta1.RolloutStatus{
		windowUnavailable: nil,
		windowEmpty:       {ObservedGeneration: 1},
		windowPartial:     {LastRun: &v1beta1.RolloutRunRecord{Outcome: v1beta1.RunCompleted}},
	} {
		s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "chat", Generation: 1}}
		s.Status.Rollout = ro
		if got := BuildRolloutHistory(s, now).Content; got.Window != want || got.Completeness != retentionBounded || got.ActiveRuns == nil {
			t.Errorf("window %q, want %q", got.Window, want)
		}
	}
}

// TestHistoryCantTouchTheScreen: text of the status is made harmless in every form.
func TestHistoryCantTouchTheScreen(t *testing.T) {
	evil := "x\x1b[2J\u202e\npassword=hunter2hunter2"
	ref := &v1beta1.RolloutPolicyRef{Name: evil}
	target := []v1beta1.RunTarget{{Component: v1beta1.ComponentType(evil), Revision: evil, StableRevision: evil}}
	s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: "prod", Generation: 1}}
	s.Status.Rollout = &v1beta1.RolloutStatus{
		ActiveRun: &v1beta1.RolloutRun{RunID: evil, TargetRevisions: target,
			Plan: v1beta1.RolloutPlan{Groups: []v1beta1.RunGroup{{Source: v1beta1.SourcePolicy, PolicyRef: ref, PortableDigest: evil}}}},
		LastRun: &v1beta1.RolloutRunRecord{RunID: evil, Outcome: v1beta1.RunOutcome(evil), TargetRevisions: target,
			Groups: []v1beta1.RunGroupRecord{{Source: v1beta1.ProgressionSource(evil), PolicyRef: ref, PortableDigest: evil}}},
		Groups:  []v1beta1.GroupResolution{{Source: v1beta1.SourceInline, ObservedDigest: evil, ShadowedPolicyRef: &v1beta1.ShadowedRolloutPolicy{Name: evil}}},
		History: []v1beta1.RolloutRunHistoryEntry{{RunID: evil + "2", Outcome: v1beta1.RunOutcome(evil), Cause: evil, Actor: evil, TargetRevisions: target}},
	}
	text := drawHistory(t, s)
	for _, r := range text {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Fatalf("%q gets out:\n%q", r, text)
		}
	}
	if strings.Contains(text, "hunter2") || !strings.Contains(text, redacted) {
		t.Error("shows a password:\n" + text)
	}
}
