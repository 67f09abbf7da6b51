package sim

import (
	"fmt"
	"maps"
	"math"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/plan"
)

// Rollout is the rollout part of the service's spec.
func (c *Cluster) Rollout() *v1beta1.RolloutSpec {
	if c.actual.service == nil {
		return nil
	}
	return c.actual.service.Spec.Rollout
}

// Run is the open run, nil when there is none.
func (c *Cluster) Run() *v1beta1.RolloutRun {
	if s := c.actual.service; s != nil && s.Status.Rollout != nil {
		return s.Status.Rollout.ActiveRun
	}
	return nil
}

// Edit replaces components and rollout groups in one edit of the service's spec, as one
// apply does.
func (c *Cluster) Edit(pieces map[v1beta1.ComponentType]Piece, rollout *v1beta1.RolloutSpec, what string) {
	if c.actual.service == nil {
		return
	}
	for _, kind := range order {
		if pieces[kind] != c.Pieces[kind] {
			c.happensToAll("new template", kind)
		}
	}
	c.Pieces = maps.Clone(pieces)
	c.editService(func(s *v1beta1.InferenceService) {
		s.Generation++
		s.Spec.Rollout = rollout.DeepCopy()
	})
	c.logf("user: %s", what)
}

// Repin asks to take the groups as they are now into the open run.
func (c *Cluster) Repin(value string) {
	c.annotate(v1beta1.RolloutRepinAnnotation, value)
	c.logf("user: repin %s", value)
}

// removeServiceMail takes consumed mailboxes off the service, unless a newer value is there.
func (c *Cluster) removeServiceMail(d core.Decision) {
	if len(d.RemoveAnnotations) == 0 || c.actual.service == nil || c.lost("mailboxes of the service") {
		return
	}
	s := c.actual.service.DeepCopy()
	for key, value := range d.RemoveAnnotations {
		if s.Annotations[key] == value {
			delete(s.Annotations, key)
		}
	}
	s.ResourceVersion = c.next()
	c.actual.service = s
	c.landed(KindService)
}

// groupsInForce are the groups of the open run, else those of the spec.
func (c *Cluster) groupsInForce() []v1beta1.RolloutGroup {
	if run := c.Run(); run != nil {
		return plan.GroupsOf(run.Plan)
	}
	live := plan.Sources{Policies: c.policies}.Resolve(c.Rollout())
	return plan.GroupsOf(live.Plan)
}

// groupOf is the group in force that a component is in, nil for none.
func (c *Cluster) groupOf(kind v1beta1.ComponentType) *v1beta1.RolloutGroup {
	groups := c.groupsInForce()
	for i := range groups {
		for _, m := range groups[i].Components {
			if m == kind {
				return &groups[i]
			}
		}
	}
	return nil
}

// groupBudget is how many of a member's Instances its group lets move at one time.
func groupBudget(g *v1beta1.RolloutGroup, desired int32) (surge, unavailable int32) {
	if g.Canary != nil {
		return math.MaxInt32, math.MaxInt32 // its members have their own budgets and no other
	}
	quarter := (max(desired, 0) + 3) / 4
	surge, unavailable = quarter, quarter
	if r := g.RollingUpdate; r != nil {
		if r.MaxSurge != nil {
			surge = mustBudget(*r.MaxSurge, desired)
		}
		if r.MaxUnavailable != nil {
			unavailable = mustBudget(*r.MaxUnavailable, desired)
		}
	}
	return surge, unavailable
}

// logPlan words a repin: the groups that a run has from now on.
func (c *Cluster) logPlan(before, after *v1beta1.RolloutRun) {
	if before == nil || after == nil || before.RunID != after.RunID || plan.PinnedDigest(before.Plan) == plan.PinnedDigest(after.Plan) {
		return
	}
	line := "run pins its plan anew:"
	for i := range after.Plan.Groups {
		line += fmt.Sprintf(" %s", after.Plan.Groups[i].PortableDigest)
	}
	c.logf("%s", line)
}
