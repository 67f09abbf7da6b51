package instance

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// Retry authority: what a revision that failed may still try. A block belongs to the
// revision, so neither a new index nor a rebuilt Instance gets around it.
//
//	no block -> Backoff -> RetryInProgress -> Backoff ... -> Held
//
// Blocks are copied on first change: the input is never written to.

// block is the index of the revision's block, -1 for none.
func (d *decider) block(revision string) int {
	return slices.IndexFunc(d.res.RetryBlocks, func(b v1beta1.RetryBlock) bool { return b.TargetRevision == revision })
}

// changeBlock returns a block to write to.
func (d *decider) changeBlock(i int) *v1beta1.RetryBlock {
	d.changeBlocks()
	return &d.res.RetryBlocks[i]
}

func (d *decider) dropBlock(i int) {
	d.changeBlock(i)
	d.res.RetryBlocks = slices.Delete(d.res.RetryBlocks, i, i+1)
	if len(d.res.RetryBlocks) == 0 {
		d.res.RetryBlocks = nil
	}
}

// mayAttempt says why no attempt at the revision may start now; nil when one may.
func (d *decider) mayAttempt(revision string) *Hold {
	i := d.block(revision)
	if i < 0 {
		return nil
	}
	b := &d.res.RetryBlocks[i]
	switch b.State {
	case v1beta1.RetryHeld:
		return d.heldHold(b)
	case v1beta1.RetryInProgress:
		return &Hold{Gate: v1beta1.GateRetryBlock, Reason: fmt.Sprintf(
			"attempt %d at revision %s is under way after %s; the others wait for how it ends", b.AttemptsStarted, revision, b.Reason)}
	}
	if b.NextRetryAt != nil && d.in.Now.Before(b.NextRetryAt.Time) {
		d.wakeAt(b.NextRetryAt.Time)
		return &Hold{Gate: v1beta1.GateRetryBlock, Reason: fmt.Sprintf(
			"revision %s backs off after %s; attempt %d starts at %s by itself, a new revision at once",
			revision, b.Reason, b.AttemptsStarted+1, b.NextRetryAt.UTC().Format(time.RFC3339))}
	}
	return nil
}

func (d *decider) heldHold(b *v1beta1.RetryBlock) *Hold {
	return &Hold{Gate: v1beta1.GateHeld, Reason: fmt.Sprintf(
		"revision %s failed %d times, last with %s, and is held; mend the spec, or try it again with kubectl ome instance release-held %s -n %s --component=%s --revision=%s",
		b.TargetRevision, b.CountedFailures, b.Reason, d.in.Prefix, d.in.Namespace, d.in.Component, b.TargetRevision)}
}

// held is true for a revision that gets no pod until it is released.
func (d *decider) held(revision string) bool {
	i := d.block(revision)
	return i >= 0 && d.res.RetryBlocks[i].State == v1beta1.RetryHeld
}

// beginAttempt takes the turn of a revision that backs off. It returns the number of
// the attempt, 0 for a first one.
func (d *decider) beginAttempt(revision string) int32 {
	i := d.block(revision)
	if i < 0 || d.res.RetryBlocks[i].State != v1beta1.RetryBackoff {
		return 0
	}
	b := d.changeBlock(i)
	b.State, b.NextRetryAt = v1beta1.RetryInProgress, nil
	b.AttemptsStarted++
	return b.AttemptsStarted
}

// retryFailed counts a failure of an operation. Attempts that began before the last
// failure belong to the same wave as it, and count once.
func (d *decider) retryFailed(revision string, op *v1beta1.InstanceOperation, f *failure) {
	now := metav1.NewTime(d.in.Now)
	i := d.block(revision)
	if i < 0 {
		d.changeBlocks()
		d.res.RetryBlocks = append(d.res.RetryBlocks, v1beta1.RetryBlock{TargetRevision: revision, AttemptsStarted: 1, FirstFailureAt: &now})
		i = len(d.res.RetryBlocks) - 1
	} else if b := &d.res.RetryBlocks[i]; b.State == v1beta1.RetryHeld || sameWave(b, op) {
		if f.counted && b.CountedFailures == 0 {
			// The wave is the revision's own fault after all.
			b = d.changeBlock(i)
			b.CountedFailures, b.Reason = 1, f.Reason
			d.holdIfSpent(b, f)
		}
		return
	}
	b := d.changeBlock(i)
	b.LastFailureAt, b.Reason = &now, f.Reason
	if f.counted {
		b.CountedFailures++
	}
	b.State, b.NextRetryAt = v1beta1.RetryBackoff, new(metav1.NewTime(d.in.Now.Add(d.backoff(b.AttemptsStarted))))
	d.wakeAt(b.NextRetryAt.Time)
	d.holdIfSpent(b, f)
}

