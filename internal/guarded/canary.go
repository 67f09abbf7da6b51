package guarded

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// MsgPausedCanary refuses a request to a canary of a paused service: nothing would
// answer it, and a resume would answer it unseen.
const MsgPausedCanary = "action refused: globally paused canary cannot consume a request"

// FlagGroup picks one of several canary groups.
const FlagGroup = "--group"

// AnyGroup leaves it to the command: there has to be one.
const AnyGroup = -1

// canary is a pinned canary group with the state of its step machine.
type canary struct {
	group   int
	primary v1beta1.ComponentType
	members []v1beta1.ComponentType
	steps   []v1beta1.RolloutGroupStep
	delay   int32
	phase   v1beta1.RolloutPhase
	// status is nil before the canary has begun.
	status *v1beta1.CanaryStatus
	// target and stable are the revision hashes of the primary that the run holds.
	target, stable string
}

// canaries lists the canary groups of the open run.
func (ev *Evidence) canaries() []canary {
	run := ev.openRun()
	if run == nil {
		return nil
	}
	var out []canary
	for i := range run.Plan.Groups {
		g := &run.Plan.Groups[i].Group
		if g.Canary == nil {
			continue
		}
		c := canary{group: i, primary: plan.CanaryPrimary(g.Components), members: g.Components, steps: g.Canary.Steps}
		if d := g.Canary.ScaleDownDelaySeconds; d != nil {
			c.delay = *d
		}
		st := ev.Service.Status.Components[c.primary]
		c.status, c.phase = st.Canary, st.RolloutPhase
		if t := target(run, c.primary); t != nil {
			c.target, c.stable = t.Revision, t.StableRevision
		}
		out = append(out, c)
	}
	return out
}

// target is what a run moves a component between; nil when it doesn't move it.
func target(run *v1beta1.RolloutRun, component v1beta1.ComponentType) *v1beta1.RunTarget {
	for i := range run.TargetRevisions {
		if run.TargetRevisions[i].Component == component {
			return &run.TargetRevisions[i]
		}
	}
	return nil
}

// canaryPick says which canary group an action is about.
type canaryPick int

// CheckGroup says what is wrong with the value of --group.
func CheckGroup(group int) error {
	if group < 0 || group >= maxRunGroups {
		return usage(fmt.Sprintf("group must be from 0 to %d", maxRunGroups-1), fmt.Sprintf("got %d; it counts the groups of the plan: see rollout explain", group))
	}
	return nil
}

// find is the canary that is meant; nil when there is none.
func (p canaryPick) find(ev *Evidence) *canary {
	all := ev.canaries()
	if p == AnyGroup && len(all) > 0 {
		return &all[0]
	}
	for i := range all {
		if all[i].group == int(p) {
			return &all[i]
		}
	}
	return nil
}

// refuseNotNative demands that the whole canary runs as InferenceReplicas.
func (p canaryPick) refuseNotNative(ev *Evidence) *Error {
	if c := p.find(ev); c != nil {
		return ev.refuseRaw(c)
	}
	return nil
}

func (ev *Evidence) refuseRaw(c *canary) *Error {
	for _, m := range c.members {
		if !slices.Contains(ev.Native, m) {
			return Refuse(MsgRuntime, fmt.Sprintf("component %s of canary group %d isn't an OMENative component of the service", Clean(string(m)), c.group))
		}
	}
	return nil
}

func refusePausedCanary(ev *Evidence) *Error {
	v, _ := ev.Annotation(v1beta1.RolloutPausedAnnotation)
	if !recognizedPause(v) {
		return nil
	}
	return Refuse(MsgPausedCanary, "annotation "+v1beta1.RolloutPausedAnnotation+" is "+Quote(v)+", and a paused canary answers no request",
		"resume it first: "+ev.Command("rollout resume"))
}

// hashForm is what admission accepts as the value of a promote.
var hashForm = regexp.MustCompile(`^[0-9a-z]{6,63}$`)

