package sim

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

// Images with a nature of their own.
const (
	// BadImage cannot be pulled by any node.
	BadImage = "unpullable"
	// CrashImage starts and ends with an error, every time.
	CrashImage = "crashing"
	// InvalidImage is no image name: the API server turns a new pod down, and a kubelet
	// does not start it in an old one.
	InvalidImage = "in valid"
)

// stage is what a pod's next step would be.
type stage int

const (
	nothing  stage = iota
	queued         // waits for its scheduling gate
	unplaced       // a node must be found, and none has been looked for in vain
	restart        // a container's image was changed: the old process ends first
	begin          // containers come up, or fail to
)

// stageOf says what the scheduler or the kubelet would do to the pod.
func (c *Cluster) stageOf(p *corev1.Pod) stage {
	switch {
	case p.DeletionTimestamp != nil, p.Status.Phase == corev1.PodFailed, p.Status.Phase == corev1.PodSucceeded:
		return nothing
	case p.Spec.NodeName == "" && len(p.Spec.SchedulingGates) > 0:
		return queued
	case p.Spec.NodeName == "":
		if c.place(p) == "" && unschedulable(p) {
			return nothing
		}
		return unplaced
	case c.hangs(p):
		return nothing
	}
	doomed := false
	for _, k := range p.Spec.Containers {
		s := container(p, k.Name)
		switch {
		case s == nil:
			return begin
		case s.State.Running != nil && s.Image != k.Image:
			return restart
		}
		if w := s.State.Waiting; w != nil {
			switch {
			case c.unpullable(k.Image):
				doomed = doomed || (w.Reason == pullReason(k.Image) && s.Image == k.Image)
			case c.crashes(p, k.Image):
				doomed = doomed || (w.Reason == "CrashLoopBackOff" && s.Image == k.Image)
			}
		}
	}
	if doomed || is(p, corev1.ContainersReady) {
		return nothing
	}
	return begin
}

// unpullable is true for an image that no container starts from.
func (c *Cluster) unpullable(image string) bool { return c.Unpullable[image] || image == InvalidImage }

func pullReason(image string) string {
	if image == InvalidImage {
		return "InvalidImageName"
	}
	return "ImagePullBackOff"
}

// crashes is true for a container that ends right after its start.
func (c *Cluster) crashes(p *corev1.Pod, image string) bool {
	return image == CrashImage || c.Sick[p.UID] || c.BadNodes[p.Spec.NodeName]
}

func unschedulable(p *corev1.Pod) bool {
	for i := range p.Status.Conditions {
		if cond := &p.Status.Conditions[i]; cond.Type == corev1.PodScheduled {
			return cond.Status == corev1.ConditionFalse && cond.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

func container(p *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if s := &p.Status.ContainerStatuses[i]; s.Name == name {
			return s
		}
	}
	return nil
}

// started is true for a pod that Start would not change.
func (c *Cluster) started(p *corev1.Pod) bool {
	s := c.stageOf(p)
	return s == nothing || s == queued
}

// Start lets a pod make its next step: onto a node and up, or a halt on the way.
func (c *Cluster) Start(name string) {
	p := c.actual.pods[name]
	if p == nil {
		return
	}
	switch c.stageOf(p) {
	case unplaced:
		if !c.bind(name) || c.hangs(c.actual.pods[name]) {
			return
		}
		c.begin(name)
	case restart:
		c.note("stops a container for its new image", name)
		c.edit(name, func(p *corev1.Pod) {
			for _, k := range p.Spec.Containers {
				if s := container(p, k.Name); s.Image != k.Image {
					s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: c.stamp(), ContainerID: s.ContainerID}}
					s.Ready = false
				}
			}
			c.setCondition(p, corev1.ContainersReady, corev1.ConditionFalse)
		})
		c.kubelet(name)
	case begin:
		c.begin(name)
	}
}

// bind is the scheduler's step.
func (c *Cluster) bind(name string) bool {
	node := c.place(c.actual.pods[name])
	if node == "" {
		c.happens("no room", c.actual.pods[name])
		c.note("finds no node with room", name)
		c.edit(name, func(p *corev1.Pod) {
			c.setCondition(p, corev1.PodScheduled, corev1.ConditionFalse)
			cond := &p.Status.Conditions[len(p.Status.Conditions)-1]
			for i := range p.Status.Conditions {
				if p.Status.Conditions[i].Type == corev1.PodScheduled {
					cond = &p.Status.Conditions[i]
				}
			}
			cond.Reason = corev1.PodReasonUnschedulable
			cond.Message = fmt.Sprintf("0/%d nodes are available: %d Insufficient nvidia.com/gpu.", len(c.actual.nodes), len(c.actual.nodes))
		})
		return false
	}
	c.edit(name, func(p *corev1.Pod) {
		p.Spec.NodeName = node
		c.setCondition(p, corev1.PodScheduled, corev1.ConditionTrue)
		for i := range p.Status.Conditions {
			if cond := &p.Status.Conditions[i]; cond.Type == corev1.PodScheduled {
				cond.Reason, cond.Message = "", ""
			}
		}
	})
	return true
}

