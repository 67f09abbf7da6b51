package sim

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
)

// A whole canary with an analysis, from the change of an image to its end: the simulated metrics
// decide where it ends, and nothing else differs.
func TestAnalysisDecidesACanary(t *testing.T) {
	for _, tc := range []struct {
		name    string
		measure func(sampled int) float64
		phase   v1beta1.RolloutPhase
		new     int
		checks  int32
	}{
		{name: "good metrics", measure: func(int) float64 { return 0 }, phase: v1beta1.RolloutStable, new: 4},
		{name: "bad metrics", measure: func(int) float64 { return 1 }, phase: v1beta1.RolloutRolledBack, checks: 2},
		{name: "one bad sample, then good ones", measure: func(sampled int) float64 {
			if sampled == 1 {
				return 1
			}
			return 0
		}, phase: v1beta1.RolloutStable, new: 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := together()
			spec.Groups[0].Canary = &v1beta1.GroupCanary{Steps: []v1beta1.RolloutGroupStep{
				{Capacity: intstr.FromString("50%"), Traffic: 50, Analysis: &v1beta1.RolloutAnalysis{
					Interval: metav1.Duration{Duration: 30 * time.Second}, InitialDelay: &metav1.Duration{Duration: time.Minute}, FailureLimit: 2,
					Metrics: []v1beta1.AnalysisMetric{{Name: "errors", Query: `errors{revision_hash="{{.CanaryRevision}}"}`, Operator: v1beta1.MetricLT, Threshold: "0.01"}},
				}},
				{Capacity: intstr.FromString("100%"), Traffic: 100},
			}}
			c := resting(t, spec, map[v1beta1.ComponentType]int32{engine: 4, decoder: 2})
			sampled := 0
			c.Measure = func(q analysis.Query) (float64, bool) {
				record := c.actual.service.Status.Components[engine].Canary
				if sampled++; sampled == 1 && c.Now.Before(record.StepEnteredTime.Add(time.Minute)) {
					t.Errorf("the first sample is %s into the step", c.Now.Sub(record.StepEnteredTime.Time))
				}
				if want := `errors{revision_hash="` + record.CanaryRevisionHash + `"}`; q.Text != want {
					t.Errorf("asked for %s, want %s", q.Text, want)
				}
				return tc.measure(sampled), true
			}
			c.SetImage(engine, "v2")
			c.SetImage(decoder, "v2")
			if err := c.Settle(2000); err != nil {
				t.Fatal(err)
			}
			s := c.actual.service.Status.Components[engine]
			if s.RolloutPhase != tc.phase || s.Canary == nil && tc.checks > 0 || s.Canary != nil && s.Canary.AnalysisFailedChecks != tc.checks {
				t.Errorf("phase %s, want %s: %+v", s.RolloutPhase, tc.phase, s.Canary)
			}
			serving := 0
			for _, p := range c.Pods() {
				if p.Labels[v1beta1.ComponentLabel] == string(engine) && p.Spec.Containers[0].Image == "v2" {
					serving++
				}
			}
			if serving != tc.new || sampled == 0 {
				t.Errorf("%d engines of v2 after %d samples, want %d", serving, sampled, tc.new)
			}
		})
	}
}
