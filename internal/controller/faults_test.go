package controller_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/controller"
)

var errLost = errors.New("lost on purpose")

// lossy loses writes: half of the lost ones before they are sent, half of them
// on the way back. Any subset of a pass's writes can go missing.
type lossy struct {
	next controller.Writer
	mu   sync.Mutex
	rnd  *rand.Rand
	lost map[controller.WriteKind]int
}

func (l *lossy) Write(ctx context.Context, w *controller.Write) error {
	l.mu.Lock()
	fate := l.rnd.IntN(10)
	// The first two of each kind are lost for certain, one each way.
	if n := l.lost[w.Kind]; n < 2 {
		fate = n
	}
	if fate < 2 {
		l.lost[w.Kind]++
	}
	l.mu.Unlock()
	switch fate {
	case 0:
		return errLost
	case 1:
		// What the server said must not reach the pass.
		sent := *w
		sent.Object = w.Object.DeepCopyObject().(client.Object)
		if err := l.next.Write(ctx, &sent); err != nil {
			return err
		}
		return errLost
	}
	return l.next.Write(ctx, w)
}

// TestLostWritesOnAnAPIServer: whatever subset of writes arrives, the roll ends
// where it would have ended.
func TestLostWritesOnAnAPIServer(t *testing.T) {
	const namespace, seed = "lossy", 20260102
	t.Logf("seed %d", seed)
	c := newClient(t)
	create(t, c, namespaceNamed("ome"))
	isvc := sampleService(t, c, namespace)
	startKubelet(t, namespace)
	l := &lossy{rnd: rand.New(rand.NewPCG(seed, 0)), lost: map[controller.WriteKind]int{}}
	startManager(t, controller.Options{Wrap: func(next controller.Writer) controller.Writer {
		l.next = next
		return l
	}})
	key := client.ObjectKeyFromObject(isvc)
	until(t, "the service to come up", func() (bool, string) { return settled(t, c, key) })
	roll(t, c, isvc)
	until(t, "the roll to end", func() (bool, string) { return settled(t, c, key) })
	expectRolled(t, c, namespace)
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("lost: %v", l.lost)
	for _, k := range []controller.WriteKind{
		controller.WriteRevision, controller.WriteServiceStatus, controller.WriteReplica, controller.WriteReplicaStatus,
		controller.WritePodCreate, controller.WritePodGate, controller.WritePodDelete, controller.WriteService,
	} {
		if l.lost[k] < 2 {
			t.Errorf("%d writes of kind %s were lost: the test showed less than it says", l.lost[k], k)
		}
	}
}

// dying sends a number of writes and then none, as a process that was killed.
type dying struct {
	next controller.Writer
	mu   sync.Mutex
	left int
	dead chan struct{}
}

func (d *dying) Write(ctx context.Context, w *controller.Write) error {
	d.mu.Lock()
	d.left--
	if d.left == -1 {
		close(d.dead)
	}
	alive := d.left >= 0
	d.mu.Unlock()
	if !alive {
		return errLost
	}
	return d.next.Write(ctx, w)
}

// TestKilledManagersOnAnAPIServer: a new manager takes over after every few
// writes of the one before.
func TestKilledManagersOnAnAPIServer(t *testing.T) {
	const namespace, seed = "killed", 20260103
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	c := newClient(t)
	create(t, c, namespaceNamed("ome"))
	isvc := sampleService(t, c, namespace)
	startKubelet(t, namespace)
	key := client.ObjectKeyFromObject(isvc)
	killed := 0
	// The first managers die; the last one lives.
	run := func() {
		for range 4 {
			d := &dying{left: 1 + rnd.IntN(9), dead: make(chan struct{})}
			_, stop := startManager(t, controller.Options{Wrap: func(next controller.Writer) controller.Writer {
				d.next = next
				return d
			}})
			until(t, "a manager to die or to be done", func() (bool, string) {
				select {
				case <-d.dead:
					killed++
					return true, ""
				default:
					return settled(t, c, key)
				}
			})
			stop()
		}
		_, stop := startManager(t, controller.Options{})
		until(t, "the last manager to be done", func() (bool, string) { return settled(t, c, key) })
		stop()
	}
	run()
	roll(t, c, isvc)
	run()
	expectRolled(t, c, namespace)
	t.Logf("%d managers died", killed)
	if killed < 4 {
		t.Errorf("%d managers died: the test showed less than it says", killed)
	}
}

