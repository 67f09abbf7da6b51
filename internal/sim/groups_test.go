package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/validate"
)

// object is the service as its owner would write it, for admission to judge.
func object(pieces map[v1beta1.ComponentType]Piece, spec *v1beta1.RolloutSpec) *v1beta1.InferenceService {
	s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name}}
	s.Spec.DeploymentMode = v1beta1.OMENativeMode
	s.Spec.Runtime = &v1beta1.ServingRuntimeRef{Name: "rt"}
	s.Spec.Rollout = spec
	for kind, p := range pieces {
		n := int(p.Replicas)
		update := &v1beta1.InstanceRollingUpdate{MaxSurge: new(p.MaxSurge)}
		if p.MaxUnavailable != "" {
			update.MaxUnavailable = new(intstr.Parse(p.MaxUnavailable))
		}
		ext := v1beta1.ComponentExtensionSpec{MinReplicas: &n, MaxReplicas: &n, Lifecycle: &v1beta1.LifecycleSpec{
			UpdateStrategy: &v1beta1.UpdateStrategy{Type: p.strategy(), RollingUpdate: update},
		}}
		runner := &v1beta1.RunnerSpec{Container: corev1.Container{Name: mainContainer, Image: p.Image, Env: []corev1.EnvVar{{Name: "FLAVOUR", Value: p.Env}}}}
		shape := v1beta1.EngineSpec{ComponentExtensionSpec: ext, Runner: runner}
		switch kind {
		case v1beta1.EngineComponent:
			s.Spec.Engine = &shape
		case v1beta1.DecoderComponent:
			s.Spec.Decoder = new(v1beta1.DecoderSpec(shape))
		default:
			s.Spec.Router = &v1beta1.RouterSpec{ComponentExtensionSpec: ext, Runner: runner}
		}
	}
	return s
}

// admitted says whether admission takes the service, as an edit of what c has if there is one.
func admitted(c *Cluster, pieces map[v1beta1.ComponentType]Piece, spec *v1beta1.RolloutSpec) bool {
	var old *v1beta1.InferenceService
	if c != nil {
		old = object(c.Pieces, c.Rollout())
	}
	return validate.InferenceService(object(pieces, spec), old, validate.Options{PoliciesServed: true}).OK()
}

// try makes an edit when admission takes it.
func try(c *Cluster, what string, change func(map[v1beta1.ComponentType]Piece, *v1beta1.RolloutSpec)) bool {
	pieces, spec := maps.Clone(c.Pieces), c.Rollout().DeepCopy()
	if spec == nil {
		spec = &v1beta1.RolloutSpec{}
	}
	change(pieces, spec)
	if !admitted(c, pieces, spec) {
		return false
	}
	c.Edit(pieces, spec, what+groupWords(spec))
	return true
}

// groupWords spells the groups out for a story.
func groupWords(spec *v1beta1.RolloutSpec) string {
	out := " | token " + spec.PairingProtocol
	for i := range spec.Groups {
		g := &spec.Groups[i]
		out += fmt.Sprintf(" | %v", g.Components)
		if r := g.RollingUpdate; r != nil {
			out += fmt.Sprintf(" rolling surge %v unavailable %v", r.MaxSurge, r.MaxUnavailable)
		}
		if r := g.MaintainRatio; r != nil {
			out += " ratio"
			if r.Tolerance != nil {
				out += fmt.Sprintf(" %d", *r.Tolerance)
			}
		}
		if g.Soak != nil {
			out += " soak " + g.Soak.Duration.String()
		}
		if g.PolicyRef != nil {
			out += " policy " + g.PolicyRef.Name
		}
	}
	return out
}

func setPiece(pieces map[v1beta1.ComponentType]Piece, kind v1beta1.ComponentType, change func(*Piece)) {
	p := pieces[kind]
	change(&p)
	pieces[kind] = p
}

func drawBudget(t *rapid.T, name string) *intstr.IntOrString {
	switch rapid.IntRange(0, 5).Draw(t, name) {
	case 0:
		return nil
	case 1:
		return new(intstr.FromInt32(0))
	case 2:
		return new(intstr.FromString("50%"))
	}
	return new(intstr.FromInt32(rapid.Int32Range(1, 3).Draw(t, name+" count")))
}

