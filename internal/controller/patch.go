package controller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
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
func gatePatch(pod *corev1.Pod, serving bool, reason string, now metav1.Time) ([]byte, error) {
	status := corev1.ConditionFalse
	if serving {
		status = corev1.ConditionTrue
	}
	type condition struct {
		Type               corev1.PodConditionType `json:"type"`
		Status             corev1.ConditionStatus  `json:"status"`
		Reason             string                  `json:"reason,omitempty"`
		LastTransitionTime metav1.Time             `json:"lastTransitionTime"`
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status": map[string]any{"conditions": []condition{{
			Type: v1beta1.ServingReadinessGate, Status: status, Reason: reason, LastTransitionTime: now,
		}}},
	})
}

// removeAnnotationPatch removes a mailbox, unless it holds a newer request.
func removeAnnotationPatch(key, value string) ([]byte, error) {
	path := "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	return json.Marshal([]map[string]any{
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
