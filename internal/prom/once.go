package prom

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/prom/promql"
)

// StepTry is what one sample of a canary step comes to.
type StepTry struct {
	Step   int32
	Result analysis.Judgement
	// Metrics are the results of the sample, or one that says why none was taken.
	Metrics []v1beta1.MetricResult
}

// longAgo is before anything that a query looks back at, so that a try waits for no warm-up.
const longAgo = 10 * 365 * 24 * time.Hour

// Try takes one sample of each step that has an analysis, and judges it as the gate would. It leaves
// no trace: nothing is remembered of series, and no failure counts.
func Try(ctx context.Context, settings config.Settings, token TokenReader, service types.NamespacedName, group int32,
	canary *v1beta1.GroupCanary, vars analysis.Variables, now func() time.Time) []StepTry {
	var out []StepTry
	for i := range canary.Steps {
		if canary.Steps[i].Analysis == nil {
			continue
		}
		entered := metav1.NewTime(now().Add(-longAgo))
		in := analysis.Input{Now: now(), Service: service, Run: "try", Group: group, Step: int32(i), Canary: canary,
			Record: &v1beta1.CanaryStatus{StepEnteredTime: &entered}, Variables: vars, Reach: promql.Reach}
		verdict := analysis.Judge(in)
		if verdict.Due != nil {
			in.Samples = []analysis.Sample{Take(ctx, settings, token, *verdict.Due, now)}
			verdict = analysis.Judge(in)
		}
		record := &v1beta1.CanaryStatus{}
		verdict.Store(record)
		out = append(out, StepTry{int32(i), verdict.Judged, record.MetricResults})
	}
	return out
}
