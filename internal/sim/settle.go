package sim

import (
	"fmt"
	"time"
)

// Settle lets the world run without faults until nothing is left to happen. Only
// events and wake times bring the controller back: nothing is polled. It returns
// an error when the moves never end.
func (c *Cluster) Settle(limit int) error {
	c.Lose = nil
	for range limit {
		if c.Violation != nil {
			return c.Violation
		}
		moved := false
		for _, p := range c.Pods() {
			switch {
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
		return c.Violation
	}
	return fmt.Errorf("the moves did not end within %d rounds", limit)
}
