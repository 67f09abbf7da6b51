package validate

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"ome.io/ome/api/v1beta1"
)

func readsAutoscalers(s *v1beta1.InferenceService) any {
	return forComponents(s, func(_ v1beta1.ComponentType, e *v1beta1.ComponentExtensionSpec) any {
		// The idle count is compared with the minimum, so that is read as well, where there is one.
		var least *int
		if e.Autoscaler != nil && e.Autoscaler.KEDA != nil && e.Autoscaler.KEDA.IdleReplicaCount != nil {
			least = e.MinReplicas
		}
		return []any{e.Autoscaler, least}
	})
}

func checkAutoscalers(r *Result, s *v1beta1.InferenceService) {
	for _, c := range v1beta1.IsvcComponents(s) {
		e := s.Spec.Extension(c)
		if e.Autoscaler != nil {
			checkAutoscaler(r, component(c, ".autoscaler"), e.Autoscaler, e.MinReplicas)
		}
	}
}

func checkAutoscaler(r *Result, field string, a *v1beta1.ComponentAutoscaler, least *int) {
	switch a.Class {
	case v1beta1.AutoscalerHPA, v1beta1.AutoscalerKEDA, v1beta1.AutoscalerExternal, v1beta1.AutoscalerNone:
	default:
		r.refuse(field+".class", CodeAutoscalerClassUnknown, "%q is not a class; use HPA, KEDA, External or None", a.Class)
		return
	}
	if a.HPA != nil && a.Class != v1beta1.AutoscalerHPA {
		r.warn(field+".hpa", "", "has no effect with class %s", a.Class)
	}
	if a.KEDA != nil && a.Class != v1beta1.AutoscalerKEDA {
		r.warn(field+".keda", "", "has no effect with class %s", a.Class)
	}
	if a.HPA != nil {
		for i := range a.HPA.Metrics {
			checkMetric(r, fmt.Sprintf("%s.hpa.metrics[%d]", field, i), &a.HPA.Metrics[i])
		}
	}
	if a.Class == v1beta1.AutoscalerKEDA && (a.KEDA == nil || len(a.KEDA.Triggers) == 0) {
		r.refuse(field+".keda.triggers", CodeKedaTriggersRequired, "class KEDA needs a trigger; add one, or use class HPA")
	}
	if a.KEDA != nil && a.KEDA.IdleReplicaCount != nil {
		idle, floor := int(*a.KEDA.IdleReplicaCount), 1
		if least != nil {
			floor = *least
		}
		if idle < 0 || idle >= floor {
			r.refuse(field+".keda.idleReplicaCount", CodeKedaIdleBelowMin, "%d must be at least 0 and below minReplicas (%d)", idle, floor)
		}
	}
}

