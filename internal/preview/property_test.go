package preview_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/preview"
	"ome.io/ome/internal/validate"
)

// anyComponent draws the block of one component.
func anyComponent(rt *rapid.T, kind string) string {
	n := rapid.IntRange(1, 6).Draw(rt, kind+" replicas")
	strategy := rapid.SampledFrom([]string{"SurgeThenDrain", "SurgeThenDrain", "RecreatePod", "InPlaceIfPossible", "InPlaceOnly"}).Draw(rt, kind+" strategy")
	var rolling []string
	if v := rapid.SampledFrom([]string{"", "0", "1", "2", "50%"}).Draw(rt, kind+" maxSurge"); v != "" {
		rolling = append(rolling, "maxSurge: "+v)
	}
	if v := rapid.SampledFrom([]string{"", "0", "1", "2", "50%"}).Draw(rt, kind+" maxUnavailable"); v != "" {
		rolling = append(rolling, "maxUnavailable: "+v)
	}
	if v := rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(rt, kind+" partition"); v > 0 {
		rolling = append(rolling, fmt.Sprintf("partition: %d", v))
	}
	return fmt.Sprintf("%s: {minReplicas: %d, maxReplicas: %d, lifecycle: {minReadySeconds: %d, updateStrategy: {type: %s, rollingUpdate: {%s}}}}\n",
		kind, n, n, rapid.SampledFrom([]int{0, 0, 30}).Draw(rt, kind+" minReady"), strategy, strings.Join(rolling, ", "))
}

// anyRollout draws groups.
func anyRollout(rt *rapid.T) string {
	token := ""
	if t := rapid.SampledFrom([]string{"", "", "kv-v1"}).Draw(rt, "token"); t != "" {
		token = "pairingProtocol: " + t + ", "
	}
	progression := rapid.SampledFrom([]string{"", "blueGreen: {}", "rollingUpdate: {maxSurge: 1, maxUnavailable: 1}", "rollingUpdate: {maxSurge: 50%}"}).Draw(rt, "progression")
	if r := rapid.IntRange(-1, 100).Draw(rt, "tolerance"); r >= 0 && rapid.Bool().Draw(rt, "ratio") {
		if progression != "" {
			progression += ", "
		}
		progression += fmt.Sprintf("maintainRatio: {tolerance: %d}", r)
	}
	if progression != "" {
		progression = ", " + progression
	}
	return "rollout: {" + token + rapid.SampledFrom([]string{
		"groups: [{components: [engine, decoder]" + progression + "}]",
		"groups: [{components: [router, engine, decoder]" + progression + "}]",
		"groups: [{components: [decoder], soak: 7m}, {components: [engine]}]",
		"groups: [{components: [engine], soak: 20h}, {components: [router]}, {components: [decoder]}]",
		"groups: [{components: [engine]}]",
		"groups: [{components: [engine], canary: {steps: [{capacity: 1, traffic: 10, pause: {}}, {capacity: 50%, traffic: 50, pause: {duration: 7h}}, {capacity: 100%, traffic: 100}]}}]",
		"groups: [{components: [engine, decoder], canary: {steps: [{capacity: 50%, traffic: 50, pause: {}}, {capacity: 100%, traffic: 100, pause: {}}]}}]",
	}).Draw(rt, "groups") + "}\n"
}

