package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// InferenceServiceStatus is what the manager saw and did.
type InferenceServiceStatus struct {
	// observedGeneration is the generation that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// annotations have no use.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// conditions of the service.
	// +listType=atomic
	// +optional
	Conditions []DuckCondition `json:"conditions,omitempty"`

	// url is the primary address.
	// +optional
	URL string `json:"url,omitempty"`

	// address is the entry of addresses that is local to the cluster.
	// +optional
	Address *Addressable `json:"address,omitempty"`

	// addresses are all entry points.
	// +listType=atomic
	// +optional
	Addresses []Addressable `json:"addresses,omitempty"`

	// components reports each declared component.
	// +optional
	Components map[ComponentType]ComponentStatus `json:"components,omitempty"`

	// modelStatus reports the load of the model. Unset for a service without a model.
	// +optional
	ModelStatus *ModelStatus `json:"modelStatus,omitempty"`

	// migrationHistory holds the last migrations.
	// +listType=atomic
	// +optional
	MigrationHistory []MigrationHistoryEntry `json:"migrationHistory,omitempty"`

	// mountedOverlays are the overlays that pods get.
	// +listType=map
	// +listMapKey=name
	// +optional
	MountedOverlays []MountedOverlay `json:"mountedOverlays,omitempty"`

	// traffic is the outcome of spec.traffic.
	// +optional
	Traffic *TrafficStatus `json:"traffic,omitempty"`

	// canary repeats the canary of the entry component, for older readers.
	// +optional
	Canary *CanaryStatus `json:"canary,omitempty"`

	// rollout reports the open run, the closed ones and what would be pinned now.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// rolloutCoordination reports the groups that aren't canaries.
	// +optional
	RolloutCoordination *RolloutCoordinationStatus `json:"rolloutCoordination,omitempty"`

	// placement reports the clusters. Written on a control plane only.
	// +optional
	Placement *PlacementStatus `json:"placement,omitempty"`

	// pinnedRevisionName is the stored runtime revision in use. It is stale when autoSync is on.
	// +optional
	PinnedRevisionName string `json:"pinnedRevisionName,omitempty"`

	// lastRuntimeSyncToken is the value of ome.io/runtime-sync that was last acted on.
	// +optional
	LastRuntimeSyncToken string `json:"lastRuntimeSyncToken,omitempty"`
}

