package preview

import (
	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/sim"
)

// goal is how far a cluster is.
type goal int

const (
	underWay goal = iota
	// heldBack: only what a partition keeps back is not on the target.
	heldBack
	atGoal
)

// reached compares the cluster with what the spec asks for: each component's Instances in
// the wanted number, Ready on its revision with one pod each that serves, nothing under
// way, no run open, and nothing left of a component that left.
func reached(c *sim.Cluster, templates map[v1beta1.ComponentType]*core.Template) goal {
	out := atGoal
	for _, kind := range v1beta1.Components() {
		if st, steps := canaryOf(c, kind); st != nil && int(st.CurrentStep) < len(steps) {
			return underWay // what a step keeps back is not kept back for good
		}
	}
	if s := c.Service(); s.Status.ObservedGeneration != s.Generation {
		return underWay
	}
	for _, kind := range v1beta1.Components() {
		r, t := c.Replica(kind), templates[kind]
		switch {
		case t == nil && r == nil:
			continue
		case t == nil || r == nil || r.Status.UpdateRevision == "":
			return underWay
		}
		rows := c.Rows(kind)
		if int32(len(rows)) != c.Wanted(kind) {
			return underWay
		}
		behind := int32(0)
		for i := range rows {
			if rows[i].Phase != v1beta1.InstanceReady || rows[i].Operation != nil {
				return underWay
			}
			if rows[i].RunningRevision != r.Status.UpdateRevision {
				behind++
			}
		}
		pods := 0
		for _, p := range c.Pods() {
			if v1beta1.ComponentType(p.Labels[v1beta1.ComponentLabel]) == kind {
				if !sim.Serves(p) {
					return underWay
				}
				pods++
			}
		}
		switch {
		case pods != len(rows) || behind > partition(r, t):
			return underWay
		case behind > 0:
			out = heldBack
		}
	}
	if ro := c.Service().Status.Rollout; out == atGoal && ro != nil && ro.ActiveRun != nil {
		return underWay
	}
	return out
}

// partition is the number of Instances that stay on the revision they run.
func partition(r *v1beta1.InferenceReplica, t *core.Template) int32 {
	if p := r.Spec.Pacing; p != nil && p.Partition != nil {
		return *p.Partition
	}
	if u := t.Lifecycle.UpdateStrategy; u != nil && u.RollingUpdate != nil && u.RollingUpdate.Partition != nil {
		return *u.RollingUpdate.Partition
	}
	return 0
}
