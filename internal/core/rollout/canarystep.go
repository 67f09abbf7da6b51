package rollout

import (
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/instance"
)

// stepper works on one canary for one pass. Its record is a copy: what it points to is
// replaced, never written to.
type stepper struct {
	res *Result
	in  *Input
	// run and plan are nil for a rejected canary whose run is closed.
	run     *v1beta1.RolloutRun
	plan    *v1beta1.GroupCanary
	index   int
	primary v1beta1.ComponentType
	members []*Member
	st      v1beta1.CanaryStatus
	phase   v1beta1.RolloutPhase
}

func (c *stepper) member(kind v1beta1.ComponentType) {
	if m := c.in.member(kind); m != nil {
		c.members = append(c.members, m)
	}
}

// held is true while the members are kept on their stable revisions.
func (c *stepper) held() bool {
	return slices.ContainsFunc(c.members, func(m *Member) bool { return m.Held })
}

// publish hands the record on; an unchanged one is the very object that was read.
func (c *stepper) publish() {
	c.st.ObservedGeneration = c.in.Generation
	out := Canary{CanaryRecord: CanaryRecord{Status: &c.st, Phase: c.phase}}
	if old := c.in.Canaries[c.primary].Status; old != nil && apiequality.Semantic.DeepEqual(old, &c.st) {
		out.Status = old
	}
	out.Members = append(out.Members, c.primary)
	for _, m := range c.members {
		if m.Component != c.primary {
			out.Members = append(out.Members, m.Component)
		}
	}
	c.res.keepCanary(c.primary, out)
}

// step is the state machine. Order matters: a pause changes nothing, an abort beats a
// promote, and capacity comes before its gate.
func (c *stepper) step() {
	switch {
	case c.in.Pause != NotPaused:
	case Rejected(&c.st):
		c.back()
	case c.asked(c.in.Rollback):
		c.request(v1beta1.RolloutRollbackAnnotation, *c.in.Rollback)
	case c.st.Failed != nil && c.in.retries(&c.st):
		c.arm(c.st.TargetID, CanaryRecord{Status: new(c.st), Phase: c.phase})
		c.walk()
	case c.st.Failed != nil:
		c.phase = v1beta1.RolloutFailed
	case c.complete():
	default:
		c.walk()
	}
	if c.in.Pause == NotPaused {
		c.settlePromote()
	}
	c.pace()
}

func (c *stepper) complete() bool {
	return c.st.StableRevisionHash == "" && c.plan != nil && int(c.st.CurrentStep) >= len(c.plan.Steps)
}

// walk works on the current step: capacity, then weight, then gate.
func (c *stepper) walk() {
	c.st.CurrentStep = max(0, min(c.st.CurrentStep, int32(len(c.plan.Steps)-1)))
	step := &c.plan.Steps[c.st.CurrentStep]
	if short := c.short(); short != "" {
		c.wait(short)
		return
	}
	c.st.CapacityWaitSince = nil
	if c.st.PreStepHold {
		c.phase = v1beta1.RolloutPaused
		if !c.promoted() {
			return
		}
		c.st.PreStepHold = false
		c.usePromote()
	}
	if c.st.StepEnteredTime == nil {
		c.st.StepEnteredTime = &metav1.Time{Time: c.in.Now}
		c.st.ObservedTrafficWeight = step.Traffic
		c.phase = v1beta1.RolloutCanarying
		if c.last() {
			c.phase = v1beta1.RolloutPromoting
		}
		c.wake(c.in.Now) // the gate is looked at in the pass that sees this one's write
		return
	}
	c.gate(step)
}

func (c *stepper) last() bool { return int(c.st.CurrentStep) >= len(c.plan.Steps)-1 }

// short says which member lacks ready Instances for the step; empty when none does.
func (c *stepper) short() string {
	for _, m := range c.members {
		if want := Capacity(c.plan.Steps, int(c.st.CurrentStep), m.Base); m.Unreadable || m.UpdatedReady < want {
			return fmt.Sprintf("%s has %d of %d ready Instances on its new revision", m.Component, m.UpdatedReady, want)
		}
	}
	return ""
}

// wait is for capacity. Whatever ran at the step starts anew once it is back.
func (c *stepper) wait(short string) {
	if c.st.StepEnteredTime != nil {
		c.event(true, v1beta1.EventCanaryCapacityLost, "step %d of %d of the canary of %s waits for capacity again, and its timers start anew then: %s",
			c.st.CurrentStep+1, len(c.plan.Steps), c.primary, short)
		analysis.Restart(&c.st)
	}
	c.phase = v1beta1.RolloutPending
	if c.st.CapacityWaitSince == nil {
		c.st.CapacityWaitSince = &metav1.Time{Time: c.in.Now}
	}
	timeout := c.readyTimeout()
	if timeout <= 0 {
		return
	}
	due := c.st.CapacityWaitSince.Add(timeout)
	if !c.in.Now.After(due) {
		c.wake(due.Add(time.Millisecond))
		return
	}
	c.fail(v1beta1.CanaryCapacityTimeout, fmt.Sprintf("%s after %s", short, timeout))
}

