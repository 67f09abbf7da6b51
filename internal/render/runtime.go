package render

import (
	"ome.io/ome/api/v1beta1"
)

// Runtime is the runtime that a reference leads to.
type Runtime struct {
	Spec *v1beta1.ServingRuntimeSpec
	Name string
	// Kind is the kind of the object that was found, which may differ from the reference's.
	Kind string
}

// PickRuntime resolves a reference against the objects of its name, of which either or both may be
// nil: a reference to a cluster runtime looks among cluster runtimes first and then in the
// namespace, one to a ServingRuntime in the namespace only. A nil reference asks for a choice by
// model, which isn't supported yet. The error is an *Error.
func PickRuntime(ref *v1beta1.ServingRuntimeRef, cluster *v1beta1.ClusterServingRuntime, local *v1beta1.ServingRuntime) (Runtime, error) {
	if ref == nil || ref.Name == "" {
		return Runtime{}, fail(v1beta1.ReasonRuntimeSelectionFailed,
			"choosing a runtime by the model is not supported yet; set spec.runtime.name")
	}
	kind := v1beta1.ClusterServingRuntimeKind
	if ref.Kind != nil && *ref.Kind != "" {
		kind = *ref.Kind
	}
	var found Runtime
	var annotations map[string]string
	switch kind {
	case v1beta1.ClusterServingRuntimeKind:
		switch {
		case cluster != nil:
			found = Runtime{Spec: &cluster.Spec, Name: cluster.Name, Kind: v1beta1.ClusterServingRuntimeKind}
			annotations = cluster.Annotations
		case local != nil:
			found = Runtime{Spec: &local.Spec, Name: local.Name, Kind: v1beta1.ServingRuntimeKind}
			annotations = local.Annotations
		default:
			return Runtime{}, fail(v1beta1.ReasonRuntimeNotFound,
				"spec.runtime.name: no ClusterServingRuntime %q, nor a ServingRuntime of that name in the namespace; create it or name another", ref.Name)
		}
	case v1beta1.ServingRuntimeKind:
		if local == nil {
			return Runtime{}, fail(v1beta1.ReasonRuntimeNotFound,
				"spec.runtime.name: no ServingRuntime %q in the namespace; create it, name another, or set spec.runtime.kind to ClusterServingRuntime", ref.Name)
		}
		found = Runtime{Spec: &local.Spec, Name: local.Name, Kind: v1beta1.ServingRuntimeKind}
		annotations = local.Annotations
	default:
		return Runtime{}, fail(v1beta1.ReasonRuntimeSelectionFailed,
			"spec.runtime.kind: %q is not ClusterServingRuntime or ServingRuntime", kind)
	}
	if d := found.Spec.Disabled; d != nil && *d {
		return Runtime{}, fail(v1beta1.ReasonRuntimeDisabled, "%s %q is disabled; enable it or name another in spec.runtime.name", found.Kind, found.Name)
	}
	if parent := annotations[v1beta1.InheritFromAnnotation]; parent != "" {
		return Runtime{}, fail(v1beta1.ReasonRuntimeSelectionFailed,
			"%s %q inherits from %q (annotation %s), which is not supported yet; name a runtime that stands alone",
			found.Kind, found.Name, parent, v1beta1.InheritFromAnnotation)
	}
	if len(found.Spec.Containers) > 0 {
		return Runtime{}, fail(v1beta1.ReasonRuntimeSelectionFailed,
			"%s %q has a flat template (spec.containers), which is not supported; move it to spec.engineConfig", found.Kind, found.Name)
	}
	return found, nil
}

// Model is the model that a reference leads to. Spec is nil when the service names none.
type Model struct {
	Spec *v1beta1.BaseModelSpec
	Name string
	Kind string
}

// PickModel resolves a reference against the object of its kind and name. There is no fallback from
// one kind to the other. The error is an *Error.
func PickModel(ref *v1beta1.ModelRef, cluster *v1beta1.ClusterBaseModel, local *v1beta1.BaseModel) (Model, error) {
	if ref == nil {
		return Model{}, nil
	}
	kind := v1beta1.ClusterBaseModelKind
	if ref.Kind != nil && *ref.Kind != "" {
		kind = *ref.Kind
	}
	found := Model{Name: ref.Name, Kind: kind}
	switch {
	case kind != v1beta1.ClusterBaseModelKind && kind != v1beta1.BaseModelKind:
		return Model{}, fail(v1beta1.ReasonModelNotFound, "spec.model.kind: %q is not ClusterBaseModel or BaseModel", kind)
	case kind == v1beta1.ClusterBaseModelKind && cluster != nil:
		found.Spec = &cluster.Spec
	case kind == v1beta1.BaseModelKind && local != nil:
		found.Spec = &local.Spec
	default:
		return Model{}, fail(v1beta1.ReasonModelNotFound, "spec.model.name: no %s %q; create it or name another", kind, ref.Name)
	}
	if d := found.Spec.Disabled; d != nil && *d {
		return Model{}, fail(v1beta1.ReasonModelDisabled, "%s %q is disabled; enable it or name another in spec.model.name", kind, ref.Name)
	}
	return found, nil
}
