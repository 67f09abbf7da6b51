package rollout

import (
	"testing"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
)

func TestPairing(t *testing.T) {
	const surge, recreate = v1beta1.SurgeThenDrain, v1beta1.RecreatePod
	of := func(c v1beta1.ComponentType, strategy v1beta1.UpdateStrategyType, token string, serving map[string]int32) Member {
		return Member{Component: c, Strategy: strategy, Token: token, Behind: true, Census: instance.Census{ByToken: serving}}
	}
	cannot := func(c, peer string) string {
		return `pairing protocol transition to "kv-v2": the replacement ` + c + ` cannot pair because no serving ` + peer +
			` runs cohort "kv-v2" yet; holding the drain of the serving ` + c + ` of cohort "kv-v1" until one does`
	}
	last := func(c string) string {
		return `pairing protocol transition to "kv-v2": holding the drain of the last serving ` + c + ` of cohort "kv-v1" until "kv-v2" serves on both components`
	}
	type tokens = map[string]int32
	cases := []struct {
		name            string
		engine, decoder Member
		// drains is what may leave of the engine, -1 for no bound, and why.
		drains int32
		reason string
	}{
		{"the first new engine serves, no decoder does: nothing drains", of(engine, surge, "kv-v2", tokens{"kv-v1": 1, "kv-v2": 1}), of(decoder, surge, "kv-v2", tokens{"kv-v1": 1}), 0, cannot("engine", "decoder")},
		{"the new token serves on both: everything drains", of(engine, surge, "kv-v2", tokens{"kv-v1": 1, "kv-v2": 1}), of(decoder, surge, "kv-v2", tokens{"kv-v1": 1, "kv-v2": 1}), -1, ""},
		{"an old pod that pairs with nobody may go", of(engine, surge, "kv-v2", tokens{"kv-v1": 2}), of(decoder, surge, "kv-v2", tokens{}), -1, ""},
		{"a peer that does not surge: all but the last pair may go", of(engine, surge, "kv-v2", tokens{"kv-v1": 3, "kv-v2": 1}), of(decoder, recreate, "kv-v2", tokens{"kv-v1": 2}), 2, last("engine")},
		{"one of each and a peer that does not surge", of(engine, surge, "kv-v2", tokens{"kv-v1": 1, "kv-v2": 1}), of(decoder, recreate, "kv-v2", tokens{"kv-v1": 1}), 0, last("engine")},
		{"a first token pairs with everybody", of(engine, surge, "kv-v2", tokens{"": 1, "kv-v2": 1}), of(decoder, surge, "kv-v2", tokens{"": 1}), -1, ""},
		{"without a token nothing is held", of(engine, surge, "", tokens{"kv-v1": 1, "": 1}), of(decoder, surge, "", tokens{"kv-v1": 1}), -1, ""},
		{"a component that does not surge holds nothing", of(engine, recreate, "kv-v2", tokens{"kv-v1": 1}), of(decoder, surge, "kv-v2", tokens{"kv-v1": 1}), -1, ""},
		{"the new decoder is in rotation, and no endpoint offers it yet", of(engine, surge, "kv-v2", tokens{"kv-v1": 1, "kv-v2": 1}),
			Member{Component: decoder, Strategy: surge, Token: "kv-v2", Behind: true, Census: instance.Census{ByToken: tokens{"kv-v1": 1, "kv-v2": 1}, Unoffered: tokens{"kv-v2": 1}}}, 0, cannot("engine", "decoder")},
		{"of two older tokens that pair, one is kept", of(engine, surge, "kv-v2", tokens{"kv-v0": 1, "kv-v1": 2}), of(decoder, surge, "kv-v2", tokens{"kv-v0": 2, "kv-v1": 2}), 0, cannot("engine", "decoder")},
		{"an older token that still pairs is held too", of(engine, surge, "kv-v2", tokens{"kv-v0": 1, "kv-v1": 1}), of(decoder, surge, "kv-v2", tokens{"kv-v1": 1}), 0, cannot("engine", "decoder")},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			res := Result{Permits: map[v1beta1.ComponentType]Permit{}}
			pairing(&res, Input{Members: []Member{tc.engine, tc.decoder}})
			q := res.Permits[engine].Drains
			switch {
			case tc.drains < 0 && q != nil:
				t.Errorf("%d drains: %s", q.Left, q.Hold.Reason)
			case tc.drains < 0:
			case q == nil:
				t.Error("drains are not bounded")
			case q.Left != tc.drains || q.Hold.Gate != v1beta1.GatePairing || q.Hold.Reason != tc.reason:
				t.Errorf("%d drains: %s\nwant %d: %s", q.Left, q.Hold.Reason, tc.drains, tc.reason)
			}
			control := Result{Permits: map[v1beta1.ComponentType]Permit{}}
			pairing(&control, Input{Members: []Member{tc.engine, tc.decoder}, SkipPairing: true})
			if len(control.Permits) > 0 {
				t.Errorf("the lab's control holds %+v", control.Permits)
			}
		})
	}
}

