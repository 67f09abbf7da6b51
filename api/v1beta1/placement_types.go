package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PlacementMode says how many clusters run a service.
// +kubebuilder:validation:Enum=Single;All;Split;SplitByCapacity
type PlacementMode string

// PlacementPolicy is the contract for matching clusters.
// +kubebuilder:validation:Enum=Legacy;ClusterAffinity
type PlacementPolicy string

const (
	PlacementLegacy          PlacementPolicy = "Legacy"
	PlacementClusterAffinity PlacementPolicy = "ClusterAffinity"
)

// PlacementSpec says which clusters run the service.
//
// +kubebuilder:validation:XValidation:rule="!has(self.replacementTimeout) || (has(self.policy) && self.policy == 'ClusterAffinity' && has(self.mode) && self.mode == 'Single')",message="replacementTimeout needs policy ClusterAffinity and mode Single"
type PlacementSpec struct {
	// policy for matching clusters. Unset means Legacy.
	// +optional
	Policy PlacementPolicy `json:"policy,omitempty"`

	// mode says how many clusters run the service.
	// +optional
	Mode PlacementMode `json:"mode,omitempty"`

	// clusterAffinity terms match a cluster when one of them does. Absent matches all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +nullable
	// +optional
	ClusterAffinity []ClusterAffinityTerm `json:"clusterAffinity,omitempty"`

	// maxSurge is the number of extra replicas that clusters share. Absent blocks moves.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxSurge *int32 `json:"maxSurge,omitempty"`

	// replacementTimeout bounds the probe of another cluster.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="replacementTimeout must be above zero"
	// +optional
	ReplacementTimeout *metav1.Duration `json:"replacementTimeout,omitempty"`

	// split configures the split modes.
	// +optional
	Split *PlacementSplit `json:"split,omitempty"`

	// requirements is a label selector. Deprecated.
	// +optional
	Requirements string `json:"requirements,omitempty"`

	// clusterSelector is a label selector. Deprecated.
	// +optional
	ClusterSelector string `json:"clusterSelector,omitempty"`

	// capacityFactors weigh clusters. Deprecated in favour of routing.capacityFactors.
	// +optional
	CapacityFactors map[string]resource.Quantity `json:"capacityFactors,omitempty"`
}

// PlacementSplit configures the split modes.
type PlacementSplit struct {
	// replicas of the whole fleet. Unset takes the engine's minimum.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// maxReplicasPerCluster bounds one cluster. Zero is no bound.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxReplicasPerCluster *int32 `json:"maxReplicasPerCluster,omitempty"`

	// spread is deprecated.
	// +optional
	Spread *bool `json:"spread,omitempty"`

	// minReplicasPerCluster is deprecated.
	// +optional
	MinReplicasPerCluster *int32 `json:"minReplicasPerCluster,omitempty"`
}

// ClusterAffinityTerm matches clusters.
//
// +kubebuilder:validation:XValidation:rule="(has(self.matchExpressions) && size(self.matchExpressions) > 0) || (has(self.matchFields) && size(self.matchFields) > 0)",message="a term needs at least one requirement"
type ClusterAffinityTerm struct {
	// weight of the term.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`

	// matchExpressions are requirements on labels.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	MatchExpressions []ClusterRequirement `json:"matchExpressions,omitempty"`

	// matchFields are requirements on fields.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	MatchFields []ClusterRequirement `json:"matchFields,omitempty"`
}

// ClusterRequirement is one requirement on a cluster.
type ClusterRequirement struct {
	// key of the label or field.
	// +kubebuilder:validation:MinLength=1
	// +required
	Key string `json:"key"`

	// operator of the requirement.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt
	// +required
	Operator string `json:"operator"`

	// values to compare with.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
}

// PlacementStatus reports the clusters. Only a control plane writes it.
type PlacementStatus struct {
	// phase of the placement.
	// +kubebuilder:validation:Enum=Pending;Admitting;Racing;Placed;Failed
	// +optional
	Phase string `json:"phase,omitempty"`

	// cluster that won, in mode Single.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// endpoint of that cluster.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// candidates are the clusters considered.
	// +listType=map
	// +listMapKey=cluster
	// +optional
	Candidates []PlacementCandidate `json:"candidates,omitempty"`

	// plan is the durable allocation.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Plan *runtime.RawExtension `json:"plan,omitempty"`
}

// PlacementCandidate is one cluster. Further fields of a newer writer are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type PlacementCandidate struct {
	// cluster is the name of the WorkloadCluster.
	// +required
	Cluster string `json:"cluster"`

	// phase of the cluster.
	// +kubebuilder:validation:Enum=Admitting;Placed;Admitted
	// +optional
	Phase string `json:"phase,omitempty"`

	// endpoint of the cluster.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// admittedReplicas on the cluster.
	// +optional
	AdmittedReplicas int32 `json:"admittedReplicas,omitempty"`

	// readyReplicas on the cluster.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
}
