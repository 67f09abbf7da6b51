package sim

import (
	"testing"

	"ome.io/ome/api/v1beta1"
)

// events are what can happen to an Instance from outside, each counted by the phase
// it meets and the strategy of the component.
var events = []string{
	"starts", "gone", "unready", "crash loop", "restarts", "sidecar restarts", "ends", "evicted",
	"node dies", "node is back", "node hangs", "no room", "admitted", "pull fails",
	"quota exceeded", "refused", "invalid pod", "write lost", "seen late",
	"new image", "new environment", "new strategy", "new partition", "new budget", "scale up", "scale down",
	"pause", "freeze", "resume", "release", "reset", "template breaks", "replica deleted", "clock jumps",
	"attempt fails",
}

// unreachable says why a cell can't be reached, "" when it can.
func unreachable(cell Cell) string {
	works := cell.Phase == v1beta1.InstanceCreating || cell.Phase == v1beta1.InstanceUpdating || cell.Phase == v1beta1.InstanceRestarting
	switch cell.Event {
	case "quota exceeded", "refused", "invalid pod":
		switch {
		case !works:
			return "nothing but an operation that brings pods up asks for one"
		case cell.Event == "invalid pod" && cell.Phase == v1beta1.InstanceRestarting:
			return "a restart asks for what ran, and what is invalid never does"
		}
	case "attempt fails":
		if !works {
			return "no attempt is under way"
		}
	case "write lost":
		if !works && cell.Phase != v1beta1.InstanceDeleting {
			return "a row without an operation at work authorizes no write"
		}
	case "starts", "no room", "pull fails", "admitted":
		if cell.Phase == v1beta1.InstancePending {
			return "its pods are gone or on their way out, and no such pod starts"
		}
		if cell.Phase == v1beta1.InstanceReady && (cell.Event == "no room" || cell.Event == "admitted") {
			return "what a row at rest has was looked at by queue and scheduler before it came to rest"
		}
	}
	return ""
}

// rare says why a cell is not asked for although it can be reached, "" when it is.
func rare(cell Cell) string {
	if cell.Phase == v1beta1.InstanceFailed && cell.Event == "admitted" {
		return "the clock of an attempt stands still while its pod waits for a gate: the delete of a superseded pod must be lost for a whole window"
	}
	return ""
}

// reportCoverage prints the cells, and in a long run fails on one that was missed.
func reportCoverage(t *testing.T) {
	t.Helper()
	t.Log("cells reached, by phase and event that met it, under each strategy\n" + covered.Table(events))
	known := map[string]bool{}
	for _, e := range events {
		known[e] = true
	}
	for _, e := range covered.Events() {
		if !known[e] {
			t.Errorf("event %q is not in the table", e)
		}
	}
	reached, missed := 0, 0
	for _, phase := range Phases {
		for _, event := range events {
			for _, strategy := range Strategies {
				cell := Cell{phase, event, strategy}
				n, why := covered.Count(cell), unreachable(cell)
				switch {
				case n > 0 && why != "" && !*soaking:
					t.Logf("%s, %q, %s was reached, and is listed as unreachable: %s", phase, event, strategy, why)
				case n > 0 && why != "":
					t.Errorf("%s, %q, %s was reached %d times, and is listed as unreachable: %s", phase, event, strategy, n, why)
				case n > 0:
					reached++
				case why == "" && rare(cell) == "":
					missed++
					if *soaking {
						t.Errorf("%s, %q, %s was never reached", phase, event, strategy)
					}
				}
			}
		}
	}
	t.Logf("%d cells reached, %d missed, %d cannot be reached", reached, missed, len(Phases)*len(events)*len(Strategies)-reached-missed)
}
