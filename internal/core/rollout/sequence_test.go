package rollout

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
)

// turns is a service whose decoder, engine and router take turns.
func turns(soak ...time.Duration) *v1beta1.RolloutSpec {
	spec := &v1beta1.RolloutSpec{}
	for i, c := range []v1beta1.ComponentType{decoder, engine, router} {
		g := v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{c}}
		if i < len(soak) && soak[i] > 0 {
			g.Soak = &metav1.Duration{Duration: soak[i]}
		}
		spec.Groups = append(spec.Groups, g)
	}
	return spec
}

func TestSequence(t *testing.T) {
	failed := func(m Member) Member { m.Failed = true; return m }
	ended := func(c v1beta1.ComponentType, ago time.Duration) v1beta1.ComponentFinish {
		return v1beta1.ComponentFinish{Component: c, Time: metav1.NewTime(t0.Add(time.Hour - ago))}
	}
	cases := []struct {
		name     string
		spec     *v1beta1.RolloutSpec
		finished []v1beta1.ComponentFinish
		members  []Member
		// want is the hold of decoder, engine and router; - is none.
		want [3]string
		wake time.Duration
	}{
		{name: "the first goes, the others wait for it", spec: turns(),
			members: []Member{member(decoder, "a", "b"), member(engine, "a", "b"), member(router, "a", "b")},
			want:    [3]string{"-", "Sequential: Sequential waiting on decoder", "Sequential: Sequential waiting on decoder"}},
		{name: "the next goes when the first has finished in this run", spec: turns(), finished: []v1beta1.ComponentFinish{ended(decoder, time.Minute)},
			members: []Member{member(decoder, "b", "b"), member(engine, "a", "b"), member(router, "a", "b")},
			want:    [3]string{"-", "-", "Sequential: Sequential waiting on engine"}},
		{name: "a finish that is not recorded yet is no finish: the soak counts from it", spec: turns(10 * time.Minute),
			finished: []v1beta1.ComponentFinish{ended(decoder, 48*time.Hour)},
			members:  []Member{member(decoder, "b", "b"), member(engine, "a", "b"), member(router, "a", "a")},
			want:     [3]string{"-", "Sequential: Sequential waiting on decoder", "-"}},
		{name: "the soak is waited out, and its end is a time", spec: turns(10 * time.Minute), finished: []v1beta1.ComponentFinish{ended(decoder, 4*time.Minute)},
			members: []Member{member(decoder, "b", "b"), member(engine, "a", "b"), member(router, "a", "a")},
			want:    [3]string{"-", "Sequential: Sequential.Soak: engine waiting out the 10m0s soak after decoder", "-"}, wake: 6 * time.Minute},
		{name: "the longest soak but the last group's applies at each boundary", spec: turns(time.Minute, 10*time.Minute, time.Hour),
			finished: []v1beta1.ComponentFinish{ended(decoder, 4*time.Minute)},
			members:  []Member{member(decoder, "b", "b"), member(engine, "a", "b"), member(router, "a", "a")},
			want:     [3]string{"-", "Sequential: Sequential.Soak: engine waiting out the 10m0s soak after decoder", "-"}, wake: 6 * time.Minute},
		{name: "one that the change leaves alone is passed over, and its old finish counts", spec: turns(10 * time.Minute),
			finished: []v1beta1.ComponentFinish{ended(engine, 3*time.Minute)},
			members:  []Member{member(decoder, "a", "a"), member(engine, "a", "a"), member(router, "a", "b")},
			want:     [3]string{"-", "-", "Sequential: Sequential.Soak: router waiting out the 10m0s soak after engine"}, wake: 7 * time.Minute},
		{name: "a failed one keeps those after it waiting", spec: turns(),
			members: []Member{failed(member(decoder, "a", "b")), member(engine, "a", "b"), member(router, "a", "a")},
			want:    [3]string{"-", "Sequential: Sequential waiting on decoder", "-"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			active := &v1beta1.RolloutRun{RunID: "svc-1", OpenedAt: metav1.NewTime(t0), Plan: plan.Resolve(tc.spec).Plan}
			for _, m := range tc.members {
				// Who runs its target now may have been taken there by this run.
				stable := m.Stable
				if m.Target == "b" {
					stable = "a"
				}
				active.TargetRevisions = append(active.TargetRevisions, v1beta1.RunTarget{Component: m.Component, Revision: m.Target, StableRevision: stable})
			}
			res := Decide(Input{Now: t0.Add(time.Hour), Service: "svc", Spec: tc.spec, Previous: &v1beta1.RolloutStatus{ActiveRun: active}, Members: tc.members,
				Coordination: &v1beta1.RolloutCoordinationStatus{Groups: []v1beta1.CoordinationGroupStatus{{Name: "0", LastFinished: tc.finished}}},
			}, plan.Resolve(tc.spec))
			for i, c := range []v1beta1.ComponentType{decoder, engine, router} {
				got := "-"
				if h := res.Permits[c].Hold; h != nil {
					got = string(h.Gate) + ": " + h.Reason
				}
				if got != tc.want[i] {
					t.Errorf("%s: %q, want %q", c, got, tc.want[i])
				}
			}
			if tc.wake == 0 && !res.Wake.IsZero() || tc.wake > 0 && !res.Wake.Equal(t0.Add(time.Hour+tc.wake)) {
				t.Errorf("wakes at %v", res.Wake)
			}
		})
	}
}

