package instance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// Decide answers the mailboxes, opens scale-downs, advances what is open, then opens
// retries, repairs, creations, updates and restarts, and sums the result.
func Decide(in Input) Result {
	d := decider{in: &in, byIndex: census(&in)}
	d.res.RetryBlocks, d.res.Migrations = in.RetryBlocks, in.Migrations
	d.rows = slices.Clone(in.Rows)
	d.sortRows()

	d.adoptUnaccounted()
	d.mailboxes()
	// Before anything else is done for a row that is about to leave.
	d.openDeletes()
	d.keepBack()
	for i := range d.rows {
		d.advance(&d.rows[i])
	}
	d.rows = slices.DeleteFunc(d.rows, func(r v1beta1.InstanceStatus) bool { return d.gone[r.Index] })
	d.openKnown = false

	d.openRetries()
	d.openRepairs()
	d.openCreates()
	d.openUpdates()
	d.openRestarts()
	d.settleRetry()
	d.withhold()
	d.pruneRecords()
	d.explain()
	d.count()
	d.res.Rows = d.rows
	return d.res
}

type decider struct {
	in      *Input
	res     Result
	rows    []v1beta1.InstanceStatus
	byIndex slotTable
	// taken are Instances that updates take out of rotation in this pass.
	taken map[int32]bool
	// gone are rows whose last pod left.
	gone map[int32]bool
	// openCount is the number of open operations while openKnown is set.
	openCount int32
	openKnown bool
	// started and drained are what this pass spent of the quotas.
	started int32
	drained map[*Quota]int32
	// kept are the Instances that the partition keeps on their revision.
	kept map[int32]bool
	// doomed are the Instances that leave as soon as the batch has room: nothing is begun
	// for them any more.
	doomed map[int32]bool
	ids    int
	// imagesOf remembers what differs between two revisions.
	imagesOf map[[2]string]map[string]string
	// ownBlocks and ownRecords are set once those lists of the result may be written to.
	ownBlocks, ownRecords bool
}

var noPods slots

func (d *decider) podsOf(index int32) *slots {
	if s := d.byIndex.get(index); s != nil {
		return s
	}
	return &noPods
}

func (d *decider) act(verb PodVerb, p *pod, op *v1beta1.InstanceOperation, reason string) {
	a := PodAction{Verb: verb, Pod: p.obj, Reason: reason}
	if verb == PodServe {
		a.Message = restartsNote(p.obj)
	}
	if op != nil {
		a.Operation = op.ID
	}
	d.res.Pods = append(d.res.Pods, a)
}

// wakeAt asks for a pass at a time to come; one that has passed brings nothing new.
func (d *decider) wakeAt(t time.Time) {
	if t.After(d.in.Now) && (d.res.Wake.IsZero() || t.Before(d.res.Wake)) {
		d.res.Wake = t
	}
}

// wakeSoon asks for the next pass as soon as there may be one.
func (d *decider) wakeSoon() { d.res.Wake = d.in.Now }

// open commits a new operation to the row.
func (d *decider) open(row *v1beta1.InstanceStatus, kind v1beta1.InstanceOperationType, step, target, reason string) {
	d.forget(row)
	if d.openKnown && !isOpen(row) {
		d.openCount++
	}
	d.ids++
	now := metav1.NewTime(d.in.Now)
	op := &v1beta1.InstanceOperation{
		ID: fmt.Sprintf("%s-%s-%d", d.in.Seed, d.in.Component, d.ids), Type: kind, Step: step,
		StartedAt: now, LastProgressAt: now, TargetRevision: target, Reason: reason,
		Deadline: d.newDeadline(kind),
	}
	switch kind {
	case v1beta1.OperationCreate:
		row.Phase = v1beta1.InstanceCreating
	case v1beta1.OperationUpdate:
		row.Phase = v1beta1.InstanceUpdating
		op.Strategy = v1beta1.SurgeThenDrain
	case v1beta1.OperationRestart:
		row.Phase = v1beta1.InstanceRestarting
	case v1beta1.OperationDelete:
		row.Phase = v1beta1.InstanceDeleting
	}
	row.TargetRevision = target
	row.Operation = op
}

