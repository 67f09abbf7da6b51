package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestCanary holds canaries to their promises, judged by a Prometheus that scrapes the pods.
func TestCanary(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	l := startLab(ctx, t, "--nodes=4", "--prometheus") // 8 GPUs each; the pair uses 16 at one time
	l.apply(ctx, t, hasty(t)...)
	l.apply(ctx, t, chatRuntime(t), deadProvider())
	t.Run("canaries", func(t *testing.T) {
		for name, test := range map[string]func(context.Context, *testing.T, *lab){
			"through three gates":               throughThreeGates,
			"errors roll back":                  errorsRollBack,
			"rejected, and retried":             rejectedAndRetried,
			"no server: hold":                   noServerHold,
			"no server: roll back":              noServerRollBack,
			"no server: roll back when stalled": noServerStall,
			"capacity never comes":              capacityNeverComes,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(ctx, t, l)
			})
		}
	})
}

// deadProvider is a server that the operator has bound and that nobody listens for.
func deadProvider() *unstructured.Unstructured {
	u := settings("{}")
	u.Object["data"] = map[string]any{"metricProviders": `{"gone": {"serverAddress": "http://127.0.0.1:9"}}`}
	return u
}

// throughThreeGates: engines and decoders go to a sound revision together, past a timed gate, one that a person opens, and
// one of analysis.
func throughThreeGates(ctx context.Context, t *testing.T, l *lab) {
	four := map[string]int32{"engine": 4, "decoder": 4, "router": 1}
	p := &pd{lab: l, ns: "gates", counts: four, more: map[string]any{"lifecycle": strategy("SurgeThenDrain", "maxSurge", 4)}}
	p.rollout = `{"groups":[{"components":["engine","decoder"],"canary":{"steps":[
		{"capacity":"25%","traffic":25,"pause":{"duration":"20s"}},
		{"capacity":"50%","traffic":50,"pause":{}},
		{"capacity":"100%","traffic":100,"analysis":` + noErrors("Hold") + `}]}}]}`
	p.up(ctx, t, "v1", "v1")
	before := p.look(ctx, t)
	watch := &abreast{steps: []int{1, 2, 4}, old: map[string]string{"engine": before.hashOf("engine"), "decoder": before.hashOf("decoder")}}
	l.watchPods(ctx, t, p.ns, watch.see)
	traffic := p.load(ctx, t)

	p.roll(ctx, t, "v2", "v2")
	first := l.canaryIs(ctx, t, p.ns, pdName, "the timed gate", at(0))
	fresh := first.Canary.CanaryRevisionHash
	near(t, "25%", l.share(ctx, t, p.ns, pdName, fresh), 25)
	watch.exactly(t, p.look(ctx, t).pods, 0)

	second := l.canaryIs(ctx, t, p.ns, pdName, "the manual gate", at(1))
	if waited := second.Canary.StepEnteredTime.Sub(first.Canary.StepEnteredTime.Time).Seconds(); waited < 19 {
		t.Errorf("the timed gate of 20 s opened after %.0f s", waited)
	}
	near(t, "50%", l.share(ctx, t, p.ns, pdName, fresh), 50)
	watch.exactly(t, p.look(ctx, t).pods, 1)
	if out, code := p.ome(ctx, t, "rollout", "promote", "--yes", "--retry-on-status-change"); code != 0 {
		t.Fatalf("rollout promote ended with %d:\n%s", code, out)
	}

	third := l.canaryIs(ctx, t, p.ns, pdName, "the analysis", at(2))
	l.canaryIs(ctx, t, p.ns, pdName, "the end", phase("Stable"))
	t.Logf("the analysis began %s", third.Canary.StepEnteredTime)
	p.settle(ctx, t)
	near(t, "100%", l.share(ctx, t, p.ns, pdName, fresh), 100)
	watch.exactly(t, p.look(ctx, t).pods, 2)
	watch.mu.Lock()
	defer watch.mu.Unlock()
	if len(watch.trouble) > 0 {
		t.Errorf("engines and decoders did not move together: %v", watch.trouble)
	}
	t.Logf("new engines/decoders that served: %v", watch.counts)
	if got := traffic.endsClean(t); got.Mismatched > 0 {
		t.Errorf("%d requests were mismatched", got.Mismatched)
	}
	for _, why := range []string{"20s have passed", "it was promoted", "completed at " + fresh} {
		events := append(l.events(ctx, t, p.ns, "CanaryStepAdvanced"), l.events(ctx, t, p.ns, "CanaryCompleted")...)
		if !slices.ContainsFunc(events, func(m string) bool { return strings.Contains(m, why) }) {
			t.Errorf("no event says %q: %v", why, events)
		}
	}
}