// checkMetric refuses what the API server would refuse in a HorizontalPodAutoscaler, since
// by then nobody is there to be told.
func checkMetric(r *Result, field string, m *autoscalingv2.MetricSpec) {
	malformed := func(at, format string, args ...any) {
		r.refuse(field+at, CodeHPAMetricMalformed, format, args...)
	}
	sources := []struct {
		kind autoscalingv2.MetricSourceType
		name string
		set  bool
	}{
		{autoscalingv2.ObjectMetricSourceType, "object", m.Object != nil},
		{autoscalingv2.PodsMetricSourceType, "pods", m.Pods != nil},
		{autoscalingv2.ResourceMetricSourceType, "resource", m.Resource != nil},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", m.ContainerResource != nil},
		{autoscalingv2.ExternalMetricSourceType, "external", m.External != nil},
	}
	known := false
	for _, s := range sources {
		switch {
		case s.kind == m.Type && !s.set:
			malformed("."+s.name, "is missing, and type is %s; set it", m.Type)
			return
		case s.kind != m.Type && s.set:
			malformed("."+s.name, "stands beside type %q; remove it, or change type", m.Type)
			return
		}
		known = known || s.kind == m.Type
	}
	if !known {
		malformed(".type", "%q is not a type; use Resource, ContainerResource, Pods, Object or External", m.Type)
		return
	}
	metric := func(at string, id *autoscalingv2.MetricIdentifier) {
		if id.Name == "" {
			malformed(at+".metric.name", "is empty; name the metric")
		}
	}
	switch m.Type {
	case autoscalingv2.ResourceMetricSourceType:
		if m.Resource.Name == "" {
			malformed(".resource.name", "is empty; name a resource, such as cpu")
		}
		checkTarget(malformed, ".resource.target", &m.Resource.Target, autoscalingv2.UtilizationMetricType, autoscalingv2.AverageValueMetricType)
	case autoscalingv2.ContainerResourceMetricSourceType:
		if m.ContainerResource.Name == "" {
			malformed(".containerResource.name", "is empty; name a resource, such as cpu")
		}
		if len(validation.IsDNS1123Label(m.ContainerResource.Container)) > 0 {
			malformed(".containerResource.container", "%q is not the name of a container", m.ContainerResource.Container)
		}
		checkTarget(malformed, ".containerResource.target", &m.ContainerResource.Target, autoscalingv2.UtilizationMetricType, autoscalingv2.AverageValueMetricType)
	case autoscalingv2.PodsMetricSourceType:
		metric(".pods", &m.Pods.Metric)
		checkTarget(malformed, ".pods.target", &m.Pods.Target, autoscalingv2.AverageValueMetricType)
	case autoscalingv2.ObjectMetricSourceType:
		metric(".object", &m.Object.Metric)
		if m.Object.DescribedObject.Kind == "" || m.Object.DescribedObject.Name == "" {
			malformed(".object.describedObject", "needs kind and name")
		}
		checkTarget(malformed, ".object.target", &m.Object.Target, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType)
	case autoscalingv2.ExternalMetricSourceType:
		metric(".external", &m.External.Metric)
		checkTarget(malformed, ".external.target", &m.External.Target, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType)
	}
}

// checkTarget wants one of the allowed types, with its value and no other.
func checkTarget(malformed func(at, format string, args ...any), at string, t *autoscalingv2.MetricTarget, allowed ...autoscalingv2.MetricTargetType) {
	good := false
	for _, kind := range allowed {
		good = good || kind == t.Type
	}
	if !good {
		malformed(at+".type", "%q is not a target of this metric; use one of %v", t.Type, allowed)
		return
	}
	values := []struct {
		kind     autoscalingv2.MetricTargetType
		name     string
		set      bool
		positive bool
	}{
		{autoscalingv2.UtilizationMetricType, "averageUtilization", t.AverageUtilization != nil, t.AverageUtilization != nil && *t.AverageUtilization > 0},
		{autoscalingv2.AverageValueMetricType, "averageValue", t.AverageValue != nil, t.AverageValue != nil && t.AverageValue.Sign() > 0},
		{autoscalingv2.ValueMetricType, "value", t.Value != nil, t.Value != nil && t.Value.Sign() > 0},
	}
	for _, v := range values {
		switch {
		case v.kind == t.Type && !v.set:
			malformed(at+"."+v.name, "is missing, and type is %s; set it", t.Type)
		case v.kind == t.Type && !v.positive:
			malformed(at+"."+v.name, "must be above 0")
		case v.kind != t.Type && v.set:
			malformed(at+"."+v.name, "stands beside type %s; remove it, or change type", t.Type)
		}
	}
}

// checkKEDA refuses a class that this cluster can't serve. Stored objects are let be.
func checkKEDA(r *Result, s, old *v1beta1.InferenceService, opts Options) {
	if opts.KEDAServed {
		return
	}
	class := func(s *v1beta1.InferenceService, c v1beta1.ComponentType) v1beta1.AutoscalerClass {
		if s == nil || s.Spec.Extension(c) == nil || s.Spec.Extension(c).Autoscaler == nil {
			return ""
		}
		return s.Spec.Extension(c).Autoscaler.Class
	}
	for _, c := range v1beta1.IsvcComponents(s) {
		now := class(s, c)
		if now == v1beta1.AutoscalerKEDA && now != class(old, c) {
			r.refuse(component(c, ".autoscaler.class"), "", "KEDA needs the CRD scaledobjects.keda.sh, which wasn't there when this manager started: install KEDA and restart the manager, or use HPA, External or None")
		}
	}
}
