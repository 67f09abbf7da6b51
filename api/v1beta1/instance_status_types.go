package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InstanceStatusEncoding names the encoding of Instance rows.
// +kubebuilder:validation:Enum=ColumnarV2
type InstanceStatusEncoding string

const (
	// InstanceStatusDenseV1 is the list of rows; it is never written as a marker.
	InstanceStatusDenseV1 InstanceStatusEncoding = "DenseV1"
	// InstanceStatusColumnarV2 groups indexes by value.
	InstanceStatusColumnarV2 InstanceStatusEncoding = "ColumnarV2"
)

// InstancePhase is where an Instance is in its life.
// +kubebuilder:validation:Enum=Pending;Creating;Ready;Updating;Restarting;Migrating;Failed;Deleting
type InstancePhase string

const (
	// InstancePending has no pods and no work.
	InstancePending InstancePhase = "Pending"
	// InstanceCreating makes its first pods.
	InstanceCreating InstancePhase = "Creating"
	// InstanceReady serves, or could.
	InstanceReady InstancePhase = "Ready"
	// InstanceUpdating moves to another revision.
	InstanceUpdating InstancePhase = "Updating"
	// InstanceRestarting rebuilds its pods on the same revision.
	InstanceRestarting InstancePhase = "Restarting"
	// InstanceMigrating leaves its node.
	InstanceMigrating InstancePhase = "Migrating"
	// InstanceFailed waits for a change or a reset.
	InstanceFailed InstancePhase = "Failed"
	// InstanceDeleting is on its way out.
	InstanceDeleting InstancePhase = "Deleting"
)

// InstanceStatus is the row of one Instance.
type InstanceStatus struct {
	// index is the Instance's identity for life.
	// +required
	Index int32 `json:"index"`

	// phase of the Instance.
	// +required
	Phase InstancePhase `json:"phase"`

	// incarnation counts rebuilds, from 1.
	// +optional
	Incarnation int64 `json:"incarnation,omitempty"`

	// runningRevision is the ControllerRevision of the pods that run.
	// +optional
	RunningRevision string `json:"runningRevision,omitempty"`

	// targetRevision is the ControllerRevision aimed at. Empty at rest.
	// +optional
	TargetRevision string `json:"targetRevision,omitempty"`

	// podCount counts the pods owned.
	// +optional
	PodCount int32 `json:"podCount,omitempty"`

	// servingPodCount counts the pods in rotation.
	// +optional
	ServingPodCount int32 `json:"servingPodCount,omitempty"`

	// availablePodCount counts the available pods.
	// +optional
	AvailablePodCount int32 `json:"availablePodCount,omitempty"`

	// readyPodCount is for older readers and never written.
	// +optional
	ReadyPodCount int32 `json:"readyPodCount,omitempty"`

	// scheduledPodCount is for older readers and never written.
	// +optional
	ScheduledPodCount int32 `json:"scheduledPodCount,omitempty"`

	// nodesOccupied is for older readers and never written.
	// +listType=set
	// +optional
	NodesOccupied []string `json:"nodesOccupied,omitempty"`

	// admitted is true once the pods are past the quota gate.
	// +optional
	Admitted bool `json:"admitted,omitempty"`

	// activeOrdinal is the pod name slot in use.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	ActiveOrdinal int32 `json:"activeOrdinal,omitempty"`

	// readySince is when the Instance last became Ready.
	// +optional
	ReadySince *metav1.Time `json:"readySince,omitempty"`

	// conditions of the Instance.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// operation is the work in flight, recorded before it starts.
	// +optional
	Operation *InstanceOperation `json:"operation,omitempty"`

	// lastFailure is kept after recovery.
	// +optional
	LastFailure *InstanceTermination `json:"lastFailure,omitempty"`

	// announced lists events that were already sent, as reason@episode.
	// +listType=set
	// +optional
	Announced []string `json:"announced,omitempty"`
}

// InstanceOperationType is the kind of work on an Instance.
// +kubebuilder:validation:Enum=Create;Update;Restart;Migrate;Delete
type InstanceOperationType string

const (
	OperationCreate  InstanceOperationType = "Create"
	OperationUpdate  InstanceOperationType = "Update"
	OperationRestart InstanceOperationType = "Restart"
	OperationMigrate InstanceOperationType = "Migrate"
	OperationDelete  InstanceOperationType = "Delete"
)

