package keda

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ome.io/ome/api/v1beta1"
)

// The kind's names.
const (
	Group            = "keda.sh"
	Version          = "v1alpha1"
	ScaledObjectKind = "ScaledObject"
	// ScaledObjectCRD is the name of the CRD.
	ScaledObjectCRD = "scaledobjects." + Group
)

// GroupVersion identifies the group and version of this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// AddToScheme adds the kind to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ScaledObject{}, &ScaledObjectList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// ScaledObject asks KEDA to scale something by the events of triggers.
type ScaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ScaledObjectSpec   `json:"spec"`
	Status ScaledObjectStatus `json:"status,omitempty"`
}

// ScaledObjectSpec says what to scale, between which counts and by what.
type ScaledObjectSpec struct {
	ScaleTargetRef   v1beta1.ScaleTargetRef `json:"scaleTargetRef"`
	MinReplicaCount  *int32                 `json:"minReplicaCount,omitempty"`
	MaxReplicaCount  *int32                 `json:"maxReplicaCount,omitempty"`
	v1beta1.KEDASpec `json:",inline"`
}

// ScaledObjectStatus is KEDA's.
type ScaledObjectStatus struct {
	// HpaName is the HorizontalPodAutoscaler that KEDA made.
	HpaName    string      `json:"hpaName,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is KEDA's own form: it carries no time.
type Condition struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
}

// ScaledObjectList is a list of them.
type ScaledObjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ScaledObject `json:"items"`
}

// DeepCopy returns a copy that shares nothing.
func (in *ScaledObject) DeepCopy() *ScaledObject {
	if in == nil {
		return nil
	}
	out := &ScaledObject{TypeMeta: in.TypeMeta, ObjectMeta: *in.ObjectMeta.DeepCopy()}
	out.Spec = ScaledObjectSpec{
		ScaleTargetRef: in.Spec.ScaleTargetRef, KEDASpec: *in.Spec.KEDASpec.DeepCopy(),
		MinReplicaCount: copied(in.Spec.MinReplicaCount), MaxReplicaCount: copied(in.Spec.MaxReplicaCount),
	}
	out.Status = in.Status
	out.Status.Conditions = append([]Condition(nil), in.Status.Conditions...)
	return out
}

// DeepCopyObject returns a copy that shares nothing.
func (in *ScaledObject) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopyObject returns a copy that shares nothing.
func (in *ScaledObjectList) DeepCopyObject() runtime.Object {
	if in == nil {
		return (*ScaledObjectList)(nil)
	}
	out := &ScaledObjectList{TypeMeta: in.TypeMeta, ListMeta: *in.ListMeta.DeepCopy()}
	for i := range in.Items {
		out.Items = append(out.Items, *in.Items[i].DeepCopy())
	}
	return out
}

func copied(p *int32) *int32 {
	if p == nil {
		return nil
	}
	n := *p
	return &n
}
