package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/lab/internal/cluster"
)

// TestGroups holds rollout groups to their promises, each case under a service of its own.
func TestGroups(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	l := startLab(ctx, t, "--nodes=5") // 8 GPUs each; the cases use 31 at one time
	l.apply(ctx, t, hasty(t)...)
	pairs := pairsOf(l)
	t.Run("groups", func(t *testing.T) {
		for name, test := range map[string]func(context.Context, *testing.T, *lab){
			"another wire protocol":       func(ctx context.Context, t *testing.T, _ *lab) { pairs.change(ctx, t) },
			"in proportion":               inProportion,
			"out of proportion":           outOfProportion,
			"decoder, then engine":        decoderThenEngine,
			"the soak passes":             theSoakPasses,
			"a budget of zero, and repin": aBudgetOfZero,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(ctx, t, l)
			})
		}
	})
	if t.Failed() {
		return
	}
	// What these two need, the others may not have: the kind of policies, and a manager that doesn't hold pairs.
	policies := policiesOf(l)
	policies.refused(ctx, t)
	l.restartManager(ctx, t, "--lab-skip-pairing")
	t.Run("policies", func(t *testing.T) {
		t.Parallel()
		policies.change(ctx, t)
	})
	t.Run("another wire protocol without the hold", func(t *testing.T) {
		t.Parallel()
		pairs.control(ctx, t)
	})
}

// pairing is a service whose wire protocol changes.
type pairing struct{ *pd }

func pairsOf(l *lab) pairing {
	// Routers learn of an endpoint up to two seconds late, and of an engine at another time than of a decoder. What has been
	// in rotation for less is nobody to pair with yet.
	return pairing{&pd{lab: l, ns: "pairs", counts: oneEach, rollout: protocol("kv-v1"), keep: true,
		more: map[string]any{"lifecycle": map[string]any{"minReadySeconds": int64(3)}}}}
}

func protocol(token string) string {
	return fmt.Sprintf(`{"pairingProtocol":%q,"groups":[{"components":["engine","decoder"],"blueGreen":{}}]}`, token)
}

// change: one engine and one decoder change their protocol. The engine is ready first, and its predecessor serves on until
// there is a decoder that understands it.
func (p pairing) change(ctx context.Context, t *testing.T) {
	p.up(ctx, t, "v1", "v1")
	if out, code := p.ome(ctx, t, "rollout", "validate"); code != 0 || !strings.Contains(out, "ROLLOUT-RESOLVE   -         Valid") {
		t.Errorf("rollout validate of a service at rest ended with %d:\n%s", code, out)
	}
	before := p.look(ctx, t)
	traffic := p.load(ctx, t)
	p.rollout = protocol("kv-v2")
	p.roll(ctx, t, "v1", "v2"+untold)
	p.held(ctx, t, "engine", "Pairing", `pairing protocol transition to "kv-v2": the replacement engine cannot pair because no serving decoder runs cohort "kv-v2" yet; holding the drain of the serving engine of cohort "kv-v1" until one does`)
	p.starting(ctx, t, "decoder", 1)
	p.listen(ctx, t, "decoder")
	p.settle(ctx, t)
	after := p.look(ctx, t)
	result := traffic.endsClean(t)
	if result.Mismatched != 0 {
		t.Errorf("%d of %d requests met a peer that does not understand them", result.Mismatched, result.Sent)
	}
	for _, s := range []*snapshot{before, after} {
		served := false
		for _, n := range result.ByRevision {
			served = served || n.Engine == s.hashOf("engine") && n.Decoder == s.hashOf("decoder") && n.OK > 0
		}
		if !served {
			t.Errorf("engine %s and decoder %s served no request together: %+v", s.hashOf("engine"), s.hashOf("decoder"), result.ByRevision)
		}
	}
	for _, pod := range after.pods {
		if token := pod.Labels[labelToken]; pod.Labels[labelComponent] != "router" && token != "kv-v2" {
			t.Errorf("pod %s has token %q", pod.Name, token)
		}
	}
}

