package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/lab/internal/load"
)

const (
	kills    = 10
	killRate = 30
	// rollTime is far above what one roll takes, with a crash and a new leader in it.
	rollTime = 3 * time.Minute
)

var (
	rollCounts = map[string]int32{"engine": 5, "decoder": 2, "router": 1}
	oneEach    = map[string]int32{"engine": 1, "decoder": 1, "router": 1}
)

// TestKilledAtTenMoments kills the manager at ten writes of ten rolls under load. Each roll must end as one that nobody
// disturbed, and no request may notice.
func TestKilledAtTenMoments(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if text := os.Getenv("OME_E2E_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("OME_E2E_SEED: %v", err)
		}
	}
	moments := draw(seed, kills)
	fmt.Printf("the manager dies at %v; to repeat: OME_E2E_SEED=%d\n", moments, seed)

	ctx := deadline(t)
	l := startLab(ctx, t, "--nodes=3")
	r := &rolls{lab: l, ns: "mistral-demo", name: "mistral-pd"}
	l.apply(ctx, t, append(hasty(t), namespace(r.ns), namespace("undisturbed"))...)
	r.service(ctx, t, 1)
	r.learn(ctx, t, 2+len(moments))
	r.settle(ctx, t, 1)

	stop := r.startLoad(ctx, t)
	// The first roll is left alone. It shows that every moment lies inside a roll.
	before := l.writes(t)
	r.service(ctx, t, 2)
	took := r.settle(ctx, t, 2)
	after := l.writes(t)
	for _, k := range kindsOfARoll {
		if n := after[k.name] - before[k.name]; n < k.least {
			t.Errorf("a roll has %d writes of kind %s, and the test counts on %d", n, k.name, k.least)
		}
		before[k.name] = after[k.name] - before[k.name]
	}
	t.Logf("undisturbed: %.1fs, writes %v", took.Seconds(), before)
	for i, m := range moments {
		r.kill(ctx, t, m, 3+i)
	}
	r.judge(t, stop())
}

// rolls is one service that goes from version to version.
type rolls struct {
	*lab
	ns, name string
	want     map[int]expectation
	spec     map[string]any
}

func version(v int) string { return "v" + strconv.Itoa(v) }

// service applies one version and keeps what was stored.
func (r *rolls) service(ctx context.Context, t *testing.T, v int) {
	t.Helper()
	r.apply(ctx, t, sampleService(t, r.ns, r.name, version(v), rollCounts))
	s, err := r.snapshot(ctx, r.ns, r.name)
	if err != nil {
		t.Fatal(err)
	}
	r.spec = s.service.Spec
	for comp := range rollCounts {
		asked, _ := r.spec[comp].(map[string]any)
		runner, _ := asked["runner"].(map[string]any)
		if want := "lab.ome.io/" + comp + ":" + version(v); comp != "router" && runner["image"] != want {
			t.Fatalf("the stored %s has image %v, want %s", comp, runner["image"], want)
		}
	}
}

// learn has an undisturbed manager make the replicas and revisions of every version, of a service that differs in its
// namespace and its counts only: neither is part of a revision.
func (r *rolls) learn(ctx context.Context, t *testing.T, versions int) {
	t.Helper()
	r.want = map[int]expectation{}
	for v := 1; v <= versions; v++ {
		r.apply(ctx, t, sampleService(t, "undisturbed", r.name, version(v), oneEach))
		want := expectation{counts: rollCounts, intent: map[string]map[string]any{}, revision: map[string]string{}}
		until(ctx, t, "the revisions of "+version(v), time.Minute, func() (out []string) {
			s, err := r.snapshot(ctx, "undisturbed", r.name)
			if err != nil {
				return []string{err.Error()}
			}
			for comp := range rollCounts {
				got := s.replicas[comp]
				image := wantImage(got.Spec)
				if got.Status.ObservedGeneration != got.Metadata.Generation || got.Status.UpdateRevision == "" ||
					comp != "router" && !strings.HasSuffix(image, ":"+version(v)) {
					out = append(out, fmt.Sprintf("%s: image %q, generation %d of %d, revision %q", comp, image,
						got.Status.ObservedGeneration, got.Metadata.Generation, got.Status.UpdateRevision))
				}
				want.intent[comp], want.revision[comp] = got.intent(), got.Status.UpdateRevision
			}
			return out
		})
		for old, known := range r.want {
			if known.revision["engine"] == want.revision["engine"] || known.revision["decoder"] == want.revision["decoder"] {
				t.Fatalf("versions %d and %d have one revision: %v", old, v, want.revision)
			}
		}
		r.want[v] = want
	}
	// From here on every write is of the roll that is looked at.
	last := r.want[versions]
	last.counts = oneEach
	until(ctx, t, "the undisturbed service's rest", rollTime, func() []string {
		s, err := r.snapshot(ctx, "undisturbed", r.name)
		if err != nil {
			return []string{err.Error()}
		}
		last.spec = s.service.Spec
		return s.differences(last)
	})
}

