package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/controller"
	"ome.io/ome/internal/core"
	settings "ome.io/ome/internal/core/config"
	"ome.io/ome/internal/core/rows"
)

// managerClient has the manager's rights.
func managerClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(asManager(config(t)), client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func passesIn(t *testing.T, namespace string, wrap func(controller.Writer) controller.Writer) *controller.Passes {
	t.Helper()
	return controller.NewPasses(managerClient(t), types.NamespacedName{Namespace: namespace, Name: "svc"}, nil, wrap)
}

func labelledPod(namespace, name string, containers ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{"stays": "1", "goes": "2"},
		Labels: map[string]string{v1beta1.InferenceServiceLabel: "svc", v1beta1.ComponentLabel: "engine", v1beta1.RevisionHashLabel: "11111111"},
	}}
	for _, c := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c, Image: c + ":v1"})
	}
	return pod
}

// oneComponent is a decision about the engine alone.
func oneComponent(d core.ComponentDecision) core.Decision {
	d.Type = v1beta1.EngineComponent
	return core.Decision{Components: []core.ComponentDecision{d}}
}

// TestPodUpdateOnAnAPIServer changes images, labels and annotations of a pod with its
// containers in an order that no sorting gives.
func TestPodUpdateOnAnAPIServer(t *testing.T) {
	const namespace = "pod-update"
	c := newClient(t)
	create(t, c, namespaceNamed(namespace))
	pod := labelledPod(namespace, "p", "zeta", "alpha", "mid")
	pod.Spec.InitContainers = []corev1.Container{{Name: "early", Image: "early:v1"}}
	create(t, c, pod)
	stale := pod.DeepCopy()
	update := core.PodAction{Verb: core.PodUpdate, Pod: pod, Patch: &core.PodPatch{
		Images:      map[string]string{"alpha": "alpha:v2", "mid": "mid:v2", "zeta": "zeta:v2"},
		Labels:      map[string]string{v1beta1.RevisionHashLabel: "22222222"},
		Annotations: map[string]*string{"goes": nil, v1beta1.InPlaceImageTransitionAnnotation: ptr.To(`{"targetImages":{}}`)},
	}}
	p := passesIn(t, namespace, nil)
	if _, err := p.Send(t.Context(), core.World{}, oneComponent(core.ComponentDecision{Pods: []core.PodAction{update}})); err != nil {
		t.Fatal(err)
	}
	got := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), got); err != nil {
		t.Fatal(err)
	}
	var images []string
	for _, c := range slices.Concat(got.Spec.InitContainers, got.Spec.Containers) {
		images = append(images, c.Name+"="+c.Image)
	}
	if diff := cmp.Diff([]string{"early=early:v1", "zeta=zeta:v2", "alpha=alpha:v2", "mid=mid:v2"}, images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"stays": "1", v1beta1.InPlaceImageTransitionAnnotation: `{"targetImages":{}}`}, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if got.Labels[v1beta1.RevisionHashLabel] != "22222222" || got.Labels[v1beta1.ComponentLabel] != "engine" || got.UID != pod.UID {
		t.Errorf("labels %v, UID %s", got.Labels, got.UID)
	}

	// Decided from the pod as it was, the next one changes nothing, and is decided again.
	update.Pod, update.Patch = stale, &core.PodPatch{Images: map[string]string{"mid": "mid:v3"}}
	if again, err := p.Send(t.Context(), core.World{}, oneComponent(core.ComponentDecision{Pods: []core.PodAction{update}})); err != nil || again == 0 {
		t.Errorf("a stale update: again %v, %v", again, err)
	}
	// So is one for a pod whose name another has by now.
	if err := c.Delete(t.Context(), got, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	successor := labelledPod(namespace, "p", "zeta", "alpha", "mid")
	create(t, c, successor)
	update.Pod = got
	if again, err := p.Send(t.Context(), core.World{}, oneComponent(core.ComponentDecision{Pods: []core.PodAction{update}})); err != nil || again == 0 {
		t.Errorf("an update of a successor: again %v, %v", again, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), got); err != nil || got.Spec.Containers[2].Image != "mid:v1" {
		t.Errorf("the successor runs %v: %v", got.Spec.Containers, err)
	}
}