// control: the same change with the hold turned off is noticed by the requests, so that those before mean something.
func (p pairing) control(ctx context.Context, t *testing.T) {
	if log, err := os.ReadFile(p.Log(cluster.ManagerName)); err != nil || !strings.Contains(string(log), "--lab-skip-pairing: ") {
		t.Errorf("the manager did not warn of what it leaves out: %v", err)
	}
	traffic := p.load(ctx, t)
	p.rollout = protocol("kv-v3")
	p.roll(ctx, t, "v1", "v3"+untold)
	p.starting(ctx, t, "decoder", 1)
	p.until(ctx, t, "the old engine's end", func(s *snapshot) (out []string) {
		for _, pod := range s.pods {
			if pod.Labels[labelComponent] == "engine" && pod.Labels[labelToken] != "kv-v3" {
				out = append(out, pod.Name+" is there")
			}
		}
		return out
	})
	p.listen(ctx, t, "decoder")
	p.settle(ctx, t)
	result := traffic.end(t)
	t.Logf("without the hold %d of %d requests were mismatched", result.Mismatched, result.Sent)
	if result.Mismatched == 0 {
		t.Errorf("no request of %d was mismatched: the load would not notice", result.Sent)
	}
}

// proportion watches four engines and two decoders move.
type proportion struct {
	mu       sync.Mutex
	old      map[string]string          // the revision before, by component
	made     map[string]map[string]bool // new pods seen, by component
	ratios   []string                   // engines to decoders that serve, as they change
	trouble  []string
	furthest int // how far one was ahead of the other when it began another Instance, in percent
}

var fourToTwo = map[string]int32{"engine": 4, "decoder": 2, "router": 1}

// see judges every state of the pods. tolerance is 25: a member that is further ahead than that begins nothing, and the
// serving counts stay between 1.5 and 2.5 to 1. One decoder more is half of the decoders, so 4:3 can't be in there.
func (r *proportion) see(pods []*corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	serving, ahead := map[string]int{}, map[string]int{}
	for _, p := range pods {
		if comp := p.Labels[labelComponent]; p.DeletionTimestamp == nil && podReady(p) {
			serving[comp]++
			if p.Labels[labelRevision] != r.old[comp] {
				ahead[comp] += 100 / int(fourToTwo[comp])
			}
		}
	}
	for comp, other := range map[string]string{"engine": "decoder", "decoder": "engine"} {
		for _, p := range pods {
			if p.Labels[labelComponent] != comp || p.Labels[labelRevision] == r.old[comp] || r.made[comp][string(p.UID)] {
				continue
			}
			r.made[comp][string(p.UID)] = true
			lead := ahead[comp] - ahead[other]
			r.furthest = max(r.furthest, lead)
			if lead > 25 {
				r.trouble = append(r.trouble, fmt.Sprintf("%s began another Instance %d%% ahead of %s", comp, lead, other))
			}
		}
	}
	e, d := serving["engine"], serving["decoder"]
	ratio := fmt.Sprintf("%d:%d", e, d)
	if n := len(r.ratios); n > 0 && r.ratios[n-1] == ratio {
		return
	}
	r.ratios = append(r.ratios, ratio)
	if e < 4 || d < 2 || e > 5 || d > 3 || (2*e < 3*d || 2*e > 5*d) && ratio != "4:3" {
		r.trouble = append(r.trouble, "serving "+ratio)
	}
}

func (r *proportion) get() (trouble, ratios []string, furthest int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.trouble), slices.Clone(r.ratios), r.furthest
}

func watchProportion(ctx context.Context, t *testing.T, p *pd) *proportion {
	t.Helper()
	s := p.look(ctx, t)
	r := &proportion{old: map[string]string{}, made: map[string]map[string]bool{}}
	for _, comp := range []string{"engine", "decoder"} {
		r.old[comp], r.made[comp] = s.hashOf(comp), map[string]bool{}
	}
	p.watchPods(ctx, t, p.ns, r.see)
	return r
}

const paced = `{"groups":[{"components":["engine","decoder"],"rollingUpdate":{"maxSurge":1,"maxUnavailable":0}%s}]}`

