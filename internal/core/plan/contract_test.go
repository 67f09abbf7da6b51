package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
)

// The promises of docs/contract.md that are kept here. Each is a case of its own, so that
// it can be named there.

func TestContractProgression(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want v1beta1.Progression
	}{
		"a group that names none rolls by blue-green":     {`{components: [engine, decoder]}`, v1beta1.ProgressionBlueGreen},
		"blueGreen spelt out is the same":                 {`{components: [engine, decoder], blueGreen: {}}`, v1beta1.ProgressionBlueGreen},
		"rollingUpdate":                                   {`{components: [engine, decoder], rollingUpdate: {}}`, v1beta1.ProgressionRollingUpdate},
		"canary":                                          {`{components: [engine, decoder], canary: {}}`, v1beta1.ProgressionCanary},
		"a policy's, when the group names none":           {`{components: [engine], policyRef: {name: a, progression: rollingUpdate}}`, v1beta1.ProgressionRollingUpdate},
		"the group's own goes before that of its policy":  {`{components: [engine], rollingUpdate: {}, policyRef: {name: a, progression: canary}}`, v1beta1.ProgressionRollingUpdate},
		"blueGreen of its own goes before that of policy": {`{components: [engine], blueGreen: {}, policyRef: {name: a, progression: canary}}`, v1beta1.ProgressionBlueGreen},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(t, tc.text)
			if got := Kind(&g); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestContractBudgets(t *testing.T) {
	t.Run("blue-green moves at most a quarter at a time", func(t *testing.T) {
		for replicas, want := range map[int32]int32{4: 1, 8: 2, 40: 10} {
			if got := BlueGreenBudget(replicas); got != want {
				t.Errorf("%d of %d, want %d", got, replicas, want)
			}
		}
	})
	t.Run("a share is rounded up", func(t *testing.T) {
		for replicas, want := range map[int32]int32{1: 1, 5: 2, 9: 3} {
			if got := BlueGreenBudget(replicas); got != want {
				t.Errorf("%d of %d, want %d", got, replicas, want)
			}
		}
	})
	t.Run("a budget may be a count", func(t *testing.T) {
		if n, err := Budget(intstr.FromInt32(3), 100); n != 3 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
	t.Run("a budget may be a percentage", func(t *testing.T) {
		if n, err := Budget(intstr.FromString("40%"), 5); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
	t.Run("a budget that is not set is a quarter", func(t *testing.T) {
		if n, err := Budget(DefaultBudget(), 8); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}

func TestContractUnits(t *testing.T) {
	const (
		engine, decoder, router = `{components: [engine]}`, `{components: [decoder], blueGreen: {}}`, `{components: [router]}`
		pair                    = `{components: [engine, decoder]}`
		rolling                 = `{components: [decoder], rollingUpdate: {}}`
		canary                  = `{components: [router], canary: {}}`
	)
	for name, tc := range map[string]struct {
		groups   []string
		ordering v1beta1.GroupOrdering
		want     []Unit
	}{
		"two blue-green groups of one component take turns": {[]string{decoder, engine}, "", []Unit{{UnitSequence, []int{0, 1}}}},
		"one such group alone is no sequence":               {[]string{engine}, "", []Unit{{UnitIndependent, []int{0}}}},
		"a group of two components is no part of a sequence": {[]string{pair, router}, v1beta1.GroupOrderingConcurrent,
			[]Unit{{UnitIndependent, []int{0}}, {UnitIndependent, []int{1}}}},
		"a rolling-update group is no part of a sequence": {[]string{engine, rolling}, v1beta1.GroupOrderingConcurrent,
			[]Unit{{UnitIndependent, []int{0}}, {UnitIndependent, []int{1}}}},
		"a canary does not stop the others from being a sequence": {[]string{decoder, engine, canary}, v1beta1.GroupOrderingConcurrent,
			[]Unit{{UnitCanary, []int{2}}, {UnitSequence, []int{0, 1}}}},
		"a canary is a unit of its own, beside the others": {[]string{pair, canary}, v1beta1.GroupOrderingConcurrent,
			[]Unit{{UnitCanary, []int{1}}, {UnitIndependent, []int{0}}}},
		"Concurrent does not end a sequence": {[]string{decoder, engine}, v1beta1.GroupOrderingConcurrent, []Unit{{UnitSequence, []int{0, 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Resolve(&v1beta1.RolloutSpec{GroupOrdering: tc.ordering, Groups: groups(t, tc.groups...)})
			if diff := cmp.Diff(tc.want, r.Units); diff != "" {
				t.Errorf("units (-want +got):\n%s", diff)
			}
		})
	}
}
