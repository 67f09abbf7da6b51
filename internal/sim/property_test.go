package sim

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
)

var (
	stepBudget = flag.Int("sim.steps", 100000, "random steps that the long property makes in all")
	soaking    = flag.Bool("sim.soak", false, "fail when a cell that can be reached was not")
)

// TestMain makes one check of the properties longer than rapid would: most of its
// time goes into bringing a cluster up and letting it settle.
func TestMain(m *testing.M) {
	flag.Parse()
	set := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if !set["rapid.steps"] {
		if err := flag.Set("rapid.steps", "60"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func together() *v1beta1.RolloutSpec {
	return &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{{
		Components: []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent},
	}}}
}

var images = []string{"v1", "v2", "v3"}

// pick draws from a list under a name.
func pick[T any](t *rapid.T, name string, from ...T) T { return rapid.SampledFrom(from).Draw(t, name) }

func drawPiece(t *rapid.T, kind v1beta1.ComponentType) Piece {
	name := func(s string) string { return string(kind) + " " + s }
	p := Piece{
		Image:           "v1",
		Replicas:        rapid.Int32Range(1, 5).Draw(t, name("replicas")),
		External:        pick(t, name("external"), false, false, true),
		Strategy:        pick(t, name("strategy"), Strategies...),
		MaxSurge:        pick(t, name("surge"), intstr.FromString("25%"), intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("100%"), intstr.FromInt32(0)),
		MaxUnavailable:  pick(t, name("unavailable"), "1", "25%", "50%", "2", "", "0"),
		MinReadySeconds: pick[int32](t, name("minReadySeconds"), 0, 0, 5),
		RestartPolicy:   pick(t, name("restartPolicy"), v1beta1.RestartNone, v1beta1.RestartRecreateInstance),
		KeepServing:     pick(t, name("keep serving"), false, false, false, true),
		NoRelocation:    pick(t, name("no relocation"), false, false, false, true),
	}
	if rapid.Bool().Draw(t, name("sidecar")) {
		p.Sidecar = "s1"
	}
	return p
}

// drawCluster is a service that nobody has touched yet.
func drawCluster(t *rapid.T) *Cluster {
	pieces := map[v1beta1.ComponentType]Piece{v1beta1.EngineComponent: drawPiece(t, v1beta1.EngineComponent)}
	if rapid.Bool().Draw(t, "decoder") {
		pieces[v1beta1.DecoderComponent] = drawPiece(t, v1beta1.DecoderComponent)
	}
	if rapid.IntRange(0, 3).Draw(t, "router") == 0 {
		pieces[v1beta1.RouterComponent] = drawPiece(t, v1beta1.RouterComponent)
	}
	var spec *v1beta1.RolloutSpec
	if len(pieces) > 1 && pieces[v1beta1.DecoderComponent].Image != "" && rapid.Bool().Draw(t, "group") {
		spec = together()
	}
	c := New(pieces, spec)
	c.Coverage = covered
	l := &c.Settings.Lifecycle
	c.Settings.InstanceStatus.Encoding = pick(t, "encoding", "ColumnarV2", "DenseV1")
	l.InstanceReadyTimeout = pick(t, "ready timeout", 30*time.Minute, 30*time.Minute, 10*time.Minute, 0)
	l.StuckPodGracePeriod = pick(t, "stuck grace", time.Minute, time.Minute, time.Minute, 0)
	l.UnschedulableGracePeriod = pick(t, "unschedulable grace", 15*time.Minute, 15*time.Minute, 0)
	l.UpdateRetry.MaxAttempts = pick[int32](t, "attempts", 3, 3, 1, 0)
	l.AutoMigrate.MaxAttempts = pick[int32](t, "relocations", 3, 3, 0)
	l.MaxOpenOperations = pick[int32](t, "open operations", 500, 500, 2)
	l.ScaleUpPodBatchSize = pick[int32](t, "up batch", 100, 100, 1)
	l.ScaleDownPodBatchSize = pick[int32](t, "down batch", 100, 100, 1)
	if rapid.Bool().Draw(t, "force delete") {
		l.ForceDelete.OverdueSlack, l.ForceDelete.NodeUnreachableThreshold = time.Minute, 2*time.Minute
	}
	return c
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

func someNode(t *rapid.T, c *Cluster) string {
	return rapid.SampledFrom(c.Nodes()).Draw(t, "node")
}

func startAll(c *Cluster) {
	for _, p := range c.Pods() {
		c.Start(p.Name)
	}
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
		lossy := rapid.IntRange(0, 4).Draw(t, "lossy") == 0
		c.Lose = func(string) bool { return lossy && rapid.Bool().Draw(t, "lost") }
		c.Pass()
		c.Lose = nil
	}
	round := func(*rapid.T) { _ = c.Round() } // the check below sees what is wrong
	rounds := func(*rapid.T) {
		for range 4 {
			_ = c.Round()
		}
	}
	all := map[string]func(*rapid.T){
		"pass":       pass,
		"pass again": pass,
		"and again":  pass,
		"round":      round,
		"round two":  round,
		"rounds":     rounds,
		"wake": func(*rapid.T) {
			if c.wake.After(c.Now) {
				c.Advance(c.wake.Sub(c.Now))
				c.Pass()
			}
		},
		"deletes lost": func(*rapid.T) {
			c.Lose = func(write string) bool { return strings.HasPrefix(write, "Delete ") }
			c.Pass()
			c.Lose = nil
			for _, p := range c.Pods() {
				c.Admit(p.Name)
				c.Start(p.Name)
			}
		},
		"lost under a freeze": func(t *rapid.T) {
			c.Pause("freeze")
			if name := somePod(t, c); name != "" {
				c.Evict(name)
			}
			c.SyncAll()
			c.Pass()
		},
		"see one kind":   func(t *rapid.T) { c.Sync(rapid.SampledFrom(Kinds).Draw(t, "kind")) },
		"see everything": func(*rapid.T) { c.SyncAll() },
		"start all":      func(*rapid.T) { startAll(c) },
		"start one":      pod(c.Start),
		"kubelet":        func(*rapid.T) { c.Kubelet() },
		"endpoints":      func(*rapid.T) { c.Kubelet(); c.Endpoints() },
		"all gone": func(*rapid.T) {
			for _, p := range c.Pods() {
				c.Gone(p.Name)
			}
		},
		"a pod gone":       pod(c.Gone),
		"unready":          pod(c.Unready),
		"crash":            pod(c.Crash),
		"sicken":           pod(c.Sicken),
		"restart":          pod(func(n string) { c.Restart(n, mainContainer) }),
		"restart sidecar":  pod(func(n string) { c.Restart(n, sidecar) }),
		"fail":             pod(c.Fail),
		"evict":            pod(c.Evict),
		"kubelet hangs":    pod(c.LoseNode),
		"unknown":          pod(c.LoseTrack),
		"finalizer":        pod(func(n string) { c.Finalize(n, true) }),
		"finalizers gone":  func(*rapid.T) { finalizersGone(c) },
		"admit one":        pod(c.Admit),
		"node dies":        func(t *rapid.T) { c.KillNode(someNode(t, c)) },
		"nodes evict":      func(*rapid.T) { c.EvictDead() },
		"collect pods":     func(*rapid.T) { c.CollectPods() },
		"nodes back":       func(*rapid.T) { c.Heal() },
		"bad node":         func(t *rapid.T) { c.BadNodes[someNode(t, c)] = true },
		"room":             func(t *rapid.T) { room(c, rapid.IntRange(0, 3).Draw(t, "room")) },
		"no limit":         func(*rapid.T) { clear(c.Room) },
		"quota":            func(t *rapid.T) { c.Quota = rapid.IntRange(0, 6).Draw(t, "quota") },
		"no quota":         func(*rapid.T) { c.Quota = 0 },
		"queue":            func(t *rapid.T) { c.Queued = rapid.Bool().Draw(t, "queued") },
		"webhook":          func(t *rapid.T) { c.WebhookDown = rapid.Bool().Draw(t, "down") },
		"break a template": func(t *rapid.T) { c.Break(someComponent(t, c), true) },
		"mend a template":  func(t *rapid.T) { c.Break(someComponent(t, c), false) },
		"registry":         func(t *rapid.T) { c.Unpullable[pick(t, "image", images...)] = rapid.Bool().Draw(t, "out") },
		"time":             func(t *rapid.T) { c.Advance(time.Duration(rapid.IntRange(1, 40000).Draw(t, "ms")) * time.Millisecond) },
		"minutes":          func(t *rapid.T) { c.Advance(time.Duration(rapid.IntRange(1, 12).Draw(t, "minutes")) * time.Minute) },
		"clock jumps":      func(*rapid.T) { c.Jump(2 * time.Hour) },
		"clock steps back": func(t *rapid.T) { c.Jump(-time.Duration(rapid.IntRange(1, 3).Draw(t, "seconds")) * time.Second) },
		"edit":             func(t *rapid.T) { c.SetImage(someComponent(t, c), rapid.SampledFrom(images).Draw(t, "image")) },
		"edit env":         func(t *rapid.T) { c.SetEnv(someComponent(t, c), pick(t, "env", "", "x")) },
		"bad image": func(t *rapid.T) {
			c.SetImage(someComponent(t, c), pick(t, "image", BadImage, BadImage, CrashImage, InvalidImage))
		},
		"scale":               func(t *rapid.T) { c.Scale(someComponent(t, c), rapid.Int32Range(1, 6).Draw(t, "n")) },
		"scale again":         func(t *rapid.T) { c.Scale(someComponent(t, c), rapid.Int32Range(1, 6).Draw(t, "n")) },
		"strategy":            func(t *rapid.T) { c.SetStrategy(someComponent(t, c), pick(t, "strategy", Strategies...)) },
		"partition":           func(t *rapid.T) { c.SetPartition(someComponent(t, c), rapid.Int32Range(0, 3).Draw(t, "p")) },
		"pause":               func(t *rapid.T) { c.Pause(pick(t, "value", "true", "freeze", "", "", "yes")) },
		"release":             func(t *rapid.T) { c.ReleaseAll() },
		"release what is not": func(t *rapid.T) { c.Release(someComponent(t, c), pick(t, "value", "nothing", "")) },
		"reset":               func(t *rapid.T) { c.Reset(someComponent(t, c), pick(t, "which", "all", "0", "1,2", "all,1")) },
		"delete a replica":    func(t *rapid.T) { c.maybeDelete(t) },
		"edit all": func(t *rapid.T) {
			image := rapid.SampledFrom(images).Draw(t, "image")
			for _, kind := range order {
				if _, ok := c.Pieces[kind]; ok {
					c.SetImage(kind, image)
				}
			}
		},
	}
	for name, do := range all {
		all[name] = func(t *rapid.T) {
			steps.Add(1)
			do(t)
		}
	}
	all[""] = func(t *rapid.T) {
		if c.Violation != nil {
			fatal(t, c, c.Violation)
		}
	}
	return all
}

// maybeDelete is rare: it ends whatever was under way.
func (c *Cluster) maybeDelete(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
		c.DeleteReplica(someComponent(t, c))
	}
}

