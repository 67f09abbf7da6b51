package prom

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/config"
)

// Observer counts what the pool does.
type Observer interface {
	// InFlight is the number of samples being taken.
	InFlight(n int)
	// Queued is the number of samples that wait for their turn.
	Queued(n int)
	// Starved counts a sample that had to wait.
	Starved()
}

// Options of a Pool.
type Options struct {
	// Settings are the operator's as of now.
	Settings func() config.Settings
	// Token reads a bearer token.
	Token TokenReader
	// Wake tells that a sample of this service is there. It must not block.
	Wake func(types.NamespacedName)
	// Observer may be nil.
	Observer Observer
	// Now may be nil.
	Now func() time.Time
}

// Pool takes samples in the background.
type Pool struct {
	opts Options
	take func(context.Context, config.Settings, analysis.Request) analysis.Sample

	mu      sync.Mutex
	ctx     context.Context // nil until Start, and then no sample is taken
	running int
	tasks   map[place]*task
	// waiting holds the queue of each namespace, and turns the namespaces that have one in the order of
	// their turns.
	waiting map[string][]*task
	turns   []string
	done    sync.WaitGroup
}

// place is one canary of one service; it has one sample at a time.
type place struct {
	service types.NamespacedName
	group   int32
}

type task struct {
	place   place
	request analysis.Request
	// sample is set when it is done.
	sample *analysis.Sample
	// cancel is set while it is taken.
	cancel context.CancelFunc
}

// NewPool returns a pool that takes samples once it is started.
func NewPool(opts Options) *Pool {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	p := &Pool{opts: opts, tasks: map[place]*task{}, waiting: map[string][]*task{}}
	p.take = func(ctx context.Context, settings config.Settings, r analysis.Request) analysis.Sample {
		return Take(ctx, settings, opts.Token, r, opts.Now)
	}
	return p
}

// Start takes samples until the context ends, and returns when the last one is over.
func (p *Pool) Start(ctx context.Context) error {
	p.mu.Lock()
	p.ctx = ctx
	p.dispatch()
	p.mu.Unlock()
	<-ctx.Done()
	p.done.Wait()
	return nil
}

// NeedLeaderElection keeps managers that don't lead from asking.
func (p *Pool) NeedLeaderElection() bool { return true }

// Ask asks for a sample, unless it is on its way or there already.
func (p *Pool) Ask(r analysis.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := place{r.ID.Service, r.ID.Group}
	if old := p.tasks[at]; old != nil {
		if old.request.ID == r.ID && !p.expired(old) {
			return
		}
		p.drop(old)
	}
	t := &task{place: at, request: r}
	p.tasks[at] = t
	ns := at.service.Namespace
	if len(p.waiting[ns]) == 0 {
		p.turns = append(p.turns, ns)
	}
	p.waiting[ns] = append(p.waiting[ns], t)
	p.dispatch()
	if t.cancel == nil && p.opts.Observer != nil {
		p.opts.Observer.Starved()
	}
}

// Samples are the finished samples of a service. Reading takes nothing away.
func (p *Pool) Samples(service types.NamespacedName) []analysis.Sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []analysis.Sample
	for at, t := range p.tasks {
		if at.service == service && t.sample != nil && !p.expired(t) {
			out = append(out, *t.sample)
		}
	}
	slices.SortFunc(out, func(a, b analysis.Sample) int { return int(a.ID.Group) - int(b.ID.Group) })
	return out
}

// Forget drops everything about a service, such as one that is gone.
func (p *Pool) Forget(service types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, t := range p.tasks {
		if at.service == service {
			p.drop(t)
		}
	}
	p.dispatch()
}

func (p *Pool) expired(t *task) bool {
	return t.sample != nil && p.opts.Now().Sub(t.sample.Done) > p.opts.Settings().CanaryAnalysis.CacheTTL
}

// drop forgets a task wherever it is. What a dropped one brings is thrown away.
func (p *Pool) drop(t *task) {
	if p.tasks[t.place] == t {
		delete(p.tasks, t.place)
	}
	if t.cancel != nil {
		t.cancel()
	}
	ns := t.place.service.Namespace
	if i := slices.Index(p.waiting[ns], t); i >= 0 {
		p.waiting[ns] = slices.Delete(p.waiting[ns], i, i+1)
		if len(p.waiting[ns]) == 0 {
			p.endTurn(ns)
		}
	}
}

func (p *Pool) endTurn(ns string) {
	delete(p.waiting, ns)
	if i := slices.Index(p.turns, ns); i >= 0 {
		p.turns = slices.Delete(p.turns, i, i+1)
	}
}

// dispatch starts what may start: one task of each namespace in turn.
func (p *Pool) dispatch() {
	for p.ctx != nil && p.ctx.Err() == nil && len(p.turns) > 0 && p.running < int(max(p.opts.Settings().CanaryAnalysis.MaxConcurrency, 1)) {
		ns := p.turns[0]
		t := p.waiting[ns][0]
		p.waiting[ns] = p.waiting[ns][1:]
		p.turns = p.turns[1:]
		if len(p.waiting[ns]) > 0 {
			p.turns = append(p.turns, ns)
		} else {
			delete(p.waiting, ns)
		}
		ctx, cancel := context.WithCancel(p.ctx)
		t.cancel = cancel
		p.running++
		p.done.Add(1)
		go p.run(ctx, t)
	}
	p.observe()
}

func (p *Pool) observe() {
	if p.opts.Observer == nil {
		return
	}
	queued := 0
	for _, q := range p.waiting {
		queued += len(q)
	}
	p.opts.Observer.InFlight(p.running)
	p.opts.Observer.Queued(queued)
}

func (p *Pool) run(ctx context.Context, t *task) {
	defer p.done.Done()
	s := p.take(ctx, p.opts.Settings(), t.request)
	p.mu.Lock()
	over := ctx.Err() != nil
	t.cancel()
	t.cancel = nil
	p.running--
	wanted := p.tasks[t.place] == t
	if wanted && over {
		delete(p.tasks, t.place) // the pool ends; a half sample is none
	} else if wanted {
		t.sample = &s
	}
	p.sweep()
	p.dispatch()
	p.mu.Unlock()
	if wanted && !over && p.opts.Wake != nil {
		p.opts.Wake(t.place.service)
	}
}

// sweep forgets samples that nobody came for.
func (p *Pool) sweep() {
	for at, t := range p.tasks {
		if p.expired(t) {
			delete(p.tasks, at)
		}
	}
}
