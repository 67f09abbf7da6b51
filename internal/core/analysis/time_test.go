package analysis

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// The first sample is due at stepEnteredTime + max(initialDelay, range + offset of the longest query).
func TestFirstSample(t *testing.T) {
	query := `errors{revision_hash="8be0917f"}`
	for _, tc := range []struct {
		name  string
		delay *metav1.Duration
		reach time.Duration
		first float64
	}{
		{name: "at once", first: 0},
		{name: "after the initial delay", delay: seconds(60), first: 60},
		{name: "after the range of the query", reach: 5 * time.Minute, first: 300},
		{name: "the range is longer than the delay", delay: seconds(60), reach: 5 * time.Minute, first: 300},
		{name: "the delay is longer than the range", delay: seconds(600), reach: 5 * time.Minute, first: 600},
		{name: "a stored negative delay", delay: seconds(-60), first: 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t, func(step *v1beta1.RolloutGroupStep) { step.Analysis.InitialDelay = tc.delay })
			s.reach[query] = tc.reach
			if tc.first > 0 {
				out := s.at(tc.first - 0.5)
				if out.Due != nil || !out.Wake.Equal(entered.Add(time.Duration(tc.first)*time.Second)) {
					t.Errorf("before: due %+v, wake %s", out.Due, out.Wake)
				}
			}
			out := s.at(tc.first)
			if out.Due == nil {
				t.Fatalf("not due at %v s: %s", tc.first, out.Why)
			}
			want := []Query{{Metric: "errors", Text: query}}
			if diff := cmp.Diff(want, out.Due.Queries); diff != "" {
				t.Errorf("queries:\n%s", diff)
			}
		})
	}
}

// A sample that was taken too early is no sample, though it has the right name.
func TestNoSampleFromBeforeTheFirst(t *testing.T) {
	s := newStage(t, func(step *v1beta1.RolloutGroupStep) { step.Analysis.InitialDelay = seconds(60) })
	due := *s.at(60).Due
	early := Sample{ID: due.ID, At: entered.Add(59 * time.Second), Done: entered.Add(61 * time.Second), Answers: []Answer{{Metric: "errors", Type: Vector, Series: good.Series}}}
	if out := s.at(61, early); out.Judged != "" || out.Verdict != Hold {
		t.Errorf("judged %s: %s", out.Judged, out.Why)
	}
}

// At most one sample in an interval, counted from the end of the last.
func TestInterval(t *testing.T) {
	s := newStage(t)
	if out := s.sample(5, bad); !out.Wake.Equal(entered.Add(35 * time.Second)) {
		t.Errorf("wake %s", out.Wake)
	}
	if out := s.at(34); out.Due != nil || !out.Wake.Equal(entered.Add(35*time.Second)) {
		t.Errorf("at 34 s: %+v", out)
	}
	// The queries took 7.4 s: the next interval starts when they were done, rounded up.
	due := *s.at(35).Due
	out := s.at(37.4, Sample{ID: due.ID, At: entered.Add(35 * time.Second), Done: entered.Add(37*time.Second + 400*time.Millisecond), Answers: []Answer{{Metric: "errors", Type: Vector, Series: bad.Series}}})
	out.Store(&s.record)
	if want := entered.Add(68 * time.Second); !out.Wake.Equal(want) {
		t.Errorf("wake %s, want %s", out.Wake, want)
	}
	if out := s.at(67.9); out.Due != nil {
		t.Error("a sample within the interval")
	}
	if out := s.at(68); out.Due == nil {
		t.Error("no sample after the interval")
	}
}

// Until there is an answer the same sample is due, however often it is judged; that is no verdict.
func TestStarvationIsNotInconclusive(t *testing.T) {
	s := newStage(t, func(step *v1beta1.RolloutGroupStep) { step.Analysis.OnInconclusive = v1beta1.InconclusiveRollback })
	first := s.at(0)
	for _, sec := range []float64{1, 60, 3600, 86400} {
		out := s.at(sec)
		if out.Verdict != Hold || out.Judged != "" {
			t.Errorf("at %v s: %s, %s", sec, out.Verdict, out.Why)
		}
		if diff := cmp.Diff(first.Due, out.Due); diff != "" {
			t.Errorf("at %v s another sample:\n%s", sec, diff)
		}
		if want := s.in.Now.Add(30 * time.Second); !out.Wake.Equal(want) {
			t.Errorf("at %v s wake %s, want %s", sec, out.Wake, want)
		}
	}
}

