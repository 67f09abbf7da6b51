package sim

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
)

// AddNode joins a healthy node.
func (c *Cluster) AddNode(name string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("node-" + c.next()), ResourceVersion: c.next(),
		Labels: map[string]string{corev1.LabelHostname: name},
	}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: c.stamp()}}
	c.actual.nodes[name] = n
	c.dirty = true
}

// Nodes lists the names of the nodes there are.
func (c *Cluster) Nodes() []string { return slices.Sorted(maps.Keys(c.actual.nodes)) }

func alive(n *corev1.Node) bool {
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (c *Cluster) editNode(name string, change func(*corev1.Node)) {
	n := c.actual.nodes[name].DeepCopy()
	change(n)
	n.ResourceVersion = c.next()
	c.actual.nodes[name] = n
}

// KillNode cuts a node off: its pods are no longer Ready, and nothing that is asked
// of them happens.
func (c *Cluster) KillNode(name string) {
	if n := c.actual.nodes[name]; n == nil || !alive(n) {
		return
	}
	c.logf("%s dies", name)
	c.editNode(name, func(n *corev1.Node) {
		n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, c.stamp()
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: new(c.stamp())}}
	})
	for _, p := range c.on(name) {
		c.happens("node dies", p)
		c.kubelet(p.Name)
	}
}

// ReviveNode brings a node back: pods that were told to go meanwhile go.
func (c *Cluster) ReviveNode(name string) {
	if n := c.actual.nodes[name]; n == nil || alive(n) {
		return
	}
	c.logf("%s is back", name)
	c.editNode(name, func(n *corev1.Node) {
		n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionTrue, c.stamp()
		n.Spec.Taints = nil
	})
	for _, p := range c.on(name) {
		c.happens("node is back", p)
		if p.Status.Phase == corev1.PodUnknown {
			c.edit(p.Name, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
		}
		c.kubelet(p.Name)
	}
	c.dirty = true
}

// RemoveNode takes a dead node's object away; its pods stay until somebody collects them.
func (c *Cluster) RemoveNode(name string) {
	if n := c.actual.nodes[name]; n == nil || alive(n) {
		return
	}
	c.logf("%s is removed", name)
	delete(c.actual.nodes, name)
	c.next()
}

// CollectPods removes the pods of nodes that are gone, as the pod garbage collector
// does, and asks pods to go whose owner is gone.
func (c *Cluster) CollectPods() {
	for _, p := range c.Pods() {
		if p.DeletionTimestamp == nil && !owned(p, c.actual.replicas[v1beta1.ComponentType(p.Labels[v1beta1.ComponentLabel])]) {
			c.note("is collected with its owner", p.Name)
			c.terminate(p.Name)
		}
		if p.Spec.NodeName != "" && c.actual.nodes[p.Spec.NodeName] == nil {
			c.note("is collected", p.Name)
			c.forget(p)
		}
	}
}

// owned is true for a pod of the replica.
func owned(p *corev1.Pod, r *v1beta1.InferenceReplica) bool {
	return r != nil && metav1.IsControlledBy(p, r)
}

// EvictDead tells the pods of dead nodes to go, as the node controller does once
// their toleration runs out.
func (c *Cluster) EvictDead() {
	for _, p := range c.Pods() {
		if n := c.actual.nodes[p.Spec.NodeName]; p.DeletionTimestamp == nil && n != nil && !alive(n) {
			c.happens("evicted", p)
			c.note("is evicted from its dead node", p.Name)
			c.terminate(p.Name)
		}
	}
}

// LoseTrack puts a pod of a dead node into phase Unknown, as old kubelets' pods are.
func (c *Cluster) LoseTrack(name string) {
	p := c.actual.pods[name]
	if p == nil || !c.hangs(p) || p.Status.Phase == corev1.PodFailed {
		return
	}
	c.note("is in phase Unknown", name)
	c.edit(name, func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown })
}

// on lists a node's pods.
func (c *Cluster) on(node string) []*corev1.Pod {
	return slices.DeleteFunc(c.Pods(), func(p *corev1.Pod) bool { return p.Spec.NodeName != node })
}

// hangs is true for a pod whose kubelet does nothing.
func (c *Cluster) hangs(p *corev1.Pod) bool {
	if c.Stuck[p.UID] {
		return true
	}
	n := c.actual.nodes[p.Spec.NodeName]
	return p.Spec.NodeName != "" && (n == nil || !alive(n))
}

// place finds the emptiest node that takes the pod, "" for none.
func (c *Cluster) place(p *corev1.Pod) string {
	if c.roomy {
		return c.Nodes()[0]
	}
	used := map[string]int{}
	for _, other := range c.actual.pods {
		if c.Unchecked {
			break // a benchmark has too many pods to count them for each, and room for all
		}
		if other.Spec.NodeName != "" && other.Status.Phase != corev1.PodFailed && other.Status.Phase != corev1.PodSucceeded {
			used[other.Spec.NodeName]++
		}
	}
	best := ""
	for _, name := range c.Nodes() {
		n := c.actual.nodes[name]
		if limit, ok := c.Room[name]; !alive(n) || !admits(p, n) || (ok && used[name] >= limit) {
			continue
		}
		if best == "" || used[name] < used[best] {
			best = name
		}
	}
	return best
}

// admits evaluates the part of node affinity that the controller writes.
func admits(p *corev1.Pod, n *corev1.Node) bool {
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	matches := func(r corev1.NodeSelectorRequirement, value string) bool {
		in := slices.Contains(r.Values, value)
		switch r.Operator {
		case corev1.NodeSelectorOpIn:
			return in
		case corev1.NodeSelectorOpNotIn:
			return !in
		}
		panic(fmt.Sprintf("the simulated scheduler does not know operator %s", r.Operator))
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		all := true
		for _, r := range term.MatchExpressions {
			all = all && matches(r, n.Labels[r.Key])
		}
		for _, r := range term.MatchFields {
			all = all && matches(r, n.Name)
		}
		if all {
			return true
		}
	}
	return false
}
