package sim

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// atRest is a settled service of n Instances a component.
func atRest(b *testing.B, n int32, rollout *v1beta1.RolloutSpec, kinds ...v1beta1.ComponentType) *Cluster {
	pieces := map[v1beta1.ComponentType]Piece{}
	for _, k := range kinds {
		pieces[k] = Piece{Image: "v1", Replicas: n, MaxSurge: intstr.FromString("25%")}
	}
	c := New(pieces, rollout)
	c.Unchecked = true
	// Up in few passes; what is measured runs by the defaults, so 500 operations are open
	// at one time at most.
	usual := c.Settings.Lifecycle
	c.Settings.Lifecycle.ScaleUpPodBatchSize = 0
	c.Settings.Lifecycle.MaxOpenOperations = n + 1
	if err := c.Settle(100000); err != nil {
		b.Fatal(err)
	}
	c.Settings.Lifecycle = usual
	c.SyncAll()
	return c
}

// midRoll has just begun to roll.
func midRoll(b *testing.B, n int32, rollout *v1beta1.RolloutSpec, kinds ...v1beta1.ComponentType) *Cluster {
	c := atRest(b, n, rollout, kinds...)
	for _, k := range kinds {
		c.SetImage(k, "v2")
	}
	c.Pass()
	c.SyncAll()
	c.Pass()
	c.SyncAll()
	return c
}

func groupsOf(groups ...[]v1beta1.ComponentType) *v1beta1.RolloutSpec {
	spec := &v1beta1.RolloutSpec{}
	for _, g := range groups {
		spec.Groups = append(spec.Groups, v1beta1.RolloutGroup{Components: g})
	}
	return spec
}

// BenchmarkDecide measures one pass: in the middle of a roll and, of the same service,
// at rest. The budget: under 200 microseconds for three components of 64 in any
// number of groups, and linear: 20,000 rows in 30 ms.
func BenchmarkDecide(b *testing.B) {
	decide := func(name string, cluster func(b *testing.B) *Cluster) {
		b.Run(name, func(b *testing.B) {
			w := cluster(b).World()
			b.ReportAllocs()
			for b.Loop() {
				core.Decide(w)
			}
		})
	}
	for _, n := range []int32{1, 64} {
		decide(fmt.Sprintf("3x%d", n), func(b *testing.B) *Cluster { return midRoll(b, n, together(), order...) })
	}
	for i, spec := range []*v1beta1.RolloutSpec{groupsOf(order), groupsOf(order[:2], order[2:]), groupsOf(order[:1], order[1:2], order[2:])} {
		decide(fmt.Sprintf("3x64-in-%d-groups", i+1), func(b *testing.B) *Cluster { return midRoll(b, 64, spec, order...) })
	}
	decide("3x64-at-rest", func(b *testing.B) *Cluster { return atRest(b, 64, together(), order...) })
	for _, n := range []int32{2000, 20000} {
		decide(fmt.Sprintf("1x%d", n), func(b *testing.B) *Cluster { return midRoll(b, n, together(), v1beta1.EngineComponent) })
	}
}
