package validate

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// InferenceReplica judges a replica. old is nil on create. Writes to status and to the scale
// subresource don't come here, and deletes are never judged.
func InferenceReplica(ir, old *v1beta1.InferenceReplica, opts Options) Result {
	var r Result
	if !v1beta1.IsComponent(ir.Spec.Component) && (old == nil || old.Spec.Component != ir.Spec.Component) {
		r.refuse("spec.component", "", "%q is not a component; use router, engine or decoder", ir.Spec.Component)
	}
	if old != nil {
		if ir.Spec.Component != old.Spec.Component {
			r.refuse("spec.component", "", "%q can't become %q; delete the replica and make another", old.Spec.Component, ir.Spec.Component)
		}
		if !equality.Semantic.DeepEqual(ir.Spec.ParentRef, old.Spec.ParentRef) {
			r.refuse("spec.parentRef", "", "can't change; delete the replica and make another")
		}
	}
	if opts.FromManager {
		return r
	}
	switch {
	case old == nil && projected(ir):
		r.refuse("", "", "InferenceReplica %s/%s would belong to InferenceService %q, whose replicas only the manager makes; edit the InferenceService instead",
			ir.Namespace, ir.Name, parentName(ir))
	case old == nil:
		r.refuse("", "", "InferenceReplica %s/%s has no InferenceService, and a replica on its own is not supported yet; create an InferenceService instead",
			ir.Namespace, ir.Name)
	case projected(old) || projected(ir):
		owner := parentName(old)
		if owner == "" {
			owner = parentName(ir)
		}
		// Owner references decide what belongs to whom, so nobody else may touch them either.
		if !equality.Semantic.DeepEqual(ir.Spec, old.Spec) || !equality.Semantic.DeepEqual(controller(ir), controller(old)) {
			r.refuse("", "", "InferenceReplica %s/%s belongs to InferenceService %q, and only the manager writes its spec; edit the InferenceService instead",
				ir.Namespace, ir.Name, owner)
		}
	}
	var before map[string]string
	if old != nil {
		before = old.Annotations
	}
	if ir.DeletionTimestamp == nil {
		checkAnnotations(&r, ir.Annotations, before)
	}
	return r
}

// projected replicas belong to a service; the others stand alone.
func projected(ir *v1beta1.InferenceReplica) bool {
	return ir.Spec.ParentRef != nil || controller(ir) != nil
}

func controller(ir *v1beta1.InferenceReplica) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(ir)
	if ref == nil || ref.Kind != v1beta1.InferenceServiceKind {
		return nil
	}
	return ref
}

func parentName(ir *v1beta1.InferenceReplica) string {
	if ir.Spec.ParentRef != nil {
		return ir.Spec.ParentRef.Name
	}
	if ref := controller(ir); ref != nil {
		return ref.Name
	}
	return ""
}
