package rollout

import (
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
)

// Decide opens, keeps, supersedes or closes the run and says who may move.
func Decide(in Input, live plan.Resolution) Result {
	res := Result{Permits: make(map[v1beta1.ComponentType]Permit, len(in.Members))}
	previous := in.Previous
	if previous == nil {
		previous = &v1beta1.RolloutStatus{}
	}
	open := previous.ActiveRun
	res.Configured = open != nil || (in.Spec != nil && len(in.Spec.Groups) > 0)
	st := new(*previous) // shallow: what changes is replaced, never written to
	st.ObservedGeneration = in.Generation
	st.ObservedPause = string(in.Pause)
	if !apiequality.Semantic.DeepEqual(st.Groups, live.Groups) {
		st.Groups = live.Groups
	}
	res.Status = st

	if open != nil && in.Pause == NotPaused && superseded(open, in.Members) {
		closeRun(&res, in, v1beta1.RunSuperseded)
	}
	if st.ActiveRun == nil && in.Pause == NotPaused && anyBehind(live.Plan, in.Members) {
		if live.Parked() {
			res.ParkReason, res.ParkMessage = live.Reason, live.Message
		} else {
			openRun(&res, &in, live)
		}
	}
	repin(&res, &in, live)
	canaries(&res, &in)
	if run := st.ActiveRun; run != nil && open != nil && run.RunID == open.RunID && in.Pause == NotPaused {
		// A run that opens in this pass has work to do.
		if outcome, ok := finished(&res, &in, run); ok {
			closeRun(&res, in, outcome)
		}
	}
	permit(&res, in, live)
	if in.Previous != nil && says(st, in.Previous) {
		res.Status = in.Previous // the very same object, which is cheap to compare
	}
	return res
}

// says is true when a pass changed nothing of the status it began with. A run that
// opens or closes is another object, and nothing else in it changes.
func says(st, previous *v1beta1.RolloutStatus) bool {
	return st.ObservedGeneration == previous.ObservedGeneration && st.ObservedPause == previous.ObservedPause &&
		st.ActiveRun == previous.ActiveRun && st.LastRun == previous.LastRun &&
		(len(st.Groups) == 0 && len(previous.Groups) == 0 || len(st.Groups) == len(previous.Groups) && &st.Groups[0] == &previous.Groups[0])
}

// superseded is true when a member's target is no longer the run's. What a rejected
// canary keeps back goes back in the run that tried it, whatever the spec says meanwhile.
func superseded(run *v1beta1.RolloutRun, members []Member) bool {
	for _, t := range run.TargetRevisions {
		for _, m := range members {
			if m.Component == t.Component && !m.Unreadable && !m.Held && m.Target != t.Revision {
				return true
			}
		}
	}
	return false
}

// wants is true for the revision that the spec asks for, and for the one that a rejected
// canary keeps the component on.
func (m *Member) wants(hash string) bool {
	return m.Target == hash || (m.Held && m.Spec == hash)
}

// finished is true when every canary of the run has come to an end, and every other
// member that still exists runs its target everywhere.
func finished(res *Result, in *Input, run *v1beta1.RolloutRun) (v1beta1.RunOutcome, bool) {
	outcome := v1beta1.RunCompleted
	for i := range run.Plan.Groups {
		g := &run.Plan.Groups[i].Group
		if g.Canary != nil {
			if !res.terminal(g, in) {
				return "", false
			}
			if c := res.Canaries[Primary(g)]; c.Phase == v1beta1.RolloutRolledBack && rejectedIn(run, c.Status) {
				outcome = v1beta1.RunRolledBack
			}
			continue
		}
		for _, c := range g.Components {
			if m := in.member(c); m != nil && (m.Unreadable || !m.Settled || m.Behind) {
				return "", false
			}
		}
	}
	return outcome, true
}

// rejectedIn is true when it was this run that tried the rejected revisions.
func rejectedIn(run *v1beta1.RolloutRun, s *v1beta1.CanaryStatus) bool {
	for _, m := range s.Members {
		for _, t := range run.TargetRevisions {
			if t.Component == m.Component && t.Revision == m.Rejected && t.Revision != t.StableRevision {
				return true
			}
		}
	}
	return false
}

func grouped(groups []v1beta1.RunGroup, c v1beta1.ComponentType) bool {
	return slices.ContainsFunc(groups, func(g v1beta1.RunGroup) bool { return slices.Contains(g.Group.Components, c) })
}

// anyBehind: some grouped component that already serves a revision has another to roll to.
func anyBehind(p v1beta1.RolloutPlan, members []Member) bool {
	for _, m := range members {
		if m.Behind && !m.Held && m.Stable != "" && grouped(p.Groups, m.Component) {
			return true
		}
	}
	return false
}

