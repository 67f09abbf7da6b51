package guarded

import (
	"fmt"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// Messages of promote beside the shared ones. The second is of --release-hold, which
// is ours.
const (
	MsgPromoteGate = "action refused: promote requires an active indefinite manual gate; analysis requires explicit override"
	MsgNoHold      = "action refused: promote --release-hold requires a pre-step hold whose Instances are ready"
)

// Flags of promote.
const (
	FlagOverride    = "--override-analysis"
	FlagReleaseHold = "--release-hold"
)

// Promotion is what a promote is meant to pass.
type Promotion struct {
	// Group is the index of a canary group in the pinned plan, or AnyGroup.
	Group int
	// Override passes an analysis gate, ReleaseHold the hold before a step's weight.
	Override, ReleaseHold bool
}

func (p Promotion) demand(opts Options) *Error {
	switch {
	case p.Override && p.ReleaseHold:
		return Refuse(FlagOverride+" and "+FlagReleaseHold+" exclude each other", "a request passes one thing: the gate of the step, or the hold before its weight")
	case p.Override:
		return needsYes(FlagOverride)(opts)
	case p.ReleaseHold:
		return needsYes(FlagReleaseHold)(opts)
	}
	return nil
}

// Promote lets a canary past the gate that waits for a person: one request, one step.
// The request names the revision, so that it means nothing to any other.
func Promote(p Promotion) *Action {
	pick := canaryPick(p.Group)
	a := &Action{
		Name:   "rollout promote",
		Title:  titleAlpha,
		Reads:  Reads{Runtime: true, Replicas: true},
		Demand: p.demand,
		Refusals: []Refusal{
			pick.refuseNotNative,
			refusePausedCanary,
			refuseMailbox(letItBeConsumed),
			checkConsistent,
			pick.refuseContradiction,
			pick.refuseNoCanary,
			p.refuseGate,
		},
		Change: func(ev *Evidence) Change {
			c := pick.find(ev)
			if c == nil || c.status == nil || !hashForm.MatchString(c.status.CanaryRevisionHash) {
				return Change{}
			}
			return Change{Annotations: []Annotation{{Key: v1beta1.RolloutPromoteAnnotation, Value: new(c.status.CanaryRevisionHash)}}}
		},
		Preview: p.preview,
		Result: func(ev *Evidence, res *ActionResult) {
			res.RevisionHash = pick.find(ev).status.CanaryRevisionHash
		},
		Words: rolloutWords,
	}
	if p.Override {
		a.Words.Accepted = "Analysis override: " + a.Words.Accepted
	}
	return a
}

// gate is the kind of gate that the request can pass.
func (p Promotion) gate() plan.Gate {
	if p.Override {
		return plan.GateAnalysis
	}
	return plan.GateManual
}

// command is the request as a person would type it.
func (p Promotion) command(ev *Evidence, c *canary, flags ...string) string {
	if p.Group != AnyGroup {
		flags = append([]string{fmt.Sprintf("%s=%d", FlagGroup, c.group)}, flags...)
	}
	return ev.Command("rollout promote", flags...)
}

// refuseGate demands that the canary waits right there for this very request.
func (p Promotion) refuseGate(ev *Evidence) *Error {
	c := canaryPick(p.Group).find(ev)
	see := "to see it: " + ev.Command("rollout explain")
	message := MsgPromoteGate
	if p.ReleaseHold {
		message = MsgNoHold
	}
	no := func(details ...string) *Error { return Refuse(message, append(details, see)...) }
	step, st := c.step(), c.status
	switch {
	case c.phase == v1beta1.RolloutFailed:
		return no("the canary failed at "+c.at()+": "+Clean(string(st.Failed.Reason)),
			"to return to the stable revision: "+ev.Command("rollout rollback"), "to try again from the first step: "+ev.Command("rollout retry"))
	case c.phase == v1beta1.RolloutPending:
		return no(c.at() + " waits for its Instances to be ready, and for nobody's promote")
	case st.PromotedThrough != "":
		return no("the promote before this one isn't over: promotedThrough is " + Quote(Clean(st.PromotedThrough)))
	case p.ReleaseHold && !st.PreStepHold:
		return no(c.at()+" isn't held before its weight", "to pass the gate of the step: "+p.command(ev, c))
	case p.ReleaseHold:
		return nil
	case st.PreStepHold:
		return no(fmt.Sprintf("%s is held before its weight: a repin raised it from %d%% to %d%%", c.at(), st.ObservedTrafficWeight, step.Traffic),
			"to release the hold, which passes no gate: "+p.command(ev, c, FlagReleaseHold, "--yes"))
	}
	if e := p.refuseKind(ev, c, no); e != nil {
		return e
	}
	want := v1beta1.RolloutPaused
	if c.last() {
		want = v1beta1.RolloutPromoting
	}
	switch {
	case c.phase != want:
		return no(fmt.Sprintf("%s is %s, and waits for a promote only when it is %s", c.at(), c.phase, want))
	case c.last() && step.Traffic != 100:
		return no(fmt.Sprintf("%s is the last one and its traffic is %d, not 100", c.at(), step.Traffic))
	case st.StepEnteredTime == nil:
		return no(c.at() + " has no stepEnteredTime: its Instances were not all ready yet")
	case st.ObservedTrafficWeight != step.Traffic:
		return no(fmt.Sprintf("the weight of %s is %d%% and %d%% is recorded", c.at(), step.Traffic, st.ObservedTrafficWeight))
	}
	return nil
}

// refuseKind tells what the step waits for instead.
func (p Promotion) refuseKind(ev *Evidence, c *canary, no func(...string) *Error) *Error {
	step, gate := c.step(), plan.StepGate(c.step())
	if gate == p.gate() {
		return nil
	}
	switch gate {
	case plan.GateAnalysis:
		return no(c.at()+" waits at an analysis gate ("+c.budget(step.Analysis)+")",
			"to pass it anyway: "+p.command(ev, c, FlagOverride, "--yes"))
	case plan.GateTimed:
		when := "once its Instances are ready"
		if t := c.status.StepEnteredTime; t != nil {
			when = "at " + utc(t.Add(step.Pause.Duration.Duration))
		}
		return no(fmt.Sprintf("%s waits at a timed gate of %s, which opens by itself %s; no promote shortens it", c.at(), step.Pause.Duration.Duration, when))
	case plan.GateImmediate:
		return no(c.at() + " has no gate: it is passed as soon as its weight is recorded")
	}
	return no(c.at()+" waits at a manual gate, which has no analysis to override", "to pass it: "+p.command(ev, c))
}

func (p Promotion) preview(ev *Evidence) ([]Row, []string) {
	c := canaryPick(p.Group).find(ev)
	hash := c.status.CanaryRevisionHash
	rows := append(serviceRows(ev, "rollout promote"), c.rows(ev)...)
	rows = append(rows, Row{"Set annotation", v1beta1.RolloutPromoteAnnotation}, Row{"Value", Quote(hash)})
	var notes []string
	switch {
	case p.Override:
		notes = append(notes, "ANALYSIS OVERRIDE: bypasses health checks, warm-up and bake of this step, whatever its metrics say.")
	case p.ReleaseHold:
		notes = append(notes, fmt.Sprintf("HOLD RELEASE: the weight of %s becomes %d%%, after %d%%; its gate isn't passed.", c.at(), c.step().Traffic, c.status.ObservedTrafficWeight))
	}
	if !p.ReleaseHold {
		notes = append(notes, c.next())
	}
	notes = append(notes,
		"Note: the controller removes the annotation when it has recorded the advance; until then promote, pause, rollback and scale refuse.",
		"Note: it counts for this revision alone; another target makes it mean nothing.")
	notes = append(notes, ev.pendingRetry()...)
	return rows, append(notes, noteGuard)
}

// next says what comes after the gate.
func (c *canary) next() string {
	if c.last() {
		text := "Note: it is the last step: the canary is complete after it"
		if c.delay > 0 {
			text += fmt.Sprintf(", once it has been in the step for %d s", c.delay)
		}
		return text + ", and can't be rolled back any more."
	}
	next := c.steps[c.status.CurrentStep+1]
	return fmt.Sprintf("Note: it passes one step: the next is %d of %d, capacity %s, weight %d%%, gate %s.",
		c.status.CurrentStep+2, len(c.steps), next.Capacity.String(), next.Traffic, plan.StepGate(&next))
}