// settle waits until nothing differs from what an undisturbed roll ends in.
func (r *rolls) settle(ctx context.Context, t *testing.T, v int) time.Duration {
	t.Helper()
	want := r.want[v]
	want.spec = r.spec
	began := time.Now()
	until(ctx, t, "the roll to "+version(v), rollTime, func() []string {
		s, err := r.snapshot(ctx, r.ns, r.name)
		if err != nil {
			return []string{err.Error()}
		}
		return s.differences(want)
	})
	return time.Since(began)
}

// kill rolls to a version with a manager that dies at the moment, and waits for its successor to end the roll.
func (r *rolls) kill(ctx context.Context, t *testing.T, m moment, v int) {
	t.Helper()
	victim := r.restartManager(ctx, t, "--lab-crash="+m.String())
	if !victim.Alive() {
		t.Fatalf("%s: the manager died before anything was to do", m)
	}
	began := time.Now()
	r.service(ctx, t, v)
	want := r.want[v]
	want.spec = r.spec
	until(ctx, t, m.String()+": the manager's death", rollTime, func() []string {
		if !victim.Alive() {
			return nil
		}
		s, err := r.snapshot(ctx, r.ns, r.name)
		if err != nil {
			return []string{err.Error()}
		}
		if len(s.differences(want)) == 0 && victim.Alive() {
			t.Fatalf("%s was not reached: the roll to %s ended with the manager alive", m, version(v))
		}
		return []string{"process " + strconv.Itoa(victim.PID) + " lives; " + s.progress()}
	})
	died := time.Since(began)
	at, err := r.snapshot(ctx, r.ns, r.name)
	if err != nil {
		t.Fatal(err)
	}
	until(ctx, t, m.String()+": word of the manager's end", time.Minute, func() []string {
		how := r.end(t, victim.PID)
		if how != "" && how != "signal: killed" {
			t.Fatalf("%s: the manager ended with %q, not by SIGKILL", m, how)
		}
		if how == "" {
			return []string{"the supervisor has not noticed"}
		}
		return nil
	})
	r.settle(ctx, t, v)
	if heir := r.manager(t); heir.PID == victim.PID {
		t.Errorf("%s: no other manager ended the roll", m)
	}
	t.Logf("%-26s died after %4.1fs at %s; rolled after %4.1fs", m, died.Seconds(), at.progress(), time.Since(began).Seconds())
}

// end is how a manager ended, from the supervisor that waited for it.
func (r *rolls) end(t *testing.T, pid int) string {
	t.Helper()
	raw, err := os.ReadFile(r.Log("supervisor"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(fmt.Sprintf(`ended unasked.* component=ome-manager pid=%d how="?([^"\n]*?)"? in=`, pid)).FindSubmatch(raw)
	if m == nil {
		return ""
	}
	return string(m[1])
}

// startLoad sends requests until the returned function is called.
func (r *rolls) startLoad(ctx context.Context, t *testing.T) func() *load.Result {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var result *load.Result
	var err error
	started, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		result, err = load.Run(ctx, load.Config{Client: r.kube, Service: types.NamespacedName{Namespace: r.ns, Name: r.name},
			Rate: killRate, OnStart: func() { close(started) }})
	}()
	stop := func() *load.Result {
		cancel()
		<-done
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	t.Cleanup(func() {
		cancel()
		<-done
		if t.Failed() && result != nil {
			var b strings.Builder
			_ = result.Table(&b)
			t.Logf("the load up to the failure:\n%s", &b)
		}
	})
	select {
	case <-started:
	case <-done:
		stop()
	}
	return stop
}

func (r *rolls) judge(t *testing.T, got *load.Result) {
	t.Helper()
	if got.Failed != 0 || got.Mismatched != 0 {
		t.Errorf("%d of %d requests failed, %d mismatched", got.Failed, got.Sent, got.Mismatched)
	}
	served := map[string]bool{}
	for _, n := range got.ByRevision {
		served[n.Engine], served[n.Decoder] = true, true
	}
	for v, want := range r.want {
		for _, comp := range []string{"engine", "decoder"} {
			if name := want.revision[comp]; !slices.ContainsFunc(slices.Collect(maps.Keys(served)), func(hash string) bool { return hash != "" && strings.HasSuffix(name, hash) }) {
				t.Errorf("no request was served by %s %s: the load did not cover its roll", comp, version(v))
			}
		}
	}
	fmt.Printf("%d requests in %s under %d kills: %d ok, %d failed, %d mismatched, p50 %.0fms, p99 %.0fms\n", got.Sent,
		got.LastRequest.Sub(got.FirstRequest).Round(time.Second), kills, got.OK, got.Failed, got.Mismatched, got.LatencyMS.P50, got.LatencyMS.P99)
}

// writes counts the manager's writes by kind since it started.
func (l *lab) writes(t *testing.T) map[string]int {
	t.Helper()
	c := l.manager(t)
	res, err := http.Get("http://127.0.0.1:" + strconv.Itoa(c.Ports["metrics"]) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	out := map[string]int{}
	line := regexp.MustCompile(`^ome_writes_total\{kind="([^"]+)".*\} (\d+)`)
	sc := bufio.NewScanner(res.Body)
	for sc.Scan() {
		if m := line.FindStringSubmatch(sc.Text()); m != nil {
			n, _ := strconv.Atoi(m[2])
			out[m[1]] += n
		}
	}
	if err := sc.Err(); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return out
}
