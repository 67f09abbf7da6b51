//go:build soak

package sim

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/rollout"
)

var (
	canaryStepBudget = flag.Int("sim.canarysteps", 100000, "random steps that the property of canaries makes in all")
	canaryWays       = &tally{n: map[string]int{}}
	canarySteps      atomic.Int64
)

// drawCanary is any canary that admission takes.
func drawCanary(t *rapid.T) *v1beta1.GroupCanary {
	g := &v1beta1.GroupCanary{}
	capacity, traffic := 0, int32(0)
	for range rapid.IntRange(0, 2).Draw(t, "steps before the last") {
		capacity = rapid.IntRange(max(1, capacity), 100).Draw(t, "capacity")
		traffic = rapid.Int32Range(traffic, 100).Draw(t, "traffic")
		step := v1beta1.RolloutGroupStep{Capacity: intstr.FromString(fmt.Sprintf("%d%%", capacity)), Traffic: traffic}
		drawGate(t, &step)
		g.Steps = append(g.Steps, step)
	}
	last := v1beta1.RolloutGroupStep{Capacity: intstr.FromString("100%"), Traffic: 100}
	drawGate(t, &last)
	g.Steps = append(g.Steps, last)
	if rapid.IntRange(0, 3).Draw(t, "delays") == 0 {
		g.ScaleDownDelaySeconds = new(rapid.Int32Range(1, 120).Draw(t, "delay"))
	}
	return g
}

func drawGate(t *rapid.T, step *v1beta1.RolloutGroupStep) {
	switch rapid.IntRange(0, 3).Draw(t, "gate") {
	case 1:
		step.Pause = &v1beta1.RolloutPause{}
	case 2:
		step.Pause = &v1beta1.RolloutPause{Duration: &metav1.Duration{Duration: time.Duration(rapid.IntRange(1, 90).Draw(t, "pause")) * time.Second}}
	case 3:
		step.Analysis = &v1beta1.RolloutAnalysis{Interval: metav1.Duration{Duration: 10 * time.Second}, FailureLimit: rapid.Int32Range(1, 3).Draw(t, "limit"),
			OnInconclusive: pick(t, "inconclusive", "", v1beta1.InconclusiveHold, v1beta1.InconclusiveRollback, v1beta1.InconclusiveRollbackOnStall),
			Metrics:        []v1beta1.AnalysisMetric{{Name: "errors", Query: "errors", Operator: v1beta1.MetricLT, Threshold: "0.5"}}}
	}
}

// drawCanaries is a service whose components are in canary groups, beside others or not.
func drawCanaries(t *rapid.T) *Cluster {
	kinds := pick(t, "components",
		[]v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent},
		[]v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent, v1beta1.RouterComponent},
		[]v1beta1.ComponentType{v1beta1.EngineComponent})
	pieces := map[v1beta1.ComponentType]Piece{}
	for _, kind := range kinds {
		pieces[kind] = Piece{
			Image: "v1", Replicas: rapid.Int32Range(1, 6).Draw(t, string(kind)+" replicas"),
			Strategy:       pick(t, string(kind)+" strategy", v1beta1.SurgeThenDrain, v1beta1.SurgeThenDrain, v1beta1.RecreatePod, v1beta1.InPlaceIfPossible),
			MaxSurge:       pick(t, string(kind)+" surge", intstr.FromString("25%"), intstr.FromString("100%")),
			MaxUnavailable: pick(t, string(kind)+" unavailable", "25%", "50%"),
			External:       rapid.IntRange(0, 4).Draw(t, string(kind)+" external") == 0,
		}
	}
	spec := &v1beta1.RolloutSpec{}
	first := v1beta1.RolloutGroup{Canary: drawCanary(t)}
	for _, kind := range kinds {
		if kind != v1beta1.RouterComponent {
			first.Components = append(first.Components, kind)
		}
	}
	spec.Groups = append(spec.Groups, first)
	if len(kinds) == 3 {
		switch rapid.IntRange(0, 3).Draw(t, "router") {
		case 0: // in no group
		case 1:
			spec.Groups[0].Components = append(spec.Groups[0].Components, v1beta1.RouterComponent)
		case 2:
			spec.Groups = append(spec.Groups, v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{v1beta1.RouterComponent}, Canary: drawCanary(t)})
		default:
			spec.Groups = append(spec.Groups, v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{v1beta1.RouterComponent}})
		}
	}
	if len(spec.Groups) > 1 {
		spec.GroupOrdering = v1beta1.GroupOrderingConcurrent
	}
	if !admitted(nil, pieces, spec) {
		t.Skip("not admitted")
	}
	c := New(pieces, spec)
	c.policies, c.CheckCanaries = map[string]plan.Policy{}, true
	c.Ways, c.Digests = canaryWays.count, digests.is
	return c
}

// hashes are what a person may name: what is rolled out, or anything.
func (c *Cluster) hashes(t *rapid.T) string {
	var from []string
	records := c.canaryRecords()
	for _, kind := range slices.Sorted(maps.Keys(records)) {
		from = append(from, records[kind].Status.CanaryRevisionHash)
	}
	return rapid.SampledFrom(append(from, "0badc0de")).Draw(t, "hash")
}

func (c *Cluster) promote(hash string) {
	for kind, r := range c.canaryRecords() {
		if r.Status.CanaryRevisionHash == hash {
			if c.book.promotes == nil {
				c.book.promotes = map[v1beta1.ComponentType]int{}
			}
			c.book.promotes[kind]++
		}
	}
	c.Annotate(v1beta1.RolloutPromoteAnnotation, hash)
}

