package sim

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
)

// edit replaces a pod by a changed copy.
func (c *Cluster) edit(name string, change func(*corev1.Pod)) {
	old := c.actual.pods[name]
	if old == nil {
		return
	}
	p := old.DeepCopy()
	change(p)
	p.ResourceVersion = c.next()
	c.actual.pods[name] = p
	c.dirty = true
}

func (c *Cluster) setCondition(p *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) {
	for i := range p.Status.Conditions {
		if cond := &p.Status.Conditions[i]; cond.Type == kind {
			if cond.Status != status {
				cond.Status, cond.LastTransitionTime = status, c.stamp()
			}
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: c.stamp()})
}

func is(p *corev1.Pod, kind corev1.PodConditionType) bool {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return p.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

// Pods lists the pods there are, by name.
func (c *Cluster) Pods() []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(c.actual.pods))
	for _, name := range slices.Sorted(maps.Keys(c.actual.pods)) {
		out = append(out, c.actual.pods[name])
	}
	return out
}

// note logs what happens to a pod from outside.
func (c *Cluster) note(what, name string) {
	if p := c.actual.pods[name]; p != nil {
		c.logf("%s: %s %s", p.Labels[v1beta1.ComponentLabel], short(p), what)
	}
}

// Evict asks for a pod's deletion from outside.
func (c *Cluster) Evict(name string) {
	if p := c.actual.pods[name]; p != nil && p.DeletionTimestamp == nil {
		c.happens("evicted", p)
		c.terminate(name)
		c.logf("%s: evicted %s", p.Labels[v1beta1.ComponentLabel], short(p))
	}
}

// terminate is what the API server does with a delete request: a pod that no node
// has yet is gone at once, any other one gets its grace.
func (c *Cluster) terminate(name string) {
	p := c.actual.pods[name]
	if p == nil {
		return
	}
	if p.Spec.NodeName == "" && len(p.Finalizers) == 0 {
		c.forget(p)
		return
	}
	c.edit(name, func(p *corev1.Pod) {
		if p.DeletionTimestamp == nil {
			p.DeletionTimestamp = new(metav1.NewTime(c.stamp().Add(c.Grace)))
		}
	})
	c.kubelet(name)
}

// forget removes a pod's object.
func (c *Cluster) forget(p *corev1.Pod) {
	delete(c.actual.pods, p.Name)
	delete(c.Stuck, p.UID)
	delete(c.Sick, p.UID)
	c.next()
	c.dirty = true
}

// Gone lets a Terminating pod finish.
func (c *Cluster) Gone(name string) {
	if p := c.actual.pods[name]; p != nil && p.DeletionTimestamp != nil && !c.hangs(p) && len(p.Finalizers) == 0 {
		c.happens("gone", p)
		c.note("is gone", name)
		c.forget(p)
	}
}

// Finalize hangs a foreign finalizer on a pod, or takes it off.
func (c *Cluster) Finalize(name string, on bool) {
	p := c.actual.pods[name]
	if p == nil || (len(p.Finalizers) > 0) == on || (on && p.DeletionTimestamp != nil) {
		return
	}
	c.edit(name, func(p *corev1.Pod) {
		p.Finalizers = nil
		if on {
			p.Finalizers = []string{"example.com/keep"}
		}
	})
}

// Endpoints lets the endpoints controller catch up: what is Ready and selected by
// a Service that does not publish unready pods is offered.
func (c *Cluster) Endpoints() {
	var selectors []labels.Selector
	for _, s := range c.actual.services {
		if !s.Spec.PublishNotReadyAddresses {
			selectors = append(selectors, labels.SelectorFromSet(s.Spec.Selector))
		}
	}
	next := make(map[types.UID]bool, len(c.actual.offered))
	for _, p := range c.actual.pods {
		if p.DeletionTimestamp != nil || !is(p, corev1.PodReady) {
			continue
		}
		for _, s := range selectors {
			if s.Matches(labels.Set(p.Labels)) {
				next[p.UID] = true
				break
			}
		}
	}
	if !maps.Equal(next, c.actual.offered) {
		c.actual.offered = next
		c.next()
		c.dirty = true
	}
}

// LoseNode lets the kubelet under a pod hang: the pod is told to go and never does.
func (c *Cluster) LoseNode(name string) {
	if p := c.actual.pods[name]; p != nil && p.Spec.NodeName != "" {
		c.happens("node hangs", p)
		c.note("loses its node", name)
		c.terminate(name)
		c.Stuck[p.UID] = true
	}
}

// Heal gives the pods of hanging kubelets up, as a person with --force would, and
// brings every node back.
func (c *Cluster) Heal() {
	clear(c.Stuck)
	clear(c.BadNodes)
	for _, name := range c.Nodes() {
		c.ReviveNode(name)
	}
	c.dirty = true
}

// Advance moves the clock; the attempts whose clock runs get older.
func (c *Cluster) Advance(d time.Duration) {
	c.book.age(c, d)
	c.Now = c.Now.Add(d)
}

// Jump sets the clock to another time, as a correction or a new leader's clock does.
func (c *Cluster) Jump(d time.Duration) {
	for _, kind := range order {
		c.happensToAll("clock jumps", kind)
	}
	c.logf("the clock jumps by %s", d)
	c.Advance(d)
}
