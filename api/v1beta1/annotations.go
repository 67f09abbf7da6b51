package v1beta1

// Annotations of InferenceService that ask for something once. The manager removes each after it
// recorded what became of it, except where noted.
const (
	// RolloutPausedAnnotation holds every rollout of the service while it is PauseTrue or
	// PauseFreeze. It is state: only people and the resume command remove it.
	RolloutPausedAnnotation = "ome.io/rollout-paused"

	// RolloutPromoteAnnotation names the canary revision hash to advance by one step.
	RolloutPromoteAnnotation = "ome.io/rollout-promote"

	// RolloutRollbackAnnotation is "true" to return every canary of the service to its stable
	// revisions, or the canary revision hash of the one to return.
	RolloutRollbackAnnotation = "ome.io/rollout-rollback"

	// RolloutRepinAnnotation carries the digest of the plan to pin, or RepinNow.
	RolloutRepinAnnotation = "ome.io/rollout-repin"

	// RolloutResumeAnnotation names the hash of a failed or rejected canary to try again from its
	// first step, as HASH or COMPONENT=HASH. It has nothing to do with a pause.
	RolloutResumeAnnotation = "ome.io/rollout-resume"

	// MigrationRequestAnnotationPrefix, followed by a UUID, asks to move an Instance to another
	// node. The value is a JSON object.
	MigrationRequestAnnotationPrefix = "ome.io/migration-request-v1-"

	// RuntimeSyncAnnotation carries a token; a new one rolls a pinned runtime forward. It is state:
	// the manager compares it with status.lastRuntimeSyncToken and never removes it.
	RuntimeSyncAnnotation = "ome.io/runtime-sync"

	// TrafficDrainAnnotation is a JSON object of drain entries by ID. It is state: the last undrain
	// removes it.
	TrafficDrainAnnotation = "ome.io/traffic-drain"
)

// RepinNow pins whatever the live plan is.
const RepinNow = "now"

// Annotations of InferenceService that configure it.
const (
	// RolloutReadyTimeoutAnnotation overrides the ready timeout of canaries. A Go duration.
	RolloutReadyTimeoutAnnotation = "ome.io/rollout-ready-timeout"

	// RevisionHistoryLimitAnnotation is the number of old revisions to keep. A positive integer.
	RevisionHistoryLimitAnnotation = "ome.io/revision-history-limit"

	// ManagedByConflictAckedAnnotation acknowledges that another tool manages the count.
	ManagedByConflictAckedAnnotation = "ome.io/managed-by-conflict-acked"

	// AutoscalerClassAnnotation is the older way to choose a scaler for all components.
	AutoscalerClassAnnotation = "ome.io/autoscalerClass"

	// AutoscalerMetricsAnnotation is the older way to choose what a scaler looks at.
	AutoscalerMetricsAnnotation = "ome.io/metrics"

	// AutoscalerTargetUtilizationAnnotation is the older way to choose its target.
	AutoscalerTargetUtilizationAnnotation = "ome.io/targetUtilizationPercentage"

	// AcceleratorRequirementsAnnotation is an older form of placement: it makes the service a
	// placement source.
	AcceleratorRequirementsAnnotation = "ome.io/accelerator-requirements"

	// ClusterSelectorAnnotation is an older form of placement: it makes the service a placement
	// source.
	ClusterSelectorAnnotation = "ome.io/cluster-selector"
)

// DeploymentModeAnnotation, among a component's annotations, is the component's deployment mode.
const DeploymentModeAnnotation = "ome.io/deploymentMode"

// Annotations that placement puts on the InferenceServices it derives.
const (
	// PlacementOriginUIDAnnotation is the UID of the source.
	PlacementOriginUIDAnnotation = "ome.io/placement-origin-uid"

	// PlacementExecutionAnnotation is the step of the plan as JSON.
	PlacementExecutionAnnotation = "ome.io/placement-execution"

	// RolloutPlanSourceAnnotation says which policies were written into the copy.
	RolloutPlanSourceAnnotation = "ome.io/rollout-plan-source"
)

