package sim

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// midRoll is a settled service of n Instances a component that has just begun to roll.
func midRoll(b *testing.B, n int32, kinds ...v1beta1.ComponentType) *Cluster {
	pieces := map[v1beta1.ComponentType]Piece{}
	for _, k := range kinds {
		pieces[k] = Piece{Image: "v1", Replicas: n, MaxSurge: intstr.FromString("25%")}
	}
	c := New(pieces, together())
	c.Unchecked = true
	c.Settings.Lifecycle.ScaleUpPodBatchSize = 0
	c.Settings.Lifecycle.MaxOpenOperations = n + 1
	if err := c.Settle(100000); err != nil {
		b.Fatal(err)
	}
	for _, k := range kinds {
		c.SetImage(k, "v2")
	}
	c.Pass()
	c.SyncAll()
	c.Pass()
	c.SyncAll()
	return c
}

// BenchmarkDecide measures one pass in the middle of a roll. The budget: under
// 200 microseconds for three components of 64, and linear: 20,000 rows in 30 ms.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int32{1, 64} {
		b.Run(fmt.Sprintf("3x%d", n), func(b *testing.B) {
			c := midRoll(b, n, order...)
			w := c.World()
			b.ReportAllocs()
			for b.Loop() {
				core.Decide(w)
			}
		})
	}
	for _, n := range []int32{2000, 20000} {
		b.Run(fmt.Sprintf("1x%d", n), func(b *testing.B) {
			c := midRoll(b, n, v1beta1.EngineComponent)
			w := c.World()
			b.ReportAllocs()
			for b.Loop() {
				core.Decide(w)
			}
		})
	}
}
