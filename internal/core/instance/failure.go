package instance

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// Reasons of a failure that no kubelet gave.
const (
	reasonContainersNotReady = "ContainersNotReady"
	reasonGateNotSatisfied   = "ReadinessGateNotSatisfied"
	reasonDeadlineExceeded   = "DeadlineExceeded"
	reasonUnschedulable      = "Unschedulable"
	reasonInvalidPodSpec     = "InvalidPodSpec"
	reasonNamespaceGoing     = "NamespaceTerminating"
	reasonPodFailed          = "PodFailed"
)

// failure is why an operation ended without its goal.
type failure struct {
	v1beta1.InstanceTermination
	// counted failures are the revision's own fault and use up its attempts.
	counted bool
	// node is where the attempt's pod ran; empty when it ran nowhere.
	node string
}

// failureOf is why the operation failed; nil while it may still come about.
func (d *decider) failureOf(row *v1beta1.InstanceStatus, p *pod, parked bool) *failure {
	op := row.Operation
	slot := d.building(row)
	name := ""
	if slot >= 0 {
		name = PodName(d.in.Prefix, d.in.Component, row.Index, slot)
	}
	if refusal, ok := d.refused(row, slot); ok {
		switch refusal.Kind {
		case RefusedInvalid:
			return newFailure(name, reasonInvalidPodSpec, refusal.Text, true)
		case RefusedTerminating:
			return newFailure(name, reasonNamespaceGoing, refusal.Text, false)
		}
	}
	// Graces go on counting in a pause; what they bring comes with its end.
	if p.live() && p.broken && !d.in.Paused {
		since := p.obj.CreationTimestamp.Time
		if op.Step == v1beta1.StepInPlace && since.Before(op.StartedAt.Time) {
			since = op.StartedAt.Time // the pod is old, its new image is not
		}
		if d.after(since, d.in.StuckGrace) {
			return stuck(p)
		}
	}
	if p.live() && p.unschedulable && !d.in.Paused && d.after(p.unscheduledSince(), d.in.UnschedulableGrace) {
		return newFailure(name, reasonUnschedulable, p.noRoom(), false)
	}
	if parked || op.Deadline == nil || d.in.Now.Before(op.Deadline.Time) {
		return nil
	}
	f := newFailure(name, reasonDeadlineExceeded, fmt.Sprintf("the pod did not serve within %s", d.in.ReadyTimeout), false)
	switch {
	case p == nil:
	case !p.containersReady:
		f.Reason = reasonContainersNotReady
	case !p.gate || !p.ready:
		f.Reason = reasonGateNotSatisfied
	}
	if p != nil {
		f.node = p.obj.Spec.NodeName
	}
	return f
}

func newFailure(pod, reason, message string, counted bool) *failure {
	return &failure{InstanceTermination: v1beta1.InstanceTermination{PodName: pod, Reason: reason, Message: message}, counted: counted}
}

// stuck words a pod that waits for something that time alone rarely brings.
func stuck(p *pod) *failure {
	f := newFailure(p.obj.Name, p.waits.State.Waiting.Reason, p.waits.State.Waiting.Message, countedReason(p.waits.State.Waiting.Reason))
	f.ContainerName, f.node = p.waits.Name, p.obj.Spec.NodeName
	for _, list := range [2][]corev1.ContainerStatus{p.obj.Status.InitContainerStatuses, p.obj.Status.ContainerStatuses} {
		for i := range list {
			if t := list[i].LastTerminationState.Terminated; list[i].Name == p.waits.Name && t != nil {
				f.ExitCode = new(t.ExitCode)
			}
		}
	}
	return f
}

// countedReason: an image or a configuration is the revision's own; a crash may be the node's.
func countedReason(reason string) bool {
	switch reason {
	case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError", reasonInvalidPodSpec:
		return true
	}
	return false
}

// messageMost bounds what a row keeps of a text that others wrote.
const messageMost = 256

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut-- // not inside a character
	}
	return text[:cut]
}

// fail ends the operation. What comes next depends on its kind.
func (d *decider) fail(row *v1beta1.InstanceStatus, f *failure) {
	op := row.Operation
	last := f.InstanceTermination
	last.Message = clip(last.Message, messageMost)
	last.Time = new(metav1.NewTime(d.in.Now))
	row.LastFailure = &last
	d.warn(v1beta1.EventInstanceFailed, "Instance %s-%d: %s of revision %s failed: %s%s",
		d.in.Component, row.Index, op.Type, op.TargetRevision, last.Reason, because(last.Message))
	if op.Type == v1beta1.OperationRestart {
		// Its pods stay for inspection, and it heals by itself when they come up.
		row.Phase, d.openKnown = v1beta1.InstanceFailed, false
		op = d.edit(row)
		op.Deadline, op.Waiting = nil, ""
		d.retryFailed(op.TargetRevision, op, f)
		return
	}
	if d.relocate(row, f) {
		return
	}
	d.forget(row)
	row.Phase, row.Operation, row.TargetRevision = v1beta1.InstanceFailed, nil, ""
	d.openKnown = false
	d.retryFailed(op.TargetRevision, op, f)
}

func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

func (d *decider) warn(reason, format string, args ...any) {
	d.res.Events = append(d.res.Events, Event{Warning: true, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (d *decider) tell(reason, format string, args ...any) {
	d.res.Events = append(d.res.Events, Event{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// once reports whether the event was not announced in this episode yet, and notes it:
// the note is stored by the status write that the event goes out with.
func (d *decider) once(row *v1beta1.InstanceStatus, reason, episode string) bool {
	mark := reason + "@" + episode
	for _, a := range row.Announced {
		if a == mark {
			return false
		}
	}
	const most = 16 // the oldest notes are of episodes long over
	kept := row.Announced
	if len(kept) >= most {
		kept = kept[len(kept)-most+1:]
	}
	row.Announced = append(append(make([]string, 0, len(kept)+1), kept...), mark)
	return true
}

// episode names what an announcement belongs to.
func episode(row *v1beta1.InstanceStatus) string {
	if row.Operation != nil {
		return row.Operation.ID
	}
	return fmt.Sprintf("#%d", row.Incarnation)
}
