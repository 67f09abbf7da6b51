package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
)

const (
	engine  = v1beta1.EngineComponent
	decoder = v1beta1.DecoderComponent
	router  = v1beta1.RouterComponent
)

var t0 = time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)

func pd() *v1beta1.RolloutSpec {
	return &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{{Components: []v1beta1.ComponentType{engine, decoder}}}}
}

func member(c v1beta1.ComponentType, stable, target string) Member {
	return Member{Component: c, Stable: stable, Target: target, Behind: stable != "" && stable != target, Settled: stable == target}
}

// run is a pinned run toward the given engine and decoder hashes.
func run(e, d string) *v1beta1.RolloutRun {
	return &v1beta1.RolloutRun{RunID: "svc-1", OpenedAt: metav1.NewTime(t0), PinnedAt: metav1.NewTime(t0), Plan: plan.Resolve(pd()).Plan,
		TargetRevisions: []v1beta1.RunTarget{{Component: engine, Revision: e, StableRevision: "a"}, {Component: decoder, Revision: d, StableRevision: "a"}}}
}

func TestDecide(t *testing.T) {
	canary := pd()
	canary.Groups[0].Canary = &v1beta1.GroupCanary{Steps: nil}
	cases := []struct {
		name    string
		spec    *v1beta1.RolloutSpec
		pause   Pause
		active  *v1beta1.RolloutRun
		members []Member
		// want: run and what happened to it; then for each member "free", "grouped" or its hold.
		want []string
	}{
		{
			name: "a service without groups has no run, and its components roll on their own", spec: nil,
			members: []Member{member(engine, "a", "b")}, want: []string{"no rollout status", "engine free"},
		},
		{
			name: "the first revision opens no run", spec: pd(),
			members: []Member{member(engine, "", "a"), member(decoder, "", "a")}, want: []string{"no run", "engine grouped", "decoder grouped"},
		},
		{
			name: "a change of one member opens a run that names both", spec: pd(),
			members: []Member{member(engine, "a", "b"), member(decoder, "a", "a"), member(router, "a", "b")},
			want:    []string{"run to engine a->b, decoder a->a", "opened", "engine grouped", "decoder grouped", "router free"},
		},
		{
			name: "a change of the router alone opens none", spec: pd(),
			members: []Member{member(engine, "a", "a"), member(decoder, "a", "a"), member(router, "a", "b")},
			want:    []string{"no run", "engine grouped", "decoder grouped", "router free"},
		},
		{
			name: "a paused service opens no run: its members wait for the plan", spec: pd(), pause: Recover,
			members: []Member{member(engine, "a", "b"), member(decoder, "a", "a")},
			want:    []string{"no run", "engine Plan: waiting for the rollout plan", "decoder grouped"},
		},
		{
			name: "a run stays open while a member is on its way", spec: pd(), active: run("b", "b"),
			members: []Member{member(engine, "b", "b"), member(decoder, "a", "b")},
			want:    []string{"run to engine a->b, decoder a->b", "engine grouped", "decoder grouped"},
		},
		{
			name: "a run closes when all members are on target", spec: pd(), active: run("b", "b"),
			members: []Member{member(engine, "b", "b"), member(decoder, "b", "b")},
			want:    []string{"no run", "closed Completed", "engine grouped", "decoder grouped"},
		},
		{
			name: "a new target supersedes the run and opens the next in the same pass", spec: pd(), active: run("b", "b"),
			members: []Member{member(engine, "a", "c"), member(decoder, "a", "b")},
			want:    []string{"run to engine a->c, decoder a->b", "closed Superseded", "opened", "engine grouped", "decoder grouped"},
		},
		{
			name: "a revert before anything moved closes the run and opens none", spec: pd(), active: run("b", "b"),
			members: []Member{member(engine, "a", "a"), member(decoder, "a", "a")},
			want:    []string{"no run", "closed Superseded", "engine grouped", "decoder grouped"},
		},
		{
			name: "a pause keeps the run as it is, new targets wait", spec: pd(), pause: Freeze, active: run("b", "b"),
			members: []Member{member(engine, "a", "c"), member(decoder, "a", "b")},
			want:    []string{"run to engine a->b, decoder a->b", "engine Plan: waiting for the rollout plan", "decoder grouped"},
		},
		{
			name: "a plan that can't run parks: nothing starts, and the hold says why", spec: canary,
			members: []Member{member(engine, "a", "b"), member(decoder, "a", "a")},
			want:    []string{"no run", "parked PlanInvalid", "engine Plan: rollout plan parked: PlanInvalid", "decoder free"},
		},
		{
			name: "a member that can't be read keeps the run open", spec: pd(), active: run("b", "b"),
			members: []Member{member(engine, "b", "b"), {Component: decoder, Unreadable: true}},
			want:    []string{"run to engine a->b, decoder a->b", "engine grouped", "decoder Plan: waiting for the rollout plan"},
		},
		{
			name: "the groups leave the spec in the middle: the run ends on the plan it pinned", spec: nil, active: run("b", "b"),
			members: []Member{member(engine, "a", "b"), member(decoder, "b", "b")},
			want:    []string{"run to engine a->b, decoder a->b", "engine grouped", "decoder grouped"},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			in := Input{Now: t0, Seed: "0123456789ab", Service: "svc", Generation: 7, Pause: tc.pause, Spec: tc.spec, Members: tc.members}
			if tc.active != nil {
				in.Previous = &v1beta1.RolloutStatus{ActiveRun: tc.active}
			}
			res := Decide(in, plan.Resolve(tc.spec))
			if diff := cmp.Diff(tc.want, describe(t, in, res)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func describe(t *testing.T, in Input, res Result) []string {
	t.Helper()
	var out []string
	switch {
	case !res.Configured:
		out = append(out, "no rollout status")
	case res.Status.ActiveRun == nil:
		out = append(out, "no run")
	default:
		var parts []string
		for _, tr := range res.Status.ActiveRun.TargetRevisions {
			parts = append(parts, fmt.Sprintf("%s %s->%s", tr.Component, tr.StableRevision, tr.Revision))
		}
		out = append(out, "run to "+strings.Join(parts, ", "))
	}
	if res.Status != nil {
		if res.Status.ObservedGeneration != in.Generation || res.Status.ObservedPause != string(in.Pause) {
			t.Errorf("stamps: %+v", res.Status)
		}
		if last := res.Status.LastRun; last != nil {
			out = append(out, "closed "+string(last.Outcome))
			if len(res.Status.History) == 0 || res.Status.History[0].RunID != last.RunID {
				t.Errorf("the closed run is not in the history: %+v", res.Status.History)
			}
		}
	}
	for _, e := range res.Events {
		if e.Reason == v1beta1.EventRolloutRunOpened {
			out = append(out, "opened")
		}
	}
	if res.ParkReason != "" {
		out = append(out, "parked "+res.ParkReason)
	}
	for _, m := range in.Members {
		p := res.Permits[m.Component]
		word := "free"
		switch {
		case p.Hold != nil:
			word = string(p.Hold.Gate) + ": " + p.Hold.Reason
			if i := strings.Index(word, "PlanInvalid"); i >= 0 {
				word = word[:i+len("PlanInvalid")]
			}
		case p.MaxSurge != instance.NoBudget:
			word = "grouped"
		}
		out = append(out, string(m.Component)+" "+word)
	}
	return out
}

func TestHistoryIsARingOfTen(t *testing.T) {
	st := &v1beta1.RolloutStatus{}
	for i := range 25 {
		st.ActiveRun = run("b", "b")
		st.ActiveRun.RunID = fmt.Sprint(i)
		res := Decide(Input{Now: t0, Seed: fmt.Sprint(i), Service: "svc", Spec: pd(), Previous: st,
			Members: []Member{member(engine, "b", "b"), member(decoder, "b", "b")}}, plan.Resolve(pd()))
		st = res.Status
	}
	if len(st.History) != v1beta1.MaxRolloutHistory || st.History[0].RunID != "24" {
		t.Errorf("%d entries, newest %s", len(st.History), st.History[0].RunID)
	}
}

func TestCoordinate(t *testing.T) {
	progress := func(changing bool, c instance.Counts) Progress { return Progress{Counts: c, Changing: changing} }
	cases := []struct {
		name     string
		pause    Pause
		active   bool
		progress map[v1beta1.ComponentType]Progress
		phase    v1beta1.CoordinationPhase
		shown    string
		ready    string
	}{
		{"at rest", NotPaused, false, map[v1beta1.ComponentType]Progress{}, v1beta1.CoordinationIdle, "Idle", "True GroupsSettled"},
		{"one member surges", NotPaused, true, map[v1beta1.ComponentType]Progress{
			engine: progress(true, instance.Counts{Draining: 1}), decoder: progress(true, instance.Counts{Surging: 1})},
			v1beta1.CoordinationSurging, "decoder.Surging", "Unknown GroupsProgressing"},
		{"old Instances leave", NotPaused, true, map[v1beta1.ComponentType]Progress{
			engine: progress(true, instance.Counts{Draining: 1}), decoder: progress(false, instance.Counts{})},
			v1beta1.CoordinationDraining, "engine.Draining", "Unknown GroupsProgressing"},
		{"waiting for room", NotPaused, true, map[v1beta1.ComponentType]Progress{engine: progress(true, instance.Counts{})},
			v1beta1.CoordinationWaiting, "engine.Waiting", "Unknown GroupsProgressing"},
		{"paused", Recover, true, map[v1beta1.ComponentType]Progress{engine: progress(true, instance.Counts{Surging: 1})},
			v1beta1.CoordinationPaused, "Paused", "Unknown GroupsPaused"},
		{"paused at rest is idle", Recover, false, map[v1beta1.ComponentType]Progress{}, v1beta1.CoordinationIdle, "Idle", "True GroupsSettled"},
		{"a failed Instance marks the group", NotPaused, true, map[v1beta1.ComponentType]Progress{
			engine: progress(true, instance.Counts{Surging: 1}), decoder: progress(true, instance.Counts{Failed: 1})},
			v1beta1.CoordinationFailed, "decoder.Failed", "False GroupFailed"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			in := Input{Now: t0, Generation: 3, Pause: tc.pause, Spec: pd()}
			res := Result{Status: &v1beta1.RolloutStatus{}, Configured: true}
			if tc.active {
				res.Status.ActiveRun = run("b", "b")
			}
			got, events := Coordinate(in, res, plan.Resolve(pd()), nil, tc.progress)
			g := got.Groups[0]
			if g.Phase != tc.phase || g.CompositePhase != tc.shown || g.Policy != v1beta1.CoordinationBlueGreen || g.ObservedGeneration != 3 {
				t.Errorf("got %+v", g)
			}
			status, reason, _ := CoordinationReady(got)
			if ready := string(status) + " " + reason; ready != tc.ready {
				t.Errorf("RolloutCoordinationReady %q, want %q", ready, tc.ready)
			}
			if (len(events) > 0) != (tc.phase == v1beta1.CoordinationFailed) {
				t.Errorf("events %+v", events)
			}
			again, events := Coordinate(in, res, plan.Resolve(pd()), got, tc.progress)
			if diff := cmp.Diff(got, again); diff != "" || len(events) > 0 {
				t.Errorf("a second look differs: %s %v", diff, events)
			}
		})
	}
}
