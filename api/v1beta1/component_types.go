package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ComponentType is the role of one part of a service. The word is also the suffix of generated
// object names and the value of the component label.
type ComponentType string

const (
	// EngineComponent runs the model: prefill only beside a decoder, the whole request otherwise.
	EngineComponent ComponentType = "engine"
	// DecoderComponent is the decode half of a disaggregated pair.
	DecoderComponent ComponentType = "decoder"
	// RouterComponent spreads requests over the engines.
	RouterComponent ComponentType = "router"
)

// DeploymentMode names the backend that runs a component.
type DeploymentMode string

const (
	// OMENativeMode runs a component as an InferenceReplica.
	OMENativeMode DeploymentMode = "OMENative"
	// RawDeploymentMode runs a component as a plain Deployment.
	RawDeploymentMode DeploymentMode = "RawDeployment"
	// MultiNodeMode is recognised in the annotation and not supported.
	MultiNodeMode DeploymentMode = "MultiNode"
	// VirtualDeploymentMode is recognised in the annotation and not supported.
	VirtualDeploymentMode DeploymentMode = "VirtualDeployment"
)

// TopologySpreadMode says how hard Instances are spread over fault domains.
// +kubebuilder:validation:Enum=Preferred;Required
type TopologySpreadMode string

const (
	// TopologySpreadPreferred lets the scheduler break the spread when it has to.
	TopologySpreadPreferred TopologySpreadMode = "Preferred"
	// TopologySpreadRequired leaves a pod pending rather than break the spread.
	TopologySpreadRequired TopologySpreadMode = "Required"
)

// MainContainerName is the container a runner patches in the catalogue's runtimes.
const MainContainerName = "ome-container"

// ComponentExtensionSpec holds the settings that every component has beside its pod template.
type ComponentExtensionSpec struct {
	// minReplicas is the least number of Instances, and the desired count that canary capacity is
	// computed from. Unset takes the runtime's value, then the operator's.
	// +optional
	MinReplicas *int `json:"minReplicas,omitempty"`

	// maxReplicas is the most Instances a scaler may ask for. Unset takes the runtime's value, then
	// the operator's.
	// +optional
	MaxReplicas *int `json:"maxReplicas,omitempty"`

	// timeoutSeconds is the request timeout set on the route.
	// +optional
	TimeoutSeconds *int64 `json:"timeoutSeconds,omitempty"`

	// labels are put on the workload and on its pods.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are put on the workload and on its pods. The component's own deployment mode is
	// declared here.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// servicePortAppProtocols maps the name of a Service port to its appProtocol.
	// +optional
	ServicePortAppProtocols map[string]string `json:"servicePortAppProtocols,omitempty"`

	// minAvailable is the disruption budget as pods that must stay. Exclusive with maxUnavailable.
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// maxUnavailable is the disruption budget as pods that may go. Exclusive with minAvailable.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// deploymentStrategy is the strategy of the Deployment. It has an effect in RawDeployment mode
	// only.
	// +optional
	DeploymentStrategy *appsv1.DeploymentStrategy `json:"deploymentStrategy,omitempty"`

	// lifecycle says how Instances are replaced, repaired and judged ready. OMENative only.
	// +optional
	Lifecycle *LifecycleSpec `json:"lifecycle,omitempty"`

	// autoscaler is the component's own scaler. It wins over autoscalerPolicyRef.
	// +optional
	Autoscaler *ComponentAutoscaler `json:"autoscaler,omitempty"`

	// autoscalerPolicyRef takes the scaler from a shared policy.
	// +optional
	AutoscalerPolicyRef *AutoscalerPolicyRef `json:"autoscalerPolicyRef,omitempty"`
}

// EngineSpec describes the engine: a patch over the runtime's engine template.
type EngineSpec struct {
	corev1.PodSpec         `json:",inline"`
	ComponentExtensionSpec `json:",inline"`

	// runner patches the main container.
	// +optional
	Runner *RunnerSpec `json:"runner,omitempty"`

	// leader describes the leader pod of a multi-pod Instance. It goes together with worker.
	// +optional
	Leader *LeaderSpec `json:"leader,omitempty"`

	// worker describes the worker pods of a multi-pod Instance. It goes together with leader.
	// +optional
	Worker *WorkerSpec `json:"worker,omitempty"`

	// topologyKey is a node label whose value all pods of one multi-pod Instance share.
	// +optional
	TopologyKey string `json:"topologyKey,omitempty"`

	// topologySpread spreads Instances over fault domains. It isn't part of a revision.
	// +optional
	TopologySpread TopologySpreadMode `json:"topologySpread,omitempty"`

	// topologySpreadKey is the node label that names a fault domain. Unset means topologyKey.
	// +optional
	TopologySpreadKey string `json:"topologySpreadKey,omitempty"`

	// acceleratorOverride replaces the service's acceleratorSelector for this component.
	// +optional
	AcceleratorOverride *AcceleratorSelector `json:"acceleratorOverride,omitempty"`
}

// DecoderSpec describes the decoder. Its fields are those of EngineSpec, so that one converts to
// the other.
type DecoderSpec struct {
	corev1.PodSpec         `json:",inline"`
	ComponentExtensionSpec `json:",inline"`

	// runner patches the main container.
	// +optional
	Runner *RunnerSpec `json:"runner,omitempty"`

	// leader describes the leader pod of a multi-pod Instance. It goes together with worker.
	// +optional
	Leader *LeaderSpec `json:"leader,omitempty"`

	// worker describes the worker pods of a multi-pod Instance. It goes together with leader.
	// +optional
	Worker *WorkerSpec `json:"worker,omitempty"`

	// topologyKey is a node label whose value all pods of one multi-pod Instance share.
	// +optional
	TopologyKey string `json:"topologyKey,omitempty"`

	// topologySpread spreads Instances over fault domains. It isn't part of a revision.
	// +optional
	TopologySpread TopologySpreadMode `json:"topologySpread,omitempty"`

	// topologySpreadKey is the node label that names a fault domain. Unset means topologyKey.
	// +optional
	TopologySpreadKey string `json:"topologySpreadKey,omitempty"`

	// acceleratorOverride replaces the service's acceleratorSelector for this component.
	// +optional
	AcceleratorOverride *AcceleratorSelector `json:"acceleratorOverride,omitempty"`
}

// RouterSpec describes the router.
type RouterSpec struct {
	corev1.PodSpec         `json:",inline"`
	ComponentExtensionSpec `json:",inline"`

	// runner patches the main container.
	// +optional
	Runner *RunnerSpec `json:"runner,omitempty"`

	// config becomes environment variables of the main container.
	// +optional
	Config map[string]string `json:"config,omitempty"`
}

// RunnerSpec is a patch over the main container of a pod.
type RunnerSpec struct {
	corev1.Container `json:",inline"`
}

// LeaderSpec describes the leader pod of a multi-pod Instance; it overrides the component's pod
// template.
type LeaderSpec struct {
	corev1.PodSpec `json:",inline"`

	// runner patches the leader's main container.
	// +optional
	Runner *RunnerSpec `json:"runner,omitempty"`
}

// WorkerSpec describes the worker pods of a multi-pod Instance.
type WorkerSpec struct {
	corev1.PodSpec `json:",inline"`

	// size is the number of worker pods of one Instance. Unset takes the runtime's value, then 1.
	// +optional
	Size *int `json:"size,omitempty"`

	// runner patches the workers' main container.
	// +optional
	Runner *RunnerSpec `json:"runner,omitempty"`
}
