package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/controller"
	"ome.io/ome/internal/core/rows"
)

// rowsOf reads the Instances of a component.
func rowsOf(t *testing.T, c client.Client, key client.ObjectKey, comp v1beta1.ComponentType) []v1beta1.InstanceStatus {
	t.Helper()
	r := &v1beta1.InferenceReplica{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: v1beta1.ReplicaName(key.Name, comp)}, r); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	out, err := rows.Decode(&r.Status, 100)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func podsOf(t *testing.T, c client.Client, namespace string) map[string]types.UID {
	t.Helper()
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	out := map[string]types.UID{}
	for i := range pods.Items {
		out[pods.Items[i].Name] = pods.Items[i].UID
	}
	return out
}

// TestInPlaceRollOnAnAPIServer: engine and decoder change their images and stay the
// pods they are.
func TestInPlaceRollOnAnAPIServer(t *testing.T) {
	const namespace = "in-place-roll"
	c := newClient(t)
	create(t, c, namespaceNamed("ome"))
	isvc := sampleService(t, c, namespace)
	inPlace := func(s *v1beta1.InferenceServiceSpec) {
		strategy := func(kind v1beta1.UpdateStrategyType) *v1beta1.LifecycleSpec {
			return &v1beta1.LifecycleSpec{UpdateStrategy: &v1beta1.UpdateStrategy{Type: kind}}
		}
		s.Engine.Lifecycle, s.Decoder.Lifecycle = strategy(v1beta1.InPlaceIfPossible), strategy(v1beta1.InPlaceOnly)
	}
	edit(t, c, isvc, inPlace)
	startKubelet(t, namespace)
	sent, _ := startManager(t, controller.Options{})
	key := client.ObjectKeyFromObject(isvc)
	until(t, "the service to come up", func() (bool, string) { return settled(t, c, key) })
	before := podsOf(t, c, namespace)

	v2 := sample(t, "mistral-pd-v2.yaml", &v1beta1.InferenceService{})
	edit(t, c, isvc, func(s *v1beta1.InferenceServiceSpec) { *s = v2.Spec; inPlace(s) })
	until(t, "the roll to end", func() (bool, string) { return settled(t, c, key) })
	expectRolled(t, c, namespace)
	if after := podsOf(t, c, namespace); !mapsEqual(before, after) {
		t.Errorf("pods before %v, after %v", before, after)
	}
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		comp := v1beta1.ComponentType(pod.Labels[v1beta1.ComponentLabel])
		row := rowsOf(t, c, key, comp)[0]
		if !strings.HasSuffix(row.RunningRevision, pod.Labels[v1beta1.RevisionHashLabel]) || pod.Annotations[v1beta1.InPlaceImageTransitionAnnotation] != "" {
			t.Errorf("%s: labels %v, annotations %v, row runs %s", pod.Name, pod.Labels, pod.Annotations, row.RunningRevision)
		}
	}
	quiet(t, sent, 10*time.Second)
}

func mapsEqual(a, b map[string]types.UID) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// edit changes a service's spec.
func edit(t *testing.T, c client.Client, isvc *v1beta1.InferenceService, change func(*v1beta1.InferenceServiceSpec)) {
	t.Helper()
	until(t, "the new spec to be stored", func() (bool, string) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(isvc), isvc); err != nil {
			return false, err.Error()
		}
		change(&isvc.Spec)
		if err := c.Update(t.Context(), isvc); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
}

// TestQuotaOnAnAPIServer: a service that does not fit says so in its rows, asks again at
// a measured pace, and comes up by itself when there is room.
func TestQuotaOnAnAPIServer(t *testing.T) {
	const namespace = "quota"
	c := newClient(t)
	create(t, c, namespaceNamed("ome"), namespaceNamed(namespace))
	limit := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}
	create(t, c, limit)
	allow := func(n string) {
		t.Helper()
		// No controller counts here: the admission plugin takes what status says.
		until(t, "the quota to be stored", func() (bool, string) {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(limit), limit); err != nil {
				return false, err.Error()
			}
			before := limit.DeepCopy()
			limit.Status.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse(n)}
			if limit.Status.Used == nil {
				limit.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
			}
			if err := c.Status().Patch(t.Context(), limit, client.MergeFrom(before)); err != nil {
				return false, err.Error()
			}
			return true, ""
		})
	}
	allow("1")
	isvc := sampleService(t, c, namespace)
	startKubelet(t, namespace)
	sent, _ := startManager(t, controller.Options{})
	key := client.ObjectKeyFromObject(isvc)
	waiting := func() (n int, last string) {
		for _, comp := range v1beta1.Components() {
			for _, row := range rowsOf(t, c, key, comp) {
				if row.Operation == nil {
					continue
				}
				last += fmt.Sprintf(" %s: %s", comp, row.Operation.Waiting)
				if row.Operation.Waiting == v1beta1.WaitingQuotaExceeded && row.Operation.Deadline == nil {
					n++
				}
			}
		}
		return n, last
	}
	until(t, "two Instances to wait for quota, on a clock that stands still", func() (bool, string) {
		n, last := waiting()
		return n == 2, last
	})
	creations := func(requests []string) (n int) {
		for _, r := range requests {
			if strings.HasPrefix(r, "POST /api/v1/namespaces/"+namespace+"/pods") {
				n++
			}
		}
		return n
	}
	// Wait for one more question, so that the window begins at a known place.
	since := sent.count()
	until(t, "the pods to be asked for again", func() (bool, string) { return creations(sent.since(since)) >= 2, "" })
	since = sent.count()
	const window = 12 * time.Second
	time.Sleep(window) // the window that is observed
	during := sent.since(since)
	if n := creations(during); n < 2 || n > 6 {
		t.Errorf("%d creations of two pods in %v at 5s", n, window)
	}
	if n := slices.IndexFunc(during, func(r string) bool { return strings.Contains(r, "/status") }); n >= 0 {
		t.Errorf("a status was written while nothing changed: %q", during)
	}

	allow("10")
	until(t, "the service to come up", func() (bool, string) {
		ok, last := settled(t, c, key)
		_, waits := waiting()
		return ok, last + waits
	})
}

