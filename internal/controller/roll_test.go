package controller_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/controller"
)

// TestRollOnAnAPIServer takes the sample service up, rolls engine and decoder to
// another image, and then expects silence.
func TestRollOnAnAPIServer(t *testing.T) {
	const namespace = "roll"
	c := newClient(t)
	create(t, c, namespaceNamed("ome"))
	isvc := sampleService(t, c, namespace)
	startKubelet(t, namespace)
	sent, _ := startManager(t, controller.Options{})
	key := client.ObjectKeyFromObject(isvc)
	ready := func() (bool, string) { return settled(t, c, key) }

	until(t, "the service to come up", ready)
	if got := images(t, c, namespace, v1beta1.EngineComponent); !slices.Equal(got, []string{"lab.ome.io/engine:v1"}) {
		t.Fatalf("engine runs %v", got)
	}

	roll(t, c, isvc)
	until(t, "the roll to end", ready)
	expectRolled(t, c, namespace)

	quiet(t, sent, 20*time.Second)
}

// quiet waits until nothing is sent for a while. It fails when that does not
// come about: what was sent then is told.
func quiet(t *testing.T, sent *requests, forAWhile time.Duration) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		before := sent.count()
		time.Sleep(forAWhile) // the window that is observed
		during := sent.since(before)
		if len(during) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("requests at rest: %q", during)
		}
	}
}

func namespaceNamed(name string) *corev1.Namespace {
	ns := &corev1.Namespace{}
	ns.Name = name
	return ns
}
