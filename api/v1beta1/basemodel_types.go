package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// BaseModelSpec describes a model and says where its weights are.
type BaseModelSpec struct {
	// storage says where the weights are.
	// +required
	Storage StorageSpec `json:"storage"`

	// modelFormat of the weights.
	// +optional
	ModelFormat *ModelFormat `json:"modelFormat,omitempty"`

	// modelFramework that wrote the weights.
	// +optional
	ModelFramework *ModelFramework `json:"modelFramework,omitempty"`

	// modelArchitecture such as MistralForCausalLM.
	// +optional
	ModelArchitecture string `json:"modelArchitecture,omitempty"`

	// modelType such as mistral.
	// +optional
	ModelType string `json:"modelType,omitempty"`

	// quantization of the weights.
	// +optional
	Quantization string `json:"quantization,omitempty"`

	// modelParameterSize is the parameter count, such as 7B.
	// +optional
	ModelParameterSize string `json:"modelParameterSize,omitempty"`

	// modelCapabilities of the model.
	// +listType=atomic
	// +optional
	ModelCapabilities []string `json:"modelCapabilities,omitempty"`

	// apiCapabilities of the model.
	// +listType=atomic
	// +optional
	APICapabilities []string `json:"apiCapabilities,omitempty"`

	// servingMode of the model.
	// +listType=atomic
	// +optional
	ServingMode []string `json:"servingMode,omitempty"`

	// distribution of the weights over nodes. Unset means PerNode; Sharded can't be served.
	// +optional
	Distribution ModelDistribution `json:"distribution,omitempty"`

	// maxTokens is the context length.
	// +optional
	MaxTokens *int32 `json:"maxTokens,omitempty"`

	// modelConfiguration is a copy of the model's own configuration.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ModelConfiguration *runtime.RawExtension `json:"modelConfiguration,omitempty"`

	// diffusionPipeline of a diffusion model.
	// +optional
	DiffusionPipeline *DiffusionPipeline `json:"diffusionPipeline,omitempty"`

	// additionalMetadata is free.
	// +optional
	AdditionalMetadata map[string]string `json:"additionalMetadata,omitempty"`

	// disabled takes the model out of use.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`

	// displayName for people.
	// +optional
	DisplayName *string `json:"displayName,omitempty"`

	// version of the model.
	// +optional
	Version *string `json:"version,omitempty"`

	// vendor of the model.
	// +optional
	Vendor *string `json:"vendor,omitempty"`

	// compartmentID of the model.
	// +optional
	CompartmentID *string `json:"compartmentID,omitempty"`
}

// ModelDistribution is how weights are spread over nodes.
// +kubebuilder:validation:Enum=PerNode;Sharded
type ModelDistribution string

const (
	// DistributionPerNode keeps a whole copy on each node. The default.
	DistributionPerNode ModelDistribution = "PerNode"
	// DistributionSharded can't be served.
	DistributionSharded ModelDistribution = "Sharded"
)

