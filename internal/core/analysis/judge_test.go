package analysis

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
)

var entered = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// stage is one step under analysis with a clock that a test moves.
type stage struct {
	t      *testing.T
	in     Input
	record v1beta1.CanaryStatus
	// reach by query.
	reach map[string]time.Duration
}

func metricOf(name, query string, op v1beta1.MetricOperator, threshold string) v1beta1.AnalysisMetric {
	return v1beta1.AnalysisMetric{Name: name, Query: query, Operator: op, Threshold: threshold}
}

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

// newStage has one metric "errors" that must be below 0.01, sampled every 30 s, with three failures
// and a ready timeout of 15 minutes.
func newStage(t *testing.T, change ...func(*v1beta1.RolloutGroupStep)) *stage {
	step := v1beta1.RolloutGroupStep{Traffic: 50, Analysis: &v1beta1.RolloutAnalysis{
		Interval: metav1.Duration{Duration: 30 * time.Second}, FailureLimit: 3,
		Metrics: []v1beta1.AnalysisMetric{metricOf("errors", `errors{revision_hash="{{.CanaryRevision}}"}`, v1beta1.MetricLT, "0.01")},
	}}
	for _, c := range change {
		c(&step)
	}
	s := &stage{t: t, reach: map[string]time.Duration{}}
	at := metav1.NewTime(entered)
	s.record.StepEnteredTime = &at
	s.in = Input{
		Now: entered, Service: types.NamespacedName{Namespace: "prod", Name: "chat"}, Run: "chat-0123456789ab", Step: 1, Variables: vars,
		Canary:       &v1beta1.GroupCanary{Steps: []v1beta1.RolloutGroupStep{{}, step}},
		Record:       &s.record,
		ReadyTimeout: 15 * time.Minute,
		Reach: func(query string) (time.Duration, error) {
			if strings.Contains(query, "((") {
				return 0, errors.New("1:2: parse error: unclosed left parenthesis")
			}
			return s.reach[query], nil
		},
	}
	return s
}

func (s *stage) analysis() *v1beta1.RolloutAnalysis { return s.in.Canary.Steps[1].Analysis }

// at judges at so many seconds into the step.
func (s *stage) at(sec float64, samples ...Sample) Output {
	s.in.Now = entered.Add(time.Duration(sec * float64(time.Second)))
	s.in.Samples = samples
	before := s.record.DeepCopy()
	out := Judge(s.in)
	if diff := cmp.Diff(before, &s.record); diff != "" {
		s.t.Errorf("Judge wrote to its input:\n%s", diff)
	}
	if out.Why == "" {
		s.t.Errorf("at %v s: no reason given", sec)
	}
	if out.Verdict == Hold && out.Wake.IsZero() {
		s.t.Errorf("at %v s: holds and never looks again: %s", sec, out.Why)
	}
	return out
}

// sample asks at that time, answers at once, judges and stores.
func (s *stage) sample(sec float64, answers ...Answer) Output {
	s.t.Helper()
	out := s.at(sec)
	if out.Due == nil {
		s.t.Fatalf("at %v s no sample is due: %s", sec, out.Why)
	}
	return s.answer(*out.Due, sec, answers...)
}

func (s *stage) answer(r Request, sec float64, answers ...Answer) Output {
	s.t.Helper()
	at := entered.Add(time.Duration(sec * float64(time.Second)))
	for i := range answers {
		if answers[i].Metric == "" && i < len(r.Queries) {
			answers[i].Metric = r.Queries[i].Metric
		}
	}
	out := s.at(sec, Sample{ID: r.ID, At: at, Done: at, Answers: answers})
	if out.Judged == "" {
		s.t.Fatalf("at %v s the sample was not judged: %s", sec, out.Why)
	}
	out.Store(&s.record)
	return out
}

func values(v ...float64) Answer {
	a := Answer{Type: Vector}
	for i, x := range v {
		a.Series = append(a.Series, Series{Labels: string(rune('a' + i)), Value: x})
	}
	return a
}

func scalar(v float64) Answer { return Answer{Type: Scalar, Series: []Series{{Value: v}}} }

var (
	good = values(0.001)
	bad  = values(0.5)
	none = values()
	nan  = math.NaN()
	inf  = math.Inf(1)
)

func (s *stage) results() []v1beta1.MetricResult {
	out := s.record.DeepCopy().MetricResults
	for i := range out {
		out[i].Time = nil
	}
	return out
}

