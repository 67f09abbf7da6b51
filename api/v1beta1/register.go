package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of every kind of this package.
const Group = "ome.io"

// Version is the only version served and stored.
const Version = "v1beta1"

// Kinds of the group.
const (
	InferenceServiceKind      = "InferenceService"
	InferenceReplicaKind      = "InferenceReplica"
	ServingRuntimeKind        = "ServingRuntime"
	ClusterServingRuntimeKind = "ClusterServingRuntime"
	BaseModelKind             = "BaseModel"
	ClusterBaseModelKind      = "ClusterBaseModel"
	// RolloutPolicyKind is the kind a rollout group may refer to.
	RolloutPolicyKind = "RolloutPolicy"
	// AutoscalerPolicyKind is the kind a component's autoscalerPolicyRef names by default.
	AutoscalerPolicyKind = "AutoscalerPolicy"
)

// Resources (plural names) of the group.
const (
	InferenceServiceResource      = "inferenceservices"
	InferenceReplicaResource      = "inferencereplicas"
	ServingRuntimeResource        = "servingruntimes"
	ClusterServingRuntimeResource = "clusterservingruntimes"
	BaseModelResource             = "basemodels"
	ClusterBaseModelResource      = "clusterbasemodels"
	RolloutPolicyResource         = "rolloutpolicies"
)

var (
	// GroupVersion identifies the group and version of this package.
	GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

	// SchemeGroupVersion is GroupVersion under the name that generated clients expect.
	SchemeGroupVersion = GroupVersion

	// SchemeBuilder collects the functions that add the kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource qualifies a plural resource name with the group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

// Kind qualifies a kind with the group.
func Kind(kind string) schema.GroupKind {
	return GroupVersion.WithKind(kind).GroupKind()
}

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&InferenceService{}, &InferenceServiceList{},
		&InferenceReplica{}, &InferenceReplicaList{},
		&ServingRuntime{}, &ServingRuntimeList{},
		&ClusterServingRuntime{}, &ClusterServingRuntimeList{},
		&BaseModel{}, &BaseModelList{},
		&ClusterBaseModel{}, &ClusterBaseModelList{},
		&RolloutPolicy{}, &RolloutPolicyList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
