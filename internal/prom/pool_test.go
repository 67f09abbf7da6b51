package prom

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/config"
)

// bench is a pool whose samples end when a test says so. It runs in a synctest bubble.
type bench struct {
	t    *testing.T
	pool *Pool

	mu       sync.Mutex
	settings config.Settings
	started  []string
	woken    []string
	ends     map[string]chan struct{}
	inFlight int
	queued   int
	starved  int
}

func (b *bench) InFlight(n int) { b.inFlight = n }
func (b *bench) Queued(n int)   { b.queued = n }
func (b *bench) Starved()       { b.starved++ }

// name of a sample in a test.
func name(id analysis.ID) string {
	return fmt.Sprintf("%s/%s.%d#%d", id.Service.Namespace, id.Service.Name, id.Group, id.After)
}

func sampleOf(namespace, service string, after int64) analysis.Request {
	return analysis.Request{ID: analysis.ID{Service: types.NamespacedName{Namespace: namespace, Name: service}, After: after}}
}

func onBench(t *testing.T, slots int32, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, ends: map[string]chan struct{}{}, settings: config.Default()}
		b.settings.CanaryAnalysis.MaxConcurrency = slots
		b.pool = NewPool(Options{
			Settings: func() config.Settings { return b.settings },
			Wake: func(key types.NamespacedName) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.woken = append(b.woken, key.String())
			},
			Observer: b,
		})
		b.pool.take = func(ctx context.Context, _ config.Settings, r analysis.Request) analysis.Sample {
			b.mu.Lock()
			b.started = append(b.started, name(r.ID))
			end := make(chan struct{})
			b.ends[name(r.ID)] = end
			b.mu.Unlock()
			at := time.Now()
			select {
			case <-end:
			case <-ctx.Done():
			}
			return analysis.Sample{ID: r.ID, At: at, Done: time.Now()}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.pool.Start(ctx) }()
		synctest.Wait()
		test(t, b)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (b *bench) ask(r ...analysis.Request) {
	for _, r := range r {
		b.pool.Ask(r)
	}
	synctest.Wait()
}

func (b *bench) end(names ...string) {
	for _, n := range names {
		b.mu.Lock()
		end := b.ends[n]
		b.mu.Unlock()
		if end == nil {
			b.t.Fatalf("%s isn't running; started were %v", n, b.started)
		}
		close(end)
		synctest.Wait()
	}
}

func (b *bench) there(namespace, service string) []string {
	var out []string
	for _, s := range b.pool.Samples(types.NamespacedName{Namespace: namespace, Name: service}) {
		out = append(out, name(s.ID))
	}
	return out
}

