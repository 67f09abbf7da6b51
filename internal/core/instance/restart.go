package instance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// Consecutive restarts of one Instance wait longer each time, from restartFirst to
// restartMost; restartCalm in rotation starts the count again.
const (
	restartFirst = 10 * time.Second
	restartMost  = 5 * time.Minute
	restartCalm  = 10 * time.Minute
)

// openRestarts rebuilds Ready Instances whose pod is in trouble.
func (d *decider) openRestarts() {
	if d.in.Frozen {
		return
	}
	for i := range d.rows {
		row := &d.rows[i]
		if row.Phase != v1beta1.InstanceReady || row.Operation != nil || d.doomed[row.Index] {
			continue
		}
		f, policy := d.trouble(row)
		if f == nil {
			continue
		}
		if d.held(row.RunningRevision) {
			d.hold(d.mayAttempt(row.RunningRevision))
			continue
		}
		if !policy && d.out()+1 > d.in.MaxUnavailable {
			h := d.unavailableHold(d.out())
			if d.once(row, v1beta1.EventRepairHeld, fmt.Sprintf("#%d", row.Incarnation)) {
				d.warn(v1beta1.EventRepairHeld, "Instance %s-%d: its restart after %s waits: %s: %s", d.in.Component, row.Index, f.Reason, h.Gate, h.Reason)
			}
			d.hold(h)
			continue
		}
		if d.full() {
			d.hold(d.fullHold())
			return
		}
		d.openRestart(row, f)
	}
}

// trouble is what a Ready Instance should be restarted for; policy is true when the
// restart policy asks for it, false for a crash loop.
func (d *decider) trouble(row *v1beta1.InstanceStatus) (f *failure, policy bool) {
	p := d.podsOf(row.Index).bySlot[row.ActiveOrdinal]
	if !p.live() {
		return nil, false
	}
	if d.in.RestartPolicy == v1beta1.RestartRecreateInstance {
		for i := range p.obj.Status.ContainerStatuses {
			c := &p.obj.Status.ContainerStatuses[i]
			t := c.LastTerminationState.Terminated
			if c.Name == mainContainer && t != nil && restartedInService(row, p, c.RestartCount, t.FinishedAt.Time) {
				f := newFailure(p.obj.Name, t.Reason, t.Message, false)
				f.ContainerName, f.ExitCode, f.node = c.Name, new(t.ExitCode), p.obj.Spec.NodeName
				return f, true
			}
		}
	}
	if p.broken && d.after(p.obj.CreationTimestamp.Time, d.in.StuckGrace) {
		return stuck(p), false
	}
	return nil, false
}

// restartedInService is true for a container that ended after its pod came into rotation.
// Times in the API are whole seconds, and those of a kubelet come from another clock, so
// they can't tell the end that made a pod late from the first one in service: the number
// of restarts can, and the gate keeps what it was.
func restartedInService(row *v1beta1.InstanceStatus, p *pod, restarts int32, ended time.Time) bool {
	if !p.gate || restarts <= max(0, p.gateRestarts()) {
		return false
	}
	if row.ReadySince != nil && row.ReadySince.After(p.gateSince()) {
		return ended.After(row.ReadySince.Time) // it came into service again without a turn of the gate
	}
	return p.gateRestarts() >= 0 || ended.After(p.gateSince())
}

const restartsPrefix = "restarts="

// restartsNote is the gate's message: how often the main container had restarted when
// the pod came into rotation.
func restartsNote(obj *corev1.Pod) string {
	n := int32(0)
	for i := range obj.Status.ContainerStatuses {
		if c := &obj.Status.ContainerStatuses[i]; c.Name == mainContainer {
			n = c.RestartCount
		}
	}
	return restartsPrefix + strconv.Itoa(int(n))
}

// restartsNoted reads the note; -1 for a gate that somebody else turned.
func restartsNoted(message string) int32 {
	text, ok := strings.CutPrefix(message, restartsPrefix)
	n, err := strconv.ParseInt(text, 10, 32)
	if !ok || err != nil {
		return -1
	}
	return int32(n)
}

// openRestart opens the restart, or its wait when the last one is not long ago.
func (d *decider) openRestart(row *v1beta1.InstanceStatus, f *failure) {
	if d.calm(row) {
		row.Announced = slices.DeleteFunc(slices.Clone(row.Announced), isRestart)
	}
	last := f.InstanceTermination
	last.Message, last.Time = clip(last.Message, messageMost), new(metav1.NewTime(d.in.Now))
	row.LastFailure = &last
	d.open(row, v1beta1.OperationRestart, v1beta1.StepDrain, row.RunningRevision, f.Reason)
	row.Operation.RetryCount = int32(d.restarts(row))
	if row.Operation.RetryCount > 0 {
		row.Operation.Waiting, row.Operation.Deadline = v1beta1.WaitingRestartBackoff, nil
		row.Operation.RetryCount = min(row.Operation.RetryCount, 30)
	}
	d.advanceRestart(row)
}

// calm is true for an Instance that was in rotation for long. One whose pod is gone
// without a trace was, as far as anybody can tell, if its last trouble is that old.
func (d *decider) calm(row *v1beta1.InstanceStatus) bool {
	if p := d.podsOf(row.Index).bySlot[row.ActiveOrdinal]; p != nil {
		return p.gate && d.in.Now.Sub(p.gateSince()) >= restartCalm
	}
	f := row.LastFailure
	return f != nil && f.Time != nil && d.in.Now.Sub(f.Time.Time) >= restartCalm
}

func isRestart(mark string) bool { return strings.HasPrefix(mark, v1beta1.EventRestartTriggered+"@") }

// restarts counts the restarts of the Instance since it last was calm.
func (d *decider) restarts(row *v1beta1.InstanceStatus) (n int) {
	for _, a := range row.Announced {
		if isRestart(a) {
			n++
		}
	}
	return n
}

func (d *decider) advanceRestart(row *v1beta1.InstanceStatus) {
	op := row.Operation
	if op.Waiting == v1beta1.WaitingRestartBackoff {
		if p := d.podsOf(row.Index).bySlot[row.ActiveOrdinal]; p.live() && p.containersReady && d.in.RestartPolicy != v1beta1.RestartRecreateInstance {
			d.settle(row, row.RunningRevision) // it came up by itself
			return
		}
		wait := restartMost
		if n := op.RetryCount; n < 6 {
			wait = min(restartMost, restartFirst<<(n-1))
		}
		if d.in.Frozen || !d.after(op.StartedAt.Time, wait) {
			return
		}
		op = d.edit(row)
		op.Waiting, op.Deadline = "", d.newDeadline(op.Type)
	}
	if d.once(row, v1beta1.EventRestartTriggered, op.ID) {
		row.Incarnation++
		d.warn(v1beta1.EventRestartTriggered, "Instance %s-%d restarts as incarnation %d: %s", d.in.Component, row.Index, row.Incarnation, op.Reason)
	}
	d.advanceRebuild(row)
}

// revive carries on with a failed restart whose pod came up after all.
func (d *decider) revive(row *v1beta1.InstanceStatus) {
	op := d.edit(row)
	d.openKnown = false
	row.Phase, op.Deadline = v1beta1.InstanceRestarting, d.newDeadline(op.Type)
	d.advanceRebuild(row)
}