func drawReplicas(t *rapid.T, name string) int32 {
	if rapid.IntRange(0, 9).Draw(t, name+" many") == 0 {
		return rapid.Int32Range(7, 40).Draw(t, name)
	}
	return rapid.Int32Range(1, 6).Draw(t, name)
}

// drawGroups is any list of groups over the components; most are admitted.
func drawGroups(t *rapid.T, pieces map[v1beta1.ComponentType]Piece) *v1beta1.RolloutSpec {
	kinds := slices.DeleteFunc(slices.Clone(order), func(k v1beta1.ComponentType) bool { _, ok := pieces[k]; return !ok })
	kinds = rapid.Permutation(kinds).Draw(t, "order")
	spec := &v1beta1.RolloutSpec{PairingProtocol: pick(t, "token", "", "kv-1", "kv-2")}
	shape := pick(t, "shape", "together", "together", "sequence", "any")
	for len(kinds) > 0 {
		n := 1
		switch shape {
		case "together":
			n = len(kinds)
			if n == 3 && rapid.Bool().Draw(t, "two") {
				n = 2
			}
		case "any":
			n = rapid.IntRange(1, len(kinds)).Draw(t, "members")
		}
		g := v1beta1.RolloutGroup{Components: slices.Clone(kinds[:n])}
		kinds = kinds[n:]
		if shape == "sequence" {
			if rapid.Bool().Draw(t, "soaks") {
				g.Soak = &metav1.Duration{Duration: time.Duration(rapid.IntRange(1, 30).Draw(t, "soak")) * time.Minute}
			}
		} else {
			drawProgression(t, &g)
		}
		spec.Groups = append(spec.Groups, g)
		if shape == "together" && len(kinds) > 0 && rapid.Bool().Draw(t, "rest alone") {
			break // a component in no group
		}
	}
	if len(spec.Groups) > 1 && shape != "sequence" {
		spec.GroupOrdering = v1beta1.GroupOrderingConcurrent
	}
	return spec
}

func drawProgression(t *rapid.T, g *v1beta1.RolloutGroup) {
	if rapid.IntRange(0, 2).Draw(t, "rolling") == 0 {
		g.RollingUpdate = &v1beta1.GroupRollingUpdate{MaxSurge: drawBudget(t, "group surge"), MaxUnavailable: drawBudget(t, "group unavailable")}
	} else if rapid.Bool().Draw(t, "spelled") {
		g.BlueGreen = &v1beta1.GroupBlueGreen{}
	}
	if rapid.IntRange(0, 2).Draw(t, "ratio") > 0 {
		g.MaintainRatio = &v1beta1.MaintainRatio{}
		if rapid.IntRange(0, 4).Draw(t, "tolerance set") > 0 {
			g.MaintainRatio.Tolerance = new(pick(t, "tolerance", 0, 5, 20, 25, 34, 50, 100, rapid.Int32Range(0, 100).Draw(t, "any tolerance")))
		}
	}
}

// drawGrouped is a service with groups, as admission takes it.
func drawGrouped(t *rapid.T) *Cluster {
	calm := rapid.IntRange(0, 2).Draw(t, "calm") == 0
	kinds := pick(t, "components",
		[]v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent},
		[]v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent, v1beta1.RouterComponent},
		[]v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent},
		[]v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.RouterComponent},
		[]v1beta1.ComponentType{v1beta1.EngineComponent})
	pieces := map[v1beta1.ComponentType]Piece{}
	pair := rapid.IntRange(0, 3).Draw(t, "a pair") == 0 // what a change of the token is about
	if pair {
		kinds = order[:2]
	}
	for _, kind := range kinds {
		name := func(s string) string { return string(kind) + " " + s }
		p := Piece{
			Image: "v1", Replicas: drawReplicas(t, name("replicas")),
			Strategy:        pick(t, name("strategy"), v1beta1.SurgeThenDrain, v1beta1.SurgeThenDrain, v1beta1.SurgeThenDrain, v1beta1.RecreatePod, v1beta1.InPlaceIfPossible),
			MaxSurge:        pick(t, name("surge"), intstr.FromString("25%"), intstr.FromString("100%"), intstr.FromInt32(2)),
			MaxUnavailable:  pick(t, name("unavailable"), "25%", "1", "50%", ""),
			MinReadySeconds: pick[int32](t, name("minReadySeconds"), 0, 0, 0, 5),
			RestartPolicy:   pick(t, name("restartPolicy"), v1beta1.RestartNone, v1beta1.RestartRecreateInstance),
			External:        !calm && rapid.IntRange(0, 3).Draw(t, name("external")) == 0,
		}
		if p.External {
			p.Replicas = min(p.Replicas, 6)
		}
		if pair {
			p.Strategy, p.Replicas = v1beta1.SurgeThenDrain, min(p.Replicas, 3)
		}
		pieces[kind] = p
	}
	spec := drawGroups(t, pieces)
	if pair {
		ratio := spec.Groups[0].MaintainRatio
		spec = together()
		spec.PairingProtocol, spec.Groups[0].MaintainRatio = "kv-1", ratio
	}
	if !admitted(nil, pieces, spec) {
		t.Skip("not admitted")
	}
	c := New(pieces, spec)
	c.policies = map[string]plan.Policy{}
	c.Calm = calm
	c.Ways, c.Digests = ways.count, digests.is
	c.Settings.Lifecycle.MaxOpenOperations = pick[int32](t, "open operations", 500, 500, 3)
	c.logf("user: service%s", groupWords(spec))
	return c
}