func room(c *Cluster, n int) {
	for _, name := range c.Nodes() {
		c.Room[name] = n
	}
	c.dirty = true
}

func finalizersGone(c *Cluster) {
	for _, p := range c.Pods() {
		c.Finalize(p.Name, false)
	}
}

func fatal(t *rapid.T, c *Cluster, err error) {
	t.Helper()
	t.Fatalf("%v\n%s\n%s", err, strings.Join(c.Moves, "\n"), c.Describe())
}

// mend takes every obstacle away that only a person or a machine could.
func mend(c *Cluster) {
	c.Pause("")
	for kind, piece := range c.Pieces {
		c.Break(kind, false)
		switch piece.Image {
		case BadImage, CrashImage, InvalidImage:
			c.SetImage(kind, "v3")
		}
		c.SetPartition(kind, 0)
		c.Change(kind, "new budget", func(p *Piece) {
			if p.MaxSurge == intstr.FromInt32(0) {
				p.MaxSurge = intstr.FromInt32(1)
			}
			if p.MaxUnavailable == "0" {
				p.MaxUnavailable = "1"
			}
		})
		if piece.Strategy == v1beta1.InPlaceOnly {
			c.SetStrategy(kind, v1beta1.InPlaceIfPossible)
		}
	}
	for _, image := range images {
		delete(c.Unpullable, image)
	}
	c.Quota, c.WebhookDown, c.Queued = 0, false, false
	clear(c.Room)
	clear(c.Sick)
	c.Heal()
	for _, p := range c.Pods() {
		c.Admit(p.Name)
		c.Finalize(p.Name, false)
	}
	c.ReleaseAll()
	c.dirty = true
}

