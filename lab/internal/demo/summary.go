package demo

import (
	"strconv"
)

func (r *run) summary() {
	rep, l := r.report, r.report.Load
	r.say.printf("\n%s\n\n", "What happened "+dashes(79-len("What happened ")))
	r.say.printf("  requests   %s sent, %s ok, %d failed, %d mismatched\n", thousands(l.Sent), thousands(l.OK), l.Failed, l.Mismatched)
	for i, n := range l.ByRevision {
		head := ""
		if i == 0 {
			head = "served by"
		}
		r.say.printf("  %-10s engine %s (%s), decoder %s (%s): %s\n", head, n.Engine, rep.age("engine", n.Engine), n.Decoder, rep.age("decoder", n.Decoder), thousands(n.OK))
	}
	r.say.printf("  latency    half under %.0f ms, 99 %% under %.0f ms\n", l.LatencyMS.P50, l.LatencyMS.P99)
	r.say.printf("  pause      %.0f s, %.0f s of it with both revisions up\n", rep.Resumed.Sub(rep.Paused).Seconds(), rep.HeldUp.Seconds())
	r.say.printf("\n")
	r.checks()
	if rep.Control {
		r.say.printf("\nNegative control: %s of %s requests were lost without the drain.\n", thousands(l.Failed), thousands(l.Sent))
	}
}

func (r *run) checks() {
	for _, c := range r.report.Checks {
		mark := "ok    "
		if !c.OK {
			mark = "FAILED"
		}
		r.say.printf("  %s %s\n", mark, c.Name)
	}
}

// age says whether a revision was there before the roll.
func (r *Report) age(component, revision string) string {
	if revision == r.oldRevisions[component] {
		return "old"
	}
	return "new"
}

func dashes(n int) string {
	b := make([]byte, max(n, 0))
	for i := range b {
		b[i] = '-'
	}
	return string(b)
}

// thousands groups digits: 3,210.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