// Each row of what an answer can be, and what becomes of it.
func TestOneAnswer(t *testing.T) {
	for _, tc := range []struct {
		name    string
		op      v1beta1.MetricOperator
		answer  Answer
		want    Judgement
		value   string
		message string
	}{
		{name: "scalar", answer: scalar(0), want: Passed, value: "0"},
		{name: "scalar that breaks the threshold", answer: scalar(1), want: Failed, value: "1"},
		{name: "scalar NaN", answer: scalar(nan), want: Inconclusive, message: "no data: 1 series, all NaN or infinite"},
		{name: "vector of one", answer: good, want: Passed, value: "0.001"},
		{name: "LT takes the maximum", answer: values(0.001, 0.002), want: Passed, value: "0.002"},
		{name: "LT and one series breaks it", answer: values(0.001, 0.3, 0.002), want: Failed, value: "0.3", message: "worst of 3 series"},
		{name: "LT at the threshold fails", answer: values(0.01), want: Failed, value: "0.01"},
		{name: "LTE takes the maximum", op: v1beta1.MetricLTE, answer: values(0.01, 0.001), want: Passed, value: "0.01"},
		{name: "GT takes the minimum", op: v1beta1.MetricGT, answer: values(7, 0.02), want: Passed, value: "0.02"},
		{name: "GT at the threshold fails", op: v1beta1.MetricGT, answer: values(7, 0.01), want: Failed, value: "0.01", message: "worst of 2 series"},
		{name: "GTE takes the minimum", op: v1beta1.MetricGTE, answer: values(7, 0.01), want: Passed, value: "0.01"},
		{name: "GTE below the threshold fails", op: v1beta1.MetricGTE, answer: values(-1), want: Failed, value: "-1"},
		{name: "range vector", answer: Answer{Type: Matrix}, want: Inconclusive, message: "the query answers with a matrix; a number, or one for each series, is needed"},
		{name: "string", answer: Answer{Type: String}, want: Inconclusive, message: "the query answers with a string; a number, or one for each series, is needed"},
		{name: "a type that is none", answer: Answer{Type: "x"}, want: Inconclusive, message: "the query answers with a x; a number, or one for each series, is needed"},
		{name: "no series", answer: none, want: Inconclusive, message: "no data"},
		{name: "only NaN", answer: values(nan, nan), want: Inconclusive, message: "no data: 2 series, all NaN or infinite"},
		{name: "+Inf", answer: values(inf), want: Inconclusive, message: "no data: 1 series, all NaN or infinite"},
		{name: "-Inf is no pass of LT", answer: values(math.Inf(-1)), want: Inconclusive, message: "no data: 1 series, all NaN or infinite"},
		{name: "NaN beside a pass takes the pass away", answer: values(0.001, nan), want: Inconclusive, message: "1 of 2 series are NaN or infinite"},
		{name: "+Inf beside a pass takes the pass away", answer: values(0.001, inf, inf), want: Inconclusive, message: "2 of 3 series are NaN or infinite"},
		{name: "NaN beside a failure leaves it", answer: values(0.5, nan), want: Failed, value: "0.5", message: "worst of 2 series"},
		{name: "warning takes the pass away", answer: Answer{Type: Vector, Series: good.Series, Warnings: []string{"one store is down"}}, want: Inconclusive, message: "the server warns: one store is down"},
		{name: "warning beside a failure leaves it", answer: Answer{Type: Vector, Series: bad.Series, Warnings: []string{"one store is down"}}, want: Failed, value: "0.5"},
		{name: "a remark on style is no warning", answer: Answer{Type: Vector, Series: good.Series, Warnings: []string{"PromQL info: metric might not be a counter"}}, want: Passed, value: "0.001"},
		{name: "a remark and a warning", answer: Answer{Type: Vector, Series: good.Series, Warnings: []string{"PromQL info: x", "partial"}}, want: Inconclusive, message: "the server warns: partial"},
		{name: "error", answer: Answer{Error: "HTTP 503: no"}, want: Inconclusive, message: "HTTP 503: no"},
		{name: "error of many lines", answer: Answer{Error: "a\nb\x1b[31m" + strings.Repeat("ä", 300)}, want: Inconclusive, message: "a b [31m" + strings.Repeat("ä", 122) + "..."},
		{name: "answer to another metric", answer: Answer{Metric: "other", Type: Vector, Series: good.Series}, want: Inconclusive, message: "no answer"},
		{name: "more series than are followed", answer: Answer{Type: Vector, Series: many(MaxSeries + 1)}, want: Inconclusive, message: "257 series are more than the 256 that are followed; put max, min or sum around the query"},
		{name: "as many series as are followed", answer: Answer{Type: Vector, Series: many(MaxSeries)}, want: Passed, value: "0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t, func(step *v1beta1.RolloutGroupStep) {
				if tc.op != "" {
					step.Analysis.Metrics[0].Operator = tc.op
				}
			})
			out := s.sample(0, tc.answer)
			if out.Judged != tc.want {
				t.Errorf("judged %s, want %s: %s", out.Judged, tc.want, out.Why)
			}
			op := s.analysis().Metrics[0].Operator
			want := []v1beta1.MetricResult{{
				Name: "errors", Query: `errors{revision_hash="8be0917f"}`, Value: tc.value, Operator: string(op), Threshold: "0.01",
				Passed: tc.want == Passed, Message: tc.message,
			}}
			if diff := cmp.Diff(want, s.results()); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			verdict := Hold
			if tc.want == Passed {
				verdict = Pass
			}
			if out.Verdict != verdict {
				t.Errorf("verdict %s, want %s", out.Verdict, verdict)
			}
		})
	}
}

