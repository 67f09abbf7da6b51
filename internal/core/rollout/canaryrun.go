package rollout

import (
	"maps"
	"slices"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/plan"
)

// canaries steps every canary of the open run, and keeps the rejected ones where they are.
func canaries(res *Result, in *Input) {
	seen := map[v1beta1.ComponentType]bool{}
	if run := res.Status.ActiveRun; run != nil {
		groups := plan.GroupsOf(run.Plan)
		for _, u := range plan.Units(groups) {
			if u.Kind != plan.UnitCanary {
				continue
			}
			if c := newStepper(res, in, run, &groups[u.Index()], u.Index()); c != nil {
				seen[c.primary] = true
				c.step()
				c.publish()
			}
		}
	}
	for _, primary := range slices.Sorted(maps.Keys(in.Canaries)) {
		r := in.Canaries[primary]
		switch {
		case seen[primary]:
		case Rejected(r.Status):
			c := &stepper{res: res, in: in, primary: primary, st: *r.Status, phase: r.Phase}
			for _, m := range r.Status.Members {
				c.member(m.Component)
			}
			c.step()
			c.publish()
		case !InFlight(r.Status), in.Pause != NotPaused, res.ParkReason != "":
		default:
			// The spec went back to the stable revisions, or rolls them out another way.
			res.keepCanary(primary, Canary{CanaryRecord: CanaryRecord{Phase: v1beta1.RolloutStable}})
		}
	}
	leftovers(res, in)
}

func (res *Result) keepCanary(primary v1beta1.ComponentType, c Canary) {
	if res.Canaries == nil {
		res.Canaries = map[v1beta1.ComponentType]Canary{}
	}
	res.Canaries[primary] = c
}

// newStepper is nil for a group that has no canary in this run: none of its members
// changes.
func newStepper(res *Result, in *Input, run *v1beta1.RolloutRun, g *v1beta1.RolloutGroup, index int) *stepper {
	c := &stepper{res: res, in: in, run: run, plan: g.Canary, index: index, primary: Primary(g)}
	for _, kind := range g.Components {
		c.member(kind)
	}
	r := in.Canaries[c.primary]
	if Rejected(r.Status) && c.held() {
		c.st, c.phase = *r.Status, r.Phase
		return c
	}
	if g.Canary == nil || len(g.Canary.Steps) == 0 || !slices.ContainsFunc(g.Components, func(k v1beta1.ComponentType) bool { return changedIn(run, k) }) {
		return nil
	}
	id := targetID(run, g.Components)
	if r.Status != nil && r.Status.TargetID == id && !Rejected(r.Status) {
		c.st, c.phase = *r.Status, r.Phase
		return c
	}
	c.arm(id, r)
	return c
}

// arm starts the canary at its first step.
func (c *stepper) arm(id string, old CanaryRecord) {
	c.st = v1beta1.CanaryStatus{TargetID: id}
	c.phase = v1beta1.RolloutPending
	for _, t := range c.run.TargetRevisions {
		if !slices.ContainsFunc(c.members, func(m *Member) bool { return m.Component == t.Component }) {
			continue
		}
		if t.Component == c.primary {
			c.st.CanaryRevisionHash, c.st.StableRevisionHash = t.Revision, t.StableRevision
		}
		c.st.Members = append(c.st.Members, v1beta1.CanaryMember{Component: t.Component, Stable: t.StableRevision})
	}
	if old.Status != nil {
		// Requests that were answered stay answered until their annotation is gone.
		c.st.PromotedThrough, c.st.LastRequest = old.Status.PromotedThrough, old.Status.LastRequest
		if c.in.retries(old.Status) {
			c.answer(v1beta1.RolloutResumeAnnotation, *c.in.Resume, outcomeRetried)
			c.event(false, v1beta1.EventCanaryRetried, "the canary of %s starts again at step 1 with %s", c.primary, c.st.CanaryRevisionHash)
		}
	}
}

// clampAll takes the canaries along when another plan is pinned under them: a step that
// is past the end becomes the last one, and a higher weight waits for a promote. A
// re-render holds or tightens exposure and never raises it.
func clampAll(in *Input, groups []v1beta1.RolloutGroup) {
	for i := range groups {
		g := &groups[i]
		if g.Canary == nil || len(g.Canary.Steps) == 0 {
			continue
		}
		r := in.Canaries[Primary(g)]
		if !InFlight(r.Status) {
			continue
		}
		st := *r.Status
		st.CurrentStep = min(st.CurrentStep, int32(len(g.Canary.Steps)-1))
		if g.Canary.Steps[st.CurrentStep].Traffic > st.ObservedTrafficWeight && st.StepEnteredTime != nil {
			st.PreStepHold = true
			analysis.Restart(&st)
		}
		in.Canaries = maps.Clone(in.Canaries)
		in.Canaries[Primary(g)] = CanaryRecord{Status: &st, Phase: r.Phase}
	}
}

// terminal is true for a canary that has nothing more to do in the run.
func (res *Result) terminal(g *v1beta1.RolloutGroup, in *Input) bool {
	c, ok := res.Canaries[Primary(g)]
	switch {
	case ok && c.Phase == v1beta1.RolloutRolledBack:
		return true
	case ok && Rejected(c.Status), ok && InFlight(c.Status):
		return false
	}
	for _, kind := range g.Components {
		if m := in.member(kind); m != nil && (m.Unreadable || !m.Settled || m.Behind) {
			return false
		}
	}
	return true
}
