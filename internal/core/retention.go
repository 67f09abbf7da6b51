package core

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/revision"
)

// revisionsInUse are the names that rows, status or spec still refer to, sorted.
// Neighbours mostly agree, and there are only ever a few names, so a short list is
// searched rather than a map filled.
func (c *component) revisionsInUse() []string {
	names := make([]string, 0, 4)
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(c.target.Name)
	add(c.status.CurrentRevision)
	add(c.status.UpdateRevision)
	var running, target string // of the row before
	for i := range c.result.Rows {
		row := &c.result.Rows[i]
		if row.RunningRevision != running {
			running = row.RunningRevision
			add(running)
		}
		if row.TargetRevision != target {
			target = row.TargetRevision
			add(target)
		}
	}
	for i := range c.status.RetryBlocks {
		add(c.status.RetryBlocks[i].TargetRevision)
	}
	slices.Sort(names)
	return names
}

// prune chooses revisions past the history limit for deletion: all but those in use,
// those that a rollback would return to, and the newest of the others.
func (c *component) prune(w *World) {
	limit := int(w.Settings.Lifecycle.RevisionHistoryLimit)
	if w.Service != nil {
		if n, err := strconv.Atoi(w.Service.Annotations[v1beta1.RevisionHistoryLimitAnnotation]); err == nil && n > 0 {
			limit = n
		}
	}
	if limit <= 0 || len(c.Revisions) <= limit {
		return // no limit keeps all
	}
	owned := slices.DeleteFunc(slices.Clone(c.Revisions), func(cr *appsv1.ControllerRevision) bool {
		return !metav1.IsControlledBy(cr, c.Replica)
	})
	live := map[string]bool{}
	for _, name := range c.revisionsInUse() {
		live[name] = true
	}
	c.rollbackTargets(w, live)
	c.out.DeleteRevisions = revision.Prune(owned, live, &limit)
}

// rollbackTargets adds what the replica may be told to return to. A member that is
// on the run's target already can still be taken back while another one moves.
func (c *component) rollbackTargets(w *World, live map[string]bool) {
	if p := c.Replica.Spec.Pacing; p != nil && p.RollbackToRevision != "" {
		live[p.RollbackToRevision] = true
	}
	if w.Service != nil {
		for _, s := range w.Service.Status.Components {
			if s.Canary == nil {
				continue
			}
			for _, m := range s.Canary.Members {
				if m.Component == c.Type {
					c.keepHash(live, m.Stable)
				}
			}
		}
	}
	if w.Service == nil || w.Service.Status.Rollout == nil || w.Service.Status.Rollout.ActiveRun == nil {
		return
	}
	for _, t := range w.Service.Status.Rollout.ActiveRun.TargetRevisions {
		if t.Component != c.Type || t.StableRevision == "" {
			continue
		}
		c.keepHash(live, t.StableRevision)
	}
}

func (c *component) keepHash(live map[string]bool, hash string) {
	for name, known := range c.known {
		if known.Hash == hash {
			live[name] = true
		}
	}
}
