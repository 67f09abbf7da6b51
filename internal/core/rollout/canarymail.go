package rollout

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
)

// What became of a request, in a canary's lastRequest.
const (
	outcomePromoted   = "Promoted"
	outcomeRolledBack = "RollingBack"
	outcomeRetried    = "Retried"
	outcomeIgnored    = "Ignored"
)

// ignoredQuiet is how long the same kind of dropped request is not told of again.
const ignoredQuiet = 10 * time.Minute

// answer records a request and has its annotation removed once that is stored.
func (c *stepper) answer(key, value, outcome string) {
	c.st.LastRequest = &v1beta1.CanaryRequest{Key: key, Value: value, Outcome: outcome, Time: metav1.NewTime(c.in.Now)}
	c.res.consume(key, value)
}

func (res *Result) consume(key, value string) {
	if res.Consumed == nil {
		res.Consumed = map[string]string{}
	}
	res.Consumed[key] = value
}

// spent is true for a request that was answered and whose annotation is not gone yet.
func spent(s *v1beta1.CanaryStatus, key, value string) bool {
	r := s.LastRequest
	return r != nil && r.Key == key && r.Value == value && r.Outcome == outcomeRetried
}

// asked is true for a rollback of this canary: "true" means every one, a hash the one
// that rolls it out.
func (c *stepper) asked(rollback *string) bool {
	return rollback != nil && InFlight(&c.st) && (*rollback == "true" || *rollback == c.st.CanaryRevisionHash)
}

// request starts a rollback that a person asked for. Its annotation stays until the
// rollback is done, and keeps every other request away.
func (c *stepper) request(key, value string) {
	c.rollback("manual", "a rollback was asked for")
	if !Rejected(&c.st) {
		c.event(true, v1beta1.EventCanaryRollbackIgnored, "the rollback of %s can't be done: a stable revision is missing", c.primary)
		c.answer(key, value, outcomeIgnored)
		return
	}
	c.st.LastRequest = &v1beta1.CanaryRequest{Key: key, Value: value, Outcome: outcomeRolledBack, Time: metav1.NewTime(c.in.Now)}
}

// promoted is true for a promote of this canary that was not used yet.
func (c *stepper) promoted() bool {
	return c.in.Promote != nil && *c.in.Promote == c.st.CanaryRevisionHash && c.st.PromotedThrough != *c.in.Promote
}

// usePromote spends the promote in the very write that acts on it.
func (c *stepper) usePromote() {
	c.st.PromotedThrough = *c.in.Promote
	c.answer(v1beta1.RolloutPromoteAnnotation, *c.in.Promote, outcomePromoted)
}

// settlePromote looks after a promote that no gate took: one that was used is removed
// until it is seen gone, and one that no gate can use now is dropped, since it would
// pass a later gate that its sender never saw.
func (c *stepper) settlePromote() {
	switch {
	case c.in.Promote == nil:
		c.st.PromotedThrough = ""
	case *c.in.Promote != c.st.CanaryRevisionHash:
	case c.st.PromotedThrough == *c.in.Promote:
		c.res.consume(v1beta1.RolloutPromoteAnnotation, *c.in.Promote)
	case c.phase == v1beta1.RolloutCanarying, c.phase == v1beta1.RolloutPromoting && c.usable():
	case c.phase == v1beta1.RolloutPaused && c.usable():
	case c.shared(*c.in.Promote):
	default:
		if c.quiet(v1beta1.RolloutPromoteAnnotation) {
			c.event(true, v1beta1.EventCanaryPromoteIgnored, "a promote of %s was dropped: the canary of %s is %s and no gate waits for one", *c.in.Promote, c.primary, c.phase)
		}
		c.answer(v1beta1.RolloutPromoteAnnotation, *c.in.Promote, outcomeIgnored)
	}
}

// shared is true while another canary under way has the same hash: the promote may be
// meant for that one.
func (c *stepper) shared(hash string) bool {
	for primary, r := range c.in.Canaries {
		if primary != c.primary && InFlight(r.Status) && r.Status.CanaryRevisionHash == hash {
			return true
		}
	}
	return false
}

