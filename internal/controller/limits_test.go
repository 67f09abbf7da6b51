package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// TestStatusGoesFirst: when everything is in flight, a status write still finds a slot.
func TestStatusGoesFirst(t *testing.T) {
	l := newLimits()
	for range inAll - forStatus {
		if _, err := l.acquire(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.acquire(soon, false); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one more write than allowed: %v", err)
	}
	var release func()
	for range forStatus {
		r, err := l.acquire(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		release = r
	}
	soon, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.acquire(soon, true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one more status write than allowed: %v", err)
	}
	release()
	if _, err := l.acquire(t.Context(), true); err != nil {
		t.Error(err)
	}
}

// slowWriter holds writes until it is opened, and counts how many it holds.
type slowWriter struct {
	fakeWriter
	open          chan struct{}
	held, most, n atomic.Int64
}

func (s *slowWriter) Write(ctx context.Context, w *Write) error {
	now := s.held.Add(1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	if s.n.Add(1) == perService {
		close(s.open) // as many as may be in flight are; let all go
	}
	<-s.open
	s.held.Add(-1)
	return s.fakeWriter.Write(ctx, w)
}

// TestWritesInFlight: a service of many pods keeps to its bound, and fills it.
func TestWritesInFlight(t *testing.T) {
	b := newBench(t, testService(), testReplica(v1beta1.EngineComponent), testReplica(v1beta1.DecoderComponent))
	slow := &slowWriter{open: make(chan struct{})}
	b.reconciler.writer = slow
	for _, c := range []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent} {
		d := core.ComponentDecision{Type: c}
		for i := range 150 {
			d.Pods = append(d.Pods, core.PodAction{Verb: core.PodCreate, Pod: testPod(fmt.Sprintf("%s-%d", c, i), c)})
		}
		b.decision.Components = append(b.decision.Components, d)
	}
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	if got := slow.most.Load(); got != perService {
		t.Errorf("%d writes in flight at most, want %d", got, perService)
	}
	if got := len(slow.log()); got != 300 {
		t.Errorf("%d writes, want 300", got)
	}
}

// TestStopEndsAPassBetweenWrites: what is under way gets its answer, nothing new is sent.
func TestStopEndsAPassBetweenWrites(t *testing.T) {
	b := fullBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	b.writer.answer = func(w *Write) error {
		once.Do(cancel)
		return nil
	}
	if _, err := b.reconciler.pass(ctx, testKey); err != nil {
		t.Errorf("a stop is no error: %v", err)
	}
	if got := b.writer.log(); len(got) != 1 {
		t.Errorf("writes after the stop: %q", got[1:])
	}
}
