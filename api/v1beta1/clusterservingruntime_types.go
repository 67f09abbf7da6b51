package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterServingRuntime holds the pod templates that serve a kind of model, for every namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterservingruntimes,singular=clusterservingruntime,scope=Cluster
// +kubebuilder:printcolumn:name="Disabled",type="boolean",JSONPath=".spec.disabled"
// +kubebuilder:printcolumn:name="ModelFormat",type="string",JSONPath=".spec.supportedModelFormats[*].modelFormat.name"
// +kubebuilder:printcolumn:name="ModelFramework",type="string",JSONPath=".spec.supportedModelFormats[*].modelFramework.name"
// +kubebuilder:printcolumn:name="ModelFrameworkVersion",type="string",JSONPath=".spec.supportedModelFormats[*].modelFramework.version"
// +kubebuilder:printcolumn:name="ModelArchitecture",type="string",JSONPath=".spec.supportedModelFormats[*].modelArchitecture"
// +kubebuilder:printcolumn:name="ModelSizeMin",type="string",JSONPath=".spec.modelSizeRange.min"
// +kubebuilder:printcolumn:name="ModelSizeMax",type="string",JSONPath=".spec.modelSizeRange.max"
// +kubebuilder:printcolumn:name="Images",type="string",JSONPath=".spec.containers[*].image"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ClusterServingRuntime struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the templates.
	// +optional
	Spec ServingRuntimeSpec `json:"spec,omitempty"`

	// status reports the runtime.
	// +optional
	Status ServingRuntimeStatus `json:"status,omitempty"`
}

// ClusterServingRuntimeList is a list of ClusterServingRuntimes.
// +kubebuilder:object:root=true
type ClusterServingRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterServingRuntime `json:"items"`
}
