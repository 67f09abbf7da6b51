package guarded

import (
	"fmt"
	"strings"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/revision"
)

// Messages of retry, which is ours, beside the shared ones.
const (
	MsgRetryNothing = "action refused: retry requires a failed or rolled-back canary whose revision the spec still asks for"
	MsgRetryPending = "action refused: a rollout retry mailbox is already present"
)

// retryCanary is a canary that gave its target up.
type retryCanary struct {
	canary
	// inPlan is false when no group of the plan has the component any more.
	inPlan bool
}

// retryable lists the canaries that failed or were rejected. A rejected one has no run
// any more, so its record is what is known of it.
func (ev *Evidence) retryable() []retryCanary {
	groups := ev.liveGroups()
	if run := ev.openRun(); run != nil {
		groups = plan.GroupsOf(run.Plan)
	}
	var out []retryCanary
	for _, primary := range []v1beta1.ComponentType{v1beta1.RouterComponent, v1beta1.EngineComponent, v1beta1.DecoderComponent} {
		st, ok := ev.Service.Status.Components[primary]
		if !ok || st.Canary == nil || st.Canary.Failed == nil && st.Canary.RolledBackRevisionHash == "" {
			continue
		}
		c := retryCanary{canary: canary{group: AnyGroup, primary: primary, phase: st.RolloutPhase, status: st.Canary, stable: st.Canary.StableRevisionHash}}
		for i := range groups {
			g := &groups[i]
			if plan.Kind(g) == v1beta1.ProgressionCanary && plan.CanaryPrimary(g.Components) == primary {
				c.group, c.members, c.inPlan = i, g.Components, true
				if g.Canary != nil {
					c.steps = g.Canary.Steps
				}
			}
		}
		out = append(out, c)
	}
	return out
}

// retryPick says which canary is to be tried again.
type retryPick int

func (p retryPick) find(ev *Evidence) *retryCanary {
	all := ev.retryable()
	for i := range all {
		if p == AnyGroup || all[i].group == int(p) {
			return &all[i]
		}
	}
	return nil
}

// hash is the revision that is tried again.
func (c *retryCanary) hash() string {
	if h := c.status.RolledBackRevisionHash; h != "" {
		return h
	}
	return c.status.CanaryRevisionHash
}

// Retry asks the controller to try the target of a failed or rejected canary again,
// from the first step. It has nothing to do with Resume, which lifts a pause. group is
// the index of a canary group, or AnyGroup.
func Retry(group int) *Action {
	pick := retryPick(group)
	return &Action{
		Name:  "rollout retry",
		Title: titleAlpha,
		Reads: Reads{Runtime: true, Replicas: true},
		Refusals: []Refusal{
			pick.refuseNotNative,
			refusePausedCanary,
			refuseMailbox(letItBeConsumed),
			refuseRetryPending,
			checkConsistent,
			pick.refuseContradiction,
			pick.refuseNothing,
			pick.refuseOtherTarget,
		},
		Change: func(ev *Evidence) Change {
			c := pick.find(ev)
			if c == nil || !hashForm.MatchString(c.hash()) {
				return Change{}
			}
			return Change{Annotations: []Annotation{{Key: v1beta1.RolloutResumeAnnotation, Value: new(ev.retryValue(c))}}}
		},
		Preview: pick.preview,
		Result: func(ev *Evidence, res *ActionResult) {
			res.RevisionHash = pick.find(ev).hash()
		},
		Words: rolloutWords,
	}
}

// retryValue names the revision, and where another canary could be meant its component.
func (ev *Evidence) retryValue(c *retryCanary) string {
	if len(ev.retryable()) > 1 {
		return string(c.primary) + "=" + c.hash()
	}
	return c.hash()
}

func refuseRetryPending(ev *Evidence) *Error {
	v, ok := ev.Annotation(v1beta1.RolloutResumeAnnotation)
	if !ok {
		return nil
	}
	return Refuse(MsgRetryPending, "annotation "+v1beta1.RolloutResumeAnnotation+" is "+Quote(Clean(v)), letItBeConsumed(ev))
}

func (p retryPick) refuseNotNative(ev *Evidence) *Error {
	if c := p.find(ev); c != nil {
		return ev.refuseRaw(&c.canary)
	}
	return nil
}

