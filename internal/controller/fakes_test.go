package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// fakeStore is a cache that holds what a test puts there, at the version it says.
type fakeStore struct {
	toolscache.Indexer
	version string
}

func (f *fakeStore) Get(key string) (any, bool) {
	obj, ok, _ := f.GetByKey(key)
	return obj, ok
}

func (f *fakeStore) Index(name, value string) []any {
	objs, err := f.ByIndex(name, value)
	if err != nil {
		panic(err)
	}
	return objs
}

func (f *fakeStore) Version() string { return f.version }

// fakeLive answers live reads from a map; what is missing is not found.
type fakeLive struct {
	client.Reader
	objects map[object]client.Object
	err     error
	reads   []object
	// nodes are the cluster's; nodeReads are the names that were asked for.
	mu        sync.Mutex
	nodes     map[string]*corev1.Node
	nodeReads []string
}

func (f *fakeLive) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if node, ok := into.(*corev1.Node); ok {
		return f.node(key.Name, node)
	}
	o := object{kindOf(into), key}
	f.reads = append(f.reads, o)
	if f.err != nil {
		return f.err
	}
	obj, ok := f.objects[o]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: string(o.kind)}, key.Name)
	}
	into.SetResourceVersion(obj.GetResourceVersion())
	into.SetLabels(obj.GetLabels())
	into.SetUID(obj.GetUID())
	into.SetOwnerReferences(obj.GetOwnerReferences())
	return nil
}

func (f *fakeLive) node(name string, into *corev1.Node) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodeReads = append(f.nodeReads, name)
	if f.err != nil {
		return f.err
	}
	node, ok := f.nodes[name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, name)
	}
	*into = *node.DeepCopy()
	return nil
}

// fakeWriter records writes and answers what a test says.
type fakeWriter struct {
	mu     sync.Mutex
	writes []Write
	// answer decides a write's answer; nil is success.
	answer func(*Write) error
	// next is the version of the next answer.
	next int
}

func (f *fakeWriter) Write(_ context.Context, w *Write) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes = append(f.writes, *w)
	if f.answer != nil {
		if err := f.answer(w); err != nil {
			return err
		}
	}
	if f.next == 0 {
		f.next = 1000
	}
	f.next++
	if w.Verb != VerbDelete {
		w.Object.SetResourceVersion(fmt.Sprint(f.next))
		w.Object.SetGeneration(7)
	}
	return nil
}

// log is what was sent, one line a write: "kind verb name".
func (f *fakeWriter) log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, w := range f.writes {
		out = append(out, fmt.Sprintf("%s %s %s", w.Kind, w.Verb, w.Object.GetName()))
	}
	return out
}

func (f *fakeWriter) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes = nil
}

// bench is a reconciler on fakes.
type bench struct {
	*reconciler
	clock  *clocktesting.FakeClock
	writer *fakeWriter
	live   *fakeLive
	fakes  map[kind]*fakeStore
	// decision is what core is made to say.
	decision core.Decision
	// world is what core was last given; decided counts how often.
	world   core.World
	decided int
}

var testKey = types.NamespacedName{Namespace: "ns", Name: "svc"}

func newBench(t *testing.T, objs ...client.Object) *bench {
	t.Helper()
	b := &bench{
		clock:  clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		writer: &fakeWriter{}, live: &fakeLive{objects: map[object]client.Object{}}, fakes: map[kind]*fakeStore{},
	}
	s := stores{}
	for _, k := range kinds {
		b.fakes[k] = &fakeStore{Indexer: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexersOf(k)), version: "100"}
		s[k] = b.fakes[k]
	}
	b.reconciler = &reconciler{
		stores: s, settings: &operatorSettings{key: types.NamespacedName{Namespace: "ome", Name: "inferenceservice-config"}},
		writer: b.writer, live: b.live, clock: b.clock, limits: newLimits(), checkPurity: true,
		latest: func(context.Context, kind) (string, error) { return "", errors.New("not expected") },
		decide: func(w core.World) core.Decision {
			b.world = w
			b.decided++
			return b.decision
		},
	}
	b.put(t, objs...)
	return b
}

func (b *bench) put(t *testing.T, objs ...client.Object) {
	t.Helper()
	for _, o := range objs {
		if err := b.fakes[kindOf(o)].Update(o); err != nil {
			t.Fatal(err)
		}
	}
}

// pass runs one reconcile and returns how soon the next is due.
func (b *bench) pass(t *testing.T) (time.Duration, error) {
	t.Helper()
	return b.reconciler.pass(t.Context(), testKey)
}

// testService is a service with an engine.
func testService() *v1beta1.InferenceService {
	return &v1beta1.InferenceService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc", UID: "svc-uid", ResourceVersion: "50", Generation: 3,
			Annotations: map[string]string{"ome.io/rollout-promote": "abc123"}},
		Spec: v1beta1.InferenceServiceSpec{DeploymentMode: v1beta1.OMENativeMode, Engine: &v1beta1.EngineSpec{}, Decoder: &v1beta1.DecoderSpec{}},
	}
}

func testReplica(c v1beta1.ComponentType) *v1beta1.InferenceReplica {
	return &v1beta1.InferenceReplica{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc-" + string(c), UID: types.UID(string(c) + "-uid"), ResourceVersion: "60", Generation: 2},
		Spec:       v1beta1.InferenceReplicaSpec{Component: c, ParentRef: &v1beta1.ParentRef{Name: "svc"}},
		Status:     v1beta1.InferenceReplicaStatus{ObservedGeneration: 2},
	}
}

func labelsOf(c v1beta1.ComponentType) map[string]string {
	return map[string]string{v1beta1.InferenceServiceLabel: "svc", v1beta1.ComponentLabel: string(c)}
}

func testPod(name string, c v1beta1.ComponentType) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "70", Labels: labelsOf(c)}}
}

func testRevision(name string, c v1beta1.ComponentType) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), Labels: labelsOf(c)}}
}

func testCoreService(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "80",
		Labels: map[string]string{v1beta1.InferenceServiceLabel: "svc"}}}
}

func testSlice(service string, ready bool, uids ...types.UID) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: service + "-x",
		Labels: map[string]string{v1beta1.InferenceServiceLabel: "svc", discoveryv1.LabelServiceName: service}}}
	for _, uid := range uids {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Conditions: discoveryv1.EndpointConditions{Ready: &ready}, TargetRef: &corev1.ObjectReference{UID: uid},
		})
	}
	return s
}

func conflict(w *Write) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: string(w.Kind)}, w.Object.GetName(), errors.New("it changed"))
}

// indexOf finds the first line that starts with a prefix, -1 for none.
func indexOf(lines []string, prefix string) int {
	return slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, prefix) })
}
