package instance

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

// pod is what a decision needs to know about one listed pod.
type pod struct {
	obj     *corev1.Pod
	ordinal int32
	hash    string
	// terminating is set from the moment of the delete request.
	terminating bool
	// over is a pod whose containers ended and will not start again.
	over bool
	// containersReady and gate together make a serving pod.
	containersReady, gate bool
	// ready follows the kubelet's PodReady condition.
	ready bool
	// What the pod itself says of these is pointed to: there are many pods, and most
	// passes read none of it. Nil for what it does not say.
	readyCondition, gateCondition, unscheduled *corev1.PodCondition
	// waits is the container in trouble.
	waits *corev1.ContainerStatus
	// broken is a pod that waits for something that time alone rarely brings.
	broken bool
	// incarnation is the one the pod was made for; 0 when it carries none.
	incarnation int64
	// unknown is a pod whose node went silent.
	unknown bool
	// lost is a pod that entered rotation and whose node was declared dead since:
	// nobody else turns PodReady off under ready containers.
	lost bool
	// unschedulable is the scheduler's own word; gated a scheduling gate.
	unschedulable, gated bool
	routed               bool
}

// readySince and gateSince are when the two conditions last turned.
func (p *pod) readySince() time.Time { return since(p.readyCondition) }
func (p *pod) gateSince() time.Time  { return since(p.gateCondition) }

// gateRestarts is how often the main container had restarted when the gate turned; -1 if
// that is not told.
func (p *pod) gateRestarts() int32 {
	if p.gateCondition == nil {
		return -1
	}
	return restartsNoted(p.gateCondition.Message)
}

// noRoom is the scheduler's message, and unscheduledSince how long it has stood.
func (p *pod) noRoom() string {
	if p.unscheduled == nil {
		return ""
	}
	return p.unscheduled.Message
}
func (p *pod) unscheduledSince() time.Time { return since(p.unscheduled) }

func since(c *corev1.PodCondition) time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}

func (p *pod) live() bool    { return p != nil && !p.terminating && !p.over }
func (p *pod) serving() bool { return p.live() && p.containersReady && p.gate && !p.lost }

// graceEnds is when a Terminating pod stops holding its surge slot.
func (p *pod) graceEnds() time.Time {
	// deletionTimestamp already includes the grace period.
	ends, grace := p.obj.DeletionTimestamp.Time, p.obj.DeletionGracePeriodSeconds
	if grace != nil && *grace == 0 && len(p.obj.Finalizers) == 0 && p.obj.Spec.TerminationGracePeriodSeconds != nil {
		// A kubelet confirms the end of a pod with a second deletion, without grace. It moves
		// deletionTimestamp back to when the first was asked for, and the pod is shown so for a
		// moment before it is gone. That is no pod that outlived its grace.
		return ends.Add(time.Duration(*p.obj.Spec.TerminationGracePeriodSeconds) * time.Second)
	}
	return ends
}

// readyFor is true once the pod has been Ready for the whole window; else due is
// when it will have been.
func (p *pod) readyFor(in *Input) (ok bool, due time.Time) {
	if !p.live() || !p.ready {
		return false, time.Time{}
	}
	if due := p.readySince().Add(in.MinReady); in.MinReady > 0 && in.Now.Before(due) {
		return false, due
	}
	return true, time.Time{}
}

// available adds that the pod is in rotation and reachable, so that traffic has
// somewhere to go before an old pod leaves.
func (p *pod) available(in *Input) (ok bool, due time.Time) {
	if !p.serving() || !p.routed {
		return false, time.Time{}
	}
	return p.readyFor(in)
}

// slots are the pods of one Instance: the listed ones by name slot, and any that
// fit no slot.
type slots struct {
	bySlot [2]*pod
	// strays share a slot with another pod or carry an ordinal that is none.
	strays []*pod
	listed int32
}

func (s *slots) all(do func(*pod)) {
	for _, p := range s.bySlot {
		if p != nil {
			do(p)
		}
	}
	for _, p := range s.strays {
		do(p)
	}
}

