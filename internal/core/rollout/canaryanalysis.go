package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
)

// analyse asks the analysis of a step for its verdict. What it remembers is written with
// what the verdict leads to, so that a sample counts once.
func (c *stepper) analyse(step *v1beta1.RolloutGroupStep) {
	delay := time.Duration(0)
	if c.last() {
		delay = c.delay()
	}
	out := analysis.Judge(analysis.Input{
		Now: c.in.Now, Service: types.NamespacedName{Namespace: c.in.Namespace, Name: c.in.Service},
		Run: c.run.RunID, Group: int32(c.index), Step: c.st.CurrentStep,
		Canary: c.plan, Record: &c.st, Variables: c.variables(),
		Delay: delay, ReadyTimeout: c.readyTimeout(), Reach: c.in.Reach, Samples: c.in.Samples,
	})
	out.Store(&c.st)
	if out.Judged != "" {
		c.count(CountCanaryEvaluation, string(out.Judged))
		for _, m := range c.st.MetricResults {
			c.res.Values = append(c.res.Values, MetricValue{Component: c.primary, Metric: m.Name, Value: m.Value})
		}
	}
	if out.Due != nil {
		c.res.Due = append(c.res.Due, *out.Due)
	}
	if !out.Wake.IsZero() {
		c.wake(out.Wake)
	}
	switch out.Verdict {
	case analysis.Pass:
		c.advance(out.Why)
	case analysis.Rollback:
		c.rollback("analysis", out.Why)
	case analysis.Stalled:
		c.fail(v1beta1.CanaryAnalysisStalled, out.Why)
	}
}

func (c *stepper) variables() analysis.Variables {
	return analysis.Variables{
		Namespace: c.in.Namespace, ISVCName: c.in.Service, Component: string(c.primary),
		CanaryRevision: c.st.CanaryRevisionHash, StableRevision: c.st.StableRevisionHash,
		CanaryService: v1beta1.RevisionServiceName(c.in.Service, c.primary, c.st.CanaryRevisionHash),
		StableService: v1beta1.RevisionServiceName(c.in.Service, c.primary, c.st.StableRevisionHash),
	}
}
