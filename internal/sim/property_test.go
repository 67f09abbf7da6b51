package sim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
)

func together() *v1beta1.RolloutSpec {
	return &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{{
		Components: []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent},
	}}}
}

var images = []string{"v1", "v2", "v3"}

// drawCluster is a service at rest or still coming up.
func drawCluster(t *rapid.T) *Cluster {
	pieces := map[v1beta1.ComponentType]Piece{}
	for _, kind := range order {
		if kind == v1beta1.RouterComponent && rapid.Bool().Draw(t, "no router") {
			continue
		}
		surges := []intstr.IntOrString{intstr.FromString("25%"), intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("100%")}
		pieces[kind] = Piece{
			Image:           "v1",
			Replicas:        rapid.Int32Range(1, 6).Draw(t, string(kind)+" replicas"),
			MaxSurge:        rapid.SampledFrom(surges).Draw(t, string(kind)+" surge"),
			MinReadySeconds: rapid.SampledFrom([]int32{0, 0, 5}).Draw(t, string(kind)+" minReadySeconds"),
		}
	}
	var spec *v1beta1.RolloutSpec
	if rapid.IntRange(0, 3).Draw(t, "groups") > 0 {
		spec = together()
	}
	return New(pieces, spec)
}

// somePod draws one of the pods there are, "" when there is none.
func somePod(t *rapid.T, c *Cluster) string {
	var names []string
	for _, p := range c.Pods() {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return rapid.SampledFrom(names).Draw(t, "pod")
}

func someComponent(t *rapid.T, c *Cluster) v1beta1.ComponentType {
	var list []v1beta1.ComponentType
	for _, kind := range order {
		if _, ok := c.Pieces[kind]; ok {
			list = append(list, kind)
		}
	}
	return rapid.SampledFrom(list).Draw(t, "component")
}

// actions are everything the world may do between two looks. The controller's
// own pass is one of them, and loses a random subset of its writes.
func actions(t *rapid.T, c *Cluster) map[string]func(*rapid.T) {
	pod := func(do func(string)) func(*rapid.T) {
		return func(t *rapid.T) {
			if name := somePod(t, c); name != "" {
				do(name)
			}
		}
	}
	pass := func(t *rapid.T) {
		lossy := rapid.IntRange(0, 3).Draw(t, "lossy") == 0
		c.Lose = func(string) bool { return lossy && rapid.Bool().Draw(t, "lost") }
		c.Pass()
		c.Lose = nil
	}
	startAll := func(*rapid.T) {
		for _, p := range c.Pods() {
			if !started(p) {
				c.Start(p.Name)
			}
		}
	}
	return map[string]func(*rapid.T){
		"pass":       pass,
		"pass again": pass,
		"and again":  pass,
		"see one kind": func(t *rapid.T) {
			c.Sync(rapid.SampledFrom(Kinds).Draw(t, "kind"))
		},
		"see everything":   func(*rapid.T) { c.SyncAll() },
		"start all":        startAll,
		"start one":        pod(func(n string) { c.Start(n) }),
		"kubelet":          func(*rapid.T) { c.Kubelet() },
		"endpoints":        func(*rapid.T) { c.Endpoints() },
		"endpoints, twice": func(*rapid.T) { c.Kubelet(); c.Endpoints() },
		"a pod gone":       pod(func(n string) { c.Gone(n) }),
		"all gone": func(*rapid.T) {
			for _, p := range c.Pods() {
				c.Gone(p.Name)
			}
		},
		"unready":          pod(func(n string) { c.Unready(n) }),
		"crash":            pod(func(n string) { c.Crash(n) }),
		"fail":             pod(func(n string) { c.Fail(n) }),
		"evict":            pod(func(n string) { c.Evict(n) }),
		"lose a node":      pod(func(n string) { c.LoseNode(n) }),
		"break a template": func(t *rapid.T) { c.Break(someComponent(t, c), true) },
		"mend a template":  func(t *rapid.T) { c.Break(someComponent(t, c), false) },
		"time":             func(t *rapid.T) { c.Advance(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second) },
		"edit": func(t *rapid.T) {
			kind := someComponent(t, c)
			c.SetImage(kind, rapid.SampledFrom(images).Draw(t, "image"))
		},
		"edit all": func(t *rapid.T) {
			image := rapid.SampledFrom(images).Draw(t, "image")
			for kind := range c.Pieces {
				c.SetImage(kind, image)
			}
		},
		"bad image": func(t *rapid.T) { c.SetImage(someComponent(t, c), BadImage) },
		"scale":     func(t *rapid.T) { c.Scale(someComponent(t, c), rapid.Int32Range(1, 7).Draw(t, "n")) },
		"pause": func(t *rapid.T) {
			c.Pause(rapid.SampledFrom([]string{"true", "freeze", "", "", "yes"}).Draw(t, "value"))
		},
		"": func(t *rapid.T) {
			if c.Violation != nil {
				for _, m := range c.Moves {
					t.Log(m)
				}
				t.Fatal(c.Violation)
			}
		},
	}
}

// Whatever happened, once faults stop and the images are good, the service reaches
// its goal by events and wake times alone.
func TestEveryReachableStateEndsTheRoll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		if rapid.Bool().Draw(t, "settled first") {
			if err := c.Settle(5000); err != nil {
				t.Fatalf("first settle: %v", err)
			}
		}
		t.Repeat(actions(t, c))
		c.Pause("")
		for kind, piece := range c.Pieces {
			c.Break(kind, false)
			if piece.Image == BadImage {
				c.SetImage(kind, "v3")
			}
		}
		err := c.Settle(5000)
		c.Heal()
		healUnready(c)
		if err == nil {
			err = c.Settle(5000)
		}
		if err == nil {
			err = c.Rested()
		}
		if err != nil {
			for _, m := range c.Moves {
				t.Log(m)
			}
			t.Fatal(err)
		}
	})
}

