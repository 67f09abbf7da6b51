package render

import (
	"testing"

	"ome.io/ome/api/v1beta1"
)

// The promises of docs/contract.md that rendering keeps.
func TestContractPairing(t *testing.T) {
	token := func(t *testing.T, c v1beta1.ComponentType) string {
		in := sampleInput(t, "mistral-pd.yaml", c)
		in.Service.Spec.Rollout.PairingProtocol = "kv-v1"
		got, err := Render(in)
		if err != nil {
			t.Fatal(err)
		}
		return got.PairingProtocol
	}
	t.Run("engine and decoder have the token", func(t *testing.T) {
		for _, c := range []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent} {
			if got := token(t, c); got != "kv-v1" {
				t.Errorf("%s: %q", c, got)
			}
		}
	})
	t.Run("the router has no token", func(t *testing.T) {
		if got := token(t, v1beta1.RouterComponent); got != "" {
			t.Errorf("%q", got)
		}
	})
}
