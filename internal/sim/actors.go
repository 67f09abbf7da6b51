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
				cond.Status, cond.LastTransitionTime = status, metav1.NewTime(c.Now)
			}
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(c.Now)})
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

// BadImage is an image that no node can pull.
const BadImage = "unpullable"

// Start brings a pod's containers up, or its image pull to a halt.
func (c *Cluster) Start(name string) {
	if p := c.actual.pods[name]; p == nil || started(p) {
		return // what ended does not start again
	}
	c.note("starts", name)
	c.edit(name, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		if p.Spec.Containers[0].Image == BadImage {
			p.Status.Phase = corev1.PodPending
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "ome-container", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
			c.setCondition(p, corev1.ContainersReady, corev1.ConditionFalse)
			return
		}
		p.Status.ContainerStatuses = nil
		c.setCondition(p, corev1.ContainersReady, corev1.ConditionTrue)
	})
	c.kubelet(name)
}

// note logs what happens to a pod from outside.
func (c *Cluster) note(what, name string) {
	if p := c.actual.pods[name]; p != nil {
		c.logf("%s: %s %s", p.Labels[v1beta1.ComponentLabel], short(p), what)
	}
}

// started is true for a pod that Start would not change.
func started(p *corev1.Pod) bool {
	return is(p, corev1.ContainersReady) || p.Status.Phase == corev1.PodFailed ||
		(p.Spec.Containers[0].Image == BadImage && len(p.Status.ContainerStatuses) > 0)
}

// kubelet derives PodReady from the containers and the readiness gate.
func (c *Cluster) kubelet(name string) {
	p := c.actual.pods[name]
	if p == nil {
		return
	}
	want := corev1.ConditionFalse
	if is(p, corev1.ContainersReady) && is(p, v1beta1.ServingReadinessGate) && p.DeletionTimestamp == nil {
		want = corev1.ConditionTrue
	}
	if is(p, corev1.PodReady) != (want == corev1.ConditionTrue) {
		c.edit(name, func(p *corev1.Pod) { c.setCondition(p, corev1.PodReady, want) })
	}
}

// Kubelet lets every node catch up with readiness.
func (c *Cluster) Kubelet() {
	for _, p := range c.Pods() {
		c.kubelet(p.Name)
	}
}

// Unready makes a pod's containers fail their probe.
func (c *Cluster) Unready(name string) {
	c.note("fails its probe", name)
	c.edit(name, func(p *corev1.Pod) { c.setCondition(p, corev1.ContainersReady, corev1.ConditionFalse) })
	c.kubelet(name)
}

// Crash puts a pod's container into a crash loop.
func (c *Cluster) Crash(name string) {
	c.note("crashes", name)
	c.edit(name, func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "ome-container", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		c.setCondition(p, corev1.ContainersReady, corev1.ConditionFalse)
	})
	c.kubelet(name)
}

// Fail ends a pod's containers for good.
func (c *Cluster) Fail(name string) {
	c.note("ends", name)
	c.edit(name, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		c.setCondition(p, corev1.ContainersReady, corev1.ConditionFalse)
	})
	c.kubelet(name)
}

// Evict asks for a pod's deletion from outside.
func (c *Cluster) Evict(name string) {
	if p := c.actual.pods[name]; p != nil && p.DeletionTimestamp == nil {
		c.terminate(name)
		c.logf("%s: evicted %s", p.Labels[v1beta1.ComponentLabel], short(p))
	}
}

func (c *Cluster) terminate(name string) {
	c.edit(name, func(p *corev1.Pod) {
		if p.DeletionTimestamp == nil {
			p.DeletionTimestamp = new(metav1.NewTime(c.Now.Add(c.Grace)))
		}
	})
	c.kubelet(name)
}

// Gone lets a Terminating pod finish.
func (c *Cluster) Gone(name string) {
	if p := c.actual.pods[name]; p != nil && p.DeletionTimestamp != nil && !c.Stuck[name] {
		c.note("is gone", name)
		delete(c.actual.pods, name)
		c.dirty = true
	}
}