// withMembers are the components that admission wants changed together with one.
func withMembers(c *Cluster, kind v1beta1.ComponentType) []v1beta1.ComponentType {
	if r := c.Rollout(); r != nil {
		for i := range r.Groups {
			if g := &r.Groups[i]; g.RollingUpdate != nil && slices.Contains(g.Components, kind) {
				return g.Components
			}
		}
	}
	return []v1beta1.ComponentType{kind}
}

// declared are the components that there are.
func (c *Cluster) declared() []v1beta1.ComponentType {
	return slices.DeleteFunc(slices.Clone(order), func(k v1beta1.ComponentType) bool { _, ok := c.Pieces[k]; return !ok })
}

func setImages(c *Cluster, image string, kinds ...v1beta1.ComponentType) bool {
	return try(c, fmt.Sprintf("image %s for %v", image, kinds), func(pieces map[v1beta1.ComponentType]Piece, _ *v1beta1.RolloutSpec) {
		for _, kind := range kinds {
			setPiece(pieces, kind, func(p *Piece) { p.Image = image })
		}
	})
}

// calmActions are what goes on in a world in which nothing goes wrong.
func calmActions(c *Cluster) map[string]func(*rapid.T) {
	round := func(*rapid.T) { _ = c.Round() } // the check of each step sees what is wrong
	pass := func(*rapid.T) { c.SyncAll(); c.Pass() }
	return map[string]func(*rapid.T){
		"pass": pass, "pass again": pass,
		"round": round, "round two": round, "round three": round, "round four": round,
		"start all":  func(*rapid.T) { startAll(c) },
		"start one":  onPod(c, c.Start),
		"endpoints":  func(*rapid.T) { c.Kubelet(); c.Endpoints() },
		"kubelet":    func(*rapid.T) { c.Kubelet() },
		"a pod gone": onPod(c, c.Gone),
		"wake": func(*rapid.T) {
			if c.wake.After(c.Now) {
				c.Advance(c.wake.Sub(c.Now))
				c.SyncAll()
				c.Pass()
			}
		},
		"time":     func(t *rapid.T) { c.Advance(time.Duration(rapid.IntRange(1, 40000).Draw(t, "ms")) * time.Millisecond) },
		"minutes":  func(t *rapid.T) { c.Advance(time.Duration(rapid.IntRange(1, 6).Draw(t, "minutes")) * time.Minute) },
		"edit all": func(t *rapid.T) { setImages(c, pick(t, "image", images...), c.declared()...) },
		"token":    func(t *rapid.T) { setToken(t, c) },
	}
}

func setToken(t *rapid.T, c *Cluster) {
	token := pick(t, "token", "", "kv-1", "kv-2", "kv-3")
	try(c, "token", func(_ map[v1beta1.ComponentType]Piece, s *v1beta1.RolloutSpec) { s.PairingProtocol = token })
}

func onPod(c *Cluster, do func(string)) func(*rapid.T) {
	return func(t *rapid.T) {
		if name := somePod(t, c); name != "" {
			do(name)
		}
	}
}

