package instance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ome.io/ome/api/v1beta1"
)

// mailboxes answers the replica's requests, each exactly once. A pause does not stop
// them: what they free waits for the resume.
func (d *decider) mailboxes() {
	if d.in.Release != nil {
		d.release(*d.in.Release)
		d.consume(v1beta1.ReleaseHeldRevisionAnnotation, *d.in.Release)
	}
	if d.in.Reset != nil {
		d.reset(*d.in.Reset)
		d.consume(v1beta1.ResetInstancesAnnotation, *d.in.Reset)
	}
}

func (d *decider) consume(key, value string) {
	if d.res.Consumed == nil {
		d.res.Consumed = map[string]string{}
	}
	d.res.Consumed[key] = value
}

// release lets a held revision try again, named whole or by its hash.
func (d *decider) release(value string) {
	shown := clip(strconv.Quote(value), 80)
	i := slices.IndexFunc(d.res.RetryBlocks, func(b v1beta1.RetryBlock) bool {
		return value != "" && (b.TargetRevision == value || d.hashOf(b.TargetRevision) == value)
	})
	switch {
	case i < 0:
		d.warn(v1beta1.EventRetryBlockReleaseSkipped, "component %s: no retry block of revision %s", d.in.Component, shown)
	case d.res.RetryBlocks[i].State != v1beta1.RetryHeld:
		b := d.res.RetryBlocks[i]
		d.warn(v1beta1.EventRetryBlockReleaseSkipped, "component %s: the retry block of revision %s is %s, not Held", d.in.Component, b.TargetRevision, b.State)
	default:
		name := d.res.RetryBlocks[i].TargetRevision
		d.dropBlock(i)
		d.tell(v1beta1.EventRetryBlockReleased, "component %s: revision %s is released and may be tried again", d.in.Component, name)
	}
}

// reset clears what a failed Instance kept, so that it is rebuilt as soon as retry
// authority and pauses allow.
func (d *decider) reset(value string) {
	indexes, all, ok := resetIndexes(value)
	if !ok {
		d.warn(v1beta1.EventInstancesResetRejected, "component %s: %s is neither %q nor a list of Instance indexes such as 0,3",
			d.in.Component, clip(strconv.Quote(value), 80), v1beta1.ResetAllInstances)
		return
	}
	if all {
		for i := range d.rows {
			if d.rows[i].Phase == v1beta1.InstanceFailed {
				indexes = append(indexes, d.rows[i].Index)
			}
		}
	}
	var done, skipped []string
	for _, index := range indexes {
		if why := d.resetOne(index); why != "" {
			skipped = append(skipped, fmt.Sprintf("%d (%s)", index, why))
			continue
		}
		done = append(done, strconv.Itoa(int(index)))
	}
	if len(done) > 0 {
		d.tell(v1beta1.EventInstancesReset, "component %s: Instances %s are reset", d.in.Component, strings.Join(done, ", "))
	}
	switch {
	case len(skipped) > 0:
		d.tell(v1beta1.EventInstancesResetSkipped, "component %s: Instances %s are left alone", d.in.Component, clip(strings.Join(skipped, ", "), 700))
	case len(done) == 0:
		d.tell(v1beta1.EventInstancesResetSkipped, "component %s: nothing to reset, no Instance is Failed", d.in.Component)
	}
}

// resetOne says why the Instance is left alone, "" when it was reset.
func (d *decider) resetOne(index int32) string {
	for i := range d.rows {
		row := &d.rows[i]
		if row.Index != index {
			continue
		}
		serving := false
		d.podsOf(index).all(func(p *pod) { serving = serving || p.serving() })
		op := row.Operation
		switch {
		case op != nil && op.Type != v1beta1.OperationRestart && op.Type != v1beta1.OperationCreate:
			return "owned by " + string(op.Type)
		case serving:
			return "still serving"
		case row.Phase == v1beta1.InstanceReady:
			return "nothing to reset"
		case row.Phase != v1beta1.InstanceFailed:
			return "Phase=" + string(row.Phase)
		}
		row.Operation, row.TargetRevision = nil, ""
		return ""
	}
	return "no such instance"
}

// resetIndexes parses the value: the word all, or canonical indexes between commas.
func resetIndexes(value string) (indexes []int32, all, ok bool) {
	if value == v1beta1.ResetAllInstances {
		return nil, true, true
	}
	for _, term := range strings.Split(value, ",") {
		n, err := strconv.ParseInt(term, 10, 32)
		if err != nil || n < 0 || strconv.FormatInt(n, 10) != term || slices.Contains(indexes, int32(n)) {
			return nil, false, false
		}
		indexes = append(indexes, int32(n))
	}
	return indexes, false, true
}
