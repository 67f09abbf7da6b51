package sim

import (
	"fmt"
	"slices"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/rollout"
)

// checkRun is run when the status of a rollout is stored: the shape of runs, that a
// pause leaves them alone, and that digests stand for what they are of.
func (c *Cluster) checkRun(w *core.World, before, after *v1beta1.RolloutStatus) {
	if before == nil {
		before = &v1beta1.RolloutStatus{}
	}
	if after == nil {
		if before.ActiveRun != nil {
			c.violate("run: %s is forgotten", before.ActiveRun.RunID)
		}
		return
	}
	was, is := before.ActiveRun, after.ActiveRun
	if rollout.PauseOf(w.Service.Annotations) != rollout.NotPaused && (!sameRun(was, is) || len(before.History) != len(after.History)) {
		c.violate("run: paused, yet %s becomes %s", runWords(was), runWords(is))
	}
	if is != nil {
		c.checkOpenRun(w, was, is)
	}
	if is == nil && was != nil || is != nil && was != nil && was.RunID != is.RunID {
		c.checkClosed(was, after)
	}
	if is != nil && after.LastRun != nil && is.OpenedAt.Time.Before(after.LastRun.ClosedAt.Time) {
		c.violate("run: %s opened at %s, before the last one closed at %s", is.RunID, is.OpenedAt, after.LastRun.ClosedAt)
	}
	for i := range after.Groups {
		if g := &w.Service.Spec.Rollout.Groups[i]; after.Groups[i].Source == v1beta1.SourceInline {
			c.checkDigest(g, after.Groups[i].ObservedDigest)
		}
	}
}

func sameRun(a, b *v1beta1.RolloutRun) bool {
	return a == b || a != nil && b != nil && a.RunID == b.RunID && a.PinnedAt.Equal(&b.PinnedAt)
}

func runWords(r *v1beta1.RolloutRun) string {
	if r == nil {
		return "no run"
	}
	return fmt.Sprintf("run %s pinned at %s", r.RunID, r.PinnedAt.Format(time.TimeOnly))
}

func (c *Cluster) checkOpenRun(w *core.World, was, is *v1beta1.RolloutRun) {
	if was != nil && was.RunID == is.RunID {
		switch {
		case is.PinnedAt.Time.Before(was.PinnedAt.Time):
			c.violate("run: %s was pinned at %s and now at %s", is.RunID, was.PinnedAt, is.PinnedAt)
		case !is.OpenedAt.Equal(&was.OpenedAt):
			c.violate("run: %s opened at %s and now at %s", is.RunID, was.OpenedAt, is.OpenedAt)
		case !slices.Equal(is.TargetRevisions, was.TargetRevisions):
			c.violate("run: %s goes to %v and now to %v", is.RunID, was.TargetRevisions, is.TargetRevisions)
		}
	} else {
		if !is.OpenedAt.Equal(&is.PinnedAt) {
			c.violate("run: %s opens at %s with a plan of %s", is.RunID, is.OpenedAt, is.PinnedAt)
		}
		if c.parked() {
			c.violate("run: %s opens while the plan is parked", is.RunID)
		}
	}
	seen := map[v1beta1.ComponentType]int{}
	for _, t := range is.TargetRevisions {
		seen[t.Component]++
	}
	for i := range is.Plan.Groups {
		g := &is.Plan.Groups[i]
		c.checkDigest(&g.Group, g.PortableDigest)
		for _, kind := range g.Group.Components {
			if s := seenComponent(w, kind); s != nil && s.Declared && s.Replica != nil && seen[kind] != 1 && (was == nil || was.RunID != is.RunID) {
				c.violate("run: %s has %d targets for %s", is.RunID, seen[kind], kind)
			}
		}
	}
}

// checkClosed: a run that closes is the last one of the record, and one that is
// completed left every member on its target.
func (c *Cluster) checkClosed(was *v1beta1.RolloutRun, after *v1beta1.RolloutStatus) {
	last := after.LastRun
	if last == nil || last.RunID != was.RunID && len(after.History) > 0 && after.History[0].RunID != was.RunID {
		c.violate("run: %s closes without a record", was.RunID)
		return
	}
	if len(after.History) == 0 || len(after.History) > v1beta1.MaxRolloutHistory || after.History[0].RunID != last.RunID {
		c.violate("run: the history of %d runs does not begin with %s", len(after.History), last.RunID)
	}
	if last.Outcome != v1beta1.RunCompleted {
		return
	}
	for _, t := range was.TargetRevisions {
		if _, declared := c.Pieces[t.Component]; !declared || c.actual.replicas[t.Component] == nil {
			continue
		}
		for _, row := range c.Rows(t.Component) {
			if row.Phase != v1beta1.InstanceDeleting && row.RunningRevision != c.revisionOf(t.Component, t.Revision) {
				c.violate("run: %s completes with Instance %d of %s on %s", was.RunID, row.Index, t.Component, row.RunningRevision)
			}
		}
	}
}

// parked is true while a group's progression is nowhere to be found.
func (c *Cluster) parked() bool {
	r := c.Rollout()
	if r == nil {
		return false
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		if g.PolicyRef == nil || g.Canary != nil || g.BlueGreen != nil || g.RollingUpdate != nil {
			continue
		}
		p, ok := c.policies[g.PolicyRef.Name]
		if !ok || p.Problem != "" || plan.Kind(plan.GroupOfPolicy(&p.Spec)) != g.PolicyRef.Progression {
			return true
		}
	}
	return false
}

// checkDigest: the digest of a progression depends on what it says and on nothing else.
func (c *Cluster) checkDigest(g *v1beta1.RolloutGroup, digest string) {
	text := bodyText(g)
	if text == "" || c.Digests == nil {
		return
	}
	if known := c.Digests(text, digest); known != digest {
		c.violate("digest: %s has digest %s and had %s", text, digest, known)
	}
}

// bodyText spells a progression out, by hand.
func bodyText(g *v1beta1.RolloutGroup) string {
	if g.Canary != nil {
		return ""
	}
	r := g.RollingUpdate
	if r == nil {
		return "blue-green"
	}
	text := "rolling"
	if r.MaxSurge != nil {
		text += fmt.Sprintf(" surge %d %s", r.MaxSurge.Type, r.MaxSurge)
	}
	if r.MaxUnavailable != nil {
		text += fmt.Sprintf(" unavailable %d %s", r.MaxUnavailable.Type, r.MaxUnavailable)
	}
	return text
}
