package view

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var now = time.Date(2026, 9, 28, 14, 12, 0, 0, time.UTC)

// TestRolloutStatusGolden draws each service of testdata in every form.
func TestRolloutStatusGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no services in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s v1beta1.InferenceService
			if err := yaml.UnmarshalStrict(raw, &s); err != nil {
				t.Fatal(err)
			}
			before := s.DeepCopy()
			got := drawAll(t, &s)
			if diff := cmp.Diff(before, &s); diff != "" {
				t.Errorf("the report wrote to its input:\n%s", diff)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func drawAll(t *testing.T, s *v1beta1.InferenceService) string {
	t.Helper()
	r := BuildRolloutStatus(s, now)
	var b strings.Builder
	b.WriteString("-- sentence --\n" + RolloutStatusSentence(s, r, now) + "\n-- table --\n")
	if err := RolloutStatusTable(r).Write(&b, 0); err != nil {
		t.Fatal(err)
	}
	b.WriteString("-- table on 60 columns --\n")
	if err := RolloutStatusTable(r).Write(&b, 60); err != nil {
		t.Fatal(err)
	}
	b.WriteString("-- wide --\n")
	if err := RolloutStatusWide(r).Write(&b, 0); err != nil {
		t.Fatal(err)
	}
	j, err := json.MarshalIndent(r.Content, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString("-- content --\n" + string(j) + "\n")
	return b.String()
}

// TestVerifiedNeedsEveryStamp: one part stamped with another generation, or no
// stamp at all, and the state isn't proved.
func TestVerifiedNeedsEveryStamp(t *testing.T) {
	service := func(edit func(*v1beta1.InferenceService)) *v1beta1.InferenceService {
		s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "s", Generation: 4}}
		s.Spec.Engine = &v1beta1.EngineSpec{}
		s.Spec.Rollout = &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{{Components: []v1beta1.ComponentType{"engine"}}}}
		s.Status.Rollout = &v1beta1.RolloutStatus{ObservedGeneration: 4}
		s.Status.RolloutCoordination = &v1beta1.RolloutCoordinationStatus{Groups: []v1beta1.CoordinationGroupStatus{{Name: "0", ObservedGeneration: 4, Phase: v1beta1.CoordinationIdle}}}
		s.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{"engine": {RolloutPhase: v1beta1.RolloutStable}}
		edit(s)
		return s
	}
	for name, c := range map[string]struct {
		edit func(*v1beta1.InferenceService)
		want bool
	}{
		"all stamped":       {func(*v1beta1.InferenceService) {}, true},
		"group unstamped":   {func(s *v1beta1.InferenceService) { s.Status.RolloutCoordination.Groups[0].ObservedGeneration = 0 }, true},
		"group behind":      {func(s *v1beta1.InferenceService) { s.Status.RolloutCoordination.Groups[0].ObservedGeneration = 3 }, false},
		"rollout behind":    {func(s *v1beta1.InferenceService) { s.Status.Rollout.ObservedGeneration = 3 }, false},
		"rollout unstamped": {func(s *v1beta1.InferenceService) { s.Status.Rollout.ObservedGeneration = 0 }, false},
		"rollout ahead":     {func(s *v1beta1.InferenceService) { s.Status.Rollout.ObservedGeneration = 5 }, false},
		"canary behind": {func(s *v1beta1.InferenceService) {
			s.Status.Components["engine"] = v1beta1.ComponentStatus{Canary: &v1beta1.CanaryStatus{ObservedGeneration: 3}}
		}, false},
		"canary stamped": {func(s *v1beta1.InferenceService) {
			s.Status.Components["engine"] = v1beta1.ComponentStatus{RolloutPhase: v1beta1.RolloutStable, Canary: &v1beta1.CanaryStatus{ObservedGeneration: 4}}
		}, true},
	} {
		sum := BuildRolloutStatus(service(c.edit), now).Content.Summary
		wantEpoch, wantState := EpochUnverifiable, StateUnknown
		if c.want {
			wantEpoch, wantState = EpochVerified, sum.ReportedState
		}
		if sum.Epoch != wantEpoch || sum.State != wantState || sum.ReportedState != StateSucceeded {
			t.Errorf("%s: %+v", name, sum)
		}
	}
}