// inProportion: with a ratio to keep, a decoder that could go on waits for the engines.
func inProportion(ctx context.Context, t *testing.T, l *lab) {
	p := &pd{lab: l, ns: "in-proportion", counts: fourToTwo, rollout: fmt.Sprintf(paced, `,"maintainRatio":{"tolerance":25}`)}
	p.up(ctx, t, "v1", "v1")
	watch := watchProportion(ctx, t, p)
	traffic := p.load(ctx, t)
	p.roll(ctx, t, "v2"+untold, "v2")
	p.until(ctx, t, "the decoders wait for the engines", func(s *snapshot) []string {
		h := s.replicas["decoder"].Status.RolloutHold
		if h == nil || h.Gate != "Ratio" {
			return []string{fmt.Sprintf("hold %+v", h)}
		}
		return nil
	})
	t.Logf("the hold: %+v", *p.look(ctx, t).replicas["decoder"].Status.RolloutHold)
	for n := 1; n <= 4; n++ {
		p.starting(ctx, t, "engine", 1)
		p.listen(ctx, t, "engine")
		p.until(ctx, t, fmt.Sprintf("%d new engines", n), func(s *snapshot) []string {
			if got := s.replicas["engine"].Status.UpdatedReplicas; got < int64(n) {
				return []string{fmt.Sprintf("%d updated", got)}
			}
			return nil
		})
	}
	p.settle(ctx, t)
	traffic.endsClean(t)
	trouble, ratios, furthest := watch.get()
	t.Logf("serving %s; at most %d%% ahead at a start", strings.Join(ratios, " "), furthest)
	for _, s := range trouble {
		t.Error(s)
	}
	if len(ratios) < 6 {
		t.Errorf("few changes were seen: %v", ratios)
	}
}

// outOfProportion: the same without a ratio to keep breaks what the watch looks for.
func outOfProportion(ctx context.Context, t *testing.T, l *lab) {
	p := &pd{lab: l, ns: "out-of-proportion", counts: fourToTwo, rollout: fmt.Sprintf(paced, "")}
	p.up(ctx, t, "v1", "v1")
	watch := watchProportion(ctx, t, p)
	p.roll(ctx, t, "v2"+untold, "v2")
	p.until(ctx, t, "the decoders finish alone", func(s *snapshot) []string {
		if n := len(s.podsOf("decoder", watch.old["decoder"])); n > 0 {
			return []string{fmt.Sprintf("%d old decoders", n)}
		}
		return nil
	})
	if trouble, ratios, _ := watch.get(); len(trouble) == 0 {
		t.Errorf("the watch found nothing wrong with %v", ratios)
	}
}

// decoderThenEngine: what a person reads while the engine waits for the decoder, and for the soak after it.
func decoderThenEngine(ctx context.Context, t *testing.T, l *lab) {
	p := &pd{lab: l, ns: "mistral-demo", counts: oneEach, rollout: `{"groups":[{"components":["decoder"],"soak":"10m"},{"components":["engine"]}]}`}
	p.up(ctx, t, "v1", "v1")
	before := p.look(ctx, t)
	p.roll(ctx, t, "v2", "v2"+untold)
	reads := func(row string) {
		t.Helper()
		p.until(ctx, t, "the words of the hold", func(*snapshot) []string {
			out, code := l.run(ctx, t, "ome-lab", "kubectl", "get", "inferenceservice", "mistral-pd", "-n", "mistral-demo", "-o",
				"custom-columns=GATE:.status.components.engine.lifecycle.rolloutHold.gate,REASON:.status.components.engine.lifecycle.rolloutHold.reason")
			if want := "GATE         REASON\n" + row + "\n"; code != 0 || out != want {
				return []string{fmt.Sprintf("exit %d, %q, want %q", code, out, want)}
			}
			return nil
		})
	}
	p.starting(ctx, t, "decoder", 1)
	reads("Sequential   Sequential waiting on decoder")
	p.listen(ctx, t, "decoder")
	reads("Sequential   Sequential.Soak: engine waiting out the 10m0s soak after decoder")
	after := p.look(ctx, t)
	if is := after.podsOf("engine", before.hashOf("engine")); len(is) != 1 || len(after.podsOf("engine", after.hashOf("engine"))) != 0 {
		t.Errorf("the engine moved: %d old pods", len(is))
	}
	if out, code := p.ome(ctx, t, "rollout", "explain"); code != 0 || !strings.Contains(out, "Sequential.Soak: engine waiting out the 10m0s soak after decoder") || !strings.Contains(out, "rp1:") {
		t.Errorf("rollout explain ended with %d and names no hold or digest:\n%s", code, out)
	}
}