// TestInvalidPodOnAnAPIServer: a pod that the API server will never take is a failure of
// its revision, recorded at once.
func TestInvalidPodOnAnAPIServer(t *testing.T) {
	const namespace = "invalid-pod"
	c := newClient(t)
	create(t, c, namespaceNamed("ome"))
	isvc := sampleService(t, c, namespace)
	startKubelet(t, namespace)
	startManager(t, controller.Options{})
	key := client.ObjectKeyFromObject(isvc)
	until(t, "the service to come up", func() (bool, string) { return settled(t, c, key) })
	v2 := sample(t, "mistral-pd-v2.yaml", &v1beta1.InferenceService{})
	v2.Spec.Engine.Runner.Image = " "
	edit(t, c, isvc, func(s *v1beta1.InferenceServiceSpec) { s.Engine.Runner = v2.Spec.Engine.Runner })
	until(t, "the failure of the revision", func() (bool, string) {
		r := &v1beta1.InferenceReplica{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1beta1.ReplicaName(key.Name, v1beta1.EngineComponent)}, r); err != nil {
			t.Fatal(err)
		}
		last := fmt.Sprintf("%+v", r.Status.RetryBlocks)
		for _, row := range rowsOf(t, c, key, v1beta1.EngineComponent) {
			if row.LastFailure != nil {
				last += fmt.Sprintf(" %+v", *row.LastFailure)
			}
			if row.Operation != nil {
				last += fmt.Sprintf(" %+v", *row.Operation)
			}
		}
		return len(r.Status.RetryBlocks) == 1 && r.Status.RetryBlocks[0].CountedFailures == 1 && strings.Contains(last, "InvalidPodSpec"), last
	})
	if got := images(t, c, namespace, v1beta1.EngineComponent); !slices.Equal(got, []string{"lab.ome.io/engine:v1"}) {
		t.Errorf("engine runs %v", got)
	}
}

// TestReleaseMailboxOnAnAPIServer: a request that matches nothing is answered and removed,
// and one that comes meanwhile is answered too.
func TestReleaseMailboxOnAnAPIServer(t *testing.T) {
	const namespace = "release-mailbox"
	c := newClient(t)
	create(t, c, namespaceNamed("ome"))
	isvc := sampleService(t, c, namespace)
	startKubelet(t, namespace)
	name := client.ObjectKey{Namespace: namespace, Name: v1beta1.ReplicaName(isvc.Name, v1beta1.EngineComponent)}
	ask := func(value string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1beta1.ReleaseHeldRevisionAnnotation+`":"`+value+`"}}}`))
		if err := c.Patch(t.Context(), &v1beta1.InferenceReplica{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}, patch); err != nil {
			t.Error(err)
		}
	}
	m := &meddler{kind: controller.WriteReplicaAnnotation, do: func() { ask("22222222") }}
	sent, _ := startManager(t, controller.Options{Wrap: func(next controller.Writer) controller.Writer { m.next = next; return m }})
	until(t, "the service to come up", func() (bool, string) { return settled(t, c, client.ObjectKeyFromObject(isvc)) })
	ask("11111111")
	until(t, "both requests to be answered", func() (bool, string) {
		r := &v1beta1.InferenceReplica{}
		if err := c.Get(t.Context(), name, r); err != nil {
			t.Fatal(err)
		}
		left, ok := r.Annotations[v1beta1.ReleaseHeldRevisionAnnotation]
		removals := 0
		for _, s := range sent.since(0) {
			if strings.HasPrefix(s, "PATCH /apis/ome.io/v1beta1/namespaces/"+namespace+"/inferencereplicas/"+name.Name+"?") || strings.HasSuffix(s, "/inferencereplicas/"+name.Name) && strings.HasPrefix(s, "PATCH") {
				removals++
			}
		}
		return !ok && removals >= 2, fmt.Sprintf("%q is left, %d patches", left, removals)
	})
}
