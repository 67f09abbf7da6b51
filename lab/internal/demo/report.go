package demo

import (
	"errors"
	"fmt"
	"time"

	"ome.io/ome/lab/internal/load"
)

// Report is what one run saw.
type Report struct {
	// Control is set for the negative control.
	Control                                               bool
	Began, LoadStarted, Applied, Paused, Resumed, Settled time.Time
	// HeldUp is how long the pause was watched with the new pods up.
	HeldUp time.Duration
	// Load is the load's own account.
	Load *load.Result
	// Checks in the order of the story.
	Checks []Check

	oldRevisions     map[string]string
	statusSaidPaused bool
	pausedToTheEnd   bool
	leftWhilePaused  string
	final            status
	pods             []pod
}

// Check is one thing that had to happen.
type Check struct {
	Name string
	OK   bool
	// Saw is what was seen instead, or as well.
	Saw string
}

// Err names every check that failed.
func (r *Report) Err() error {
	var errs []error
	for _, c := range r.Checks {
		if !c.OK {
			errs = append(errs, fmt.Errorf("check failed: %s: %s", c.Name, c.Saw))
		}
	}
	return errors.Join(errs...)
}

func (r *Report) check(name string, ok bool, saw string, args ...any) {
	r.Checks = append(r.Checks, Check{Name: name, OK: ok, Saw: fmt.Sprintf(saw, args...)})
}

// judge turns what was seen into checks.
func (r *Report) judge() {
	v := view{status: r.final, pods: r.pods}
	r.together(v)
	r.paused(v)
	r.completed(v)
	r.requests(v)
}

// together: both components started before either finished.
func (r *Report) together(v view) {
	var lastStart, firstEnd time.Time
	for _, c := range grouped {
		var start, end time.Time
		for _, p := range v.of(c, false) {
			if start.IsZero() || p.seen.Before(start) {
				start = p.seen
			}
		}
		for _, p := range v.of(c, true) {
			if p.left.After(end) {
				end = p.left
			}
		}
		if start.IsZero() || end.IsZero() {
			r.check("engine and decoder rolled together", false, "%s has no new pod or kept its old one", c)
			return
		}
		if start.After(lastStart) {
			lastStart = start
		}
		if firstEnd.IsZero() || end.Before(firstEnd) {
			firstEnd = end
		}
	}
	r.check("engine and decoder rolled together", lastStart.Before(firstEnd),
		"both had started %.1f s before the first of them was done", firstEnd.Sub(lastStart).Seconds())
}

func (r *Report) paused(v view) {
	r.check("the new pods came up while paused", v.everyNew(func(p pod) bool { return !p.up.IsZero() && p.up.Before(r.Resumed) }), "every new pod was up before the resume")
	r.check("the pause held", r.leftWhilePaused == "" && r.pausedToTheEnd && r.HeldUp >= hold,
		"held %.0f s with the new pods up; drained meanwhile: %s; still paused at the end: %t", r.HeldUp.Seconds(), orNone(r.leftWhilePaused), r.pausedToTheEnd)
	r.check("rollout status says Paused", r.statusSaidPaused, "row STATE of the report taken while paused")
	moved := false
	for _, p := range v.oldOf() {
		moved = moved || p.left.After(r.Resumed)
	}
	r.check("the resume let the roll go on", moved, "old pods left after the resume: %t", moved)
}

func (r *Report) completed(v view) {
	last := v.status.Status.Rollout.LastRun
	ok := last != nil && last.Outcome == "Completed" && v.status.Status.Rollout.ActiveRun == nil
	targets := map[string]string{}
	saw := "no closed run"
	if last != nil {
		saw = fmt.Sprintf("run %s closed %s", last.RunID, last.Outcome)
		for _, t := range last.TargetRevisions {
			targets[t.Component] = t.Revision
		}
	}
	for _, c := range grouped {
		serving := 0
		for _, p := range v.of(c, false) {
			if p.left.IsZero() && !p.serving.IsZero() && p.revision == targets[c] {
				serving++
			}
		}
		if serving == 0 {
			ok, saw = false, saw+fmt.Sprintf("; no %s of its target %q serves", c, targets[c])
		}
	}
	if len(v.of("router", false)) > 0 {
		ok, saw = false, saw+"; the router was replaced too"
	}
	r.check("one run closed Completed", ok, "%s", saw)
}

func (r *Report) requests(v view) {
	l := r.Load
	for _, c := range grouped {
		old, fresh := 0, 0
		for _, n := range l.ByRevision {
			revision := n.Engine
			if c == "decoder" {
				revision = n.Decoder
			}
			if revision == r.oldRevisions[c] {
				old += n.OK
			} else {
				fresh += n.OK
			}
		}
		r.check("both "+c+" revisions served", old > 0 && fresh > 0, "%d by the old, %d by the new", old, fresh)
	}
	r.check("at least "+thousands(minRequests)+" requests", l.Sent >= minRequests, "%d sent", l.Sent)
	var lastMove time.Time
	for _, p := range v.pods {
		for _, at := range []time.Time{p.serving, p.left, p.gone} {
			if at.After(lastMove) {
				lastMove = at
			}
		}
	}
	r.check("requests from before the first move to after the last", l.FirstRequest.Before(r.Applied) && l.LastRequest.After(lastMove),
		"from %.1f s before to %.1f s after", r.Applied.Sub(l.FirstRequest).Seconds(), l.LastRequest.Sub(lastMove).Seconds())
	if r.Control {
		r.check("requests were lost without the drain", l.Failed > 0, "%d of %d lost", l.Failed, l.Sent)
		return
	}
	detail := ""
	for _, e := range l.Errors {
		detail += fmt.Sprintf("\n  +%.1fs %s: %s", e.Time.Sub(l.FirstRequest).Seconds(), e.Class, e.Detail)
	}
	r.check("no request failed", l.Failed == 0, "%d of %d failed%s", l.Failed, l.Sent, detail)
	r.check("no request was mismatched", l.Mismatched == 0, "%d of %d", l.Mismatched, l.Sent)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
