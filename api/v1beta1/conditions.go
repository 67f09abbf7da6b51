package v1beta1

// Condition types of InferenceService.
const (
	// ConditionReady is True when the service can serve.
	ConditionReady = "Ready"

	// ConditionEngineReady is True when enough engines serve.
	ConditionEngineReady = "EngineReady"

	// ConditionDecoderReady is True when enough decoders serve.
	ConditionDecoderReady = "DecoderReady"

	// ConditionRouterReady is True when enough routers serve.
	ConditionRouterReady = "RouterReady"

	// ConditionIngressReady is True when routes are ready, or are turned off.
	ConditionIngressReady = "IngressReady"

	// ConditionOverlaysReady is True when every overlay is mounted.
	ConditionOverlaysReady = "OverlaysReady"

	// ConditionRuntimeReady appears after a runtime couldn't be resolved.
	ConditionRuntimeReady = "RuntimeReady"

	// ConditionRuntimeDrifted is True, or absent: the pin and the live runtime differ.
	ConditionRuntimeDrifted = "RuntimeDrifted"

	// ConditionRolloutPlanReady is True when a plan is pinned, or none is needed.
	ConditionRolloutPlanReady = "RolloutPlanReady"

	// ConditionRolloutPlanDrift is True when the live plan differs from the pinned one.
	ConditionRolloutPlanDrift = "RolloutPlanDrift"

	// ConditionRolloutCoordinationReady sums up the groups that aren't canaries.
	ConditionRolloutCoordinationReady = "RolloutCoordinationReady"

	// ConditionSettingsValid is False while the operator settings hold a value that doesn't parse.
	ConditionSettingsValid = "SettingsValid"

	// ConditionPreviousGone is False while replicas of a deleted service of the same name remain.
	ConditionPreviousGone = "PreviousGone"
)

// ComponentReadyCondition is the readiness condition of a component.
func ComponentReadyCondition(c ComponentType) string {
	switch c {
	case EngineComponent:
		return ConditionEngineReady
	case DecoderComponent:
		return ConditionDecoderReady
	default:
		return ConditionRouterReady
	}
}

// Reasons of the component conditions.
const (
	// ReasonReady says that all Instances serve.
	ReasonReady = "Ready"
	// ReasonMinimumAvailable says that enough Instances serve.
	ReasonMinimumAvailable = "MinimumAvailable"
	// ReasonInsufficientAvailable says that too few Instances serve.
	ReasonInsufficientAvailable = "InsufficientAvailable"
	// ReasonNoReplicas says that no Instance is wanted.
	ReasonNoReplicas = "NoReplicas"
	// ReasonReplicaRefMissing says that the fronted replica doesn't exist.
	ReasonReplicaRefMissing = "ReplicaRefMissing"
	// ReasonReplicaRefInvalid says that the fronted replica can't be fronted.
	ReasonReplicaRefInvalid = "ReplicaRefInvalid"
)

// Reasons of the other conditions of InferenceService.
const (
	// ReasonIngressDisabled says that no routes are made.
	ReasonIngressDisabled = "IngressDisabled"

	// ReasonAllOverlaysMounted and the next one belong to OverlaysReady.
	ReasonAllOverlaysMounted = "AllOverlaysMounted"
	ReasonOverlaysSkipped    = "OverlaysSkipped"

	// ReasonRuntimeNotFound and the next one belong to RuntimeReady.
	ReasonRuntimeNotFound = "RuntimeNotFound"
	ReasonRuntimeResolved = "RuntimeResolved"

	// ReasonRevisionMismatch and the next three belong to RuntimeDrifted.
	ReasonRevisionMismatch     = "RevisionMismatch"
	ReasonRevisionMissing      = "RevisionMissing"
	ReasonRuntimeMismatch      = "RuntimeMismatch"
	ReasonSourceRuntimeMissing = "SourceRuntimeMissing"

	// ReasonPinned says that an open run has a plan.
	ReasonPinned = "Pinned"
	// ReasonNoActiveRun says that no plan is needed.
	ReasonNoActiveRun = "NoActiveRun"
	// ReasonPolicyNotFound and the next four park a rollout.
	ReasonPolicyNotFound      = "PolicyNotFound"
	ReasonPolicyNotReady      = "PolicyNotReady"
	ReasonProgressionMismatch = "ProgressionMismatch"
	ReasonProviderUnbound     = "ProviderUnbound"
	ReasonPlanInvalid         = "PlanInvalid"

	// ReasonPolicyNewerThanRun and the next two belong to RolloutPlanDrift.
	ReasonPolicyNewerThanRun = "PolicyNewerThanRun"
	ReasonSpecNewerThanRun   = "SpecNewerThanRun"
	ReasonInSync             = "InSync"

	// ReasonGroupFailed and the next three belong to RolloutCoordinationReady.
	ReasonGroupFailed       = "GroupFailed"
	ReasonGroupsSettled     = "GroupsSettled"
	ReasonGroupsProgressing = "GroupsProgressing"
	ReasonGroupsPaused      = "GroupsPaused"
)

