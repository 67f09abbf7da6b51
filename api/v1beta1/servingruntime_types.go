package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServingRuntimeSpec holds the pod templates that serve a kind of model.
type ServingRuntimeSpec struct {
	// supportedModelFormats says which models the runtime can serve.
	// +listType=atomic
	// +optional
	SupportedModelFormats []SupportedModelFormat `json:"supportedModelFormats,omitempty"`

	// modelSizeRange is the range of parameter counts the runtime is made for.
	// +optional
	ModelSizeRange *ModelSizeRange `json:"modelSizeRange,omitempty"`

	// disabled takes the runtime out of use.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`

	// engineConfig is the template of the engine.
	// +optional
	EngineConfig *EngineSpec `json:"engineConfig,omitempty"`

	// decoderConfig is the template of the decoder.
	// +optional
	DecoderConfig *DecoderSpec `json:"decoderConfig,omitempty"`

	// routerConfig is the template of the router. It adds no router by itself.
	// +optional
	RouterConfig *RouterSpec `json:"routerConfig,omitempty"`

	// protocolVersions that the runtime speaks.
	// +listType=atomic
	// +optional
	ProtocolVersions []string `json:"protocolVersions,omitempty"`

	// scalingPolicy is the default for services. A service's own replaces it as a whole.
	// +optional
	ScalingPolicy *ScalingPolicy `json:"scalingPolicy,omitempty"`

	// acceleratorRequirements say what the runtime runs on.
	// +optional
	AcceleratorRequirements *AcceleratorRequirements `json:"acceleratorRequirements,omitempty"`

	// containers of the flat template, an older form of engineConfig.
	// +listType=map
	// +listMapKey=name
	// +optional
	Containers []corev1.Container `json:"containers,omitempty"`

	// volumes of the flat template.
	// +listType=map
	// +listMapKey=name
	// +optional
	Volumes []corev1.Volume `json:"volumes,omitempty"`

	// imagePullSecrets of the flat template.
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// nodeSelector of the flat template.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// labels of the flat template.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the flat template.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// affinity of the flat template.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// tolerations of the flat template.
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// schedulerName of the flat template.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// dnsPolicy of the flat template.
	// +optional
	DNSPolicy corev1.DNSPolicy `json:"dnsPolicy,omitempty"`

	// hostIPC of the flat template.
	// +optional
	HostIPC bool `json:"hostIPC,omitempty"`

	// hostNetwork of the flat template.
	// +optional
	HostNetwork bool `json:"hostNetwork,omitempty"`
}

// ModelSizeRange is a range of parameter counts, each a number with M, B or T.
type ModelSizeRange struct {
	// min is the smallest count.
	// +optional
	Min string `json:"min,omitempty"`

	// max is the largest count.
	// +optional
	Max string `json:"max,omitempty"`
}

// SupportedModelFormat says which models a runtime can serve.
type SupportedModelFormat struct {
	// modelFormat to match.
	// +required
	ModelFormat ModelFormat `json:"modelFormat"`

	// modelFramework to match.
	// +required
	ModelFramework ModelFramework `json:"modelFramework"`

	// modelArchitecture to match.
	// +optional
	ModelArchitecture string `json:"modelArchitecture,omitempty"`

	// quantization to match.
	// +optional
	Quantization string `json:"quantization,omitempty"`

	// diffusionPipeline to match.
	// +optional
	DiffusionPipeline *DiffusionPipeline `json:"diffusionPipeline,omitempty"`

	// autoSelect lets the runtime be chosen without being named.
	// +optional
	AutoSelect *bool `json:"autoSelect,omitempty"`

	// priority breaks ties; the higher wins.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// name is an older spelling of the format's name.
	// +optional
	Name string `json:"name,omitempty"`

	// version has no effect on selection.
	// +optional
	Version string `json:"version,omitempty"`

	// modelType has no effect on selection.
	// +optional
	ModelType string `json:"modelType,omitempty"`

	// modelCacheProviders have no effect.
	// +listType=atomic
	// +optional
	ModelCacheProviders []string `json:"modelCacheProviders,omitempty"`

	// acceleratorConfig overrides settings by accelerator class.
	// +optional
	AcceleratorConfig map[string]AcceleratorModelConfig `json:"acceleratorConfig,omitempty"`
}

// AcceleratorModelConfig overrides settings for one accelerator class.
type AcceleratorModelConfig struct {
	// tensorParallelismOverride sets the parallel sizes.
	// +optional
	TensorParallelismOverride *ParallelismOverride `json:"tensorParallelismOverride,omitempty"`

	// runtimeArgsOverride replaces arguments of the main container.
	// +listType=atomic
	// +optional
	RuntimeArgsOverride []string `json:"runtimeArgsOverride,omitempty"`

	// environmentOverride sets environment variables of the main container.
	// +optional
	EnvironmentOverride map[string]string `json:"environmentOverride,omitempty"`

	// minMemoryPerBillionParams has no effect.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinMemoryPerBillionParams *int64 `json:"minMemoryPerBillionParams,omitempty"`
}

// ParallelismOverride sets parallel sizes.
type ParallelismOverride struct {
	// tensorParallelSize to use.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TensorParallelSize *int64 `json:"tensorParallelSize,omitempty"`

	// pipelineParallelSize to use.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PipelineParallelSize *int64 `json:"pipelineParallelSize,omitempty"`

	// dataParallelSize to use.
	// +kubebuilder:validation:Minimum=0
	// +optional
	DataParallelSize *int64 `json:"dataParallelSize,omitempty"`
}

// ServingRuntimeStatus reports a runtime.
type ServingRuntimeStatus struct {
	// inheritanceChain lists the runtimes it inherits from, root first.
	// +listType=atomic
	// +optional
	InheritanceChain []string `json:"inheritanceChain,omitempty"`

	// conditions of the runtime.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ServingRuntime holds the pod templates that serve a kind of model, for one namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=servingruntimes,singular=servingruntime,scope=Namespaced
// +kubebuilder:printcolumn:name="Disabled",type="boolean",JSONPath=".spec.disabled"
// +kubebuilder:printcolumn:name="ModelFormat",type="string",JSONPath=".spec.supportedModelFormats[*].modelFormat.name"
// +kubebuilder:printcolumn:name="ModelFramework",type="string",JSONPath=".spec.supportedModelFormats[*].modelFramework.name"
// +kubebuilder:printcolumn:name="ModelFrameworkVersion",type="string",JSONPath=".spec.supportedModelFormats[*].modelFramework.version"
// +kubebuilder:printcolumn:name="ModelArchitecture",type="string",JSONPath=".spec.supportedModelFormats[*].modelArchitecture"
// +kubebuilder:printcolumn:name="ModelSizeMin",type="string",JSONPath=".spec.modelSizeRange.min"
// +kubebuilder:printcolumn:name="ModelSizeMax",type="string",JSONPath=".spec.modelSizeRange.max"
// +kubebuilder:printcolumn:name="Images",type="string",JSONPath=".spec.containers[*].image"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ServingRuntime struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the templates.
	// +optional
	Spec ServingRuntimeSpec `json:"spec,omitempty"`

	// status reports the runtime.
	// +optional
	Status ServingRuntimeStatus `json:"status,omitempty"`
}

// ServingRuntimeList is a list of ServingRuntimes.
// +kubebuilder:object:root=true
type ServingRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServingRuntime `json:"items"`
}