// Endpoints lets the endpoints controller catch up: what is Ready and selected by
// a Service that does not publish unready pods is offered.
func (c *Cluster) Endpoints() {
	next := map[types.UID]bool{}
	for _, p := range c.actual.pods {
		if p.DeletionTimestamp != nil || !is(p, corev1.PodReady) {
			continue
		}
		for _, s := range c.actual.services {
			if !s.Spec.PublishNotReadyAddresses && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels)) {
				next[p.UID] = true
				break
			}
		}
	}
	if !maps.Equal(next, c.actual.offered) {
		c.actual.offered = next
		c.dirty = true
	}
}

// SetImage is an edit of the service's spec.
func (c *Cluster) SetImage(kind v1beta1.ComponentType, image string) {
	piece := c.Pieces[kind]
	if piece.Image == image {
		return
	}
	piece.Image = image
	c.Pieces[kind] = piece
	c.edited()
	c.logf("user: %s image %s", kind, image)
}

// Scale edits the wanted count.
func (c *Cluster) Scale(kind v1beta1.ComponentType, n int32) {
	piece := c.Pieces[kind]
	if piece.Replicas == n {
		return
	}
	piece.Replicas = n
	c.Pieces[kind] = piece
	c.edited()
	c.logf("user: %s replicas %d", kind, n)
}

func (c *Cluster) edited() {
	c.editService(func(s *v1beta1.InferenceService) { s.Generation++ })
}

func (c *Cluster) editService(change func(*v1beta1.InferenceService)) {
	if c.actual.service == nil {
		return
	}
	s := c.actual.service.DeepCopy()
	change(s)
	s.ResourceVersion = c.next()
	c.actual.service = s
	// The template is read from the pieces, which have no lag of their own: the
	// service is seen with the edit, as the shell renders what it sees.
	c.Sync(KindService)
}

// Pause sets or removes the pause annotation.
func (c *Cluster) Pause(value string) {
	c.editService(func(s *v1beta1.InferenceService) {
		if value == "" {
			delete(s.Annotations, v1beta1.RolloutPausedAnnotation)
			return
		}
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[v1beta1.RolloutPausedAnnotation] = value
	})
	c.logf("user: pause %q", value)
}

// Paused is true while the service carries a pause.
func (c *Cluster) Paused() bool {
	return c.actual.service != nil && c.actual.service.Annotations[v1beta1.RolloutPausedAnnotation] != ""
}

// Break makes a component's template unrenderable, or mends it.
func (c *Cluster) Break(kind v1beta1.ComponentType, broken bool) {
	if c.Broken[kind] != broken {
		c.Broken[kind] = broken
		c.dirty = true
		c.logf("%s: template broken: %v", kind, broken)
	}
}

// LoseNode lets the node under a pod die: the pod is told to go and never does.
func (c *Cluster) LoseNode(name string) {
	if p := c.actual.pods[name]; p != nil {
		c.note("loses its node", name)
		c.Stuck[name] = true
		c.terminate(name)
	}
}

// Heal gives dead nodes' pods up, as a person with --force would.
func (c *Cluster) Heal() {
	clear(c.Stuck)
	c.dirty = true
}

// DeleteReplica asks for a replica's deletion, as garbage collection would.
func (c *Cluster) DeleteReplica(kind v1beta1.ComponentType) {
	r := c.actual.replicas[kind]
	if r == nil || r.DeletionTimestamp != nil {
		return
	}
	r = r.DeepCopy()
	r.DeletionTimestamp = new(metav1.NewTime(c.Now))
	r.ResourceVersion = c.next()
	c.actual.replicas[kind] = r
	c.dirty = true
}

// DeleteService deletes the service and lets garbage collection follow.
func (c *Cluster) DeleteService() {
	c.actual.service = nil
	c.Sync(KindService)
	for _, kind := range order {
		c.DeleteReplica(kind)
	}
	c.logf("user: delete the service")
}

// Advance moves the clock.
func (c *Cluster) Advance(d time.Duration) { c.Now = c.Now.Add(d) }
