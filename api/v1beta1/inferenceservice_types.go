package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InferenceServiceSpec says what to serve and how.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.placement) || !has(oldSelf.placement.policy) || oldSelf.placement.policy != 'ClusterAffinity' || (has(self.placement) && has(self.placement.policy) && self.placement.policy == 'ClusterAffinity')",message="placement.policy ClusterAffinity can't be dropped or changed"
// +kubebuilder:validation:XValidation:rule="!(has(self.routing) && has(self.routing.capacityFactors) && has(self.placement) && has(self.placement.capacityFactors))",message="set routing.capacityFactors or placement.capacityFactors, not both"
type InferenceServiceSpec struct {
	// deploymentMode is the backend of every component. A component's own annotation wins over it.
	// +kubebuilder:validation:Enum=OMENative;RawDeployment
	// +optional
	DeploymentMode DeploymentMode `json:"deploymentMode,omitempty"`

	// model is the model to serve.
	// +optional
	Model *ModelRef `json:"model,omitempty"`

	// runtime is the runtime to use. Unset picks one that supports the model.
	// +optional
	Runtime *ServingRuntimeRef `json:"runtime,omitempty"`

	// engine runs the model.
	// +optional
	Engine *EngineSpec `json:"engine,omitempty"`

	// decoder is the decode half of a disaggregated pair. It needs an engine.
	// +optional
	Decoder *DecoderSpec `json:"decoder,omitempty"`

	// router spreads requests over the engines.
	// +optional
	Router *RouterSpec `json:"router,omitempty"`

	// replicaRefs fronts standalone InferenceReplicas instead of making some. It is fixed at create.
	// +optional
	ReplicaRefs *ReplicaRefs `json:"replicaRefs,omitempty"`

	// acceleratorSelector chooses the accelerator of every component.
	// +optional
	AcceleratorSelector *AcceleratorSelector `json:"acceleratorSelector,omitempty"`

	// rollout says which components roll together and how.
	// +optional
	Rollout *RolloutSpec `json:"rollout,omitempty"`

	// traffic configures load balancing at the gateway.
	// +optional
	Traffic *TrafficSpec `json:"traffic,omitempty"`

	// scalingPolicy couples the counts of components. Only Independent is supported.
	// +optional
	ScalingPolicy *ScalingPolicy `json:"scalingPolicy,omitempty"`

	// placement says which clusters run the service. Not supported here: it marks the object as a
	// placement source.
	// +optional
	Placement *PlacementSpec `json:"placement,omitempty"`

	// routing weighs the clusters that run the service. Not supported here.
	// +optional
	Routing *RoutingSpec `json:"routing,omitempty"`

	// ttlSecondsAfterCreation is accepted and has no effect.
	// +kubebuilder:validation:Minimum=1
	// +optional
	TTLSecondsAfterCreation *int64 `json:"ttlSecondsAfterCreation,omitempty"`
}

// InferenceService serves a model with one to three components that may roll out as one.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=inferenceservices,singular=inferenceservice,shortName=isvc,scope=Namespaced
// +kubebuilder:printcolumn:name="URL",type="string",JSONPath=".status.url"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="BaseModel",type="string",JSONPath=".spec.model.name"
// +kubebuilder:printcolumn:name="Runtime",type="string",JSONPath=".spec.runtime.name"
// +kubebuilder:printcolumn:name="Placement",type="string",JSONPath=".status.placement.phase",priority=1
// +kubebuilder:printcolumn:name="Plan-Source",type="string",JSONPath=".status.rollout.activeRun.plan.groups[0].source",priority=1
// +kubebuilder:printcolumn:name="Plan-Drift",type="string",JSONPath=".status.conditions[?(@.type=='RolloutPlanDrift')].status",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type InferenceService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to serve and how.
	// +optional
	Spec InferenceServiceSpec `json:"spec,omitempty"`

	// status is what the manager saw and did. Fields of a newer writer are kept.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status InferenceServiceStatus `json:"status,omitempty"`
}

// InferenceServiceList is a list of InferenceServices.
// +kubebuilder:object:root=true
type InferenceServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []InferenceService `json:"items"`
}
