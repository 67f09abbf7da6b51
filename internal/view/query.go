package view

import (
	"fmt"
	"time"

	"ome.io/ome/api/v1beta1"
)

// RolloutQueryReport is the report of `rollout validate --query`.
type RolloutQueryReport = Report[RolloutQuery]

// RolloutQuery is one answer of each analysis query.
type RolloutQuery struct {
	// Usable is false when some query gave no value to judge.
	Usable  bool          `json:"usable"`
	Queries []MetricQuery `json:"queries"`
}

// MetricQuery is the answer to one metric of one step.
type MetricQuery struct {
	Group int `json:"group"`
	// Step counts from 1.
	Step int `json:"step"`
	ExplainMetric
}

// Tried is one sample that was taken of a step.
type Tried struct {
	Group, Step int
	Metrics     []v1beta1.MetricResult
}

// BuildRolloutQuery reports on samples.
func BuildRolloutQuery(s *v1beta1.InferenceService, tried []Tried, now time.Time) *RolloutQueryReport {
	out := RolloutQuery{Usable: true, Queries: []MetricQuery{}}
	for _, t := range tried {
		for i := range t.Metrics {
			m := metricOf(&t.Metrics[i])
			out.Usable = out.Usable && m.Verdict != verdictInconclusive
			out.Queries = append(out.Queries, MetricQuery{t.Group, t.Step, m})
		}
	}
	report := &RolloutQueryReport{APIVersion: APIVersion, Kind: "RolloutQueryReport", Metadata: Metadata{s.Namespace, s.Name}, CollectedAt: stamp(now),
		Sources: []Source{{v1beta1.InferenceServiceKind, s.Namespace, s.Name, string(s.UID), s.Generation, EvidenceObserved, stamp(now)}},
		Content: out, Warnings: []Warning{}}
	if !out.Usable {
		report.Warnings = append(report.Warnings, Warning{WarningPartialData})
	}
	return report
}

// RolloutQueryTable is a row a metric.
func RolloutQueryTable(r *RolloutQueryReport) *Table {
	t := &Table{Header: []string{"GROUP", "STEP", "METRIC", "RESULT", "VALUE", "MUST BE", "MESSAGE"}}
	for _, q := range r.Content.Queries {
		t.Rows = append(t.Rows, q.cells())
	}
	return t
}

// RolloutQueryWide adds the query as it was sent.
func RolloutQueryWide(r *RolloutQueryReport) *Table {
	t := &Table{Header: []string{"GROUP", "STEP", "METRIC", "RESULT", "VALUE", "MUST BE", "MESSAGE", "QUERY"}}
	for _, q := range r.Content.Queries {
		t.Rows = append(t.Rows, append(q.cells(), dash(q.Query)))
	}
	return t
}

func (q *MetricQuery) cells() []string {
	must := none
	if q.Operator != "" {
		must = q.Operator + " " + q.Threshold
	}
	return []string{fmt.Sprint(q.Group), fmt.Sprint(q.Step), q.Name, q.Verdict, dash(q.Value), must, dash(q.Message)}
}