// sameWave is true for an attempt that began before the last failure. While another one
// is under way its own start may be in the same second.
func sameWave(b *v1beta1.RetryBlock, op *v1beta1.InstanceOperation) bool {
	if b.LastFailureAt == nil {
		return false
	}
	if b.State == v1beta1.RetryInProgress {
		return op.StartedAt.Time.Before(b.LastFailureAt.Time)
	}
	return !op.StartedAt.After(b.LastFailureAt.Time)
}

func (d *decider) changeBlocks() {
	if !d.ownBlocks {
		d.res.RetryBlocks, d.ownBlocks = slices.Clone(d.res.RetryBlocks), true
	}
}

func (d *decider) holdIfSpent(b *v1beta1.RetryBlock, f *failure) {
	if !f.counted || b.CountedFailures < max(1, d.in.Retry.MaxAttempts) {
		return
	}
	b.State, b.NextRetryAt = v1beta1.RetryHeld, nil
	d.warn(v1beta1.EventRetryHeld, "revision %s of component %s is held after %d failures, last %s",
		b.TargetRevision, d.in.Component, b.CountedFailures, f.Reason)
}

// backoff is the wait after the n-th attempt.
func (d *decider) backoff(n int32) time.Duration {
	wait := d.in.Retry.InitialBackoff
	for ; n > 1; n-- {
		wait *= time.Duration(max(1, d.in.Retry.BackoffFactor))
		if most := d.in.Retry.MaxBackoff; most > 0 && wait >= most {
			return most
		}
		if wait > 24*time.Hour {
			return 24 * time.Hour
		}
	}
	return wait
}

// attemptSucceeded lets go of the block of a revision that came up in an attempt that
// began after its last failure.
func (d *decider) attemptSucceeded(revision string, op *v1beta1.InstanceOperation) {
	i := d.block(revision)
	if i < 0 || op == nil {
		return
	}
	b := &d.res.RetryBlocks[i]
	if b.State == v1beta1.RetryHeld || (b.LastFailureAt != nil && !op.StartedAt.After(b.LastFailureAt.Time)) {
		return
	}
	d.dropBlock(i)
}

// settleRetry prunes blocks that nothing aims at any more, and gives the turn back when
// the attempt under way is gone, scaled down or turned to another revision.
func (d *decider) settleRetry() {
	for i := len(d.res.RetryBlocks) - 1; i >= 0; i-- {
		b := &d.res.RetryBlocks[i]
		wanted, trying := b.TargetRevision == d.in.Target.Name, false
		for k := range d.rows {
			row := &d.rows[k]
			wanted = wanted || row.RunningRevision == b.TargetRevision || row.TargetRevision == b.TargetRevision
			trying = trying || (row.Operation != nil && row.Phase != v1beta1.InstanceFailed &&
				row.Operation.Type != v1beta1.OperationDelete && row.Operation.TargetRevision == b.TargetRevision)
		}
		switch {
		case !wanted:
			d.dropBlock(i)
		case b.State == v1beta1.RetryBackoff && d.atRestOn(b.TargetRevision):
			d.dropBlock(i) // it came up in the end, and nothing is left to try
		case b.State == v1beta1.RetryInProgress && !trying:
			b = d.changeBlock(i)
			b.State, b.NextRetryAt = v1beta1.RetryBackoff, new(metav1.NewTime(d.in.Now))
			d.wakeSoon()
		}
	}
}

// atRestOn is true while every Instance runs the revision and none has work to do.
func (d *decider) atRestOn(revision string) bool {
	for i := range d.rows {
		if row := &d.rows[i]; row.Phase != v1beta1.InstanceReady || row.Operation != nil || row.RunningRevision != revision {
			return false
		}
	}
	return len(d.rows) > 0
}

// withhold drops the pods of a revision that was held in this very pass, after rows
// before the one that failed had asked for theirs.
func (d *decider) withhold() {
	if !d.ownBlocks {
		return
	}
	d.res.Pods = slices.DeleteFunc(d.res.Pods, func(a PodAction) bool {
		if a.Verb != PodCreate && (a.Verb != PodUpdate || len(a.Patch.Images) == 0) {
			return false
		}
		for i := range d.rows {
			if op := d.rows[i].Operation; op != nil && op.ID == a.Operation {
				return d.rows[i].RunningRevision != op.TargetRevision && d.held(op.TargetRevision)
			}
		}
		return false
	})
}
