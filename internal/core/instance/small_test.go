package instance

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

// For each small count and budget the roll ends, or the hold says which number to change.
func TestSmallCountsEndOrSayWhy(t *testing.T) {
	for _, s := range strategies {
		for n := int32(1); n <= 4; n++ {
			for budget := int32(0); budget <= n; budget++ {
				for partition := int32(0); partition <= n; partition++ {
					t.Run(fmt.Sprintf("%s %d of %d, %d kept", s, budget, n, partition), func(t *testing.T) {
						w := started(t, n)
						w.strategy(s)
						w.in.MaxSurge, w.in.MaxUnavailable, w.in.Partition = budget, budget, partition
						w.floor, w.most = int(n-budget), 0
						if s == v1beta1.SurgeThenDrain {
							w.floor, w.most = int(n), int(budget)
						}
						w.target("b")
						w.run(time.Hour)
						switch {
						case w.last.Counts.Updated == n-partition && w.last.Counts.KeptBack == partition:
							w.holds("")
						case budget > 0:
							t.Fatalf("%v", w.summaries())
						default:
							field := "maxUnavailable: 0"
							if s == v1beta1.SurgeThenDrain {
								field = "maxSurge: 0"
							}
							w.holds(v1beta1.GateBudget, field, "raise it to 1 or more")
						}
					})
				}
			}
		}
	}
}

// An old revision all of whose pods are broken gives way to a good one under every
// strategy, with no budget at all.
func TestABrokenOldRevisionGivesWay(t *testing.T) {
	for _, s := range strategies {
		for _, how := range []string{"CrashLoopBackOff", "ImagePullBackOff", "never ready"} {
			t.Run(string(s)+" "+how, func(t *testing.T) {
				w := started(t, 3)
				w.strategy(s)
				w.in.MaxUnavailable = 0
				if how == "never ready" {
					w.slow["a"] = true
				} else {
					w.sick["a"] = how
				}
				w.kubelet()
				w.run(time.Hour)
				w.target("b")
				w.run(time.Minute)
				w.settle()
				for _, r := range w.in.Rows {
					if r.Phase != v1beta1.InstanceReady || r.RunningRevision != "svc-engine-b" {
						t.Fatalf("%v; %+v", w.summaries(), w.last.Hold)
					}
				}
			})
		}
	}
}

// A pod that does not serve is never busy: nothing waits for it to become idle.
func TestACrashingPodIsNotBusy(t *testing.T) {
	w := started(t, 1)
	w.in.StuckGrace = time.Hour
	w.sick["0/0"] = "CrashLoopBackOff"
	w.kubelet()
	w.target("b")
	w.pass()
	w.calls("Unserve 0/0 a")
	w.kubelet()
	w.pass()
	w.calls("Delete 0/0 a")
}

// After a revert a further revision starts from scratch and no Instance is lost to it.
func TestANewRevisionAfterARevert(t *testing.T) {
	for _, s := range strategies {
		t.Run(string(s), func(t *testing.T) {
			w := started(t, 3)
			w.strategy(s)
			w.floor = 2
			exhaust(w)
			w.target("a")
			w.settle()
			w.target("c")
			w.settle()
			for _, r := range w.in.Rows {
				if r.Phase != v1beta1.InstanceReady || r.RunningRevision != "svc-engine-c" {
					t.Fatalf("%v", w.summaries())
				}
			}
			w.block("b", "")
			w.block("c", "")
		})
	}
}

// A budget reads what serves now: old pods that went away by themselves are not trusted.
func TestPreemptionCountsAgainstTheBudget(t *testing.T) {
	w := started(t, 4)
	w.strategy(v1beta1.RecreatePod)
	w.in.MaxUnavailable = 2
	w.refuse = func(*corev1.Pod) *Refusal { return &Refusal{Kind: RefusedQuota, Text: "preempted"} }
	w.lose("0/0")
	w.lose("1/0")
	w.settle()
	w.all = nil
	w.target("b")
	w.run(time.Hour)
	w.never("Unserve")
	w.holds(v1beta1.GateBudget)
	if w.serving() != 2 {
		t.Errorf("%d serve", w.serving())
	}
}

// What a row remembers is bounded.
func TestRowsStaySmall(t *testing.T) {
	w := started(t, 1)
	w.in.RestartPolicy = v1beta1.RestartRecreateInstance
	for range 60 {
		w.crash("0/0", "ome-container")
		w.run(6 * time.Minute)
		if n := len(w.row(0).Announced); n > 16 {
			t.Fatalf("%d announcements", n)
		}
	}
	if got := w.row(0).Incarnation; got != 61 {
		t.Errorf("incarnation %d", got)
	}
}
