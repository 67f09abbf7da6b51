package endpoints

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Endpoint is one address of a Service.
type Endpoint struct {
	IP   string
	Pod  types.NamespacedName
	UID  types.UID
	Port int32
	// Ready, Serving and Terminating are the slice's conditions.
	Ready, Serving, Terminating bool
	// labels are the pod's, when they were known at the time of the slice.
	labels map[string]string
}

// PodLabels finds the labels of a pod; nil when it is unknown.
type PodLabels func(types.NamespacedName) map[string]string

// Watcher follows EndpointSlices, once for all views.
type Watcher struct {
	labels PodLabels
	clock  clock.WithDelayedExecution

	mu     sync.Mutex
	slices map[types.NamespacedName]map[string][]Endpoint // service -> slice name -> its endpoints
	views  map[types.NamespacedName]map[*View]bool
}

// New makes a watcher with nothing in it; Run fills it. labels may be nil.
func New(labels PodLabels) *Watcher { return newWatcher(labels, clock.RealClock{}) }

func newWatcher(labels PodLabels, c clock.WithDelayedExecution) *Watcher {
	if labels == nil {
		labels = func(types.NamespacedName) map[string]string { return nil }
	}
	return &Watcher{
		labels: labels,
		clock:  c,
		slices: map[types.NamespacedName]map[string][]Endpoint{},
		views:  map[types.NamespacedName]map[*View]bool{},
	}
}

// Labels returns the labels of an endpoint's pod. A slice can come before the pod it names, so an
// endpoint without them is looked up again.
func (w *Watcher) Labels(e Endpoint) map[string]string {
	if e.labels != nil {
		return e.labels
	}
	return w.labels(e.Pod)
}

// Start follows the slices of a namespace, or of all with "", until ctx ends. It returns when the
// first list has been read.
func (w *Watcher) Start(ctx context.Context, client kubernetes.Interface, namespace string) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTransform(StripManagedFields))
	informer := factory.Discovery().V1().EndpointSlices().Informer()
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.set(o.(*discoveryv1.EndpointSlice)) },
		UpdateFunc: func(_, o any) { w.set(o.(*discoveryv1.EndpointSlice)) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			w.remove(o.(*discoveryv1.EndpointSlice))
		},
	})
	if err != nil {
		return fmt.Errorf("watch EndpointSlices: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return fmt.Errorf("watch EndpointSlices: %w", context.Cause(ctx))
	}
	return nil
}

// StripManagedFields keeps the largest part of an object, which nobody here reads, out of a cache.
func StripManagedFields(o any) (any, error) {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
	}
	return o, nil
}

func serviceOf(s *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
}

func (w *Watcher) set(s *discoveryv1.EndpointSlice) {
	service := serviceOf(s)
	list := w.read(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slices[service] == nil {
		w.slices[service] = map[string][]Endpoint{}
	}
	w.slices[service][s.Name] = list
	w.tell(service)
}

func (w *Watcher) remove(s *discoveryv1.EndpointSlice) {
	service := serviceOf(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.slices[service], s.Name)
	if len(w.slices[service]) == 0 {
		delete(w.slices, service)
	}
	w.tell(service)
}

func (w *Watcher) read(s *discoveryv1.EndpointSlice) []Endpoint {
	var port int32
	for _, p := range s.Ports {
		if p.Port != nil && (port == 0 || (p.Name != nil && *p.Name == "http")) {
			port = *p.Port
		}
	}
	if port == 0 {
		return nil // a Service without ports routes nothing
	}
	var list []Endpoint
	for _, e := range s.Endpoints {
		if len(e.Addresses) == 0 {
			continue
		}
		out := Endpoint{
			IP:          e.Addresses[0],
			Port:        port,
			Ready:       e.Conditions.Ready == nil || *e.Conditions.Ready,
			Serving:     e.Conditions.Serving == nil || *e.Conditions.Serving,
			Terminating: e.Conditions.Terminating != nil && *e.Conditions.Terminating,
		}
		if e.TargetRef != nil {
			out.Pod = types.NamespacedName{Namespace: e.TargetRef.Namespace, Name: e.TargetRef.Name}
			out.UID = e.TargetRef.UID
			out.labels = w.labels(out.Pod)
		}
		list = append(list, out)
	}
	return list
}

// state is what the API says about a service now. The caller holds mu.
func (w *Watcher) state(service types.NamespacedName) state {
	s := state{known: w.slices[service] != nil}
	for _, list := range w.slices[service] {
		s.all = append(s.all, list...)
	}
	slices.SortFunc(s.all, func(a, b Endpoint) int { return cmp.Compare(a.IP, b.IP) })
	return s
}

// tell passes a service's state on to its views. The caller holds mu.
func (w *Watcher) tell(service types.NamespacedName) {
	if len(w.views[service]) == 0 {
		return
	}
	now := w.state(service)
	for v := range w.views[service] {
		v.later(now)
	}
}

// View opens a client's view of a service. It begins with what the API says now; each later change
// shows after a random delay of up to maxLag.
func (w *Watcher) View(service types.NamespacedName, maxLag time.Duration, rng *rand.Rand) *View {
	v := &View{watcher: w, service: service, maxLag: maxLag, rng: rng, changed: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.views[service] == nil {
		w.views[service] = map[*View]bool{}
	}
	w.views[service][v] = true
	v.apply(w.state(service))
	return v
}
