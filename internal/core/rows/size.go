package rows

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// Size is the serialized size of the stored form in bytes.
func (e Encoded) Size() (int, error) {
	var v any
	switch {
	case e.Columns != nil:
		v = e.Columns
	case len(e.Rows) > 0:
		v = e.Rows
	default:
		return 0, nil
	}
	raw, err := json.Marshal(v)
	return len(raw), err
}

// Over says whether the stored form takes more than limit bytes. Writing columns out
// only to measure them would be a good part of a pass over many rows, so a bound above
// their size is tried first.
func (e Encoded) Over(limit int) (bool, error) {
	if e.Columns != nil && columnsAtMost(e.Columns) <= limit {
		return false, nil
	}
	size, err := e.Size()
	return size > limit, err
}

// What a value takes at most, with its key and punctuation where that is constant.
const (
	numberAtMost    = 20
	timeAtMost      = 40
	groupAtMost     = len(`{"value":,"indexes":},`) + numberAtMost
	columnsKeys     = 400 // the names of all columns
	entryAtMost     = 160 // index, readySince and the names of the records
	conditionAtMost = 130 + numberAtMost + timeAtMost
	operationAtMost = 300 + 2*numberAtMost + 4*timeAtMost
	failureAtMost   = 120 + numberAtMost + timeAtMost
)

// textAtMost is the most that a string takes in quotes: an escape has six bytes.
func textAtMost(s string) int {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return 2 + 6*len(s)
		}
	}
	return 2 + len(s)
}

// columnsAtMost is never below the length of the columns' JSON.
func columnsAtMost(c *v1beta1.InstanceStatusColumns) int {
	set := func(s v1beta1.IndexSet) int { return textAtMost(string(s)) }
	size := columnsKeys + set(c.Members) + set(c.Admitted) + set(c.ActiveOrdinalOne) + (numberAtMost+1)*len(c.RowOrder)
	for i := range c.Phases {
		size += groupAtMost + textAtMost(string(c.Phases[i].Value)) + set(c.Phases[i].Indexes)
	}
	for _, groups := range [2][]v1beta1.InstanceRevisionGroup{c.RunningRevisions, c.TargetRevisions} {
		for i := range groups {
			size += groupAtMost + textAtMost(groups[i].Value) + set(groups[i].Indexes)
		}
	}
	for i := range c.Incarnations {
		size += groupAtMost + set(c.Incarnations[i].Indexes)
	}
	for _, groups := range [3][]v1beta1.InstanceCountGroup{c.PodCounts, c.ServingPodCounts, c.AvailablePodCounts} {
		for i := range groups {
			size += groupAtMost + set(groups[i].Indexes)
		}
	}
	for i := range c.Entries {
		size += entryOf(&c.Entries[i])
	}
	return size
}

func entryOf(e *v1beta1.InstanceStatusEntry) int {
	size := entryAtMost + conditionsOf(e.Conditions)
	for _, a := range e.Announced {
		size += 1 + textAtMost(a)
	}
	if op := e.Operation; op != nil {
		size += operationAtMost
		for _, s := range [9]string{op.ID, string(op.Type), op.Step, op.TargetRevision, op.Reason, op.Waiting,
			string(op.Strategy), op.FromNode, op.RequestUUID} {
			size += textAtMost(s)
		}
		for _, node := range op.HintTargetNodes {
			size += 1 + textAtMost(node)
		}
	}
	if f := e.LastFailure; f != nil {
		size += failureAtMost + textAtMost(f.PodName) + textAtMost(f.ContainerName) + textAtMost(f.Reason) + textAtMost(f.Message)
	}
	return size
}

func conditionsOf(list []metav1.Condition) (size int) {
	for i := range list {
		c := &list[i]
		size += conditionAtMost + textAtMost(c.Type) + textAtMost(string(c.Status)) + textAtMost(c.Reason) + textAtMost(c.Message)
	}
	return size
}
