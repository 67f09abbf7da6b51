package v1beta1

// Reasons of events. An event is never the only evidence of anything: what matters is in status.
const (
	EventRolloutPlanParked       = "RolloutPlanParked"
	EventRolloutPlanRepinned     = "RolloutPlanRepinned"
	EventRolloutRepinRejected    = "RolloutRepinRejected"
	EventRolloutRunOpened        = "RolloutRunOpened"
	EventRolloutRunClosed        = "RolloutRunClosed"
	EventCoordinationGroupFailed = "CoordinationGroupFailed"
	EventCanaryStepAdvanced      = "CanaryStepAdvanced"
	EventCanaryFailed            = "CanaryFailed"
	EventCanaryRollbackStarted   = "CanaryRollbackStarted"
	EventCanaryRollbackIgnored   = "CanaryRollbackIgnored"
	EventCanaryCompleted         = "CanaryCompleted"
	// EventCanaryRetried: a failed or rejected canary starts again on request.
	EventCanaryRetried = "CanaryRetried"
	// EventCanaryCapacityLost: a step lost ready Instances, and its timers start anew.
	EventCanaryCapacityLost = "CanaryCapacityLost"
	// EventCanaryPromoteIgnored and EventCanaryRetryIgnored: a request that nothing could use.
	EventCanaryPromoteIgnored       = "CanaryPromoteIgnored"
	EventCanaryRetryIgnored         = "CanaryRetryIgnored"
	EventRatioGateBypassed          = "RatioGateBypassed"
	EventRetryHeld                  = "RetryHeld"
	EventRetryBlockReleased         = "RetryBlockReleased"
	EventRetryBlockReleaseSkipped   = "RetryBlockReleaseSkipped"
	EventInstanceFailed             = "InstanceFailed"
	EventInPlaceUpdateNotPossible   = "InPlaceUpdateNotPossible"
	EventGangSurgeAbandoned         = "GangSurgeAbandoned"
	EventTrafficReconcileError      = "TrafficReconcileError"
	EventDeploymentModeError        = "DeploymentModeError"
	EventRuntimeCompatibilityAdvice = "RuntimeCompatibilityAdvisory"

	// EventTerminalPodRecycled: a pod ended while its Instance came up, and is replaced.
	EventTerminalPodRecycled = "TerminalPodRecycled"
	// EventRestartTriggered and EventRestartCompleted frame a whole-Instance restart.
	EventRestartTriggered = "RestartTriggered"
	EventRestartCompleted = "RestartCompleted"
	// EventRepairHeld: a restart that a crash loop asks for has no budget.
	EventRepairHeld = "RepairHeld"
	// EventFoundOrphan: a pod without an incarnation keeps a restart waiting.
	EventFoundOrphan = "FoundOrphan"

	EventInstancesReset         = "InstancesReset"
	EventInstancesResetSkipped  = "InstancesResetSkipped"
	EventInstancesResetRejected = "InstancesResetRejected"

	// EventAutoMigrationTriggered: an attempt failed on a node and is made on another one.
	EventAutoMigrationTriggered = "AutoMigrationTriggered"
	// EventAutoMigrationCapReached: it was the last relocation until the Instance is Ready.
	EventAutoMigrationCapReached = "AutoMigrationCapReached"

	EventDrainOverdue                = "DrainOverdue"
	EventPodForceDeleted             = "PodForceDeleted"
	EventPodDeleteBlockedByFinalizer = "PodDeleteBlockedByFinalizer"
	EventTeardownDeadlineExceeded    = "TeardownDeadlineExceeded"
	EventTeardownBlocked             = "TeardownBlocked"

	EventInstanceStatusConverted    = "InstanceStatusConverted"
	EventInstanceStatusDecodeFailed = "InstanceStatusDecodeFailed"
	EventStatusSizeExceeded         = "StatusSizeExceeded"
)
