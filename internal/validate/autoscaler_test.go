package validate

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"ome.io/ome/api/v1beta1"
)

func hpa(metrics ...autoscalingv2.MetricSpec) *v1beta1.ComponentAutoscaler {
	return &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerHPA, HPA: &v1beta1.HPASpec{Metrics: metrics}}
}

func kedaBy(triggers ...string) *v1beta1.ComponentAutoscaler {
	k := &v1beta1.KEDASpec{}
	for _, kind := range triggers {
		k.Triggers = append(k.Triggers, v1beta1.KEDATrigger{Type: kind, Metadata: map[string]string{"a": "b"}})
	}
	return &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerKEDA, KEDA: k}
}

func resourceMetric(name string, t autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceName(name), Target: t}}
}

func externalMetric(name string, t autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: name}, Target: t}}
}

func utilization(percent int32) autoscalingv2.MetricTarget {
	return autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}
}

func average(value string) autoscalingv2.MetricTarget {
	return autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: ptr.To(resource.MustParse(value))}
}

// TestKEDAIsAdmittedWhereItIs: the only difference is what the cluster serves.
func TestKEDAIsAdmittedWhereItIs(t *testing.T) {
	s := sample(t)
	s.Spec.Engine.Autoscaler = kedaBy("cron")
	s.Spec.Engine.MinReplicas = ptr.To(0) // an Instance count has no zero; KEDA's block allows the word
	for _, served := range []bool{false, true} {
		if r := InferenceService(s, nil, Options{KEDAServed: served}); r.OK() != served {
			t.Errorf("served %t: %s", served, verdict(r))
		}
	}
}

// TestRuntimeAutoscalers: a runtime's template is held to the same rules, under its own names.
func TestRuntimeAutoscalers(t *testing.T) {
	rt := &v1beta1.ClusterServingRuntime{Spec: v1beta1.ServingRuntimeSpec{EngineConfig: &v1beta1.EngineSpec{}}}
	rt.Spec.EngineConfig.Autoscaler = hpa(resourceMetric("", utilization(50)))
	r := ClusterServingRuntime(rt, nil, Options{})
	if len(r.Errors) != 1 || r.Errors[0].Code != CodeHPAMetricMalformed || r.Errors[0].Field != "spec.engineConfig.autoscaler.hpa.metrics[0].resource.name" {
		t.Errorf("got %s", verdict(r))
	}
	rt.Spec.EngineConfig.Autoscaler = kedaBy("cron")
	for _, served := range []bool{false, true} {
		if r := ClusterServingRuntime(rt, nil, Options{KEDAServed: served}); r.OK() != served {
			t.Errorf("served %t: %s", served, verdict(r))
		}
	}
}
