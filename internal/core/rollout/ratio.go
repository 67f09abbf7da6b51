package rollout

import (
	"fmt"
	"slices"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
)

// pool is a member on its way through the arithmetic of a ratio.
type pool struct {
	*Member
	// serving counts pods in rotation; coming those that are on their way into it.
	serving, coming int64
	// skips is true for a member that changes in place: it keeps its pods.
	skips bool
	// mayDrain counts old pods whose successors serve and that no pairing keeps; unpaired
	// is true while a pairing keeps some.
	mayDrain       int32
	unpaired       bool
	starts, drains int32
}

func (p *pool) desired() int64 { return int64(p.Desired) }

// ratio bounds what the members of a group may start and drain in this pass, so that
// none gets further ahead than the tolerance, and their serving counts stay in
// proportion to the counts that are wanted now.
func ratio(res *Result, in Input, g *v1beta1.RolloutGroup) {
	tolerance := int64(in.DefaultTolerance)
	if g.MaintainRatio.Tolerance != nil {
		tolerance = int64(*g.MaintainRatio.Tolerance)
	}
	var pools []*pool
	for _, c := range g.Components {
		if m := in.member(c); m != nil && m.Desired > 0 && !m.Unreadable {
			p := &pool{Member: m, serving: int64(m.Census.Serving), coming: int64(m.Census.Coming), mayDrain: m.Census.Pairs,
				skips: skipsRatio(m.Strategy)}
			p.mayDrain = min(p.mayDrain, mayLeave(m, res.Permits[c].Drains))
			p.unpaired = p.mayDrain < m.Census.Pairs
			pools = append(pools, p)
		}
	}
	if len(pools) < 2 {
		return
	}
	allotDrains(pools, tolerance)
	allotStarts(pools, tolerance)
	stepAnyway(pools, tolerance)
	for _, p := range pools {
		if p.skips {
			continue
		}
		res.change(p.Component, func(permit *Permit) {
			permit.Starts = atMost(permit.Starts, p.starts, p.startHold(pools, tolerance))
			permit.Drains = atMost(permit.Drains, p.drains, &instance.Hold{Gate: v1beta1.GateRatio, Reason: fmt.Sprintf(
				"drain would skew cross-Component serving ratio past tolerance (%s, %d%%)", counts(pools), tolerance)})
		})
	}
}

// mayLeave counts the old pods that no pairing keeps.
func mayLeave(m *Member, q *instance.Quota) int32 {
	n := m.Census.Serving
	if q != nil && q.Paired {
		n -= m.Census.ByToken[m.Token]
	}
	for ; q != nil && q.Paired; q = q.Rest {
		n -= m.Census.ByToken[q.Token] - min(q.Left, m.Census.ByToken[q.Token])
	}
	return n
}

// startHold says why no further Instance starts, and which number would let one.
func (p *pool) startHold(pools []*pool, tolerance int64) *instance.Hold {
	if other := p.ahead(pools, tolerance); other != nil {
		return &instance.Hold{Gate: v1beta1.GateRatio, Reason: fmt.Sprintf(
			"%s is more than %d%% further through its rollout than %s (%d of %d against %d of %d); it waits until %s catches up",
			p.Component, tolerance, other.Component, p.UpdatedReady, p.Desired, other.UpdatedReady, other.Desired, other.Component)}
	}
	if p.Strategy == v1beta1.SurgeThenDrain {
		return &instance.Hold{Gate: v1beta1.GateRatio, Reason: fmt.Sprintf(
			"surge would skew cross-Component serving ratio past tolerance (%s, %d%%); it goes on once the pools are back in proportion, and a maintainRatio.tolerance of %d would let it start now",
			counts(pools), tolerance, p.needed(pools, p.serving+p.coming+1, false))}
	}
	return &instance.Hold{Gate: v1beta1.GateRatio, Reason: fmt.Sprintf(
		"drain would skew cross-Component serving ratio past tolerance (%s, %d%%); a maintainRatio.tolerance of %d, more replicas, or SurgeThenDrain would let it start",
		counts(pools), tolerance, p.needed(pools, p.after(1), true))}
}

func counts(pools []*pool) string {
	out := "serving"
	for _, p := range pools {
		out += fmt.Sprintf(" %s %d of %d", p.Component, p.serving, p.Desired)
	}
	return out
}

// ahead is a member that p is too far ahead of, nil for none.
func (p *pool) ahead(pools []*pool, tolerance int64) *pool {
	for _, q := range pools {
		if q == p || !q.Behind {
			continue
		}
		// p.updated/p.desired - q.updated/q.desired > tolerance/100
		lead := int64(p.UpdatedReady)*q.desired() - int64(q.UpdatedReady)*p.desired()
		if lead*100 > tolerance*p.desired()*q.desired() {
			return q
		}
	}
	return nil
}

// inBand is true when the proportion of p to each other member, with p counting n, is
// within tolerance of the wanted one. Each of the counts that the other may soon have
// has to be.
func (p *pool) inBand(pools []*pool, n, tolerance int64) bool {
	for _, q := range pools {
		if q == p {
			continue
		}
		for _, count := range [...]int64{q.least(), q.serving, q.most()} {
			if count <= 0 {
				continue
			}
			// n/count against p.desired/q.desired, both times count*q.desired*100
			have, want := n*q.desired()*100, p.desired()*count
			if have < want*(100-tolerance) || have > want*(100+tolerance) {
				return false
			}
		}
	}
	return true
}