// refuseContradiction demands that what the status says of the canary agrees with the
// plan and the targets of the run, and with itself.
func (p canaryPick) refuseContradiction(ev *Evidence) *Error {
	all := ev.canaries()
	if p == AnyGroup && len(all) > 1 {
		var at []string
		for _, c := range all {
			at = append(at, fmt.Sprintf("%d (%s)", c.group, componentList(c.members)))
		}
		return Refuse(MsgStale, "the run has several canary groups: "+strings.Join(at, " and "), "name one of them with "+FlagGroup)
	}
	c := p.find(ev)
	if c == nil {
		return nil
	}
	for i := range all {
		if o := &all[i]; o.group != c.group && o.status != nil && c.status != nil && o.status.CanaryRevisionHash == c.status.CanaryRevisionHash {
			return Refuse(MsgStale, fmt.Sprintf("pinned groups %d and %d have the same canary revision %s, and a request names the revision", c.group, o.group, Clean(o.status.CanaryRevisionHash)))
		}
	}
	if what := ev.contradiction(c); what != "" {
		return Refuse(MsgStale, fmt.Sprintf("canary of pinned group %d: %s", c.group, what), ev.waitForController())
	}
	return nil
}

// contradiction says what doesn't agree; empty when all does.
func (ev *Evidence) contradiction(c *canary) string {
	run, st := ev.openRun(), c.status
	pinned := &run.Plan.Groups[c.group]
	if digest, err := plan.GroupDigest(&pinned.Group); pinned.Source == v1beta1.SourceInline && (err != nil || digest != pinned.PortableDigest) {
		return fmt.Sprintf("the pinned digest is %s and the pinned plan's is %s", Quote(Clean(pinned.PortableDigest)), digest)
	}
	for _, m := range c.members {
		if t := target(run, m); t == nil || t.Revision == "" || t.StableRevision == "" {
			return "the run has no target and stable revision of component " + Clean(string(m))
		}
	}
	if st == nil {
		if c.phase == "" || c.phase == v1beta1.RolloutStable {
			return ""
		}
		return fmt.Sprintf("component %s is %s and has no canary status", c.primary, Clean(string(c.phase)))
	}
	rejected := c.phase == v1beta1.RolloutRollingBack || c.phase == v1beta1.RolloutRolledBack
	switch {
	case st.ObservedGeneration != 0 && st.ObservedGeneration != ev.Service.Generation:
		return fmt.Sprintf("its observedGeneration is %d and the service is at generation %d", st.ObservedGeneration, ev.Service.Generation)
	case !hashForm.MatchString(st.CanaryRevisionHash):
		return "canaryRevisionHash " + Quote(Clean(st.CanaryRevisionHash)) + " is no revision hash"
	case st.StableRevisionHash != "" && st.StableRevisionHash != c.stable:
		return fmt.Sprintf("stableRevisionHash is %s and the run's is %s", Quote(Clean(st.StableRevisionHash)), Clean(c.stable))
	case (st.Failed != nil) != (c.phase == v1beta1.RolloutFailed):
		return fmt.Sprintf("its phase is %s and failed is %s", Quote(Clean(string(c.phase))), presence(st.Failed != nil))
	case (st.RolledBackRevisionHash != "") != rejected:
		return fmt.Sprintf("its phase is %s and rolledBackRevisionHash is %s", Quote(Clean(string(c.phase))), presence(st.RolledBackRevisionHash != ""))
	case ev.Service.Status.Canary != nil && !ev.aliased():
		return "status.canary repeats none of the components' canaries"
	}
	component := ev.Service.Status.Components[c.primary]
	return Clean(plan.CanaryTrafficProblem(ev.Name, c.primary, &component))
}

func presence(set bool) string {
	if set {
		return "set"
	}
	return "unset"
}

// aliased is true when the copy for older readers is a copy.
func (ev *Evidence) aliased() bool {
	for _, c := range ev.Service.Status.Components {
		if c.Canary != nil && equality.Semantic.DeepEqual(c.Canary, ev.Service.Status.Canary) {
			return true
		}
	}
	return false
}

// refuseNoCanary demands a canary that is under way.
func (p canaryPick) refuseNoCanary(ev *Evidence) *Error {
	no := func(format string, args ...any) *Error {
		return Refuse(MsgNothingActive, fmt.Sprintf(format, args...), "to see it: "+ev.Command("rollout status"))
	}
	c := p.find(ev)
	switch {
	case ev.openRun() == nil:
		if rejected := ev.retryable(); len(rejected) > 0 {
			return Refuse(MsgNothingActive, fmt.Sprintf("no rollout run is open; the canary of component %s is %s", rejected[0].primary, rejected[0].phase),
				"to try its revision again: "+ev.Command("rollout retry"))
		}
		return no("no rollout run is open")
	case c == nil && p == AnyGroup:
		return no("run %s has no canary group", Quote(Clean(ev.openRun().RunID)))
	case c == nil:
		return no("group %d of run %s is no canary group", int(p), Quote(Clean(ev.openRun().RunID)))
	case c.status == nil:
		return no("the canary of pinned group %d hasn't begun", c.group)
	case int(c.status.CurrentStep) >= len(c.steps):
		return no("the canary of pinned group %d is done: all %d steps are passed", c.group, len(c.steps))
	case c.phase == v1beta1.RolloutRollingBack:
		return no("the canary of pinned group %d is rolling back already, from %s to %s", c.group, Clean(c.status.CanaryRevisionHash), Clean(c.stable))
	case c.phase == v1beta1.RolloutRolledBack:
		return Refuse(MsgNothingActive, fmt.Sprintf("the canary of pinned group %d is rolled back already", c.group),
			"to try its revision again: "+ev.Command("rollout retry"))
	}
	switch c.phase {
	case v1beta1.RolloutPending, v1beta1.RolloutCanarying, v1beta1.RolloutPaused, v1beta1.RolloutPromoting, v1beta1.RolloutFailed:
		return nil
	}
	return no("the canary of pinned group %d is %s", c.group, Quote(Clean(string(c.phase))))
}

