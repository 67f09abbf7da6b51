package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/config"
)

// Kind is a kind of object that is watched, and so seen late, on its own.
type Kind string

// The watched kinds.
const (
	KindService   Kind = "inferenceservice"
	KindReplica   Kind = "inferencereplica"
	KindRevision  Kind = "controllerrevision"
	KindPod       Kind = "pod"
	KindCoreSvc   Kind = "service"
	KindEndpoints Kind = "endpointslice"
)

// Kinds lists them in a fixed order.
var Kinds = []Kind{KindService, KindReplica, KindRevision, KindPod, KindCoreSvc, KindEndpoints}

// Piece is how the user configures one component.
type Piece struct {
	Image string
	// Replicas is minReplicas and, as in a pinned service, maxReplicas.
	Replicas int32
	// MaxSurge is the component's own budget.
	MaxSurge intstr.IntOrString
	// MinReadySeconds delays the drain of old pods.
	MinReadySeconds int32
}

// state is every object; objects are never changed in place.
type state struct {
	service   *v1beta1.InferenceService
	replicas  map[v1beta1.ComponentType]*v1beta1.InferenceReplica
	revisions map[string]*appsv1.ControllerRevision
	pods      map[string]*corev1.Pod
	services  map[string]*corev1.Service
	// offered are the pods that EndpointSlices offer, by UID.
	offered map[types.UID]bool
}

func (s *state) take(from *state, kind Kind) {
	switch kind {
	case KindService:
		s.service = from.service
	case KindReplica:
		s.replicas = maps.Clone(from.replicas)
	case KindRevision:
		s.revisions = maps.Clone(from.revisions)
	case KindPod:
		s.pods = maps.Clone(from.pods)
	case KindCoreSvc:
		s.services = maps.Clone(from.services)
	case KindEndpoints:
		s.offered = maps.Clone(from.offered)
	}
}

// Cluster is the whole simulation.
type Cluster struct {
	Now      time.Time
	Settings config.Settings
	// Pieces is the service's configuration by component.
	Pieces map[v1beta1.ComponentType]Piece
	// Lose, when set, says whether a write never reaches the API server.
	Lose func(write string) bool
	// SkipDrain is the lab's negative control.
	SkipDrain bool
	// Broken are components whose template can't be rendered just now.
	Broken map[v1beta1.ComponentType]bool
	// Stuck are pods whose node died while they were terminating.
	Stuck map[string]bool
	// Unchecked skips the check of each pod call, for benchmarks of large services.
	Unchecked bool
	// Grace is every pod's termination grace.
	Grace time.Duration

	actual, seen state
	version      int64
	seeds        int64
	// dirty is set while something changed since the last pass.
	dirty bool
	wake  time.Time
	// wrote are the kinds to catch up with before the next pass.
	wrote map[Kind]bool
	// peak is the largest desired count of each component since it last rested.
	peak map[v1beta1.ComponentType]int32

	// Moves logs what happened, one line each.
	Moves []string
	// Violation is the first broken promise.
	Violation error
	letters   map[string]string
	templates map[string]*core.Template
}

// Name and Namespace of the simulated service.
const (
	Name      = "svc"
	Namespace = "ns"
)

// New makes a cluster with one service.
func New(pieces map[v1beta1.ComponentType]Piece, rollout *v1beta1.RolloutSpec) *Cluster {
	c := &Cluster{
		Now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Settings: config.Default(), Pieces: maps.Clone(pieces),
		Grace: 30 * time.Second, dirty: true, wrote: map[Kind]bool{},
		peak: map[v1beta1.ComponentType]int32{}, letters: map[string]string{}, Broken: map[v1beta1.ComponentType]bool{}, Stuck: map[string]bool{}, templates: map[string]*core.Template{},
	}
	c.actual = state{
		replicas: map[v1beta1.ComponentType]*v1beta1.InferenceReplica{}, revisions: map[string]*appsv1.ControllerRevision{},
		pods: map[string]*corev1.Pod{}, services: map[string]*corev1.Service{}, offered: map[types.UID]bool{},
	}
	c.actual.service = &v1beta1.InferenceService{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name, UID: "isvc", Generation: 1, ResourceVersion: c.next()},
		Spec:       v1beta1.InferenceServiceSpec{Rollout: rollout},
	}
	c.SyncAll()
	return c
}

