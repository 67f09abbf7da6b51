package sim

import (
	"fmt"
	"strings"
	"time"

	"ome.io/ome/internal/core"
)

// stillness is how long nothing may change before a cluster that is only looked at
// again and again counts as at rest.
const stillness = 3 * time.Hour

// Settle lets the world run without faults until nothing is left to happen. Only
// events and wake times bring the controller back: nothing is polled. It returns
// an error when the moves never end.
func (c *Cluster) Settle(limit int) error { return c.settle(limit, 1000*time.Hour) }

// Endure is Settle for a world that keeps something from working: attempts may go on
// for as long as it lasts, but not more than limit moves in its time.
func (c *Cluster) Endure(limit int, horizon time.Duration) error { return c.settle(limit, horizon) }

func (c *Cluster) settle(limit int, horizon time.Duration) error {
	c.Lose = nil
	c.dirty = true // whatever was not seen yet arrives now
	version, since := c.version, c.Now
	end := c.Now.Add(horizon)
	for range limit {
		if c.Now.After(end) {
			return c.Violation
		}
		moved, err := c.round()
		if err != nil {
			return err
		}
		if c.version != version {
			version, since = c.version, c.Now
		}
		if moved || c.dirty {
			continue
		}
		next := c.wake
		if next.IsZero() || (!c.retry.IsZero() && c.retry.Before(next)) {
			next = c.retry
		}
		if next.IsZero() || c.Now.Sub(since) > stillness {
			return c.quiet()
		}
		later := max(time.Millisecond, next.Sub(c.Now))
		if later >= 10*time.Second && c.Coverage == nil {
			c.logLater(later.Round(time.Second))
		}
		c.Advance(later)
		c.wake = time.Time{}
		c.dirty = true
	}
	return fmt.Errorf("the moves did not end within %d rounds: it is %s, something last changed at %s, and the controller wants to wake at %s; next %s",
		limit, c.Now.Format("15:04:05.000"), since.Format("15:04:05.000"), c.wake.Format("15:04:05.000"), c.upcoming())
}

// logLater logs time that passes, as one line when nothing else happens meanwhile.
func (c *Cluster) logLater(d time.Duration) {
	if n := len(c.Moves) - 1; n >= 0 && strings.HasPrefix(c.Moves[n], "-- ") && strings.HasSuffix(c.Moves[n], " later") {
		before, err := time.ParseDuration(strings.TrimSuffix(strings.TrimPrefix(c.Moves[n], "-- "), " later"))
		if err == nil {
			d += before
			c.Moves = c.Moves[:n]
		}
	}
	c.logf("-- %s later", d)
}

// upcoming names what the next pass would write.
func (c *Cluster) upcoming() string {
	d := core.Decide(c.World())
	var out []string
	if d.Status != nil {
		out = append(out, "service status")
	}
	for i := range d.Components {
		cd := &d.Components[i]
		if cd.ReplicaStatus != nil {
			out = append(out, fmt.Sprintf("status of %s", cd.Type))
		}
		if cd.UpdateReplica != nil {
			out = append(out, fmt.Sprintf("spec of %s", cd.Type))
		}
		for _, a := range cd.Pods {
			out = append(out, fmt.Sprintf("%s %s", a.Verb, a.Pod.Name))
		}
	}
	return strings.Join(out, "; ")
}

// quiet checks that a service at rest gives the controller nothing to write, but for
// pods that the API server keeps turning down.
func (c *Cluster) quiet() error {
	d := core.Decide(c.World())
	writes := len(d.Events) + len(d.CreateServices) + len(d.UpdateServices) + len(d.DeleteServices) + len(d.RemoveAnnotations)
	writes += len(d.CreateScalers) + len(d.UpdateScalers) + len(d.DeleteScalers)
	if d.Status != nil {
		writes++
	}
	for i := range d.Components {
		cd := &d.Components[i]
		writes += len(cd.Events) // events are writes too
		writes += len(cd.CreateRevisions) + len(cd.DeleteRevisions) + len(cd.RemoveReplicaAnnotations)
		for _, a := range cd.Pods {
			if _, refused := c.refused[cd.Type][a.Pod.Name]; !refused || a.Verb != core.PodCreate {
				writes++
			}
		}
		if cd.CreateReplica != nil || cd.UpdateReplica != nil || cd.ReplicaStatus != nil || cd.DeleteReplica || cd.RemoveFinalizer {
			writes++
		}
	}
	if writes > 0 && c.Violation == nil {
		return fmt.Errorf("at rest, yet the next pass would make %d writes: %+v", writes, d)
	}
	return c.Violation
}

// Round lets every pod make one step and the controller one pass.
func (c *Cluster) Round() error {
	_, err := c.round()
	return err
}

func (c *Cluster) round() (moved bool, err error) {
	c.EvictDead()
	c.CollectPods()
	for _, p := range c.Pods() {
		switch {
		case p.DeletionTimestamp != nil && (c.hangs(p) || len(p.Finalizers) > 0):
		case p.DeletionTimestamp != nil:
			c.Gone(p.Name)
			moved = true
		case !c.started(p):
			c.Start(p.Name)
			moved = true
		}
	}
	c.Kubelet()
	c.Endpoints()
	if c.dirty {
		c.SyncAll()
		c.Pass()
		moved = true
	}
	return moved, c.Violation
}