func (b *bench) want(what string, got, want any) {
	b.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// A sample is taken once, wakes its service once, and stays until it is replaced.
func TestOneSample(t *testing.T) {
	onBench(t, 8, func(t *testing.T, b *bench) {
		first := sampleOf("prod", "chat", 0)
		b.ask(first, first)
		b.want("there while it runs", b.there("prod", "chat"), []string(nil))
		b.ask(first)
		b.end("prod/chat.0#0")
		b.ask(first)
		b.want("started", b.started, []string{"prod/chat.0#0"})
		b.want("woken", b.woken, []string{"prod/chat"})
		b.want("read twice", [][]string{b.there("prod", "chat"), b.there("prod", "chat")}, [][]string{{"prod/chat.0#0"}, {"prod/chat.0#0"}})
		b.want("of another service", b.there("test", "chat"), []string(nil))
		b.ask(sampleOf("prod", "chat", 60))
		b.want("after the next was asked for", b.there("prod", "chat"), []string(nil))
		b.end("prod/chat.0#60")
		b.want("the next", b.there("prod", "chat"), []string{"prod/chat.0#60"})
		b.want("starved", b.starved, 0)
	})
}

// Another step asks anew: what the old one still brings is thrown away, and wakes nobody.
func TestTheStepMovedOn(t *testing.T) {
	onBench(t, 8, func(t *testing.T, b *bench) {
		old, next := sampleOf("prod", "chat", 0), sampleOf("prod", "chat", 0)
		next.ID.Step, next.ID.After = 1, 1
		b.ask(old)
		b.ask(next)
		b.want("started", b.started, []string{"prod/chat.0#0", "prod/chat.0#1"})
		b.want("woken by the old", b.woken, []string(nil))
		b.want("there", b.there("prod", "chat"), []string(nil))
		b.end("prod/chat.0#1")
		b.want("there", b.there("prod", "chat"), []string{"prod/chat.0#1"})
		b.want("slots are free again", b.inFlight, 0)
	})
}

// A sample that waits is replaced where it stands, and two groups of a service don't replace each other.
func TestReplacedWhileItWaits(t *testing.T) {
	onBench(t, 1, func(t *testing.T, b *bench) {
		other := sampleOf("prod", "chat", 7)
		other.ID.Group = 1
		b.ask(sampleOf("prod", "busy", 0), sampleOf("prod", "chat", 0), sampleOf("prod", "chat", 1), other)
		b.want("queue", []int{b.inFlight, b.queued, b.starved}, []int{1, 2, 3})
		b.end("prod/busy.0#0", "prod/chat.0#1", "prod/chat.1#7")
		b.want("started", b.started, []string{"prod/busy.0#0", "prod/chat.0#1", "prod/chat.1#7"})
		b.want("there", b.there("prod", "chat"), []string{"prod/chat.0#1", "prod/chat.1#7"})
		b.want("queue", []int{b.inFlight, b.queued}, []int{0, 0})
	})
}

// Never more at one time than the setting says, which may change while it runs.
func TestConcurrency(t *testing.T) {
	onBench(t, 2, func(t *testing.T, b *bench) {
		for i := range 5 {
			b.ask(sampleOf("prod", fmt.Sprint("s", i), 0))
		}
		b.want("started", len(b.started), 2)
		b.want("queue", []int{b.inFlight, b.queued, b.starved}, []int{2, 3, 3})
		b.settings.CanaryAnalysis.MaxConcurrency = 4
		b.end("prod/s0.0#0")
		b.want("started", len(b.started), 5)
		b.settings.CanaryAnalysis.MaxConcurrency = 0 // never none
		b.end("prod/s1.0#0", "prod/s2.0#0", "prod/s3.0#0", "prod/s4.0#0")
		b.ask(sampleOf("prod", "s0", 1))
		b.want("started", len(b.started), 6)
		b.end("prod/s0.0#1")
	})
}

// Namespaces take turns: one with many canaries doesn't keep the others waiting.
func TestNamespacesTakeTurns(t *testing.T) {
	onBench(t, 1, func(t *testing.T, b *bench) {
		b.ask(sampleOf("big", "a", 0), sampleOf("big", "b", 0), sampleOf("big", "c", 0), sampleOf("small", "x", 0), sampleOf("tiny", "y", 0))
		order := []string{"big/a.0#0", "big/b.0#0", "small/x.0#0", "tiny/y.0#0", "big/c.0#0"}
		for _, n := range order {
			b.end(n)
		}
		b.want("started", b.started, order)
	})
}

// A sample that nobody judges in time is forgotten, and asking again takes another.
func TestExpiry(t *testing.T) {
	onBench(t, 8, func(t *testing.T, b *bench) {
		r := sampleOf("prod", "chat", 0)
		b.ask(r)
		b.end("prod/chat.0#0")
		time.Sleep(2 * time.Minute) // the bubble's clock
		b.want("at its last moment", b.there("prod", "chat"), []string{"prod/chat.0#0"})
		b.ask(r)
		b.want("started", len(b.started), 1)
		time.Sleep(time.Second)
		b.want("after it", b.there("prod", "chat"), []string(nil))
		b.ask(r)
		b.want("started", len(b.started), 2)
		b.end("prod/chat.0#0")
		b.want("there again", b.there("prod", "chat"), []string{"prod/chat.0#0"})

		// Those of services that are gone are swept out.
		b.ask(sampleOf("prod", "gone", 0))
		b.end("prod/gone.0#0")
		time.Sleep(time.Hour)
		b.ask(sampleOf("prod", "other", 0))
		b.end("prod/other.0#0")
		b.want("kept", len(b.pool.tasks), 1)
	})
}

func TestForget(t *testing.T) {
	onBench(t, 1, func(t *testing.T, b *bench) {
		b.ask(sampleOf("prod", "a", 0), sampleOf("prod", "b", 0), sampleOf("prod", "c", 0))
		b.pool.Forget(types.NamespacedName{Namespace: "prod", Name: "b"}) // waits
		b.pool.Forget(types.NamespacedName{Namespace: "prod", Name: "a"}) // runs
		synctest.Wait()
		b.end("prod/c.0#0")
		b.want("started", b.started, []string{"prod/a.0#0", "prod/c.0#0"})
		b.want("woken", b.woken, []string{"prod/c"})
		b.want("kept", []int{len(b.pool.tasks), len(b.pool.waiting), len(b.pool.turns)}, []int{1, 0, 0})
	})
}

// What is asked for before the manager leads waits; a sample cut off by its end is none.
func TestStartAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := 0
		p := NewPool(Options{Settings: config.Default, Wake: func(types.NamespacedName) { t.Error("woken by half a sample") }})
		p.take = func(ctx context.Context, _ config.Settings, r analysis.Request) analysis.Sample {
			taken++
			<-ctx.Done()
			return analysis.Sample{ID: r.ID}
		}
		p.Ask(sampleOf("prod", "chat", 0))
		synctest.Wait()
		if taken != 0 {
			t.Error("taken before the start")
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Start(ctx) }()
		synctest.Wait()
		if taken != 1 {
			t.Errorf("taken %d times after the start", taken)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := p.Samples(types.NamespacedName{Namespace: "prod", Name: "chat"}); len(got) != 0 {
			t.Errorf("half a sample: %+v", got)
		}
		p.Ask(sampleOf("prod", "chat", 1))
		synctest.Wait()
		if taken != 1 {
			t.Error("taken after the end")
		}
	})
}
