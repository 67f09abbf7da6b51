package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

const (
	// paceLeast is the least time between the starts of two passes of one key.
	paceLeast = 50 * time.Millisecond
	// paceFactor times what deciding took: a big service thinks for at most a
	// quarter of the time.
	paceFactor = 4
	// paceMost bounds that: on a starved machine the clock says nothing about the work.
	paceMost = time.Second
	// conflictFirst and conflictLast pace passes after conflicts. The event that
	// explains a conflict is normally on its way.
	conflictFirst = 50 * time.Millisecond
	conflictLast  = 2 * time.Second
	// failureFirst and failureLast pace passes after errors.
	failureFirst = 100 * time.Millisecond
	failureLast  = 30 * time.Second
)

// keyState is what the shell remembers of one key between passes. Nothing in it
// is needed for a right decision: a new process starts without it.
type keyState struct {
	fence     fence
	templates templateCache
	policies  policyCache

	next      time.Time
	conflicts int
	failures  int
	// refusals are the last refused writes, until they are accepted or no longer asked for.
	refusals map[v1beta1.ComponentType]refusal
	// scalers are the same of the components' scalers, which concern nothing else of them.
	scalers map[v1beta1.ComponentType]core.ScalerRefusal
	// refusedPods are the refused creations that are still wanted, by pod name.
	refusedPods map[v1beta1.ComponentType]map[string]refusedPod
	// undecodable is why a replica's rows could not be read, oversized that its status
	// could not be stored: each is told once, until it is over.
	undecodable map[v1beta1.ComponentType]string
	oversized   map[v1beta1.ComponentType]bool
	// converted are the forms that a replica's rows were said to have changed to.
	converted map[v1beta1.ComponentType][]v1beta1.InstanceStatusEncoding
	// serviceWritten and replicaWritten are when a status was last written.
	serviceWritten time.Time
	replicaWritten map[v1beta1.ComponentType]time.Time
}

// early returns how long the key must wait for its next pass.
func (k *keyState) early(now time.Time) time.Duration { return max(0, k.next.Sub(now)) }

// decided sets the pace from the time that a decision took.
func (k *keyState) decided(start time.Time, took time.Duration) {
	k.next = start.Add(min(max(paceLeast, paceFactor*took), paceMost))
}

func (k *keyState) conflictDelay() time.Duration {
	delay := conflictLast
	if k.conflicts < 6 {
		delay = min(conflictFirst<<k.conflicts, conflictLast)
	}
	k.conflicts++
	return delay
}

func (k *keyState) failureDelay() time.Duration {
	delay := failureLast
	if k.failures < 9 {
		delay = min(failureFirst<<k.failures, failureLast)
	}
	k.failures++
	return delay
}

// held returns when a status that only moved counters may be written; zero when it may be now.
func held(urgent bool, last, now time.Time) time.Time {
	due := last.Add(core.QuietStatusInterval)
	if urgent || last.IsZero() || !now.Before(due) {
		return time.Time{}
	}
	return due
}

// states holds the state of each key that has something.
type states struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*keyState
}

// of returns the key's state. The queue never runs a key twice at one time, so
// the state needs no lock of its own.
func (s *states) of(key types.NamespacedName) *keyState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[types.NamespacedName]*keyState{}
	}
	k, ok := s.all[key]
	if !ok {
		k = &keyState{
			replicaWritten: map[v1beta1.ComponentType]time.Time{},
			undecodable:    map[v1beta1.ComponentType]string{},
			oversized:      map[v1beta1.ComponentType]bool{},
			converted:      map[v1beta1.ComponentType][]v1beta1.InstanceStatusEncoding{},
		}
		s.all[key] = k
	}
	return k
}

func (s *states) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, key)
}