// groupActions are calmActions and everything that may come in between.
func groupActions(c *Cluster) map[string]func(*rapid.T) {
	edit := func(t *rapid.T) { setImages(c, pick(t, "image", images...), withMembers(c, someComponent(t, c))...) }
	more := map[string]func(*rapid.T){
		"lossy pass": func(t *rapid.T) {
			c.Lose = func(string) bool { return rapid.Bool().Draw(t, "lost") }
			c.Pass()
			c.Lose = nil
		},
		"late pass":     func(*rapid.T) { c.Pass() },
		"late pass two": func(*rapid.T) { c.Pass() },
		"see one kind":  func(t *rapid.T) { c.Sync(rapid.SampledFrom(Kinds).Draw(t, "kind")) },
		"all gone": func(*rapid.T) {
			for _, p := range c.Pods() {
				c.Gone(p.Name)
			}
		},
		"edit":          edit,
		"edit again":    edit,
		"token again":   func(t *rapid.T) { setToken(t, c) },
		"unready":       onPod(c, c.Unready),
		"fail":          onPod(c, c.Fail),
		"evict":         onPod(c, c.Evict),
		"kubelet hangs": onPod(c, c.LoseNode),
		"node dies":     func(t *rapid.T) { c.KillNode(someNode(t, c)) },
		"nodes back":    func(*rapid.T) { c.Heal() },
		"room":          func(t *rapid.T) { room(c, rapid.IntRange(1, 6).Draw(t, "room")) },
		"no limit":      func(*rapid.T) { clear(c.Room); c.dirty = true },
		"bad image":     func(t *rapid.T) { setImages(c, BadImage, withMembers(c, someComponent(t, c))...) },
		"pause":         func(t *rapid.T) { c.Pause(pick(t, "value", "true", "freeze", "", "", "")) },
		"resume":        func(*rapid.T) { c.Pause("") },
		"release":       func(*rapid.T) { c.ReleaseAll() },
		"scale":         func(t *rapid.T) { scale(t, c) },
		"break":         func(t *rapid.T) { c.Break(someComponent(t, c), rapid.IntRange(0, 2).Draw(t, "broken") == 0) },
		"retune":        func(t *rapid.T) { retune(t, c) },
		"retune now":    func(t *rapid.T) { retune(t, c); c.Repin(v1beta1.RepinNow) },
		"repin": func(t *rapid.T) {
			value := pick(t, "repin", v1beta1.RepinNow, "live", "rp1:000000000000", "nonsense")
			if value == "live" {
				value = plan.PinnedDigest(plan.Sources{Policies: c.policies}.Resolve(c.Rollout()).Plan)
			}
			c.Repin(value)
		},
		"regroup": func(t *rapid.T) {
			spec := drawGroups(t, c.Pieces)
			try(c, "groups", func(_ map[v1beta1.ComponentType]Piece, s *v1beta1.RolloutSpec) { *s = *spec })
		},
		"no groups": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
				try(c, "no groups", func(_ map[v1beta1.ComponentType]Piece, s *v1beta1.RolloutSpec) {
					*s = v1beta1.RolloutSpec{PairingProtocol: s.PairingProtocol}
				})
			}
		},
		"strategy": func(t *rapid.T) {
			kind, s := someComponent(t, c), pick(t, "strategy", v1beta1.SurgeThenDrain, v1beta1.SurgeThenDrain, v1beta1.RecreatePod, v1beta1.InPlaceIfPossible)
			try(c, fmt.Sprintf("%s %s", kind, s), func(pieces map[v1beta1.ComponentType]Piece, _ *v1beta1.RolloutSpec) {
				setPiece(pieces, kind, func(p *Piece) { p.Strategy = s })
			})
		},
		"park":     func(t *rapid.T) { park(t, c) },
		"policy":   func(t *rapid.T) { setPolicy(t, c) },
		"policies": func(t *rapid.T) { setPolicy(t, c) },
	}
	out := calmActions(c)
	maps.Copy(out, more)
	return out
}

func scale(t *rapid.T, c *Cluster) {
	kind, n := someComponent(t, c), rapid.Int32Range(1, 8).Draw(t, "n")
	if c.Pieces[kind].External {
		c.Scale(kind, n)
		return
	}
	try(c, fmt.Sprintf("%s replicas %d", kind, n), func(pieces map[v1beta1.ComponentType]Piece, _ *v1beta1.RolloutSpec) {
		setPiece(pieces, kind, func(p *Piece) { p.Replicas = n })
	})
}

