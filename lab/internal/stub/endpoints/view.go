package endpoints

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

type state struct {
	known    bool
	all      []Endpoint
	routable []Endpoint
	seen     time.Time // when it shows
}

// View is one client's late picture of one service.
type View struct {
	watcher *Watcher
	service types.NamespacedName
	maxLag  time.Duration
	rng     *rand.Rand // guarded by watcher.mu, like last
	last    time.Time  // when the newest change shows
	now     atomic.Pointer[state]
	changed chan struct{}
}

// later shows s after a lag, never before a change that came earlier. The caller holds watcher.mu.
func (v *View) later(s state) {
	if v.maxLag <= 0 {
		v.apply(s)
		return
	}
	now := v.watcher.clock.Now()
	s.seen = now.Add(time.Duration(v.rng.Int64N(int64(v.maxLag) + 1)))
	if s.seen.Before(v.last) {
		s.seen = v.last
	}
	s.seen = s.seen.Add(1)
	v.last = s.seen
	v.watcher.clock.AfterFunc(s.seen.Sub(now), func() { v.apply(s) })
}

// apply makes s the picture unless a newer one shows already, as when timers fire out of order.
func (v *View) apply(s state) {
	s.routable = routable(s.all)
	for {
		old := v.now.Load()
		if old != nil && old.seen.After(s.seen) {
			return
		}
		if v.now.CompareAndSwap(old, &s) {
			break
		}
	}
	select {
	case v.changed <- struct{}{}:
	default:
	}
}

// routable picks as kube-proxy does: the ready ones, and when there are none the terminating ones
// that still serve.
func routable(all []Endpoint) []Endpoint {
	var ready, leaving []Endpoint
	for _, e := range all {
		switch {
		case e.Ready:
			ready = append(ready, e)
		case e.Serving && e.Terminating:
			leaving = append(leaving, e)
		}
	}
	if len(ready) == 0 {
		return leaving
	}
	return ready
}

// Routable returns the endpoints a request may go to. The caller must not change it.
func (v *View) Routable() []Endpoint { return v.now.Load().routable }

// Known reports whether the service had any slice, empty or not.
func (v *View) Known() bool { return v.now.Load().known }

// Changed gets a value after the picture changed.
func (v *View) Changed() <-chan struct{} { return v.changed }

// Close stops the view's updates.
func (v *View) Close() {
	v.watcher.mu.Lock()
	defer v.watcher.mu.Unlock()
	delete(v.watcher.views[v.service], v)
	if len(v.watcher.views[v.service]) == 0 {
		delete(v.watcher.views, v.service)
	}
}
