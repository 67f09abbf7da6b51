package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// creating is a bench whose decision creates one pod.
func creating(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, testService(), testReplica(v1beta1.EngineComponent))
	b.decision.Components = []core.ComponentDecision{{
		Type: v1beta1.EngineComponent, Pods: []core.PodAction{{Verb: core.PodCreate, Pod: testPod("p", v1beta1.EngineComponent)}},
	}}
	return b
}

// TestReadYourWrites: no pass is decided on a cache that lacks our own write,
// the wait doubles, and no other kind matters.
func TestReadYourWrites(t *testing.T) {
	b := creating(t)
	if _, err := b.pass(t); err != nil { // the write returns version 1001
		t.Fatal(err)
	}
	b.decision = core.Decision{}
	b.clock.Step(time.Second)
	for i, want := range []time.Duration{20, 40, 80, 160, 320, 640, 1000, 1000} {
		again, err := b.pass(t)
		if err != nil || again != want*time.Millisecond {
			t.Errorf("wait %d: %v, %v; want %vms", i, again, err, want)
		}
	}
	if b.decided != 1 {
		t.Fatalf("decided %d times on a cache that lags", b.decided)
	}
	b.fakes[kindPod].version = "1000"
	if _, err := b.pass(t); err != nil || b.decided != 1 {
		t.Fatalf("version 1000 is below 1001, but a pass was decided (%v)", err)
	}
	b.fakes[kindPod].version = "1001"
	if again, err := b.pass(t); err != nil || again != 0 || b.decided != 2 {
		t.Errorf("the cache caught up: again %v, %v, decided %d times", again, err, b.decided)
	}
}

// TestVersionsAreNumbers: 999 is before 1001, whatever a text comparison says.
func TestVersionsAreNumbers(t *testing.T) {
	b := creating(t)
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	b.clock.Step(time.Second)
	b.fakes[kindPod].version = "999"
	if _, err := b.pass(t); err != nil || b.decided != 1 {
		t.Errorf("decided %d times, %v", b.decided, err)
	}
}

// TestReadYourDeletes: a deleted object must be gone or going, by UID.
func TestReadYourDeletes(t *testing.T) {
	pod := testPod("p", v1beta1.EngineComponent)
	b := newBench(t, testService(), testReplica(v1beta1.EngineComponent), pod)
	b.decision.Components = []core.ComponentDecision{{
		Type: v1beta1.EngineComponent, Pods: []core.PodAction{{Verb: core.PodDelete, Pod: pod}},
	}}
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	b.decision = core.Decision{}
	b.clock.Step(time.Second)
	if _, err := b.pass(t); err != nil || b.decided != 1 {
		t.Fatalf("the deleted pod is cached, but a pass was decided (%v)", err)
	}
	going := pod.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: b.clock.Now()}
	b.put(t, going)
	if _, err := b.pass(t); err != nil || b.decided != 2 {
		t.Fatalf("the pod is going, but no pass was decided (%v)", err)
	}

	b.decision.Components = []core.ComponentDecision{{
		Type: v1beta1.EngineComponent, Pods: []core.PodAction{{Verb: core.PodDelete, Pod: pod}},
	}}
	b.put(t, pod)
	b.clock.Step(time.Second)
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	b.decision = core.Decision{}
	next := pod.DeepCopy()
	next.UID = "another"
	b.put(t, next)
	b.clock.Step(time.Second)
	if _, err := b.pass(t); err != nil || b.decided != 4 {
		t.Errorf("another pod has the name, but no pass was decided (%v)", err)
	}
}

// TestUnknownOutcome: a write without an answer is looked up before the next pass.
func TestUnknownOutcome(t *testing.T) {
	pod := object{kindPod, types.NamespacedName{Namespace: "ns", Name: "p"}}
	lost := errors.New("connection reset by peer")

	t.Run("it arrived", func(t *testing.T) {
		b := creating(t)
		b.writer.answer = func(*Write) error { return lost }
		if _, err := b.pass(t); !errors.Is(err, lost) {
			t.Fatalf("err = %v", err)
		}
		stored := testPod("p", v1beta1.EngineComponent)
		stored.ResourceVersion = "300"
		b.live.objects[pod] = stored
		b.clock.Step(time.Second)
		if again, err := b.pass(t); err != nil || again != fenceFirst || b.decided != 1 {
			t.Errorf("the cache lacks the pod: again %v, %v, decided %d times", again, err, b.decided)
		}
		b.fakes[kindPod].version = "300"
		if _, err := b.pass(t); errors.Is(err, context.Canceled) || b.decided != 2 || len(b.live.reads) != 1 {
			t.Errorf("decided %d times after %d live reads", b.decided, len(b.live.reads))
		}
	})
	t.Run("it did not arrive", func(t *testing.T) {
		b := creating(t)
		b.writer.answer = func(*Write) error { return lost }
		if _, err := b.pass(t); !errors.Is(err, lost) {
			t.Fatalf("err = %v", err)
		}
		b.writer.answer = nil
		b.clock.Step(time.Second)
		if _, err := b.pass(t); err != nil || b.decided != 2 || len(b.live.reads) != 1 {
			t.Errorf("decided %d times after %d live reads: %v", b.decided, len(b.live.reads), err)
		}
	})
	t.Run("nobody knows", func(t *testing.T) {
		b := creating(t)
		b.writer.answer = func(*Write) error { return lost }
		if _, err := b.pass(t); !errors.Is(err, lost) {
			t.Fatalf("err = %v", err)
		}
		b.live.err = errors.New("still down")
		b.clock.Step(time.Second)
		if _, err := b.pass(t); err == nil || b.decided != 1 {
			t.Errorf("decided %d times while the write's outcome is unknown: %v", b.decided, err)
		}
	})
}

