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

// What a value takes at most: a 64-bit number, and a time in quotes.
const (
	numberAtMost = 20
	timeAtMost   = len(`"2031-02-03T04:05:06Z"`)
	columnsKeys  = 400 // the names of all columns and their punctuation
	groupAtMost  = len(`{"value":,"indexes":},`) + numberAtMost
)

// present is the size of a field that is left out when it says nothing.
func present(ok bool, key string, size int) int {
	if !ok {
		return 0
	}
	return len(`"":,`) + len(key) + size
}

func text(key, s string) int { return present(s != "", key, textAtMost(s)) }

func number(key string, n int64) int { return present(n != 0, key, numberAtMost) }

func instant(key string, t *metav1.Time) int { return present(t != nil, key, timeAtMost) }

func texts(key string, list []string) int {
	size := len("[]")
	for _, s := range list {
		size += 1 + textAtMost(s)
	}
	return present(len(list) > 0, key, size)
}

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
	size := len(`{"index":,},`) + numberAtMost + instant("readySince", e.ReadySince) + texts("announced", e.Announced)
	size += present(len(e.Conditions) > 0, "conditions", conditionsOf(e.Conditions))
	if op := e.Operation; op != nil {
		size += present(true, "operation", operationOf(op))
	}
	if f := e.LastFailure; f != nil {
		size += present(true, "lastFailure", len(`{"podName":}`)+textAtMost(f.PodName)+text("containerName", f.ContainerName)+
			text("reason", f.Reason)+text("message", f.Message)+present(f.ExitCode != nil, "exitCode", numberAtMost)+instant("time", f.Time))
	}
	return size
}

func operationOf(op *v1beta1.InstanceOperation) int {
	size := len(`{"id":,"type":,"step":,"startedAt":,"lastProgressAt":}`) + textAtMost(op.ID) + textAtMost(string(op.Type)) + textAtMost(op.Step) + 2*timeAtMost
	return size + instant("deadline", op.Deadline) + number("retryCount", int64(op.RetryCount)) + text("targetRevision", op.TargetRevision) +
		text("reason", op.Reason) + text("waiting", op.Waiting) + instant("capacityRefusedAt", op.CapacityRefusedAt) +
		text("strategy", string(op.Strategy)) + present(op.SurgeIndex != nil, "surgeIndex", numberAtMost) + text("fromNode", op.FromNode) +
		texts("hintTargetNodes", op.HintTargetNodes) + text("requestUUID", op.RequestUUID)
}

func conditionsOf(list []metav1.Condition) int {
	size := len("[]")
	for i := range list {
		c := &list[i]
		size += len(`{"type":,"status":,"lastTransitionTime":,"reason":,"message":},`) + timeAtMost + number("observedGeneration", c.ObservedGeneration) +
			textAtMost(c.Type) + textAtMost(string(c.Status)) + textAtMost(c.Reason) + textAtMost(c.Message)
	}
	return size
}
