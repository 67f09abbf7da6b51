package sim

import (
	"slices"
	"strconv"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/analysis"
)

// noReach takes every query for one that looks at its moment alone: the simulated metrics have no
// past.
func noReach(string) (time.Duration, error) { return 0, nil }

// sample answers what a decision asks for, as a metrics server beside the cluster would. Unless Measure
// says otherwise every metric is what its threshold asks for.
func (c *Cluster) sample(d core.Decision) {
	for _, r := range d.Samples {
		if slices.ContainsFunc(c.samples, func(s analysis.Sample) bool { return s.ID == r.ID }) {
			continue
		}
		s := analysis.Sample{ID: r.ID, At: c.Now, Done: c.Now}
		for _, q := range r.Queries {
			value, known := 0.0, false
			if c.Measure != nil {
				value, known = c.Measure(q)
			}
			if !known {
				value = c.healthy(r.ID, q.Metric)
			}
			s.Answers = append(s.Answers, analysis.Answer{Metric: q.Metric, Query: q.Text, Type: analysis.Scalar, Series: []analysis.Series{{Value: value}}})
		}
		c.samples = append(slices.DeleteFunc(c.samples, func(old analysis.Sample) bool { return old.ID.Group == r.ID.Group }), s)
		c.dirty = true
	}
}

// healthy is a value on the good side of a metric's threshold.
func (c *Cluster) healthy(id analysis.ID, metric string) float64 {
	s := c.actual.service
	if s == nil || s.Status.Rollout == nil || s.Status.Rollout.ActiveRun == nil {
		return 0
	}
	groups := s.Status.Rollout.ActiveRun.Plan.Groups
	if int(id.Group) >= len(groups) || groups[id.Group].Group.Canary == nil {
		return 0
	}
	steps := groups[id.Group].Group.Canary.Steps
	if int(id.Step) >= len(steps) || steps[id.Step].Analysis == nil {
		return 0
	}
	for _, m := range steps[id.Step].Analysis.Metrics {
		threshold, err := strconv.ParseFloat(m.Threshold, 64)
		if m.Name != metric || err != nil {
			continue
		}
		if m.Operator == v1beta1.MetricLT || m.Operator == v1beta1.MetricLTE {
			return threshold - 1
		}
		return threshold + 1
	}
	return 0
}
