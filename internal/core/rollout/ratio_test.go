package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
)

// ratioPermits are the starts and drains that a ratio leaves engine and decoder.
func ratioPermits(tolerance int32, members ...Member) map[v1beta1.ComponentType]Permit {
	g := v1beta1.RolloutGroup{MaintainRatio: &v1beta1.MaintainRatio{Tolerance: &tolerance}}
	res := Result{Permits: map[v1beta1.ComponentType]Permit{}}
	for _, m := range members {
		g.Components = append(g.Components, m.Component)
		res.Permits[m.Component] = Permit{MaxSurge: instance.NoBudget, MaxUnavailable: instance.NoBudget}
	}
	ratio(&res, Input{Members: members, DefaultTolerance: 5}, &g)
	return res.Permits
}

func pooled(c v1beta1.ComponentType, strategy v1beta1.UpdateStrategyType, desired, updated, serving, coming int32) Member {
	return Member{Component: c, Behind: updated < desired, Desired: desired, UpdatedReady: updated, Strategy: strategy,
		Census: instance.Census{Serving: serving, Coming: coming, Pairs: max(0, serving-desired)}}
}

func TestRatio(t *testing.T) {
	const surge, recreate, inPlace = v1beta1.SurgeThenDrain, v1beta1.RecreatePod, v1beta1.InPlaceIfPossible
	cases := []struct {
		name      string
		tolerance int32
		members   []Member
		// want are starts and drains of each member; - is no bound.
		want []string
	}{
		{"six and three from rest: a surge of either is let through", 20,
			[]Member{pooled(engine, surge, 6, 0, 6, 0), pooled(decoder, surge, 3, 0, 3, 0)}, []string{"1 0", "1 0"}},
		{"without room to drift one Instance at a time moves", 0,
			[]Member{pooled(engine, surge, 4, 0, 4, 0), pooled(decoder, surge, 2, 0, 2, 0)}, []string{"1 0", "0 0"}},
		{"the surged one drains, the other waits", 0,
			[]Member{pooled(engine, surge, 4, 0, 5, 0), pooled(decoder, surge, 2, 0, 2, 0)}, []string{"0 1", "0 0"}},
		{"one that is ahead waits for the other", 25,
			[]Member{pooled(engine, surge, 4, 2, 4, 0), pooled(decoder, surge, 2, 0, 2, 0)}, []string{"0 0", "1 0"}},
		{"within the band both move", 50,
			[]Member{pooled(engine, surge, 4, 0, 4, 0), pooled(decoder, surge, 4, 0, 4, 0)}, []string{"2 0", "2 0"}},
		{"a drain without a surge is held until the tolerance is wide enough", 20,
			[]Member{pooled(engine, recreate, 6, 0, 6, 0), pooled(decoder, recreate, 3, 0, 3, 0)}, []string{"1 0", "0 0"}},
		{"four and two by recreation at five percent: nothing may start", 5,
			[]Member{pooled(engine, recreate, 4, 0, 4, 0), pooled(decoder, recreate, 2, 0, 2, 0)}, []string{"0 0", "0 0"}},
		{"one that changes in place is not bound", 0,
			[]Member{pooled(engine, inPlace, 4, 0, 4, 0), pooled(decoder, surge, 2, 0, 2, 0)}, []string{"- -", "1 0"}},
		{"one adds pods while the other takes some out: the second sees what the first may do", 34,
			[]Member{pooled(engine, surge, 7, 0, 7, 0), pooled(decoder, recreate, 7, 0, 7, 0)}, []string{"2 0", "1 0"}},
		{"no surge beyond the band beside one that takes a pod out", 34,
			[]Member{pooled(engine, surge, 1, 0, 1, 0), pooled(decoder, recreate, 3, 0, 3, 0)}, []string{"0 0", "1 0"}},
		{"by recreation, and one that a surge left drains: no other goes with it", 5,
			[]Member{pooled(engine, recreate, 6, 0, 7, 0), pooled(decoder, recreate, 1, 0, 1, 0)}, []string{"0 1", "0 0"}},
		{"surplus of both with nothing else to do: one leaves", 0,
			[]Member{pooled(engine, surge, 4, 0, 5, 0), pooled(decoder, surge, 2, 0, 3, 0)}, []string{"1 1", "0 0"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			permits := ratioPermits(tc.tolerance, tc.members...)
			for i, m := range tc.members {
				p := permits[m.Component]
				got := "- -"
				if p.Starts != nil {
					got = fmt.Sprint(p.Starts.Left, " ", p.Drains.Left)
				}
				if got != tc.want[i] {
					t.Errorf("%s: starts and drains %s, want %s", m.Component, got, tc.want[i])
				}
			}
		})
	}
}

func TestRatioHoldsNameTheNumber(t *testing.T) {
	p := ratioPermits(5, pooled(engine, v1beta1.RecreatePod, 4, 0, 4, 0), pooled(decoder, v1beta1.RecreatePod, 2, 0, 2, 0))
	want := "drain would skew cross-Component serving ratio past tolerance (serving engine 4 of 4 decoder 2 of 2, 5%); a maintainRatio.tolerance of 13, more replicas, or SurgeThenDrain would let it start"
	if got := p[engine].Starts.Hold; got.Gate != v1beta1.GateRatio || got.Reason != want {
		t.Errorf("%s: %s", got.Gate, got.Reason)
	}
	// What the hold says is true: at that tolerance it starts, one less does not.
	for tolerance, left := range map[int32]int32{12: 0, 13: 1} {
		p := ratioPermits(tolerance, pooled(engine, v1beta1.RecreatePod, 4, 0, 4, 0), pooled(decoder, v1beta1.RecreatePod, 2, 0, 2, 0))
		if p[engine].Starts.Left != left {
			t.Errorf("at %d%% %d starts, want %d", tolerance, p[engine].Starts.Left, left)
		}
	}
	p = ratioPermits(25, pooled(engine, v1beta1.SurgeThenDrain, 4, 2, 4, 0), pooled(decoder, v1beta1.SurgeThenDrain, 2, 0, 2, 0))
	if got := p[engine].Starts.Hold.Reason; !strings.Contains(got, "engine is more than 25% further through its rollout than decoder (2 of 4 against 0 of 2)") {
		t.Error(got)
	}
}

