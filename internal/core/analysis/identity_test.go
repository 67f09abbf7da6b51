package analysis

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// A sample that was asked for under other circumstances fits no more.
func TestALateSampleIsNotCounted(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*stage)
	}{
		{"another run", func(s *stage) { s.in.Run = "chat-ba9876543210" }},
		{"another group", func(s *stage) { s.in.Group = 1 }},
		{"another step", func(s *stage) {
			s.in.Canary.Steps = append(s.in.Canary.Steps, s.in.Canary.Steps[1])
			s.in.Step = 2
		}},
		{"another service of the name", func(s *stage) { s.in.Service.Namespace = "test" }},
		{"the step fell back and began again", func(s *stage) {
			at := metav1.NewTime(entered.Add(5 * time.Second))
			s.record.StepEnteredTime = &at
		}},
		{"a repin changed the threshold", func(s *stage) { s.analysis().Metrics[0].Threshold = "0.02" }},
		{"a repin changed the source", func(s *stage) { s.in.Canary.Prometheus = &v1beta1.AnalysisPrometheus{ServerAddress: "http://other"} }},
		{"another canary revision", func(s *stage) { s.in.Variables.CanaryRevision = "99999999" }},
		{"a sample was judged since", func(s *stage) {
			at := metav1.NewTime(entered.Add(time.Second))
			s.record.LastEvaluationTime = &at
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t)
			old := *s.at(0).Due
			tc.change(s)
			out := s.at(60, Sample{ID: old.ID, At: entered.Add(60 * time.Second), Done: entered.Add(60 * time.Second),
				Answers: []Answer{{Metric: "errors", Type: Vector, Series: bad.Series}}})
			if out.Judged != "" {
				t.Errorf("judged %s: %s", out.Judged, out.Why)
			}
			if out.Due == nil || out.Due.ID == old.ID {
				t.Errorf("the next one to ask for is %+v", out.Due)
			}
		})
	}
}

// One sample is one check, however often it is handed in.
func TestASampleCountsOnce(t *testing.T) {
	s := newStage(t)
	due := *s.at(0).Due
	sample := Sample{ID: due.ID, At: entered, Done: entered.Add(300 * time.Millisecond), Answers: []Answer{{Metric: "errors", Type: Vector, Series: bad.Series}}}

	// The status write failed: the same judgement again.
	first, again := s.at(1, sample), s.at(2, sample)
	if first.Judged != Failed || again.Judged != Failed || first.failedChecks != 1 || again.failedChecks != 1 {
		t.Errorf("%s %d, then %s %d", first.Judged, first.failedChecks, again.Judged, again.failedChecks)
	}
	again.Store(&s.record)
	// The pool still has it.
	if out := s.at(3, sample); out.Judged != "" || s.record.AnalysisFailedChecks != 1 {
		t.Errorf("judged twice: %s, %d failures", out.Judged, s.record.AnalysisFailedChecks)
	}
	if out := s.at(31, sample); out.Due == nil || out.Due.ID == due.ID {
		t.Errorf("the next sample has no name of its own: %+v", out.Due)
	}
}

// The write that began the step failed, and the next pass begins it anew in the same second: the
// sample that was asked for in between is still the one.
func TestAStepThatBeginsTwiceInASecond(t *testing.T) {
	s := newStage(t)
	begin := func(ms int) Output {
		at := metav1.NewTime(entered.Add(time.Duration(ms) * time.Millisecond))
		s.record.StepEnteredTime = &at
		return s.at(float64(ms) / 1000)
	}
	first, second := begin(200), begin(700)
	if diff := cmp.Diff(first.Due, second.Due); diff != "" {
		t.Errorf("another sample:\n%s", diff)
	}
	taken := Sample{ID: first.Due.ID, At: entered.Add(250 * time.Millisecond), Done: entered.Add(300 * time.Millisecond), Answers: []Answer{{Metric: "errors", Type: Vector, Series: good.Series}}}
	if out := s.at(0.7, taken); out.Judged != Passed {
		t.Errorf("the sample is lost until it expires: %s", out.Why)
	}
}

