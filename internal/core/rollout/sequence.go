package rollout

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
)

// sequence lets the members of a unit take turns. A member with nothing to roll is
// passed over; what it finished earlier still counts for the soak after it.
func sequence(res *Result, in Input, run *v1beta1.RolloutRun, groups []v1beta1.RolloutGroup, u plan.Unit) {
	soak := soakOf(groups, u)
	members := u.Components(groups)
	for k, c := range members {
		m := in.member(c)
		if m == nil || !m.Behind || k == 0 {
			continue
		}
		hold := func(format string, args ...any) {
			res.change(c, func(p *Permit) {
				if p.Hold == nil {
					p.Hold = &instance.Hold{Gate: v1beta1.GateSequential, Reason: fmt.Sprintf(format, args...)}
				}
			})
		}
		if before := unfinished(in, run, members[:k]); before != "" {
			hold("Sequential waiting on %s%s", before, apart(res, before))
			continue
		}
		previous := members[k-1]
		if end := finishedAt(in.Coordination, previous); soak > 0 && !end.IsZero() && in.Now.Before(end.Add(soak)) {
			hold("Sequential.Soak: %s waiting out the %s soak after %s", c, soak, previous)
			if due := end.Add(soak); res.Wake.IsZero() || due.Before(res.Wake) {
				res.Wake = due
			}
		}
	}
}

// apart is the way out for a member that waits for one which a pairing holds: they can't
// change their token in turns, and admission refuses it in one edit.
func apart(res *Result, before v1beta1.ComponentType) string {
	if q := res.Permits[before].Drains; q == nil || q.Left > 0 || q.Hold.Gate != v1beta1.GatePairing {
		return ""
	}
	return ", whose old pods wait for a peer of the new pairingProtocol; put engine and decoder into one blueGreen group, which takes effect with the next target"
}

// soakOf is the longest soak of any group but the last; it applies at every boundary.
func soakOf(groups []v1beta1.RolloutGroup, u plan.Unit) (most time.Duration) {
	for _, i := range u.Groups[:len(u.Groups)-1] {
		if s := groups[i].Soak; s != nil {
			most = max(most, s.Duration)
		}
	}
	return most
}

// unfinished is the first member that a later one has to wait for, "" when none: one
// that has a change to roll, that is not healthy, or whose finish in this run is not
// recorded yet, since the soak counts from there.
func unfinished(in Input, run *v1beta1.RolloutRun, members []v1beta1.ComponentType) v1beta1.ComponentType {
	for _, c := range members {
		m := in.member(c)
		switch {
		case m == nil:
		case m.Behind, m.Failed, m.Unreadable:
			return c
		case changedIn(run, c) && !m.Settled:
			return c
		case changedIn(run, c):
			if end := finishedAt(in.Coordination, c); end.Before(&run.OpenedAt) {
				return c
			}
		}
	}
	return ""
}

// changedIn is true for a member that the run takes to another revision.
func changedIn(run *v1beta1.RolloutRun, c v1beta1.ComponentType) bool {
	for _, t := range run.TargetRevisions {
		if t.Component == c {
			return t.Revision != t.StableRevision
		}
	}
	return false
}

// finishedAt is when the component last finished a rollout; zero when it never did.
func finishedAt(s *v1beta1.RolloutCoordinationStatus, c v1beta1.ComponentType) (last metav1.Time) {
	if s == nil {
		return last
	}
	for i := range s.Groups {
		for _, f := range s.Groups[i].LastFinished {
			if f.Component == c && last.Before(&f.Time) {
				last = f.Time
			}
		}
	}
	return last
}