// healUnready ends failures that only a node or a user could end.
func healUnready(c *Cluster) {
	for _, p := range c.Pods() {
		if p.DeletionTimestamp == nil && !is(p, corev1.ContainersReady) && p.Status.Phase != corev1.PodFailed {
			c.Start(p.Name)
		}
	}
	c.dirty = true
}

// Under a pause nothing starts, and what runs keeps running.
func TestAPauseHoldsTheRoll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		if err := c.Settle(5000); err != nil {
			t.Fatal(err)
		}
		for kind := range c.Pieces {
			c.SetImage(kind, "v2")
		}
		for range rapid.IntRange(0, 12).Draw(t, "rounds before the pause") {
			c.SyncAll()
			c.Pass()
			for _, p := range c.Pods() {
				c.Start(p.Name)
			}
			c.Endpoints()
		}
		c.Pause("true")
		c.SyncAll()
		c.Pass()
		before := len(c.Moves)
		serving := map[v1beta1.ComponentType]int32{}
		for kind := range c.Pieces {
			serving[kind] = c.Serving(kind)
		}
		if err := c.Settle(5000); err != nil {
			t.Fatal(err)
		}
		for _, m := range c.Moves[before:] {
			if len(m) > 0 && containsWord(m, "unserve") && !drainUnderWay(c.Moves[:before], m) {
				t.Fatalf("paused, yet %q\n%v", m, c.Moves)
			}
		}
		for kind, n := range serving {
			if now := c.Serving(kind); now < min(n, c.Desired(kind)) {
				t.Fatalf("%s served %d Instances at the pause and %d after", kind, n, now)
			}
		}
		c.Pause("")
		if err := c.Settle(5000); err != nil {
			t.Fatal(err)
		}
		if err := c.Rested(); err != nil {
			t.Fatalf("after the resume: %v\n%v", err, c.Moves)
		}
	})
}
