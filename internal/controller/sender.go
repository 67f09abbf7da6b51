package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/metrics"
)

// eventAction is the action of every event: what the manager was doing.
const eventAction = "Reconcile"

// sender sends the writes of one pass and keeps what came of them.
type sender struct {
	key      types.NamespacedName
	state    *keyState
	writer   Writer
	live     client.Reader
	limits   *limits
	recorder events.EventRecorder
	// service is what events about refused writes are about.
	service *v1beta1.InferenceService

	// slots bounds this key's writes in flight.
	slots chan struct{}

	mu        sync.Mutex
	errs      []error
	conflicts []string
	// turnedDown are pod creations that were refused: asking again later is all that
	// can be done, so they don't slow the key down as errors do.
	turnedDown []error
	sent       int
	told       map[WriteKind]bool
	// scalers are those whose write was not accepted, with the reason when it was refused.
	scalers map[v1beta1.ComponentType]core.ScalerRefusal
	// scaled is set once the pass got to them.
	scaled  bool
	tallies map[v1beta1.ComponentType]*tally
}

// writeTimeout bounds one write. A pass whose answer does not come must end.
const writeTimeout = 30 * time.Second

// slot waits until the key may have one more write in flight.
func (s *sender) slot(ctx context.Context) (release func(), err error) {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, s.failed(ctx.Err())
	}
}

// failed records an error that is not about a write's answer.
func (s *sender) failed(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
	return err
}

// send sends one write. Any answer but success ends what depends on the write;
// what it means for the next pass is recorded here.
func (s *sender) send(ctx context.Context, w *Write) error {
	isStatus := w.Kind == WriteServiceStatus || w.Kind == WriteReplicaStatus
	release, err := s.limits.acquire(ctx, isStatus)
	if err != nil {
		s.unaccepted(w, "")
		return s.failed(err)
	}
	defer release()
	if ctx.Err() != nil {
		s.unaccepted(w, "")
		return s.failed(ctx.Err())
	}

	o := object{kind: kindOf(w.Object), key: keyOf(w.Object)}
	metrics.InFlight(1)
	start := time.Now()
	// A write under way is not broken off when the manager is told to stop: its
	// outcome would be unknown.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	err = s.writer.Write(call, w)
	cancel()
	took := time.Since(start)
	metrics.InFlight(-1)

	result := classify(w, err)
	metrics.Write(string(w.Kind), string(w.Verb), result.result(), took)
	s.mu.Lock()
	s.sent++
	s.mu.Unlock()

	if result != written {
		s.unaccepted(w, "")
	}
	if w.Kind == WritePodCreate {
		s.tried(w, result == written)
	}
	switch result {
	case written:
		if w.Verb == VerbDelete {
			s.state.fence.asked(o, deletion{uid: w.UID, now: w.GracePeriod != nil && *w.GracePeriod == 0})
		} else {
			s.state.fence.wrote(o.kind, w.Object.GetResourceVersion())
		}
		return nil
	case conflicted:
		if apierrors.IsAlreadyExists(err) {
			return s.taken(ctx, w, o, err)
		}
		s.mu.Lock()
		s.conflicts = append(s.conflicts, fmt.Sprintf("%s of %s", w.Verb, o))
		s.mu.Unlock()
		return errStopped
	case doubtful:
		s.state.fence.doubt(o)
	case refused:
		s.unaccepted(w, refusalText(err))
		s.tell(o, w, err)
		err = fmt.Errorf("%s of %s: %w", w.Verb, o, err)
		if w.Kind == WritePodCreate {
			return s.turnDown(w, kindOfRefusal(err), err)
		}
		return s.failed(err)
	}
	return s.failed(fmt.Errorf("%s of %s: %w", w.Verb, o, err))
}

// taken handles a create whose name exists. An object with our label and our
// owner is one that the cache has yet to see; anything else is in the way, and
// deciding again would not move it. What an owner that is gone left behind goes
// with the garbage collector, what was orphaned goes only by a person's hand.
func (s *sender) taken(ctx context.Context, w *Write, o object, cause error) error {
	obj := newObject(o.kind)
	err := s.live.Get(ctx, o.key, obj)
	switch {
	case apierrors.IsNotFound(err):
		s.mu.Lock()
		s.conflicts = append(s.conflicts, fmt.Sprintf("create of %s: it has just gone", o))
		s.mu.Unlock()
		return errStopped
	case err != nil:
		return s.failed(fmt.Errorf("%s: reading what has its name: %w", o, err))
	case ours(obj, w.Object, s.key.Name):
		if w.Kind == WritePodCreate {
			s.tried(w, true)
		}
		s.state.fence.wrote(o.kind, obj.GetResourceVersion())
		s.mu.Lock()
		s.conflicts = append(s.conflicts, fmt.Sprintf("create of %s: it exists", o))
		s.mu.Unlock()
		return errStopped
	}
	err = fmt.Errorf("%s exists and does not belong to InferenceService %s (%s); delete or rename it", o, s.key, ownerOf(obj))
	if w.Kind == WriteScaler {
		err = fmt.Errorf("%s is not controlled by expected owner: %s; delete or rename it", o, ownerOf(obj))
		s.scalerUnaccepted(w, core.ScalerRefusal{Taken: true, Text: cleaned(err.Error())})
		return s.failed(errors.Join(err, cause))
	}
	s.unaccepted(w, err.Error())
	s.tell(o, w, err)
	if err = errors.Join(err, cause); w.Kind == WritePodCreate {
		return s.turnDown(w, core.RefusedOther, err)
	}
	return s.failed(err)
}

// ours says whether the caches show an object to the key's passes and core takes
// it for what it wanted to create.
func ours(obj, wanted client.Object, service string) bool {
	if r, ok := obj.(*v1beta1.InferenceReplica); ok {
		if r.Spec.ParentRef == nil || r.Spec.ParentRef.Name != service {
			return false
		}
	} else if obj.GetLabels()[v1beta1.InferenceServiceLabel] != service {
		return false
	}
	owner, mine := metav1.GetControllerOf(obj), metav1.GetControllerOf(wanted)
	switch {
	case owner == nil:
		_, adopted := obj.(*corev1.Service) // core takes over one that nobody owns
		return mine == nil || adopted
	case mine == nil:
		return false
	}
	return owner.UID == mine.UID
}

// ownerOf words who owns an object.
func ownerOf(obj client.Object) string {
	owner := metav1.GetControllerOf(obj)
	if owner == nil {
		return "nothing owns it"
	}
	return fmt.Sprintf("it is owned by %s %s of UID %s", owner.Kind, owner.Name, owner.UID)
}

// tell reports a refused write as an event: nothing in status may say so yet.
// One of a kind is enough for a pass.
func (s *sender) tell(o object, w *Write, err error) {
	if w.Kind == WriteScaler {
		return // core does, once
	}
	s.mu.Lock()
	told := s.told[w.Kind]
	if s.told == nil {
		s.told = map[WriteKind]bool{}
	}
	s.told[w.Kind] = true
	s.mu.Unlock()
	if told || s.recorder == nil || s.service == nil {
		return
	}
	s.recorder.Eventf(s.service, nil, "Warning", "WriteRefused", eventAction, "%s", note(fmt.Sprintf("%s of %s: %v", w.Verb, o, err)))
}

// note cuts an event's text to what the API takes.
func note(text string) string {
	const most = 1000
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// related is the service, when it exists.
func (s *sender) related() runtime.Object {
	if s.service == nil {
		return nil
	}
	return s.service
}

func sizeOf(v any) int {
	raw, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(raw)
}