// Whatever serves, engine and decoder never both wait for the other.
func TestPairingHoldsDoNotWaitForEachOther(t *testing.T) {
	for e1 := range int32(3) {
		for e2 := range int32(3) {
			for d1 := range int32(3) {
				for d2 := range int32(3) {
					side := func(c v1beta1.ComponentType, old, next int32) Member {
						return Member{Component: c, Strategy: v1beta1.SurgeThenDrain, Token: "n", Behind: true,
							Census: instance.Census{ByToken: map[string]int32{"o": old, "n": next}}}
					}
					res := Result{Permits: map[v1beta1.ComponentType]Permit{}}
					pairing(&res, Input{Members: []Member{side(engine, e1, e2), side(decoder, d1, d2)}})
					if e2 > 0 && d2 > 0 && (res.Permits[engine].Drains != nil || res.Permits[decoder].Drains != nil) {
						t.Errorf("old %d and %d, new %d and %d: held although the new token serves on both", e1, d1, e2, d2)
					}
				}
			}
		}
	}
}

// A run that ends hands over in the same pass: the members of the next plan are counted too.
func TestWeighedCountsForTheRunAndForTheNext(t *testing.T) {
	group := func(c ...v1beta1.ComponentType) v1beta1.RunGroup {
		return v1beta1.RunGroup{Group: v1beta1.RolloutGroup{Components: c, MaintainRatio: &v1beta1.MaintainRatio{}}}
	}
	in := Input{Previous: &v1beta1.RolloutStatus{ActiveRun: &v1beta1.RolloutRun{Plan: v1beta1.RolloutPlan{Groups: []v1beta1.RunGroup{group(engine, decoder)}}}}}
	got := Weighed(in, plan.Resolution{Plan: v1beta1.RolloutPlan{Groups: []v1beta1.RunGroup{group(engine, router)}}})
	for _, c := range []v1beta1.ComponentType{engine, decoder, router} {
		if !got[c] {
			t.Errorf("%s is not counted", c)
		}
	}
}

// What ends a hold by time alone has to wake somebody.
func TestPairingWakesWhenAPeerHasBeenOfferedForLongEnough(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	of := func(c v1beta1.ComponentType, due time.Time) Member {
		return Member{Component: c, Strategy: v1beta1.SurgeThenDrain, Token: "kv-v2", Behind: true, Census: instance.Census{
			ByToken: map[string]int32{"kv-v1": 1, "kv-v2": 1}, Unoffered: map[string]int32{"kv-v2": 1}, Due: due}}
	}
	res := Result{Permits: map[v1beta1.ComponentType]Permit{}, Wake: now.Add(time.Minute)}
	pairing(&res, Input{Members: []Member{of(engine, now.Add(3*time.Second)), of(decoder, now.Add(2*time.Second))}})
	if want := now.Add(2 * time.Second); !res.Wake.Equal(want) {
		t.Errorf("wakes at %v, want %v", res.Wake, want)
	}
}
