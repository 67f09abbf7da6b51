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
