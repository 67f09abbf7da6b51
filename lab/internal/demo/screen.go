package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// follow shows the live status until done says so. It fails when that takes longer than patience, and names what.
func (r *run) follow(ctx context.Context, what string, done func(view) bool) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		v := r.watch.view()
		finished := done(v)
		r.draw(v)
		if finished {
			return nil
		}
		select {
		case <-v.changed:
		case <-tick.C:
		case <-r.load.done:
			return errors.Join(fmt.Errorf("%s: the load ended before", what), r.load.err)
		case <-limit.C:
			return fmt.Errorf("%s: not after %s; last seen: %s", what, patience, strings.Join(r.rows(v), "; "))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// draw shows the status: a block on a terminal, else a line for each row that changed, and one for the requests when
// nothing changes.
func (r *run) draw(v view) {
	rows := r.rows(v)
	c := r.load.sofar()
	requests := fmt.Sprintf("%s ok, %d failed", thousands(c.OK), c.Failed)
	if r.cfg.TTY {
		block := append([]string{header}, rows...)
		r.say.block(append(block, fmt.Sprintf("  %-10s %s", "requests", requests)))
		return
	}
	now := time.Now()
	seen := map[string]bool{}
	for _, row := range rows {
		if !r.shown[row] {
			r.line(now, row)
		}
		seen[row] = true
	}
	r.shown = seen
	if now.Sub(r.lastLine) >= quiet {
		r.line(now, fmt.Sprintf("  %-10s %s", "requests", requests))
	}
}

// quiet is how long a person looks at a screen where nothing happens.
const quiet = 5 * time.Second

func (r *run) line(at time.Time, row string) {
	if !r.headed {
		r.say.printf("%8s%s\n", "", header)
		r.headed = true
	}
	r.say.printf("%s%s\n", at.Format("15:04:05"), row)
	r.lastLine = at
}

const header = "  COMPONENT  OLD         NEW         SERVING  PHASE"

// rows of the status, without anything that changes by itself.
func (r *run) rows(v view) (rows []string) {
	for _, c := range components {
		st := v.status.Status.Components[c]
		rows = append(rows, fmt.Sprintf("  %-10s %-11s %-11s %-8d %s", c, tally(v.of(c, true)), tally(v.of(c, false)),
			st.Lifecycle.ServingReplicas, st.RolloutPhase))
	}
	for _, c := range components {
		if h := v.status.Status.Components[c].Lifecycle.RolloutHold; h != nil {
			rows = append(rows, fmt.Sprintf("  %-10s %s: %s. %s", "waiting", c, h.Gate, h.Reason))
		}
	}
	if v.status.groupPhase() == "" { // a canary has its phase in the rows of its components
		return rows
	}
	group := "engine + decoder: " + v.status.groupPhase()
	if p := v.status.Status.Rollout.ObservedPause; p != "" {
		group += ", until somebody resumes"
	}
	return append(rows, fmt.Sprintf("  %-10s %s", "group", group))
}

// stages of a pod's life, in order.
var stages = []string{"starting", "up", "serving", "leaving"}

func stage(p pod) string {
	switch {
	case !p.left.IsZero():
		return "leaving"
	case !p.serving.IsZero():
		return "serving"
	case !p.up.IsZero():
		return "up"
	}
	return "starting"
}

// tally counts the pods that are still there by stage.
func tally(pods []pod) string {
	count := map[string]int{}
	for _, p := range pods {
		if p.gone.IsZero() {
			count[stage(p)]++
		}
	}
	var parts []string
	for _, s := range stages {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}
