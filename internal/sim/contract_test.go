package sim

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// The promises of docs/contract.md that need a whole roll to be seen.

const (
	engine  = v1beta1.EngineComponent
	decoder = v1beta1.DecoderComponent
	router  = v1beta1.RouterComponent
)

// resting is a service at rest under the spec, with the given counts.
func resting(t *testing.T, spec *v1beta1.RolloutSpec, counts map[v1beta1.ComponentType]int32) *Cluster {
	t.Helper()
	pieces := map[v1beta1.ComponentType]Piece{}
	for kind, n := range counts {
		pieces[kind] = Piece{Image: "v1", Replicas: n, MaxSurge: intstr.FromString("25%")}
	}
	c := New(pieces, spec)
	if err := c.Settle(2000); err != nil {
		t.Fatal(err)
	}
	return c
}

// holdOf is what the service's status shows a component to wait for.
func holdOf(c *Cluster, kind v1beta1.ComponentType) string {
	if l := c.actual.service.Status.Components[kind].Lifecycle; l != nil && l.RolloutHold != nil {
		return string(l.RolloutHold.Gate) + ": " + l.RolloutHold.Reason
	}
	return ""
}

// without makes a round in which no new pod of the component comes up.
func (c *Cluster) without(kind v1beta1.ComponentType) {
	for _, p := range c.Pods() {
		switch {
		case p.DeletionTimestamp != nil:
			c.Gone(p.Name)
		case p.Labels[v1beta1.ComponentLabel] != string(kind) && !c.started(p):
			c.Start(p.Name)
		}
	}
	c.Kubelet()
	c.Endpoints()
	c.SyncAll()
	c.Pass()
}

// tokens counts the pods in rotation by the pairing token they carry.
func tokens(c *Cluster, kind v1beta1.ComponentType) map[string]int {
	out := map[string]int{}
	for _, p := range c.Pods() {
		if p.Labels[v1beta1.ComponentLabel] != string(kind) || p.DeletionTimestamp != nil {
			continue
		}
		for _, cond := range p.Status.Conditions {
			if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
				out[p.Labels[v1beta1.PairingProtocolLabel]]++
			}
		}
	}
	return out
}

// changeToken gives both a new token and image in one edit.
func changeToken(c *Cluster, token string) {
	c.editService(func(s *v1beta1.InferenceService) { s.Spec.Rollout.PairingProtocol = token })
	c.SetImage(engine, "v2")
	c.SetImage(decoder, "v2")
}

func paired(t *testing.T, c *Cluster) {
	t.Helper()
	e, d := tokens(c, engine), tokens(c, decoder)
	for token, n := range e {
		if n > 0 && d[token] > 0 {
			return
		}
	}
	t.Fatalf("no engine and decoder of one token serve: engines %v, decoders %v\n%s", e, d, strings.Join(c.Moves, "\n"))
}