// refuseContradiction demands one canary, whose record agrees with itself.
func (p retryPick) refuseContradiction(ev *Evidence) *Error {
	all := ev.retryable()
	if p == AnyGroup && len(all) > 1 {
		var at []string
		for _, c := range all {
			at = append(at, fmt.Sprintf("%d (%s)", c.group, c.primary))
		}
		return Refuse(MsgStale, "several canaries can be tried again: groups "+strings.Join(at, " and "), "name one of them with "+FlagGroup)
	}
	c := p.find(ev)
	if c == nil {
		return nil
	}
	stale := func(format string, args ...any) *Error {
		return Refuse(MsgStale, fmt.Sprintf("canary of component %s: ", c.primary)+fmt.Sprintf(format, args...), ev.waitForController())
	}
	rejected := c.phase == v1beta1.RolloutRollingBack || c.phase == v1beta1.RolloutRolledBack
	switch {
	case c.status.ObservedGeneration != 0 && c.status.ObservedGeneration != ev.Service.Generation:
		return stale("its observedGeneration is %d and the service is at generation %d", c.status.ObservedGeneration, ev.Service.Generation)
	case !hashForm.MatchString(c.hash()):
		return stale("%s is no revision hash", Quote(Clean(c.hash())))
	case (c.status.RolledBackRevisionHash != "") != rejected, c.status.Failed != nil && c.phase != v1beta1.RolloutFailed:
		return stale("its phase is %s, failed is %s and rolledBackRevisionHash is %s", Quote(Clean(string(c.phase))),
			presence(c.status.Failed != nil), presence(c.status.RolledBackRevisionHash != ""))
	}
	return nil
}

// refuseNothing demands a canary that has given up and come to rest.
func (p retryPick) refuseNothing(ev *Evidence) *Error {
	c := p.find(ev)
	switch {
	case c == nil && p == AnyGroup:
		return Refuse(MsgRetryNothing, "no canary of the service has failed or was rolled back", "to see it: "+ev.Command("rollout status"),
			"to lift a pause, which is something else: "+ev.Command("rollout resume"))
	case c == nil:
		return Refuse(MsgRetryNothing, fmt.Sprintf("no canary of group %d has failed or was rolled back", int(p)), "to see it: "+ev.Command("rollout status"))
	case !c.inPlan:
		return Refuse(MsgRetryNothing, fmt.Sprintf("component %s is the primary of no canary group any more", c.primary), "to see the plan: "+ev.Command("rollout explain"))
	case c.phase == v1beta1.RolloutRollingBack:
		return Refuse(MsgRetryNothing, "the canary of component "+string(c.primary)+" is still rolling back; it can be tried again when it is RolledBack",
			"to wait for that: "+ev.Command("wait", "--for=rollout=rolled-back", "--timeout=30m"))
	}
	return nil
}

// refuseOtherTarget refuses when the spec moved on: back to the stable revision, or to a
// third one, which starts by itself.
func (p retryPick) refuseOtherTarget(ev *Evidence) *Error {
	wanted := p.find(ev).wanted()
	for _, component := range v1beta1.Components() {
		r, hash := ev.replica(component), wanted[component]
		if r == nil || hash == "" {
			continue
		}
		if got, want := r.Object.Status.UpdateRevision, revision.Name(ev.Name, component, hash); got != want {
			return Refuse(MsgRetryNothing, fmt.Sprintf("the spec asks for revision %s of component %s, and the canary gave up %s", Quote(Clean(got)), component, want),
				"another target than the stable one starts by itself: "+ev.Command("rollout status"))
		}
	}
	return nil
}

// wanted is the set of revisions that the canary moved to, as far as its record says.
func (c *retryCanary) wanted() map[v1beta1.ComponentType]string {
	out := map[v1beta1.ComponentType]string{c.primary: c.hash()}
	if c.status.RolledBackRevisionHash == "" {
		return out
	}
	for _, m := range c.status.Members {
		if m.Rejected != "" {
			out[m.Component] = m.Rejected
		}
	}
	return out
}

func (p retryPick) preview(ev *Evidence) ([]Row, []string) {
	c := p.find(ev)
	state := string(c.phase)
	if c.status.Failed != nil {
		state += " (" + Clean(string(c.status.Failed.Reason)) + ")"
	}
	wanted := c.wanted()
	var again []string
	for _, m := range v1beta1.Components() {
		if hash, ok := wanted[m]; ok {
			again = append(again, string(m)+":"+Clean(hash))
		}
	}
	rows := append(serviceRows(ev, "rollout retry"),
		Row{"Group", fmt.Sprintf("%d (%s)", c.group, componentList(c.members))},
		Row{"Phase", state},
		Row{"Stable", orDash(c.stable)},
		Row{"Canary", c.hash()},
		Row{"Tries again", strings.Join(again, ",")},
	)
	for i := range c.status.MetricResults {
		m := &c.status.MetricResults[i]
		rows = append(rows, Row{"Metric", Clean(m.Name) + ": " + metricVerdict(m)})
	}
	rows = append(rows, Row{"Set annotation", v1beta1.RolloutResumeAnnotation}, Row{"Value", Quote(ev.retryValue(c))})
	notes := []string{
		"Note: this has nothing to do with rollout resume: it lifts no pause, and rollout resume tries no revision again.",
		"Note: the same revision starts again at the first step, with fresh clocks and counters; what made it fail may still be there.",
	}
	if f := c.status.Failed; f != nil && f.Reason == v1beta1.CanaryStableRevisionMissing {
		notes = append(notes, "Note: the stable revision isn't stored any more, so this canary can't be rolled back.")
	}
	return rows, append(notes, noteGuard)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
