package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/revision"
	"ome.io/ome/internal/core/rollout"
	"ome.io/ome/internal/core/rows"
)

// book remembers what the objects do not say, so that promises that span many passes
// can be checked.
type book struct {
	// promotes are those that were asked for and that no step has used.
	promotes map[v1beta1.ComponentType]int
	// admitted is the surge budget at the moment an operation was stored, by its ID.
	admitted map[string]int32
	// clock is how long an operation's clock ran, by its ID, not counting the time for
	// which the last pass saw something hold it from outside.
	clock map[string]time.Duration
	held  map[string]bool
	// reached are the components whose status the last pass brought up to date.
	reached map[v1beta1.ComponentType]bool
	// images are the images by container of each revision, by its name.
	images map[string]map[string]string
	// rendered is what the component looked like when its update revision was last
	// stored.
	rendered map[v1beta1.ComponentType]string
	// latest is the latest time there was, whatever a clock that steps back says.
	latest time.Time
	// releases counts the releases that the user asked for and has not got yet.
	releases map[v1beta1.ComponentType]int
	// pass is what the pass under way did; finished is when a member of a run last came
	// to serve nothing but its target, and finishedIn in which run.
	pass       passBook
	finished   map[v1beta1.ComponentType]time.Time
	finishedIn map[v1beta1.ComponentType]string
}

func newBook() book {
	return book{
		admitted: map[string]int32{}, clock: map[string]time.Duration{}, images: map[string]map[string]string{},
		rendered: map[v1beta1.ComponentType]string{}, releases: map[v1beta1.ComponentType]int{},
		finished: map[v1beta1.ComponentType]time.Time{}, finishedIn: map[v1beta1.ComponentType]string{},
	}
}

func (b *book) mailed(kind v1beta1.ComponentType, key, _ string) {
	if key == v1beta1.ReleaseHeldRevisionAnnotation {
		b.releases[kind]++
	}
}

// age adds to every clock that runs.
func (b *book) age(c *Cluster, d time.Duration) {
	if now := c.Now.Add(d); now.After(b.latest) {
		b.latest = now
	}
	if d < 0 {
		return // a correction takes nothing back
	}
	for _, kind := range order {
		for _, row := range c.Rows(kind) {
			if row.Operation != nil && row.Operation.Deadline != nil && !b.held[row.Operation.ID] {
				b.clock[row.Operation.ID] += d
			}
		}
	}
}

// watch notes what the pass saw hold operations from outside: a pause, a pod that no
// node or no queue has taken, a quota.
func (b *book) watch(c *Cluster, w *core.World) {
	b.held = map[string]bool{}
	paused := w.Service != nil && rollout.PauseOf(w.Service.Annotations) != rollout.NotPaused
	for i := range w.Components {
		seen := &w.Components[i]
		var old []v1beta1.InstanceStatus
		if seen.Replica != nil {
			old, _ = rows.Decode(&seen.Replica.Status, math.MaxInt32)
		}
		for _, row := range c.Rows(seen.Type) {
			if !b.reached[seen.Type] || row.Operation == nil || row.Operation.Type == v1beta1.OperationDelete {
				continue
			}
			held := paused && c.Desired(seen.Type) > 0
			for _, p := range seen.Pods {
				if index(p) == row.Index && p.DeletionTimestamp == nil && p.Annotations[v1beta1.OperationIDAnnotation] == row.Operation.ID && (unschedulable(p) || len(p.Spec.SchedulingGates) > 0) {
					held = true
				}
			}
			was := rowAt(old, row.Index)
			asked := was != nil && was.Operation != nil && was.Operation.ID == row.Operation.ID
			for ordinal := range int32(2) {
				held = held || asked && seen.RefusedPods[instance.PodName(Name, seen.Type, row.Index, ordinal)].Kind == core.RefusedQuota
			}
			if held {
				b.held[row.Operation.ID] = true
			}
		}
	}
}

// revisionName is the revision that a pod's label means.
func (c *Cluster) revisionName(kind v1beta1.ComponentType, p *corev1.Pod) string {
	return revision.Name(Name, kind, p.Labels[v1beta1.RevisionHashLabel])
}

// checkCount: a count that belongs to somebody else is not ours to move.
func (c *Cluster) checkCount(kind v1beta1.ComponentType, before, after *v1beta1.InferenceReplica) {
	if !c.Pieces[kind].External || before.Spec.Replicas == nil || *before.Spec.Replicas < 1 {
		return
	}
	if after.Spec.Replicas == nil || *after.Spec.Replicas != *before.Spec.Replicas {
		c.violate("%s: spec.replicas moves from %d to %v, and somebody else owns it", kind, *before.Spec.Replicas, after.Spec.Replicas)
	}
}

