package bench

import (
	"context"
	"fmt"
	"time"

	"ome.io/ome/lab/internal/cluster"
	"ome.io/ome/lab/internal/process"
)

// Roll is one roll of one contestant.
type Roll struct {
	Contestant string `json:"contestant"`
	Round      int    `json:"round"`
	// Seconds from the request that changed the image until all pods were new and ready and the status said so.
	Seconds float64 `json:"seconds"`
	// Serving, Status and Gone are the parts: the pods, the status, and the last old pod's end.
	Serving float64 `json:"servingSeconds"`
	Status  float64 `json:"statusSeconds"`
	Gone    float64 `json:"goneSeconds"`
	// LeastReady and MostPods are what was in place at one time, leaving pods aside.
	LeastReady int `json:"leastReady"`
	MostPods   int `json:"mostPods"`

	Requests []Requests `json:"requests"`
	Usage    Usage      `json:"usage"`
	// Manager is what the manager counted itself; only for our own rolls.
	Manager map[string]float64 `json:"manager,omitempty"`
}

// heap that the manager's Go objects took at the end of the roll, in bytes.
func (r *Roll) heap() float64 { return r.Manager["go_memstats_heap_inuse_bytes"] }

// sum adds up requests, all of them or the accepted ones.
func (r *Roll) sum(match func(Requests) bool) (all, accepted int) {
	for _, q := range r.Requests {
		if match(q) {
			all += q.All()
			accepted += q.Accepted
		}
	}
	return all, accepted
}

func (r *run) rollOnce(ctx context.Context, c *contestant, round int) (Roll, error) {
	out := Roll{Contestant: c.name, Round: round}
	fail := func(err error) (Roll, error) { return out, fmt.Errorf("round %d, %s: %w", round, c.name, err) }
	st, err := r.layout.LoadRunning()
	if err != nil {
		return fail(err)
	}
	audit, err := openAudit(r.layout.Log("audit"))
	if err != nil {
		return fail(err)
	}
	var before map[string]float64
	if c.managed {
		if before, err = scrape(st); err != nil {
			return fail(err)
		}
	}
	r.rolled[c.pods]++
	target := image(1 + r.rolled[c.pods])
	meter := startMeter(st)
	stopLooking := lookAt(meter)
	c.pods.expect(target, r.cfg.Instances)
	if err := c.roll(ctx, target); err != nil {
		return fail(err)
	}
	seen, err := c.pods.wait(ctx, r.cfg.Patience, func(t rollTimes) bool { return !t.serving.IsZero() && !t.complete.IsZero() && !t.gone.IsZero() })
	stopLooking()
	if err != nil {
		return fail(err)
	}
	out.Usage = meter.stop()
	if err := sameManager(r.layout, st); err != nil {
		return fail(err)
	}
	out.Serving, out.Status, out.Gone = seen.serving.Sub(seen.began).Seconds(), seen.complete.Sub(seen.began).Seconds(), seen.gone.Sub(seen.began).Seconds()
	out.Seconds = max(out.Serving, out.Status)
	out.LeastReady, out.MostPods = seen.leastReady, seen.mostPods

	count := newTally(c.namespace)
	if err := untilQuiet(ctx, audit, count, c.quiet, r.cfg.Patience); err != nil {
		return fail(err)
	}
	out.Requests = count.list()
	if before != nil {
		after, err := scrape(st)
		if err != nil {
			return fail(err)
		}
		out.Manager = grown(before, after)
	}
	return out, nil
}

// sameManager refuses a roll during which the manager died: what its successor did would not be the whole.
func sameManager(l cluster.Layout, before *cluster.State) error {
	now, err := l.LoadRunning()
	if err != nil {
		return err
	}
	was, _ := before.Component(managerClient)
	is, _ := now.Component(managerClient)
	if was.PID != is.PID || was.Restarts != is.Restarts {
		return fmt.Errorf("the manager was restarted during the roll (%d restarts in all); the end of its log:\n%s", is.Restarts, process.Tail(l.Log(managerClient), 5))
	}
	return nil
}

// lookAt samples what has no counter until the returned function is called.
func lookAt(m *meter) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				m.look()
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// untilQuiet counts until nothing has been written for a while: some of what a roll costs comes after its end.
func untilQuiet(ctx context.Context, audit *auditReader, count *tally, quiet, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	last := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for time.Since(last) < quiet {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		wrote := false
		if err := audit.read(func(e *auditEvent) { wrote = count.add(e) || wrote }); err != nil {
			return err
		}
		if wrote {
			last = time.Now()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("something still writes to namespace %s %s after the roll", count.namespace, limit)
		}
	}
	return nil
}

// statusOfOurs notes when the replica's status says that a roll is over.
func (r *run) statusOfOurs(ctx context.Context, c *contestant) error {
	rolled := ""
	return follow(ctx, r.objects, gvReplica, c.namespace, func(u map[string]any) {
		if !replicaSettled(u, r.cfg.Instances) {
			return
		}
		// The status of the roll before also reads as settled; only a new revision ends this one.
		current := field[string](u, "status", "currentRevision")
		if current != rolled {
			rolled = current
			c.pods.completed()
		}
	})
}

func (r *run) statusOfDeployment(ctx context.Context, c *contestant) error {
	var rolled int64
	return follow(ctx, r.objects, gvDeployments, c.namespace, func(u map[string]any) {
		if !deploymentSettled(u, r.cfg.Instances) {
			return
		}
		if g := field[int64](u, "metadata", "generation"); g != rolled {
			rolled = g
			c.pods.completed()
		}
	})
}
