package prom

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/prom/promql"
)

// From a server's bytes to what the gate does. Each server but the good ones would open the gate if
// anything on the way took it at its word.
func TestFromServerToVerdict(t *testing.T) {
	entered := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	vector := func(values ...string) http.HandlerFunc {
		var series []string
		for i, v := range values {
			series = append(series, fmt.Sprintf(`{"metric":{"pod":"p%d"},"value":[1,%q]}`, i, v))
		}
		return answers(success(`{"resultType":"vector","result":[` + strings.Join(series, ",") + `]}`))
	}
	for _, tc := range []struct {
		name   string
		server http.HandlerFunc
		change func(*v1beta1.GroupCanary, *config.Settings)
		judged analysis.Judgement
		want   analysis.Verdict
		entry  string
	}{
		{name: "a good value", server: vector("0"), judged: analysis.Passed, want: analysis.Pass},
		{name: "a bad value", server: vector("0", "1"), judged: analysis.Failed, want: analysis.Rollback},
		{name: "no series", server: vector(), judged: analysis.Inconclusive, want: analysis.Hold},
		{name: "NaN", server: vector("NaN"), judged: analysis.Inconclusive, want: analysis.Hold},
		{name: "NaN beside a good one", server: vector("0", "NaN"), judged: analysis.Inconclusive, want: analysis.Hold},
		{name: "minus infinity", server: vector("-Inf"), judged: analysis.Inconclusive, want: analysis.Hold},
		{name: "a warning", server: answers(`{"status":"success","warnings":["partial response"],"data":{"resultType":"scalar","result":[1,"0"]}}`), judged: analysis.Inconclusive, want: analysis.Hold},
		{name: "a histogram", server: answers(success(`{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"0","sum":"0","buckets":[]}]}]}`)), judged: analysis.Inconclusive, want: analysis.Hold},
		{name: "a matrix", server: answers(success(`{"resultType":"matrix","result":[{"metric":{},"values":[[1,"0"]]}]}`)), judged: analysis.Inconclusive, want: analysis.Hold},
		{name: "a text", server: answers(success(`{"resultType":"string","result":[1,"0"]}`)), judged: analysis.Inconclusive, want: analysis.Hold},
		{name: "an error with data", server: answers(`{"status":"error","errorType":"x","error":"y","data":{"resultType":"scalar","result":[1,"0"]}}`), judged: analysis.Inconclusive, want: analysis.Hold},
		{name: "data behind a 500", server: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, success(`{"resultType":"scalar","result":[1,"0"]}`))
		}, judged: analysis.Inconclusive, want: analysis.Hold},
		{name: "a sign-in page", server: answers("<html>200</html>"), judged: analysis.Inconclusive, want: analysis.Hold},
		{name: "a redirect", server: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/api/v1/query?x", http.StatusFound) }, judged: analysis.Inconclusive, want: analysis.Hold},
		{name: "a server out of bounds", server: vector("0"), judged: analysis.Inconclusive, want: analysis.Hold,
			change: func(_ *v1beta1.GroupCanary, s *config.Settings) { s.CanaryAnalysis.AllowedServerAddresses = nil }},
		{name: "a provider that isn't bound", server: vector("0"), judged: analysis.Inconclusive, want: analysis.Hold, entry: "prometheus",
			change: func(c *v1beta1.GroupCanary, _ *config.Settings) {
				c.Prometheus = &v1beta1.AnalysisPrometheus{ProviderRef: &v1beta1.AnalysisProviderRef{Name: "gone"}}
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			settings := onLoopback()
			canary := &v1beta1.GroupCanary{
				Prometheus: &v1beta1.AnalysisPrometheus{ServerAddress: serve(t, tc.server)},
				Steps: []v1beta1.RolloutGroupStep{{Traffic: 100, Analysis: &v1beta1.RolloutAnalysis{
					Interval: metav1.Duration{Duration: time.Minute}, FailureLimit: 1,
					Metrics: []v1beta1.AnalysisMetric{{Name: "errors", Query: `rate(errors_total{namespace="{{.Namespace}}"}[5m])`, Operator: v1beta1.MetricLT, Threshold: "0.01"}},
				}}},
			}
			if tc.change != nil {
				tc.change(canary, &settings)
			}
			at := metav1.NewTime(entered)
			in := analysis.Input{
				Service: chat, Run: "chat-0123456789ab", Canary: canary, Record: &v1beta1.CanaryStatus{StepEnteredTime: &at},
				Variables: analysis.Variables{Namespace: "prod"}, Reach: promql.Reach,
			}
			in.Now = entered.Add(4 * time.Minute)
			if early := analysis.Judge(in); early.Due != nil || !early.Wake.Equal(entered.Add(5*time.Minute)) {
				t.Fatalf("before the range is over: %+v", early)
			}
			in.Now = entered.Add(5 * time.Minute)
			due := analysis.Judge(in).Due
			if due == nil {
				t.Fatal("no sample is due")
			}
			in.Samples = []analysis.Sample{Take(context.Background(), settings, nil, *due, func() time.Time { return in.Now })}
			out := analysis.Judge(in)
			if out.Judged != tc.judged || out.Verdict != tc.want {
				t.Errorf("%s, %s: %s", out.Judged, out.Verdict, out.Why)
			}
			out.Store(in.Record)
			entry := tc.entry
			if entry == "" {
				entry = "errors"
			}
			if r := in.Record.MetricResults; len(r) != 1 || r[0].Name != entry || r[0].Passed != (tc.judged == analysis.Passed) || (r[0].Value == "") != (tc.judged == analysis.Inconclusive) {
				t.Errorf("results %+v", r)
			}
		})
	}
}
