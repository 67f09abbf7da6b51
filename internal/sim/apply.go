package sim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// Pass lets the controller decide once and applies what it decided.
func (c *Cluster) Pass() core.Decision {
	for k := range c.wrote {
		c.seen.take(&c.actual, k)
	}
	clear(c.wrote)
	c.dirty = false
	w := c.World()
	d := core.Decide(w)
	c.wake = d.Wake
	c.apply(w, d)
	return d
}

// lost is true when the fault injector drops the write.
func (c *Cluster) lost(format string, args ...any) bool {
	if c.Lose == nil {
		return false
	}
	what := fmt.Sprintf(format, args...)
	if c.Lose(what) {
		c.logf("lost: %s", what)
		c.dirty = true // the controller comes back after a failed write
		return true
	}
	return false
}

func (c *Cluster) landed(kind Kind) {
	c.wrote[kind] = true
	c.dirty = true
}

func (c *Cluster) apply(w core.World, d core.Decision) {
	blocked := map[v1beta1.ComponentType]bool{}
	for _, cd := range d.Components {
		for _, cr := range cd.CreateRevisions {
			if c.lost("create revision of %s", cd.Type) {
				blocked[cd.Type] = true
				continue
			}
			if c.actual.revisions[cr.Name] == nil {
				cr = cr.DeepCopy()
				cr.UID, cr.ResourceVersion = types.UID("cr-"+cr.Name), c.next()
				c.actual.revisions[cr.Name] = cr
				c.landed(KindRevision)
			}
		}
	}
	statusOK := true
	if d.Status != nil {
		statusOK = c.applyServiceStatus(w, d)
	}
	for i := range d.Components {
		cd := &d.Components[i]
		if !statusOK || blocked[cd.Type] {
			c.dirty = true
			continue
		}
		c.applyComponent(w, cd)
	}
	c.applyServices(d)
	for _, cd := range d.Components {
		for _, cr := range cd.DeleteRevisions {
			if !c.lost("delete revision of %s", cd.Type) {
				c.checkRevisionUnused(&cd, cr.Name)
				delete(c.actual.revisions, cr.Name)
				c.landed(KindRevision)
			}
		}
	}
}

func (c *Cluster) applyServiceStatus(w core.World, d core.Decision) bool {
	if c.lost("service status") {
		return false
	}
	if c.actual.service == nil || w.Service.ResourceVersion != c.actual.service.ResourceVersion {
		c.dirty = true
		return false // conflict
	}
	next := c.actual.service.DeepCopy()
	before := next.Status.Rollout
	next.Status = *d.Status.DeepCopy()
	next.ResourceVersion = c.next()
	c.actual.service = next
	c.landed(KindService)
	c.logRuns(before, next.Status.Rollout)
	return true
}

func (c *Cluster) logRuns(before, after *v1beta1.RolloutStatus) {
	open := func(s *v1beta1.RolloutStatus) string {
		if s == nil || s.ActiveRun == nil {
			return ""
		}
		return s.ActiveRun.RunID
	}
	if open(before) != "" && open(before) != open(after) {
		c.logf("run closes: %s", after.LastRun.Outcome)
	}
	if open(after) != "" && open(before) != open(after) {
		line := "run opens:"
		for _, t := range after.ActiveRun.TargetRevisions {
			line += fmt.Sprintf(" %s %s->%s", t.Component, c.letter(t.Component, t.StableRevision), c.letter(t.Component, t.Revision))
		}
		c.logf("%s", line)
	}
}

