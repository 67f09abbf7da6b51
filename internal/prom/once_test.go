package prom

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
)

// TestTry: each step with an analysis is asked once, whatever its warm-up and interval,
// and judged in the words of the gate.
func TestTry(t *testing.T) {
	var asked []string
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.FormValue("query")
		asked = append(asked, q)
		body := map[string]string{
			`up{rev="bbbbbbbb"}`: success(`{"resultType":"vector","result":[{"metric":{},"value":[1,"0.4"]}]}`),
			`slow`:               success(`{"resultType":"vector","result":[{"metric":{},"value":[1,"2.5"]}]}`),
		}[q]
		if body == "" {
			body = success(`{"resultType":"vector","result":[]}`)
		}
		answers(body)(w, r)
	})
	step := func(metrics ...v1beta1.AnalysisMetric) v1beta1.RolloutGroupStep {
		return v1beta1.RolloutGroupStep{Analysis: &v1beta1.RolloutAnalysis{Interval: metav1.Duration{Duration: time.Hour},
			InitialDelay: &metav1.Duration{Duration: time.Hour}, FailureLimit: 1, Metrics: metrics}}
	}
	metric := func(query string) v1beta1.AnalysisMetric {
		return v1beta1.AnalysisMetric{Name: query, Query: query, Operator: v1beta1.MetricLT, Threshold: "1"}
	}
	canary := &v1beta1.GroupCanary{Prometheus: &v1beta1.AnalysisPrometheus{ServerAddress: address}, Steps: []v1beta1.RolloutGroupStep{
		step(metric(`up{rev="{{.CanaryRevision}}"}`)), {}, step(metric("slow")), step(metric("nothing")), step(metric("{{.Nothing}}")),
	}}
	try := func(c *v1beta1.GroupCanary) []StepTry {
		return Try(t.Context(), onLoopback(), nil, types.NamespacedName{Namespace: "prod", Name: "chat"}, 0, c, analysis.Variables{CanaryRevision: "bbbbbbbb"}, time.Now)
	}
	type told struct {
		Step           int32
		Result         analysis.Judgement
		Value, Message string
		Passed         bool
	}
	var got []told
	for _, s := range try(canary) {
		for _, m := range s.Metrics {
			got = append(got, told{s.Step, s.Result, m.Value, m.Message, m.Passed})
		}
	}
	want := []told{{0, analysis.Passed, "0.4", "", true}, {2, analysis.Failed, "2.5", "", false}, {3, analysis.Inconclusive, "", "no data", false}}
	if len(got) != 4 || cmp.Diff(want, got[:3]) != "" || got[3].Result != analysis.Inconclusive || got[3].Message == "" {
		t.Errorf("-want +got:\n%s", cmp.Diff(want, got))
	}
	if len(asked) != 3 {
		t.Errorf("asked %q", asked)
	}
	canary.Prometheus = &v1beta1.AnalysisPrometheus{ProviderRef: &v1beta1.AnalysisProviderRef{Name: "none"}}
	for _, s := range try(canary)[:3] {
		if s.Result != analysis.Inconclusive || len(s.Metrics) != 1 || s.Metrics[0].Name != analysis.ProblemPrometheus {
			t.Errorf("without a source: %+v", s)
		}
	}
}
