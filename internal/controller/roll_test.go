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

	v2 := sample(t, "mistral-pd-v2.yaml", &v1beta1.InferenceService{})
	if err := c.Get(t.Context(), key, isvc); err != nil {
		t.Fatal(err)
	}
	isvc.Spec = v2.Spec
	if err := c.Update(t.Context(), isvc); err != nil {
		t.Fatal(err)
	}
	until(t, "the roll to end", ready)
	for comp, want := range map[v1beta1.ComponentType]string{
		v1beta1.EngineComponent: "lab.ome.io/engine:v2", v1beta1.DecoderComponent: "lab.ome.io/decoder:v2", v1beta1.RouterComponent: "lab.ome.io/router:v1",
	} {
		if got := images(t, c, namespace, comp); !slices.Equal(got, []string{want}) {
			t.Errorf("%s runs %v, want only %s", comp, got, want)
		}
	}

	quiet(t, sent, 20*time.Second)
}

// quiet waits until nothing is sent for a while. It fails when that does not
// come about: what was sent then is told.
func quiet(t *testing.T, sent *requests, forAWhile time.Duration) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		before := sent.count()
		time.Sleep(forAWhile)
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
