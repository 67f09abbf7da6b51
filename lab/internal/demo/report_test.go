package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ome.io/ome/lab/internal/load"
)

// goodRun is a run where all went well.
func goodRun() *Report {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	r := &Report{
		Began: at(-20), LoadStarted: at(0), Applied: at(3), Paused: at(5), Resumed: at(25), Settled: at(35), HeldUp: hold,
		oldRevisions:     map[string]string{"engine": "e1", "decoder": "d1", "router": "r1"},
		statusSaidPaused: true, pausedToTheEnd: true,
		Load: &load.Result{
			Counts:       load.Counts{Sent: minRequests, OK: minRequests},
			FirstRequest: at(0), LastRequest: at(45),
			ByRevision: []load.RevisionCount{
				{Engine: "e1", Decoder: "d1", OK: 1500},
				{Engine: "e2", Decoder: "d2", OK: minRequests - 1500},
			},
		},
	}
	for i, c := range grouped {
		r.pods = append(r.pods,
			pod{name: c + "-0", component: c, revision: c[:1] + "1", old: true, serving: at(-5), left: at(26 + i), gone: at(33)},
			pod{name: c + "-1", component: c, revision: c[:1] + "2", seen: at(4 + i), running: at(4 + i), up: at(15), serving: at(16)})
	}
	last := &runState{RunID: "run", Outcome: "Completed"}
	for _, c := range grouped {
		last.TargetRevisions = append(last.TargetRevisions, struct {
			Component string `json:"component"`
			Revision  string `json:"revision"`
		}{c, c[:1] + "2"})
	}
	r.final.Status.Rollout.LastRun = last
	return r
}

// Each thing that can go wrong fails its own check, by name, and no other.
func TestChecks(t *testing.T) {
	const engineOld, engineNew, decoderOld = 0, 1, 2
	for name, c := range map[string]struct {
		change func(*Report)
		want   []string
	}{
		"all well": {func(*Report) {}, nil},
		"one after the other": {func(r *Report) {
			r.pods[3].seen = r.pods[engineOld].left.Add(time.Millisecond)
		}, []string{"engine and decoder rolled together"}},
		"an old pod stays": {func(r *Report) { r.pods[decoderOld].left = time.Time{} }, []string{"engine and decoder rolled together"}},
		"a new pod waits for the resume": {func(r *Report) {
			r.pods[engineNew].up = r.Resumed.Add(time.Second)
		}, []string{"the new pods came up while paused"}},
		"a pod is drained while paused": {func(r *Report) { r.leftWhilePaused = "engine-0" }, []string{"the pause held"}},
		"the pause ends by itself":      {func(r *Report) { r.pausedToTheEnd = false }, []string{"the pause held"}},
		"the pause is too short to say": {func(r *Report) { r.HeldUp = time.Second }, []string{"the pause held"}},
		"the report does not say so":    {func(r *Report) { r.statusSaidPaused = false }, []string{"rollout status says Paused"}},
		"all moved before the resume": {func(r *Report) {
			r.Resumed = r.pods[decoderOld].left.Add(time.Second)
		}, []string{"the resume let the roll go on"}},
		"the run is superseded": {func(r *Report) { r.final.Status.Rollout.LastRun.Outcome = "Superseded" }, []string{"one run closed Completed"}},
		"a run is open":         {func(r *Report) { r.final.Status.Rollout.ActiveRun = &runState{} }, []string{"one run closed Completed"}},
		"no run":                {func(r *Report) { r.final.Status.Rollout.LastRun = nil }, []string{"one run closed Completed"}},
		"another revision serves": {func(r *Report) {
			r.pods[engineNew].revision = "e9"
		}, []string{"one run closed Completed"}},
		"the router moves too": {func(r *Report) {
			r.pods = append(r.pods, pod{name: "router-1", component: "router"})
		}, []string{"one run closed Completed"}},
		"the new decoder served nothing": {func(r *Report) { r.Load.ByRevision[1].Decoder = "d1" }, []string{"both decoder revisions served"}},
		"the old engine served nothing":  {func(r *Report) { r.Load.ByRevision[0].Engine = "e2" }, []string{"both engine revisions served"}},
		"too few requests":               {func(r *Report) { r.Load.Sent-- }, []string{"at least 3,000 requests"}},
		"the load began late": {func(r *Report) {
			r.Load.FirstRequest = r.Applied.Add(time.Second)
		}, []string{"requests from before the first move to after the last"}},
		"the load ended early": {func(r *Report) {
			r.Load.LastRequest = r.pods[engineOld].gone
		}, []string{"requests from before the first move to after the last"}},
		"one failed": {func(r *Report) { r.Load.Failed = 1 }, []string{"no request failed"}},
		"one mismatched": {func(r *Report) {
			r.Load.Failed, r.Load.Mismatched = 1, 1
		}, []string{"no request failed", "no request was mismatched"}},
		"control that loses some":    {func(r *Report) { r.Control, r.Load.Failed = true, 1 }, nil},
		"control that loses nothing": {func(r *Report) { r.Control = true }, []string{"requests were lost without the drain"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := goodRun()
			c.change(r)
			r.judge()
			var got []string
			for _, check := range r.Checks {
				if !check.OK {
					got = append(got, check.Name)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("failed checks (-want +got):\n%s", diff)
			}
			err := r.Err()
			if (err != nil) != (len(c.want) > 0) {
				t.Errorf("error: %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), "check failed: "+want) {
					t.Errorf("error %q doesn't name %q", err, want)
				}
			}
		})
	}
}