// step is the one that the canary is at.
func (c *canary) step() *v1beta1.RolloutGroupStep { return &c.steps[c.status.CurrentStep] }

func (c *canary) last() bool { return int(c.status.CurrentStep) == len(c.steps)-1 }

// at words the step as people count.
func (c *canary) at() string {
	return fmt.Sprintf("step %d of %d", c.status.CurrentStep+1, len(c.steps))
}

// rows are what a preview says of the canary.
func (c *canary) rows(ev *Evidence) []Row {
	step := c.step()
	rows := []Row{
		{"Run", ev.openRun().RunID},
		{"Group", fmt.Sprintf("%d (%s)", c.group, componentList(c.members))},
		{"Phase", string(c.phase)},
		{"Step", fmt.Sprintf("%d of %d (zero-based)", c.status.CurrentStep, len(c.steps))},
		{"Gate", string(plan.StepGate(step))},
		{"Traffic", fmt.Sprintf("target=%d%% observed=%d%%", step.Traffic, c.status.ObservedTrafficWeight)},
		{"Stable", c.stable},
		{"Canary", c.status.CanaryRevisionHash},
	}
	if step.Analysis != nil {
		rows = append(rows, c.analysisRows(step.Analysis)...)
	}
	return rows
}

// analysisRows are the state of an analysis and the last sample of each metric.
func (c *canary) analysisRows(a *v1beta1.RolloutAnalysis) []Row {
	sampled := "none"
	if t := c.status.LastEvaluationTime; t != nil {
		sampled = utc(t.Time)
	}
	rows := []Row{{"Analysis", fmt.Sprintf("failures=%d of %d last-sample=%s", c.status.AnalysisFailedChecks, a.FailureLimit, sampled)}}
	for i := range c.status.MetricResults {
		m := &c.status.MetricResults[i]
		rows = append(rows, Row{"Metric", Clean(m.Name) + ": " + metricVerdict(m)})
	}
	return rows
}

// metricVerdict words one judged sample.
func metricVerdict(m *v1beta1.MetricResult) string {
	test := Clean(m.Operator + " " + m.Threshold)
	verdict := "failed"
	switch {
	case m.Passed:
		verdict = "passed"
	case m.Value == "":
		text := "inconclusive (" + test + ")"
		if m.Message != "" {
			text += ": " + Clean(m.Message)
		}
		return text
	}
	return verdict + " (" + Clean(m.Value) + " " + test + ")"
}

// budget says how much of its failures an analysis has used, for a person who wants past it.
func (c *canary) budget(a *v1beta1.RolloutAnalysis) string {
	var failing, all []string
	for i := range a.Metrics {
		name := Clean(a.Metrics[i].Name)
		all = append(all, name)
		for j := range c.status.MetricResults {
			if r := &c.status.MetricResults[j]; r.Name == a.Metrics[i].Name && !r.Passed && r.Value != "" {
				failing = append(failing, name)
			}
		}
	}
	if len(failing) > 0 {
		all = failing
	}
	return fmt.Sprintf("%s: %d of %d failures used", strings.Join(all, ", "), c.status.AnalysisFailedChecks, a.FailureLimit)
}

// pendingRetry tells of a retry that waits, which the contract's checks pass over.
func (ev *Evidence) pendingRetry() []string {
	v, ok := ev.Annotation(v1beta1.RolloutResumeAnnotation)
	if !ok {
		return nil
	}
	return []string{"Note: a retry waits as well: annotation " + v1beta1.RolloutResumeAnnotation + " is " + Quote(Clean(v)) + "."}
}
