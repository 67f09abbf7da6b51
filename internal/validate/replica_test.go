package validate

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ome.io/ome/api/v1beta1"
)

func projectedReplica() *v1beta1.InferenceReplica {
	return &v1beta1.InferenceReplica{
		ObjectMeta: metav1.ObjectMeta{
			Name: "mistral-pd-engine", Namespace: "mistral-demo",
			Annotations: map[string]string{v1beta1.ControllerWriteAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "ome.io/v1beta1", Kind: v1beta1.InferenceServiceKind, Name: "mistral-pd", UID: "1", Controller: ptr.To(true),
			}},
		},
		Spec: v1beta1.InferenceReplicaSpec{Component: v1beta1.EngineComponent, ParentRef: &v1beta1.ParentRef{Name: "mistral-pd"}},
	}
}

func requested(key, value string) *v1beta1.InferenceReplica {
	r := projectedReplica()
	r.Annotations[key] = value
	return r
}

func TestInferenceReplicaMessages(t *testing.T) {
	standalone := func() *v1beta1.InferenceReplica {
		return &v1beta1.InferenceReplica{
			ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: "demo"},
			Spec:       v1beta1.InferenceReplicaSpec{Component: v1beta1.EngineComponent},
		}
	}
	cases := []struct {
		name    string
		old     *v1beta1.InferenceReplica
		change  func(*v1beta1.InferenceReplica)
		from    *v1beta1.InferenceReplica
		manager bool
	}{
		{name: "manager makes one", from: projectedReplica(), manager: true},
		{name: "somebody makes a projected one", from: projectedReplica()},
		{name: "somebody makes a standalone one", from: standalone()},
		{name: "component that is none", from: standalone(), change: func(r *v1beta1.InferenceReplica) { r.Spec.Component = "encoder" }, manager: true},
		{name: "manager writes the spec", old: projectedReplica(), change: func(r *v1beta1.InferenceReplica) { r.Spec.Paused = true }, manager: true},
		{name: "somebody writes the spec", old: projectedReplica(), change: func(r *v1beta1.InferenceReplica) { r.Spec.Paused = true }},
		{name: "somebody writes the spec of one on its way out", old: projectedReplica(), change: func(r *v1beta1.InferenceReplica) {
			r.DeletionTimestamp = &metav1.Time{}
			r.Spec.Paused = true
		}},
		{name: "somebody takes the owner away", old: projectedReplica(), change: func(r *v1beta1.InferenceReplica) { r.OwnerReferences = nil }},
		{name: "somebody adopts a standalone one", old: standalone(), change: func(r *v1beta1.InferenceReplica) {
			r.OwnerReferences = projectedReplica().OwnerReferences
		}},
		{name: "component changes", old: projectedReplica(), change: func(r *v1beta1.InferenceReplica) { r.Spec.Component = v1beta1.DecoderComponent }, manager: true},
		{name: "parent changes", old: projectedReplica(), change: func(r *v1beta1.InferenceReplica) { r.Spec.ParentRef = nil }, manager: true},
		{name: "request to release", old: projectedReplica(), change: func(r *v1beta1.InferenceReplica) {
			r.Annotations[v1beta1.ReleaseHeldRevisionAnnotation] = "mistral-pd-engine-0a1b2c3d"
		}},
		{name: "request to release by the bare hash, before one is answered", old: requested(v1beta1.ReleaseHeldRevisionAnnotation, "aaaaaaaa"), change: func(r *v1beta1.InferenceReplica) {
			r.Annotations[v1beta1.ReleaseHeldRevisionAnnotation] = "0a1b2c3d"
		}},
		{name: "request to reset", old: projectedReplica(), change: func(r *v1beta1.InferenceReplica) {
			r.Annotations[v1beta1.ResetInstancesAnnotation] = "0,3"
		}},
		{name: "request taken back", old: requested(v1beta1.ResetInstancesAnnotation, v1beta1.ResetAllInstances), change: func(r *v1beta1.InferenceReplica) {
			delete(r.Annotations, v1beta1.ResetInstancesAnnotation)
		}},
		{name: "misspelt request to reset", old: projectedReplica(), change: func(r *v1beta1.InferenceReplica) {
			r.Annotations["ome.io/reset-instance"] = v1beta1.ResetAllInstances
		}},
		{name: "misspelt request", old: projectedReplica(), change: func(r *v1beta1.InferenceReplica) {
			r.Annotations["ome.io/release-held-revisions"] = "mistral-pd-engine-0a1b2c3d"
		}},
		{name: "finalizer removed", old: projectedReplica(), change: func(r *v1beta1.InferenceReplica) {
			r.DeletionTimestamp = &metav1.Time{}
			r.Finalizers = nil
		}},
	}
	var b strings.Builder
	for _, tc := range cases {
		r := tc.from
		if tc.old != nil {
			r = tc.old.DeepCopy()
		}
		if tc.change != nil {
			tc.change(r)
		}
		fmt.Fprintf(&b, "%s\n%s", tc.name, verdict(InferenceReplica(r, tc.old, Options{FromManager: tc.manager})))
	}
	golden(t, "replica.golden", b.String())
}