func (c *Cluster) next() string {
	c.version++
	return strconv.FormatInt(c.version, 10)
}

func (c *Cluster) logf(format string, args ...any) {
	c.Moves = append(c.Moves, fmt.Sprintf(format, args...))
}

func (c *Cluster) violate(format string, args ...any) {
	if c.Violation == nil {
		c.Violation = fmt.Errorf(format, args...)
		c.logf("VIOLATION %v", c.Violation)
	}
}

// Sync lets the controller see the kind as it is.
func (c *Cluster) Sync(kind Kind) {
	c.seen.take(&c.actual, kind)
	c.dirty = true
}

// SyncAll lets the controller see everything.
func (c *Cluster) SyncAll() {
	for _, k := range Kinds {
		c.seen.take(&c.actual, k)
	}
}

// components in the order that core expects.
var order = []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent, v1beta1.RouterComponent}

// World is what the controller sees now.
func (c *Cluster) World() core.World {
	c.seeds++
	w := core.World{
		Key: types.NamespacedName{Namespace: Namespace, Name: Name}, Now: c.Now,
		Seed: fmt.Sprintf("%012x", c.seeds), Settings: c.Settings, Service: c.seen.service, SkipDrain: c.SkipDrain,
	}
	for _, kind := range order {
		piece, declared := c.Pieces[kind]
		replica := c.seen.replicas[kind]
		declared = declared && c.seen.service != nil && c.seen.service.DeletionTimestamp == nil
		if !declared && replica == nil {
			continue
		}
		in := core.Component{Type: kind, Declared: declared, Replica: replica, Routed: c.seen.offered}
		if declared {
			if c.Broken[kind] {
				in.TemplateError = &core.TemplateError{Reason: v1beta1.ReasonRuntimeNotFound, Message: "the runtime is gone"}
			} else {
				in.Template = c.template(kind, piece)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.seen.revisions)) {
			if cr := c.seen.revisions[name]; cr.Labels[v1beta1.ComponentLabel] == string(kind) {
				in.Revisions = append(in.Revisions, cr)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.seen.pods)) {
			if p := c.seen.pods[name]; p.Labels[v1beta1.ComponentLabel] == string(kind) {
				in.Pods = append(in.Pods, p)
			}
		}
		w.Components = append(w.Components, in)
	}
	for _, name := range slices.Sorted(maps.Keys(c.seen.services)) {
		w.Services = append(w.Services, c.seen.services[name])
	}
	return w
}

// template renders a piece once.
func (c *Cluster) template(kind v1beta1.ComponentType, piece Piece) *core.Template {
	key := fmt.Sprintf("%s %+v", kind, piece)
	if c.templates[key] == nil {
		c.templates[key] = render(kind, piece, c.seen.service)
		c.templates[key].Seal()
	}
	return c.templates[key]
}

// render is the smallest template that has what core reads.
func render(kind v1beta1.ComponentType, piece Piece, service *v1beta1.InferenceService) *core.Template {
	surge := piece.MaxSurge
	t := &core.Template{
		Runners: []v1beta1.Runner{{Name: v1beta1.RunnerDefault, Size: 1, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ome-container", Image: piece.Image}}},
		}}},
		MinReplicas: piece.Replicas, MaxReplicas: piece.Replicas, MinReadySeconds: piece.MinReadySeconds,
		Autoscaler: &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerNone},
		Lifecycle: v1beta1.LifecycleSpec{UpdateStrategy: &v1beta1.UpdateStrategy{
			Type: v1beta1.SurgeThenDrain, RollingUpdate: &v1beta1.InstanceRollingUpdate{MaxSurge: &surge},
		}},
		ServicePorts: []corev1.ServicePort{{Name: "http", Port: 80}},
	}
	if service.Spec.Rollout != nil && kind != v1beta1.RouterComponent {
		t.PairingProtocol = service.Spec.Rollout.PairingProtocol
	}
	return t
}

// letter names a revision by the order in which it first appeared.
func (c *Cluster) letter(kind v1beta1.ComponentType, hash string) string {
	key := string(kind) + hash
	if c.letters[key] == "" {
		n := 0
		for k := range c.letters {
			if len(k) > len(kind) && k[:len(kind)] == string(kind) {
				n++
			}
		}
		c.letters[key] = string(rune('A' + n%26))
	}
	return c.letters[key]
}
