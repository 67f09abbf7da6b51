package rollout

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
)

// Weighed are the components whose pods have to be counted before Decide: those of a
// group with a ratio, and engine and decoder while one of them moves under a token.
func Weighed(in Input, live plan.Resolution) map[v1beta1.ComponentType]bool {
	var out map[v1beta1.ComponentType]bool
	add := func(list ...v1beta1.ComponentType) {
		if out == nil {
			out = map[v1beta1.ComponentType]bool{}
		}
		for _, c := range list {
			out[c] = true
		}
	}
	weigh := func(groups []v1beta1.RunGroup) {
		for i := range groups {
			if g := &groups[i].Group; g.MaintainRatio != nil {
				add(g.Components...)
			}
		}
	}
	// The run may end in this very pass, and the next one has the live plan.
	weigh(live.Plan.Groups)
	if in.Previous != nil && in.Previous.ActiveRun != nil {
		weigh(in.Previous.ActiveRun.Plan.Groups)
	}
	for _, c := range []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent} {
		if m := in.member(c); m != nil && m.Behind && m.Token != "" {
			add(v1beta1.EngineComponent, v1beta1.DecoderComponent)
		}
	}
	return out
}

// pairing keeps an engine and decoder that understand each other serving while their
// token changes. It bounds drains only: a new pod always comes up, so the bounds can't
// wait for each other.
func pairing(res *Result, in Input) {
	engine, decoder := in.member(v1beta1.EngineComponent), in.member(v1beta1.DecoderComponent)
	if engine == nil || decoder == nil || in.SkipPairing {
		return
	}
	pairingOf(res, engine, decoder)
	pairingOf(res, decoder, engine)
}

// pairingOf bounds the drains of one component by what its peer serves.
func pairingOf(res *Result, c, peer *Member) {
	to := c.Token
	if to == "" || c.Strategy != v1beta1.SurgeThenDrain {
		return // without a surge there is no new pod to wait for
	}
	if offered(c, to) > 0 && offered(peer, to) > 0 {
		return
	}
	kept := keptToken(c, peer, to)
	for _, from := range slices.Sorted(maps.Keys(c.Census.ByToken)) {
		serving := c.Census.ByToken[from]
		if from == "" || from == to || serving == 0 || pairs(peer, from) == 0 {
			continue
		}
		if kept != "" && from != kept {
			continue
		}
		left, reason := int32(math.MaxInt32), ""
		if offered(peer, to) == 0 && peer.Strategy == v1beta1.SurgeThenDrain {
			left, reason = 0, fmt.Sprintf(
				"pairing protocol transition to %q: the replacement %s cannot pair because no serving %s runs cohort %q yet; holding the drain of the serving %s of cohort %q until one does",
				to, c.Component, peer.Component, to, c.Component, from)
		} else {
			left, reason = serving-1, fmt.Sprintf(
				"pairing protocol transition to %q: holding the drain of the last serving %s of cohort %q until %q serves on both components",
				to, c.Component, from, to)
		}
		hold := &instance.Hold{Gate: v1beta1.GatePairing, Reason: reason}
		res.change(c.Component, func(p *Permit) {
			p.Drains = &instance.Quota{Left: max(0, left), Hold: hold, Paired: true, Token: from, Spare: serving - 1, Rest: p.Drains}
		})
		for _, due := range []time.Time{c.Census.Due, peer.Census.Due} {
			if !due.IsZero() && (res.Wake.IsZero() || due.Before(res.Wake)) {
				res.Wake = due
			}
		}
	}
}

// keptToken is the older token that both serve most of: one pair is enough, and to keep
// two would leave no name for the pods of a third. It is the same seen from either side.
func keptToken(c, peer *Member, to string) (kept string) {
	most := int32(0)
	for _, t := range slices.Sorted(maps.Keys(c.Census.ByToken)) {
		if n := min(c.Census.ByToken[t], peer.Census.ByToken[t]); t != "" && t != to && n > most {
			kept, most = t, n
		}
	}
	return kept
}

// pairs counts serving pods that understand a token: an empty one understands any.
func pairs(m *Member, token string) int32 {
	return m.Census.ByToken[token] + m.Census.ByToken[""]
}

// offered counts those of them that requests reach: a pod in rotation takes its place
// behind the Service a moment later, and who balances load learns of that later still.
// minReadySeconds says how much.
func offered(m *Member, token string) int32 {
	return pairs(m, token) - m.Census.Unoffered[token] - m.Census.Unoffered[""]
}
