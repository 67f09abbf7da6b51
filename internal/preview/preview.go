package preview

import (
	"cmp"
	"slices"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/sim"
)

// Preview says what would happen.
func Preview(in Input) Result {
	res := run(&in)
	if res.Outcome == Stalls {
		res.Stall.Tolerance = tolerance(&in, &res)
	}
	return res
}

// run plays the change to its end.
func run(in *Input) Result {
	c, ok := begin(in)
	if !ok {
		return Result{Outcome: Endless}
	}
	var res Result
	was := openRun(c.Service().Status.Rollout)
	before := map[v1beta1.ComponentType]Change{}
	for _, kind := range v1beta1.Components() {
		if r := c.Replica(kind); r != nil {
			before[kind] = Change{From: c.RevisionHash(serves(r)), Before: c.Wanted(kind)}
		}
	}
	rec := newRecorder(c)
	res.PodsBefore = rec.pods
	tokens := count(c)
	c.Apply(in.New.Service, in.New.Templates)

	p := newPlayer(c, in.Timing, in.New.Templates)
	p.still += longestWait(in.New)
	p.sampled, p.decided, p.waiting, p.scaled, p.promoted = rec.sample, rec.decided, rec.waits, rec.scaled, rec.promoted
	ended := p.play(func() bool { return reached(c, in.New.Templates) != underWay })

	at := reached(c, in.New.Templates)
	if ended && at == underWay {
		rec.trim()
	}
	res.Took, res.GatesPassed = rec.last().After, rec.passed
	if at != underWay {
		rec.done()
	}
	res.Changes = changes(c, before, in.New)
	res.runs(rec, was)
	res.moves(rec, tokens, in.New)
	switch {
	case !ended:
		res.Outcome = Endless
	case at == atGoal:
		res.Outcome = Completes
	case at == heldBack:
		res.Outcome = Partitioned
	default:
		res.Outcome, res.Stall = Stalls, stall(c, len(res.Moves)-1)
	}
	return res
}

// serves is the revision that a replica runs as a whole, or last aimed at.
func serves(r *v1beta1.InferenceReplica) string {
	if r.Status.CurrentRevision != "" {
		return r.Status.CurrentRevision
	}
	return r.Status.UpdateRevision
}

// longestWait is the longest pause that the new spec itself asks for.
func longestWait(s Spec) (most time.Duration) {
	if r := s.Service.Spec.Rollout; r != nil {
		for i := range r.Groups {
			if d := r.Groups[i].Soak; d != nil {
				most = max(most, d.Duration)
			}
		}
	}
	for _, t := range s.Templates {
		most = max(most, time.Duration(t.MinReadySeconds)*time.Second)
	}
	return most
}

func changes(c *sim.Cluster, before map[v1beta1.ComponentType]Change, s Spec) (out []Change) {
	for _, kind := range v1beta1.Components() {
		ch, had := before[kind]
		t := s.Templates[kind]
		if !had && t == nil {
			continue
		}
		ch.Component = kind
		if r := c.Replica(kind); t != nil && r != nil {
			ch.To, ch.After = c.RevisionHash(r.Status.UpdateRevision), c.Wanted(kind)
			ch.Strategy = v1beta1.SurgeThenDrain
			if u := t.Lifecycle.UpdateStrategy; u != nil && u.Type != "" {
				ch.Strategy = u.Type
			}
		}
		switch {
		case t == nil:
			ch.Kind = Leaves
		case !had:
			ch.Kind = Joins
		case ch.From != ch.To:
			ch.Kind = Updates
		case ch.Before != ch.After:
			ch.Kind = Scales
		default:
			ch.Kind = Stays
		}
		out = append(out, ch)
	}
	return out
}

// runs says which run moved the Instances.
func (res *Result) runs(rec *recorder, was *v1beta1.RolloutRun) {
	switch n := len(rec.ran); {
	case n > 0:
		res.Run, res.Superseded = rec.ran[n-1], was != nil
	case was != nil:
		res.Run, res.Pinned = was, true
		res.Drift = rec.drift
	}
}

// moves turns the record into lines, now that the targets are known.
func (res *Result) moves(rec *recorder, first census, s Spec) {
	to := map[v1beta1.ComponentType]string{}
	kinds := map[v1beta1.ComponentType]ChangeKind{}
	for _, ch := range res.Changes {
		to[ch.Component], kinds[ch.Component] = ch.To, ch.Kind
		res.Extremes = append(res.Extremes, Extreme{ch.Component, rec.least[ch.Component], rec.most[ch.Component]})
	}
	res.LeastPairs, res.MostPods = rec.pairs, rec.pods

	engine, decoder := v1beta1.EngineComponent, v1beta1.DecoderComponent
	moves := func(k v1beta1.ComponentType) bool { return kinds[k] == Updates }
	pieces := func(k v1beta1.ComponentType) bool { return kinds[k] != "" && kinds[k] != Joins && kinds[k] != Leaves }
	res.Paired = pieces(engine) && pieces(decoder) && (moves(engine) || moves(decoder))
	token := ""
	if t := s.Templates[engine]; t != nil && res.Paired {
		token = t.PairingProtocol
		for _, k := range []v1beta1.ComponentType{engine, decoder} {
			for old := range first.of(k).byToken {
				res.PairsByToken = res.PairsByToken || old != token
			}
		}
	}
	for _, l := range rec.lines {
		m := l.Move
		slices.SortStableFunc(m.Actions, func(a, b Action) int {
			return cmp.Or(l.rank(a.Verb)-l.rank(b.Verb), place(a.Component)-place(b.Component))
		})
		m.Pods = l.counts.pods()
		for _, ch := range res.Changes {
			t := l.counts.of(ch.Component)
			m.States = append(m.States, State{ch.Component, t.byHash[ch.To], t.serving - t.byHash[ch.To], t.pods})
		}
		if res.Paired {
			m.Pairs = pairsOf(l.counts, res, to, kinds, token)
		}
		res.Moves = append(res.Moves, m)
	}
}

// pairsOf counts the two cohorts. A component that stays belongs to both.
func pairsOf(c census, res *Result, to map[v1beta1.ComponentType]string, kinds map[v1beta1.ComponentType]ChangeKind, token string) Pairs {
	split := func(k v1beta1.ComponentType) (old, current int32) {
		t := c.of(k)
		switch {
		case res.PairsByToken:
			return t.serving - t.byToken[token], t.byToken[token]
		case kinds[k] == Updates:
			return t.serving - t.byHash[to[k]], t.byHash[to[k]]
		}
		return t.serving, t.serving
	}
	var p Pairs
	p.OldEngines, p.NewEngines = split(v1beta1.EngineComponent)
	p.OldDecoders, p.NewDecoders = split(v1beta1.DecoderComponent)
	return p
}

func place(kind v1beta1.ComponentType) int { return slices.Index(v1beta1.Components(), kind) }