// A new manager goes on from the status alone: the same sample is asked for.
func TestRestart(t *testing.T) {
	s := newStage(t)
	s.sample(0, bad)
	want := s.at(30).Due
	stored := s.record.DeepCopy() // as read back from the API server, in whole seconds
	again := newStage(t)
	again.record = *stored
	if diff := cmp.Diff(want, again.at(30).Due); diff != "" {
		t.Errorf("another sample after a restart:\n%s", diff)
	}
	if out := again.sample(30, bad); out.Verdict != Hold || again.record.AnalysisFailedChecks != 2 {
		t.Errorf("%s with %d failures", out.Verdict, again.record.AnalysisFailedChecks)
	}
}

// The fall back to Pending starts warm-up and bake over, and keeps the failures of the step.
func TestAStepThatBeginsAgain(t *testing.T) {
	s := newStage(t, func(step *v1beta1.RolloutGroupStep) {
		step.Pause = &v1beta1.RolloutPause{Duration: seconds(60)}
		step.Analysis.InitialDelay = seconds(10)
	})
	s.sample(10, bad)
	s.sample(40, values(0.001, 0.002))
	Restart(&s.record)
	at := metav1.NewTime(entered.Add(100 * time.Second))
	s.record.StepEnteredTime = &at
	if out := s.at(109); out.Due != nil {
		t.Error("no second warm-up")
	}
	// The pod with the second series is gone for good, and that was in another stay.
	if out := s.sample(110, good); out.Judged != Passed || out.Verdict != Hold || s.record.AnalysisFailedChecks != 1 {
		t.Errorf("%s, %s with %d failures: %s", out.Judged, out.Verdict, s.record.AnalysisFailedChecks, out.Why)
	}
	if out := s.sample(160, good); out.Verdict != Pass {
		t.Errorf("after the second bake: %s: %s", out.Verdict, out.Why)
	}
}

// A fall back that nobody told of has the same effect, by the times alone.
func TestMemoryOfAnEarlierStay(t *testing.T) {
	s := newStage(t)
	s.sample(0, values(0.001, 0.002))
	at := metav1.NewTime(entered.Add(100 * time.Second))
	s.record.StepEnteredTime = &at
	if out := s.sample(100, good); out.Judged != Passed {
		t.Errorf("%s: %s", out.Judged, out.Why)
	}
}

// A series that was there earlier in the step and is gone takes the pass away, for as long as it
// is gone.
func TestSeriesThatGoAway(t *testing.T) {
	two, one := values(0.001, 0.002), values(0.001)
	other := Answer{Type: Vector, Series: []Series{{Labels: "z", Value: 0.001}}}
	for _, tc := range []struct {
		name    string
		samples []Answer
		want    []Judgement
		message string
	}{
		{"all stay", []Answer{two, two}, []Judgement{Passed, Passed}, ""},
		{"one more", []Answer{one, two, two}, []Judgement{Passed, Passed, Passed}, ""},
		{"one goes", []Answer{two, one, one}, []Judgement{Passed, Inconclusive, Inconclusive}, "1 of the series that were there earlier in this step are gone"},
		{"it comes back", []Answer{two, one, two}, []Judgement{Passed, Inconclusive, Passed}, ""},
		{"one in the other's place", []Answer{one, other}, []Judgement{Passed, Inconclusive}, "1 of the series that were there earlier in this step are gone"},
		{"all go", []Answer{two, none}, []Judgement{Passed, Inconclusive}, "no data: 2 series that were there earlier in this step are gone"},
		{"one goes and the other fails", []Answer{two, bad}, []Judgement{Passed, Failed}, ""},
		{"an error in between", []Answer{two, {Error: "x"}, one}, []Judgement{Passed, Inconclusive, Inconclusive}, "1 of the series that were there earlier in this step are gone"},
		{"seen in a failing sample", []Answer{values(0.001, 0.9), one}, []Judgement{Failed, Inconclusive}, "1 of the series that were there earlier in this step are gone"},
		{"seen as NaN", []Answer{values(0.001, nan), one}, []Judgement{Inconclusive, Inconclusive}, "1 of the series that were there earlier in this step are gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t, func(step *v1beta1.RolloutGroupStep) { step.Pause = &v1beta1.RolloutPause{Duration: seconds(36000)} })
			for i, a := range tc.samples {
				if out := s.sample(float64(30*i), a); out.Judged != tc.want[i] {
					t.Errorf("sample %d: %s, want %s: %s", i, out.Judged, tc.want[i], out.Why)
				}
			}
			if got := s.record.MetricResults[0].Message; got != tc.message {
				t.Errorf("message %q, want %q", got, tc.message)
			}
		})
	}
}