func openRun(res *Result, in *Input, live plan.Resolution) {
	now := metav1.NewTime(in.Now)
	run := &v1beta1.RolloutRun{
		RunID:    in.Service + "-" + in.Seed,
		OpenedAt: now, PinnedAt: now,
		Plan: *live.Plan.DeepCopy(),
	}
	for _, m := range in.Members {
		if grouped(run.Plan.Groups, m.Component) {
			run.TargetRevisions = append(run.TargetRevisions, v1beta1.RunTarget{
				Component: m.Component, Revision: m.Target, StableRevision: stableOf(in, &m)})
		}
	}
	res.Status.ActiveRun = run
	clampAll(in, plan.GroupsOf(run.Plan))
	res.Events = append(res.Events, instance.Event{Reason: v1beta1.EventRolloutRunOpened, Message: "run " + run.RunID + " opened"})
	for i := range run.Plan.Groups {
		tellBypass(res, in, run, &run.Plan.Groups[i].Group, i)
	}
}

// stableOf is what the member goes back to. A canary under way remembers it: at its last
// step every Instance runs the new revision, and none of them is trusted yet.
func stableOf(in *Input, m *Member) string {
	for _, r := range in.Canaries {
		if !InFlight(r.Status) {
			continue
		}
		for _, s := range r.Status.Members {
			if s.Component == m.Component && s.Stable != "" {
				return s.Stable
			}
		}
	}
	return m.Stable
}

func closeRun(res *Result, in Input, outcome v1beta1.RunOutcome) {
	st, now := res.Status, metav1.NewTime(in.Now)
	run := st.ActiveRun
	record := &v1beta1.RolloutRunRecord{
		RunID: run.RunID, Outcome: outcome, OpenedAt: &run.OpenedAt, ClosedAt: &now, TargetRevisions: run.TargetRevisions,
	}
	for _, g := range run.Plan.Groups {
		record.Groups = append(record.Groups, v1beta1.RunGroupRecord{Source: g.Source, PolicyRef: g.PolicyRef, PortableDigest: g.PortableDigest})
	}
	st.LastRun, st.ActiveRun = record, nil
	st.History = append([]v1beta1.RolloutRunHistoryEntry{{
		RunID: run.RunID, Outcome: outcome, OpenedAt: &run.OpenedAt, ClosedAt: &now, TargetRevisions: run.TargetRevisions,
	}}, st.History...)
	st.History = st.History[:min(len(st.History), v1beta1.MaxRolloutHistory)]
	res.Events = append(res.Events, instance.Event{
		Reason: v1beta1.EventRolloutRunClosed, Message: fmt.Sprintf("run %s closed: %s", run.RunID, outcome)})
}

// permit words, for each member, whether it may start and how many at one time.
func permit(res *Result, in Input, live plan.Resolution) {
	run := res.Status.ActiveRun
	for _, m := range in.Members {
		p := res.Permits[m.Component]
		p.MaxSurge, p.MaxUnavailable = instance.NoBudget, instance.NoBudget
		switch {
		case m.Held:
		case run != nil && grouped(run.Plan.Groups, m.Component):
			if !targetOf(run, m) {
				p.Hold = waitingForPlan(res)
			}
		case grouped(live.Plan.Groups, m.Component) || (live.Parked() && inSpec(in.Spec, m.Component)):
			if m.Behind && m.Stable != "" {
				p.Hold = waitingForPlan(res)
			}
		}
		res.Permits[m.Component] = p
	}
	groups := plan.GroupsOf(live.Plan)
	if run != nil {
		groups = plan.GroupsOf(run.Plan)
	}
	pairing(res, in) // before the ratio, which has to know whose drains wait for a pair
	for _, u := range plan.Units(groups) {
		for _, i := range u.Groups {
			budgets(res, in, &groups[i], i)
			if groups[i].MaintainRatio != nil && run != nil {
				ratio(res, in, &groups[i])
			}
		}
		if u.Kind == plan.UnitSequence && run != nil {
			sequence(res, in, run, groups, u)
		}
	}
}

// member finds a component's, nil when the service has none.
func (in *Input) member(c v1beta1.ComponentType) *Member {
	for i := range in.Members {
		if in.Members[i].Component == c {
			return &in.Members[i]
		}
	}
	return nil
}

// change edits the permit of a component.
func (res *Result) change(c v1beta1.ComponentType, edit func(*Permit)) {
	p := res.Permits[c]
	edit(&p)
	res.Permits[c] = p
}

func targetOf(run *v1beta1.RolloutRun, m Member) bool {
	for _, t := range run.TargetRevisions {
		if t.Component == m.Component {
			return m.wants(t.Revision)
		}
	}
	return false
}

func inSpec(spec *v1beta1.RolloutSpec, c v1beta1.ComponentType) bool {
	return spec != nil && slices.ContainsFunc(spec.Groups, func(g v1beta1.RolloutGroup) bool {
		return slices.Contains(g.Components, c)
	})
}

func waitingForPlan(res *Result) *instance.Hold {
	if res.ParkReason != "" {
		return &instance.Hold{Gate: v1beta1.GatePlan, Reason: fmt.Sprintf("rollout plan parked: %s: %s", res.ParkReason, res.ParkMessage)}
	}
	return &instance.Hold{Gate: v1beta1.GatePlan, Reason: "waiting for the rollout plan"}
}