// Steps of an operation. The schema doesn't bound them.
const (
	// StepCreatePods makes the pods of a Create.
	StepCreatePods = "CreatePods"
	// StepInPlace changes images of an Update.
	StepInPlace = "InPlace"
	// StepDrain takes the pods out of rotation and deletes them.
	StepDrain = "Drain"
	// StepSurge brings up the new pod of an Update.
	StepSurge = "Surge"
	// StepSurgeDrain retires the old pod of an Update.
	StepSurgeDrain = "SurgeDrain"
	// StepGangSurgeTarget brings up the replacement of a multi-pod Update.
	StepGangSurgeTarget = "GangSurgeTarget"
	// StepGangSurgeTargetCleanup retires the source of a multi-pod Update.
	StepGangSurgeTargetCleanup = "GangSurgeTargetCleanup"
	// StepCreateSurge brings up the replacement of a Migrate.
	StepCreateSurge = "CreateSurge"
)

// Outside holds of an operation.
const (
	WaitingQuotaExceeded       = "QuotaExceeded"
	WaitingUnschedulable       = "Unschedulable"
	WaitingPodGroupTerminating = "PodGroupTerminating"
	WaitingNodeUnknown         = "NodeUnknown"
	WaitingPaused              = "Paused"
	WaitingSourceUnrouted      = "SourceUnrouted"
	// WaitingRestartBackoff is the delay between consecutive restarts of one Instance.
	WaitingRestartBackoff = "RestartBackoff"
)