// least and most are the counts between which a member stays, with what it may do in
// this pass.
func (p *pool) least() int64 {
	n := p.serving - int64(p.drains)
	if p.Strategy != v1beta1.SurgeThenDrain {
		n -= int64(p.starts)
	}
	return n
}

func (p *pool) most() int64 {
	n := p.serving + p.coming
	if p.Strategy == v1beta1.SurgeThenDrain {
		n += int64(p.starts)
	}
	return n
}

// Starts are allotted in turn, each against what the members before may do: one that
// adds pods while another takes some out could leave the band together. Drains all go
// one way, so that each is weighed against the others as they are.

// allotDrains lets old pods go whose successors serve.
func allotDrains(pools []*pool, tolerance int64) {
	allotted := make([]int32, len(pools))
	for i, p := range pools {
		n := &allotted[i]
		for !p.skips && *n < p.mayDrain && p.inBand(pools, p.serving-int64(*n)-1, tolerance) {
			*n++
		}
	}
	for i, p := range pools {
		p.drains = allotted[i]
	}
}

// allotStarts lets Instances start that serve now.
func allotStarts(pools []*pool, tolerance int64) {
	for _, p := range pools {
		if p.skips || !p.Behind || p.ahead(pools, tolerance) != nil {
			continue
		}
		for int64(p.starts) < p.desired() && p.inBand(pools, p.after(int64(p.starts)+1), tolerance) {
			p.starts++
		}
	}
}

// after is what p counts once n more of its Instances have started.
func (p *pool) after(n int64) int64 {
	if p.Strategy == v1beta1.SurgeThenDrain {
		return p.serving + p.coming + n
	}
	return p.serving - int64(p.drains) - n
}

// stepAnyway lets one member move where the band leaves it no room: a proportion as 2:1
// without tolerance could never take its first step otherwise. From balance one surge
// is let through, unless another member takes a pod out meanwhile; else, when nobody may
// move, one drain within twice the band. Surplus
// pods of which nobody is short leave in any case: a change of the wanted counts in the
// middle of a roll can leave them. And where old pods wait for a peer of the new token,
// the first of those comes up in any case, or pairing and ratio would wait for each other.
func stepAnyway(pools []*pool, tolerance int64) {
	order := slices.Clone(pools)
	slices.SortStableFunc(order, func(a, b *pool) int { // who is furthest behind comes first
		return int(int64(a.UpdatedReady)*b.desired() - int64(b.UpdatedReady)*a.desired())
	})
	idle, out := true, false
	for _, p := range pools {
		if p.drains > 0 {
			return
		}
		idle = idle && p.starts == 0
		out = out || (p.starts > 0 && p.Strategy != v1beta1.SurgeThenDrain)
	}
	if !out && balanced(pools) {
		for _, p := range order {
			if p.Behind && !p.skips && p.starts == 0 && p.Strategy == v1beta1.SurgeThenDrain && p.ahead(pools, tolerance) == nil {
				p.starts = 1
				return
			}
		}
	}
	short := slices.ContainsFunc(pools, func(p *pool) bool { return p.serving < p.desired() })
	for _, p := range order {
		if p.skips {
			continue
		}
		near := p.inBand(pools, p.serving-1, 2*tolerance)
		switch {
		case p.mayDrain > 0 && (near || (!short && p.serving > p.desired())):
			p.drains = 1
			return
		case idle && near && p.Strategy != v1beta1.SurgeThenDrain && p.Behind && balanced(pools) && p.ahead(pools, tolerance) == nil:
			p.starts = 1
			return
		}
	}
	if !idle || !slices.ContainsFunc(pools, func(p *pool) bool { return p.unpaired }) {
		return
	}
	for _, p := range order {
		if p.Behind && !p.skips && p.Strategy == v1beta1.SurgeThenDrain && p.coming == 0 && p.Token != "" && pairs(p.Member, p.Token) == 0 {
			p.starts = 1
			return
		}
	}
}

// balanced is true while every member serves exactly what is wanted and nothing more is
// on its way.
func balanced(pools []*pool) bool {
	for _, p := range pools {
		if p.serving != p.desired() || p.coming != 0 {
			return false
		}
	}
	return true
}

// needed is the smallest tolerance, in percent, under which p could count n beside what
// the others serve; the escape for a drain halves it.
func (p *pool) needed(pools []*pool, n int64, escape bool) (most int64) {
	for _, q := range pools {
		if q == p || q.serving == 0 {
			continue
		}
		have, want := n*q.desired()*100, p.desired()*q.serving
		off := have - want*100
		if off < 0 {
			off = -off
		}
		percent := (off + want - 1) / want
		if escape {
			percent = (percent + 1) / 2
		}
		most = max(most, percent)
	}
	return most
}

// skipsRatio is true for what changes Instances in place: they keep their pods.
func skipsRatio(s v1beta1.UpdateStrategyType) bool {
	return s == v1beta1.InPlaceIfPossible || s == v1beta1.InPlaceOnly
}

// tellBypass says once a run which members a ratio does not hold: what changes in place
// keeps its pods.
func tellBypass(res *Result, in *Input, run *v1beta1.RolloutRun, g *v1beta1.RolloutGroup, index int) {
	if g.MaintainRatio == nil || len(g.Components) < 2 {
		return
	}
	for _, c := range g.Components {
		if m := in.member(c); m != nil && skipsRatio(m.Strategy) && changedIn(run, c) {
			res.Events = append(res.Events, instance.Event{Reason: v1beta1.EventRatioGateBypassed,
				Message: fmt.Sprintf("groups[%d].maintainRatio does not hold %s: its strategy %s changes Instances in place", index, c, m.Strategy)})
		}
	}
}