// DuckCondition is the condition shape of InferenceService. It has no observedGeneration of its
// own: the status as a whole carries one.
type DuckCondition struct {
	// type of the condition.
	// +required
	Type string `json:"type"`

	// status is True, False or Unknown.
	// +required
	Status corev1.ConditionStatus `json:"status"`

	// severity of a status other than True. Empty means error.
	// +optional
	Severity string `json:"severity,omitempty"`

	// reason is one word for programs.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message is for people.
	// +optional
	Message string `json:"message,omitempty"`

	// lastTransitionTime is when status last changed.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=""
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// Addressable is one entry point.
type Addressable struct {
	// name carries the gateway class.
	// +optional
	Name *string `json:"name,omitempty"`

	// url of the entry point.
	// +optional
	URL string `json:"url,omitempty"`

	// CACerts is a bundle in PEM form.
	// +optional
	CACerts *string `json:"CACerts,omitempty"`

	// audience for tokens.
	// +optional
	Audience *string `json:"audience,omitempty"`
}

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

// ModelTransitionStatus compares the wanted model with the pods.
// +kubebuilder:validation:Enum="";UpToDate;InProgress;BlockedByFailedLoad;InvalidSpec
type ModelTransitionStatus string

const (
	ModelUpToDate            ModelTransitionStatus = "UpToDate"
	ModelInProgress          ModelTransitionStatus = "InProgress"
	ModelBlockedByFailedLoad ModelTransitionStatus = "BlockedByFailedLoad"
	ModelInvalidSpec         ModelTransitionStatus = "InvalidSpec"
)

// ModelState is the load state of a model.
// +kubebuilder:validation:Enum="";Pending;Standby;Loading;Loaded;FailedToLoad
type ModelState string

const (
	ModelPending      ModelState = "Pending"
	ModelStandby      ModelState = "Standby"
	ModelLoading      ModelState = "Loading"
	ModelLoaded       ModelState = "Loaded"
	ModelFailedToLoad ModelState = "FailedToLoad"
)

// ModelFailureReason classifies a failed load.
// +kubebuilder:validation:Enum=BaseModelNotReady;BaseModelNotFound;ModelLoadFailed;RuntimeUnhealthy;RuntimeDisabled;NoSupportingRuntime;RuntimeNotRecognized
type ModelFailureReason string

const (
	ModelFailureBaseModelNotReady    ModelFailureReason = "BaseModelNotReady"
	ModelFailureBaseModelNotFound    ModelFailureReason = "BaseModelNotFound"
	ModelFailureLoadFailed           ModelFailureReason = "ModelLoadFailed"
	ModelFailureRuntimeUnhealthy     ModelFailureReason = "RuntimeUnhealthy"
	ModelFailureRuntimeDisabled      ModelFailureReason = "RuntimeDisabled"
	ModelFailureNoSupportingRuntime  ModelFailureReason = "NoSupportingRuntime"
	ModelFailureRuntimeNotRecognized ModelFailureReason = "RuntimeNotRecognized"
)

// ModelStatus reports the load of the model.
type ModelStatus struct {
	// transitionStatus compares the wanted model with the pods.
	// +optional
	TransitionStatus ModelTransitionStatus `json:"transitionStatus,omitempty"`

	// modelRevisionStates holds the served and the wanted state.
	// +optional
	ModelRevisionStates *ModelRevisionStates `json:"modelRevisionStates,omitempty"`

	// lastFailureInfo is the last failure.
	// +optional
	LastFailureInfo *ModelFailureInfo `json:"lastFailureInfo,omitempty"`

	// modelCopies counts the copies.
	// +optional
	ModelCopies *ModelCopies `json:"modelCopies,omitempty"`
}

// ModelRevisionStates holds the served and the wanted state.
type ModelRevisionStates struct {
	// activeModelState is the served state.
	// +kubebuilder:default=Pending
	// +required
	ActiveModelState ModelState `json:"activeModelState"`

	// targetModelState is the wanted state.
	// +kubebuilder:default=""
	// +optional
	TargetModelState ModelState `json:"targetModelState,omitempty"`
}

// ModelFailureInfo is one failed load.
type ModelFailureInfo struct {
	// location of the failure, such as a pod.
	// +optional
	Location string `json:"location,omitempty"`

	// reason classifies the failure.
	// +optional
	Reason ModelFailureReason `json:"reason,omitempty"`

	// message is for people.
	// +optional
	Message string `json:"message,omitempty"`

	// modelRevisionName is the revision that failed.
	// +optional
	ModelRevisionName string `json:"modelRevisionName,omitempty"`

	// time of the failure.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// exitCode of the container.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
}

// ModelCopies counts the copies of the model.
type ModelCopies struct {
	// failedCopies counts the pods whose load failed.
	// +kubebuilder:default=0
	// +required
	FailedCopies int `json:"failedCopies"`

	// totalCopies counts the pods with the model loaded.
	// +optional
	TotalCopies int `json:"totalCopies,omitempty"`
}

// MigrationHistoryEntry is one migration, kept for a while after its end.
type MigrationHistoryEntry struct {
	// id is the UUID of the request.
	// +required
	ID types.UID `json:"id"`

	// component that the Instance belongs to.
	// +required
	Component ComponentType `json:"component"`

	// instance is the index that was left.
	// +required
	Instance int32 `json:"instance"`

	// mode of the migration.
	// +kubebuilder:validation:Enum=Surge
	// +required
	Mode MigrationMode `json:"mode"`

	// phase reached.
	// +required
	Phase MigrationPhase `json:"phase"`

	// requestedAt is when it was asked for.
	// +required
	RequestedAt metav1.Time `json:"requestedAt"`

	// replacementInstance is the new index; absent when none was allocated.
	// +optional
	ReplacementInstance *int32 `json:"replacementInstance,omitempty"`

	// startedAt is when work began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// completedAt is when it ended.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// reason given by the requester.
	// +optional
	Reason string `json:"reason,omitempty"`

	// requestedBy is who asked.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// outcomeReason says why it ended as it did.
	// +optional
	OutcomeReason string `json:"outcomeReason,omitempty"`

	// events are its milestones.
	// +listType=atomic
	// +optional
	Events []MigrationHistoryEvent `json:"events,omitempty"`
}

// MigrationHistoryEvent is one milestone of a migration.
type MigrationHistoryEvent struct {
	// at is when it happened.
	// +required
	At metav1.Time `json:"at"`

	// message says what happened.
	// +required
	Message string `json:"message"`
}

// MountedOverlay is an overlay that pods get.
type MountedOverlay struct {
	// name of the model object.
	// +required
	Name string `json:"name"`

	// envVar holds the mount path in the pods.
	// +required
	EnvVar string `json:"envVar"`

	// distribution of the model.
	// +required
	Distribution string `json:"distribution"`

	// mountPath in the pods; empty for a sharded model.
	// +optional
	MountPath string `json:"mountPath,omitempty"`
}

// TrafficStatus is the outcome of spec.traffic.
type TrafficStatus struct {
	// algorithm in force; Default when none was asked for.
	// +optional
	Algorithm string `json:"algorithm,omitempty"`

	// backendPolicyResource is the policy object that was written.
	// +optional
	BackendPolicyResource *ScaleTargetRef `json:"backendPolicyResource,omitempty"`

	// targetedHTTPRoutes are the routes it applies to.
	// +listType=atomic
	// +optional
	TargetedHTTPRoutes []string `json:"targetedHTTPRoutes,omitempty"`

	// conditions of the policy.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
