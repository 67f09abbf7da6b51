package analysis

import (
	"fmt"
	"math"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// leastInterval is the shortest time between samples: times in a status have whole seconds.
const leastInterval = time.Second

// Judge decides the analysis gate of a step; see the package comment for when to call it.
func Judge(in Input) Output {
	out := Output{Verdict: Hold, failedChecks: in.Record.AnalysisFailedChecks}
	if in.Step < 0 || int(in.Step) >= len(in.Canary.Steps) || in.Canary.Steps[in.Step].Analysis == nil || in.Record.StepEnteredTime == nil {
		// Not the caller's idea of this gate; hold rather than open or crash.
		out.Why = "analysis: no step with an analysis has begun"
		return out
	}
	step := &in.Canary.Steps[in.Step]
	a := step.Analysis
	// As it is stored, also in the pass that sets it: or a sample that was asked for before the write
	// would be too early for the time after it.
	entered := in.Record.StepEnteredTime.Truncate(time.Second)
	metrics := fillIn(in, a)
	first := entered.Add(warmUp(a, metrics))
	interval := max(a.Interval.Duration, leastInterval)
	due := first
	if last := in.Record.LastEvaluationTime; last != nil {
		if next := last.Add(interval); next.After(due) {
			due = next
		}
		if !last.Time.Before(entered) {
			out.series = in.Record.AnalysisSeries // else they are of an earlier stay
		}
	}
	request := Request{ID: identify(in, entered), Source: in.Canary.Prometheus.DeepCopy()}
	for i := range metrics {
		if metrics[i].problem == "" {
			request.Queries = append(request.Queries, Query{Metric: metrics[i].Name, Text: metrics[i].query})
		}
	}

	sample := find(in.Samples, request.ID, due)
	if sample == nil && len(request.Queries) == 0 && !in.Now.Before(due) {
		// There is nothing to ask, so the answer is known.
		sample = &Sample{ID: request.ID, At: in.Now, Done: in.Now}
	}
	if sample == nil {
		out.waitForSample(in, a, request, due, interval)
		return out
	}
	out.judge(metrics, *sample)
	out.decide(in, step, *sample, entered, first, interval)
	return out
}

// metric is one metric with its query filled in, or why that can't be.
type metric struct {
	*v1beta1.AnalysisMetric
	query   string
	reach   time.Duration
	problem string
}

func fillIn(in Input, a *v1beta1.RolloutAnalysis) []metric {
	out := make([]metric, len(a.Metrics))
	for i := range a.Metrics {
		m := metric{AnalysisMetric: &a.Metrics[i]}
		var err error
		if m.query, err = Render(m.Query, in.Variables); err != nil {
			m.problem = "template error: " + err.Error()
		} else if in.Reach == nil {
			m.problem = "query: how far it looks back can't be told here"
		} else if m.reach, err = in.Reach(m.query); err != nil {
			m.problem = "query: " + err.Error()
		}
		out[i] = m
	}
	return out
}

// warmUp is how long after the step's beginning the first sample is due: later than what its
// queries look back at, so that no value of before gets into it.
func warmUp(a *v1beta1.RolloutAnalysis, metrics []metric) time.Duration {
	var longest time.Duration
	if a.InitialDelay != nil {
		longest = max(a.InitialDelay.Duration, 0)
	}
	for _, m := range metrics {
		longest = max(longest, m.reach)
	}
	return longest
}

// find returns the sample that was asked for. One that was taken before it was due isn't it,
// whatever its ID says: clocks of a past leader may have run ahead.
func find(samples []Sample, id ID, due time.Time) *Sample {
	for i := range samples {
		if samples[i].ID == id && !samples[i].At.Before(due) {
			return &samples[i]
		}
	}
	return nil
}

func (o *Output) waitForSample(in Input, a *v1beta1.RolloutAnalysis, request Request, due time.Time, interval time.Duration) {
	if in.Now.Before(due) {
		o.Wake = due
		o.Why = "analysis: " + o.failures(a) + "next sample at " + clock(due)
		return
	}
	o.Due = &request
	o.Wake = in.Now.Add(interval) // the answer wakes us; this is for the case that it is lost
	o.Why = "analysis: " + o.failures(a) + "waiting for a sample that was due at " + clock(due)
}

// failures are worth a word in every line once there are some.
func (o *Output) failures(a *v1beta1.RolloutAnalysis) string {
	if o.failedChecks == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d failures before rollback; ", o.failedChecks, a.FailureLimit)
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// judge turns a sample into results and one judgement: a failure outweighs doubt, and doubt a pass.
func (o *Output) judge(metrics []metric, s Sample) {
	at := metav1.NewTime(s.At.Truncate(time.Second))
	o.evaluated = roundUp(s.Done)
	if s.Problem != nil {
		o.Judged = Inconclusive
		o.results = []v1beta1.MetricResult{{Name: s.Problem.Name, Message: clip(s.Problem.Message), Time: &at}}
		o.Why = "analysis: inconclusive: " + s.Problem.Name + ": " + clip(s.Problem.Message)
		return
	}
	if len(metrics) == 0 {
		const none = "the step's analysis has no metrics"
		o.Judged = Inconclusive
		o.results = []v1beta1.MetricResult{{Name: "analysis", Message: none, Time: &at}}
		o.Why = "analysis: inconclusive: " + none
		return
	}
	o.Judged = Passed
	for _, m := range metrics {
		result, seen, j := m.judge(answerTo(s, m.Name), o.seen(m))
		result.Time = &at
		o.results = append(o.results, result)
		o.remember(m, seen)
		switch {
		case j == Failed && o.Judged != Failed:
			o.Judged = Failed
			o.Why = fmt.Sprintf("analysis: %s is %s, which is not %s %s, at %s", m.Name, result.Value, sign(m.Operator), m.Threshold, clock(s.At))
		case j == Inconclusive && o.Judged == Passed:
			o.Judged = Inconclusive
			o.Why = fmt.Sprintf("analysis: inconclusive: %s: %s", m.Name, result.Message)
		}
	}
}

func answerTo(s Sample, name string) *Answer {
	for i := range s.Answers {
		if s.Answers[i].Metric == name {
			return &s.Answers[i]
		}
	}
	return nil
}

// decide draws the consequence of the judgement.
func (o *Output) decide(in Input, step *v1beta1.RolloutGroupStep, s Sample, entered, first time.Time, interval time.Duration) {
	a := step.Analysis
	o.conclusive = o.Judged != Inconclusive
	o.Wake = o.evaluated.Add(interval)
	switch o.Judged {
	case Failed:
		o.failedChecks++
		limit := max(a.FailureLimit, 1)
		o.Why += fmt.Sprintf(" (%d of %d failures before rollback)", o.failedChecks, limit)
		if o.failedChecks >= limit {
			o.end(Rollback)
		}
	case Passed:
		opens := entered.Add(bake(step, in.Delay))
		if s.At.Before(opens) {
			o.Why = "analysis: " + o.failures(a) + "passing; bakes until " + clock(opens)
			return
		}
		o.Why = "analysis: every metric passed at " + clock(s.At)
		o.end(Pass)
	default:
		o.unclear(in, a, s, first)
	}
}

// bake is how long after the beginning of the step a passing sample can't open the gate.
func bake(step *v1beta1.RolloutGroupStep, delay time.Duration) time.Duration {
	if step.Pause != nil && step.Pause.Duration != nil {
		delay = max(delay, step.Pause.Duration.Duration)
	}
	return max(delay, 0)
}

// unclear applies the policy for inconclusive samples. Only a sample taken after the ready timeout
// can say that the canary has stalled; the time before the first sample was due doesn't count.
func (o *Output) unclear(in Input, a *v1beta1.RolloutAnalysis, s Sample, first time.Time) {
	if a.OnInconclusive == v1beta1.InconclusiveRollback {
		o.end(Rollback)
		return
	}
	since := first
	if t := in.Record.LastConclusiveEvaluationTime; t != nil && t.After(since) {
		since = t.Time
	}
	if in.ReadyTimeout <= 0 || s.At.Sub(since) <= in.ReadyTimeout {
		return
	}
	o.Why += fmt.Sprintf("; no sample could be judged since %s, longer than the ready timeout of %s", clock(since), in.ReadyTimeout)
	if a.OnInconclusive == v1beta1.InconclusiveRollbackOnStall {
		o.end(Rollback)
	} else {
		o.end(Stalled)
	}
}

func (o *Output) end(v Verdict) { o.Verdict, o.Wake = v, time.Time{} }

// Store writes what the sample changed into the record. Without a sample that is nothing.
func (o *Output) Store(record *v1beta1.CanaryStatus) {
	if o.Judged == "" {
		return
	}
	at := metav1.NewTime(o.evaluated)
	record.AnalysisFailedChecks = o.failedChecks
	record.LastEvaluationTime = &at
	record.MetricResults, record.AnalysisSeries = o.results, o.series
	if o.conclusive {
		conclusive := at
		record.LastConclusiveEvaluationTime = &conclusive
	}
}

// Restart is for a step that falls back to Pending: its stay ends, and with it warm-up, bake and the
// memory of series. Failures count for the whole step and stay.
func Restart(record *v1beta1.CanaryStatus) {
	record.StepEnteredTime, record.AnalysisSeries = nil, nil
}

// Reset forgets what was judged, when a step is left for the next or the canary starts over.
func Reset(record *v1beta1.CanaryStatus) {
	record.AnalysisFailedChecks = 0
	record.LastEvaluationTime, record.LastConclusiveEvaluationTime = nil, nil
	record.MetricResults, record.AnalysisSeries = nil, nil
}

// roundUp makes a stored time whole without making the next interval shorter.
func roundUp(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); !whole.Equal(t) {
		return whole.Add(time.Second)
	}
	return t
}

// number writes a value as people and strconv read it.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func usable(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
