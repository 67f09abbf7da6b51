package analysis

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
)

// asked is a request on its way, and what its answer will be.
type asked struct {
	request Request
	answer  Answer
	at      time.Time
}

// TestAnalysisKeepsItsPromises drives one step through random answers, late and lost ones, failed
// status writes, restarts, pauses and falls back to Pending, and checks after each pass what must hold.
func TestAnalysisKeepsItsPromises(t *testing.T) {
	answers := map[string]Answer{"good": good, "two": values(0.001, 0.002), "bad": bad, "none": none, "NaN": values(nan, 0.001), "error": {Error: "x"}, "matrix": {Type: Matrix}}
	names := []string{"good", "two", "bad", "none", "NaN", "error", "matrix"}
	rapid.Check(t, func(r *rapid.T) {
		second := func(label string, least, most int) time.Duration {
			return time.Duration(rapid.IntRange(least, most).Draw(r, label)) * time.Second
		}
		interval, delay, reach, bakes := second("interval", 0, 60), second("delay", 0, 120), second("reach", 0, 120), second("bake", 0, 240)
		limit := int32(rapid.IntRange(1, 4).Draw(r, "limit"))
		s := newStage(t, func(step *v1beta1.RolloutGroupStep) {
			step.Analysis.Interval.Duration, step.Analysis.FailureLimit = interval, limit
			step.Analysis.InitialDelay = &metav1.Duration{Duration: delay}
			step.Analysis.OnInconclusive = rapid.SampledFrom([]v1beta1.InconclusivePolicy{"", "Hold", "Rollback", "RollbackOnStall"}).Draw(r, "policy")
			step.Pause = &v1beta1.RolloutPause{Duration: &metav1.Duration{Duration: bakes}}
		})
		s.in.ReadyTimeout = second("ready timeout", 0, 300)
		s.reach[`errors{revision_hash="8be0917f"}`] = reach

		var way, there []asked // on the way and finished, both of which may be lost
		now := entered
		var lastJudged time.Time // evaluation time of the last sample that was stored
		failures := int32(0)
		for range rapid.IntRange(1, 60).Draw(r, "passes") {
			now = now.Add(second("later", 0, 45)).Add(time.Duration(rapid.IntRange(0, 999).Draw(r, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 9).Draw(r, "event") {
			case 0: // the manager restarts: all it had is lost
				way, there = nil, nil
			case 1: // capacity is lost and comes back
				Restart(&s.record)
				at := metav1.NewTime(now.Truncate(time.Second))
				s.record.StepEnteredTime = &at
			case 2: // a pause
				now = now.Add(second("pause", 0, 1000))
			}
			if n := len(way); n > 0 && rapid.Bool().Draw(r, "answered") {
				there = append(there, way[n-1])
				way = way[:n-1]
			}
			s.in.Samples = nil
			for _, a := range there {
				s.in.Samples = append(s.in.Samples, Sample{ID: a.request.ID, At: a.at, Done: a.at.Add(500 * time.Millisecond), Answers: []Answer{a.answer}})
			}
			s.in.Now = now
			out := Judge(s.in)
			stay := s.record.StepEnteredTime.Time

			if out.Due != nil {
				first := stay.Add(max(delay, reach))
				if now.Before(first) {
					r.Fatalf("asked at %s, before %s", now, first)
				}
				if !lastJudged.IsZero() && now.Sub(lastJudged) < interval {
					r.Fatalf("asked %s after the last sample, within the interval of %s", now.Sub(lastJudged), interval)
				}
				known := false
				for _, a := range append(way, there...) {
					known = known || a.request.ID == out.Due.ID
				}
				if !known {
					answer := answers[rapid.SampledFrom(names).Draw(r, "answer")]
					answer.Metric = "errors"
					way = append(way, asked{*out.Due, answer, now})
				}
			}
			if out.Judged == "" {
				if out.Verdict != Hold {
					r.Fatalf("%s without a sample: %s", out.Verdict, out.Why)
				}
				if !out.Wake.After(now) {
					r.Fatalf("at %s it wants to wake at %s", now, out.Wake)
				}
				continue
			}
			sample := judgedOf(s.in.Samples, out, identify(s.in, stay))
			if sample == nil {
				r.Fatalf("judged %s and there was no such sample", out.Judged)
			}
			if sample.At.Before(stay.Add(max(delay, reach))) {
				r.Fatalf("judged a sample of %s, which looks at the time before %s", sample.At, stay)
			}
			if !lastJudged.IsZero() && sample.At.Sub(lastJudged) < interval {
				r.Fatalf("judged two samples within %s", sample.At.Sub(lastJudged))
			}
			switch kind := sample.Answers[0]; out.Verdict {
			case Pass:
				if fmt.Sprint(kind.Series) != fmt.Sprint(good.Series) && fmt.Sprint(kind.Series) != fmt.Sprint(answers["two"].Series) {
					r.Fatalf("passed on %+v", kind)
				}
				if sample.At.Before(stay.Add(bakes)) {
					r.Fatalf("passed during the bake")
				}
			case Stalled:
				if out.Judged != Inconclusive || s.in.ReadyTimeout <= 0 || sample.At.Sub(stay) <= s.in.ReadyTimeout {
					r.Fatalf("stalled on %s %s into the step", out.Judged, sample.At.Sub(stay))
				}
			case Rollback:
				if out.Judged == Failed && failures+1 < limit || out.Judged == Passed {
					r.Fatalf("rolled back on %s with %d failures before it, of %d", out.Judged, failures, limit)
				}
			}
			if rapid.IntRange(0, 3).Draw(r, "write") == 0 {
				continue // the status write failed: nothing of it happened
			}
			out.Store(&s.record)
			lastJudged = sample.At
			if out.Judged == Failed {
				failures++
			}
			if s.record.AnalysisFailedChecks != failures {
				r.Fatalf("%d failures are stored, and there were %d", s.record.AnalysisFailedChecks, failures)
			}
			if out.Verdict != Hold {
				return
			}
			if failures >= limit {
				r.Fatalf("%d failures of %d and it holds", failures, limit)
			}
		}
	})
}

func judgedOf(samples []Sample, out Output, id ID) *Sample {
	for i := range samples {
		if samples[i].ID == id {
			return &samples[i]
		}
	}
	return nil
}