// usable is true while the step's gate takes a promote.
func (c *stepper) usable() bool {
	if c.plan == nil || int(c.st.CurrentStep) >= len(c.plan.Steps) || c.st.Failed != nil || Rejected(&c.st) {
		return false
	}
	g := GateOf(&c.plan.Steps[c.st.CurrentStep])
	return c.st.PreStepHold || g == GateManual || g == GateAnalysis
}

// quiet is false shortly after a request of the same kind was dropped.
func (c *stepper) quiet(key string) bool {
	r := c.st.LastRequest
	return r == nil || r.Key != key || r.Outcome != outcomeIgnored || c.in.Now.Sub(r.Time.Time) >= ignoredQuiet
}

// leftovers answers requests that no canary took.
func leftovers(res *Result, in *Input) {
	if in.Pause != NotPaused {
		return
	}
	if in.Promote != nil {
		for _, r := range in.Canaries {
			if r.Status != nil && r.Status.PromotedThrough == *in.Promote {
				res.consume(v1beta1.RolloutPromoteAnnotation, *in.Promote) // used, and its removal was lost
			}
		}
	}
	if in.Rollback != nil {
		leftoverRollback(res, in)
	}
	if in.Resume != nil {
		leftoverRetry(res, in)
	}
}

// leftoverRollback removes a request that is done, or that nothing can do.
func leftoverRollback(res *Result, in *Input) {
	if _, answered := res.Consumed[v1beta1.RolloutRollbackAnnotation]; answered || *in.Rollback == "false" {
		return
	}
	done := false
	for _, c := range res.Canaries {
		if c.Phase == v1beta1.RolloutRollingBack {
			return
		}
		done = done || c.Phase == v1beta1.RolloutRolledBack
	}
	res.consume(v1beta1.RolloutRollbackAnnotation, *in.Rollback)
	if !done {
		res.ignore(in, v1beta1.RolloutRollbackAnnotation, *in.Rollback, v1beta1.EventCanaryRollbackIgnored,
			"a rollback was dropped: no canary of that revision is in flight")
	}
}

// leftoverRetry removes a request that was answered, or that names no canary to retry.
func leftoverRetry(res *Result, in *Input) {
	if _, answered := res.Consumed[v1beta1.RolloutResumeAnnotation]; answered {
		return
	}
	for _, c := range res.Canaries {
		if c.Status != nil && spent(c.Status, v1beta1.RolloutResumeAnnotation, *in.Resume) {
			res.consume(v1beta1.RolloutResumeAnnotation, *in.Resume)
			return
		}
	}
	for _, r := range in.Canaries {
		if r.Phase == v1beta1.RolloutRolledBack && in.retries(r.Status) {
			return // it opens a run as soon as a plan can be pinned
		}
	}
	res.consume(v1beta1.RolloutResumeAnnotation, *in.Resume)
	res.ignore(in, v1beta1.RolloutResumeAnnotation, *in.Resume, v1beta1.EventCanaryRetryIgnored,
		"a retry of "+clip(*in.Resume)+" was dropped: no failed or rolled-back canary has that revision")
}

// ignore tells of a dropped request, once in a while, and records it where there is a
// record.
func (res *Result) ignore(in *Input, key, value, reason, message string) {
	for _, primary := range slices.Sorted(maps.Keys(in.Canaries)) {
		r := in.Canaries[primary]
		if next, ok := res.Canaries[primary]; ok {
			r = next.CanaryRecord
		}
		if r.Status == nil {
			continue
		}
		c := &stepper{res: res, in: in, primary: primary, st: *r.Status, phase: r.Phase}
		for _, m := range c.st.Members {
			c.member(m.Component)
		}
		told := !c.quiet(key)
		c.answer(key, value, outcomeIgnored)
		c.publish()
		if told {
			return
		}
		break
	}
	res.Events = append(res.Events, instance.Event{Warning: true, Reason: reason, Message: message})
}