func TestContractPairing(t *testing.T) {
	for name, counts := range map[string]map[v1beta1.ComponentType]int32{
		"one engine and one decoder":    {engine: 1, decoder: 1},
		"four engines and two decoders": {engine: 4, decoder: 2},
	} {
		t.Run("a pair serves at every moment: "+name, func(t *testing.T) {
			for _, late := range []v1beta1.ComponentType{engine, decoder} {
				spec := together()
				spec.PairingProtocol = "kv-v1"
				c := resting(t, spec, counts)
				changeToken(c, "kv-v2")
				for range 40 { // one of them takes its time
					c.without(late)
					paired(t, c)
				}
				for range 200 {
					if err := c.Round(); err != nil {
						t.Fatal(err)
					}
					paired(t, c)
				}
				if e, d := tokens(c, engine), tokens(c, decoder); int32(e["kv-v2"]) != counts[engine] || int32(d["kv-v2"]) != counts[decoder] {
					t.Fatalf("it did not end: engines %v, decoders %v", e, d)
				}
			}
		})
	}
	t.Run("the hold in status is the gate Pairing", func(t *testing.T) {
		spec := together()
		spec.PairingProtocol = "kv-v1"
		c := resting(t, spec, map[v1beta1.ComponentType]int32{engine: 1, decoder: 1})
		changeToken(c, "kv-v2")
		for range 40 {
			c.without(decoder)
		}
		want := `Pairing: pairing protocol transition to "kv-v2": the replacement engine cannot pair because no serving decoder runs cohort "kv-v2" yet; ` +
			`holding the drain of the serving engine of cohort "kv-v1" until one does`
		if got := holdOf(c, engine); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	t.Run("a new token gives engine and decoder a new revision, and the router none", func(t *testing.T) {
		spec := together()
		spec.PairingProtocol = "kv-v1"
		c := resting(t, spec, map[v1beta1.ComponentType]int32{engine: 1, decoder: 1, router: 1})
		before := map[v1beta1.ComponentType]string{}
		for _, kind := range order {
			before[kind] = c.actual.replicas[kind].Status.CurrentRevision
		}
		c.templates = map[string]*core.Template{}
		c.editService(func(s *v1beta1.InferenceService) { s.Generation++; s.Spec.Rollout.PairingProtocol = "kv-v2" })
		if err := c.Settle(2000); err != nil {
			t.Fatal(err)
		}
		for _, kind := range order {
			after := c.actual.replicas[kind].Status.CurrentRevision
			if (after != before[kind]) != (kind != router) {
				t.Errorf("%s: from %s to %s", kind, before[kind], after)
			}
			for _, p := range c.Pods() {
				want := "kv-v2"
				if kind == router {
					want = ""
				}
				if got := p.Labels["ome.io/pairing-protocol"]; p.Labels[v1beta1.ComponentLabel] == string(kind) && got != want {
					t.Errorf("%s has the label %q, want %q", p.Name, got, want)
				}
			}
		}
	})
}

func TestContractSequence(t *testing.T) {
	spec := &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{
		{Components: []v1beta1.ComponentType{decoder}, Soak: &metav1.Duration{Duration: 10 * time.Minute}},
		{Components: []v1beta1.ComponentType{engine}},
	}}
	c := resting(t, spec, map[v1beta1.ComponentType]int32{engine: 2, decoder: 2})
	c.SetImage(engine, "v2")
	c.SetImage(decoder, "v2")
	round := func() {
		t.Helper()
		if err := c.Round(); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("while the decoder rolls the status shows that the engine waits for it", func(t *testing.T) {
		for range 5 {
			round()
		}
		if got := holdOf(c, engine); got != "Sequential: Sequential waiting on decoder" {
			t.Errorf("%q", got)
		}
	})
	t.Run("then it shows the soak, whose end is a time at which the engine goes", func(t *testing.T) {
		for range 100 {
			round()
		}
		if got := holdOf(c, engine); got != "Sequential: Sequential.Soak: engine waiting out the 10m0s soak after decoder" {
			t.Fatalf("%q\n%s", got, strings.Join(c.Moves, "\n"))
		}
		if left := c.wake.Sub(c.Now); left < 9*time.Minute || left > 10*time.Minute {
			t.Errorf("wakes in %s", left)
		}
		c.Advance(c.wake.Sub(c.Now))
		c.dirty = true
		round()
		if got := holdOf(c, engine); strings.HasPrefix(got, "Sequential") {
			t.Errorf("after the soak: %q", got)
		}
	})
}

func TestContractRollingUpdate(t *testing.T) {
	spec := together()
	spec.Groups[0].RollingUpdate = &v1beta1.GroupRollingUpdate{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))}
	c := resting(t, spec, map[v1beta1.ComponentType]int32{engine: 8, decoder: 6})
	c.SetImage(engine, "v2")
	c.SetImage(decoder, "v2")
	most := map[string]int{}
	for range 300 {
		if err := c.Round(); err != nil {
			t.Fatal(err)
		}
		now := map[string]int{}
		for _, p := range c.Pods() {
			now[p.Labels[v1beta1.ComponentLabel]]++
		}
		for kind, n := range now {
			most[kind] = max(most[kind], n)
		}
	}
	if most["engine"] != 9 || most["decoder"] != 7 {
		t.Errorf("at most %v pods, want 9 and 7", most)
	}
	for _, p := range c.Pods() {
		if p.Spec.Containers[0].Image != "v2" {
			t.Errorf("%s still runs %s", p.Name, p.Spec.Containers[0].Image)
		}
	}
}