// TestForceDeleteOnAnAPIServer: a pod that waits for a node that is no more goes; one of
// the same name doesn't, and one that a finalizer holds stays.
func TestForceDeleteOnAnAPIServer(t *testing.T) {
	const namespace = "force-delete"
	c := newClient(t)
	create(t, c, namespaceNamed(namespace), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "alive"}})
	replica := &v1beta1.InferenceReplica{ObjectMeta: metav1.ObjectMeta{Name: "svc-engine", UID: "r"}}
	going := func(name, node string, finalizers ...string) *corev1.Pod {
		t.Helper()
		pod := labelledPod(namespace, name, "main")
		pod.Spec.NodeName, pod.Finalizers = node, finalizers
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(replica, v1beta1.SchemeGroupVersion.WithKind("InferenceReplica"))}
		create(t, c, pod)
		if err := c.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp == nil {
			t.Fatalf("%s does not wait for its node: %v", name, err)
		}
		return pod
	}
	stuck, held := going("stuck", "gone"), going("held", "alive", "example.com/hold")
	p := passesIn(t, namespace, nil)

	world := core.World{Now: stuck.DeletionTimestamp.Add(time.Hour), Components: []core.Component{{Type: v1beta1.EngineComponent, Replica: replica, Pods: []*corev1.Pod{stuck, held}}}}
	world.Settings.Lifecycle.ForceDelete = settings.ForceDelete{OverdueSlack: time.Minute, NodeUnreachableThreshold: time.Minute}
	if again := p.Look(t.Context(), &world); again.IsZero() {
		t.Error("no second look at overdue pods")
	}
	if node, read := world.Nodes["gone"]; !read || node != nil {
		t.Errorf("the node that is gone: read = %v, %v", read, node)
	}
	if node := world.Nodes["alive"]; node == nil || node.Name != "alive" {
		t.Errorf("the node that is there: %v", node)
	}

	other := stuck.DeepCopy()
	other.UID = "another"
	force := func(pods ...*corev1.Pod) (time.Duration, error) {
		var actions []core.PodAction
		for _, pod := range pods {
			actions = append(actions, core.PodAction{Verb: core.PodForceDelete, Pod: pod})
		}
		return p.Send(t.Context(), core.World{}, oneComponent(core.ComponentDecision{Pods: actions}))
	}
	if again, err := force(other); err != nil || again == 0 {
		t.Errorf("another UID: again %v, %v", again, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(stuck), stuck); err != nil {
		t.Fatalf("it is gone by another's UID: %v", err)
	}
	for range 2 { // once more does no harm
		if _, err := force(stuck, held); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(stuck), stuck); !apierrors.IsNotFound(err) {
		t.Errorf("the stuck pod: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil {
		t.Errorf("the pod with a finalizer: %v", err)
	}
}

// TestRefusedPodsOnAnAPIServer: each way in which an API server turns a pod down, in its
// own words.
func TestRefusedPodsOnAnAPIServer(t *testing.T) {
	const namespace = "refused-pods"
	c := newClient(t)
	create(t, c, namespaceNamed(namespace), namespaceNamed("refused-going"))
	limit := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "two"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
	}
	create(t, c, limit)
	// No controller counts here: the admission plugin takes what status says.
	before := limit.DeepCopy()
	limit.Status.Hard = limit.Spec.Hard
	limit.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	if err := c.Status().Patch(t.Context(), limit, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	decide := func(namespace string, pods ...*corev1.Pod) core.ComponentDecision {
		d := core.ComponentDecision{Type: v1beta1.EngineComponent}
		for _, pod := range pods {
			pod.Namespace = namespace
			d.Pods = append(d.Pods, core.PodAction{Verb: core.PodCreate, Pod: pod, Operation: "op"})
		}
		return d
	}
	kindsOf := func(p *controller.Passes, d core.ComponentDecision) map[string]core.RefusalKind {
		t.Helper()
		again, err := p.Send(t.Context(), core.World{}, core.Decision{Components: []core.ComponentDecision{d}})
		if err == nil || again == 0 {
			t.Errorf("again %v, %v", again, err)
		}
		out := map[string]core.RefusalKind{}
		for name, r := range p.Refused(d) {
			out[name] = r.Kind
			t.Logf("%s: %s", name, r.Text)
		}
		return out
	}
	p := passesIn(t, namespace, nil)
	bad := labelledPod(namespace, "bad", "main")
	bad.Spec.Containers[0].Image = " "
	account := labelledPod(namespace, "account", "main")
	account.Spec.PriorityClassName = "no-such-class"
	got := kindsOf(p, decide(namespace, bad, account))
	want := map[string]core.RefusalKind{"bad": core.RefusedInvalid, "account": core.RefusedOther}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Two of three fit. Which ones is a matter of luck, so they go one by one.
	p = passesIn(t, namespace, nil)
	for i := range 2 {
		if _, err := p.Send(t.Context(), core.World{}, core.Decision{Components: []core.ComponentDecision{decide(namespace, labelledPod(namespace, fmt.Sprintf("p%d", i), "main"))}}); err != nil {
			t.Fatal(err)
		}
	}
	d := decide(namespace, labelledPod(namespace, "p2", "main"))
	if diff := cmp.Diff(map[string]core.RefusalKind{"p2": core.RefusedQuota}, kindsOf(p, d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	if err := c.Delete(t.Context(), namespaceNamed("refused-going")); err != nil {
		t.Fatal(err)
	}
	d = decide("refused-going", labelledPod("", "p", "main"))
	if diff := cmp.Diff(map[string]core.RefusalKind{"p": core.RefusedTerminating}, kindsOf(passesIn(t, "refused-going", nil), d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// meddler changes an object just before a kind of write arrives, once.
type meddler struct {
	next controller.Writer
	kind controller.WriteKind
	once sync.Once
	do   func()
}

func (m *meddler) Write(ctx context.Context, w *controller.Write) error {
	if w.Kind == m.kind {
		m.once.Do(m.do)
	}
	return m.next.Write(ctx, w)
}

// TestMailboxOnAnAPIServer: a request that comes while the one before is being removed
// stays, and is answered by a later pass.
func TestMailboxOnAnAPIServer(t *testing.T) {
	const namespace, key = "mailbox", v1beta1.ResetInstancesAnnotation
	c := newClient(t)
	create(t, c, namespaceNamed(namespace))
	replica := minimalReplica(namespace)
	replica.Annotations = map[string]string{key: "0", "ome.io/other_key": "stays"}
	create(t, c, replica)
	m := &meddler{kind: controller.WriteReplicaAnnotation, do: func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+key+`":"1"}}}`))
		if err := c.Patch(t.Context(), replica.DeepCopy(), patch); err != nil {
			t.Error(err)
		}
	}}
	p := passesIn(t, namespace, func(next controller.Writer) controller.Writer { m.next = next; return m })
	answer := func(value string) (time.Duration, string) {
		t.Helper()
		read := &v1beta1.InferenceReplica{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(replica), read); err != nil {
			t.Fatal(err)
		}
		status := read.Status.DeepCopy()
		status.Replicas++
		world := core.World{Components: []core.Component{{Type: v1beta1.EngineComponent, Replica: read}}}
		again, err := p.Send(t.Context(), world, oneComponent(core.ComponentDecision{ReplicaStatus: status, RemoveReplicaAnnotations: map[string]string{key: value}}))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(replica), read); err != nil {
			t.Fatal(err)
		}
		if read.Status.Replicas != status.Replicas || read.Annotations["ome.io/other_key"] != "stays" {
			t.Errorf("status has %d replicas, want %d; annotations %v", read.Status.Replicas, status.Replicas, read.Annotations)
		}
		return again, read.Annotations[key]
	}
	if again, left := answer("0"); left != "1" || again == 0 {
		t.Errorf("the newer request became %q, again %v", left, again)
	}
	if _, left := answer("1"); left != "" {
		t.Errorf("the answered request is still %q", left)
	}
}

func minimalReplica(namespace string) *v1beta1.InferenceReplica {
	return &v1beta1.InferenceReplica{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "svc-engine"},
		Spec: v1beta1.InferenceReplicaSpec{
			Component: v1beta1.EngineComponent, Replicas: ptr.To[int32](1), ParentRef: &v1beta1.ParentRef{Name: "svc"},
			Runners: []v1beta1.Runner{{Name: v1beta1.RunnerDefault, Size: 1, Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ome-container", Image: "lab.ome.io/engine:v1"}}},
			}}},
		},
	}
}

