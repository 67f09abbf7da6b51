package view

import (
	"fmt"
	"strings"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// ExplainCanary is the record of a canary group, kept by its primary component.
type ExplainCanary struct {
	Primary  string `json:"primary"`
	Step     *Step  `json:"step,omitempty"`
	Stable   string `json:"stableRevision,omitempty"`
	Revision string `json:"canaryRevision,omitempty"`
	Rejected string `json:"rejectedRevision,omitempty"`
	// EnteredAt is when the step's Instances were ready, WaitsSince since when they aren't.
	EnteredAt  string `json:"enteredAt,omitempty"`
	WaitsSince string `json:"waitsSince,omitempty"`
	// Opens is when a timed gate opens by itself.
	Opens       string           `json:"opens,omitempty"`
	PreStepHold bool             `json:"preStepHold,omitempty"`
	Analysis    *ExplainAnalysis `json:"analysis,omitempty"`
	Failed      *ExplainFailure  `json:"failed,omitempty"`
	LastRequest *ExplainRequest  `json:"lastRequest,omitempty"`
}

// ExplainAnalysis is how the analysis of a step stands, or how the last one ended.
type ExplainAnalysis struct {
	FailedChecks   int32           `json:"failedChecks"`
	FailureLimit   int32           `json:"failureLimit,omitempty"`
	Inconclusive   string          `json:"onInconclusive,omitempty"`
	LastSample     string          `json:"lastSample,omitempty"`
	LastConclusive string          `json:"lastConclusiveSample,omitempty"`
	Metrics        []ExplainMetric `json:"metrics"`
}

// ExplainMetric is the last sample of one metric.
type ExplainMetric struct {
	Name string `json:"name"`
	// Verdict is Passed, Failed or Inconclusive.
	Verdict   string `json:"verdict"`
	Value     string `json:"value,omitempty"`
	Operator  string `json:"operator,omitempty"`
	Threshold string `json:"threshold,omitempty"`
	Message   string `json:"message,omitempty"`
	Query     string `json:"query,omitempty"`
	Time      string `json:"time,omitempty"`
}

// String is the sample in one line, without its query.
func (m *ExplainMetric) String() string {
	text := m.Verdict
	if m.Value != "" {
		text += "; value=" + m.Value
	}
	text += "; must be " + m.Operator + " " + m.Threshold
	if m.Time != "" {
		text += "; at=" + m.Time
	}
	if m.Message != "" {
		text += "; " + m.Message
	}
	return text
}

// ExplainFailure says why a canary parked.
type ExplainFailure struct {
	Reason string `json:"reason"`
	Time   string `json:"time,omitempty"`
}

// ExplainRequest is the request that was answered last.
type ExplainRequest struct {
	Key     string `json:"key"`
	Value   string `json:"value,omitempty"`
	Outcome string `json:"outcome"`
	Time    string `json:"time,omitempty"`
}

// Verdicts on a sample.
const (
	verdictPassed       = "Passed"
	verdictFailed       = "Failed"
	verdictInconclusive = "Inconclusive"
)

// Kinds of holds of a canary.
const (
	holdCanaryGate      = "CanaryGate"
	holdCanaryCapacity  = "CanaryCapacity"
	holdCanaryFailed    = "CanaryFailed"
	holdCanaryRejected  = "CanaryRejected"
	holdCanaryRolling   = "CanaryRollingBack"
	canaryQueryMaxRunes = 400
)

// canary is the record of the canary group, nil before the canary has begun.
func (e *explainer) canary(g *RolloutGroup) *ExplainCanary {
	if g.Strategy != strategyCanary {
		return nil
	}
	var members []v1beta1.ComponentType
	for _, c := range g.Components {
		members = append(members, v1beta1.ComponentType(c))
	}
	primary := plan.CanaryPrimary(members)
	st := e.isvc.Status.Components[primary]
	c := st.Canary
	if c == nil {
		return nil
	}
	out := &ExplainCanary{Primary: string(primary), Stable: safe(c.StableRevisionHash), Revision: safe(c.CanaryRevisionHash), Rejected: safe(c.RolledBackRevisionHash),
		EnteredAt: timePtr(c.StepEnteredTime), WaitsSince: timePtr(c.CapacityWaitSince), PreStepHold: c.PreStepHold}
	if comp := e.status.component(string(primary)); comp != nil {
		out.Step = comp.Step
	}
	var step *v1beta1.RolloutGroupStep
	if steps := stepsOf(e.isvc, string(primary)); c.CurrentStep >= 0 && int(c.CurrentStep) < len(steps) {
		step = &steps[c.CurrentStep]
	}
	if step != nil && plan.StepGate(step) == plan.GateTimed && c.StepEnteredTime != nil {
		out.Opens = stamp(c.StepEnteredTime.Add(step.Pause.Duration.Duration))
	}
	out.Analysis = analysisOf(c, step)
	if c.Failed != nil {
		out.Failed = &ExplainFailure{safe(string(c.Failed.Reason)), timePtr(c.Failed.Time)}
	}
	if r := c.LastRequest; r != nil {
		out.LastRequest = &ExplainRequest{safe(r.Key), safe(r.Value), safe(r.Outcome), timePtr(&r.Time)}
	}
	return out
}

// analysisOf is nil when neither the step has an analysis nor samples were kept.
func analysisOf(c *v1beta1.CanaryStatus, step *v1beta1.RolloutGroupStep) *ExplainAnalysis {
	if (step == nil || step.Analysis == nil) && len(c.MetricResults) == 0 {
		return nil
	}
	out := &ExplainAnalysis{FailedChecks: c.AnalysisFailedChecks, LastSample: timePtr(c.LastEvaluationTime), LastConclusive: timePtr(c.LastConclusiveEvaluationTime), Metrics: []ExplainMetric{}}
	if step != nil && step.Analysis != nil {
		out.FailureLimit = step.Analysis.FailureLimit
		if out.Inconclusive = safe(string(step.Analysis.OnInconclusive)); out.Inconclusive == "" {
			out.Inconclusive = string(v1beta1.InconclusiveHold)
		}
	}
	for i := range c.MetricResults {
		out.Metrics = append(out.Metrics, metricOf(&c.MetricResults[i]))
	}
	return out
}

func metricOf(m *v1beta1.MetricResult) ExplainMetric {
	verdict := verdictFailed
	switch {
	case m.Passed:
		verdict = verdictPassed
	case m.Value == "":
		verdict = verdictInconclusive
	}
	return ExplainMetric{safe(m.Name), verdict, safe(m.Value), safe(m.Operator), safe(m.Threshold),
		safeTo(m.Message, maxReason), safeTo(m.Query, canaryQueryMaxRunes), timePtr(m.Time)}
}

// rejectedOf is the revision of a component that a canary gave up; empty when none is.
func rejectedOf(s *v1beta1.InferenceService, c v1beta1.ComponentType) string {
	for primary, st := range s.Status.Components {
		if st.Canary == nil || st.Canary.RolledBackRevisionHash == "" {
			continue
		}
		if primary == c {
			return safe(st.Canary.RolledBackRevisionHash)
		}
		for _, m := range st.Canary.Members {
			if m.Component == c {
				return safe(m.Rejected)
			}
		}
	}
	return ""
}

// phaseOf is the phase of a canary group: that of its primary.
func (e *explainer) phaseOf(c *ExplainCanary) string {
	if comp := e.status.component(c.Primary); comp != nil {
		return comp.Phase
	}
	return ""
}

// canaryHolds says what each canary waits for, or how it ended, with the way out.
func (e *explainer) canaryHolds() {
	for i := range e.out.Groups {
		g := &e.out.Groups[i]
		if g.Canary == nil {
			continue
		}
		index := g.Index
		h := ExplainHold{Component: g.Canary.Primary, Group: &index, Evidence: EvidenceReported, Target: g.Canary.Revision}
		if at := e.isvc.Status.Components[v1beta1.ComponentType(g.Canary.Primary)].Canary.ObservedGeneration; at != 0 && at != e.isvc.Generation {
			h.Evidence = EvidenceStale
		}
		if e.canaryHold(g, g.Canary, &h) {
			e.hold(h)
		}
	}
}

// canaryHold is false when nothing keeps the canary.
func (e *explainer) canaryHold(g *ExplainGroup, c *ExplainCanary, h *ExplainHold) bool {
	at := "the step"
	if c.Step != nil {
		at = fmt.Sprintf("step %d of %d", c.Step.Current, c.Step.Total)
	}
	switch v1beta1.RolloutPhase(g.Phase) {
	case v1beta1.RolloutFailed:
		h.Kind, h.Reason, h.WayOut, h.Command = holdCanaryFailed, "failed at "+at, "mend the spec, which makes another target; or return to the stable revision", e.canaryCommand("rollback", *h.Group)
		if c.Failed != nil {
			h.Reason, h.Since = h.Reason+", because "+failureWords(v1beta1.CanaryFailureReason(c.Failed.Reason)), c.Failed.Time
			if v1beta1.CanaryFailureReason(c.Failed.Reason) == v1beta1.CanaryStableRevisionMissing {
				h.WayOut, h.Command = "mend the spec, which makes another target; or try the same one again", e.canaryCommand("retry", *h.Group)
			}
		}
	case v1beta1.RolloutRollingBack:
		h.Kind, h.Reason, h.Target = holdCanaryRolling, "revision "+c.Rejected+" was rejected", c.Stable
		h.WayOut = "it ends by itself when only stable Instances are left; which are not"
		h.Command = e.command("instance list")
	case v1beta1.RolloutRolledBack:
		h.Kind, h.Reason, h.Target = holdCanaryRejected, "revision "+c.Rejected+" was rejected"+c.cause(), c.Rejected
		h.WayOut, h.Command = "another target starts by itself; to try this one again", e.canaryCommand("retry", *h.Group)
	case v1beta1.RolloutPending:
		h.Kind, h.Reason, h.Since = holdCanaryCapacity, at+" waits until its Instances of every component are ready", c.WaitsSince
		h.WayOut, h.Command = "it goes on by itself; what the Instances wait for", e.command("instance list")
		if c.Step != nil && c.Step.Capacity != "" {
			h.Reason = fmt.Sprintf("%s waits until %s of each component runs the new revision and is ready", at, c.Step.Capacity)
		}
	case v1beta1.RolloutPaused, v1beta1.RolloutPromoting, v1beta1.RolloutCanarying:
		return e.gateHold(at, c, h)
	default:
		return false
	}
	return true
}

// gateHold is the gate of the step, or the hold before its weight.
func (e *explainer) gateHold(at string, c *ExplainCanary, h *ExplainHold) bool {
	if c.PreStepHold {
		h.Kind, h.Reason = holdCanaryPreStep, "a repin raised the weight of "+at
		if c.Step != nil {
			h.Reason += fmt.Sprintf(" from %d%% to %d%%", c.Step.ObservedTraffic, c.Step.TargetTraffic)
		}
		h.WayOut, h.Command = "release the hold, which passes no gate", e.canaryCommand("promote", *h.Group)+" --release-hold --yes"
		return true
	}
	if c.Step == nil || c.EnteredAt == "" {
		return false
	}
	h.Kind, h.Since = holdCanaryGate, c.EnteredAt
	switch plan.Gate(c.Step.Gate) {
	case plan.GateManual:
		h.Reason, h.WayOut, h.Command = at+" waits for a promote", "promote it", e.canaryCommand("promote", *h.Group)
	case plan.GateTimed:
		h.Reason, h.WayOut = at+" waits for its timer", "it opens by itself at "+dash(c.Opens)
	case plan.GateAnalysis:
		h.Reason = at + " waits for its analysis"
		if a := c.Analysis; a != nil {
			h.Reason += fmt.Sprintf(": %d of %d failures used%s", a.FailedChecks, a.FailureLimit, a.lately())
		}
		h.WayOut, h.Command = "it opens after a sample that passes; to pass it anyway", e.canaryCommand("promote", *h.Group)+" --override-analysis --yes"
	default:
		return false
	}
	return true
}

// lately names the metrics of the last sample by verdict, those that keep the gate first.
func (a *ExplainAnalysis) lately() string {
	if len(a.Metrics) == 0 {
		return "; no sample was judged yet"
	}
	var out []string
	for _, verdict := range []string{verdictFailed, verdictInconclusive, verdictPassed} {
		for i := range a.Metrics {
			if m := &a.Metrics[i]; m.Verdict == verdict {
				text := m.Name + " " + strings.ToLower(verdict)
				switch {
				case m.Value != "":
					text += " (" + m.Value + ", must be " + m.Operator + " " + m.Threshold + ")"
				case m.Message != "":
					text += " (" + m.Message + ")"
				}
				out = append(out, text)
			}
		}
	}
	return "; last sample: " + strings.Join(out, ", ")
}

// cause says which metrics the rejection rests on, when it was their doing.
func (c *ExplainCanary) cause() string {
	if c.Analysis == nil {
		return ""
	}
	var out []string
	for i := range c.Analysis.Metrics {
		if m := &c.Analysis.Metrics[i]; m.Verdict == verdictFailed {
			out = append(out, fmt.Sprintf("%s was %s and must be %s %s", m.Name, m.Value, m.Operator, m.Threshold))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "; its last sample: " + strings.Join(out, ", ")
}

// canaryCommand names the group only where there are several.
func (e *explainer) canaryCommand(verb string, group int) string {
	command := e.command("rollout " + verb)
	if n := e.canaryGroups(); n > 1 {
		command += fmt.Sprintf(" --group=%d", group)
	}
	return command
}

func (e *explainer) canaryGroups() int {
	n := 0
	for i := range e.status.Groups {
		if e.status.Groups[i].Strategy == strategyCanary {
			n++
		}
	}
	return n
}

// canary rows stand under the group, after where its executor is.
func (t *explainTable) canary(c *ExplainCanary) {
	if c.Step != nil {
		detail := fmt.Sprintf("step=%d/%d", c.Step.Current, c.Step.Total)
		if c.Step.Gate != "" {
			detail += "; gate=" + c.Step.Gate
		}
		detail += fmt.Sprintf("; traffic=%d%% -> %d%%", c.Step.TargetTraffic, c.Step.ObservedTraffic)
		for _, p := range [][2]string{{"entered", c.EnteredAt}, {"opens", c.Opens}, {"waits-since", c.WaitsSince}} {
			if p[1] != "" {
				detail += "; " + p[0] + "=" + p[1]
			}
		}
		t.add("CANARY", detail)
	}
	if f := c.Failed; f != nil {
		t.add("FAILED", f.Reason+"; at="+dash(f.Time))
	}
	if a := c.Analysis; a != nil {
		t.add("ANALYSIS", fmt.Sprintf("failures=%d of %d; inconclusive=%s; last-sample=%s", a.FailedChecks, a.FailureLimit, dash(a.Inconclusive), dash(a.LastSample)))
		for i := range a.Metrics {
			m := &a.Metrics[i]
			t.add("METRIC "+m.Name, m.String())
			if m.Query != "" {
				t.add("QUERY", m.Query)
			}
		}
	}
	if r := c.LastRequest; r != nil {
		t.add("REQUEST", fmt.Sprintf("%s=%s; outcome=%s; at=%s", r.Key, r.Value, r.Outcome, dash(r.Time)))
	}
}