// Condition types of InferenceReplica, beside ConditionReady.
const (
	// ConditionRolloutStalled is True when an Instance failed in a rollout before its turn.
	ConditionRolloutStalled = "RolloutStalled"

	// ConditionDrainOverdue is True when an Instance on its way out is past its deadline.
	ConditionDrainOverdue = "DrainOverdue"

	// ConditionGangSchedulingUnavailable is True when multi-pod Instances have no PodGroups.
	ConditionGangSchedulingUnavailable = "GangSchedulingUnavailable"

	// ConditionMigrationPolicyUnconfigured is True when a migration waits for a setting.
	ConditionMigrationPolicyUnconfigured = "MigrationPolicyUnconfigured"

	// ConditionInstanceReadyTimeoutUnconfigured is True when operations have no deadline.
	ConditionInstanceReadyTimeoutUnconfigured = "InstanceReadyTimeoutUnconfigured"

	// ConditionStatusDecodable is False when the stored rows don't decode; all work stops.
	ConditionStatusDecodable = "StatusDecodable"
)

// Reasons of Ready on an InferenceReplica; the first that fits is reported.
const (
	// ReasonTemplateSourceMissing and the next six, and ReasonRuntimeNotFound, say that a standalone
	// replica has no pod template to run.
	ReasonTemplateSourceMissing  = "TemplateSourceMissing"
	ReasonModelNotFound          = "ModelNotFound"
	ReasonModelDisabled          = "ModelDisabled"
	ReasonRuntimeDisabled        = "RuntimeDisabled"
	ReasonRuntimeSelectionFailed = "RuntimeSelectionFailed"
	ReasonRuntimePieceMissing    = "RuntimePieceMissing"
	ReasonRenderFailed           = "RenderFailed"

	// ReasonInstanceFailed says that an Instance failed.
	ReasonInstanceFailed = "InstanceFailed"
	// ReasonStaged says that the rollout is held at a partition on purpose.
	ReasonStaged = "Staged"
	// ReasonRolloutInProgress says that a rollout is in flight.
	ReasonRolloutInProgress = "RolloutInProgress"
	// ReasonAllInstancesReady says that every Instance is ready.
	ReasonAllInstancesReady = "AllInstancesReady"
	// ReasonReplicaCountMismatch says that too few Instances serve with no rollout in flight.
	ReasonReplicaCountMismatch = "ReplicaCountMismatch"
)

// Reasons of the other conditions of InferenceReplica, first for True and then for False.
const (
	ReasonInstancesFailing                 = "InstancesFailing"
	ReasonProgressing                      = "Progressing"
	ReasonDrainsOverdue                    = "DrainsOverdue"
	ReasonDrainsWithinDeadline             = "DrainsWithinDeadline"
	ReasonPodGroupCRDNotInstalled          = "PodGroupCRDNotInstalled"
	ReasonGangSchedulingAvailable          = "GangSchedulingAvailable"
	ReasonMigrationCapacityUnconfigured    = "MigrationCapacityUnconfigured"
	ReasonMigrationCapacityConfigured      = "MigrationCapacityConfigured"
	ReasonInstanceReadyTimeoutUnconfigured = "InstanceReadyTimeoutUnconfigured"
	ReasonInstanceReadyTimeoutConfigured   = "InstanceReadyTimeoutConfigured"
)

// Condition types of an Instance.
const (
	ConditionAllPodsScheduled         = "AllPodsScheduled"
	ConditionAllPodsReady             = "AllPodsReady"
	ConditionAllPodsAvailable         = "AllPodsAvailable"
	ConditionDrained                  = "Drained"
	ConditionInstanceFailed           = "Failed"
	ConditionProgressDeadlineExceeded = "ProgressDeadlineExceeded"
)

// ServingReadinessGate is the pod condition that puts a pod into rotation. It is a readiness gate
// of every pod of an InferenceReplica, and only the manager writes it.
const ServingReadinessGate = "ome.io/serving"

// ConditionInheritanceReady, on a runtime, is True when every runtime it builds on was found.
const ConditionInheritanceReady = "InheritanceReady"

// Reasons of ConditionInheritanceReady.
const (
	ReasonResolved         = "Resolved"
	ReasonParentNotFound   = "ParentNotFound"
	ReasonInheritanceCycle = "InheritanceCycle"
	ReasonMaxDepthExceeded = "MaxDepthExceeded"
	ReasonResolverError    = "ResolverError"
)