// checkStatus is run when a status is stored.
func (c *Cluster) checkStatus(w core.World, kind v1beta1.ComponentType, before, after *v1beta1.InferenceReplicaStatus) {
	c.learn(w, kind, before, after)
	if c.Unchecked {
		return
	}
	old, err := rows.Decode(before, math.MaxInt32)
	if err != nil {
		return // rowsThatCannotBeRead has its own test
	}
	list, err := rows.Decode(after, math.MaxInt32)
	if err != nil {
		c.violate("%s: a status is stored that does not decode: %v", kind, err)
		return
	}
	seen := seenComponent(&w, kind)
	pause := rollout.NotPaused
	if w.Service != nil {
		pause = rollout.PauseOf(w.Service.Annotations)
	}
	for i := range list {
		row, was := &list[i], rowAt(old, list[i].Index)
		c.checkClock(kind, row, was)
		if c.Coverage != nil && was != nil && row.Phase == v1beta1.InstanceFailed && was.Phase != v1beta1.InstanceFailed {
			c.Coverage.add(Cell{was.Phase, "attempt fails", c.Pieces[kind].strategy()})
		}
		if op := row.Operation; op != nil && (was == nil || was.Operation == nil || was.Operation.ID != op.ID) {
			c.book.admitted[op.ID] = c.surge(kind, c.Desired(kind))
			if held := c.heldPods(kind); held[row.Index] > 1 { // what the last attempt left is charged already
				c.book.admitted[op.ID] = max(c.book.admitted[op.ID], slotsOf(held))
			}
			if was != nil && was.Operation != nil { // it goes on under another name
				c.book.admitted[op.ID] = max(c.book.admitted[op.ID], c.book.admitted[was.Operation.ID])
			}
			c.checkOpened(seen, before, after, list, row, was, pause)
			c.noteMove(seen, row, was)
		}
	}
	c.checkVictims(kind, old, list)
	c.checkReleased(seen, before, after, list, old)
}

// learn records the target and sees that nothing but the template moved it.
func (c *Cluster) learn(w core.World, kind v1beta1.ComponentType, before, after *v1beta1.InferenceReplicaStatus) {
	seen := seenComponent(&w, kind)
	if seen == nil || seen.Template == nil {
		if before.UpdateRevision != after.UpdateRevision && before.UpdateRevision != "" {
			c.violate("%s: the target moves to %s while nothing renders", kind, after.UpdateRevision)
		}
		return
	}
	piece := c.Pieces[kind]
	rendered := fmt.Sprintf("%v %s %s", piece.images(), piece.Env, seen.Template.PairingProtocol)
	if before.UpdateRevision != "" && before.UpdateRevision != after.UpdateRevision && c.book.rendered[kind] == rendered {
		c.violate("%s: the target moves from %s to %s, and the template is the same", kind, before.UpdateRevision, after.UpdateRevision)
	}
	c.book.rendered[kind] = rendered
	c.book.images[after.UpdateRevision] = piece.images()
}

// checkClock: no attempt is ended by a deadline before its clock ran for the window.
func (c *Cluster) checkClock(kind v1beta1.ComponentType, row, was *v1beta1.InstanceStatus) {
	if row.Phase != v1beta1.InstanceFailed || was == nil || was.Phase == v1beta1.InstanceFailed || was.Operation == nil || row.LastFailure == nil {
		return
	}
	if f := was.LastFailure; f != nil && f.Reason == row.LastFailure.Reason && f.Time.Equal(row.LastFailure.Time) {
		return // it ended for another reason, and the failure is an earlier one
	}
	switch row.LastFailure.Reason {
	case "ContainersNotReady", "ReadinessGateNotSatisfied", "DeadlineExceeded":
	default:
		return
	}
	// Times are stored in whole seconds.
	if ran := c.book.clock[was.Operation.ID]; ran+time.Second < c.Settings.Lifecycle.InstanceReadyTimeout {
		c.violate("%s: Instance %d fails with %s after its clock ran for %s of %s",
			kind, row.Index, row.LastFailure.Reason, ran, c.Settings.Lifecycle.InstanceReadyTimeout)
	}
}

