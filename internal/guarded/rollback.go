package guarded

import (
	"fmt"
	"strings"

	"ome.io/ome/api/v1beta1"
)

// Rollback returns every member of a canary to its own stable revision, and keeps the
// revision that it came from away. group is the index of a canary group, or AnyGroup.
func Rollback(group int) *Action {
	pick := canaryPick(group)
	return &Action{
		Name:  "rollout rollback",
		Title: titleAlpha,
		Reads: Reads{Runtime: true, Replicas: true},
		Refusals: []Refusal{
			pick.refuseNotNative,
			refusePausedCanary,
			refuseMailbox(letItBeConsumed),
			checkConsistent,
			pick.refuseContradiction,
			pick.refuseNoCanary,
			pick.refuseNoStable,
		},
		Change: func(ev *Evidence) Change {
			c := pick.find(ev)
			if c == nil || c.status == nil || !hashForm.MatchString(c.status.CanaryRevisionHash) {
				return Change{}
			}
			return Change{Annotations: []Annotation{{Key: v1beta1.RolloutRollbackAnnotation, Value: new(ev.rollbackValue(c))}}}
		},
		Preview: pick.previewRollback,
		Result: func(ev *Evidence, res *ActionResult) {
			res.RevisionHash = pick.find(ev).status.CanaryRevisionHash
		},
		Words: rolloutWords,
	}
}

// rollbackValue means every canary of the service, so where there are several it names
// the revision instead, as a promote does.
func (ev *Evidence) rollbackValue(c *canary) string {
	if len(ev.canaries()) > 1 {
		return c.status.CanaryRevisionHash
	}
	return "true"
}

// refuseNoStable refuses what the controller could only drop.
func (p canaryPick) refuseNoStable(ev *Evidence) *Error {
	c := p.find(ev)
	if f := c.status.Failed; f != nil && f.Reason == v1beta1.CanaryStableRevisionMissing {
		return Refuse(MsgNothingActive, fmt.Sprintf("the canary of pinned group %d failed as %s: the revision to return to, %s, isn't stored any more", c.group, f.Reason, Clean(c.stable)),
			"write the pod settings to return to into the spec; or try the canary again: "+ev.Command("rollout retry"))
	}
	return nil
}

func (p canaryPick) previewRollback(ev *Evidence) ([]Row, []string) {
	c := p.find(ev)
	var rejects, returns []string
	for _, m := range c.members {
		t := target(ev.openRun(), m)
		rejects = append(rejects, string(m)+":"+t.Revision)
		returns = append(returns, string(m)+":"+t.StableRevision)
	}
	value := ev.rollbackValue(c)
	rows := append(serviceRows(ev, "rollout rollback"), c.rows(ev)...)
	rows = append(rows,
		Row{"Rejects", strings.Join(rejects, ",")},
		Row{"Returns to", strings.Join(returns, ",")},
		Row{"Set annotation", v1beta1.RolloutRollbackAnnotation},
		Row{"Value", Quote(value)},
	)
	notes := []string{
		"Note: every Instance of these components goes back to the stable revision, within the usual budgets; those not yet replaced serve on.",
		"Note: the spec isn't touched and still asks for the rejected revision, which stays away until another target comes or rollout retry asks for it.",
		"Note: the request stays while the canary rolls back; promote, pause, repin, scale and migration refuse meanwhile.",
	}
	if value != "true" {
		notes = append(notes, fmt.Sprintf("Note: the other canary groups of run %s go on.", ev.openRun().RunID))
	}
	notes = append(notes, ev.pendingRetry()...)
	return rows, append(notes, noteGuard)
}
