package validate

// Reason codes. They end a message in parentheses, and scripts match on them.
const (
	CodeAutoscalerAnnotationConflict           = "AutoscalerAnnotationConflict"
	CodeAutoscalerPolicyFeatureDisabled        = "AutoscalerPolicyFeatureDisabled"
	CodeCanaryRequiresOMENative                = "CanaryRequiresOMENative"
	CodeCoordinationRequiresOMENative          = "CoordinationRequiresOMENative"
	CodeDuplicateComponentInCoordinationGroups = "DuplicateComponentInCoordinationGroups"
	CodeGroupOrderingNotHonored                = "GroupOrderingNotHonored"
	CodeInvalidComponentInCoordinationGroup    = "InvalidComponentInCoordinationGroup"
	CodeInvalidDeploymentModeCombination       = "InvalidDeploymentModeCombination"
	CodeInvalidDuration                        = "InvalidDuration"
	CodeInvalidLeaderWorkerPairing             = "InvalidLeaderWorkerPairing"
	CodeInvalidRollingUpdateInteger            = "InvalidRollingUpdateInteger"
	CodeInvalidRollingUpdatePercent            = "InvalidRollingUpdatePercent"
	CodeInvalidScaleToZero                     = "InvalidScaleToZero"
	CodeOrderNotHonored                        = "OrderNotHonored"
	CodeOrphanCoordinationGroup                = "OrphanCoordinationGroup"
	CodePairingProtocolChangeUncoordinated     = "PairingProtocolChangeUncoordinated"
	CodeRolloutPolicyRefUnsupported            = "RolloutPolicyRefUnsupported"
	CodeRolloutTimeoutTooShort                 = "RolloutTimeoutTooShort"
	CodeScalingModeNotImplemented              = "ScalingModeNotImplemented"
	CodeSoakNotHonored                         = "SoakNotHonored"
	CodeZeroBudgetPacingUnstartable            = "ZeroBudgetPacingUnstartable"
)
