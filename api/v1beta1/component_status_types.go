package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutPhase is the phase of a component's rollout. Empty while nothing is in flight.
// +kubebuilder:validation:Enum=Stable;Canarying;BlueGreenStandby;Pending;Paused;Promoting;RollingBack;RolledBack;Failed
type RolloutPhase string

const (
	RolloutStable RolloutPhase = "Stable"
	// RolloutCanarying is a canary that waits in a gate with its capacity ready.
	RolloutCanarying RolloutPhase = "Canarying"
	// RolloutBlueGreenStandby is read and never written.
	RolloutBlueGreenStandby RolloutPhase = "BlueGreenStandby"
	// RolloutPending waits for capacity.
	RolloutPending RolloutPhase = "Pending"
	// RolloutPaused is held by a pause or a manual gate.
	RolloutPaused      RolloutPhase = "Paused"
	RolloutPromoting   RolloutPhase = "Promoting"
	RolloutRollingBack RolloutPhase = "RollingBack"
	RolloutRolledBack  RolloutPhase = "RolledBack"
	RolloutFailed      RolloutPhase = "Failed"
)

// ComponentStatus reports one component.
type ComponentStatus struct {
	// url of the component.
	// +optional
	URL string `json:"url,omitempty"`

	// restURL of the component.
	// +optional
	RestURL string `json:"restURL,omitempty"`

	// address of the component inside the cluster.
	// +optional
	Address *Addressable `json:"address,omitempty"`

	// selectedAccelerator is the accelerator in use.
	// +optional
	SelectedAccelerator *SelectedAccelerator `json:"selectedAccelerator,omitempty"`

	// lifecycle reports the Instances. OMENative only.
	// +optional
	Lifecycle *LifecycleStatus `json:"lifecycle,omitempty"`

	// rolloutPhase is the phase of the component's rollout.
	// +optional
	RolloutPhase RolloutPhase `json:"rolloutPhase,omitempty"`

	// latestReadyRevision is the revision Service of the newest revision with ready pods.
	// +optional
	LatestReadyRevision string `json:"latestReadyRevision,omitempty"`

	// latestRolledoutRevision is the revision Service of the revision that owns the traffic.
	// +optional
	LatestRolledoutRevision string `json:"latestRolledoutRevision,omitempty"`

	// previousRolledoutRevision is the owner of the traffic before that.
	// +optional
	PreviousRolledoutRevision string `json:"previousRolledoutRevision,omitempty"`

	// traffic is the recorded weight of each revision.
	// +listType=map
	// +listMapKey=revisionName
	// +optional
	Traffic []TrafficTarget `json:"traffic,omitempty"`

	// trafficApplied says whether routes follow the recorded weights.
	// +optional
	TrafficApplied *TrafficApplied `json:"trafficApplied,omitempty"`

	// canary is the step machine of the unit that this component is the entry of.
	// +optional
	Canary *CanaryStatus `json:"canary,omitempty"`

	// autoscaler is the scaler in force.
	// +optional
	Autoscaler *ComponentAutoscalerStatus `json:"autoscaler,omitempty"`

	// scaleTargetRef is the object to scale.
	// +optional
	ScaleTargetRef *ScaleTargetRef `json:"scaleTargetRef,omitempty"`
}

// SelectedAccelerator is the accelerator in use.
type SelectedAccelerator struct {
	// acceleratorClass that was chosen.
	// +required
	AcceleratorClass string `json:"acceleratorClass"`

	// reason for the choice.
	// +optional
	Reason string `json:"reason,omitempty"`

	// nodeSelector that the choice added.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// resourceRequests that the choice added.
	// +optional
	ResourceRequests map[string]string `json:"resourceRequests,omitempty"`
}

// ScaleTargetRef is the object to scale.
type ScaleTargetRef struct {
	// apiVersion of the object.
	// +required
	APIVersion string `json:"apiVersion"`

	// kind of the object.
	// +required
	Kind string `json:"kind"`

	// name of the object.
	// +required
	Name string `json:"name"`
}