// StorageSpec says where weights are.
type StorageSpec struct {
	// storageUri of the source. The scheme is oci, pvc, vendor, hf, s3, az, gs, github or local.
	// +required
	StorageURI string `json:"storageUri"`

	// path of the copy on a node.
	// +optional
	Path *string `json:"path,omitempty"`

	// schemaPath of the model's schema file.
	// +optional
	SchemaPath *string `json:"schemaPath,omitempty"`

	// key is the Secret with the token for the source.
	// +optional
	StorageKey *string `json:"key,omitempty"`

	// parameters of the source.
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`

	// nodeSelector picks the nodes that keep a copy.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// nodeAffinity picks the nodes that keep a copy.
	// +optional
	NodeAffinity *corev1.NodeAffinity `json:"nodeAffinity,omitempty"`

	// downloadPolicy says whether a copy is reused. Unset means AlwaysDownload.
	// +kubebuilder:validation:Enum=AlwaysDownload;ReuseIfExists
	// +optional
	DownloadPolicy string `json:"downloadPolicy,omitempty"`
}

// ModelFormat names a format of weights.
type ModelFormat struct {
	// name of the format.
	// +required
	Name string `json:"name"`

	// version as major, major.minor or major.minor.patch.
	// +optional
	Version *string `json:"version,omitempty"`

	// operator compares versions: Equal or GreaterThan.
	// +kubebuilder:default=Equal
	// +optional
	Operator *string `json:"operator,omitempty"`

	// weight of the format in a runtime's score.
	// +kubebuilder:default=1
	// +optional
	Weight *int64 `json:"weight,omitempty"`
}

// ModelFramework names the framework that wrote weights.
type ModelFramework struct {
	// name of the framework.
	// +required
	Name string `json:"name"`

	// version as major, major.minor or major.minor.patch.
	// +optional
	Version *string `json:"version,omitempty"`

	// operator compares versions: Equal or GreaterThan.
	// +kubebuilder:default=Equal
	// +optional
	Operator *string `json:"operator,omitempty"`

	// weight of the framework in a runtime's score.
	// +kubebuilder:default=1
	// +optional
	Weight *int64 `json:"weight,omitempty"`
}

// DiffusionPipeline identifies the pipeline of a diffusion model.
type DiffusionPipeline struct {
	// className of the pipeline.
	// +optional
	ClassName string `json:"className,omitempty"`

	// scheduler of the pipeline.
	// +optional
	Scheduler *PipelineComponent `json:"scheduler,omitempty"`

	// textEncoder of the pipeline.
	// +optional
	TextEncoder *PipelineComponent `json:"textEncoder,omitempty"`

	// tokenizer of the pipeline.
	// +optional
	Tokenizer *PipelineComponent `json:"tokenizer,omitempty"`

	// transformer of the pipeline.
	// +optional
	Transformer *PipelineComponent `json:"transformer,omitempty"`

	// vae of the pipeline.
	// +optional
	VAE *PipelineComponent `json:"vae,omitempty"`

	// additionalComponents of the pipeline by name.
	// +optional
	AdditionalComponents map[string]PipelineComponent `json:"additionalComponents,omitempty"`
}

// PipelineComponent is one part of a diffusion pipeline.
type PipelineComponent struct {
	// library that holds the part.
	// +optional
	Library string `json:"library,omitempty"`

	// type of the part.
	// +optional
	Type string `json:"type,omitempty"`
}

// ModelLifecycleState is where a model is in its life.
// +kubebuilder:validation:Enum=Creating;Importing;In_Transit;In_Training;Ready;Failed;Evicted
type ModelLifecycleState string

const (
	ModelStateCreating   ModelLifecycleState = "Creating"
	ModelStateImporting  ModelLifecycleState = "Importing"
	ModelStateInTransit  ModelLifecycleState = "In_Transit"
	ModelStateInTraining ModelLifecycleState = "In_Training"
	ModelStateReady      ModelLifecycleState = "Ready"
	ModelStateFailed     ModelLifecycleState = "Failed"
	// ModelStateEvicted is read and never written.
	ModelStateEvicted ModelLifecycleState = "Evicted"
)

// BaseModelStatus reports a model.
type BaseModelStatus struct {
	// state of the model.
	// +required
	State ModelLifecycleState `json:"state"`

	// lifecycle is a free stage label.
	// +optional
	Lifecycle *string `json:"lifecycle,omitempty"`

	// observedGeneration is the generation that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastReconcileTime is when the model was last looked at.
	// +optional
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`

	// nodesReady are the nodes with a copy.
	// +listType=atomic
	// +optional
	NodesReady []string `json:"nodesReady,omitempty"`

	// nodesFailed are the nodes where the copy failed.
	// +listType=atomic
	// +optional
	NodesFailed []string `json:"nodesFailed,omitempty"`

	// nodesEvicted are the nodes whose copy is gone.
	// +listType=atomic
	// +optional
	NodesEvicted []string `json:"nodesEvicted,omitempty"`

	// rehydration is a request to load copies again, and its answer.
	// +optional
	Rehydration *ModelRehydration `json:"rehydration,omitempty"`

	// serving says whether the model is in use.
	// +optional
	Serving *ModelServing `json:"serving,omitempty"`

	// cache of a sharded model.
	// +optional
	Cache *ModelCache `json:"cache,omitempty"`

	// conditions of the model.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ModelRehydration is a request to load copies again, and its answer.
type ModelRehydration struct {
	// requestID that was asked.
	// +optional
	RequestID string `json:"requestID,omitempty"`

	// completedRequestID that was answered.
	// +optional
	CompletedRequestID string `json:"completedRequestID,omitempty"`
}

// ModelServing says whether a model is in use.
type ModelServing struct {
	// inUse is true while a service uses the model.
	// +required
	InUse bool `json:"inUse"`

	// lastUsedTime is when a service last used it.
	// +optional
	LastUsedTime *metav1.Time `json:"lastUsedTime,omitempty"`
}

// ModelCache is the cache of a sharded model.
type ModelCache struct {
	// backend of the cache.
	// +optional
	Backend string `json:"backend,omitempty"`

	// sourceUri of the cache.
	// +optional
	SourceURI string `json:"sourceUri,omitempty"`
}

// BaseModel describes a model, for one namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=basemodels,singular=basemodel,scope=Namespaced
// +kubebuilder:printcolumn:name="Disabled",type="boolean",JSONPath=".spec.disabled"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version"
// +kubebuilder:printcolumn:name="Vendor",type="string",JSONPath=".spec.vendor"
// +kubebuilder:printcolumn:name="Framework",type="string",JSONPath=".spec.modelFramework.name"
// +kubebuilder:printcolumn:name="FrameworkVersion",type="string",JSONPath=".spec.modelFramework.version"
// +kubebuilder:printcolumn:name="ModelFormat",type="string",JSONPath=".spec.modelFormat.name"
// +kubebuilder:printcolumn:name="Architecture",type="string",JSONPath=".spec.modelArchitecture"
// +kubebuilder:printcolumn:name="Capabilities",type="string",JSONPath=".spec.modelCapabilities[*]"
// +kubebuilder:printcolumn:name="Size",type="string",JSONPath=".spec.modelParameterSize"
// +kubebuilder:printcolumn:name="CompartmentID",type="string",JSONPath=".spec.compartmentID"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.state"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type BaseModel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the model.
	// +optional
	Spec BaseModelSpec `json:"spec,omitempty"`

	// status reports the model.
	// +optional
	Status BaseModelStatus `json:"status,omitempty,omitzero"`
}

// BaseModelList is a list of BaseModels.
// +kubebuilder:object:root=true
type BaseModelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BaseModel `json:"items"`
}
