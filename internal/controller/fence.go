package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fence keeps a pass from being decided on caches that lack our own writes. One
// belongs to each key.
//
// It remembers, for each kind, the highest version that a write returned, and
// the UIDs of deletes: a delete need not answer with a version. Versions of
// different kinds are never compared. It holds no version of what others wrote:
// core is safe with kinds that lag each other.
type fence struct {
	mu     sync.Mutex
	floors map[kind]string
	// deleted are objects we asked to delete, until the cache shows that.
	deleted map[object]deletion
	// unknown are objects whose write may or may not have arrived.
	unknown map[object]bool
	// since is when the fence first held a pass back; waits counts how often since then.
	since time.Time
	waits int
}

// deletion is a delete that was asked for.
type deletion struct {
	uid types.UID
	// now is set when the object does not get time to end: it is gone at once, unless
	// a finalizer holds it.
	now bool
}

// pending says whether the cache still shows the object as it was before.
func (d deletion) pending(cached client.Object) bool {
	if cached.GetUID() != d.uid {
		return false
	}
	return cached.GetDeletionTimestamp() == nil || d.now && len(cached.GetFinalizers()) == 0
}

// object names one object of a watched kind.
type object struct {
	kind kind
	key  types.NamespacedName
}

func (o object) String() string { return string(o.kind) + " " + o.key.String() }

// storeKey is the name under which informers store an object.
func (o object) storeKey() string {
	if o.key.Namespace == "" {
		return o.key.Name
	}
	return o.key.Namespace + "/" + o.key.Name
}

// wrote records the version that a write returned.
func (f *fence) wrote(k kind, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.raise(k, version)
}

func (f *fence) raise(k kind, version string) {
	if version == "" {
		return
	}
	if f.floors == nil {
		f.floors = map[kind]string{}
	}
	old, ok := f.floors[k]
	if ok {
		if c, err := resourceversion.CompareResourceVersion(version, old); err != nil || c <= 0 {
			return
		}
	}
	f.floors[k] = version
}

// asked records a delete.
func (f *fence) asked(o object, d deletion) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deleted == nil {
		f.deleted = map[object]deletion{}
	}
	f.deleted[o] = d
}

// doubt records a write whose outcome is not known.
func (f *fence) doubt(o object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unknown == nil {
		f.unknown = map[object]bool{}
	}
	f.unknown[o] = true
}

// settle reads every doubtful object from the API server, so that the fence
// knows what the cache must show.
func (f *fence) settle(ctx context.Context, live client.Reader, s stores) error {
	f.mu.Lock()
	doubtful := make([]object, 0, len(f.unknown))
	for o := range f.unknown {
		doubtful = append(doubtful, o)
	}
	f.mu.Unlock()

	var errs []error
	for _, o := range doubtful {
		obj := newObject(o.kind)
		err := live.Get(ctx, o.key, obj)
		switch {
		case err == nil:
			f.mu.Lock()
			f.raise(o.kind, obj.GetResourceVersion())
			delete(f.unknown, o)
			f.mu.Unlock()
		case apierrors.IsNotFound(err):
			// What the cache still holds under the name must go.
			if cached, ok := getAs[client.Object](s[o.kind], o.storeKey()); ok {
				f.asked(o, deletion{uid: cached.GetUID(), now: true})
			}
			f.mu.Lock()
			delete(f.unknown, o)
			f.mu.Unlock()
		default:
			errs = append(errs, fmt.Errorf("%s: reading it after a write with unknown outcome: %w", o, err))
		}
	}
	return errors.Join(errs...)
}

// behind reports what the caches have not seen yet; empty when they have seen all.
func (f *fence) behind(s stores) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, floor := range f.floors {
		c, err := resourceversion.CompareResourceVersion(s[k].Version(), floor)
		if err != nil || c < 0 {
			return fmt.Sprintf("%s at version %q, our last write is %s", k, s[k].Version(), floor)
		}
		delete(f.floors, k)
	}
	for o, d := range f.deleted {
		if cached, ok := getAs[client.Object](s[o.kind], o.storeKey()); ok && d.pending(cached) {
			return fmt.Sprintf("%s is still cached, we deleted it", o)
		}
		delete(f.deleted, o)
	}
	f.since, f.waits = time.Time{}, 0
	return ""
}

const (
	fenceFirst = 20 * time.Millisecond
	fenceLast  = time.Second
	// fenceStalled is when the cache itself comes under suspicion.
	fenceStalled = 30 * time.Second
)

// wait returns how long to wait for the caches, and whether that has gone on for
// so long that the caches should be checked.
func (f *fence) wait(now time.Time) (delay time.Duration, stalled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since.IsZero() {
		f.since = now
	}
	delay = fenceLast
	if f.waits < 6 {
		delay = min(fenceFirst<<f.waits, fenceLast)
	}
	f.waits++
	return delay, now.Sub(f.since) >= fenceStalled
}

// rewind forgets the floors above what the API server itself has reached. That
// happens when the cluster's history was rewound, by a restored backup.
func (f *fence) rewind(ctx context.Context, latest func(context.Context, kind) (string, error), now time.Time) error {
	f.mu.Lock()
	floors := make(map[kind]string, len(f.floors))
	for k, v := range f.floors {
		floors[k] = v
	}
	for o := range f.deleted {
		// The delete may have been undone with the history: look at the object itself.
		if f.unknown == nil {
			f.unknown = map[object]bool{}
		}
		f.unknown[o] = true
		delete(f.deleted, o)
	}
	f.since = now
	f.mu.Unlock()
	for k, floor := range floors {
		at, err := latest(ctx, k)
		if err != nil {
			return fmt.Errorf("%s: asking for the latest version: %w", k, err)
		}
		if c, err := resourceversion.CompareResourceVersion(at, floor); err == nil && c < 0 {
			f.mu.Lock()
			if f.floors[k] == floor {
				delete(f.floors, k)
			}
			f.mu.Unlock()
		}
	}
	return nil
}
