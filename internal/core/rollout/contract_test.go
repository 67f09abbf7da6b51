package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
)

// The promises of docs/contract.md that are kept here. Each is a case of its own, so that
// it can be named there.

// rolling is a member of the given size on its way from a to b.
func rolling(c v1beta1.ComponentType, desired int32, strategy v1beta1.UpdateStrategyType) Member {
	m := member(c, "a", "b")
	m.Desired, m.Strategy = desired, strategy
	m.Census = instance.Census{Serving: desired}
	return m
}

// inRun decides with a run open that takes every member to its target under spec.
func inRun(spec *v1beta1.RolloutSpec, members ...Member) Result {
	return Decide(inputOf(spec, members...), plan.Resolve(spec))
}

func inputOf(spec *v1beta1.RolloutSpec, members ...Member) Input {
	active := &v1beta1.RolloutRun{RunID: "svc-1", OpenedAt: metav1.NewTime(t0), Plan: plan.Resolve(spec).Plan}
	for _, m := range members {
		active.TargetRevisions = append(active.TargetRevisions, v1beta1.RunTarget{Component: m.Component, Revision: m.Target, StableRevision: "a"})
	}
	return Input{Now: t0.Add(time.Hour), Service: "svc", Spec: spec, Previous: &v1beta1.RolloutStatus{ActiveRun: active}, Members: members, DefaultTolerance: 5}
}

func oneGroup(change func(*v1beta1.RolloutGroup), members ...v1beta1.ComponentType) *v1beta1.RolloutSpec {
	g := v1beta1.RolloutGroup{Components: members}
	if change != nil {
		change(&g)
	}
	return &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{g}}
}

func budgeted(surge, unavailable *intstr.IntOrString) func(*v1beta1.RolloutGroup) {
	return func(g *v1beta1.RolloutGroup) {
		g.RollingUpdate = &v1beta1.GroupRollingUpdate{MaxSurge: surge, MaxUnavailable: unavailable}
	}
}

func number(n int32) *intstr.IntOrString   { return new(intstr.FromInt32(n)) }
func percent(s string) *intstr.IntOrString { return new(intstr.FromString(s)) }

// limits are what each member may have in surge and out of service; - is no limit.
func limits(res Result, members ...v1beta1.ComponentType) (out []string) {
	word := func(n int32) string {
		if n == instance.NoBudget {
			return "-"
		}
		return fmt.Sprint(n)
	}
	for _, c := range members {
		p := res.Permits[c]
		out = append(out, fmt.Sprintf("%s surge %s out %s", c, word(p.MaxSurge), word(p.MaxUnavailable)))
	}
	return out
}

func held(res Result, c v1beta1.ComponentType) string {
	if h := res.Permits[c].Hold; h != nil {
		return string(h.Gate) + ": " + h.Reason
	}
	return ""
}