// Annotations of InferenceReplica.
const (
	// ControllerWriteAnnotation is "true" on every replica that a service projects.
	ControllerWriteAnnotation = "ome.io/controller-write"

	// ParentGenerationAnnotation is the generation of the service last applied, in decimal.
	ParentGenerationAnnotation = "ome.io/parent-generation"

	// RevisionExcludedAnnotationKeysAnnotation lists, sorted and joined by commas, the annotations
	// that came from the service and stay out of the revision hash.
	RevisionExcludedAnnotationKeysAnnotation = "ome.io/revision-excluded-annotation-keys"

	// ComposedFieldsAnnotation is written by controllers only.
	ComposedFieldsAnnotation = "ome.io/composed-fields"

	// ReleaseHeldRevisionAnnotation names a held ControllerRevision, or its hash, to try again. The
	// manager removes it.
	ReleaseHeldRevisionAnnotation = "ome.io/release-held-revision"

	// ResetInstancesAnnotation lists Instances to rebuild: ResetAllInstances or indexes joined by
	// commas. The manager removes it.
	ResetInstancesAnnotation = "ome.io/reset-instances"
)

// ResetAllInstances rebuilds every Instance.
const ResetAllInstances = "all"

// Annotations of other objects.
const (
	// TopologyKeyAnnotation, on a PodGroup, repeats the replica's topology key for schedulers.
	TopologyKeyAnnotation = "ome.io/topology-key"

	// InheritFromAnnotation, on a runtime, names the runtime it builds on.
	InheritFromAnnotation = "ome.io/inherit-from"

	// RuntimeProfileAnnotation, on a runtime, is "true" for one that exists only to be built on.
	RuntimeProfileAnnotation = "ome.io/runtime-profile"

	// RuntimeEngineAnnotation, on a runtime, names the engine it runs, such as sglang-pd.
	RuntimeEngineAnnotation = "ome.io/engine"

	// AllowInUseDeleteAnnotation, on a policy, is "true" to allow a delete while it is in use.
	AllowInUseDeleteAnnotation = "ome.io/allow-in-use-delete"

	// CreatedByAnnotation, on a stored runtime revision, is CreatedByController.
	CreatedByAnnotation = "ome.io/created-by"

	// GCEligibleSinceAnnotation, on a stored runtime revision, is when its last user went away.
	GCEligibleSinceAnnotation = "ome.io/gc-eligible-since"

	// LastGoodConfigAnnotation, on the settings ConfigMap, keeps the last values that parsed.
	LastGoodConfigAnnotation = "ome.io/last-good-config"

	// InPlaceImageTransitionAnnotation, on a pod, holds the images of an in-place update that runs.
	InPlaceImageTransitionAnnotation = "internal.ome.io/in-place-image-transition"

	// OperationIDAnnotation, on a pod, is the operation that created it.
	OperationIDAnnotation = "ome.io/operation-id"
)

// CreatedByController is the value of CreatedByAnnotation.
const CreatedByController = "ome-controller"

// AnnotationPrefix is that of every annotation of this API but the internal ones.
const AnnotationPrefix = "ome.io/"

// KnownAnnotationKeys are the keys under AnnotationPrefix that this API defines, in no order. A
// key that is nearly one of them is taken for a typing mistake. Keys that begin with
// MigrationRequestAnnotationPrefix are known as well.
func KnownAnnotationKeys() []string {
	return []string{
		RolloutPausedAnnotation, RolloutPromoteAnnotation, RolloutRollbackAnnotation,
		RolloutRepinAnnotation, RolloutResumeAnnotation, RuntimeSyncAnnotation,
		TrafficDrainAnnotation, RolloutReadyTimeoutAnnotation, RevisionHistoryLimitAnnotation,
		ManagedByConflictAckedAnnotation, AutoscalerClassAnnotation, AutoscalerMetricsAnnotation,
		AutoscalerTargetUtilizationAnnotation, AcceleratorRequirementsAnnotation,
		ClusterSelectorAnnotation, DeploymentModeAnnotation, PlacementOriginUIDAnnotation,
		PlacementExecutionAnnotation, RolloutPlanSourceAnnotation, ControllerWriteAnnotation,
		ParentGenerationAnnotation, RevisionExcludedAnnotationKeysAnnotation,
		ComposedFieldsAnnotation, ReleaseHeldRevisionAnnotation, ResetInstancesAnnotation,
		TopologyKeyAnnotation, InheritFromAnnotation, RuntimeProfileAnnotation,
		RuntimeEngineAnnotation, AllowInUseDeleteAnnotation, CreatedByAnnotation,
		GCEligibleSinceAnnotation, LastGoodConfigAnnotation, PairingProtocolLabel,
		OperationIDAnnotation,
	}
}