// InstanceOperation is work on an Instance, recorded before it starts.
type InstanceOperation struct {
	// id makes the work idempotent.
	// +required
	ID string `json:"id"`

	// type of work.
	// +required
	Type InstanceOperationType `json:"type"`

	// step to resume from.
	// +required
	Step string `json:"step"`

	// startedAt is when it began.
	// +required
	StartedAt metav1.Time `json:"startedAt"`

	// lastProgressAt is when it last advanced.
	// +required
	LastProgressAt metav1.Time `json:"lastProgressAt"`

	// deadline of the work. Null while the clock is parked.
	// +nullable
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`

	// retryCount counts the tries of this step.
	// +optional
	RetryCount int32 `json:"retryCount,omitempty"`

	// targetRevision is the ControllerRevision aimed at.
	// +optional
	TargetRevision string `json:"targetRevision,omitempty"`

	// reason says why the work exists.
	// +optional
	Reason string `json:"reason,omitempty"`

	// waiting names what holds it from outside.
	// +optional
	Waiting string `json:"waiting,omitempty"`

	// capacityRefusedAt is when a quota last refused a pod.
	// +optional
	CapacityRefusedAt *metav1.Time `json:"capacityRefusedAt,omitempty"`

	// strategy of an Update, fixed when it begins.
	// +optional
	Strategy UpdateStrategyType `json:"strategy,omitempty"`

	// surgeIndex is the index of the replacement.
	// +optional
	SurgeIndex *int32 `json:"surgeIndex,omitempty"`

	// fromNode is the node that a Migrate leaves.
	// +optional
	FromNode string `json:"fromNode,omitempty"`

	// hintTargetNodes are the nodes that a Migrate prefers.
	// +listType=atomic
	// +optional
	HintTargetNodes []string `json:"hintTargetNodes,omitempty"`

	// requestUUID is the request of a Migrate.
	// +optional
	RequestUUID string `json:"requestUUID,omitempty"`
}

// InstanceTermination is a failure of a pod.
type InstanceTermination struct {
	// podName of the pod.
	// +required
	PodName string `json:"podName"`

	// containerName is empty for a failure of the whole pod.
	// +optional
	ContainerName string `json:"containerName,omitempty"`

	// reason in one word, from the kubelet where it has one.
	// +optional
	Reason string `json:"reason,omitempty"`

	// exitCode is absent when the process never ran.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// message is for people.
	// +optional
	Message string `json:"message,omitempty"`

	// time when it was recorded.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// RetryState is the state of a retry block.
// +kubebuilder:validation:Enum=Backoff;Held;RetryInProgress
type RetryState string

const (
	// RetryBackoff waits for nextRetryAt.
	RetryBackoff RetryState = "Backoff"
	// RetryHeld used up its attempts.
	RetryHeld RetryState = "Held"
	// RetryInProgress is being tried.
	RetryInProgress RetryState = "RetryInProgress"
)

// RetryBlock says whether a revision that failed may be tried again. All Instances share it.
type RetryBlock struct {
	// targetRevision is the ControllerRevision that failed.
	// +required
	TargetRevision string `json:"targetRevision"`

	// state of the block.
	// +required
	State RetryState `json:"state"`

	// attemptsStarted counts the attempts.
	// +required
	AttemptsStarted int32 `json:"attemptsStarted"`

	// countedFailures counts those of the failures that are the revision's own fault, such
	// as an image that cannot be pulled. They alone use up attempts.
	// +optional
	CountedFailures int32 `json:"countedFailures,omitempty"`

	// nextRetryAt is when the next attempt may start.
	// +optional
	NextRetryAt *metav1.Time `json:"nextRetryAt,omitempty"`

	// firstFailureAt is when it first failed.
	// +optional
	FirstFailureAt *metav1.Time `json:"firstFailureAt,omitempty"`

	// lastFailureAt is when it last failed.
	// +optional
	LastFailureAt *metav1.Time `json:"lastFailureAt,omitempty"`

	// reason of the last failure.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// MigrationTrigger says who asked for a migration.
// +kubebuilder:validation:Enum=Manual;Auto
type MigrationTrigger string

const (
	// MigrationTriggerManual came through a request annotation.
	MigrationTriggerManual MigrationTrigger = "Manual"
	// MigrationTriggerAuto is a relocation that the manager began.
	MigrationTriggerAuto MigrationTrigger = "Auto"
)

// MigrationPhase is the phase of a migration.
// +kubebuilder:validation:Enum=Accepted;SurgePending;SurgeReady;Draining;Completed;Failed;Relocated;Pending;InProgress
type MigrationPhase string

const (
	MigrationAccepted     MigrationPhase = "Accepted"
	MigrationSurgePending MigrationPhase = "SurgePending"
	MigrationSurgeReady   MigrationPhase = "SurgeReady"
	MigrationDraining     MigrationPhase = "Draining"
	MigrationCompleted    MigrationPhase = "Completed"
	MigrationFailed       MigrationPhase = "Failed"
	// MigrationRelocated is the only phase of an automatic relocation.
	MigrationRelocated MigrationPhase = "Relocated"
	// MigrationPending is read from old histories and never written.
	MigrationPending MigrationPhase = "Pending"
	// MigrationInProgress is read from old histories and never written.
	MigrationInProgress MigrationPhase = "InProgress"
)

// MigrationStatus is the record of one migration.
type MigrationStatus struct {
	// requestUUID identifies the request.
	// +required
	RequestUUID string `json:"requestUUID"`

	// trigger says who asked.
	// +required
	Trigger MigrationTrigger `json:"trigger"`

	// sourceInstance is the index that is left.
	// +required
	SourceInstance int32 `json:"sourceInstance"`

	// phase of the migration.
	// +required
	Phase MigrationPhase `json:"phase"`

	// startedAt is when the record was made.
	// +required
	StartedAt metav1.Time `json:"startedAt"`

	// deadline of the migration.
	// +required
	Deadline metav1.Time `json:"deadline"`

	// surgeInstance is the new index; absent until one is allocated.
	// +optional
	SurgeInstance *int32 `json:"surgeInstance,omitempty"`

	// allocatedAt is when work began.
	// +optional
	AllocatedAt *metav1.Time `json:"allocatedAt,omitempty"`

	// completedAt is when it ended.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// fromNode is the node that is left.
	// +optional
	FromNode string `json:"fromNode,omitempty"`

	// hintTargetNodes are the nodes preferred.
	// +listType=atomic
	// +optional
	HintTargetNodes []string `json:"hintTargetNodes,omitempty"`

	// attempt numbers the relocations of an Instance.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// reason for the migration.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message says what holds it, or how it ended.
	// +optional
	Message string `json:"message,omitempty"`

	// succeeded is true once a relocated Instance was Ready again.
	// +optional
	Succeeded *bool `json:"succeeded,omitempty"`
}
