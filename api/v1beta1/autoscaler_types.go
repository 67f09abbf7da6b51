package v1beta1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// AutoscalerClass names what sets the Instance count of a component.
// +kubebuilder:validation:Enum=HPA;KEDA;External;None
type AutoscalerClass string

const (
	// AutoscalerHPA makes a HorizontalPodAutoscaler.
	AutoscalerHPA AutoscalerClass = "HPA"
	// AutoscalerKEDA makes a KEDA ScaledObject.
	AutoscalerKEDA AutoscalerClass = "KEDA"
	// AutoscalerExternal leaves the count to somebody else, through the scale subresource.
	AutoscalerExternal AutoscalerClass = "External"
	// AutoscalerNone keeps the count at the component's minimum.
	AutoscalerNone AutoscalerClass = "None"
)

// ComponentAutoscaler is the scaler of one component.
type ComponentAutoscaler struct {
	// class names what scales the component.
	// +required
	Class AutoscalerClass `json:"class,omitempty"`

	// hpa configures class HPA.
	// +optional
	HPA *HPASpec `json:"hpa,omitempty"`

	// keda configures class KEDA.
	// +optional
	KEDA *KEDASpec `json:"keda,omitempty"`
}

// HPASpec is passed to the HorizontalPodAutoscaler as it is.
type HPASpec struct {
	// metrics are what the scaler looks at. Unset means CPU at 80%.
	// +listType=atomic
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`

	// behavior bounds the speed of scaling.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}

// KEDASpec is passed to the ScaledObject as it is.
type KEDASpec struct {
	// triggers are the event sources.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +required
	Triggers []KEDATrigger `json:"triggers"`

	// advanced holds settings of the scaler that KEDA creates.
	// +optional
	Advanced *KEDAAdvanced `json:"advanced,omitempty"`

	// pollingInterval is the number of seconds between checks of the triggers.
	// +optional
	PollingInterval *int32 `json:"pollingInterval,omitempty"`

	// cooldownPeriod is the number of seconds before scaling back to the idle count.
	// +optional
	CooldownPeriod *int32 `json:"cooldownPeriod,omitempty"`

	// idleReplicaCount is the count while no trigger is active. It is below the minimum.
	// +optional
	IdleReplicaCount *int32 `json:"idleReplicaCount,omitempty"`

	// fallback is the count while a trigger can't be read.
	// +optional
	Fallback *KEDAFallback `json:"fallback,omitempty"`
}

// KEDATrigger is one event source.
type KEDATrigger struct {
	// type is the name of the KEDA scaler.
	// +kubebuilder:validation:MinLength=1
	// +required
	Type string `json:"type"`

	// metadata holds the settings of the scaler.
	// +required
	Metadata map[string]string `json:"metadata"`

	// name identifies the trigger in formulas.
	// +optional
	Name string `json:"name,omitempty"`

	// metricType is how the value is compared with the target.
	// +optional
	MetricType autoscalingv2.MetricTargetType `json:"metricType,omitempty"`

	// useCachedMetrics reuses the value of the last poll.
	// +optional
	UseCachedMetrics bool `json:"useCachedMetrics,omitempty"`

	// authenticationRef names the credentials of the source.
	// +optional
	AuthenticationRef *KEDAAuthenticationRef `json:"authenticationRef,omitempty"`
}

// KEDAAuthenticationRef names the credentials of a trigger.
type KEDAAuthenticationRef struct {
	// name of the object.
	// +required
	Name string `json:"name"`

	// kind of the object.
	// +kubebuilder:validation:Enum=TriggerAuthentication;ClusterTriggerAuthentication
	// +optional
	Kind string `json:"kind,omitempty"`
}

// KEDAAdvanced holds settings of the scaler that KEDA creates.
type KEDAAdvanced struct {
	// horizontalPodAutoscalerConfig shapes the scaler.
	// +optional
	HorizontalPodAutoscalerConfig *KEDAHPAConfig `json:"horizontalPodAutoscalerConfig,omitempty"`

	// restoreToOriginalReplicaCount sets the count back when the ScaledObject is deleted.
	// +optional
	RestoreToOriginalReplicaCount bool `json:"restoreToOriginalReplicaCount,omitempty"`

	// scalingModifiers combine several triggers into one value.
	// +optional
	ScalingModifiers *KEDAScalingModifiers `json:"scalingModifiers,omitempty"`
}

// KEDAHPAConfig shapes the scaler that KEDA creates.
type KEDAHPAConfig struct {
	// behavior bounds the speed of scaling.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`

	// name of the scaler.
	// +optional
	Name string `json:"name,omitempty"`
}

// KEDAScalingModifiers combine several triggers into one value.
type KEDAScalingModifiers struct {
	// formula over the names of the triggers.
	// +optional
	Formula string `json:"formula,omitempty"`

	// target the value is compared with.
	// +optional
	Target string `json:"target,omitempty"`

	// activationTarget is the value above which the scaler becomes active.
	// +optional
	ActivationTarget string `json:"activationTarget,omitempty"`

	// metricType is how the value is compared with the target.
	// +optional
	MetricType autoscalingv2.MetricTargetType `json:"metricType,omitempty"`
}

// KEDAFallback is the count while a trigger can't be read.
type KEDAFallback struct {
	// failureThreshold is the number of failed reads that start the fallback.
	// +kubebuilder:validation:Minimum=0
	// +required
	FailureThreshold int32 `json:"failureThreshold"`

	// replicas is the count to fall back to.
	// +kubebuilder:validation:Minimum=0
	// +required
	Replicas int32 `json:"replicas"`

	// behavior says how the count combines with the current one.
	// +kubebuilder:validation:Enum=static;currentReplicas;currentReplicasIfHigher;currentReplicasIfLower;scalingModifiers
	// +kubebuilder:default=static
	// +optional
	Behavior string `json:"behavior,omitempty"`
}

// AutoscalerPolicyRef names a shared scaler.
type AutoscalerPolicyRef struct {
	// name of the policy.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name,omitempty"`

	// kind of the policy. ClusterAutoscalerPolicy is reserved.
	// +kubebuilder:validation:Enum=AutoscalerPolicy;ClusterAutoscalerPolicy
	// +kubebuilder:default=AutoscalerPolicy
	// +optional
	Kind string `json:"kind,omitempty"`
}