type heardEvents struct {
	mu  sync.Mutex
	all []string
}

func (h *heardEvents) Eventf(about, _ runtime.Object, kind, reason, _, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, fmt.Sprintf("%s %s %s %s", about.(client.Object).GetName(), kind, reason, fmt.Sprintf(format, args...)))
}

// TestStatusTooLargeOnAnAPIServer: what the store can't take is told as such, whichever
// of the layers refuses it.
func TestStatusTooLargeOnAnAPIServer(t *testing.T) {
	// Few rows with long texts: what an API server does for each row takes its time.
	for layer, count := range map[string]int{"store": 1_700, "API server": 3_500} {
		t.Run(layer, func(t *testing.T) {
			namespace := fmt.Sprintf("too-large-%d", count)
			c := newClient(t)
			create(t, c, namespaceNamed(namespace))
			replica := minimalReplica(namespace)
			create(t, c, replica)
			large := make([]v1beta1.InstanceStatus, count)
			for i := range large {
				large[i] = v1beta1.InstanceStatus{Index: int32(i), Phase: v1beta1.InstanceFailed, Incarnation: 1, LastFailure: &v1beta1.InstanceTermination{
					PodName: fmt.Sprintf("svc-engine-%d-default-0", i), Reason: "ImagePullBackOff", Message: strings.Repeat("x", 900),
				}}
			}
			encoded, err := rows.Encode(large, rows.Options{Encoding: v1beta1.InstanceStatusDenseV1})
			if err != nil {
				t.Fatal(err)
			}
			status := replica.Status.DeepCopy()
			rows.Apply(status, encoded)
			status.Replicas = int32(count)
			h := &heardEvents{}
			p := controller.NewPasses(managerClient(t), types.NamespacedName{Namespace: namespace, Name: "svc"}, h, nil)
			world := core.World{Components: []core.Component{{Type: v1beta1.EngineComponent, Replica: replica}}}
			if _, err = p.Send(t.Context(), world, oneComponent(core.ComponentDecision{ReplicaStatus: status, ReplicaStatusUrgent: true})); err == nil {
				t.Fatal("it was stored")
			}
			if len(h.all) != 1 || !strings.HasPrefix(h.all[0], "svc-engine Warning StatusSizeExceeded ") {
				t.Errorf("told %q after %v", h.all, err)
			}
			t.Logf("%.300s", strings.Join(h.all, "\n"))
		})
	}
}
