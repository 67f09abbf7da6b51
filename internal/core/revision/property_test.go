package revision

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
)

// addNothing puts a null under a random unused key somewhere in a JSON object,
// as a newer library does with a field that nobody sets.
func addNothing(t *rapid.T, x any, depth int) {
	switch x := x.(type) {
	case map[string]any:
		if depth == 0 || rapid.IntRange(0, 3).Draw(t, "here") == 0 {
			x[fmt.Sprintf("field%d", rapid.IntRange(0, 9).Draw(t, "field"))] = nil
		}
		for _, k := range []string{"metadata", "spec", "containers", "volumes", "securityContext", "resources", "affinity"} {
			if child, ok := x[k]; ok && depth < 6 {
				addNothing(t, child, depth+1)
			}
		}
	case []any:
		for _, e := range x {
			addNothing(t, e, depth+1)
		}
	}
}

func TestPropertyNothingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		want, _, err := Hash(in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in.Runners {
			raw, _ := json.Marshal(in.Runners[i].Template)
			var x any
			if err := json.Unmarshal(raw, &x); err != nil {
				t.Fatal(err)
			}
			addNothing(t, x, 0)
			raw, _ = json.Marshal(x)
			var tpl corev1.PodTemplateSpec
			if err := json.Unmarshal(raw, &tpl); err != nil {
				t.Fatal(err)
			}
			// Empty collections say as little as missing ones.
			if len(tpl.Spec.Tolerations) == 0 {
				tpl.Spec.Tolerations = []corev1.Toleration{}
			}
			for j := range tpl.Spec.Containers {
				c := &tpl.Spec.Containers[j]
				if len(c.Env) == 0 {
					c.Env = []corev1.EnvVar{}
				}
				if len(c.Resources.Limits) == 0 {
					c.Resources.Limits = corev1.ResourceList{}
				}
			}
			if tpl.Labels == nil {
				tpl.Labels = map[string]string{}
			}
			in.Runners[i].Template = tpl
		}
		got, data, err := Hash(in)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("hash moved from %s to %s without a change: %s", want, got, data)
		}
	})
}

func TestPropertyAChangeChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		before, _, err := Hash(in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in.Runners {
			in.Runners[i].Template = *in.Runners[i].Template.DeepCopy()
		}
		r := rapid.IntRange(0, len(in.Runners)-1).Draw(t, "which")
		c := &in.Runners[r].Template.Spec.Containers[0]
		switch rapid.IntRange(0, 4).Draw(t, "edit") {
		case 0:
			c.Image += "-next"
		case 1:
			c.Args = append(c.Args, rapid.String().Draw(t, "arg"))
		case 2:
			c.Env = append(c.Env, corev1.EnvVar{Name: "ADDED", Value: rapid.String().Draw(t, "value")})
		case 3:
			in.PairingProtocol += "x"
		case 4:
			in.Runners[r].Size++
			if in.Runners[r].Size == 1 {
				in.Runners[r].Size++
			}
		}
		after, data, err := Hash(in)
		if err != nil {
			t.Fatal(err)
		}
		if before == after {
			t.Fatalf("hash stayed %s after a change: %s", before, data)
		}
	})
}

func drawInput(t *rapid.T) Input {
	var in Input
	n := rapid.IntRange(1, 2).Draw(t, "runners")
	for i := range n {
		tpl := corev1.PodTemplateSpec{}
		if rapid.Bool().Draw(t, "full") {
			tpl = template()
		} else {
			tpl.Labels = rapid.MapOfN(rapid.StringMatching(`[a-z]{1,8}`), rapid.String(), 0, 3).Draw(t, "labels")
			tpl.Spec.Containers = []corev1.Container{{Name: "ome-container"}}
			if rapid.Bool().Draw(t, "security") {
				tpl.Spec.SecurityContext = &corev1.PodSecurityContext{}
			}
		}
		c := &tpl.Spec.Containers[0]
		c.Image = rapid.String().Draw(t, "image")
		c.Args = rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, "args")
		in.Runners = append(in.Runners, Runner{Name: v1beta1.RunnerName(fmt.Sprintf("r%d", i)), Size: int32(rapid.IntRange(0, 4).Draw(t, "size")), Template: tpl})
	}
	in.PairingProtocol = rapid.StringMatching(`[a-z]{0,6}`).Draw(t, "pairing")
	in.TopologyKey = rapid.StringMatching(`[a-z]{0,6}`).Draw(t, "topology")
	return in
}