func TestContractBudgets(t *testing.T) {
	const surge, recreate = v1beta1.SurgeThenDrain, v1beta1.RecreatePod
	cases := []struct {
		name    string
		spec    *v1beta1.RolloutSpec
		members []Member
		want    []string
	}{
		{"each member of a blue-green group moves a quarter of its own replicas, rounded up", oneGroup(nil, engine, decoder),
			[]Member{rolling(engine, 9, surge), rolling(decoder, 2, surge)}, []string{"engine surge 3 out -", "decoder surge 1 out -"}},
		{"a component in no group has no ceiling", oneGroup(nil, engine, decoder),
			[]Member{rolling(engine, 9, surge), rolling(decoder, 2, surge), rolling(router, 9, surge)},
			[]string{"engine surge 3 out -", "decoder surge 1 out -", "router surge - out -"}},
		{"a rolling-update group's counts are each member's own", oneGroup(budgeted(number(3), number(2)), engine, decoder),
			[]Member{rolling(engine, 9, surge), rolling(decoder, 5, recreate)}, []string{"engine surge 3 out -", "decoder surge 3 out 2"}},
		{"a rolling-update group's percentages are of each member's own replicas", oneGroup(budgeted(percent("50%"), percent("34%")), engine, decoder),
			[]Member{rolling(engine, 8, surge), rolling(decoder, 3, recreate)}, []string{"engine surge 4 out -", "decoder surge 2 out 2"}},
		{"a budget that is not set is a quarter", oneGroup(budgeted(nil, nil), engine, decoder),
			[]Member{rolling(engine, 8, surge), rolling(decoder, 5, recreate)}, []string{"engine surge 2 out -", "decoder surge 2 out 2"}},
		{"maxUnavailable of zero stops whatever does not surge", oneGroup(budgeted(number(1), number(0)), engine, decoder),
			[]Member{rolling(engine, 4, surge), rolling(decoder, 2, recreate)}, []string{"engine surge 1 out -", "decoder surge 1 out 0"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var order []v1beta1.ComponentType
			for _, m := range tc.members {
				order = append(order, m.Component)
			}
			if diff := cmp.Diff(tc.want, limits(inRun(tc.spec, tc.members...), order...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestContractRuns(t *testing.T) {
	t.Run("an edit of the groups waits for the next run", func(t *testing.T) {
		in := inputOf(oneGroup(nil, engine, decoder), rolling(engine, 8, v1beta1.SurgeThenDrain), rolling(decoder, 8, v1beta1.SurgeThenDrain))
		edited := oneGroup(budgeted(number(7), nil), engine, decoder)
		in.Spec = edited
		res := Decide(in, plan.Resolve(edited))
		if diff := cmp.Diff([]string{"engine surge 2 out -", "decoder surge 2 out -"}, limits(res, engine, decoder)); diff != "" {
			t.Errorf("the open run (-want +got):\n%s", diff)
		}
		in.Previous = &v1beta1.RolloutStatus{}
		res = Decide(in, plan.Resolve(edited))
		if diff := cmp.Diff([]string{"engine surge 7 out -", "decoder surge 7 out -"}, limits(res, engine, decoder)); diff != "" {
			t.Errorf("the next run (-want +got):\n%s", diff)
		}
	})
	t.Run("a component in no group does not wait for a run", func(t *testing.T) {
		in := Input{Now: t0, Service: "svc", Spec: pd(), Pause: Recover, Members: []Member{rolling(engine, 2, v1beta1.SurgeThenDrain), rolling(router, 2, v1beta1.SurgeThenDrain)}}
		res := Decide(in, plan.Resolve(pd()))
		if held(res, engine) == "" || held(res, router) != "" {
			t.Errorf("engine %q, router %q", held(res, engine), held(res, router))
		}
	})
	t.Run("the members of a group start together", func(t *testing.T) {
		res := inRun(oneGroup(nil, engine, decoder), rolling(engine, 4, v1beta1.SurgeThenDrain), rolling(decoder, 2, v1beta1.SurgeThenDrain))
		for _, c := range []v1beta1.ComponentType{engine, decoder} {
			if p := res.Permits[c]; p.Hold != nil || p.MaxSurge < 1 || p.Starts != nil {
				t.Errorf("%s: %+v", c, p)
			}
		}
	})
	for name, spec := range map[string]*v1beta1.RolloutSpec{
		"a failed member of a blue-green group stops nobody":     oneGroup(nil, engine, decoder),
		"a failed member of a rolling-update group stops nobody": oneGroup(budgeted(number(1), nil), engine, decoder),
	} {
		t.Run(name, func(t *testing.T) {
			failed := rolling(engine, 4, v1beta1.SurgeThenDrain)
			failed.Failed = true
			res := inRun(spec, failed, rolling(decoder, 2, v1beta1.SurgeThenDrain))
			if held(res, engine) != "" || held(res, decoder) != "" {
				t.Errorf("engine %q, decoder %q", held(res, engine), held(res, decoder))
			}
		})
	}
	t.Run("groups that form no sequence roll at the same time", func(t *testing.T) {
		spec := oneGroup(nil, engine)
		spec.Groups = append(spec.Groups, oneGroup(budgeted(number(1), nil), decoder).Groups...)
		res := inRun(spec, rolling(engine, 4, v1beta1.SurgeThenDrain), rolling(decoder, 2, v1beta1.SurgeThenDrain))
		if held(res, engine) != "" || held(res, decoder) != "" {
			t.Errorf("engine %q, decoder %q", held(res, engine), held(res, decoder))
		}
	})
	t.Run("a sequence takes turns under Concurrent too", func(t *testing.T) {
		spec := turns()
		spec.GroupOrdering = v1beta1.GroupOrderingConcurrent
		res := inRun(spec, rolling(decoder, 2, v1beta1.SurgeThenDrain), rolling(engine, 4, v1beta1.SurgeThenDrain))
		if got := held(res, engine); got != "Sequential: Sequential waiting on decoder" {
			t.Errorf("engine %q", got)
		}
	})
}

func TestContractRatio(t *testing.T) {
	ratioed := func(tolerance *int32) func(*v1beta1.RolloutGroup) {
		return func(g *v1beta1.RolloutGroup) { g.MaintainRatio = &v1beta1.MaintainRatio{Tolerance: tolerance} }
	}
	surge := func(c v1beta1.ComponentType, desired int32) Member {
		return rolling(c, desired, v1beta1.SurgeThenDrain)
	}
	starts := func(res Result, c v1beta1.ComponentType) int32 {
		if q := res.Permits[c].Starts; q != nil {
			return q.Left
		}
		return -1
	}
	t.Run("a blue-green group keeps it", func(t *testing.T) {
		res := inRun(oneGroup(ratioed(new(int32(10))), engine, decoder), surge(engine, 20), surge(decoder, 20))
		if a, b := starts(res, engine), starts(res, decoder); a != 2 || b != 2 {
			t.Errorf("engine may start %d, decoder %d", a, b)
		}
	})
	t.Run("a rolling-update group keeps it", func(t *testing.T) {
		spec := oneGroup(ratioed(new(int32(10))), engine, decoder)
		spec.Groups[0].RollingUpdate = &v1beta1.GroupRollingUpdate{}
		res := inRun(spec, surge(engine, 20), surge(decoder, 20))
		if a, b := starts(res, engine), starts(res, decoder); a != 2 || b != 2 {
			t.Errorf("engine may start %d, decoder %d", a, b)
		}
	})
	t.Run("without it nothing is bounded", func(t *testing.T) {
		res := inRun(oneGroup(nil, engine, decoder), surge(engine, 20), surge(decoder, 20))
		if a, b := starts(res, engine), starts(res, decoder); a != -1 || b != -1 {
			t.Errorf("engine may start %d, decoder %d", a, b)
		}
	})
	t.Run("a group of one component has none to keep", func(t *testing.T) {
		res := inRun(oneGroup(ratioed(new(int32(0))), engine), surge(engine, 20))
		if a := starts(res, engine); a != -1 {
			t.Errorf("engine may start %d", a)
		}
	})
	t.Run("a tolerance that is left out is the operator's", func(t *testing.T) {
		in := inputOf(oneGroup(ratioed(nil), engine, decoder), surge(engine, 20), surge(decoder, 20))
		in.DefaultTolerance = 15
		res := Decide(in, plan.Resolve(in.Spec))
		if a, b := starts(res, engine), starts(res, decoder); a != 3 || b != 3 {
			t.Errorf("engine may start %d, decoder %d", a, b)
		}
	})
	t.Run("a tolerance of zero is not the operator's: nothing drifts", func(t *testing.T) {
		in := inputOf(oneGroup(ratioed(new(int32(0))), engine, decoder), surge(engine, 20), surge(decoder, 20))
		in.DefaultTolerance = 15
		res := Decide(in, plan.Resolve(in.Spec))
		if a, b := starts(res, engine), starts(res, decoder); a != 1 || b != 0 {
			t.Errorf("engine may start %d, decoder %d", a, b)
		}
	})
	for _, strategy := range []v1beta1.UpdateStrategyType{v1beta1.InPlaceIfPossible, v1beta1.InPlaceOnly} {
		t.Run(string(strategy)+" skips it", func(t *testing.T) {
			res := inRun(oneGroup(ratioed(new(int32(0))), engine, decoder), rolling(engine, 20, strategy), surge(decoder, 20))
			if a, b := starts(res, engine), starts(res, decoder); a != -1 || b != 1 {
				t.Errorf("engine may start %d, decoder %d", a, b)
			}
		})
	}
	t.Run("both holds have the gate Ratio", func(t *testing.T) {
		p := ratioPermits(0, pooled(engine, v1beta1.SurgeThenDrain, 4, 2, 4, 0), pooled(decoder, v1beta1.SurgeThenDrain, 2, 0, 2, 0))
		for _, c := range []v1beta1.ComponentType{engine, decoder} {
			if s, d := p[c].Starts.Hold, p[c].Drains.Hold; s.Gate != v1beta1.GateRatio || d.Gate != v1beta1.GateRatio {
				t.Errorf("%s: %+v and %+v", c, s, d)
			}
		}
	})
}

func TestContractSequence(t *testing.T) {
	const soak = 10 * time.Minute
	finished := func(in Input, c v1beta1.ComponentType, ago time.Duration) Input {
		in.Coordination = &v1beta1.RolloutCoordinationStatus{Groups: []v1beta1.CoordinationGroupStatus{{Name: "0",
			LastFinished: []v1beta1.ComponentFinish{{Component: c, Time: metav1.NewTime(in.Now.Add(-ago))}}}}}
		return in
	}
	soaking := func(at ...time.Duration) *v1beta1.RolloutSpec { return turns(at...) }
	decide := func(in Input) Result { return Decide(in, plan.Resolve(in.Spec)) }

	t.Run("the order is that of the list", func(t *testing.T) {
		spec := turns()
		spec.Groups[0], spec.Groups[1] = spec.Groups[1], spec.Groups[0]
		res := inRun(spec, rolling(decoder, 2, v1beta1.SurgeThenDrain), rolling(engine, 4, v1beta1.SurgeThenDrain))
		if held(res, engine) != "" || held(res, decoder) != "Sequential: Sequential waiting on engine" {
			t.Errorf("engine %q, decoder %q", held(res, engine), held(res, decoder))
		}
	})
	t.Run("after the soak the next one goes", func(t *testing.T) {
		for _, ago := range []time.Duration{soak - time.Second, soak} {
			in := finished(inputOf(soaking(soak), member(decoder, "b", "b"), rolling(engine, 4, v1beta1.SurgeThenDrain)), decoder, ago)
			if got := held(decide(in), engine); (got != "") != (ago < soak) {
				t.Errorf("%s after decoder finished: %q", ago, got)
			}
		}
	})
	t.Run("the soak is of the component before, and not of an earlier one", func(t *testing.T) {
		in := finished(inputOf(soaking(soak), member(decoder, "b", "b"), member(engine, "a", "a"), rolling(router, 1, v1beta1.SurgeThenDrain)), decoder, time.Minute)
		in.Previous.ActiveRun.TargetRevisions[1].StableRevision = "a"
		if got := held(decide(in), router); got != "" {
			t.Errorf("router %q", got)
		}
	})
	t.Run("a soak of the last group alone is no wait", func(t *testing.T) {
		in := finished(inputOf(soaking(0, 0, time.Hour), member(decoder, "b", "b"), rolling(engine, 4, v1beta1.SurgeThenDrain)), decoder, time.Second)
		if got := held(decide(in), engine); got != "" {
			t.Errorf("engine %q", got)
		}
	})
	t.Run("another image makes the failed one healthy, and the sequence goes on", func(t *testing.T) {
		failed := member(decoder, "a", "b")
		failed.Failed = true
		in := inputOf(turns(), failed, rolling(engine, 4, v1beta1.SurgeThenDrain))
		if got := held(decide(in), engine); got != "Sequential: Sequential waiting on decoder" {
			t.Errorf("while it is failed: engine %q", got)
		}
		healed := finished(inputOf(turns(), member(decoder, "c", "c"), rolling(engine, 4, v1beta1.SurgeThenDrain)), decoder, time.Minute)
		if got := held(decide(healed), engine); got != "" {
			t.Errorf("once it is healthy: engine %q", got)
		}
	})
	t.Run("the image before makes the failed one healthy, and the sequence goes on", func(t *testing.T) {
		back := inputOf(turns(), member(decoder, "a", "a"), rolling(engine, 4, v1beta1.SurgeThenDrain))
		if got := held(decide(back), engine); got != "" {
			t.Errorf("engine %q", got)
		}
	})
}

func TestContractFailedGroups(t *testing.T) {
	failed := map[v1beta1.ComponentType]Progress{engine: {Changing: true}, decoder: {Changing: true, Counts: instance.Counts{Failed: 1}}}
	for name, tc := range map[string]struct {
		spec *v1beta1.RolloutSpec
		want string
	}{
		"a blue-green group":     {oneGroup(nil, engine, decoder), "group 0: decoder has a failed Instance; the other components go on"},
		"a rolling-update group": {oneGroup(budgeted(nil, nil), engine, decoder), "group 0: decoder has a failed Instance; the other components go on"},
		"a sequence":             {turns(), "group 0: decoder has a failed Instance; the components after it wait"},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(tc.spec)
			got, events := Coordinate(in, Result{Configured: true, Status: in.Previous}, plan.Resolve(tc.spec), nil, failed)
			if got.Groups[0].Phase != v1beta1.CoordinationFailed {
				t.Errorf("phase %s", got.Groups[0].Phase)
			}
			want := []instance.Event{{Warning: true, Reason: "CoordinationGroupFailed", Message: tc.want}}
			if diff := cmp.Diff(want, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContractPairing(t *testing.T) {
	t.Run("a new pod comes up whatever drain waits", func(t *testing.T) {
		for _, serving := range []map[string]int32{{"kv-v1": 1}, {"kv-v1": 1, "kv-v2": 1}} {
			var members []Member
			for _, c := range []v1beta1.ComponentType{engine, decoder} {
				m := rolling(c, 1, v1beta1.SurgeThenDrain)
				m.Token, m.Census = "kv-v2", instance.Census{ByToken: serving}
				members = append(members, m)
			}
			members[1].Census = instance.Census{ByToken: map[string]int32{"kv-v1": 1}}
			res := inRun(oneGroup(nil, engine, decoder), members...)
			for _, c := range []v1beta1.ComponentType{engine, decoder} {
				if p := res.Permits[c]; p.Hold != nil || p.Starts != nil || p.MaxSurge < 1 {
					t.Errorf("%s: %+v", c, p)
				}
			}
			if q := res.Permits[engine].Drains; q == nil || q.Left != 0 || !strings.Contains(q.Hold.Reason, "kv-v2") {
				t.Errorf("the engine's drain does not wait: %+v", q)
			}
		}
	})
	t.Run("the first peer of the new token releases the drains", func(t *testing.T) {
		e, d := rolling(engine, 4, v1beta1.SurgeThenDrain), rolling(decoder, 2, v1beta1.SurgeThenDrain)
		e.Token, d.Token = "kv-v2", "kv-v2"
		e.Census = instance.Census{ByToken: map[string]int32{"kv-v1": 4, "kv-v2": 1}}
		for peers, bounded := range map[int32]bool{0: true, 1: false} {
			d.Census = instance.Census{ByToken: map[string]int32{"kv-v1": 2, "kv-v2": peers}}
			if got := inRun(oneGroup(nil, engine, decoder), e, d).Permits[engine].Drains; (got != nil) != bounded {
				t.Errorf("%d decoders of the new token: drains %+v", peers, got)
			}
		}
	})
}

func TestContractCanary(t *testing.T) {
	t.Run("a share of each component's replicas, rounded up, runs the new revision", func(t *testing.T) {
		s := newStage(t, canaryOf(steps(stepAt("25%", 10, manual()), stepAt("100%", 100, nil)), engine, decoder), map[v1beta1.ComponentType]int32{engine: 6, decoder: 3})
		s.change("b")
		s.want("engine Paused step 0 weight 10, decoder 2a+1b, engine 4a+2b, run open")
	})
	for name, tc := range map[string]struct {
		errors float64
		step   int32
		phase  v1beta1.RolloutPhase
	}{
		"an analysis that passes advances the canary":                {0, 1, v1beta1.RolloutPending},
		"an analysis that fails as often as it may rolls it back":    {1, 0, v1beta1.RolloutRollingBack},
		"an analysis that has no answer yet does neither of the two": {-1, 0, v1beta1.RolloutPaused},
	} {
		t.Run(name, func(t *testing.T) {
			judged := stepAt("25%", 10, nil)
			judged.Analysis = &v1beta1.RolloutAnalysis{Interval: metav1.Duration{Duration: time.Minute}, FailureLimit: 1,
				Metrics: []v1beta1.AnalysisMetric{{Name: "errors", Query: "errors", Operator: "LT", Threshold: "0.5"}}}
			s := pair(t, judged, stepAt("100%", 100, manual()))
			s.change("b")
			s.now = s.now.Add(time.Hour)
			in := s.input()
			in.Reach = func(string) (time.Duration, error) { return 0, nil }
			res := Decide(in, plan.Resolve(s.spec))
			if len(res.Due) != 1 {
				t.Fatalf("no sample is asked for: %+v", res.Due)
			}
			if tc.errors >= 0 {
				due := res.Due[0]
				in.Samples = []analysis.Sample{{ID: due.ID, At: in.Now, Done: in.Now, Answers: []analysis.Answer{
					{Metric: "errors", Query: due.Queries[0].Text, Type: analysis.Vector, Series: []analysis.Series{{Labels: "{}", Value: tc.errors}}}}}}
				res = Decide(in, plan.Resolve(s.spec))
			}
			if got := res.Canaries[engine]; got.Status.CurrentStep != tc.step || got.Phase != tc.phase {
				t.Errorf("step %d, %s: %+v", got.Status.CurrentStep, got.Phase, got.Status.MetricResults)
			}
		})
	}
	t.Run("the router runs one of its own at the same time", func(t *testing.T) {
		spec := canaryOf(steps(stepAt("50%", 10, manual()), stepAt("100%", 100, nil)), engine, decoder)
		spec.Groups = append(spec.Groups, v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{router}, Canary: steps(stepAt("25%", 20, manual()), stepAt("100%", 100, nil))})
		s := newStage(t, spec, map[v1beta1.ComponentType]int32{engine: 4, decoder: 2, router: 4})
		s.wants[engine], s.wants[decoder], s.wants[router] = "b", "b", "r"
		s.settle()
		s.want("engine Paused step 0 weight 10, router Paused step 0 weight 20, decoder 1a+1b, engine 2a+2b, router 3a+1r, run open")
	})
	t.Run("one canary group holds the router too", func(t *testing.T) {
		s := newStage(t, canaryOf(steps(stepAt("50%", 10, manual()), stepAt("100%", 100, nil)), engine, decoder, router),
			map[v1beta1.ComponentType]int32{engine: 4, decoder: 2, router: 2})
		s.change("b")
		s.want("router Paused step 0 weight 10, decoder 1a+1b, engine 2a+2b, router 1a+1b, run open")
	})
}
