package v1beta1

// Reasons of events. An event is never the only evidence of anything: what matters is in status.
const (
	EventRolloutPlanParked          = "RolloutPlanParked"
	EventRolloutPlanRepinned        = "RolloutPlanRepinned"
	EventRolloutRepinRejected       = "RolloutRepinRejected"
	EventRolloutRunOpened           = "RolloutRunOpened"
	EventRolloutRunClosed           = "RolloutRunClosed"
	EventCoordinationGroupFailed    = "CoordinationGroupFailed"
	EventCanaryStepAdvanced         = "CanaryStepAdvanced"
	EventCanaryFailed               = "CanaryFailed"
	EventCanaryRollbackStarted      = "CanaryRollbackStarted"
	EventCanaryRollbackIgnored      = "CanaryRollbackIgnored"
	EventCanaryCompleted            = "CanaryCompleted"
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
)