// Failures add up to the limit at this step; a pass takes none back, and neither does doubt.
func TestFailureLimit(t *testing.T) {
	s := newStage(t, func(step *v1beta1.RolloutGroupStep) { step.Pause = &v1beta1.RolloutPause{Duration: seconds(3600)} })
	for i, tc := range []struct {
		answer  Answer
		checks  int32
		verdict Verdict
	}{
		{bad, 1, Hold}, {good, 1, Hold}, {bad, 2, Hold}, {none, 2, Hold}, {good, 2, Hold}, {bad, 3, Rollback},
	} {
		out := s.sample(float64(30*i), tc.answer)
		if out.Verdict != tc.verdict || s.record.AnalysisFailedChecks != tc.checks {
			t.Errorf("sample %d: %s with %d failures, want %s with %d: %s", i, out.Verdict, s.record.AnalysisFailedChecks, tc.verdict, tc.checks, out.Why)
		}
		if tc.verdict == Rollback {
			const why = "analysis: errors is 0.5, which is not < 0.01, at 2026-03-01T12:02:30Z (3 of 3 failures before rollback)"
			if out.Why != why || !out.Wake.IsZero() {
				t.Errorf("why %q, wake %s", out.Why, out.Wake)
			}
		}
	}
}

func TestAStoredLimitOfZeroIsOne(t *testing.T) {
	s := newStage(t, func(step *v1beta1.RolloutGroupStep) { step.Analysis.FailureLimit = 0 })
	if out := s.sample(0, bad); out.Verdict != Rollback {
		t.Errorf("%s: %s", out.Verdict, out.Why)
	}
}

// The gate opens on a passing sample taken after the bake, not on the bake's end alone and not on an
// earlier pass.
func TestBake(t *testing.T) {
	for _, tc := range []struct {
		name  string
		pause *v1beta1.RolloutPause
		delay time.Duration
		opens float64
	}{
		{name: "none", opens: 0},
		{name: "a pause without duration is ignored", pause: &v1beta1.RolloutPause{}, opens: 0},
		{name: "the pause", pause: &v1beta1.RolloutPause{Duration: seconds(45)}, opens: 60},
		{name: "the delay of the last step", delay: 60 * time.Second, opens: 60},
		{name: "the longer of the two", pause: &v1beta1.RolloutPause{Duration: seconds(45)}, delay: 61 * time.Second, opens: 90},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t, func(step *v1beta1.RolloutGroupStep) { step.Pause = tc.pause })
			s.in.Delay = tc.delay
			for sec := 0.0; sec <= tc.opens; sec += 30 {
				out := s.sample(sec, good)
				want := Hold
				if sec == tc.opens {
					want = Pass
				}
				if out.Verdict != want {
					t.Errorf("at %v s: %s: %s", sec, out.Verdict, out.Why)
				}
				if between := s.at(sec + 29); want == Hold && between.Verdict != Hold {
					t.Errorf("opened without a sample at %v s: %s", sec+29, between.Why)
				}
			}
		})
	}
}

// The time of the sample counts, not the time at which it is judged.
func TestAPassFromDuringTheBakeDoesNotOpen(t *testing.T) {
	s := newStage(t, func(step *v1beta1.RolloutGroupStep) { step.Pause = &v1beta1.RolloutPause{Duration: seconds(60)} })
	due := *s.at(0).Due
	late := Sample{ID: due.ID, At: entered.Add(59 * time.Second), Done: entered.Add(60 * time.Second), Answers: []Answer{{Metric: "errors", Type: Vector, Series: good.Series}}}
	if out := s.at(61, late); out.Judged != Passed || out.Verdict != Hold {
		t.Errorf("%s, %s: %s", out.Judged, out.Verdict, out.Why)
	}
}