// forget takes back the pod calls of an operation that is about to be replaced: only
// what the stored status names may be done.
func (d *decider) forget(row *v1beta1.InstanceStatus) {
	if row.Operation == nil || len(d.res.Pods) == 0 {
		return
	}
	id := row.Operation.ID
	d.res.Pods = slices.DeleteFunc(d.res.Pods, func(a PodAction) bool { return a.Operation == id })
}

// edit replaces the row's operation by a copy that may be changed: rows share
// their operations with the input.
func (d *decider) edit(row *v1beta1.InstanceStatus) *v1beta1.InstanceOperation {
	row.Operation = row.Operation.DeepCopy()
	return row.Operation
}

func (d *decider) toStep(row *v1beta1.InstanceStatus, step string) {
	if row.Operation.Step == step {
		return
	}
	op := d.edit(row)
	op.Step, op.LastProgressAt = step, metav1.NewTime(d.in.Now)
}

func (d *decider) toWaiting(row *v1beta1.InstanceStatus, token string) {
	if row.Operation.Waiting != token {
		d.edit(row).Waiting = token
	}
}

// settle ends the row's operation: it runs revision now. Since when it is Ready is
// the transition of its pod's gate, so it is not stored again in every row.
func (d *decider) settle(row *v1beta1.InstanceStatus, revision string) {
	if op := row.Operation; op != nil && op.TargetRevision == revision {
		d.attemptSucceeded(revision, op)
	}
	d.relocated(row.Index)
	d.forget(row)
	if d.openKnown && isOpen(row) {
		d.openCount--
	}
	row.Phase, row.RunningRevision = v1beta1.InstanceReady, revision
	row.TargetRevision, row.Operation, row.ReadySince = "", nil, nil
}

func (d *decider) hashOf(revision string) string {
	if r, ok := d.in.Revisions[revision]; ok {
		return r.Hash
	}
	return ""
}

// revisionOf is the name of the known revision with that hash, "" for none. When
// several share a hash, which only a collision could bring, the target wins.
func (d *decider) revisionOf(hash string) string {
	switch hash {
	case "":
		return ""
	case d.in.Target.Hash:
		return d.in.Target.Name
	}
	for name, r := range d.in.Revisions {
		if r.Hash == hash {
			return name
		}
	}
	return ""
}

// mayStart is true while nothing forbids starting work toward the target.
func (d *decider) mayStart() bool { return !d.in.Paused && d.in.StartHold == nil }

// adoptUnaccounted gives each pod without a row a row that removes it.
func (d *decider) adoptUnaccounted() {
	var strays []int32
	d.byIndex.indexes(func(index int32) {
		_, known := slices.BinarySearchFunc(d.rows, index, func(r v1beta1.InstanceStatus, i int32) int { return cmp.Compare(r.Index, i) })
		if !known {
			strays = append(strays, index)
		}
	})
	if len(strays) == 0 {
		return
	}
	slices.Sort(strays)
	for _, index := range strays {
		row := v1beta1.InstanceStatus{Index: index, Incarnation: 1}
		d.open(&row, v1beta1.OperationDelete, v1beta1.StepDrain, "", "a pod that no Instance accounts for")
		d.rows = append(d.rows, row)
	}
	d.sortRows()
}

// sortRows puts the rows into the order of their indexes, in which they nearly always are.
func (d *decider) sortRows() {
	by := func(a, b v1beta1.InstanceStatus) int { return cmp.Compare(a.Index, b.Index) }
	if !slices.IsSortedFunc(d.rows, by) {
		slices.SortStableFunc(d.rows, by)
	}
}
