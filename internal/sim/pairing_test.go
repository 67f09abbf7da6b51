package sim

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
)

// The token is wanted back, or yet another one is, when the decoder has moved and the
// engine still runs both: whatever comes next, a pair goes on serving.
func TestAPairOutlivesAChangeOfMind(t *testing.T) {
	for _, next := range []string{"kv-v1", "kv-v3"} {
		for _, counts := range [][2]int32{{1, 1}, {2, 1}, {1, 2}} {
			t.Run(fmt.Sprint(next, counts), func(t *testing.T) {
				piece := func(n int32) Piece {
					return Piece{Image: "v1", Replicas: n, MaxSurge: intstr.FromString("100%")}
				}
				spec := together()
				spec.PairingProtocol = "kv-v1"
				c := New(map[v1beta1.ComponentType]Piece{v1beta1.EngineComponent: piece(counts[0]), v1beta1.DecoderComponent: piece(counts[1])}, spec)
				if err := c.Settle(2000); err != nil {
					t.Fatal(err)
				}
				token := func(to string) {
					next := spec.DeepCopy()
					next.PairingProtocol = to
					c.Edit(c.Pieces, next, "token "+to)
				}
				token("kv-v2")
				for range 40 {
					c.Lose = func(write string) bool { return strings.HasPrefix(write, "Unserve svc-engine") }
					c.SyncAll()
					c.Pass()
					startAll(c)
					c.Kubelet()
					c.Endpoints()
					for _, p := range c.Pods() {
						c.Gone(p.Name)
					}
				}
				token(next)
				if err := c.Settle(4000); err != nil {
					t.Fatalf("%v\n%s", err, strings.Join(c.Moves, "\n"))
				}
				if err := c.Rested(); err != nil {
					t.Fatalf("%v\n%s", err, strings.Join(c.Moves, "\n"))
				}
			})
		}
	}
}