// What one inconclusive sample does under each policy, and what it does past the ready timeout.
func TestInconclusivePolicies(t *testing.T) {
	for _, tc := range []struct {
		policy                v1beta1.InconclusivePolicy
		first, timeout, stall Verdict
	}{
		{"", Hold, Hold, Stalled},
		{v1beta1.InconclusiveHold, Hold, Hold, Stalled},
		{v1beta1.InconclusiveRollbackOnStall, Hold, Hold, Rollback},
		{v1beta1.InconclusiveRollback, Rollback, Rollback, Rollback},
		{"Unheard", Hold, Hold, Stalled},
	} {
		t.Run(fmt.Sprintf("policy %q", tc.policy), func(t *testing.T) {
			for sec, want := range map[float64]Verdict{0: tc.first, 900: tc.timeout, 901: tc.stall} {
				s := newStage(t, func(step *v1beta1.RolloutGroupStep) { step.Analysis.OnInconclusive = tc.policy })
				if out := s.sample(sec, none); out.Verdict != want {
					t.Errorf("at %v s: %s, want %s: %s", sec, out.Verdict, want, out.Why)
				}
				if s.record.AnalysisFailedChecks != 0 || s.record.LastConclusiveEvaluationTime != nil {
					t.Errorf("at %v s it counts as a check: %+v", sec, s.record)
				}
			}
		})
	}
}

// The stall clock starts anew with each sample that passes or fails, leaves out the time before the
// first sample could be due, and runs out for nobody without a ready timeout.
func TestStallClock(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*stage)
		// good and bad samples before the inconclusive one, by their time.
		before map[float64]Answer
		holds  float64
		stalls float64
	}{
		{name: "from the beginning", holds: 900, stalls: 901},
		{name: "from the last failure", before: map[float64]Answer{600: bad}, holds: 1500, stalls: 1501},
		{name: "from the last pass during a bake", before: map[float64]Answer{600: good}, holds: 1500, stalls: 1501,
			change: func(s *stage) { s.in.Canary.Steps[1].Pause = &v1beta1.RolloutPause{Duration: seconds(7200)} }},
		{name: "the initial delay is left out", holds: 1500, stalls: 1501,
			change: func(s *stage) { s.analysis().InitialDelay = seconds(600) }},
		{name: "so is the range of the query", holds: 1500, stalls: 1501,
			change: func(s *stage) { s.reach[`errors{revision_hash="8be0917f"}`] = 10 * time.Minute }},
		{name: "no ready timeout", holds: 1e6, change: func(s *stage) { s.in.ReadyTimeout = 0 }},
		{name: "a negative one", holds: 1e6, change: func(s *stage) { s.in.ReadyTimeout = -1 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for sec, want := range map[float64]Verdict{tc.holds: Hold, tc.stalls: Stalled} {
				if sec == 0 {
					continue
				}
				s := newStage(t)
				if tc.change != nil {
					tc.change(s)
				}
				for at, answer := range tc.before {
					s.sample(at, answer)
				}
				if out := s.sample(sec, none); out.Verdict != want {
					t.Errorf("at %v s: %s, want %s: %s", sec, out.Verdict, want, out.Why)
				}
			}
		})
	}
}

// Hours without a call, as under a pause, are no stall: it takes a sample from after them to say so.
func TestAPauseIsNoStall(t *testing.T) {
	s := newStage(t)
	s.sample(0, none)
	out := s.at(36000)
	if out.Verdict != Hold || out.Due == nil {
		t.Fatalf("after the pause: %s: %s", out.Verdict, out.Why)
	}
	if out := s.answer(*out.Due, 36000, good); out.Verdict != Pass {
		t.Errorf("the source is back: %s: %s", out.Verdict, out.Why)
	}
}

// Nothing but a pass opens the gate: any number of other samples doesn't.
func TestOnlyAPassOpens(t *testing.T) {
	s := newStage(t, func(step *v1beta1.RolloutGroupStep) { step.Analysis.FailureLimit = 100 })
	s.in.ReadyTimeout = 0
	for i, a := range []Answer{none, values(nan), {Error: "x"}, bad, {Type: Matrix}, none} {
		if out := s.sample(float64(30*i), a); out.Verdict != Hold {
			t.Errorf("sample %d: %s: %s", i, out.Verdict, out.Why)
		}
	}
	if out := s.sample(600, good); out.Verdict != Pass {
		t.Errorf("%s: %s", out.Verdict, out.Why)
	}
}