// TestNameTaken: a create that finds its name taken waits for the cache when the
// object is ours, and says so when it is not.
func TestNameTaken(t *testing.T) {
	exists := func(*Write) error { return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, "p") }
	pod := object{kindPod, types.NamespacedName{Namespace: "ns", Name: "p"}}

	t.Run("ours", func(t *testing.T) {
		b := creating(t)
		b.writer.answer = exists
		stored := testPod("p", v1beta1.EngineComponent)
		stored.ResourceVersion = "300"
		b.live.objects[pod] = stored
		if again, err := b.pass(t); err != nil || again != conflictFirst {
			t.Errorf("again %v, %v", again, err)
		}
		b.clock.Step(time.Second)
		if _, err := b.pass(t); err != nil || b.decided != 1 {
			t.Errorf("decided %d times on a cache that lacks the pod: %v", b.decided, err)
		}
	})
	t.Run("ours by labels and owner", func(t *testing.T) {
		replica, isvc := testReplica(v1beta1.EngineComponent), testService()
		isvc.Kind, replica.Kind = "InferenceService", "InferenceReplica"
		replica.OwnerReferences = ownedByTest(isvc)
		replaced := replica.DeepCopy()
		replaced.UID = "earlier"
		owned := func(o, owner client.Object) client.Object {
			o = o.DeepCopyObject().(client.Object)
			o.SetOwnerReferences(nil)
			if owner != nil {
				o.SetOwnerReferences(ownedByTest(owner))
			}
			return o
		}
		unlabelled := owned(testPod("p", v1beta1.EngineComponent), replica)
		unlabelled.SetLabels(nil)
		foreignReplica := replica.DeepCopy()
		foreignReplica.Spec.ParentRef = nil
		pod, cr, svc := testPod("p", v1beta1.EngineComponent), testRevision("r", v1beta1.EngineComponent), testCoreService("s")
		tests := map[string]struct {
			stored, wanted client.Object
			want           bool
		}{
			"pod":                                  {owned(pod, replica), owned(pod, replica), true},
			"pod of an earlier replica":            {owned(pod, replaced), owned(pod, replica), false},
			"orphaned pod":                         {owned(pod, nil), owned(pod, replica), false},
			"pod without labels":                   {unlabelled, owned(pod, replica), false},
			"revision":                             {owned(cr, replica), owned(cr, replica), true},
			"revision of an earlier replica":       {owned(cr, replaced), owned(cr, replica), false},
			"orphaned revision":                    {owned(cr, nil), owned(cr, replica), false},
			"Service":                              {owned(svc, isvc), owned(svc, isvc), true},
			"Service that somebody took":           {owned(svc, replica), owned(svc, isvc), false},
			"Service that nobody owns":             {owned(svc, nil), owned(svc, isvc), true},
			"replica":                              {replica, replica, true},
			"standalone replica":                   {foreignReplica, replica, false},
			"replica of an earlier service":        {owned(replica, replaced), replica, false},
			"replica orphaned by a service's end":  {owned(replica, nil), replica, false},
			"an owned object that none was to own": {owned(pod, replica), owned(pod, nil), false},
		}
		for name, test := range tests {
			if got := ours(test.stored, test.wanted, "svc"); got != test.want {
				t.Errorf("%s: ours = %v", name, got)
			}
		}
	})
	for name, test := range map[string]struct {
		spoil func(*corev1.Pod)
		owner string
	}{
		"foreign":  {func(p *corev1.Pod) { p.Labels, p.OwnerReferences = nil, nil }, "nothing owns it"},
		"orphaned": {func(p *corev1.Pod) { p.OwnerReferences = nil }, "nothing owns it"},
		"left by an earlier replica": {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "earlier" },
			"it is owned by InferenceReplica svc-engine of UID earlier"},
	} {
		t.Run(name, func(t *testing.T) {
			b := creating(t)
			events := events.NewFakeRecorder(10)
			b.recorder = events
			b.writer.answer = exists
			replica := testReplica(v1beta1.EngineComponent)
			replica.Kind = "InferenceReplica"
			b.decision.Components[0].Pods[0].Pod.OwnerReferences = ownedByTest(replica)
			stored := b.decision.Components[0].Pods[0].Pod.DeepCopy()
			test.spoil(stored)
			b.live.objects[pod] = stored
			says := "Pod ns/p exists and does not belong to InferenceService ns/svc (" + test.owner + "); delete or rename it"
			if _, err := b.pass(t); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("err = %v, want %s", err, says)
			}
			select {
			case e := <-events.Events:
				if !strings.Contains(e, "Warning WriteRefused") || !strings.Contains(e, says) {
					t.Errorf("event %s", e)
				}
			default:
				t.Error("no event tells")
			}
		})
	}
}