func TestAMemberFinishesOncePerRun(t *testing.T) {
	spec := turns()
	active := &v1beta1.RolloutRun{RunID: "svc-1", OpenedAt: metav1.NewTime(t0), Plan: plan.Resolve(spec).Plan, TargetRevisions: []v1beta1.RunTarget{
		{Component: decoder, Revision: "b", StableRevision: "a"}, {Component: engine, Revision: "b", StableRevision: "a"}, {Component: router, Revision: "a", StableRevision: "a"}}}
	res := Result{Configured: true, Status: &v1beta1.RolloutStatus{ActiveRun: active}}
	settled, moving := Progress{}, Progress{Changing: true}
	settled.Settled = true
	progress := map[v1beta1.ComponentType]Progress{decoder: settled, engine: moving, router: settled}
	first, _ := Coordinate(Input{Now: t0.Add(time.Minute), Spec: spec}, res, plan.Resolve(spec), nil, progress)
	g := first.Groups[0]
	if len(g.LastFinished) != 1 || g.LastFinished[0].Component != decoder || g.Policy != v1beta1.CoordinationSequential ||
		g.CurrentComponent != engine || g.PreviousComponent != decoder || len(first.Groups) != 1 {
		t.Errorf("%+v", g)
	}
	again, _ := Coordinate(Input{Now: t0.Add(time.Hour), Spec: spec}, res, plan.Resolve(spec), first, progress)
	if got := again.Groups[0].LastFinished[0].Time; !got.Time.Equal(t0.Add(time.Minute)) {
		t.Errorf("finished again at %v", got)
	}
}

// A token can't change in turns: the first member's old pods wait for a peer that waits
// for its turn. The hold says what to do about it.
func TestASequenceThatWaitsForAPairSaysSo(t *testing.T) {
	side := func(c v1beta1.ComponentType, serving map[string]int32) Member {
		m := member(c, "a", "b")
		m.Strategy, m.Token, m.Census = v1beta1.SurgeThenDrain, "n", instance.Census{ByToken: serving}
		return m
	}
	in := Input{Members: []Member{side(decoder, map[string]int32{"o": 1, "n": 1}), side(engine, map[string]int32{"o": 1})}}
	res := Result{Permits: map[v1beta1.ComponentType]Permit{engine: {}, decoder: {}}}
	pairing(&res, in)
	groups := turns().Groups[:2]
	sequence(&res, in, run("b", "b"), groups, plan.Units(groups)[0])
	want := "Sequential waiting on decoder, whose old pods wait for a peer of the new pairingProtocol; put engine and decoder into one blueGreen group, which takes effect with the next target"
	if got := res.Permits[engine].Hold; got == nil || got.Reason != want {
		t.Errorf("%+v", got)
	}
}
