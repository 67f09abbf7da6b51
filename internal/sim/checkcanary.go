package sim

import (
	"maps"
	"math"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/rollout"
	"ome.io/ome/internal/core/rows"
)

// checkCanaries is run after each pass: what the records say is what was seen, and one
// pass is one step at most.
func (c *Cluster) checkCanaries(w *core.World, before map[v1beta1.ComponentType]rollout.CanaryRecord) {
	if w.Service == nil || c.actual.service == nil {
		return
	}
	after := c.canaryRecords()
	for kind, s := range c.actual.service.Status.Components {
		sum := int32(0)
		for _, t := range s.Traffic {
			sum += t.Percent
		}
		if len(s.Traffic) > 0 && sum != 100 {
			c.violate("canary: the weights of %s sum to %d", kind, sum)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(after)) {
		is := after[kind]
		was, had := before[kind]
		if !had {
			was = rollout.CanaryRecord{Status: &v1beta1.CanaryStatus{}}
		}
		if rollout.PauseOf(w.Service.Annotations) != rollout.NotPaused && had && !sameRecord(was, is) {
			c.violate("canary: paused, yet that of %s goes from %+v to %+v", kind, *was.Status, *is.Status)
		}
		c.checkStep(w, kind, was, is)
		c.checkReject(w, kind, was, is)
	}
	c.checkCapacity(w, after)
}

func sameRecord(a, b rollout.CanaryRecord) bool {
	x, y := *a.Status, *b.Status
	x.ObservedGeneration, y.ObservedGeneration = 0, 0
	return a.Phase == b.Phase && apiequality.Semantic.DeepEqual(x, y)
}

// checkStep: a canary goes one step a pass, each manual gate takes one promote of the
// person who runs the case, and a weight rises only with ready Instances behind it.
func (c *Cluster) checkStep(w *core.World, kind v1beta1.ComponentType, was, is rollout.CanaryRecord) {
	a, b := was.Status, is.Status
	if b.TargetID == "" || a.TargetID != b.TargetID {
		return
	}
	g := c.pinnedCanary(kind)
	if g == nil {
		return
	}
	switch moved := b.CurrentStep - a.CurrentStep; {
	case moved > 1:
		c.violate("canary: that of %s goes from step %d to %d in one pass", kind, a.CurrentStep, b.CurrentStep)
	case moved == 1 && int(a.CurrentStep) < len(g.Steps):
		step := &g.Steps[a.CurrentStep]
		if a.StepEnteredTime == nil {
			c.violate("canary: that of %s leaves step %d, which it never entered", kind, a.CurrentStep)
		}
		switch gate := rollout.GateOf(step); {
		case gate == rollout.GateManual && b.PromotedThrough != b.CanaryRevisionHash,
			gate == rollout.GateManual && w.Service.Annotations[v1beta1.RolloutPromoteAnnotation] != b.CanaryRevisionHash:
			c.violate("canary: that of %s passes the manual gate of step %d without a promote", kind, a.CurrentStep)
		case gate == rollout.GateManual:
			c.book.promotes[kind]--
		case gate == rollout.GateTimed && c.Now.Sub(a.StepEnteredTime.Time) < step.Pause.Duration.Duration:
			c.violate("canary: that of %s passes the timed gate of step %d after %s of %s", kind, a.CurrentStep, c.Now.Sub(a.StepEnteredTime.Time), step.Pause.Duration.Duration)
		}
		c.escape("canary: passed a gate " + string(rollout.GateOf(step)))
	}
	if c.book.promotes[kind] < 0 {
		c.violate("canary: one promote took two steps")
	}
	if b.ObservedTrafficWeight > a.ObservedTrafficWeight {
		for _, m := range b.Members {
			want := rollout.Capacity(g.Steps, int(b.CurrentStep), c.canaryBase(w, m.Component))
			if ready := readyOn(w, m.Component, c.runHash(m.Component)); ready < want {
				c.violate("canary: the weight of %s rises to %d with %d of %d ready Instances of %s", kind, b.ObservedTrafficWeight, ready, want, m.Component)
			}
		}
	}
}

// checkReject: a rollback ends on the recorded stable revision of each member, and a
// rejected set comes back by another spec or a retry and by nothing else.
func (c *Cluster) checkReject(w *core.World, kind v1beta1.ComponentType, was, is rollout.CanaryRecord) {
	if is.Phase == v1beta1.RolloutRolledBack && was.Phase != v1beta1.RolloutRolledBack {
		for _, m := range is.Status.Members {
			for _, row := range seenRows(w, m.Component) {
				if row.Phase != v1beta1.InstanceDeleting && row.RunningRevision != c.revisionOf(m.Component, m.Stable) {
					c.violate("canary: %s is rolled back, and Instance %d of %s runs %s", kind, row.Index, m.Component, row.RunningRevision)
				}
			}
		}
		c.escape("canary: rolled back")
	}
	if !rollout.Rejected(was.Status) || rollout.Rejected(is.Status) {
		return
	}
	rejected := true
	for _, m := range was.Status.Members {
		r := c.seen.replicas[m.Component]
		if r == nil || c.runHash(m.Component) != m.Rejected {
			rejected = false
		}
	}
	if rejected && w.Service.Annotations[v1beta1.RolloutResumeAnnotation] == "" {
		c.violate("canary: the rejected set of %s rolls out again by itself", kind)
	}
	c.escape("canary: a rejected one starts again")
}

// checkCapacity: no Instance begins to move to the new revision beyond the step.
func (c *Cluster) checkCapacity(w *core.World, after map[v1beta1.ComponentType]rollout.CanaryRecord) {
	for _, m := range c.book.pass.begun {
		if run := c.Run(); run != nil {
			if target, stable := runTarget(run, m.kind); target == stable {
				continue // it only goes back, or stays, while another member changes
			}
		}
		for kind, r := range after {
			g := c.pinnedCanary(kind)
			if g == nil || !rollout.InFlight(r.Status) || m.revision != c.revisionOf(m.kind, c.runHash(m.kind)) ||
				!slices.ContainsFunc(r.Status.Members, func(x v1beta1.CanaryMember) bool { return x.Component == m.kind }) {
				continue
			}
			base := c.canaryBase(w, m.kind)
			list := c.Rows(m.kind)
			toward, total := int32(0), int32(0)
			for i := range list {
				if list[i].Phase == v1beta1.InstanceDeleting {
					continue
				}
				total++
				if op := list[i].Operation; list[i].RunningRevision == m.revision || (op != nil && op.TargetRevision == m.revision) {
					toward++
				}
			}
			if most := total - (base - rollout.Capacity(g.Steps, int(r.Status.CurrentStep), base)); toward > most {
				c.violate("canary: %d of %d Instances of %s go to %s at step %d, and %d may: capacity %s of %d", toward, total, m.kind, m.revision, r.Status.CurrentStep, most,
					g.Steps[min(int(r.Status.CurrentStep), len(g.Steps)-1)].Capacity.String(), base)
			}
		}
	}
}

// pinnedCanary is the canary of the open run whose primary a component is.
func (c *Cluster) pinnedCanary(primary v1beta1.ComponentType) *v1beta1.GroupCanary {
	run := c.Run()
	if run == nil {
		return nil
	}
	for i := range run.Plan.Groups {
		if g := &run.Plan.Groups[i].Group; g.Canary != nil && rollout.Primary(g) == primary {
			return g.Canary
		}
	}
	return nil
}

// runHash is the hash that the open run takes a component to; empty without a run.
func (c *Cluster) runHash(kind v1beta1.ComponentType) string {
	if run := c.Run(); run != nil {
		hash, _ := runTarget(run, kind)
		return hash
	}
	return ""
}

// canaryBase is what a step's capacity is of, as the controller saw it.
func (c *Cluster) canaryBase(w *core.World, kind v1beta1.ComponentType) int32 {
	seen := seenComponent(w, kind)
	if seen == nil || seen.Replica == nil {
		return 0
	}
	desired := *seen.Replica.Spec.Replicas
	if seen.Template == nil {
		return max(1, desired)
	}
	if !c.Pieces[kind].External {
		desired = seen.Template.MinReplicas
	}
	return max(1, min(seen.Template.MinReplicas, desired))
}

func seenRows(w *core.World, kind v1beta1.ComponentType) []v1beta1.InstanceStatus {
	seen := seenComponent(w, kind)
	if seen == nil || seen.Replica == nil {
		return nil
	}
	list, _ := rows.Decode(&seen.Replica.Status, math.MaxInt32)
	return list
}

// readyOn counts the Ready Instances of a revision that the controller saw.
func readyOn(w *core.World, kind v1beta1.ComponentType, hash string) (n int32) {
	for _, row := range seenRows(w, kind) {
		if row.Phase == v1beta1.InstanceReady && row.ServingPodCount > 0 && row.RunningRevision == w.Key.Name+"-"+string(kind)+"-"+hash {
			n++
		}
	}
	return n
}
