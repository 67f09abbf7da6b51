package validate

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"ome.io/ome/api/v1beta1"
)

// This file refuses what the API has and the manager doesn't run yet, because accepting it and
// doing nothing would be worse. A row goes when the work behind it is done; nothing else needs to
// change. Rows follow the ratchet of every rule: an unchanged value in a stored object is left alone.

// notYet is one field. In its path, <component> stands for each of them.
type notYet struct {
	field string
	// value returns what is set, or nil.
	value func(subject) any
	// way says what to do instead.
	way string
	// code is the reason code, for the few refusals that have one.
	code string
}

// subject is what a row looks at: the service, and the component in turn.
type subject struct {
	service   *v1beta1.InferenceService
	extension *v1beta1.ComponentExtensionSpec
	engine    *v1beta1.EngineSpec
}

var notYetInService = []notYet{
	{field: "spec.replicaRefs", value: func(s subject) any { return s.service.Spec.ReplicaRefs }, way: "declare the components instead"},
	{field: "spec.placement", value: func(s subject) any { return s.service.Spec.Placement }, way: "remove it; the service runs in this cluster"},
	{field: "spec.routing", value: func(s subject) any { return s.service.Spec.Routing }, way: "remove it"},
	{field: "spec.traffic", value: func(s subject) any { return s.service.Spec.Traffic }, way: "remove it; requests follow ready pods"},
	{field: "spec.acceleratorSelector", value: func(s subject) any { return s.service.Spec.AcceleratorSelector }, way: "request the resource in the runner instead"},
	{field: "spec.model.fineTunedWeights", value: func(s subject) any {
		return when(s.service.Spec.Model != nil, func() any { return s.service.Spec.Model.FineTunedWeights })
	}, way: "remove it"},
	{field: "spec.model.overlays", value: func(s subject) any {
		return when(s.service.Spec.Model != nil, func() any { return s.service.Spec.Model.Overlays })
	}, way: "remove it"},
	{field: "spec.runtime", value: func(s subject) any {
		if s.service.Spec.Model != nil && s.service.Spec.Runtime == nil {
			return "absent"
		}
		return nil
	}, way: "choosing a runtime by the model isn't there yet: set spec.runtime.name"},
	{field: "spec.runtime.autoSync", value: func(s subject) any {
		return when(s.service.Spec.Runtime != nil && s.service.Spec.Runtime.AutoSync != nil && !*s.service.Spec.Runtime.AutoSync,
			func() any { return "false" })
	}, way: "remove it; the service follows its runtime"},
	{field: "spec.rollout.trafficRouting", value: func(s subject) any {
		return when(s.service.Spec.Rollout != nil && s.service.Spec.Rollout.TrafficRouting == v1beta1.TrafficGatewayAPI,
			func() any { return s.service.Spec.Rollout.TrafficRouting })
	}, way: "use Recorded, or remove it"},
}

var notYetInComponent = []notYet{
	{field: "<component>.leader", value: func(s subject) any { return s.engine.Leader }, way: "multi-pod Instances aren't there yet: use one pod per Instance"},
	{field: "<component>.worker", value: func(s subject) any { return s.engine.Worker }, way: "multi-pod Instances aren't there yet: use one pod per Instance"},
	{field: "<component>.acceleratorOverride", value: func(s subject) any { return s.engine.AcceleratorOverride }, way: "request the resource in the runner instead"},
	{field: "<component>.autoscalerPolicyRef", value: func(s subject) any { return s.extension.AutoscalerPolicyRef }, way: "AutoscalerPolicy is off in this installation: remove it", code: CodeAutoscalerPolicyFeatureDisabled},
	{field: "<component>.annotations[" + v1beta1.DeploymentModeAnnotation + "]", value: func(s subject) any {
		mode := v1beta1.DeploymentMode(s.extension.Annotations[v1beta1.DeploymentModeAnnotation])
		return when(mode == v1beta1.MultiNodeMode || mode == v1beta1.VirtualDeploymentMode, func() any { return mode })
	}, way: "use OMENative"},
}

