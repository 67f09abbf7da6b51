package validate

import (
	"ome.io/ome/api/v1beta1"
)

func readsBounds(s *v1beta1.InferenceService) any {
	return forComponents(s, func(_ v1beta1.ComponentType, e *v1beta1.ComponentExtensionSpec) any {
		return []any{e.MinReplicas, e.MaxReplicas, e.Autoscaler != nil && e.Autoscaler.KEDA != nil}
	})
}

func checkBounds(r *Result, s *v1beta1.InferenceService) {
	for _, c := range v1beta1.IsvcComponents(s) {
		e := s.Spec.Extension(c)
		least, most := e.MinReplicas, e.MaxReplicas
		if least != nil && *least < 0 {
			r.refuse(component(c, ".minReplicas"), "", "%d is negative; use 1 or more", *least)
			continue
		}
		if most != nil && *most < 0 {
			r.refuse(component(c, ".maxReplicas"), "", "%d is negative; use 1 or more", *most)
			continue
		}
		if least != nil && *least == 0 && (e.Autoscaler == nil || e.Autoscaler.KEDA == nil) {
			r.refuse(component(c, ".minReplicas"), CodeInvalidScaleToZero, "0 needs a scaler that can start from zero (autoscaler.keda); use 1 or more")
			continue
		}
		// A maximum of zero counts as unset.
		if least != nil && most != nil && *most > 0 && *least > *most {
			r.refuse(component(c, ".minReplicas"), "", "%d must be <= maxReplicas (%d)", *least, *most)
		}
	}
}

func readsDisruption(s *v1beta1.InferenceService) any {
	return forComponents(s, func(_ v1beta1.ComponentType, e *v1beta1.ComponentExtensionSpec) any {
		return []any{e.MinAvailable, e.MaxUnavailable}
	})
}

func checkDisruption(r *Result, s *v1beta1.InferenceService) {
	for _, c := range v1beta1.IsvcComponents(s) {
		if e := s.Spec.Extension(c); e.MinAvailable != nil && e.MaxUnavailable != nil {
			r.refuse(component(c, ""), "", "minAvailable and maxUnavailable are both set; a disruption budget has one of them")
		}
	}
}

func readsScaling(s *v1beta1.InferenceService) any {
	return []any{s.Spec.ScalingPolicy, s.Annotations[v1beta1.AutoscalerClassAnnotation], forComponents(s, func(_ v1beta1.ComponentType, e *v1beta1.ComponentExtensionSpec) any {
		return e.Autoscaler != nil
	})}
}

func checkScaling(r *Result, s *v1beta1.InferenceService) {
	if p := s.Spec.ScalingPolicy; p != nil && p.Mode != "" && p.Mode != v1beta1.ScalingIndependent {
		r.refuse("spec.scalingPolicy.mode", CodeScalingModeNotImplemented, "%q is not implemented; use Independent", p.Mode)
	}
	if s.Annotations[v1beta1.AutoscalerClassAnnotation] == "" {
		return
	}
	for _, c := range v1beta1.IsvcComponents(s) {
		if s.Spec.Extension(c).Autoscaler != nil {
			r.refuse("metadata.annotations["+v1beta1.AutoscalerClassAnnotation+"]", CodeAutoscalerAnnotationConflict,
				"the older way to choose a scaler stands beside %s; remove the annotation", component(c, ".autoscaler"))
			return
		}
	}
}