// errorsRollBack: a revision with 20% errors is found out and taken back by nobody, what was seen is told, and the fixed
// revision needs no more than to be applied.
func errorsRollBack(ctx context.Context, t *testing.T, l *lab) {
	c := tasterOf(l, "errors", 4, `{"steps":[{"capacity":"25%","traffic":25,"analysis":`+noErrors("Hold")+`},{"capacity":"100%","traffic":100}]}`)
	c.up(ctx, t)
	stable := hash(c.mustLook(ctx, t).replica.Status.CurrentRevision)
	traffic := c.crowd(ctx, t)
	c.taste(ctx, t, "v2-err20")
	back := c.is(ctx, t, "rolled back", phase("RolledBack"))
	bad := back.Canary.RolledBackRevisionHash
	if bad == "" || bad == stable || back.Canary.ObservedTrafficWeight != 0 || back.Canary.LastRequest != nil {
		t.Errorf("the record after the rollback: %+v", back)
	}
	c.stable(ctx, t, stable)
	if got := c.events(ctx, t, "CanaryStepAdvanced"); len(got) > 0 {
		t.Errorf("the bad revision went further: %v", got)
	}
	tellsWhy(ctx, t, &c, back, stable)
	near(t, "rolled back", l.share(ctx, t, c.ns, chatName, stable), 100)

	c.taste(ctx, t, "v3")
	c.is(ctx, t, "the fixed revision is out", phase("Stable"))
	c.settle(ctx, t, "v3")
	result := traffic.end(t)
	lostOnlyOwn(t, result)
	servedBy(t, result, stable, bad, hash(c.mustLook(ctx, t).replica.Status.CurrentRevision))
	t.Logf("%d of %d requests failed, %v", result.Failed, result.Sent, result.Failures)
	if result.Failed == 0 {
		t.Error("no request met the errors of the bad revision")
	}
}

// tellsWhy: what kubectl says of the service, and nothing else, answers why it went back.
func tellsWhy(ctx context.Context, t *testing.T, c *taster, r canaryRecord, stable string) {
	t.Helper()
	out, code := c.run(ctx, t, "ome-lab", "kubectl", "describe", "isvc", chatName, "-n", c.ns)
	if code != 0 {
		t.Fatalf("kubectl describe ended with %d:\n%s", code, out)
	}
	bad := r.Canary.RolledBackRevisionHash
	results := r.Canary.MetricResults
	if len(results) != 1 || results[0].Passed || results[0].Value == "" || results[0].Time == nil {
		t.Fatalf("the last sample: %+v", results)
	}
	// The query is folded by kubectl where it is long.
	flat := strings.Join(strings.Fields(out), " ")
	for what, want := range map[string]string{
		"metric": "Name: errors", "value": "Value: " + results[0].Value, "threshold": "Threshold: 0.02",
		"time":           "Time: " + results[0].Time.UTC().Format("2006-01-02T15:04:05Z"),
		"resolved query": fmt.Sprintf(`sum(rate(ome_lab_errors_total{namespace="%s",inferenceservice="chat",component="engine",revision_hash="%s"}[6s]))`, c.ns, bad),
		"outcome":        fmt.Sprintf("the canary of engine goes back from %s to %s", bad, stable),
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("kubectl describe doesn't tell the %s, %q:\n%s", what, want, out)
		}
	}
}

// rejectedAndRetried: what a person rolled back stays away, also when it is applied again, and comes back when somebody
// asks for it once.
func rejectedAndRetried(ctx context.Context, t *testing.T, l *lab) {
	c := tasterOf(l, "retried", 2, `{"steps":[{"capacity":"50%","traffic":50,"pause":{}},{"capacity":"100%","traffic":100}]}`)
	c.up(ctx, t)
	stable := hash(c.mustLook(ctx, t).replica.Status.CurrentRevision)
	traffic := c.send(ctx, t)
	c.taste(ctx, t, "v2")
	c.is(ctx, t, "the manual gate", at(0))
	c.ome(ctx, t, "rollout", "rollback", "--yes", "--retry-on-status-change")
	back := c.is(ctx, t, "rolled back", phase("RolledBack"))
	c.stable(ctx, t, stable)

	// Another edit of the service, with the rejected image in it: it is seen, and the image stays away.
	c.canary = strings.Replace(c.canary, "{", `{"scaleDownDelaySeconds":1,`, 1)
	c.taste(ctx, t, "v2")
	c.until(ctx, t, "the edit is seen", func(l *look) []string {
		if l.service.Status.ObservedGeneration != l.service.Metadata.Generation {
			return []string{"not yet"}
		}
		return allOn(l.pods, int(c.n), stable)
	})
	if now, err := l.canary(ctx, c.ns, chatName); err != nil || now.RolloutPhase != "RolledBack" || now.Canary.RolledBackRevisionHash != back.Canary.RolledBackRevisionHash {
		t.Errorf("applied again, the rejected revision is %+v, %v", now, err)
	}

	c.ome(ctx, t, "rollout", "retry", "--yes", "--retry-on-status-change")
	again := c.is(ctx, t, "the manual gate again", at(0))
	if again.Canary.CanaryRevisionHash != back.Canary.RolledBackRevisionHash {
		t.Errorf("the retry rolls out %s, not %s", again.Canary.CanaryRevisionHash, back.Canary.RolledBackRevisionHash)
	}
	c.ome(ctx, t, "rollout", "promote", "--yes", "--retry-on-status-change")
	c.settle(ctx, t, "v2")
	traffic.endsClean(t)
}

