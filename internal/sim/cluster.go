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

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/core/plan"
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
	KindNode      Kind = "node"
)

// Kinds lists them in a fixed order.
var Kinds = []Kind{KindService, KindReplica, KindRevision, KindPod, KindCoreSvc, KindEndpoints, KindNode}

// state is every object; objects are never changed in place.
type state struct {
	service   *v1beta1.InferenceService
	replicas  map[v1beta1.ComponentType]*v1beta1.InferenceReplica
	revisions map[string]*appsv1.ControllerRevision
	pods      map[string]*corev1.Pod
	services  map[string]*corev1.Service
	// offered are the pods that EndpointSlices offer, by UID.
	offered map[types.UID]bool
	nodes   map[string]*corev1.Node
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
	case KindNode:
		s.nodes = maps.Clone(from.nodes)
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
	// Stuck are the UIDs of pods whose kubelet hangs: nothing happens to them any more.
	Stuck map[types.UID]bool
	// Sick are the UIDs of pods that crash for as long as they live.
	Sick map[types.UID]bool
	// BadNodes crash whatever runs on them.
	BadNodes map[string]bool
	// Room is how many pods fit on a node; a node without a number has no limit.
	Room map[string]int
	// Unpullable are images that no node can pull.
	Unpullable map[string]bool
	// Quota is how many pods the namespace may hold; 0 is no limit.
	Quota int
	// WebhookDown makes the API server refuse every pod for a reason of its own.
	WebhookDown bool
	// Queued gives every new pod a scheduling gate, as a job queue would.
	Queued bool
	// Unchecked skips the check of each pod call, for benchmarks of large services.
	Unchecked bool
	// Grace is every pod's termination grace.
	Grace time.Duration
	// Coverage, when set, counts what happened to whom.
	Coverage *Coverage
	// Calm promises a world without faults and lag, in which nobody edits counts.
	Calm bool
	// CheckCanaries checks the steps of canaries after each pass.
	CheckCanaries bool
	// Ways, when set, is told which rule let a move of a group through.
	Ways func(way string)
	// Measure, when set, says what a query gives; without it, and where it doesn't know, every
	// metric of a canary is good.
	Measure func(analysis.Query) (value float64, known bool)
	// Digests, when set, remembers the digest of each progression, and returns the one it
	// knows.
	Digests func(body, digest string) string

	// key names the service.
	key types.NamespacedName
	// policies are the rollout policies there are.
	policies map[string]plan.Policy
	// roomy is a cluster in which every pod finds a node.
	roomy        bool
	actual, seen state
	version      int64
	seeds        int64
	containers   int64
	// dirty is set while something changed since the last pass.
	dirty bool
	wake  time.Time
	// retry is when the controller comes back by itself after the API server refused
	// something; tries counts how often it did so in a row.
	retry time.Time
	tries int
	// samples are those that were taken for canaries, the last of each group.
	samples []analysis.Sample
	// wrote are the kinds to catch up with before the next pass.
	wrote map[Kind]bool
	// refused are the pod creations turned down when last asked for.
	refused map[v1beta1.ComponentType]map[string]core.Refusal
	book    book

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

// New makes a cluster of three roomy nodes with one service.
func New(pieces map[v1beta1.ComponentType]Piece, rollout *v1beta1.RolloutSpec) *Cluster {
	c := &Cluster{
		Now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Settings: config.Default(), Pieces: maps.Clone(pieces),
		Grace: 30 * time.Second, dirty: true, wrote: map[Kind]bool{}, key: types.NamespacedName{Namespace: Namespace, Name: Name},
		Broken: map[v1beta1.ComponentType]bool{}, Stuck: map[types.UID]bool{}, Sick: map[types.UID]bool{},
		BadNodes: map[string]bool{}, Room: map[string]int{}, Unpullable: map[string]bool{BadImage: true},
		refused: map[v1beta1.ComponentType]map[string]core.Refusal{}, book: newBook(),
		letters: map[string]string{}, templates: map[string]*core.Template{},
	}
	c.actual = state{
		replicas: map[v1beta1.ComponentType]*v1beta1.InferenceReplica{}, revisions: map[string]*appsv1.ControllerRevision{},
		pods: map[string]*corev1.Pod{}, services: map[string]*corev1.Service{}, offered: map[types.UID]bool{},
		nodes: map[string]*corev1.Node{},
	}
	for _, name := range []string{"node-a", "node-b", "node-c"} {
		c.AddNode(name)
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

// stamp is the time as the API server stores it.
func (c *Cluster) stamp() metav1.Time { return metav1.NewTime(c.Now.Truncate(time.Second)) }

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
		Key: c.key, Now: c.Now,
		Seed: fmt.Sprintf("%012x", c.seeds), Settings: c.Settings, Service: c.seen.service, SkipDrain: c.SkipDrain, Policies: c.policies,
		Samples: slices.Clone(c.samples), Reach: noReach,
	}
	for _, kind := range order {
		piece, declared := c.Pieces[kind]
		replica := c.seen.replicas[kind]
		declared = declared && c.seen.service != nil && c.seen.service.DeletionTimestamp == nil
		if !declared && replica == nil {
			continue
		}
		in := core.Component{
			Type: kind, Declared: declared, Replica: replica, Routed: c.seen.offered,
			RefusedPods: maps.Clone(c.refused[kind]), Refusal: c.refusal(kind),
		}
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
	w.Nodes = c.overdueNodes()
	return w
}

// overdueNodes are the nodes of pods that should long be gone, while somebody may
// act on it.
func (c *Cluster) overdueNodes() map[string]*corev1.Node {
	f := c.Settings.Lifecycle.ForceDelete
	if !f.Enabled() {
		return nil
	}
	out := map[string]*corev1.Node{}
	for _, p := range c.seen.pods {
		if p.DeletionTimestamp != nil && p.Spec.NodeName != "" && !c.Now.Before(p.DeletionTimestamp.Add(f.OverdueSlack)) {
			out[p.Spec.NodeName] = c.seen.nodes[p.Spec.NodeName]
		}
	}
	return out
}

// refusal is the text of what the API server last turned down.
func (c *Cluster) refusal(kind v1beta1.ComponentType) string {
	for _, name := range slices.Sorted(maps.Keys(c.refused[kind])) {
		return "pod " + name + ": " + c.refused[kind][name].Text
	}
	return ""
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