// TestPrecedence: the worst word anywhere is the service's.
func TestPrecedence(t *testing.T) {
	phases := map[v1beta1.RolloutPhase]string{
		v1beta1.RolloutFailed: StateFailed, v1beta1.RolloutRollingBack: StateRollingBack, v1beta1.RolloutRolledBack: StateRolledBack,
		v1beta1.RolloutPaused: StatePaused, "Surprise": StateUnknown, v1beta1.RolloutPromoting: StateInProgress, v1beta1.RolloutStable: StateSucceeded,
	}
	rank := func(state string) int {
		for i, p := range precedence {
			if p == state {
				return i
			}
		}
		return -1
	}
	for a, stateA := range phases {
		for b, stateB := range phases {
			s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
			s.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{"engine": {RolloutPhase: a}, "router": {RolloutPhase: b}}
			want := stateA
			if rank(stateB) < rank(stateA) {
				want = stateB
			}
			if got := BuildRolloutStatus(s, now).Content.Summary.ReportedState; got != want {
				t.Errorf("%s and %s: %s, want %s", a, b, got, want)
			}
		}
	}
}

// TestTableFitsAnyWidth: no line is wider than the terminal as long as the
// headers fit, no cell's text is lost, and nothing unprintable gets out.
func TestTableFitsAnyWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringMatching(`[a-z0-9 ,()=-]{0,40}`)
		table := &Table{Header: []string{"FIELD", "SERVICE", "ENGINE"}}
		for range rapid.IntRange(0, 4).Draw(t, "rows") {
			table.Rows = append(table.Rows, []string{cell.Draw(t, "a"), cell.Draw(t, "b"), cell.Draw(t, "c")})
		}
		width := rapid.IntRange(0, 120).Draw(t, "width")
		var b strings.Builder
		if err := table.Write(&b, width); err != nil {
			t.Fatal(err)
		}
		if headers := total([]int{5, 7, 6}); width >= headers {
			for line := range strings.SplitSeq(b.String(), "\n") {
				if runes(line) > width {
					t.Fatalf("width %d, line %q", width, line)
				}
			}
		}
		letters := func(s string) int {
			n := 0
			for _, r := range s {
				if !unicode.IsSpace(r) {
					n++
				}
			}
			return n
		}
		want := 0
		for _, r := range table.Rows {
			for _, c := range r {
				want += letters(c)
			}
		}
		got := letters(b.String())
		if width == 0 || width >= total([]int{5, 7, 6}) {
			got -= letters("FIELDSERVICEENGINE")
		} else {
			got -= len(table.Rows) * letters("FIELD:SERVICE:ENGINE:")
		}
		if got != want {
			t.Fatalf("%d letters of %d at width %d:\n%s", got, want, width, b.String())
		}
	})
}

func TestStatusTextCantTouchTheScreen(t *testing.T) {
	s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	evil := "x\x1b[2J\u202e\n"
	s.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{"engine": {
		RolloutPhase: v1beta1.RolloutPhase(evil), LatestReadyRevision: "s-engine-rev-" + evil, LatestRolledoutRevision: evil,
		Lifecycle: &v1beta1.LifecycleStatus{CurrentRevision: "a", UpdateRevision: "b", RolloutHold: &v1beta1.RolloutHold{Gate: "Budget", Reason: evil}},
	}, "router": {RolloutPhase: v1beta1.RolloutPromoting}}
	s.Status.RolloutCoordination = &v1beta1.RolloutCoordinationStatus{Groups: []v1beta1.CoordinationGroupStatus{{Name: evil, Phase: v1beta1.CoordinationPhase(evil), Message: evil}}}
	text := drawAll(t, s)
	text, _, _ = strings.Cut(text, "-- content --")
	for _, r := range text {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Fatalf("%q gets out:\n%q", r, text)
		}
	}
	if !strings.Contains(text, IssueStatusMalformed) || !strings.Contains(text, IssueRevisionNameInvalid) {
		t.Error("the odd values aren't reported:\n" + text)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0 s", 59 * time.Second: "59 s", 12 * time.Minute: "12 min", 26 * time.Hour: "26 h"} {
		if got := age(d); got != want {
			t.Errorf("age(%s) = %s, want %s", d, got, want)
		}
	}
}
