package sim

import (
	"encoding/json"
	"fmt"
	"time"

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
	c.retry = time.Time{}
	c.lagging()
	c.book.reached = map[v1beta1.ComponentType]bool{}
	w := c.World()
	d := core.Decide(w)
	c.wake = d.Wake
	before, canaries := c.beforePass(&w), c.canaryRecords()
	c.apply(w, d)
	c.sample(d)
	if !c.Unchecked {
		c.book.watch(c, &w)
		c.checkGroups(&w, before)
		if c.CheckCanaries {
			c.checkCanaries(&w, canaries)
		}
	}
	c.retryLater()
	return d
}

// lagging counts the pods that the pass sees as they were.
func (c *Cluster) lagging() {
	if c.Coverage == nil {
		return
	}
	for _, p := range c.Pods() {
		if c.seen.pods[p.Name] != p {
			c.happens("seen late", p)
		}
	}
}

// retryLater lets the controller come back by itself while something is refused, at
// longer and longer intervals.
func (c *Cluster) retryLater() {
	for _, refused := range c.refused {
		if len(refused) > 0 {
			c.retry = c.Now.Add(min(5*time.Minute, time.Second<<min(c.tries, 9)))
			c.tries++
			return
		}
	}
	c.tries = 0
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

// stored is a status as it comes back from the API server: times in whole seconds,
// empty fields absent.
func stored[T any](in T) (out T) {
	raw, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
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
	if statusOK {
		c.removeServiceMail(d)
	}
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
	next.Status = stored(*d.Status)
	next.ResourceVersion = c.next()
	c.actual.service = next
	c.landed(KindService)
	c.logRuns(before, next.Status.Rollout)
	if !c.Unchecked {
		c.checkRun(&w, before, next.Status.Rollout)
	}
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
	if before != nil && after != nil {
		c.logPlan(before.ActiveRun, after.ActiveRun)
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
		c.checkCount(cd.Type, seen, cd.UpdateReplica)
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
		before := r.Status
		r.Status = stored(*cd.ReplicaStatus)
		r.Status.ObservedGeneration = r.Generation
		c.checkStatus(w, cd.Type, &before, &r.Status)
		r.ResourceVersion = c.next()
		c.actual.replicas[cd.Type] = r
		c.landed(KindReplica)
	}
	c.book.reached[cd.Type] = true
	if !c.Unchecked {
		c.checkUnavailable(w, cd)
	}
	c.forgetRefusals(cd)
	for _, a := range cd.Pods {
		if c.lost("%s %s", a.Verb, a.Pod.Name) {
			if a.Operation != "" {
				c.happens("write lost", a.Pod)
			}
			continue
		}
		if !c.Unchecked {
			c.check(w, cd, a)
		}
		c.applyPod(cd.Type, a)
	}
	c.removeMail(cd)
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
			if owned(now, c.actual.replicas[kind]) {
				c.dirty = true // not seen yet
			} else {
				c.turnDown(kind, a.Pod, core.Refusal{Kind: core.RefusedOther, Text: "pod " + now.Name + " exists and belongs to another owner"})
			}
			return
		}
		if c.refuse(kind, a.Pod) {
			return
		}
		delete(c.refused[kind], a.Pod.Name)
		p := a.Pod.DeepCopy()
		p.UID, p.ResourceVersion = types.UID("pod-"+c.next()), c.next()
		p.CreationTimestamp = c.stamp()
		p.Status.Phase = corev1.PodPending
		p.Spec.TerminationGracePeriodSeconds = new(int64(c.Grace.Seconds()))
		if c.Queued {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/queue"}}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: corev1.PodReasonSchedulingGated, LastTransitionTime: c.stamp()}}
		}
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
		c.edit(now.Name, func(p *corev1.Pod) {
			c.setCondition(p, v1beta1.ServingReadinessGate, status)
			for i := range p.Status.Conditions {
				if cond := &p.Status.Conditions[i]; cond.Type == v1beta1.ServingReadinessGate {
					cond.Message = a.Message
				}
			}
		})
		c.landed(KindPod)
		c.logf("%s: %s %s", kind, word, short(now))
	case core.PodUpdate:
		if now.ResourceVersion != a.Pod.ResourceVersion {
			c.dirty = true
			return
		}
		c.edit(now.Name, func(p *corev1.Pod) { patch(p, a.Patch) })
		c.landed(KindPod)
		if len(a.Patch.Images) > 0 {
			c.logf("%s: patch %s to %s", kind, short(now), c.letter(kind, c.actual.pods[now.Name].Labels[v1beta1.RevisionHashLabel]))
		}
	case core.PodDelete, core.PodKill, core.PodForceDelete:
		word := "delete"
		if a.Verb == core.PodForceDelete {
			word = "force-delete"
		}
		c.logf("%s: %s %s", kind, word, short(now))
		if a.Verb == core.PodDelete {
			c.terminate(now.Name)
		} else {
			c.forget(now)
		}
		c.landed(KindPod)
	default:
		c.violate("%s: the simulation does not know verb %s", kind, a.Verb)
	}
}

// patch is the API server's side of a PodUpdate.
func patch(p *corev1.Pod, by *core.PodPatch) {
	for i := range p.Spec.Containers {
		if image := by.Images[p.Spec.Containers[i].Name]; image != "" {
			p.Spec.Containers[i].Image = image
		}
	}
	for k, v := range by.Labels {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[k] = v
	}
	for k, v := range by.Annotations {
		if v == nil {
			delete(p.Annotations, k)
			continue
		}
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[k] = *v
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
