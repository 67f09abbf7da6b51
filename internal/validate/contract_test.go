package validate

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ome.io/ome/api/v1beta1"
)

// The promises of docs/contract.md that admission keeps. Each is a case of its own, so that
// it can be named there. The words of the messages are in testdata/service.golden.

func soaked(g v1beta1.RolloutGroup) v1beta1.RolloutGroup {
	return with(g, func(g *v1beta1.RolloutGroup) { g.Soak = &metav1.Duration{Duration: 10 * time.Minute} })
}

func rollingGroup(c ...v1beta1.ComponentType) v1beta1.RolloutGroup {
	return with(group(c...), func(g *v1beta1.RolloutGroup) { g.RollingUpdate = &v1beta1.GroupRollingUpdate{} })
}

func canaryGroup(c ...v1beta1.ComponentType) v1beta1.RolloutGroup {
	return with(group(c...), func(g *v1beta1.RolloutGroup) {
		g.Canary = &v1beta1.GroupCanary{Steps: []v1beta1.RolloutGroupStep{{Capacity: *pct("100%"), Traffic: 100}}}
	})
}

func tolerance(percent int32) edit {
	return groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) { g.MaintainRatio = &v1beta1.MaintainRatio{Tolerance: &percent} }))
}

func budgets(change func(*v1beta1.GroupRollingUpdate)) edit {
	return groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) {
		g.RollingUpdate = &v1beta1.GroupRollingUpdate{}
		change(g.RollingUpdate)
	}))
}

func native(c ...v1beta1.ComponentType) edit {
	return func(s *v1beta1.InferenceService) {
		s.Spec.DeploymentMode = ""
		for _, c := range c {
			s.Spec.Extension(c).Annotations = map[string]string{v1beta1.DeploymentModeAnnotation: "OMENative"}
		}
	}
}

func protocol(token string, edits ...edit) edit {
	return func(s *v1beta1.InferenceService) {
		for _, e := range edits {
			e(s)
		}
		s.Spec.Rollout.PairingProtocol = token
	}
}

func both(edits ...edit) edit {
	return func(s *v1beta1.InferenceService) {
		for _, e := range edits {
			e(s)
		}
	}
}

func concurrently(s *v1beta1.InferenceService) {
	s.Spec.Rollout.GroupOrdering = v1beta1.GroupOrderingConcurrent
}

