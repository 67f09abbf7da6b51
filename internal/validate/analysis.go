package validate

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/prom/promql"
)

// checkAnalysis judges the analysis of one step. Nothing is asked of a metrics server.
func checkAnalysis(r *Result, field string, a *v1beta1.RolloutAnalysis, primaries []v1beta1.ComponentType) {
	if a.Interval.Duration <= 0 {
		r.refuse(field, CodeAnalysisInvalid, "interval must be > 0")
	}
	if d := a.InitialDelay; d != nil && d.Duration < 0 {
		r.refuse(field, CodeAnalysisInvalid, "initialDelay %s is negative; use 0 or more", d.Duration)
	}
	for j := range a.Metrics {
		checkAnalysisMetric(r, fmt.Sprintf("%s.metrics[%d]", field, j), &a.Metrics[j], primaries)
	}
}

func checkAnalysisMetric(r *Result, field string, m *v1beta1.AnalysisMetric, primaries []v1beta1.ComponentType) {
	if m.Name == "" {
		r.refuseLine(field+".name", CodeAnalysisInvalid, "%s.name must not be empty", field)
	}
	named := fmt.Sprintf("%s (%q)", field, m.Name)
	if strings.TrimSpace(m.Query) == "" {
		r.refuse(named, CodeAnalysisInvalid, "query must not be empty")
	} else {
		checkQuery(r, named, m.Query, primaries)
	}
	if n, err := strconv.ParseFloat(m.Threshold, 64); err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		r.refuse(named, CodeAnalysisInvalid, "threshold %q must be numeric", m.Threshold)
	}
}

// checkQuery reads the template and, filled in with made-up names, the PromQL. With several
// primaries the first that goes wrong is told, since the others mostly go wrong alike.
func checkQuery(r *Result, field, query string, primaries []v1beta1.ComponentType) {
	t, err := analysis.ParseTemplate(query)
	if err != nil {
		r.refuse(field, CodeAnalysisInvalid, "query: template error: %v", err)
		return
	}
	for _, c := range primaries {
		text, err := t.Fill(madeUp(c))
		if err != nil {
			r.refuse(field, CodeAnalysisInvalid, "query: template error: %v", err)
			return
		}
		q, err := promql.Parse(text)
		switch {
		case errors.Is(err, promql.ErrFixedTime):
			r.warn(field, "", "query: no sample of it will pass: %v", err)
			return
		case err != nil:
			r.refuse(field, CodeAnalysisInvalid, "query: not PromQL: %v", err)
			return
		case !q.Numbers:
			r.warn(field, "", "query: no sample of it will pass, since it answers with a %s; use a function that makes a number of it, such as rate or max_over_time", q.Type)
			return
		}
	}
}

// madeUp is what a query is filled in with before any revision is known.
func madeUp(c v1beta1.ComponentType) analysis.Variables {
	const canary, stable = "0a1b2c3d", "4e5f6071"
	prefix := v1beta1.ReplicaName("service", c) + "-rev-"
	return analysis.Variables{
		Namespace: "namespace", ISVCName: "service", Component: string(c),
		CanaryRevision: canary, StableRevision: stable, CanaryService: prefix + canary, StableService: prefix + stable,
	}
}