func canaryActions(c *Cluster) map[string]func(*rapid.T) {
	out := calmActions(c)
	edit := func(t *rapid.T) { setImages(c, pick(t, "image", images...), c.declared()...) }
	promote := func(t *rapid.T) { c.promote(c.hashes(t)) }
	measure := func(t *rapid.T) {
		value := pick(t, "value", 0, 0, 1, math.NaN())
		c.Measure = func(analysis.Query) (float64, bool) { return value, true }
		c.logf("metrics: %v", value)
	}
	maps.Copy(out, map[string]func(*rapid.T){
		"edit some": func(t *rapid.T) { setImages(c, pick(t, "image", images...), someComponent(t, c)) },
		"edit two":  edit, "edit three": edit, "promote": promote, "promote again": promote,
		"metrics": measure, "samples lost": func(*rapid.T) { c.ForgetSamples() },
		"rollback": func(t *rapid.T) {
			if rapid.Bool().Draw(t, "all") {
				c.Annotate(v1beta1.RolloutRollbackAnnotation, "true")
			} else {
				c.Annotate(v1beta1.RolloutRollbackAnnotation, c.hashes(t))
			}
		},
		"retry": func(t *rapid.T) {
			c.Annotate(v1beta1.RolloutResumeAnnotation, c.hashes(t))
		},
		"lossy pass": func(t *rapid.T) {
			c.Lose = func(string) bool { return rapid.Bool().Draw(t, "lost") }
			c.Pass()
			c.Lose = nil
		},
		"late pass":    func(*rapid.T) { c.Pass() },
		"see one kind": func(t *rapid.T) { c.Sync(rapid.SampledFrom(Kinds).Draw(t, "kind")) },
		"unready":      onPod(c, c.Unready),
		"fail":         onPod(c, c.Fail),
		"pause":        func(t *rapid.T) { c.Pause(pick(t, "value", "true", "freeze", "", "")) },
		"resume":       func(*rapid.T) { c.Pause("") },
		"scale":        func(t *rapid.T) { scale(t, c) },
		"break":        func(t *rapid.T) { c.Break(someComponent(t, c), rapid.IntRange(0, 2).Draw(t, "broken") == 0) },
		"other steps": func(t *rapid.T) {
			g := drawCanary(t)
			try(c, "steps", func(_ map[v1beta1.ComponentType]Piece, s *v1beta1.RolloutSpec) { s.Groups[0].Canary = g })
			if rapid.Bool().Draw(t, "now") {
				c.Repin(v1beta1.RepinNow)
			}
		},
		"bad image": func(*rapid.T) { setImages(c, BadImage, c.declared()...) },
	})
	return out
}

// canariesLive is the long property of canaries, which only a soak runs so far: it still
// finds rare states after some hundred thousand steps: what must hold does at every step, and
// once faults stop a person brings every canary to its end by what its phase asks for.
func canariesLive(t *rapid.T) {
	c := drawCanaries(t)
	if err := c.Settle(10000); err != nil {
		fatal(t, c, fmt.Errorf("first settle: %w", err))
	}
	actions := canaryActions(c)
	for name, do := range actions {
		actions[name] = func(t *rapid.T) {
			canarySteps.Add(1)
			do(t)
		}
	}
	actions[""] = func(t *rapid.T) {
		if c.Violation != nil {
			fatal(t, c, c.Violation)
		}
	}
	t.Repeat(actions)
	mend(c)
	c.Measure = nil
	for try := 0; ; try++ {
		err := c.Settle(20000)
		if err == nil && c.ReleaseAll() {
			continue
		}
		if err == nil {
			err = c.Rested()
		}
		switch {
		case c.Violation != nil:
			fatal(t, c, c.Violation)
		case err == nil:
			return
		case try > 200:
			fatal(t, c, fmt.Errorf("at the end: %w", err))
		}
		if !c.actForward() {
			fatal(t, c, fmt.Errorf("at the end, with nothing that a person could do: %w", err))
		}
	}
}

// actForward does what a phase asks for.
func (c *Cluster) actForward() (acted bool) {
	records := c.canaryRecords()
	for _, kind := range slices.Sorted(maps.Keys(records)) {
		r := records[kind]
		switch {
		case r.Phase == v1beta1.RolloutPaused, r.Phase == v1beta1.RolloutPromoting && rollout.InFlight(r.Status):
			c.promote(r.Status.CanaryRevisionHash)
			return true
		case r.Phase == v1beta1.RolloutFailed:
			c.Annotate(v1beta1.RolloutResumeAnnotation, r.Status.CanaryRevisionHash)
			return true
		case r.Phase == v1beta1.RolloutRolledBack:
			c.Annotate(v1beta1.RolloutResumeAnnotation, r.Status.RolledBackRevisionHash)
			return true
		}
	}
	return false
}

// TestEveryCanaryEnds is the property of canaries, on two processors.
func TestEveryCanaryEnds(t *testing.T) {
	start := time.Now()
	t.Run("shards", func(t *testing.T) {
		for shard := range 2 {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for canarySteps.Load() < int64(*canaryStepBudget) && !t.Failed() {
					rapid.Check(t, canariesLive)
				}
			})
		}
	})
	t.Logf("%d steps in %s; what happened:%s", canarySteps.Load(), time.Since(start).Round(time.Second), canaryWays.table())
	for _, want := range []string{"canary: passed a gate Immediate", "canary: passed a gate Timed", "canary: passed a gate Manual", "canary: passed a gate Analysis",
		"canary: rolled back", "canary: a rejected one starts again"} {
		if canaryWays.n[want] == 0 && !t.Failed() {
			t.Errorf("never reached: %q", want)
		}
	}
}
