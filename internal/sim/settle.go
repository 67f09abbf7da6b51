package sim

import (
	"fmt"
	"time"

	"ome.io/ome/internal/core"
)

// Settle lets the world run without faults until nothing is left to happen. Only
// events and wake times bring the controller back: nothing is polled. It returns
// an error when the moves never end.
func (c *Cluster) Settle(limit int) error {
	c.Lose = nil
	c.dirty = true // whatever was not seen yet arrives now
	for range limit {
		moved, err := c.round()
		if err != nil {
			return err
		}
		if moved || c.dirty {
			continue
		}
		if !c.wake.IsZero() {
			if c.wake.After(c.Now) {
				c.Now = c.wake
			} else {
				c.Now = c.Now.Add(time.Millisecond)
			}
			c.wake = time.Time{}
			c.dirty = true
			continue
		}
		clear(c.peak)
		return c.quiet()
	}
	return fmt.Errorf("the moves did not end within %d rounds", limit)
}

// quiet checks that a service at rest gives the controller nothing to write.
func (c *Cluster) quiet() error {
	d := core.Decide(c.World())
	writes := len(d.CreateServices) + len(d.UpdateServices) + len(d.DeleteServices) + len(d.RemoveAnnotations)
	if d.Status != nil {
		writes++
	}
	for i := range d.Components {
		cd := &d.Components[i]
		writes += len(cd.CreateRevisions) + len(cd.DeleteRevisions) + len(cd.Pods)
		if cd.CreateReplica != nil || cd.UpdateReplica != nil || cd.ReplicaStatus != nil || cd.DeleteReplica || cd.RemoveFinalizer {
			writes++
		}
	}
	if writes > 0 {
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
	for _, p := range c.Pods() {
		switch {
		case p.DeletionTimestamp != nil && c.Stuck[p.Name]:
		case p.DeletionTimestamp != nil:
			c.Gone(p.Name)
			moved = true
		case !started(p):
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