// unreachable is a canary whose server of metrics nobody listens for.
func unreachable(l *lab, ns, policy string) taster {
	c := tasterOf(l, ns, 2, `{"prometheus":{"providerRef":{"name":"gone"}},"steps":[{"capacity":"50%","traffic":50,"analysis":`+noErrors(policy)+`},{"capacity":"100%","traffic":100}]}`)
	c.annotations = map[string]any{"ome.io/rollout-ready-timeout": "15s"}
	return c
}

// unanswered waits for a sample that nobody answered, and says what the step still is.
func unanswered(ctx context.Context, t *testing.T, c *taster) canaryRecord {
	t.Helper()
	r := c.is(ctx, t, "a sample without an answer", func(r canaryRecord) bool { return len(r.Canary.MetricResults) > 0 })
	m := r.Canary.MetricResults[0]
	if m.Passed || m.Value != "" || !strings.Contains(m.Message, "connection refused") {
		t.Errorf("the sample of a server that is not there: %+v", m)
	}
	return r
}

// noServerHold: without answers the step holds, and fails when that takes too long. A fixed revision is all it needs then.
func noServerHold(ctx context.Context, t *testing.T, l *lab) {
	c := unreachable(l, "no-server-hold", "Hold")
	c.up(ctx, t)
	traffic := c.send(ctx, t)
	c.taste(ctx, t, "v2")
	if r := unanswered(ctx, t, &c); r.RolloutPhase != "Paused" || r.Canary.CurrentStep != 0 {
		t.Errorf("without an answer the canary is %+v", r)
	}
	r := c.is(ctx, t, "failed", phase("Failed"))
	if r.Canary.Failed == nil || r.Canary.Failed.Reason != "AnalysisStalled" || r.Canary.CurrentStep != 0 {
		t.Errorf("the failed canary: %+v", r)
	}
	c.canary = `{"steps":[{"capacity":"50%","traffic":50},{"capacity":"100%","traffic":100}]}`
	c.taste(ctx, t, "v3")
	c.settle(ctx, t, "v3")
	traffic.endsClean(t)
}

// noServerRollBack: the first sample without an answer takes the canary back.
func noServerRollBack(ctx context.Context, t *testing.T, l *lab) {
	c := unreachable(l, "no-server-back", "Rollback")
	backWithoutAnswer(ctx, t, &c)
}

// noServerStall: the samples without an answer take the canary back once there were none others for long.
func noServerStall(ctx context.Context, t *testing.T, l *lab) {
	c := unreachable(l, "no-server-stall", "RollbackOnStall")
	backWithoutAnswer(ctx, t, &c)
}

func backWithoutAnswer(ctx context.Context, t *testing.T, c *taster) {
	t.Helper()
	c.up(ctx, t)
	stable := hash(c.mustLook(ctx, t).replica.Status.CurrentRevision)
	traffic := c.send(ctx, t)
	c.taste(ctx, t, "v2")
	unanswered(ctx, t, c)
	c.is(ctx, t, "rolled back", phase("RolledBack"))
	c.stable(ctx, t, stable)
	traffic.endsClean(t)
}

// capacityNeverComes: a revision that can't start fails its canary, and the fixed one goes out without further ado.
func capacityNeverComes(ctx context.Context, t *testing.T, l *lab) {
	c := tasterOf(l, "capacity", 2, `{"steps":[{"capacity":"50%","traffic":50},{"capacity":"100%","traffic":100}]}`)
	c.annotations = map[string]any{"ome.io/rollout-ready-timeout": "10s"}
	c.up(ctx, t)
	traffic := c.send(ctx, t)
	c.taste(ctx, t, "v2-neverready")
	r := c.is(ctx, t, "failed", phase("Failed"))
	if r.Canary.Failed == nil || r.Canary.Failed.Reason != "CapacityTimeout" {
		t.Errorf("the failed canary: %+v", r)
	}
	c.taste(ctx, t, "v3")
	c.settle(ctx, t, "v3")
	traffic.endsClean(t)
}
