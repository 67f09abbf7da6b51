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
	skips          bool
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
			pools = append(pools, &pool{Member: m, serving: int64(m.Census.Serving), coming: int64(m.Census.Coming),
				skips: m.Strategy == v1beta1.InPlaceIfPossible || m.Strategy == v1beta1.InPlaceOnly})
		}
	}
	if len(pools) < 2 {
		return
	}
	allotStarts(pools, tolerance)
	allotDrains(pools, tolerance)
	breakTie(pools)
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
		counts(pools), tolerance, p.needed(pools, p.serving-1, true))}
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
// within tolerance of the wanted one.
func (p *pool) inBand(pools []*pool, n int64, of func(*pool) int64, tolerance int64) bool {
	for _, q := range pools {
		if q == p || of(q) == 0 {
			continue
		}
		// n/q against p.desired/q.desired, both times q*q.desired*100
		have, want := n*q.desired()*100, p.desired()*of(q)
		if have < want*(100-tolerance) || have > want*(100+tolerance) {
			return false
		}
	}
	return true
}

// allotStarts hands out starts one by one to the member that is furthest behind. A
// surge that leaves the band is still let through from balance: else a ratio as 2:1
// with no tolerance could never take its first step.
func allotStarts(pools []*pool, tolerance int64) {
	order := slices.Clone(pools)
	slices.SortStableFunc(order, func(a, b *pool) int {
		return int(int64(a.UpdatedReady)*b.desired() - int64(b.UpdatedReady)*a.desired())
	})
	all := func(p *pool) int64 { return p.serving + p.coming }
	for moved := true; moved; {
		moved = false
		for _, p := range order {
			if p.skips || !p.Behind || int64(p.starts) >= p.desired() || p.ahead(pools, tolerance) != nil {
				continue
			}
			surge := p.Strategy == v1beta1.SurgeThenDrain
			next := all(p) - 1
			if surge {
				next = all(p) + 1
			}
			switch {
			case p.inBand(pools, next, all, tolerance):
			case surge && balanced(pools):
			case !surge && p.starts == 0 && balanced(pools) && p.inBand(pools, next, all, 2*tolerance):
			default:
				continue
			}
			p.starts++
			if surge {
				p.coming++
			} else {
				p.serving--
			}
			moved = true
		}
	}
	for _, p := range pools { // what was handed out has not happened yet
		p.serving, p.coming = int64(p.Census.Serving), int64(p.Census.Coming)
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

// allotDrains hands out drains of old pods whose successors serve, within the band, and
// one of them within twice the band.
func allotDrains(pools []*pool, tolerance int64) {
	serving := func(p *pool) int64 { return p.serving }
	for moved := true; moved; {
		moved = false
		for _, p := range pools {
			if p.skips || int64(p.drains) >= p.desired() || p.serving <= 0 {
				continue
			}
			if !p.inBand(pools, p.serving-1, serving, tolerance) &&
				!(p.drains == 0 && p.inBand(pools, p.serving-1, serving, 2*tolerance)) {
				continue
			}
			p.drains++
			p.serving--
			moved = true
		}
	}
	for _, p := range pools {
		p.serving = int64(p.Census.Serving)
	}
}

// breakTie lets one surplus pod go when nothing else may move and nobody is short of
// pods: a change of the wanted counts in the middle of a roll can leave such a state.
func breakTie(pools []*pool) {
	var surplus *pool
	for _, p := range pools {
		if p.starts > 0 || p.drains > 0 || p.serving < p.desired() {
			return
		}
		if surplus == nil && !p.skips && p.serving > p.desired() {
			surplus = p
		}
	}
	if surplus != nil {
		surplus.drains = 1
	}
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
