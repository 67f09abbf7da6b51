package controller

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// difference returns the merge patch that turns before into after, bound to the
// version that before was read at; nil when there is none. Fields that this
// release doesn't know are in neither, so they stay.
func difference(before, after any, version string) ([]byte, error) {
	old, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	next, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(old, next) {
		return nil, nil
	}
	raw, err := jsonpatch.CreateMergePatch(old, next)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(raw, []byte("{}")) {
		return nil, nil
	}
	var patch map[string]json.RawMessage
	if err := json.Unmarshal(raw, &patch); err != nil {
		return nil, err
	}
	meta := map[string]json.RawMessage{}
	if m, ok := patch["metadata"]; ok {
		if err := json.Unmarshal(m, &meta); err != nil {
			return nil, err
		}
	}
	if meta["resourceVersion"], err = json.Marshal(version); err != nil {
		return nil, err
	}
	if patch["metadata"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	return json.Marshal(patch)
}

// statusPart, replicaPart and servicePart are what the respective patches compare.
type statusPart struct {
	Status any `json:"status"`
}

type marks struct {
	Labels          map[string]string       `json:"labels,omitempty"`
	Annotations     map[string]string       `json:"annotations,omitempty"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
	Finalizers      []string                `json:"finalizers,omitempty"`
}

type specPart struct {
	Metadata marks `json:"metadata"`
	Spec     any   `json:"spec"`
}

func marksOf(o metav1.Object) marks {
	return marks{
		Labels:          o.GetLabels(),
		Annotations:     o.GetAnnotations(),
		OwnerReferences: o.GetOwnerReferences(),
		Finalizers:      o.GetFinalizers(),
	}
}

func replicaPart(r *v1beta1.InferenceReplica) specPart {
	return specPart{Metadata: marksOf(r), Spec: &r.Spec}
}

func servicePart(s *corev1.Service) specPart {
	return specPart{Metadata: marksOf(s), Spec: &s.Spec}
}

// gatePatch sets our readiness gate and nothing else. UID and version bind it to
// the pod that was judged: the kubelet writes the same status.
func gatePatch(pod *corev1.Pod, serving bool, reason, message string, now metav1.Time) ([]byte, error) {
	status := corev1.ConditionFalse
	if serving {
		status = corev1.ConditionTrue
	}
	type condition struct {
		Type               corev1.PodConditionType `json:"type"`
		Status             corev1.ConditionStatus  `json:"status"`
		Reason             string                  `json:"reason,omitempty"`
		Message            string                  `json:"message"`
		LastTransitionTime metav1.Time             `json:"lastTransitionTime"`
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status": map[string]any{"conditions": []condition{{
			Type: v1beta1.ServingReadinessGate, Status: status, Reason: reason, Message: message, LastTransitionTime: now,
		}}},
	})
}

// podPatch changes what a PodUpdate names, in one request bound to the pod that was
// judged. A strategic merge finds containers by their names and puts them into the
// order of the patch; those of a pod can't change places, so it has the pod's order.
func podPatch(pod *corev1.Pod, change *core.PodPatch) ([]byte, error) {
	if change == nil || len(change.Images)+len(change.Labels)+len(change.Annotations) == 0 {
		return nil, errors.New("an update that changes nothing")
	}
	type container struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	}
	var containers []container
	for i := range pod.Spec.Containers {
		name := pod.Spec.Containers[i].Name
		if image, ok := change.Images[name]; ok {
			containers = append(containers, container{name, image})
		}
	}
	if len(containers) != len(change.Images) {
		return nil, fmt.Errorf("an update of the images %v: not all of them are containers of the pod", change.Images)
	}
	meta := map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion}
	if len(change.Labels) > 0 {
		meta["labels"] = change.Labels
	}
	if len(change.Annotations) > 0 {
		meta["annotations"] = change.Annotations // a nil value becomes null, which removes
	}
	patch := map[string]any{"metadata": meta}
	if len(containers) > 0 {
		patch["spec"] = map[string]any{"containers": containers}
	}
	return json.Marshal(patch)
}

// removeAnnotationPatch removes a mailbox, unless it holds a newer request or its
// object is another one by now.
func removeAnnotationPatch(uid types.UID, key, value string) ([]byte, error) {
	path := "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	return json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": uid},
		{"op": "test", "path": path, "value": value},
		{"op": "remove", "path": path},
	})
}

// finalizerPatch releases an object from one finalizer.
func finalizerPatch(o client.Object, finalizer string) ([]byte, error) {
	keep := []string{}
	for _, f := range o.GetFinalizers() {
		if f != finalizer {
			keep = append(keep, f)
		}
	}
	if len(keep) == len(o.GetFinalizers()) {
		return nil, nil
	}
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": o.GetResourceVersion(), "finalizers": keep},
	})
	if err != nil {
		return nil, fmt.Errorf("finalizers of %s: %w", keyOf(o), err)
	}
	return raw, nil
}