// ownedByTest are the owner references of what an object controls.
func ownedByTest(owner client.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1beta1.SchemeGroupVersion.WithKind(owner.GetObjectKind().GroupVersionKind().Kind))}
}

// TestRewoundHistory: a cluster restored from a backup has lower versions than
// our own writes had. The key must not wait for ever.
func TestRewoundHistory(t *testing.T) {
	b := creating(t)
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	b.decision = core.Decision{}
	asked := 0
	b.latest = func(_ context.Context, k kind) (string, error) {
		asked++
		if k != kindPod {
			t.Errorf("asked for %s", k)
		}
		return "200", nil
	}
	b.clock.Step(time.Second)
	if _, err := b.pass(t); err != nil || asked != 0 {
		t.Fatalf("asked %d times before anything is suspicious: %v", asked, err)
	}
	b.clock.Step(fenceStalled)
	if _, err := b.pass(t); err != nil || asked != 1 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
	b.clock.Step(time.Second)
	if _, err := b.pass(t); err != nil || b.decided != 2 {
		t.Errorf("decided %d times: %v", b.decided, err)
	}
}

func TestPace(t *testing.T) {
	b := newBench(t, testService())
	b.decide = func(core.World) core.Decision {
		b.decided++
		b.clock.Step(100 * time.Millisecond)
		return core.Decision{}
	}
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	if again, _ := b.pass(t); again != 300*time.Millisecond || b.decided != 1 {
		t.Errorf("a decision of 100ms at 0 allows the next at 400ms: wait %v at 100ms, decided %d times", again, b.decided)
	}
	b.clock.Step(300 * time.Millisecond)
	if again, _ := b.pass(t); again != 0 || b.decided != 2 {
		t.Errorf("again %v, decided %d times", again, b.decided)
	}
}

// TestWake: the earliest of core's wake and of held writes is when to look again.
func TestWake(t *testing.T) {
	b := newBench(t, testService())
	b.decision.Wake = b.clock.Now().Add(42 * time.Second)
	if again, err := b.pass(t); err != nil || again != 42*time.Second {
		t.Errorf("again %v, %v", again, err)
	}
	b.clock.Step(time.Minute) // the wake is past: at once, and never not at all
	if again, err := b.pass(t); err != nil || again != time.Millisecond {
		t.Errorf("again %v, %v", again, err)
	}
}

func TestGoneKeysAreForgotten(t *testing.T) {
	b := newBench(t, testService())
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	if err := b.fakes[kindService].Delete(testService()); err != nil {
		t.Fatal(err)
	}
	b.clock.Step(time.Second)
	if _, err := b.pass(t); err != nil || b.decided != 1 || len(b.states.all) != 0 {
		t.Errorf("decided %d times, %d keys remembered, %v", b.decided, len(b.states.all), err)
	}
}

// TestLeaderWaitsForOldVersions: caches older than what a quorum said are waited for.
func TestLeaderWaitsForOldVersions(t *testing.T) {
	b := newBench(t)
	least := map[kind]string{}
	for _, k := range kinds {
		least[k] = "100"
	}
	if err := waitForVersions(t.Context(), b.stores, least); err != nil {
		t.Fatal(err)
	}
	least[kindPod] = "101"
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	if err := waitForVersions(ctx, b.stores, least); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a cache at 100 passed for 101: %v", err)
	}
	b.fakes[kindPod].version = ""
	if err := waitForVersions(t.Context(), b.stores, least); err == nil || !strings.Contains(err.Error(), "the cache of Pod does not tell its version") {
		t.Errorf("err = %v", err)
	}
}

var _ client.Reader = (*fakeLive)(nil)