// TestAPreviewEnds: every admitted change either reaches what it asks for, or stops with a
// cause that a person can act on.
func TestAPreviewEnds(t *testing.T) {
	runtime, model := sample[v1beta1.ClusterServingRuntime](t, "runtime.yaml"), sample[v1beta1.ClusterBaseModel](t, "model.yaml")
	seen := map[preview.Outcome]int{}
	rapid.Check(t, func(rt *rapid.T) {
		spec := func(label string) string {
			text := anyComponent(rt, "engine") + anyComponent(rt, "decoder") + anyComponent(rt, "router")
			if rapid.Bool().Draw(rt, label+" grouped") {
				text += anyRollout(rt)
			}
			return text
		}
		before := spec("old")
		after := before
		if rapid.Bool().Draw(rt, "another spec") {
			after = spec("new")
		}
		old, next := serviceOf(t, before), serviceOf(t, after)
		for _, kind := range v1beta1.Components() {
			if rapid.Bool().Draw(rt, "image of "+string(kind)) {
				images(next, "v2", kind)
			}
		}
		if r := next.Spec.Rollout; r != nil && r.PairingProtocol != "" && rapid.Bool().Draw(rt, "new token") {
			r.PairingProtocol = "kv-v2"
		}
		if !validate.InferenceService(old, nil, validate.Options{}).OK() || !validate.InferenceService(next, old, validate.Options{}).OK() {
			return
		}
		in := preview.Input{Now: now, Settings: config.Default(), Timing: usual, Old: rendered(t, old, runtime, model), New: rendered(t, next, runtime, model)}
		res := preview.Preview(in)
		seen[res.Outcome]++
		judge(rt, &res)
	})
	t.Log(seen)
}

// judge holds an outcome against what it promises.
func judge(t *rapid.T, res *preview.Result) {
	last := res.Moves[len(res.Moves)-1]
	switch res.Outcome {
	case preview.Completes:
		for i, s := range last.States {
			if c := res.Changes[i]; s.Old != 0 || s.New != c.After || s.Pods != c.After {
				t.Fatalf("completes with %+v of %s, want %d new", s, c.Component, c.After)
			}
		}
	case preview.Partitioned:
		for i, s := range last.States {
			if c := res.Changes[i]; s.Serving() != c.After || s.Pods != c.After {
				t.Fatalf("stops at a partition with %+v of %s, want %d", s, c.Component, c.After)
			}
		}
	case preview.Stalls:
		if len(res.Stall.Holds) == 0 && res.Stall.Paused == "" {
			t.Fatalf("stalls without a cause: %+v", last)
		}
		if res.Stall.Move != len(res.Moves)-1 {
			t.Fatalf("stalls at move %d of %d", res.Stall.Move, len(res.Moves)-1)
		}
	default:
		t.Fatalf("outcome %s", res.Outcome)
	}
	for i := 1; i < len(res.Moves); i++ {
		if res.Moves[i].After < res.Moves[i-1].After || len(res.Moves[i].Actions)+len(res.Moves[i].Notes)+len(res.Moves[i].Then) == 0 {
			t.Fatalf("move %d: %+v after %+v", i, res.Moves[i], res.Moves[i-1])
		}
	}
}

const large = `
engine: {minReplicas: %[1]d, maxReplicas: %[1]d}
decoder: {minReplicas: %[1]d, maxReplicas: %[1]d}
rollout: {groups: [{components: [engine, decoder]%[2]s}]}`

// BenchmarkPreview: 64 and 64 Instances, a quarter at a time and, where the ratio allows no
// more, one at a time. The budget is 2 seconds for the former.
func BenchmarkPreview(b *testing.B) {
	for name, extra := range map[string]string{"blue-green": "", "ratio": ", maintainRatio: {tolerance: 0}"} {
		b.Run(name, func(b *testing.B) {
			_, in := play(b, scenario{old: fmt.Sprintf(large, 64, extra), change: next})
			b.ReportAllocs()
			for b.Loop() {
				if res := preview.Preview(in); res.Outcome != preview.Completes {
					b.Fatal(res.Outcome)
				}
			}
		})
	}
}

// TestALargeServiceMovesInBatches: the number of lines follows the batches, not the Instances.
func TestALargeServiceMovesInBatches(t *testing.T) {
	res, _ := play(t, scenario{old: fmt.Sprintf(large, 64, ""), change: next})
	if res.Outcome != preview.Completes || len(res.Moves) > 16 {
		t.Errorf("%s in %d moves", res.Outcome, len(res.Moves))
	}
}
