package preview

import (
	"slices"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rollout"
	"ome.io/ome/internal/sim"
)

// stall names what keeps each component that is not where it should be.
func stall(c *sim.Cluster, move int) *Stall {
	s := &Stall{Move: move, Paused: string(rollout.PauseOf(c.Service().Annotations))}
	for _, kind := range v1beta1.Components() {
		if h := holdOf(c, kind); h != nil {
			s.Holds = append(s.Holds, Hold{kind, h.Gate, h.Reason})
		}
	}
	return s
}

// tolerances are those that are tried, in percent.
var tolerances = []int32{5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 100}

// tolerance finds a maintainRatio.tolerance under which the change completes, by playing
// it again: first in coarse steps, then down to the least. Only a run that opens by the
// new spec takes it from there.
func tolerance(in *Input, res *Result) int32 {
	held := slices.ContainsFunc(res.Stall.Holds, func(h Hold) bool { return h.Gate == v1beta1.GateRatio })
	if !held || res.Pinned || in.New.Service.Spec.Rollout == nil || res.Stall.Paused != "" {
		return 0
	}
	completes := func(percent int32) bool {
		try := *in
		try.New.Service = in.New.Service.DeepCopy()
		for i := range try.New.Service.Spec.Rollout.Groups {
			if g := &try.New.Service.Spec.Rollout.Groups[i]; g.MaintainRatio != nil {
				if t := g.MaintainRatio.Tolerance; t != nil && *t >= percent {
					return false
				}
				g.MaintainRatio.Tolerance = &percent
			}
		}
		outcome := run(&try).Outcome
		return outcome == Completes || outcome == Partitioned
	}
	below := int32(0)
	for _, t := range tolerances {
		if !completes(t) {
			below = t
			continue
		}
		for below+1 < t {
			if mid := (below + t) / 2; completes(mid) {
				t = mid
			} else {
				below = mid
			}
		}
		return t
	}
	return 0
}