// noEffectYet is accepted with a warning: the service works without it.
var noEffectYet = []notYet{
	{field: "<component>.timeoutSeconds", value: func(s subject) any { return s.extension.TimeoutSeconds }, way: "no route is made that could apply it"},
	{field: "<component>.minAvailable", value: func(s subject) any { return s.extension.MinAvailable }, way: "no disruption budget is made"},
	{field: "<component>.maxUnavailable", value: func(s subject) any { return s.extension.MaxUnavailable }, way: "no disruption budget is made"},
	{field: "<component>.topologySpread", value: func(s subject) any {
		return when(s.engine.TopologySpread != "", func() any { return s.engine.TopologySpread })
	}, way: "Instances are spread by the scheduler's own rules; set topologySpreadConstraints in the pod template"},
	{field: "spec.ttlSecondsAfterCreation", value: func(s subject) any { return s.service.Spec.TTLSecondsAfterCreation }, way: "the service isn't deleted by its age"},
}

// requestsNotYet are annotations that ask the manager for something it can't do yet.
var requestsNotYet = []string{
	v1beta1.MigrationRequestAnnotationPrefix,
	v1beta1.RuntimeSyncAnnotation,
	v1beta1.TrafficDrainAnnotation,
	v1beta1.AcceleratorRequirementsAnnotation,
	v1beta1.ClusterSelectorAnnotation,
	v1beta1.AutoscalerClassAnnotation,
}

func when(set bool, value func() any) any {
	if !set {
		return nil
	}
	return value()
}

// checkUnsupported walks every table over the service and its components.
func checkUnsupported(r *Result, s, old *v1beta1.InferenceService) {
	before := func(where func(*v1beta1.InferenceService) (subject, bool)) *subject {
		if old == nil {
			return nil
		}
		if was, ok := where(old); ok {
			return &was
		}
		return nil
	}
	judge := func(rows []notYet, now subject, was *subject, expand func(string) string, report func(string, notYet)) {
		for _, row := range rows {
			value := row.value(now)
			if unset(value) || was != nil && equality.Semantic.DeepEqual(value, row.value(*was)) {
				continue
			}
			report(expand(row.field), row)
		}
	}
	refuse := func(field string, row notYet) { r.refuse(field, row.code, "not supported yet; %s", row.way) }
	warn := func(field string, row notYet) { r.warn(field, "", "has no effect yet: %s", row.way) }
	same := func(field string) string { return field }

	whole := func(s *v1beta1.InferenceService) (subject, bool) { return subject{service: s}, true }
	all, _ := whole(s)
	var inService, inComponent []notYet
	for _, row := range noEffectYet {
		if strings.HasPrefix(row.field, "<component>") {
			inComponent = append(inComponent, row)
		} else {
			inService = append(inService, row)
		}
	}
	judge(notYetInService, all, before(whole), same, refuse)
	judge(inService, all, before(whole), same, warn)

	for _, c := range v1beta1.IsvcComponents(s) {
		of := func(s *v1beta1.InferenceService) (subject, bool) {
			e := s.Spec.Extension(c)
			return subject{service: s, extension: e, engine: engineShape(s, c)}, e != nil
		}
		now, _ := of(s)
		expand := func(field string) string { return strings.Replace(field, "<component>", component(c, ""), 1) }
		judge(notYetInComponent, now, before(of), expand, refuse)
		judge(inComponent, now, before(of), expand, warn)
	}
}

// checkRequests refuses to store a request that nothing would answer.
func checkRequests(r *Result, annotations, before map[string]string) {
	for _, key := range changedKeys(annotations, before) {
		for _, request := range requestsNotYet {
			if key == request || request == v1beta1.MigrationRequestAnnotationPrefix && strings.HasPrefix(key, request) {
				r.refuse("metadata.annotations["+key+"]", "", "not supported yet; remove it")
			}
		}
	}
}

// engineShape is a component's block in the shape of an engine's; a router has none of its fields.
func engineShape(s *v1beta1.InferenceService, c v1beta1.ComponentType) *v1beta1.EngineSpec {
	switch {
	case c == v1beta1.EngineComponent && s.Spec.Engine != nil:
		return s.Spec.Engine
	case c == v1beta1.DecoderComponent && s.Spec.Decoder != nil:
		same := v1beta1.EngineSpec(*s.Spec.Decoder)
		return &same
	}
	return &v1beta1.EngineSpec{}
}

// unset sees through the typed nil of a pointer, and takes an empty list for nothing.
func unset(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Interface:
		return v.IsNil()
	case reflect.Slice:
		return v.Len() == 0
	}
	return false
}
