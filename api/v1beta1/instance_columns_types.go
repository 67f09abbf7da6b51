package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IndexSet is a set of Instance indexes as ascending ranges, such as 0-2,4. The pattern admits
// spellings that aren't canonical; a decoder refuses those.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]*)(-(0|[1-9][0-9]*))?(,(0|[1-9][0-9]*)(-(0|[1-9][0-9]*))?)*$`
type IndexSet string

// InstanceStatusColumns holds the rows of Instances by column: each column groups the indexes that
// share a value, and an index in no group has the column's default.
type InstanceStatusColumns struct {
	// members are all indexes.
	// +required
	Members IndexSet `json:"members"`

	// rowOrder lists the indexes in row order. Absent means ascending.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Minimum=0
	// +listType=atomic
	// +optional
	RowOrder []int32 `json:"rowOrder,omitempty"`

	// phases cover all members.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +required
	Phases []InstancePhaseGroup `json:"phases"`

	// runningRevisions by value; empty by default.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +optional
	RunningRevisions []InstanceRevisionGroup `json:"runningRevisions,omitempty"`

	// targetRevisions by value; empty by default.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +optional
	TargetRevisions []InstanceRevisionGroup `json:"targetRevisions,omitempty"`

	// incarnations by value; 0 by default.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +optional
	Incarnations []InstanceIncarnationGroup `json:"incarnations,omitempty"`

	// podCounts by value; 0 by default.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +optional
	PodCounts []InstanceCountGroup `json:"podCounts,omitempty"`

	// servingPodCounts by value; 0 by default.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +optional
	ServingPodCounts []InstanceCountGroup `json:"servingPodCounts,omitempty"`

	// availablePodCounts by value; 0 by default.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +optional
	AvailablePodCounts []InstanceCountGroup `json:"availablePodCounts,omitempty"`

	// admitted are the indexes whose pods are past the quota gate.
	// +optional
	Admitted IndexSet `json:"admitted,omitempty"`

	// activeOrdinalOne are the indexes that use pod name slot 1.
	// +optional
	ActiveOrdinalOne IndexSet `json:"activeOrdinalOne,omitempty"`

	// entries hold what few Instances have.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +optional
	Entries []InstanceStatusEntry `json:"entries,omitempty"`
}

// InstancePhaseGroup is the indexes in one phase.
type InstancePhaseGroup struct {
	// value of the group.
	// +required
	Value InstancePhase `json:"value"`

	// indexes of the group.
	// +required
	Indexes IndexSet `json:"indexes"`
}

// InstanceRevisionGroup is the indexes on one revision.
type InstanceRevisionGroup struct {
	// value of the group.
	// +kubebuilder:validation:MinLength=1
	// +required
	Value string `json:"value"`

	// indexes of the group.
	// +required
	Indexes IndexSet `json:"indexes"`
}

// InstanceIncarnationGroup is the indexes with one incarnation.
type InstanceIncarnationGroup struct {
	// value of the group.
	// +kubebuilder:validation:XValidation:rule="self != 0",message="0 is the default and has no group"
	// +required
	Value int64 `json:"value"`

	// indexes of the group.
	// +required
	Indexes IndexSet `json:"indexes"`
}

// InstanceCountGroup is the indexes with one count.
type InstanceCountGroup struct {
	// value of the group.
	// +kubebuilder:validation:Minimum=1
	// +required
	Value int32 `json:"value"`

	// indexes of the group.
	// +required
	Indexes IndexSet `json:"indexes"`
}

// InstanceStatusEntry holds what few Instances have.
//
// +kubebuilder:validation:XValidation:rule="has(self.conditions) || has(self.readySince) || has(self.operation) || has(self.lastFailure) || has(self.announced)",message="an entry holds at least one record"
type InstanceStatusEntry struct {
	// index of the Instance.
	// +kubebuilder:validation:Minimum=0
	// +required
	Index int32 `json:"index"`

	// conditions of the Instance.
	// +kubebuilder:validation:MinItems=1
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// readySince is when the Instance last became Ready.
	// +optional
	ReadySince *metav1.Time `json:"readySince,omitempty"`

	// operation is the work in flight.
	// +optional
	Operation *InstanceOperation `json:"operation,omitempty"`

	// lastFailure is kept after recovery.
	// +optional
	LastFailure *InstanceTermination `json:"lastFailure,omitempty"`

	// announced lists events that were already sent.
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	// +optional
	Announced []string `json:"announced,omitempty"`
}