// A budget of zero stops what reads it, and the hold names the field that does it.
func TestContractZeroBudgets(t *testing.T) {
	zero := new(intstr.FromInt32(0))
	for name, tc := range map[string]struct {
		strategy v1beta1.UpdateStrategyType
		budget   v1beta1.GroupRollingUpdate
		want     string
	}{
		"maxUnavailable of zero under RecreatePod": {v1beta1.RecreatePod, v1beta1.GroupRollingUpdate{MaxUnavailable: zero},
			"spec.rollout.groups[0].rollingUpdate.maxUnavailable: 0 the strategy RecreatePod can move nothing"},
		"maxSurge of zero under SurgeThenDrain": {v1beta1.SurgeThenDrain, v1beta1.GroupRollingUpdate{MaxSurge: zero},
			"spec.rollout.groups[0].rollingUpdate.maxSurge: 0 the strategy SurgeThenDrain can move nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := together()
			spec.Groups[0].RollingUpdate = &tc.budget
			pieces := map[v1beta1.ComponentType]Piece{}
			for _, kind := range []v1beta1.ComponentType{engine, decoder} {
				pieces[kind] = Piece{Image: "v1", Replicas: 2, MaxSurge: intstr.FromString("25%"), Strategy: tc.strategy}
			}
			c := New(pieces, spec)
			for _, image := range []string{"v1", "v2"} {
				c.SetImage(engine, image)
				c.SetImage(decoder, image)
				if err := c.Settle(2000); err != nil {
					t.Fatal(err)
				}
			}
			for _, kind := range []v1beta1.ComponentType{engine, decoder} {
				if got := holdOf(c, kind); !strings.HasPrefix(got, "Budget: ") || !strings.Contains(got, tc.want) {
					t.Errorf("%s: %q does not say %q", kind, got, tc.want)
				}
			}
			for _, p := range c.Pods() {
				if p.Spec.Containers[0].Image != "v1" {
					t.Errorf("%s runs %s", p.Name, p.Spec.Containers[0].Image)
				}
			}
		})
	}
}

// Requests follow pods: what a component is reached by selects those of both revisions,
// also while a canary records another weight.
func TestContractCanaryTraffic(t *testing.T) {
	spec := together()
	spec.Groups[0].Canary = &v1beta1.GroupCanary{Steps: []v1beta1.RolloutGroupStep{
		{Capacity: intstr.FromString("50%"), Traffic: 5, Pause: &v1beta1.RolloutPause{}}, {Capacity: intstr.FromString("100%"), Traffic: 100}}}
	c := resting(t, spec, map[v1beta1.ComponentType]int32{engine: 4, decoder: 2})
	c.SetImage(engine, "v2")
	c.SetImage(decoder, "v2")
	if err := c.Settle(2000); err != nil {
		t.Fatal(err)
	}
	record := c.actual.service.Status.Components[engine].Canary
	if record == nil || record.ObservedTrafficWeight != 5 {
		t.Fatalf("%+v", record)
	}
	selected := c.actual.services[v1beta1.ReplicaName(Name, engine)].Spec.Selector
	images := map[string]int{}
	for _, p := range c.Pods() {
		matches := true
		for key, value := range selected {
			matches = matches && p.Labels[key] == value
		}
		if matches {
			images[p.Spec.Containers[0].Image]++
		}
	}
	if images["v1"] != 2 || images["v2"] != 2 {
		t.Errorf("the Service selects %v, by %v", images, selected)
	}
}

func TestContractRatio(t *testing.T) {
	spec := together()
	spec.Groups[0].MaintainRatio = &v1beta1.MaintainRatio{}
	c := resting(t, spec, map[v1beta1.ComponentType]int32{engine: 4, decoder: 2})
	c.SetImage(engine, "v2")
	c.SetImage(decoder, "v2")
	seen := ""
	for range 10 {
		if err := c.Round(); err != nil {
			t.Fatal(err)
		}
		seen += holdOf(c, engine) + "\n" + holdOf(c, decoder) + "\n"
	}
	t.Run("the hold of the component that waits has the gate Ratio", func(t *testing.T) {
		if !strings.Contains(seen, "Ratio: ") {
			t.Errorf("shown: %s", seen)
		}
	})
	t.Run("a tolerance that is left out is 5 percent", func(t *testing.T) {
		if !strings.Contains(seen, ", 5%)") {
			t.Errorf("shown: %s", seen)
		}
	})
}
