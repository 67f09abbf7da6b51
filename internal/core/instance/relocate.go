package instance

import (
	"crypto/sha256"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// open relocations of an Instance are those it has not been Ready after.
func (d *decider) relocations(index int32) (used int32, nodes []string) {
	for i := range d.res.Migrations {
		m := &d.res.Migrations[i]
		if m.Trigger == v1beta1.MigrationTriggerAuto && m.SourceInstance == index && m.Succeeded == nil {
			used++
			if m.FromNode != "" && !slices.Contains(nodes, m.FromNode) {
				nodes = append(nodes, m.FromNode)
			}
		}
	}
	return used, nodes
}

// relocate blames the node for a failure that is not the revision's own: the attempt is
// made again elsewhere. It is false when the failure stands.
func (d *decider) relocate(row *v1beta1.InstanceStatus, f *failure) bool {
	op := row.Operation
	if f.counted || f.node == "" || d.in.Relocations <= 0 || d.in.Paused || op.Step == v1beta1.StepInPlace {
		return false
	}
	used, nodes := d.relocations(row.Index)
	if used >= d.in.Relocations || slices.Contains(nodes, f.node) {
		return false
	}
	now := metav1.NewTime(d.in.Now)
	d.ownMigrations()
	d.res.Migrations = append(d.res.Migrations, v1beta1.MigrationStatus{
		RequestUUID: d.uuid(), Trigger: v1beta1.MigrationTriggerAuto, SourceInstance: row.Index, Phase: v1beta1.MigrationRelocated,
		StartedAt: now, Deadline: now, CompletedAt: &now, FromNode: f.node, Attempt: used + 1,
		Reason: f.Reason, Message: clip(f.Message, messageMost),
	})
	d.tell(v1beta1.EventAutoMigrationTriggered, "Instance %s-%d leaves node %s after %s; relocation %d of %d",
		d.in.Component, row.Index, f.node, f.Reason, used+1, d.in.Relocations)
	if used+1 == d.in.Relocations {
		d.warn(v1beta1.EventAutoMigrationCapReached, "Instance %s-%d used its last of %d relocations; it gets no more until it is Ready",
			d.in.Component, row.Index, d.in.Relocations)
	}
	step, strategy, phase := op.Step, op.Strategy, row.Phase
	retries := op.RetryCount
	d.open(row, op.Type, step, op.TargetRevision, "relocation off node "+f.node)
	row.Operation.RetryCount = retries + 1
	row.Operation.Strategy = strategy
	row.Phase = phase
	return true
}

func (d *decider) ownMigrations() {
	if !d.ownRecords {
		d.res.Migrations, d.ownRecords = slices.Clone(d.res.Migrations), true
	}
}

// relocated stamps how the relocations of an Instance that is Ready again ended: the
// last one succeeded, those before it did not.
func (d *decider) relocated(index int32) {
	last := true
	for i := len(d.res.Migrations) - 1; i >= 0; i-- {
		if m := &d.res.Migrations[i]; m.Trigger == v1beta1.MigrationTriggerAuto && m.SourceInstance == index && m.Succeeded == nil {
			d.ownMigrations()
			d.res.Migrations[i].Succeeded = new(last)
			last = false
		}
	}
}

// pruneRecords drops relocations that ended longer ago than they are kept, and those of
// Instances that are gone.
func (d *decider) pruneRecords() {
	if len(d.res.Migrations) == 0 {
		return
	}
	there := make(map[int32]bool, len(d.rows))
	for i := range d.rows {
		there[d.rows[i].Index] = true
	}
	old := func(m v1beta1.MigrationStatus) bool {
		if m.Trigger != v1beta1.MigrationTriggerAuto || d.in.RecordsKept <= 0 || (m.Succeeded == nil && there[m.SourceInstance]) {
			return false
		}
		return d.after(m.StartedAt.Time, d.in.RecordsKept)
	}
	if slices.ContainsFunc(d.res.Migrations, old) {
		d.ownMigrations()
		d.res.Migrations = slices.DeleteFunc(d.res.Migrations, old)
	}
	if len(d.res.Migrations) == 0 {
		d.res.Migrations = nil
	}
}

// uuid is a version 8 UUID made of the pass's seed: as random as the seed is.
func (d *decider) uuid() string {
	d.ids++
	h := sha256.Sum256(fmt.Appendf(nil, "%s-%s-%d", d.in.Seed, d.in.Component, d.ids))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// keepOff makes the scheduler pass over nodes, in addition to what the spec asks. It
// is a wish and no rule when nothing would ever end a wait for another node, or the
// last attempt found no other.
func keepOff(spec *corev1.PodSpec, nodes []string, must bool) {
	if len(nodes) == 0 {
		return
	}
	off := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: nodes}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	if !must {
		term := corev1.NodeSelectorTerm{}
		for _, node := range nodes {
			off.Values = []string{node}
			term.MatchFields = append(term.MatchFields, off)
		}
		spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
			spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{Weight: 100, Preference: term})
		return
	}
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
	}
	// Terms are alternatives: each must keep off by itself.
	for i := range required.NodeSelectorTerms {
		t := &required.NodeSelectorTerms[i]
		for _, node := range nodes {
			one := off
			one.Values = []string{node}
			t.MatchFields = append(t.MatchFields, one)
		}
	}
}