// roll gives the service the spec of the second sample.
func roll(t *testing.T, c client.Client, isvc *v1beta1.InferenceService) {
	t.Helper()
	v2 := sample(t, "mistral-pd-v2.yaml", &v1beta1.InferenceService{})
	until(t, "the new spec to be stored", func() (bool, string) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(isvc), isvc); err != nil {
			return false, err.Error()
		}
		isvc.Spec = v2.Spec
		err := c.Update(t.Context(), isvc)
		if err != nil {
			return false, err.Error()
		}
		return true, ""
	})
}

// expectRolled checks what runs at the end, and that the rows account for it.
func expectRolled(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	for comp, want := range map[v1beta1.ComponentType]string{
		v1beta1.EngineComponent: "lab.ome.io/engine:v2", v1beta1.DecoderComponent: "lab.ome.io/decoder:v2", v1beta1.RouterComponent: "lab.ome.io/router:v1",
	} {
		var got []string
		until(t, "only new pods of "+string(comp), func() (bool, string) {
			got = images(t, c, namespace, comp)
			return slices.Equal(got, []string{want}), want
		})
		pods := &corev1.PodList{}
		if err := c.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{v1beta1.ComponentLabel: string(comp)}); err != nil {
			t.Fatal(err)
		}
		for i := range pods.Items {
			if pods.Items[i].Labels[v1beta1.InstanceIndexLabel] != "0" {
				t.Errorf("pod %s is outside the only row", pods.Items[i].Name)
			}
			if s := condition(&pods.Items[i], corev1.PodReady); s != corev1.ConditionTrue {
				t.Errorf("pod %s is not serving", pods.Items[i].Name)
			}
		}
	}
}

// TestDeletionOnAnAPIServer: a deleted service takes its replicas' pods along in
// the order that the manager keeps. The garbage collector is played by the test.
func TestDeletionOnAnAPIServer(t *testing.T) {
	const namespace = "deletion"
	c := newClient(t)
	create(t, c, namespaceNamed("ome"))
	isvc := sampleService(t, c, namespace)
	startKubelet(t, namespace)
	startManager(t, controller.Options{})
	key := client.ObjectKeyFromObject(isvc)
	until(t, "the service to come up", func() (bool, string) { return settled(t, c, key) })

	if err := c.Delete(t.Context(), isvc); err != nil {
		t.Fatal(err)
	}
	replicas := &v1beta1.InferenceReplicaList{}
	if err := c.List(t.Context(), replicas, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range replicas.Items {
		if err := c.Delete(t.Context(), &replicas.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "replicas and pods to be gone", func() (bool, string) {
		pods := &corev1.PodList{}
		if err := errors.Join(c.List(t.Context(), replicas, client.InNamespace(namespace)), c.List(t.Context(), pods, client.InNamespace(namespace))); err != nil {
			t.Fatal(err)
		}
		what := ""
		for i := range replicas.Items {
			what += " " + replicas.Items[i].Name
		}
		for i := range pods.Items {
			what += " " + pods.Items[i].Name
		}
		return what == "", what
	})
}

// TestForeignChangesOnAnAPIServer: what others break on generated objects comes back.
func TestForeignChangesOnAnAPIServer(t *testing.T) {
	const namespace = "foreign"
	c := newClient(t)
	create(t, c, namespaceNamed("ome"))
	isvc := sampleService(t, c, namespace)
	startKubelet(t, namespace)
	startManager(t, controller.Options{})
	key := client.ObjectKeyFromObject(isvc)
	until(t, "the service to come up", func() (bool, string) { return settled(t, c, key) })

	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{v1beta1.ComponentLabel: "engine"}); err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d engine pods, %v", len(pods.Items), err)
	}
	victim := pods.Items[0]
	if err := c.Delete(t.Context(), &victim); err != nil {
		t.Fatal(err)
	}
	services := &corev1.ServiceList{}
	if err := c.List(t.Context(), services, client.InNamespace(namespace)); err != nil || len(services.Items) == 0 {
		t.Fatalf("%d Services, %v", len(services.Items), err)
	}
	gone := services.Items[0]
	if err := c.Delete(t.Context(), &gone); err != nil {
		t.Fatal(err)
	}
	until(t, "another engine pod and the Service", func() (bool, string) {
		if err := c.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{v1beta1.ComponentLabel: "engine"}); err != nil {
			t.Fatal(err)
		}
		again := &corev1.Service{}
		err := c.Get(t.Context(), client.ObjectKeyFromObject(&gone), again)
		ok := err == nil && again.UID != gone.UID && len(pods.Items) == 1 && pods.Items[0].UID != victim.UID &&
			condition(&pods.Items[0], corev1.PodReady) == corev1.ConditionTrue
		return ok, time.Now().String()
	})
}
