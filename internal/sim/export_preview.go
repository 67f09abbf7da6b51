package sim

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/revision"
)

// A preview runs a service of a user in this cluster: with templates that were rendered
// from it, with room for every pod, and without the checks, which are for tests.

// NewPreview makes a cluster for a service in which nothing runs yet.
func NewPreview(service *v1beta1.InferenceService, templates map[v1beta1.ComponentType]*core.Template, set config.Settings, now time.Time) *Cluster {
	c := New(nil, nil)
	c.Pieces = map[v1beta1.ComponentType]Piece{}
	c.Unchecked, c.roomy = true, true
	clear(c.Unpullable)
	c.Settings, c.Now = set, now
	c.key = types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
	s := service.DeepCopy()
	if s.UID == "" {
		s.UID = "isvc"
	}
	s.Generation = max(1, s.Generation)
	s.ResourceVersion = c.next()
	c.actual.service = s
	c.show(templates)
	c.SyncAll()
	return c
}

// Policies sets the RolloutPolicies that the namespace holds; nil where there is no such kind.
func (c *Cluster) Policies(all map[string]plan.Policy) { c.policies, c.dirty = all, true }

// show puts the rendered components in place of what was there.
func (c *Cluster) show(templates map[v1beta1.ComponentType]*core.Template) {
	clear(c.Pieces)
	for kind, t := range templates {
		// The image names the rendering where the book asks for it.
		c.Pieces[kind] = Piece{Image: "rendered-" + c.next(), Template: t}
	}
	clear(c.book.rendered)
}

// Load adds what runs already, as it was read.
func (c *Cluster) Load(replicas []*v1beta1.InferenceReplica, revisions []*appsv1.ControllerRevision, pods []*corev1.Pod) {
	for _, r := range replicas {
		c.actual.replicas[r.Spec.Component] = r.DeepCopy()
	}
	for _, cr := range revisions {
		c.actual.revisions[cr.Name] = cr.DeepCopy()
	}
	for _, p := range pods {
		p = p.DeepCopy()
		p.ResourceVersion = c.next()
		c.actual.pods[p.Name] = p
		if name := p.Spec.NodeName; name != "" && c.actual.nodes[name] == nil {
			c.AddNode(name)
		}
		if p.DeletionTimestamp == nil && is(p, corev1.PodReady) {
			c.actual.offered[p.UID] = true
		}
	}
	c.SyncAll()
	c.dirty = true
}

// Apply puts another spec, with its labels and annotations, in place of the service's.
func (c *Cluster) Apply(service *v1beta1.InferenceService, templates map[v1beta1.ComponentType]*core.Template) {
	c.show(templates)
	c.editService(func(s *v1beta1.InferenceService) {
		if !equality.Semantic.DeepEqual(s.Spec, service.Spec) {
			s.Generation++
		}
		s.Labels, s.Annotations, s.Spec = service.Labels, service.Annotations, service.Spec
	})
	c.dirty = true
}

// Service is the service as it is stored.
func (c *Cluster) Service() *v1beta1.InferenceService { return c.actual.service }

// Replica is a component's replica as it is stored, nil when there is none.
func (c *Cluster) Replica(kind v1beta1.ComponentType) *v1beta1.InferenceReplica {
	return c.actual.replicas[kind]
}

// Dirty is true while something changed since the controller last looked.
func (c *Cluster) Dirty() bool { return c.dirty }

// Version moves with each write of anybody.
func (c *Cluster) Version() int64 { return c.version }

// Wake is when the controller wants to look again though nothing happens; zero for never.
func (c *Cluster) Wake() time.Time {
	if c.wake.IsZero() || (!c.retry.IsZero() && c.retry.Before(c.wake)) {
		return c.retry
	}
	return c.wake
}

// Woken takes note that the controller is about to look again.
func (c *Cluster) Woken() { c.wake, c.dirty = time.Time{}, true }

// Idle is true for a pod that Start would not change.
func (c *Cluster) Idle(p *corev1.Pod) bool { return c.started(p) }

// Stops is true for a pod whose next step ends the process of an old image.
func (c *Cluster) Stops(p *corev1.Pod) bool { return c.stageOf(p) == restart }

// Serves is true for a pod in rotation.
func Serves(p *corev1.Pod) bool { return serving(p) }

// IndexOf is the Instance that a pod belongs to, -1 for none.
func IndexOf(p *corev1.Pod) int32 {
	n, err := strconv.ParseInt(p.Labels[v1beta1.InstanceIndexLabel], 10, 32)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return -1
	}
	return int32(n)
}

// RevisionHash is the hash that pods of the named revision carry, "" for none.
func (c *Cluster) RevisionHash(name string) string {
	if cr := c.actual.revisions[name]; cr != nil {
		return revision.HashOf(cr)
	}
	return ""
}

// Wanted is the count that a component's replica asks for.
func (c *Cluster) Wanted(kind v1beta1.ComponentType) int32 {
	if r := c.actual.replicas[kind]; r != nil && r.Spec.Replicas != nil {
		return max(1, *r.Spec.Replicas)
	}
	return 0
}

// SetCount is what an autoscaler writes.
func (c *Cluster) SetCount(kind v1beta1.ComponentType, n int32) {
	r := c.actual.replicas[kind].DeepCopy()
	r.Spec.Replicas = &n
	r.Generation++
	r.ResourceVersion = c.next()
	c.actual.replicas[kind] = r
	c.dirty = true
}

// Revisions are the ControllerRevisions there are, by name.
func (c *Cluster) Revisions() []*appsv1.ControllerRevision {
	out := make([]*appsv1.ControllerRevision, 0, len(c.actual.revisions))
	for _, name := range slices.Sorted(maps.Keys(c.actual.revisions)) {
		out = append(out, c.actual.revisions[name])
	}
	return out
}

// Promote asks to pass the gate at which a canary waits.
func (c *Cluster) Promote(hash string) {
	c.editService(func(s *v1beta1.InferenceService) {
		s.Annotations = maps.Clone(s.Annotations)
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[v1beta1.RolloutPromoteAnnotation] = hash
	})
}