// steps counts the random steps of all shards, and covered the cells they reached.
var (
	steps   atomic.Int64
	covered = NewCoverage()
)

// lives is the long property: no action ever does what none may; once faults stop, the
// service ends at its goal, or says what keeps it from there; and once that is out of
// the way it gets there, by events and wake times alone.
func lives(t *rapid.T) {
	c := drawCluster(t)
	if rapid.IntRange(0, 3).Draw(t, "settled first") > 0 {
		if err := c.Settle(10000); err != nil {
			fatal(t, c, fmt.Errorf("first settle: %w", err))
		}
	}
	t.Repeat(actions(t, c))
	if rapid.IntRange(0, 1).Draw(t, "obstacles stay for a while") == 0 {
		if err := c.Endure(20000, 12*time.Hour); err != nil {
			fatal(t, c, fmt.Errorf("with obstacles: %w", err))
		}
		if err := c.Explained(); err != nil {
			fatal(t, c, err)
		}
	}
	mend(c)
	if rapid.IntRange(0, 9).Draw(t, "the service goes") == 0 {
		c.DeleteService()
	}
	err := c.Settle(20000)
	for err == nil && c.ReleaseAll() { // one revision of each component at a time
		err = c.Settle(20000)
	}
	if err == nil {
		err = c.Rested()
	}
	if err != nil {
		fatal(t, c, fmt.Errorf("at the end: %w", err))
	}
}