// LifecycleStatus reports the Instances of a component.
type LifecycleStatus struct {
	// observedGeneration is the generation of the service that this reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// currentRevision is the ControllerRevision that serves.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// updateRevision is the ControllerRevision being rolled out.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// collisionCount salts the revision hash after a name collision.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// labelSelector selects the pods of the component.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// replicas counts the Instances in any phase.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas counts the Instances whose pods all have ready containers.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// servingReplicas counts the Instances in rotation. Budgets use this number.
	// +optional
	ServingReplicas int32 `json:"servingReplicas"`

	// availableReplicas counts the Instances that are listed and past minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// updatedReplicas counts the Instances on updateRevision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// updatedReadyReplicas counts those of them that are ready.
	// +optional
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`

	// conditions repeat those of the replica.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// rolloutHold says why the rollout of this component waits.
	// +optional
	RolloutHold *RolloutHold `json:"rolloutHold,omitempty"`
}

// RolloutHoldGate is the layer that denied an update.
// +kubebuilder:validation:Enum=Pairing;Ratio;Sequential;Budget;RetryBlock;Held;Plan
type RolloutHoldGate string

const (
	// GatePairing keeps an engine and decoder pair of one token serving.
	GatePairing RolloutHoldGate = "Pairing"
	// GateRatio keeps the replica ratio inside its tolerance.
	GateRatio RolloutHoldGate = "Ratio"
	// GateSequential waits for the group before.
	GateSequential RolloutHoldGate = "Sequential"
	// GateBudget waits for a surge or unavailability slot.
	GateBudget RolloutHoldGate = "Budget"
	// GateRetryBlock waits for the next attempt of a revision that failed.
	GateRetryBlock RolloutHoldGate = "RetryBlock"
	// GateHeld waits for a new revision, or a release, after the last attempt failed.
	GateHeld RolloutHoldGate = "Held"
	// GatePlan waits for a pinned plan.
	GatePlan RolloutHoldGate = "Plan"
)

// RolloutHold is the latest reason why an update was denied.
type RolloutHold struct {
	// gate is the layer that denied.
	// +required
	Gate RolloutHoldGate `json:"gate"`

	// reason says what it waits for.
	// +required
	Reason string `json:"reason"`

	// target is the ControllerRevision aimed at.
	// +optional
	Target string `json:"target,omitempty"`

	// since is when this gate first denied this target. A new reason doesn't restart it.
	// +required
	Since metav1.Time `json:"since"`
}

// TrafficTarget is the recorded weight of one revision. A revision of weight zero has no entry.
type TrafficTarget struct {
	// revisionName is the revision Service.
	// +required
	RevisionName string `json:"revisionName"`

	// percent is the weight. The entries of a component sum to 100.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +required
	Percent int32 `json:"percent"`

	// tag is canary or stable during a canary.
	// +optional
	Tag string `json:"tag,omitempty"`

	// latestRevision marks the newest entry.
	// +optional
	LatestRevision *bool `json:"latestRevision,omitempty"`

	// pairingProtocol is the wire token of the revision. Empty pairs with anything.
	// +optional
	PairingProtocol string `json:"pairingProtocol,omitempty"`
}

// TrafficApplied says whether routes follow the recorded weights.
type TrafficApplied struct {
	// applied is true while routes carry the recorded weights.
	// +required
	Applied bool `json:"applied"`

	// reason says why, or why not.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ComponentAutoscalerStatus is the scaler in force.
type ComponentAutoscalerStatus struct {
	// class that was resolved.
	// +optional
	Class AutoscalerClass `json:"class,omitempty"`

	// managedBy is the owner of the scaler.
	// +kubebuilder:validation:Enum=ome;external;none
	// +optional
	ManagedBy string `json:"managedBy,omitempty"`

	// specSource is the layer that won: isvc, policy, runtime, legacy or default.
	// +optional
	SpecSource string `json:"specSource,omitempty"`

	// policy in use.
	// +optional
	Policy *AutoscalerPolicyStatusRef `json:"policy,omitempty"`

	// shadowedPolicyRef is a policy that a stronger layer outranks.
	// +optional
	ShadowedPolicyRef *ShadowedAutoscalerPolicy `json:"shadowedPolicyRef,omitempty"`

	// currentReplicas as the scaler reports it.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`

	// desiredReplicas as the scaler reports it.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas,omitempty"`

	// lastScaleTime as the scaler reports it.
	// +optional
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`

	// conditions of the scaler.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Words of ComponentAutoscalerStatus.ManagedBy.
const (
	AutoscalerManagedByOME      = "ome"
	AutoscalerManagedByExternal = "external"
	AutoscalerManagedByNone     = "none"
)

// AutoscalerPolicyStatusRef is the policy in use.
type AutoscalerPolicyStatusRef struct {
	// name of the policy.
	// +required
	Name string `json:"name"`

	// observedGeneration of the policy.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// portableDigest of the policy.
	// +optional
	PortableDigest string `json:"portableDigest,omitempty"`

	// resolvedDigest of what it rendered to.
	// +optional
	ResolvedDigest string `json:"resolvedDigest,omitempty"`
}

// ShadowedAutoscalerPolicy is a policy that a stronger layer outranks.
type ShadowedAutoscalerPolicy struct {
	// name of the policy.
	// +required
	Name string `json:"name"`

	// portableDigest of the policy.
	// +optional
	PortableDigest string `json:"portableDigest,omitempty"`

	// wouldRenderDigest is the digest of what it would render to.
	// +optional
	WouldRenderDigest string `json:"wouldRenderDigest,omitempty"`
}
