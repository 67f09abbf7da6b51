package core

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rollout"
)

// runnersMark records the revision whose templates spec.runners holds. The API
// server fills in defaults there, so the stored templates can't be compared whole.
const runnersMark = "internal.ome.io/runners-revision"

func ownerReference(o metav1.Object, kind string) *metav1.OwnerReference {
	return metav1.NewControllerRef(o, v1beta1.SchemeGroupVersion.WithKind(kind))
}

// project writes the component's spec and marks on its replica.
func (c *component) project(w *World, pause rollout.Pause) {
	switch {
	case c.unreadable != nil:
		return
	case c.foreign:
		// Its service is gone, so nothing else would ever let its pods go.
		owner := metav1.GetControllerOf(c.Replica)
		c.out.DeleteReplica = c.Replica.DeletionTimestamp == nil && owner != nil &&
			owner.Kind == "InferenceService" && owner.Name == w.Key.Name
		return
	case c.Replica == nil:
		if c.Declared && c.Template != nil && w.Service != nil && w.Service.DeletionTimestamp == nil {
			c.out.CreateReplica = c.newReplica(w, pause)
		}
		return
	case c.Replica.DeletionTimestamp != nil:
		return
	case w.Service == nil || w.Service.DeletionTimestamp != nil:
		return // garbage collection deletes it; the finalizer drains it
	case !c.Declared:
		c.out.DeleteReplica = true
		return
	}
	// A shallow copy: stamp replaces what it changes and writes to nothing shared.
	want := new(*c.Replica)
	c.stamp(want, w, pause)
	if c.sameRunners() {
		want.Spec.Runners = c.Replica.Spec.Runners
	}
	if !sameReplicaSpec(&want.Spec, &c.Replica.Spec) || !sameMarks(want, c.Replica) {
		c.out.UpdateReplica = want
	}
}

// sameRunners is true while the stored templates are the rendered ones. They are
// compared field by field only after somebody touched the spec.
func (c *component) sameRunners() bool {
	if c.Template == nil || c.Replica.Annotations[runnersMark] != c.target.Name {
		return false
	}
	return c.Replica.Status.ObservedGeneration == c.Replica.Generation ||
		apiequality.Semantic.DeepDerivative(c.Template.Runners, c.Replica.Spec.Runners)
}

func sameMarks(a, b *v1beta1.InferenceReplica) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && slices.Equal(a.Finalizers, b.Finalizers)
}

func (c *component) newReplica(w *World, pause rollout.Pause) *v1beta1.InferenceReplica {
	r := &v1beta1.InferenceReplica{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Key.Namespace, Name: v1beta1.ReplicaName(w.Key.Name, c.Type),
			OwnerReferences: []metav1.OwnerReference{*ownerReference(w.Service, "InferenceService")},
		},
		Spec: v1beta1.InferenceReplicaSpec{Component: c.Type, ParentRef: &v1beta1.ParentRef{Name: w.Key.Name}},
	}
	r.Spec.Replicas = new(c.projectedCount())
	c.stamp(r, w, pause)
	return r
}

// stamp sets every field that is ours. Marks move even when nothing renders, so
// that a reader can tell that the replica reflects the service as it is.
func (c *component) stamp(r *v1beta1.InferenceReplica, w *World, pause rollout.Pause) {
	r.Labels = withAll(r.Labels, map[string]string{
		v1beta1.InferenceServiceLabel: w.Key.Name,
		v1beta1.ComponentLabel:        string(c.Type),
		v1beta1.ManagedByLabel:        v1beta1.ManagedByOMENative,
	})
	r.Annotations = withAll(r.Annotations, map[string]string{
		v1beta1.ControllerWriteAnnotation:  "true",
		v1beta1.ParentGenerationAnnotation: strconv.FormatInt(w.Service.Generation, 10),
	})
	if !slices.Contains(r.Finalizers, v1beta1.InferenceReplicaFinalizer) {
		r.Finalizers = append(slices.Clone(r.Finalizers), v1beta1.InferenceReplicaFinalizer)
	}
	r.Spec.Pacing = c.pacing()
	r.Spec.Paused, r.Spec.PauseMode = pause != rollout.NotPaused, ""
	if pause == rollout.Freeze {
		r.Spec.PauseMode = v1beta1.PauseModeFreeze
	}
	if n, err := strconv.ParseInt(w.Service.Annotations[v1beta1.RevisionHistoryLimitAnnotation], 10, 32); err == nil && n > 0 {
		r.Spec.RevisionHistoryLimit = new(int32(n))
	} else {
		r.Spec.RevisionHistoryLimit = nil
	}
	if c.Template == nil {
		return
	}
	t := c.Template
	r.Annotations[runnersMark] = c.target.Name
	if len(t.ExcludedAnnotationKeys) > 0 {
		r.Annotations[v1beta1.RevisionExcludedAnnotationKeysAnnotation] = strings.Join(slices.Sorted(slices.Values(t.ExcludedAnnotationKeys)), ",")
	} else {
		delete(r.Annotations, v1beta1.RevisionExcludedAnnotationKeysAnnotation)
	}
	r.Spec.Runners = t.Runners
	r.Spec.MinReadySeconds = t.MinReadySeconds
	r.Spec.TopologyKey, r.Spec.TopologySpread, r.Spec.TopologySpreadKey = t.TopologyKey, t.TopologySpread, t.TopologySpreadKey
	r.Spec.PairingProtocol = t.PairingProtocol
	r.Spec.Lifecycle = &t.Lifecycle
	r.Spec.Autoscaler = t.Autoscaler
	if r.UID != "" {
		if n := c.projectedCount(); n != valueOr(r.Spec.Replicas, 0) {
			r.Spec.Replicas = new(n)
		}
	}
}

func valueOr(p *int32, other int32) int32 {
	if p == nil {
		return other
	}
	return *p
}

func withAll(m, add map[string]string) map[string]string {
	out := make(map[string]string, len(m)+len(add))
	maps.Copy(out, m)
	maps.Copy(out, add)
	return out
}

// release lets a deleted replica go once its pods are gone, or once they had their time.
func (c *component) release(w *World) {
	r := c.Replica
	if r == nil || r.DeletionTimestamp == nil || !slices.Contains(r.Finalizers, v1beta1.InferenceReplicaFinalizer) {
		return
	}
	left := 0
	for _, p := range c.Pods {
		if metav1.IsControlledBy(p, r) {
			left++
		}
	}
	if left == 0 && (c.unreadable != nil || (len(c.result.Rows) == 0 && len(c.result.Pods) == 0)) {
		c.out.RemoveFinalizer = true
		return
	}
	deadline := w.Settings.Lifecycle.TeardownDeadline
	if deadline <= 0 {
		if len(c.rows) > 0 && c.rows[0].Phase != v1beta1.InstanceDeleting {
			c.result.Events = append(c.result.Events, Event{Object: c.Type, Reason: v1beta1.EventTeardownBlocked,
				Message: fmt.Sprintf("waiting for %d pods; no teardown deadline is set", left)})
		}
		return
	}
	due := r.DeletionTimestamp.Add(deadline)
	if w.Now.Before(due) {
		if c.result.Wake.IsZero() || due.Before(c.result.Wake) {
			c.result.Wake = due
		}
		return
	}
	c.out.RemoveFinalizer = true
	c.result.Events = append(c.result.Events, Event{Object: c.Type, Warning: true, Reason: v1beta1.EventTeardownDeadlineExceeded,
		Message: fmt.Sprintf("%d pods of %s are left after %s; the replica goes without them, and the garbage collector deletes them", left, r.Name, deadline)})
}