// retune edits the budget of rolling-update groups, which a repin can take over.
func retune(t *rapid.T, c *Cluster) {
	surge, unavailable := drawBudget(t, "group surge"), drawBudget(t, "group unavailable")
	try(c, "budgets", func(_ map[v1beta1.ComponentType]Piece, s *v1beta1.RolloutSpec) {
		for i := range s.Groups {
			if r := s.Groups[i].RollingUpdate; r != nil {
				r.MaxSurge, r.MaxUnavailable = surge, unavailable
			}
		}
	})
}

// park makes a group depend on a policy, which may not be there.
func park(t *rapid.T, c *Cluster) {
	name, kind := pick(t, "policy", "slow", "gone"), pick(t, "kind", v1beta1.ProgressionRollingUpdate, v1beta1.ProgressionRollingUpdate, v1beta1.ProgressionBlueGreen)
	at := rapid.IntRange(0, 2).Draw(t, "group")
	try(c, "policy", func(_ map[v1beta1.ComponentType]Piece, s *v1beta1.RolloutSpec) {
		if at < len(s.Groups) {
			g := &s.Groups[at]
			g.BlueGreen, g.RollingUpdate = nil, nil
			g.PolicyRef = &v1beta1.RolloutPolicyRef{Name: name, Progression: kind}
		}
	})
}

// setPolicy makes, edits or deletes the policy.
func setPolicy(t *rapid.T, c *Cluster) {
	all := map[string]plan.Policy{}
	if rapid.IntRange(0, 2).Draw(t, "there") > 0 {
		p := &v1beta1.RolloutPolicy{}
		p.Generation = c.version
		p.Spec.RollingUpdate = &v1beta1.GroupRollingUpdate{MaxSurge: drawBudget(t, "policy surge"), MaxUnavailable: drawBudget(t, "policy unavailable")}
		all["slow"] = plan.NewPolicy(p, pick(t, "problem", "", "", "", "spec: broken"))
	}
	c.Policies(all)
	c.logf("user: policies %v", slices.Collect(maps.Keys(all)))
}

// mendGroups takes away what only the owner can: a zero budget, a missing policy.
func mendGroups(c *Cluster) {
	spec, changed := c.Rollout().DeepCopy(), false
	if spec == nil {
		return
	}
	for i := range spec.Groups {
		g := &spec.Groups[i]
		if g.PolicyRef != nil {
			g.PolicyRef, changed = nil, true
		}
		if r := g.RollingUpdate; r != nil {
			for _, b := range []**intstr.IntOrString{&r.MaxSurge, &r.MaxUnavailable} {
				if *b != nil && **b == intstr.FromInt32(0) {
					*b, changed = nil, true
				}
			}
		}
	}
	if changed {
		c.Edit(c.Pieces, spec, "mended"+groupWords(spec))
		c.Repin(v1beta1.RepinNow)
	}
}

// anotherTarget ends an open run that can't move, or whose plan no repin replaces: it
// does what the holds say, and edits the images.
func anotherTarget(c *Cluster) bool {
	spec := c.Rollout().DeepCopy()
	if c.Run() == nil || spec == nil {
		return false
	}
	for _, kind := range order {
		r := c.actual.replicas[kind]
		if r == nil || r.Status.RolloutHold == nil {
			continue
		}
		if strings.Contains(r.Status.RolloutHold.Reason, "put engine and decoder into one blueGreen group") {
			spec.Groups = together().Groups
		}
		var need int32
		if _, rest, ok := strings.Cut(r.Status.RolloutHold.Reason, "maintainRatio.tolerance of "); ok {
			_, _ = fmt.Sscanf(rest, "%d", &need)
		}
		for i := range spec.Groups {
			if g := &spec.Groups[i]; g.MaintainRatio != nil && slices.Contains(g.Components, kind) && need > 0 {
				g.MaintainRatio.Tolerance = new(min(need, 100))
			}
		}
	}
	image := "v1"
	if c.Pieces[c.declared()[0]].Image == image {
		image = "v2"
	}
	pieces := maps.Clone(c.Pieces)
	for _, kind := range c.declared() {
		setPiece(pieces, kind, func(p *Piece) { p.Image = image })
	}
	c.Edit(pieces, spec, "another target"+groupWords(spec))
	return true
}