func (c *Cluster) applyComponent(w core.World, cd *core.ComponentDecision) {
	seen := c.seen.replicas[cd.Type]
	version := ""
	if seen != nil {
		version = seen.ResourceVersion
	}
	stale := func() bool {
		now := c.actual.replicas[cd.Type]
		return now == nil || seen == nil || now.UID != seen.UID || now.ResourceVersion != version
	}
	switch {
	case cd.CreateReplica != nil:
		if c.lost("create replica %s", cd.Type) || c.actual.replicas[cd.Type] != nil {
			c.dirty = true
			return
		}
		r := cd.CreateReplica.DeepCopy()
		r.UID, r.ResourceVersion, r.Generation = types.UID("ir-"+string(cd.Type)+"-"+c.next()), c.next(), 1
		c.actual.replicas[cd.Type] = r
		c.landed(KindReplica)
		return
	case cd.UpdateReplica != nil:
		if c.lost("replica %s", cd.Type) || stale() {
			c.dirty = true
			return
		}
		r := cd.UpdateReplica.DeepCopy()
		r.Generation++
		r.ResourceVersion = c.next()
		version = r.ResourceVersion
		c.actual.replicas[cd.Type] = r
		c.landed(KindReplica)
	}
	if cd.DeleteReplica && !c.lost("delete replica %s", cd.Type) {
		c.DeleteReplica(cd.Type)
		c.landed(KindReplica)
		return
	}
	if cd.ReplicaStatus != nil {
		if c.lost("replica status %s", cd.Type) || stale() {
			c.dirty = true
			return
		}
		r := c.actual.replicas[cd.Type].DeepCopy()
		r.Status = *cd.ReplicaStatus.DeepCopy()
		r.Status.ObservedGeneration = r.Generation
		r.ResourceVersion = c.next()
		c.actual.replicas[cd.Type] = r
		c.landed(KindReplica)
	}
	for _, a := range cd.Pods {
		if c.lost("%s %s", a.Verb, a.Pod.Name) {
			continue
		}
		if !c.Unchecked {
			c.check(w, cd, a)
		}
		c.applyPod(cd.Type, a)
	}
	if cd.RemoveFinalizer && !c.lost("finalizer of %s", cd.Type) {
		if r := c.actual.replicas[cd.Type]; r != nil && seen != nil && r.UID == seen.UID {
			delete(c.actual.replicas, cd.Type)
			c.landed(KindReplica)
			c.logf("%s: replica is gone", cd.Type)
		}
	}
}

func (c *Cluster) applyPod(kind v1beta1.ComponentType, a core.PodAction) {
	now := c.actual.pods[a.Pod.Name]
	if a.Verb == core.PodCreate {
		if now != nil {
			c.dirty = true // AlreadyExists
			return
		}
		p := a.Pod.DeepCopy()
		p.UID, p.ResourceVersion = types.UID("pod-"+c.next()), c.next()
		p.Spec.TerminationGracePeriodSeconds = new(int64(c.Grace.Seconds()))
		c.actual.pods[p.Name] = p
		c.landed(KindPod)
		c.logf("%s: create %s at %s", kind, short(p), c.letter(kind, p.Labels[v1beta1.RevisionHashLabel]))
		return
	}
	if now == nil || now.UID != a.Pod.UID {
		c.dirty = true
		return
	}
	switch a.Verb {
	case core.PodServe, core.PodUnserve:
		if now.ResourceVersion != a.Pod.ResourceVersion {
			c.dirty = true // conflict: the kubelet wrote in between
			return
		}
		status, word := corev1.ConditionTrue, "serve"
		if a.Verb == core.PodUnserve {
			status, word = corev1.ConditionFalse, "unserve"
		}
		c.edit(now.Name, func(p *corev1.Pod) { c.setCondition(p, v1beta1.ServingReadinessGate, status) })
		c.landed(KindPod)
		c.logf("%s: %s %s", kind, word, short(now))
	case core.PodDelete, core.PodKill:
		c.logf("%s: delete %s", kind, short(now))
		if a.Verb == core.PodKill {
			delete(c.actual.pods, now.Name)
		} else {
			c.terminate(now.Name)
		}
		c.landed(KindPod)
	}
}

func (c *Cluster) applyServices(d core.Decision) {
	for _, s := range d.CreateServices {
		if c.lost("create service %s", s.Name) || c.actual.services[s.Name] != nil {
			continue
		}
		s = s.DeepCopy()
		s.UID, s.ResourceVersion = types.UID("svc-"+s.Name), c.next()
		c.actual.services[s.Name] = s
		c.landed(KindCoreSvc)
	}
	for _, s := range d.UpdateServices {
		if c.lost("service %s", s.Name) || c.actual.services[s.Name] == nil {
			continue
		}
		s = s.DeepCopy()
		s.ResourceVersion = c.next()
		c.actual.services[s.Name] = s
		c.landed(KindCoreSvc)
	}
	for _, s := range d.DeleteServices {
		if !c.lost("delete service %s", s.Name) {
			delete(c.actual.services, s.Name)
			c.landed(KindCoreSvc)
		}
	}
}

// short is the part of a pod's name that tells it from its siblings.
func short(p *corev1.Pod) string {
	return p.Labels[v1beta1.InstanceIndexLabel] + "/" + p.Labels[v1beta1.PodOrdinalLabel]
}