// fail parks the canary where it is: Instances of both revisions stay.
func (c *stepper) fail(reason v1beta1.CanaryFailureReason, detail string) {
	c.st.Failed = &v1beta1.CanaryFailure{Reason: reason, Time: &metav1.Time{Time: c.in.Now}}
	c.phase = v1beta1.RolloutFailed
	c.event(true, v1beta1.EventCanaryFailed, "the canary of %s failed at step %d: %s: %s; apply a fixed revision, roll back, or retry",
		c.primary, c.st.CurrentStep+1, reason, detail)
	c.count(CountCanaryFailed, string(reason))
}

// advance leaves the step, or completes the canary.
func (c *stepper) advance(why string) {
	if !c.last() {
		c.st.CurrentStep++
		c.st.StepEnteredTime = nil
		analysis.Reset(&c.st)
		c.phase = v1beta1.RolloutPending
		c.event(false, v1beta1.EventCanaryStepAdvanced, "the canary of %s goes to step %d of %d (capacity %s): %s",
			c.primary, c.st.CurrentStep+1, len(c.plan.Steps), c.plan.Steps[c.st.CurrentStep].Capacity.String(), why)
		c.count(CountCanaryStep, "")
		c.wake(c.in.Now)
		return
	}
	if !c.rested() {
		return
	}
	c.st.CurrentStep, c.st.StableRevisionHash = int32(len(c.plan.Steps)), ""
	c.phase = v1beta1.RolloutStable
	c.event(false, v1beta1.EventCanaryCompleted, "the canary of %s completed at %s: %s", c.primary, c.st.CanaryRevisionHash, why)
	c.count(CountCanaryComplete, "")
}

// delay keeps a canary from completing for a while after its last step is ready.
func (c *stepper) delay() time.Duration {
	if s := c.plan.ScaleDownDelaySeconds; s != nil && *s > 0 {
		return time.Duration(*s) * time.Second
	}
	return 0
}

// rollback sends every member back to its own stable revision.
func (c *stepper) rollback(cause, detail string) {
	for _, m := range c.st.Members {
		if member := c.in.member(m.Component); member == nil || (member.Has != nil && !member.Has(m.Stable)) {
			c.fail(v1beta1.CanaryStableRevisionMissing, fmt.Sprintf("there is no revision %s of %s to go back to", m.Stable, m.Component))
			return
		}
	}
	c.st.Members = slices.Clone(c.st.Members)
	for i := range c.st.Members {
		for _, t := range c.run.TargetRevisions {
			if t.Component == c.st.Members[i].Component {
				c.st.Members[i].Rejected = t.Revision
			}
		}
	}
	c.st.RolledBackRevisionHash, c.st.ObservedTrafficWeight = c.st.CanaryRevisionHash, 0
	c.st.Failed, c.st.PreStepHold, c.st.CapacityWaitSince = nil, false, nil
	c.phase = v1beta1.RolloutRollingBack
	c.event(true, v1beta1.EventCanaryRollbackStarted, "the canary of %s goes back from %s to %s: %s", c.primary, c.st.CanaryRevisionHash, c.st.StableRevisionHash, detail)
	c.count(CountCanaryRollback, cause)
	c.wake(c.in.Now)
}

// back waits until only stable Instances are left. The hold of the rejected set stays.
func (c *stepper) back() {
	if c.phase == v1beta1.RolloutRolledBack {
		return
	}
	c.phase = v1beta1.RolloutRollingBack
	for _, m := range c.members {
		if !m.Held || m.Unreadable || m.Behind || !m.Settled {
			return
		}
	}
	c.phase = v1beta1.RolloutRolledBack
}

// pace bounds what the Instances of the members may do.
func (c *stepper) pace() {
	for _, m := range c.members {
		switch {
		case Rejected(&c.st):
			for _, s := range c.st.Members {
				if s.Component == m.Component {
					c.res.change(m.Component, func(p *Permit) { p.Aim = s.Stable })
				}
			}
		case c.plan != nil && InFlight(&c.st) && changedIn(c.run, m.Component):
			keep := m.Base - Capacity(c.plan.Steps, int(c.st.CurrentStep), m.Base)
			c.res.change(m.Component, func(p *Permit) { p.Partition = &keep })
		}
	}
}

// readyTimeout is the service's annotation, else the plan's, else the operator's.
func (c *stepper) readyTimeout() time.Duration {
	if d, err := time.ParseDuration(c.in.ReadyTimeout); err == nil && d > 0 {
		return d
	}
	if d := c.plan.ReadyTimeout; d != nil && d.Duration > 0 {
		return d.Duration
	}
	return c.in.DefaultReadyTimeout
}

func (c *stepper) wake(at time.Time) {
	if c.res.Wake.IsZero() || at.Before(c.res.Wake) {
		c.res.Wake = at
	}
}

func (c *stepper) event(warning bool, reason, format string, args ...any) {
	c.res.Events = append(c.res.Events, instance.Event{Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// count asks for a counter of the canary to go up once this pass is stored.
func (c *stepper) count(kind CountKind, label string) {
	c.res.Counts = append(c.res.Counts, Count{Kind: kind, Component: c.primary, Label: label})
}