// TestEveryReachableStateEndsTheRoll shares the steps of the budget between two
// processors, and then shows what they reached.
func TestEveryReachableStateEndsTheRoll(t *testing.T) {
	start := time.Now()
	t.Run("shards", func(t *testing.T) {
		for shard := range 2 {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for steps.Load() < int64(*stepBudget) && !t.Failed() {
					rapid.Check(t, lives)
				}
			})
		}
	})
	t.Logf("%d steps in %s", steps.Load(), time.Since(start).Round(time.Second))
	reportCoverage(t)
}

// Under a pause nothing starts, and what runs keeps running.
func TestAPauseHoldsTheRoll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		for kind, piece := range c.Pieces {
			piece.Strategy, piece.MaxSurge = v1beta1.SurgeThenDrain, intstr.FromInt32(1)
			c.Pieces[kind] = piece
		}
		if err := c.Settle(5000); err != nil {
			fatal(t, c, err)
		}
		for kind := range c.Pieces {
			c.SetImage(kind, "v2")
		}
		for range rapid.IntRange(0, 12).Draw(t, "rounds before the pause") {
			c.SyncAll()
			c.Pass()
			startAll(c)
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
			fatal(t, c, err)
		}
		for _, m := range c.Moves[before:] {
			if containsWord(m, "unserve") && !drainUnderWay(c.Moves[:before], m) {
				fatal(t, c, fmt.Errorf("paused, yet %q", m))
			}
		}
		for kind, n := range serving {
			if now := c.Serving(kind); now < min(n, c.Desired(kind)) {
				fatal(t, c, fmt.Errorf("%s served %d Instances at the pause and %d after", kind, n, now))
			}
		}
		c.Pause("")
		if err := c.Settle(5000); err != nil {
			fatal(t, c, err)
		}
		if err := c.Rested(); err != nil {
			fatal(t, c, fmt.Errorf("after the resume: %w", err))
		}
	})
}
