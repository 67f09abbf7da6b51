package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// InstanceRestartPolicy says whether a broken Instance is rebuilt.
// +kubebuilder:validation:Enum=None;RecreateInstanceOnPodRestart
type InstanceRestartPolicy string

const (
	// RestartNone leaves container restarts to the kubelet.
	RestartNone InstanceRestartPolicy = "None"
	// RestartRecreateInstance rebuilds all pods of an Instance when one of them restarts.
	RestartRecreateInstance InstanceRestartPolicy = "RecreateInstanceOnPodRestart"
)

// UpdateStrategyType is the way one Instance is moved to a new revision.
// +kubebuilder:validation:Enum=SurgeThenDrain;RecreatePod;InPlaceIfPossible;InPlaceOnly
type UpdateStrategyType string

const (
	// SurgeThenDrain serves with the new pods before the old ones leave. The default.
	SurgeThenDrain UpdateStrategyType = "SurgeThenDrain"
	// RecreatePod deletes the old pods first.
	RecreatePod UpdateStrategyType = "RecreatePod"
	// InPlaceIfPossible changes container images in place and recreates for any other change.
	InPlaceIfPossible UpdateStrategyType = "InPlaceIfPossible"
	// InPlaceOnly refuses a change that can't be made in place.
	InPlaceOnly UpdateStrategyType = "InPlaceOnly"
)

// InstanceReadyPolicy says how the readiness of pods adds up to that of their Instance.
// +kubebuilder:validation:Enum=AllPodReady;None
type InstanceReadyPolicy string

const (
	// AllPodReady needs every pod of the Instance.
	AllPodReady InstanceReadyPolicy = "AllPodReady"
	// ReadyPolicyNone is for single-pod Instances, where it means the same.
	ReadyPolicyNone InstanceReadyPolicy = "None"
)

// MigrationMode says whether Instances may be moved to other nodes.
// +kubebuilder:validation:Enum=Auto;Surge;Never
type MigrationMode string

const (
	// MigrationAuto allows migrations. The default.
	MigrationAuto MigrationMode = "Auto"
	// MigrationSurge means the same as MigrationAuto.
	MigrationSurge MigrationMode = "Surge"
	// MigrationNever refuses migrations.
	MigrationNever MigrationMode = "Never"
)

// LifecycleSpec holds the policies for the Instances of one component. Each field falls back on
// its own: service, runtime, operator settings, then a fixed value. No field is part of a revision.
type LifecycleSpec struct {
	// restartPolicy says whether an Instance is rebuilt when one of its pods restarts. Unset means
	// RecreateInstanceOnPodRestart for multi-pod Instances and None for others.
	// +optional
	RestartPolicy InstanceRestartPolicy `json:"restartPolicy,omitempty"`

	// updateStrategy says how Instances move to a new revision.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`

	// readyPolicy says how pod readiness adds up. A multi-pod Instance can't use None.
	// +optional
	ReadyPolicy InstanceReadyPolicy `json:"readyPolicy,omitempty"`

	// instanceReadyTimeout bounds one operation on an Instance.
	// +optional
	InstanceReadyTimeout *metav1.Duration `json:"instanceReadyTimeout,omitempty"`

	// minReadySeconds is how long a pod is Ready before it counts as available.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// migrationPolicy says whether Instances may move to other nodes.
	// +optional
	MigrationPolicy *MigrationPolicy `json:"migrationPolicy,omitempty"`
}

// UpdateStrategy says how Instances move to a new revision.
type UpdateStrategy struct {
	// type is the way one Instance is replaced. Unset takes the operator's value, then SurgeThenDrain.
	// +optional
	Type UpdateStrategyType `json:"type,omitempty"`

	// rollingUpdate bounds how many Instances move at a time.
	// +optional
	RollingUpdate *InstanceRollingUpdate `json:"rollingUpdate,omitempty"`

	// inPlaceUpdateStrategy tunes the in-place strategies.
	// +optional
	InPlaceUpdateStrategy *InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
}

// InstanceRollingUpdate bounds how many Instances move at a time. With no budget set anywhere
// there is no bound.
type InstanceRollingUpdate struct {
	// partition holds back the Instances with the lowest indexes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Partition *int32 `json:"partition,omitempty"`

	// maxUnavailable is the budget of every strategy but SurgeThenDrain. A percentage rounds up.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is the budget of SurgeThenDrain. A percentage rounds up.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// InPlaceUpdateStrategy tunes the in-place strategies.
type InPlaceUpdateStrategy struct {
	// gracePeriodSeconds is accepted and has no effect.
	// +kubebuilder:validation:Minimum=0
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// markNotReadyDuringLifecycle takes a pod out of rotation before its images change. Unset means
	// true.
	// +optional
	MarkNotReadyDuringLifecycle *bool `json:"markNotReadyDuringLifecycle,omitempty"`
}

// MigrationPolicy says whether Instances may move to other nodes.
type MigrationPolicy struct {
	// mode allows or refuses migrations. Unset means Auto.
	// +optional
	Mode MigrationMode `json:"mode,omitempty"`
}