// The memory outlives a sample that could not be taken at all, and not another query.
func TestMemory(t *testing.T) {
	s := newStage(t, func(step *v1beta1.RolloutGroupStep) { step.Pause = &v1beta1.RolloutPause{Duration: seconds(36000)} })
	s.sample(0, values(0.001, 0.002))
	due := *s.at(30).Due
	out := s.at(30, Sample{ID: due.ID, At: s.in.Now, Done: s.in.Now, Problem: &Problem{ProblemAuth, "resolve bearer token: no Secret"}})
	out.Store(&s.record)
	if out := s.sample(60, good); out.Judged != Inconclusive {
		t.Errorf("forgot a series over a missing token: %s: %s", out.Judged, out.Why)
	}
	s.analysis().Metrics[0].Query = "another"
	if out := s.sample(90, good); out.Judged != Passed {
		t.Errorf("remembers the series of another query: %s", out.Why)
	}
	if n := len(s.record.AnalysisSeries); n != 1 {
		t.Errorf("%d memories of one metric", n)
	}
	Reset(&s.record)
	if diff := cmp.Diff(v1beta1.CanaryStatus{StepEnteredTime: s.record.StepEnteredTime}, s.record); diff != "" {
		t.Errorf("after a reset:\n%s", diff)
	}
}

// The two problems that make a whole sample inconclusive have one entry each.
func TestProblems(t *testing.T) {
	for _, p := range []Problem{{ProblemAuth, "resolve bearer token: secret prod/prom: not found"}, {ProblemPrometheus, `metric provider "main" is not bound`}} {
		s := newStage(t)
		due := *s.at(0).Due
		out := s.at(1, Sample{ID: due.ID, At: entered, Done: entered, Problem: &p})
		out.Store(&s.record)
		want := []v1beta1.MetricResult{{Name: p.Name, Message: p.Message}}
		if diff := cmp.Diff(want, s.results()); diff != "" || out.Judged != Inconclusive {
			t.Errorf("%s: %s\n%s", p.Name, out.Judged, diff)
		}
	}
}

func TestNoStepToJudge(t *testing.T) {
	for name, change := range map[string]func(*stage){
		"step not begun":    func(s *stage) { s.record.StepEnteredTime = nil },
		"step past the end": func(s *stage) { s.in.Step = 9 },
		"negative step":     func(s *stage) { s.in.Step = -1 },
		"no analysis":       func(s *stage) { s.in.Canary.Steps[1].Analysis = nil },
	} {
		s := newStage(t)
		change(s)
		if out := Judge(s.in); out.Verdict != Hold || out.Due != nil || out.Judged != "" {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// Without a reader of queries nothing is judged, for it might look at the time before the step.
func TestNoReach(t *testing.T) {
	s := newStage(t)
	s.in.Reach = nil
	if out := s.at(0); out.Judged != Inconclusive || out.Verdict != Hold || out.Due != nil {
		t.Errorf("%s, %s: %s", out.Judged, out.Verdict, out.Why)
	}
}

// An analysis without metrics, which the schema refuses, would pass for want of anything to fail.
func TestNoMetrics(t *testing.T) {
	s := newStage(t, func(step *v1beta1.RolloutGroupStep) { step.Analysis.Metrics = nil })
	if out := s.at(0); out.Judged != Inconclusive || out.Verdict != Hold {
		t.Errorf("%s, %s: %s", out.Judged, out.Verdict, out.Why)
	}
}

// No one-sided memory: what grow keeps is exactly the series it was shown, in an order of its own.
func TestGrow(t *testing.T) {
	memory, gone := grow("", many(MaxSeries))
	if gone != 0 || len(memory) != MaxSeries*width {
		t.Fatalf("%d gone, %d bytes", gone, len(memory))
	}
	if again, gone := grow(memory, many(MaxSeries)); again != memory || gone != 0 {
		t.Errorf("changed by what it knows: %d gone", gone)
	}
	if again, gone := grow(memory, many(MaxSeries+1)); again != memory || gone != 0 {
		t.Errorf("grew beyond its bound or lost: %d bytes, %d gone", len(again), gone)
	}
	if _, gone := grow(memory, nil); gone != MaxSeries {
		t.Errorf("%d gone", gone)
	}
}