func TestContractAdmission(t *testing.T) {
	const g0, g1 = "spec.rollout.groups[0]", "spec.rollout.groups[1]"
	for _, tc := range []struct {
		name   string
		before edit
		change edit
		// want is "field Code" for each refusal and warning that has a code, in order.
		want []string
	}{
		{name: "OMENative by spec.deploymentMode counts", change: func(*v1beta1.InferenceService) {}},
		{name: "OMENative by the components' annotations counts", change: native(engine, decoder)},
		{name: "a component that declares no OMENative is in no group", change: native(),
			want: []string{g0 + ".components[0] CoordinationRequiresOMENative", g0 + ".components[1] CoordinationRequiresOMENative"}},
		{name: "its own annotation goes before spec.deploymentMode", change: func(s *v1beta1.InferenceService) {
			s.Spec.Router.Annotations = map[string]string{v1beta1.DeploymentModeAnnotation: "RawDeployment"}
			groups(group(router))(s)
		}, want: []string{g0 + ".components[0] CoordinationRequiresOMENative"}},
		{name: "leader and worker alone declare no OMENative", change: both(native(), groups(group(engine)), func(s *v1beta1.InferenceService) {
			s.Spec.Engine.Leader, s.Spec.Engine.Worker = &v1beta1.LeaderSpec{}, &v1beta1.WorkerSpec{}
		}), want: []string{g0 + ".components[0] CoordinationRequiresOMENative"}},
		{name: "a canary without OMENative has a code of its own", change: both(native(), groups(canaryGroup(engine, decoder))),
			want: []string{g0 + ".components[0] CanaryRequiresOMENative", g0 + ".components[1] CanaryRequiresOMENative"}},
		{name: "a canary that names the engine names the decoder too", change: groups(canaryGroup(engine)), want: []string{g0 + ".components CanaryInvalid"}},
		{name: "a canary that names the decoder names the engine too", change: groups(canaryGroup(decoder)), want: []string{g0 + ".components CanaryInvalid"}},
		{name: "one canary group holds both units", change: groups(canaryGroup(engine, decoder, router))},
		{name: "a canary of the router beside one of engine and decoder", change: both(groups(canaryGroup(engine, decoder), canaryGroup(router)), concurrently)},

		{name: "a component that is none", change: groups(group(engine, decoder, "encoder")), want: []string{g0 + ".components[2] InvalidComponentInCoordinationGroup"}},
		{name: "a component that the service does not declare", change: func(s *v1beta1.InferenceService) { s.Spec.Decoder = nil },
			want: []string{g0 + ".components[1] OrphanCoordinationGroup"}},
		{name: "a component in two groups", change: both(groups(group(engine, decoder), group(router, engine)), concurrently),
			want: []string{g1 + ".components[1] DuplicateComponentInCoordinationGroups"}},
		{name: "a component twice in one group", change: groups(group(engine, decoder, engine)), want: []string{g0 + ".components[2] DuplicateComponentInCoordinationGroups"}},

		{name: "Sequential accepts one group", change: groups(group(engine, decoder, router))},
		{name: "Sequential accepts a sequence", change: groups(group(decoder), group(engine))},
		{name: "Sequential is the default", change: groups(group(engine, decoder), group(router)), want: []string{"spec.rollout.groupOrdering GroupOrderingNotHonored"}},
		{name: "Sequential spelt out is the same", change: both(groups(group(engine, decoder), group(router)), func(s *v1beta1.InferenceService) {
			s.Spec.Rollout.GroupOrdering = v1beta1.GroupOrderingSequential
		}), want: []string{"spec.rollout.groupOrdering GroupOrderingNotHonored"}},
		{name: "Sequential refuses a rolling-update group beside another", change: groups(group(engine), rollingGroup(router)),
			want: []string{"spec.rollout.groupOrdering GroupOrderingNotHonored"}},
		{name: "Sequential refuses a canary beside a sequence", change: groups(group(decoder), group(engine), canaryGroup(router)),
			want: []string{"spec.rollout.groupOrdering GroupOrderingNotHonored"}},
		{name: "Concurrent accepts groups that run together", change: both(groups(group(engine, decoder), group(router)), concurrently)},
		{name: "Concurrent accepts a sequence", change: both(groups(group(decoder), group(engine)), concurrently)},

		{name: "a soak in a sequence", change: groups(soaked(group(decoder)), group(engine))},
		{name: "a soak of a lone group", change: groups(soaked(group(engine, decoder))), want: []string{g0 + ".soak SoakNotHonored"}},
		{name: "a soak of groups that run together", change: both(groups(soaked(group(engine, decoder)), group(router)), concurrently), want: []string{g0 + ".soak SoakNotHonored"}},
		{name: "a soak of a canary beside a sequence", change: both(groups(soaked(canaryGroup(router)), group(decoder), group(engine)), concurrently),
			want: []string{g0 + ".soak SoakNotHonored"}},
		{name: "an order", change: groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) { g.Order = g.Components })), want: []string{g0 + ".order OrderNotHonored"}},

		{name: "a count below zero", change: budgets(func(b *v1beta1.GroupRollingUpdate) { b.MaxSurge = num(-1) }), want: []string{g0 + ".rollingUpdate.maxSurge InvalidRollingUpdateInteger"}},
		{name: "a percentage above a hundred", change: budgets(func(b *v1beta1.GroupRollingUpdate) { b.MaxUnavailable = pct("101%") }),
			want: []string{g0 + ".rollingUpdate.maxUnavailable InvalidRollingUpdatePercent"}},
		{name: "a text that is no percentage", change: budgets(func(b *v1beta1.GroupRollingUpdate) { b.MaxSurge = pct("1") }),
			want: []string{g0 + ".rollingUpdate.maxSurge InvalidRollingUpdatePercent"}},
		{name: "percentages from 0% to 100%", change: budgets(func(b *v1beta1.GroupRollingUpdate) { b.MaxSurge, b.MaxUnavailable = pct("0%"), pct("100%") })},
		{name: "two budgets of zero", change: budgets(func(b *v1beta1.GroupRollingUpdate) { b.MaxSurge, b.MaxUnavailable = num(0), pct("0%") }),
			want: []string{g0 + ".rollingUpdate ZeroBudgetPacingUnstartable"}},
		{name: "one budget of zero", change: budgets(func(b *v1beta1.GroupRollingUpdate) { b.MaxSurge, b.MaxUnavailable = num(1), num(0) })},

		{name: "a new image of one member of a rolling-update group", before: lockstep, change: both(lockstep, func(s *v1beta1.InferenceService) { s.Spec.Engine.Runner = runnerOf("e:2") }),
			want: []string{g0 + ".components RollingUpdateLockstepViolation"}},
		{name: "new images of all members of a rolling-update group", before: lockstep, change: both(lockstep, func(s *v1beta1.InferenceService) {
			s.Spec.Engine.Runner, s.Spec.Decoder.Runner = runnerOf("e:2"), runnerOf("d:2")
		})},
		{name: "a count of one member of a rolling-update group", before: lockstep, change: both(lockstep, func(s *v1beta1.InferenceService) { s.Spec.Engine.MaxReplicas = ptr.To(4) })},
		{name: "a new image of one member of a blue-green group", before: func(*v1beta1.InferenceService) {}, change: func(s *v1beta1.InferenceService) { s.Spec.Engine.Runner = runnerOf("e:2") }},
		{name: "a new image of a component beside a rolling-update group", before: lockstep, change: both(lockstep, func(s *v1beta1.InferenceService) { s.Spec.Router.Runner = runnerOf("r:2") })},

		{name: "a tolerance of 50 says nothing", change: tolerance(50)},
		{name: "a tolerance above 50 warns and is stored", change: tolerance(51), want: []string{"warned " + g0 + ".maintainRatio.tolerance RatioToleranceTooHigh"}},

		{name: "a token changes in one blue-green group", before: protocol("kv-v1"), change: protocol("kv-v2")},
		{name: "a token changes while engine and decoder take turns", before: protocol("kv-v1", groups(group(decoder), group(engine))),
			change: protocol("kv-v2", groups(group(decoder), group(engine))), want: []string{"spec.rollout.pairingProtocol PairingProtocolChangeUncoordinated"}},
		{name: "a token changes while only one of them is in a group", before: protocol("kv-v1", groups(group(engine))),
			change: protocol("kv-v2", groups(group(engine))), want: []string{"spec.rollout.pairingProtocol PairingProtocolChangeUncoordinated"}},
		{name: "a token changes in a rolling-update group", before: protocol("kv-v1", groups(rollingGroup(engine, decoder))),
			change: protocol("kv-v2", groups(rollingGroup(engine, decoder))), want: []string{"spec.rollout.pairingProtocol PairingProtocolChangeUncoordinated"}},
		{name: "a first token is always fine", before: protocol("", groups(rollingGroup(engine, decoder))), change: protocol("kv-v1", groups(rollingGroup(engine, decoder)))},
		{name: "clearing the token is always fine", before: protocol("kv-v1", groups(rollingGroup(engine, decoder))), change: protocol("", groups(rollingGroup(engine, decoder)))},

		{name: "a policyRef while RolloutPolicy is off", change: groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) {
			g.PolicyRef = &v1beta1.RolloutPolicyRef{Name: "p", Progression: v1beta1.ProgressionBlueGreen}
		})), want: []string{g0 + ".policyRef RolloutPolicyRefUnsupported"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var old *v1beta1.InferenceService
			if tc.before != nil {
				old = sample(t)
				tc.before(old)
			}
			s := sample(t)
			tc.change(s)
			r := InferenceService(s, old, Options{})
			var got []string
			for _, p := range r.Errors {
				if p.Code != "" {
					got = append(got, p.Field+" "+p.Code)
				}
			}
			for _, p := range r.Warnings {
				if p.Code != "" {
					got = append(got, "warned "+p.Field+" "+p.Code)
				}
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if len(tc.want) == 0 && !r.OK() {
				t.Errorf("refused: %s", r.Denial())
			}
		})
	}
}

func TestContractDenial(t *testing.T) {
	s := sample(t)
	groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) { g.Order = g.Components }))(s)
	if got := InferenceService(s, nil, Options{}).Denial(); !strings.HasSuffix(got, " (OrderNotHonored)") {
		t.Errorf("%q does not end in its reason in parentheses", got)
	}
}