// begin starts what does not run.
func (c *Cluster) begin(name string) {
	word := "starts"
	c.edit(name, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		ready := true
		for _, k := range p.Spec.Containers {
			s := container(p, k.Name)
			if s == nil {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: k.Name})
				s = &p.Status.ContainerStatuses[len(p.Status.ContainerStatuses)-1]
			}
			if s.State.Running != nil && s.Image == k.Image && !c.crashes(p, k.Image) {
				s.Ready = true
				continue
			}
			if t := s.State.Terminated; t != nil {
				s.LastTerminationState = corev1.ContainerState{Terminated: t}
			}
			switch {
			case c.unpullable(k.Image):
				// The image of the last process stays until another one runs.
				word, ready = "cannot pull its image", false
				if s.ContainerID == "" {
					p.Status.Phase = corev1.PodPending
				}
				s.Image, s.Ready = k.Image, false
				s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: pullReason(k.Image), Message: "Back-off pulling image " + k.Image}}
			case c.crashes(p, k.Image):
				word, ready = "crashes", false
				c.run(s, k.Image)
				c.crashLoop(s)
			default:
				c.run(s, k.Image)
			}
		}
		c.setCondition(p, corev1.ContainersReady, truth(ready))
	})
	c.note(word, name)
	switch word {
	case "starts":
		c.happens("starts", c.actual.pods[name])
	case "crashes":
		c.happens("crash loop", c.actual.pods[name])
	default:
		c.happens("pull fails", c.actual.pods[name])
	}
	c.kubelet(name)
}

func truth(yes bool) corev1.ConditionStatus {
	if yes {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// run gives a container a new process.
func (c *Cluster) run(s *corev1.ContainerStatus, image string) {
	if s.ContainerID != "" {
		s.RestartCount++
	}
	c.containers++
	s.Image, s.ImageID, s.Ready = image, "sim://image/"+image, true
	s.ContainerID = fmt.Sprintf("sim://container/%d", c.containers)
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: c.stamp()}}
}

func (c *Cluster) crashLoop(s *corev1.ContainerStatus) {
	s.Ready = false
	s.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, Reason: "Error", FinishedAt: c.stamp(), ContainerID: s.ContainerID}}
	s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container"}}
}

// kubelet derives PodReady from the containers and the readiness gate; the node
// controller turns it off on dead nodes.
func (c *Cluster) kubelet(name string) {
	p := c.actual.pods[name]
	if p == nil || (c.hangs(p) && c.Stuck[p.UID]) {
		return
	}
	want := is(p, corev1.ContainersReady) && is(p, v1beta1.ServingReadinessGate) && p.DeletionTimestamp == nil && !c.hangs(p)
	if is(p, corev1.PodReady) != want {
		c.edit(name, func(p *corev1.Pod) { c.setCondition(p, corev1.PodReady, truth(want)) })
	}
}

// Kubelet lets every node catch up with readiness.
func (c *Cluster) Kubelet() {
	for _, p := range c.Pods() {
		c.kubelet(p.Name)
	}
}

// runs is true for a pod whose containers a kubelet looks after.
func (c *Cluster) runs(p *corev1.Pod) bool {
	return p != nil && p.Spec.NodeName != "" && !c.hangs(p) && p.Status.Phase == corev1.PodRunning && len(p.Status.ContainerStatuses) > 0
}

// Unready makes a pod's containers fail their probe.
func (c *Cluster) Unready(name string) {
	if !c.runs(c.actual.pods[name]) {
		return
	}
	c.happens("unready", c.actual.pods[name])
	c.note("fails its probe", name)
	c.edit(name, func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].Ready = false
		c.setCondition(p, corev1.ContainersReady, corev1.ConditionFalse)
	})
	c.kubelet(name)
}

// Restart lets a container end and come back by itself.
func (c *Cluster) Restart(name, which string) {
	p := c.actual.pods[name]
	if !c.runs(p) {
		return
	}
	s := container(p, which)
	if s == nil || s.State.Running == nil {
		return
	}
	if which == mainContainer {
		c.happens("restarts", p)
	} else {
		c.happens("sidecar restarts", p)
	}
	c.note("restarts its "+which, name)
	c.edit(name, func(p *corev1.Pod) {
		s := container(p, which)
		s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "OOMKilled", FinishedAt: c.stamp(), ContainerID: s.ContainerID}}
		s.Ready = false
		c.setCondition(p, corev1.ContainersReady, corev1.ConditionFalse)
	})
	c.kubelet(name)
}

// Crash puts a pod's container into a crash loop that its kubelet will end.
func (c *Cluster) Crash(name string) {
	if !c.runs(c.actual.pods[name]) {
		return
	}
	c.happens("crash loop", c.actual.pods[name])
	c.note("crashes", name)
	c.edit(name, func(p *corev1.Pod) {
		c.crashLoop(&p.Status.ContainerStatuses[0])
		c.setCondition(p, corev1.ContainersReady, corev1.ConditionFalse)
	})
	c.kubelet(name)
}

// Sicken makes a pod crash for the rest of its life.
func (c *Cluster) Sicken(name string) {
	if p := c.actual.pods[name]; p != nil {
		c.Sick[p.UID] = true
		c.Crash(name)
	}
}

// Fail ends a pod's containers for good.
func (c *Cluster) Fail(name string) {
	p := c.actual.pods[name]
	if p == nil || p.Spec.NodeName == "" || c.hangs(p) || p.Status.Phase == corev1.PodFailed {
		return
	}
	c.happens("ends", p)
	c.note("ends", name)
	c.edit(name, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
		for i := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[i].Ready = false
		}
		c.setCondition(p, corev1.ContainersReady, corev1.ConditionFalse)
	})
	c.kubelet(name)
}

// Admit takes the scheduling gate off a pod.
func (c *Cluster) Admit(name string) {
	p := c.actual.pods[name]
	if p == nil || len(p.Spec.SchedulingGates) == 0 {
		return
	}
	c.happens("admitted", p)
	c.note("passes its scheduling gate", name)
	c.edit(name, func(p *corev1.Pod) {
		p.Spec.SchedulingGates = nil
		p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(cond corev1.PodCondition) bool { return cond.Type == corev1.PodScheduled })
	})
}