// theSoakPasses: the engine begins when the soak after the decoder is over, by itself, and no request is lost.
func theSoakPasses(ctx context.Context, t *testing.T, l *lab) {
	const soak = 5 * time.Second
	p := &pd{lab: l, ns: "soak", counts: oneEach, rollout: fmt.Sprintf(`{"groups":[{"components":["decoder"],"soak":%q},{"components":["engine"]}]}`, soak)}
	p.up(ctx, t, "v1", "v1")
	before := p.look(ctx, t)
	var mu sync.Mutex
	var decoder, engine time.Time // when the new one was ready, and when it was made
	p.watchPods(ctx, t, p.ns, func(pods []*corev1.Pod) {
		mu.Lock()
		defer mu.Unlock()
		for _, pod := range pods {
			switch comp := pod.Labels[labelComponent]; {
			case pod.Labels[labelRevision] == before.hashOf(comp):
			case comp == "decoder" && decoder.IsZero() && podReady(pod):
				decoder = time.Now()
			case comp == "engine" && engine.IsZero():
				engine = time.Now()
			}
		}
	})
	traffic := p.load(ctx, t)
	p.roll(ctx, t, "v2", "v2")
	p.settle(ctx, t)
	result := traffic.endsClean(t)
	after := p.look(ctx, t)
	servedBy(t, result, before.hashOf("engine"), after.hashOf("engine"))
	mu.Lock()
	defer mu.Unlock()
	if waited := engine.Sub(decoder); decoder.IsZero() || engine.IsZero() || waited < soak-2*time.Second { // a busy machine tells of a ready pod late
		t.Errorf("the engine began %.1fs after the decoder was ready, and the soak is %s", waited.Seconds(), soak)
	}
}

// aBudgetOfZero: under RecreatePod a group's maxUnavailable of zero moves nothing and says so. The edit that mends it is drift
// until repin takes it into the run.
func aBudgetOfZero(ctx context.Context, t *testing.T, l *lab) {
	p := &pd{lab: l, ns: "budget", counts: map[string]int32{"engine": 2, "decoder": 2, "router": 1}, rollout: fmt.Sprintf(paced, ""),
		more: map[string]any{"lifecycle": map[string]any{"updateStrategy": map[string]any{"type": "RecreatePod"}}}}
	p.up(ctx, t, "v1", "v1")
	p.roll(ctx, t, "v2", "v2")
	p.held(ctx, t, "engine", "Budget", "per-Component unavailability budget 0 exhausted (would become 1); with spec.rollout.groups[0].rollingUpdate.maxUnavailable: 0 the strategy RecreatePod can move nothing: raise it to 1 or more, or use SurgeThenDrain")
	was := p.look(ctx, t)

	p.rollout = strings.Replace(p.rollout, `"maxUnavailable":0`, `"maxUnavailable":1`, 1)
	p.roll(ctx, t, "v2", "v2")
	explained := func(what string, words ...string) {
		t.Helper()
		p.until(ctx, t, what, func(*snapshot) (missing []string) {
			out, code := p.ome(ctx, t, "rollout", "explain", "-o", "json")
			if code != 0 {
				return []string{fmt.Sprintf("exit %d: %s", code, out)}
			}
			for _, w := range words {
				if !strings.Contains(out, w) {
					missing = append(missing, w+" is not in\n"+out)
				}
			}
			return missing
		})
	}
	explained("explain tells of the drift", "SpecNewerThanRun", "differs from pinned rp1:", "(or via ome.io/rollout-repin)", "maxUnavailable: 0 the strategy RecreatePod can move nothing", `"mode": "Pinned"`)
	if now := p.look(ctx, t); len(now.podsOf("engine", was.hashOf("engine"))) != 0 {
		t.Error("an edit took effect in the run that is open")
	}
	if out, code := p.ome(ctx, t, "rollout", "repin", "--yes", "--retry-on-status-change"); code != 0 || !strings.Contains(out, "groups[0], rollingUpdate of engine,decoder, goes from rp1:") {
		t.Fatalf("rollout repin ended with %d:\n%s", code, out)
	}
	p.settle(ctx, t)
	if got := p.events(ctx, t, p.ns, "RolloutPlanRepinned"); len(got) != 1 {
		t.Errorf("RolloutPlanRepinned events %q, want one", got)
	}
	if got := p.look(ctx, t).service.Metadata.Annotations["ome.io/rollout-repin"]; got != "" {
		t.Errorf("the request %q is still there", got)
	}
	if out, code := p.ome(ctx, t, "rollout", "validate"); code != 0 {
		t.Errorf("rollout validate at the end ended with %d:\n%s", code, out)
	}
}