// checkOpened: what a pause and the retry authority allow to begin.
func (c *Cluster) checkOpened(seen *core.Component, before, after *v1beta1.InferenceReplicaStatus, list []v1beta1.InstanceStatus, row, was *v1beta1.InstanceStatus, pause rollout.Pause) {
	op := row.Operation
	if op.Type == v1beta1.OperationDelete || c.Desired(seen.Type) == 0 {
		return
	}
	under := was != nil && was.Operation != nil && was.Operation.Type != v1beta1.OperationDelete
	if pause == rollout.Freeze && !under {
		c.violate("%s: frozen, yet %s of Instance %d begins", seen.Type, op.Type, row.Index)
	}
	if pause == rollout.Recover && op.Type == v1beta1.OperationUpdate && !under && op.TargetRevision != row.RunningRevision {
		c.violate("%s: paused, yet Instance %d begins to move to %s", seen.Type, row.Index, op.TargetRevision)
	}
	if op.TargetRevision == row.RunningRevision || under || c.comesBack(seen, row) {
		return
	}
	for _, b := range before.RetryBlocks {
		if b.TargetRevision != op.TargetRevision || !slices.ContainsFunc(after.RetryBlocks, func(n v1beta1.RetryBlock) bool { return n.TargetRevision == b.TargetRevision }) {
			continue // an attempt that came about let it go in this very pass
		}
		switch {
		case b.State == v1beta1.RetryHeld && seen.Replica.Annotations[v1beta1.ReleaseHeldRevisionAnnotation] == "":
			c.violate("%s: %s of Instance %d begins at held revision %s", seen.Type, op.Type, row.Index, b.TargetRevision)
		case b.State == v1beta1.RetryBackoff && b.NextRetryAt != nil && c.Now.Before(b.NextRetryAt.Time):
			c.violate("%s: %s of Instance %d begins at %s before %s", seen.Type, op.Type, row.Index, b.TargetRevision, b.NextRetryAt)
		case b.State == v1beta1.RetryInProgress && attempted(seen, list, b.TargetRevision):
			c.violate("%s: %s of Instance %d begins at %s beside the attempt under way", seen.Type, op.Type, row.Index, b.TargetRevision)
		}
	}
}

// comesBack is true for an Instance whose failed pod became ready after all: that is
// no new attempt.
func (c *Cluster) comesBack(seen *core.Component, row *v1beta1.InstanceStatus) bool {
	for _, p := range seen.Pods {
		if index(p) == row.Index && p.DeletionTimestamp == nil && is(p, corev1.ContainersReady) &&
			c.revisionName(seen.Type, p) == row.Operation.TargetRevision {
			return true
		}
	}
	return false
}

// attempted is true while an Instance that tried the revision before still does.
func attempted(seen *core.Component, list []v1beta1.InstanceStatus, name string) bool {
	old, _ := rows.Decode(&seen.Replica.Status, math.MaxInt32)
	for _, row := range old {
		if op := row.Operation; op != nil && op.TargetRevision == name && op.Type != v1beta1.OperationDelete && row.Phase != v1beta1.InstanceFailed {
			if now := rowAt(list, row.Index); now != nil && now.Operation != nil && now.Operation.ID == op.ID && now.Phase != v1beta1.InstanceFailed {
				return true
			}
		}
	}
	return false
}

// checkVictims: a Ready Instance does not leave while one that is not Ready stays.
func (c *Cluster) checkVictims(kind v1beta1.ComponentType, old, list []v1beta1.InstanceStatus) {
	victim := int32(-1)
	for i := range list {
		if was := rowAt(old, list[i].Index); list[i].Phase == v1beta1.InstanceDeleting && was != nil && was.Phase == v1beta1.InstanceReady {
			victim = list[i].Index
		}
	}
	if victim < 0 || c.Desired(kind) == 0 {
		return
	}
	for i := range list {
		if was := rowAt(old, list[i].Index); was != nil && list[i].Phase != v1beta1.InstanceDeleting &&
			was.Phase != v1beta1.InstanceReady && list[i].Phase != v1beta1.InstanceReady {
			c.violate("%s: Instance %d was Ready and leaves, and %d stays %s", kind, victim, list[i].Index, list[i].Phase)
		}
	}
}

// checkReleased: a held revision is let go by a release, each of which does it once,
// by an Instance that came up with it after all, or because nobody wants it any more.
func (c *Cluster) checkReleased(seen *core.Component, before, after *v1beta1.InferenceReplicaStatus, list, old []v1beta1.InstanceStatus) {
	for _, b := range before.RetryBlocks {
		if b.State != v1beta1.RetryHeld || after.UpdateRevision != b.TargetRevision {
			continue
		}
		still := false
		for _, n := range after.RetryBlocks {
			still = still || (n.TargetRevision == b.TargetRevision && n.State == v1beta1.RetryHeld)
		}
		if still {
			continue
		}
		came := false
		for i := range list {
			was := rowAt(old, list[i].Index)
			came = came || (list[i].Phase == v1beta1.InstanceReady && list[i].RunningRevision == b.TargetRevision &&
				(was == nil || was.Phase != v1beta1.InstanceReady))
		}
		if came {
			continue
		}
		if c.book.releases[seen.Type] < 1 {
			c.violate("%s: held revision %s is let go, and no release is left to do it", seen.Type, b.TargetRevision)
		}
		c.book.releases[seen.Type] = 0
	}
}
