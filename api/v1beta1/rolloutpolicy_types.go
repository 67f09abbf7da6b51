package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionInUse of a RolloutPolicy is True while a group refers to it. The other condition is
// ConditionReady.
const ConditionInUse = "InUse"

// Reasons of a RolloutPolicy's conditions. Ready may also be True with ReasonProviderUnbound: the
// body is right, and names a metric provider that this cluster hasn't bound.
const (
	ReasonBodyValid   = "BodyValid"
	ReasonBodyInvalid = "BodyInvalid"
	ReasonAttached    = "Attached"
	ReasonNoConsumers = "NoConsumers"
)

// RolloutPolicySpec is one progression, in the form that a group writes inline.
//
// +kubebuilder:validation:XValidation:rule="(has(self.canary) ? 1 : 0) + (has(self.blueGreen) ? 1 : 0) + (has(self.rollingUpdate) ? 1 : 0) == 1",message="exactly one of canary, blueGreen, or rollingUpdate must be set"
type RolloutPolicySpec struct {
	// canary moves capacity in steps.
	// +optional
	Canary *GroupCanary `json:"canary,omitempty"`

	// blueGreen starts all components together.
	// +optional
	BlueGreen *GroupBlueGreen `json:"blueGreen,omitempty"`

	// rollingUpdate moves each component within a budget.
	// +optional
	RollingUpdate *GroupRollingUpdate `json:"rollingUpdate,omitempty"`
}

// RolloutPolicyStatus says whether a policy can be used and how many groups refer to it. It never
// lists who they are.
type RolloutPolicyStatus struct {
	// observedGeneration is the generation that was judged.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// portableDigest names the progression. Equal progressions have equal digests, in every
	// cluster and also when a group writes them inline.
	// +optional
	PortableDigest string `json:"portableDigest,omitempty"`

	// attachedGroups is the number of rollout groups of the namespace that refer to the policy.
	// +optional
	AttachedGroups int32 `json:"attachedGroups"`

	// conditions are Ready and InUse.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutPolicy is a progression that the rollout groups of its namespace may share. Making one
// moves nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=rolloutpolicies,singular=rolloutpolicy,scope=Namespaced
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Digest",type="string",JSONPath=".status.portableDigest"
// +kubebuilder:printcolumn:name="Refs",type="integer",JSONPath=".status.attachedGroups"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type RolloutPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the progression.
	// +required
	Spec RolloutPolicySpec `json:"spec"`

	// status reports what became of it.
	// +optional
	Status RolloutPolicyStatus `json:"status,omitempty,omitzero"`
}

// RolloutPolicyList is a list of RolloutPolicies.
// +kubebuilder:object:root=true
type RolloutPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RolloutPolicy `json:"items"`
}