// census sorts the component's pods by Instance. Pods of another owner are not ours.
func census(in *Input) slotTable {
	byIndex := newSlotTable(len(in.Rows))
	pods := make([]pod, 0, len(in.Pods))
	slab := make([]slots, 0, len(in.Rows)+8) // one allocation for nearly all
	for _, obj := range in.Pods {
		if !ownedBy(obj, in) {
			continue
		}
		index, err := strconv.ParseInt(obj.Labels[v1beta1.InstanceIndexLabel], 10, 32)
		if err != nil || index < 0 {
			continue
		}
		pods = append(pods, observe(obj, in))
		p := &pods[len(pods)-1]
		s := byIndex.get(int32(index))
		if s == nil {
			slab = append(slab, slots{})
			s = &slab[len(slab)-1]
			byIndex.put(int32(index), s)
		}
		s.listed++
		if p.ordinal < 0 || p.ordinal > 1 || s.bySlot[p.ordinal] != nil {
			s.strays = append(s.strays, p)
			continue
		}
		s.bySlot[p.ordinal] = p
	}
	return byIndex
}

// slotTable finds the slots of an index. Indexes are nearly always small and close
// together, so most of them are places in a list; the others are in a map.
type slotTable struct {
	dense  []*slots
	sparse map[int32]*slots
}

func newSlotTable(rows int) slotTable { return slotTable{dense: make([]*slots, 2*rows+8)} }

func (t *slotTable) get(index int32) *slots {
	if index >= 0 && int(index) < len(t.dense) {
		return t.dense[index]
	}
	return t.sparse[index]
}

func (t *slotTable) put(index int32, s *slots) {
	if index >= 0 && int(index) < len(t.dense) {
		t.dense[index] = s
		return
	}
	if t.sparse == nil {
		t.sparse = map[int32]*slots{}
	}
	t.sparse[index] = s
}

// indexes lists those that have slots, in no order.
func (t *slotTable) indexes(do func(index int32)) {
	for i, s := range t.dense {
		if s != nil {
			do(int32(i))
		}
	}
	for i := range t.sparse {
		do(i)
	}
}

func ownedBy(obj *corev1.Pod, in *Input) bool {
	for i := range obj.OwnerReferences {
		if ref := &obj.OwnerReferences[i]; ref.Controller != nil && *ref.Controller {
			return ref.UID == in.Owner.UID
		}
	}
	return false
}

func observe(obj *corev1.Pod, in *Input) pod {
	p := pod{
		obj:         obj,
		ordinal:     -1,
		hash:        obj.Labels[v1beta1.RevisionHashLabel],
		terminating: obj.DeletionTimestamp != nil,
		over:        obj.Status.Phase == corev1.PodFailed || obj.Status.Phase == corev1.PodSucceeded,
		gated:       len(obj.Spec.SchedulingGates) > 0,
		routed:      in.Routed[obj.UID],
	}
	if n, err := strconv.ParseInt(obj.Labels[v1beta1.PodOrdinalLabel], 10, 32); err == nil {
		p.ordinal = int32(n)
	}
	p.incarnation, _ = strconv.ParseInt(obj.Labels[v1beta1.InstanceIncarnationLabel], 10, 64)
	p.unknown = obj.Status.Phase == corev1.PodUnknown
	for i := range obj.Status.Conditions {
		c := &obj.Status.Conditions[i]
		yes := c.Status == corev1.ConditionTrue
		switch c.Type {
		case corev1.ContainersReady:
			p.containersReady = yes
		case corev1.PodReady:
			p.ready, p.readyCondition = yes, c
		case v1beta1.ServingReadinessGate:
			p.gate, p.gateCondition = yes, c
		case corev1.PodScheduled:
			if !yes && c.Reason == corev1.PodReasonUnschedulable {
				p.unschedulable, p.unscheduled = true, c
			}
		}
	}
	p.lost = p.gate && p.containersReady && !p.ready && p.readySince().After(p.gateSince())
	if !p.containersReady {
		p.observeWaiting()
	}
	return p
}

// operation is the one that made the pod.
func (p *pod) operation() string { return p.obj.Annotations[v1beta1.OperationIDAnnotation] }

// brokenBy names the container and its cause.
func (p *pod) brokenBy() string {
	return p.waits.State.Waiting.Reason + " in container " + p.waits.Name
}

// observeWaiting finds the container that waits for something that time alone rarely
// brings: its image, its configuration, or an end to its crashes.
func (p *pod) observeWaiting() {
	for _, list := range [2][]corev1.ContainerStatus{p.obj.Status.InitContainerStatuses, p.obj.Status.ContainerStatuses} {
		for i := range list {
			w := list[i].State.Waiting
			if w == nil {
				continue
			}
			switch w.Reason {
			case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError",
				"CrashLoopBackOff", "CreateContainerError", "RunContainerError":
				p.broken, p.waits = true, &list[i]
				return
			}
		}
	}
}
