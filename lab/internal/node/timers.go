package node

import (
	"container/heap"
	"time"
)

// timers orders pods by when they want to be looked at.
type timers []*entry

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].wake.Before(t[j].wake) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}
func (t *timers) Push(x any) {
	e := x.(*entry)
	e.index = len(*t)
	*t = append(*t, e)
}
func (t *timers) Pop() any {
	old := *t
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	e.index = -1
	return e
}

// set makes e due at wake, or never when wake is zero.
func (t *timers) set(e *entry, wake time.Time) {
	switch {
	case wake.IsZero() && e.index >= 0:
		heap.Remove(t, e.index)
	case wake.IsZero():
	case e.index >= 0:
		e.wake = wake
		heap.Fix(t, e.index)
	default:
		e.wake = wake
		heap.Push(t, e)
	}
}