func many(n int) []Series {
	out := make([]Series, n)
	for i := range out {
		out[i].Labels = strings.Repeat("x", i)
	}
	return out
}

// What is wrong with the metric itself.
func TestOneMetric(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(*v1beta1.AnalysisMetric)
		message string
	}{
		{"malformed template", func(m *v1beta1.AnalysisMetric) { m.Query = "{{.Namespace" }, "template error: query:1: unclosed action"},
		{"unknown field", func(m *v1beta1.AnalysisMetric) { m.Query = "{{.Revision}}" }, "template error: .Revision is not a variable of queries; use .Namespace, .ISVCName, .Component, .CanaryRevision, .StableRevision, .CanaryService, .StableService"},
		{"no PromQL", func(m *v1beta1.AnalysisMetric) { m.Query = "((" }, "query: 1:2: parse error: unclosed left parenthesis"},
		{"no number", func(m *v1beta1.AnalysisMetric) { m.Threshold = "1%" }, `threshold "1%" is not a number`},
		{"NaN", func(m *v1beta1.AnalysisMetric) { m.Threshold = "NaN" }, `threshold "NaN" is not a number`},
		{"Inf", func(m *v1beta1.AnalysisMetric) { m.Threshold = "+Inf" }, `threshold "+Inf" is not a number`},
		{"unknown operator", func(m *v1beta1.AnalysisMetric) { m.Operator = "EQ" }, `operator "EQ" is none of LT, LTE, GT, GTE`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t, func(step *v1beta1.RolloutGroupStep) {
				tc.change(&step.Analysis.Metrics[0])
				step.Analysis.InitialDelay = seconds(60)
			})
			if early := s.at(59); early.Judged != "" || early.Due != nil {
				t.Errorf("judged or asked before the initial delay: %+v", early)
			}
			out := s.at(60)
			if out.Due != nil { // the query itself is fine
				out = s.answer(*out.Due, 60, good)
			} else {
				out.Store(&s.record)
			}
			if out.Judged != Inconclusive || out.Verdict != Hold {
				t.Errorf("%s, %s: %s", out.Judged, out.Verdict, out.Why)
			}
			if got := s.results(); len(got) != 1 || got[0].Message != tc.message || got[0].Value != "" || got[0].Passed {
				t.Errorf("results: %+v", got)
			}
			if again := s.at(89); again.Judged != "" {
				t.Error("what needs no query was judged twice in one interval")
			}
		})
	}
}

// Fail outweighs Inconclusive, and that Pass.
func TestPrecedence(t *testing.T) {
	for _, tc := range []struct {
		name    string
		answers []Answer
		want    Judgement
	}{
		{"all pass", []Answer{good, good, good}, Passed},
		{"one fails", []Answer{good, bad, good}, Failed},
		{"one can't be read", []Answer{good, good, none}, Inconclusive},
		{"one fails and the others can't be read", []Answer{none, bad, {Error: "timeout"}}, Failed},
		{"one can't be read, then one fails", []Answer{none, good, bad}, Failed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t, func(step *v1beta1.RolloutGroupStep) {
				step.Analysis.Metrics = append(step.Analysis.Metrics, metricOf("b", "b", v1beta1.MetricLT, "0.01"), metricOf("c", "c", v1beta1.MetricLT, "0.01"))
			})
			out := s.sample(0, tc.answers...)
			if out.Judged != tc.want {
				t.Errorf("judged %s, want %s: %s", out.Judged, tc.want, out.Why)
			}
			if len(s.record.MetricResults) != 3 {
				t.Errorf("results: %+v", s.record.MetricResults)
			}
		})
	}
}

// A metric that can't be filled in doesn't keep the others from failing.
func TestBrokenMetricBesideAFailure(t *testing.T) {
	s := newStage(t, func(step *v1beta1.RolloutGroupStep) {
		step.Analysis.Metrics = append([]v1beta1.AnalysisMetric{metricOf("broken", "{{.X}}", v1beta1.MetricLT, "1")}, step.Analysis.Metrics...)
	})
	due := s.at(0).Due
	if len(due.Queries) != 1 || due.Queries[0].Metric != "errors" {
		t.Fatalf("asked for %+v", due.Queries)
	}
	if out := s.answer(*due, 0, bad); out.Judged != Failed {
		t.Errorf("judged %s: %s", out.Judged, out.Why)
	}
}
