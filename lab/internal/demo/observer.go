package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

var services = schema.GroupVersionResource{Group: "ome.io", Version: "v1beta1", Resource: "inferenceservices"}

// grouped are the components that roll together; router stays.
var grouped = []string{"engine", "decoder"}

var components = []string{"engine", "decoder", "router"}

// status is the part of an InferenceService that the demo reads.
type status struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		Conditions         []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
		Components map[string]struct {
			RolloutPhase string `json:"rolloutPhase"`
			Lifecycle    struct {
				ServingReplicas int32 `json:"servingReplicas"`
				RolloutHold     *struct {
					Gate   string `json:"gate"`
					Reason string `json:"reason"`
				} `json:"rolloutHold"`
			} `json:"lifecycle"`
		} `json:"components"`
		Rollout struct {
			ObservedPause string    `json:"observedPause"`
			ActiveRun     *runState `json:"activeRun"`
			LastRun       *runState `json:"lastRun"`
		} `json:"rollout"`
		RolloutCoordination struct {
			Groups []struct {
				Phase string `json:"phase"`
			} `json:"groups"`
		} `json:"rolloutCoordination"`
	} `json:"status"`
}

type runState struct {
	RunID           string `json:"runID"`
	Outcome         string `json:"outcome"`
	TargetRevisions []struct {
		Component string `json:"component"`
		Revision  string `json:"revision"`
	} `json:"targetRevisions"`
}

func (s *status) ready() bool {
	for _, c := range s.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True" && s.Status.ObservedGeneration == s.Metadata.Generation
		}
	}
	return false
}

func (s *status) groupPhase() string {
	if len(s.Status.RolloutCoordination.Groups) == 0 {
		return ""
	}
	return s.Status.RolloutCoordination.Groups[0].Phase
}

// pod is what was seen of one pod, and when. The order of these times is the order of the events: one watch delivers all
// of them.
type pod struct {
	name, component, revision string
	old                       bool
	seen                      time.Time
	running                   time.Time // its container runs
	up                        time.Time // its containers are ready
	serving                   time.Time // the serving gate opened
	left                      time.Time // the gate closed again, or the pod was told to go
	gone                      time.Time
}

const servingGate = "ome.io/serving"

// observer follows the service and its pods.
type observer struct {
	client  kubernetes.Interface
	objects dynamic.Interface
	cancel  context.CancelFunc

	mu      sync.Mutex
	now     status
	stable  map[string]string // revisions whose pods are old ones, also later
	pods    map[types.UID]*pod
	order   []types.UID
	changed chan struct{} // closed and replaced at each change
}

func newObserver(client kubernetes.Interface, objects dynamic.Interface) *observer {
	return &observer{client: client, objects: objects, pods: map[types.UID]*pod{}, changed: make(chan struct{})}
}

func (o *observer) start(ctx context.Context) error {
	ctx, o.cancel = context.WithCancel(ctx)
	pods := informers.NewSharedInformerFactoryWithOptions(o.client, 0, informers.WithNamespace(namespace))
	svcs := dynamicinformer.NewFilteredDynamicSharedInformerFactory(o.objects, 0, namespace, nil)
	var failed error
	for informer, h := range map[cache.SharedIndexInformer]cache.ResourceEventHandlerFuncs{
		pods.Core().V1().Pods().Informer(): {
			AddFunc:    func(obj any) { o.pod(obj, false) },
			UpdateFunc: func(_, obj any) { o.pod(obj, false) },
			DeleteFunc: func(obj any) { o.pod(obj, true) },
		},
		svcs.ForResource(services).Informer(): {
			AddFunc:    o.service,
			UpdateFunc: func(_, obj any) { o.service(obj) },
		},
	} {
		if _, err := informer.AddEventHandler(h); err != nil {
			failed = err
		}
	}
	if failed != nil {
		return fmt.Errorf("watch the service: %w", failed)
	}
	pods.Start(ctx.Done())
	svcs.Start(ctx.Done())
	for what, ok := range pods.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("watch %s: stopped before the first answer", what)
		}
	}
	for what, ok := range svcs.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("watch %s: stopped before the first answer", what.Resource)
		}
	}
	return nil
}

func (o *observer) stop() {
	if o.cancel != nil {
		o.cancel()
	}
}

func (o *observer) tell() {
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *observer) service(obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u.GetName() != service {
		return
	}
	var s status
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = s
	o.tell()
}

func (o *observer) pod(obj any, deleted bool) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = lost.Obj
	}
	p, ok := obj.(*corev1.Pod)
	if !ok || p.Labels["ome.io/inferenceservice"] != service {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	at := time.Now()
	t := o.pods[p.UID]
	if t == nil {
		t = &pod{name: p.Name, component: p.Labels["component"], revision: p.Labels["ome.io/revision-hash"], seen: at}
		t.old = t.revision != "" && o.stable[t.component] == t.revision
		o.pods[p.UID] = t
		o.order = append(o.order, p.UID)
	}
	once := func(when *time.Time, is bool) {
		if is && when.IsZero() {
			*when = at
		}
	}
	serving := isTrue(p, servingGate)
	once(&t.running, len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Running != nil)
	once(&t.up, isTrue(p, corev1.ContainersReady))
	once(&t.serving, serving)
	once(&t.left, p.DeletionTimestamp != nil || deleted || (!t.serving.IsZero() && !serving))
	once(&t.gone, deleted)
	o.tell()
}

func isTrue(p *corev1.Pod, condition corev1.PodConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == condition {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// view is a copy of all that is known, and a channel that closes at the next change.
type view struct {
	status  status
	pods    []pod
	changed <-chan struct{}
}

func (o *observer) view() view {
	o.mu.Lock()
	defer o.mu.Unlock()
	v := view{status: o.now, changed: o.changed}
	for _, id := range o.order {
		v.pods = append(v.pods, *o.pods[id])
	}
	return v
}

// markOld calls the pods of now the old ones. Any that come later are new.
func (o *observer) markOld() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.pods {
		p.old = true
	}
}

// keepOld calls later pods of these revisions old ones too: those that a rollback makes.
func (o *observer) keepOld(revisions map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stable = revisions
}

// of are the pods of one component, old or new.
func (v view) of(component string, old bool) (found []pod) {
	for _, p := range v.pods {
		if p.component == component && p.old == old {
			found = append(found, p)
		}
	}
	return found
}

// everyNew is true when each grouped component has new pods and is holds for all of them.
func (v view) everyNew(is func(pod) bool) bool {
	for _, c := range grouped {
		found := v.of(c, false)
		if len(found) == 0 {
			return false
		}
		for _, p := range found {
			if !is(p) {
				return false
			}
		}
	}
	return true
}

// oldOf are the grouped components' old pods.
func (v view) oldOf() (found []pod) {
	for _, c := range grouped {
		found = append(found, v.of(c, true)...)
	}
	return found
}
