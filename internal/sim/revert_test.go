package sim

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
)

// A new revision is taken back after each number of rounds, by an image and by a
// change that no image patch makes. Nothing that serves is given up for it beyond the
// budget, and in the end the first revision serves everywhere.
func TestARevertAtEveryStepOfEveryStrategy(t *testing.T) {
	for _, strategy := range Strategies {
		for _, env := range []bool{false, true} {
			for _, twice := range []bool{false, true} {
				for n := range 24 {
					t.Run(fmt.Sprintf("%s, env %v, twice %v, after %d rounds", strategy, env, twice, n), func(t *testing.T) {
						piece := Piece{Image: "v1", Replicas: 3, MaxSurge: intstr.FromInt32(1), MaxUnavailable: "1", Strategy: strategy}
						c := New(map[v1beta1.ComponentType]Piece{v1beta1.EngineComponent: piece}, nil)
						least := int32(3)
						rounds := func(n int) {
							for range n {
								if err := c.Round(); err != nil {
									t.Fatalf("%v\n%s", err, strings.Join(c.Moves, "\n"))
								}
								least = min(least, c.Serving(v1beta1.EngineComponent))
							}
						}
						settle := func() {
							if err := c.Settle(2000); err != nil {
								t.Fatalf("%v\n%s", err, strings.Join(c.Moves, "\n"))
							}
						}
						settle()
						forth, back := func() { c.SetImage(v1beta1.EngineComponent, "v2") }, func() { c.SetImage(v1beta1.EngineComponent, "v1") }
						if env {
							forth, back = func() { c.SetEnv(v1beta1.EngineComponent, "x") }, func() { c.SetEnv(v1beta1.EngineComponent, "") }
						}
						forth()
						rounds(n)
						back()
						rounds(n)
						if twice {
							forth()
							rounds(n)
							back()
							rounds(n)
						}
						rounds(20)
						settle()
						if err := c.Rested(); err != nil {
							t.Fatalf("%v\n%s\n%s", err, strings.Join(c.Moves, "\n"), c.Describe())
						}
						want := int32(2)
						if strategy == v1beta1.SurgeThenDrain || (strategy == v1beta1.InPlaceOnly && env) {
							want = 3
						}
						if least < want {
							t.Errorf("%d served at the least, want %d\n%s", least, want, strings.Join(c.Moves, "\n"))
						}
					})
				}
			}
		}
	}
}