// mover is a member of a model in which pods come up and leave in any order.
type mover struct {
	Member
	updated, surged, coming int32 // surged serve beside their predecessor
	budget                  int32
}

func (m *mover) look() Member {
	out := m.Member
	out.UpdatedReady, out.Behind = m.updated, m.updated < m.Desired
	out.Census = instance.Census{Serving: m.Desired + m.surged, Coming: m.coming, Pairs: m.surged}
	return out
}

// Whatever the numbers, and whatever the order in which pods come up: with a surge some
// member may always step until all are done, and no step leaves the band but from
// balance, or a drain within twice the band.
func TestRatioAlwaysLetsSomebodyStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tolerance := rapid.Int32Range(0, 100).Draw(t, "tolerance")
		var all []*mover
		for _, c := range []v1beta1.ComponentType{engine, decoder, v1beta1.RouterComponent}[:rapid.IntRange(2, 3).Draw(t, "members")] {
			all = append(all, &mover{Member: Member{Component: c, Strategy: v1beta1.SurgeThenDrain, Desired: rapid.Int32Range(1, 40).Draw(t, string(c))},
				budget: rapid.Int32Range(1, 5).Draw(t, "budget")})
		}
		for round := 0; ; round++ {
			done, waiting := true, false
			var look []Member
			for _, m := range all {
				done = done && m.updated == m.Desired
				waiting = waiting || m.coming > 0
				look = append(look, m.look())
			}
			if done {
				return
			}
			if round > 2000 {
				t.Fatalf("not done after %d rounds: %+v", round, look)
			}
			permits := ratioPermits(tolerance, look...)
			moved := false
			for _, m := range all {
				p := permits[m.Component]
				starts := min(p.Starts.Left, m.Desired-m.updated-m.surged-m.coming, m.budget-m.surged-m.coming)
				drains := min(p.Drains.Left, m.surged)
				if n := starts; n > 0 {
					m.coming += rapid.Int32Range(1, n).Draw(t, "started")
					moved = true
				}
				if n := drains; n > 0 {
					n = rapid.Int32Range(1, n).Draw(t, "drained")
					m.surged -= n
					m.updated += n
					moved = true
				}
			}
			if waiting && (!moved || rapid.Bool().Draw(t, "pods come up")) {
				for _, m := range all {
					m.surged, m.coming = m.surged+m.coming, 0
				}
				moved = true
			}
			if !moved {
				t.Fatalf("nobody may step at %d%%: %+v", tolerance, look)
			}
		}
	})
}

// While the old engines wait for a decoder of the new token, the first such decoder comes
// up however narrow the tolerance is: else each would wait for the other.
func TestARatioLetsTheFirstOfATokenComeUp(t *testing.T) {
	side := func(c v1beta1.ComponentType, desired, old, next int32) Member {
		m := pooled(c, v1beta1.SurgeThenDrain, desired, 0, old+next, 0)
		m.Token, m.Census.ByToken = "n", map[string]int32{"o": old, "n": next}
		return m
	}
	zero := int32(0)
	g := v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{engine, decoder}, MaintainRatio: &v1beta1.MaintainRatio{Tolerance: &zero}}
	for name, tc := range map[string]struct {
		engine, decoder Member
		start           int32
	}{
		"four engines and one of the new token, two decoders":   {side(engine, 4, 4, 1), side(decoder, 2, 2, 0), 1},
		"no engine waits yet, and the decoder is not let ahead": {side(engine, 4, 4, 0), side(decoder, 2, 2, 1), 0},
		"a second one is not needed":                            {side(engine, 4, 4, 1), side(decoder, 2, 2, 1), 0},
	} {
		in := Input{Members: []Member{tc.engine, tc.decoder}}
		res := Result{Permits: map[v1beta1.ComponentType]Permit{engine: {}, decoder: {}}}
		pairing(&res, in)
		ratio(&res, in, &g)
		if got := res.Permits[decoder].Starts.Left; got != tc.start {
			t.Errorf("%s: %d decoders may start, want %d", name, got, tc.start)
		}
	}
}

// A member that changes in place is told of once a run, when the run opens.
func TestRatioBypassIsTold(t *testing.T) {
	spec := pd()
	spec.Groups[0].MaintainRatio = &v1beta1.MaintainRatio{}
	e, d := member(engine, "a", "b"), member(decoder, "a", "b")
	e.Strategy, d.Strategy = v1beta1.InPlaceIfPossible, v1beta1.SurgeThenDrain
	in := Input{Now: t0, Seed: "000000000001", Service: "svc", Spec: spec, Members: []Member{e, d}}
	live := plan.Resolve(spec)
	var told []string
	for range 3 {
		res := Decide(in, live)
		for _, ev := range res.Events {
			if ev.Reason == v1beta1.EventRatioGateBypassed {
				told = append(told, ev.Message)
			}
		}
		in.Previous = res.Status
	}
	want := []string{"groups[0].maintainRatio does not hold engine: its strategy InPlaceIfPossible changes Instances in place"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
