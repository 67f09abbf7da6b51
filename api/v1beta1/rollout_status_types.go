package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutStatus reports the open run, the closed ones and what would be pinned now.
type RolloutStatus struct {
	// observedGeneration is the generation of the service that this write reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// observedPause is the pause in force: empty, true or freeze.
	// +kubebuilder:validation:Enum="";"true";freeze
	// +optional
	ObservedPause string `json:"observedPause,omitempty"`

	// activeRun is the open run. Absent while none is.
	// +optional
	ActiveRun *RolloutRun `json:"activeRun,omitempty"`

	// lastRun is the run closed last.
	// +optional
	LastRun *RolloutRunRecord `json:"lastRun,omitempty"`

	// groups says what a new run would pin, for each group of the spec.
	// +listType=atomic
	// +optional
	Groups []GroupResolution `json:"groups,omitempty"`

	// history holds the last closed runs, newest first.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	History []RolloutRunHistoryEntry `json:"history,omitempty"`
}

// MaxRolloutHistory is the number of closed runs kept in status.
const MaxRolloutHistory = 10

// Values of RolloutStatus.ObservedPause, and of the pause annotation.
const (
	// PauseTrue stops the rollout; broken Instances are still repaired.
	PauseTrue = "true"
	// PauseFreeze stops repair too.
	PauseFreeze = "freeze"
)

// RolloutRun is one rollout with its frozen plan.
type RolloutRun struct {
	// runID is unique. A change of target opens a new run.
	// +required
	RunID string `json:"runID"`

	// openedAt is when the run began.
	// +required
	OpenedAt metav1.Time `json:"openedAt"`

	// pinnedAt is when the plan was last pinned. The newer side wins between writers.
	// +required
	PinnedAt metav1.Time `json:"pinnedAt"`

	// targetRevisions are the targets at open.
	// +listType=map
	// +listMapKey=component
	// +optional
	TargetRevisions []RunTarget `json:"targetRevisions,omitempty"`

	// plan is frozen while the run is open.
	// +required
	Plan RolloutPlan `json:"plan"`
}

// RunTarget is the target of one component.
type RunTarget struct {
	// component that moves.
	// +required
	Component ComponentType `json:"component"`

	// revision is the hash aimed at.
	// +optional
	Revision string `json:"revision,omitempty"`

	// stableRevision is the hash to return to.
	// +optional
	StableRevision string `json:"stableRevision,omitempty"`
}

// RolloutPlan is a frozen plan.
type RolloutPlan struct {
	// groups in pinned order.
	// +kubebuilder:validation:MaxItems=3
	// +listType=atomic
	// +optional
	Groups []RunGroup `json:"groups,omitempty"`
}

// ProgressionSource says where the progression of a group came from.
// +kubebuilder:validation:Enum=Inline;Policy
type ProgressionSource string

const (
	// SourceInline is the service itself, or the default.
	SourceInline ProgressionSource = "Inline"
	// SourcePolicy is a RolloutPolicy.
	SourcePolicy ProgressionSource = "Policy"
)

// RunGroup is one pinned group.
type RunGroup struct {
	// source of the progression.
	// +required
	Source ProgressionSource `json:"source"`

	// policyRef is the policy, when it is the source.
	// +optional
	PolicyRef *RolloutPolicyRef `json:"policyRef,omitempty"`

	// policyGeneration is the generation of the policy when it was pinned.
	// +optional
	PolicyGeneration int64 `json:"policyGeneration,omitempty"`

	// portableDigest is the digest of the pinned progression.
	// +optional
	PortableDigest string `json:"portableDigest,omitempty"`

	// group as resolved: exactly one progression and no policyRef.
	// +required
	Group RolloutGroup `json:"group"`
}

// RunOutcome is how a run ended.
// +kubebuilder:validation:Enum=Completed;RolledBack;Superseded
type RunOutcome string

const (
	// RunCompleted reached its targets.
	RunCompleted RunOutcome = "Completed"
	// RunRolledBack went back to the stable revisions.
	RunRolledBack RunOutcome = "RolledBack"
	// RunSuperseded gave way to a newer target.
	RunSuperseded RunOutcome = "Superseded"
)

// RolloutRunRecord is what is kept of the run closed last.
type RolloutRunRecord struct {
	// runID of the run.
	// +optional
	RunID string `json:"runID,omitempty"`

	// outcome of the run.
	// +required
	Outcome RunOutcome `json:"outcome"`

	// openedAt is when the run began.
	// +optional
	OpenedAt *metav1.Time `json:"openedAt,omitempty"`

	// closedAt is when the run ended.
	// +optional
	ClosedAt *metav1.Time `json:"closedAt,omitempty"`

	// targetRevisions of the run.
	// +listType=map
	// +listMapKey=component
	// +optional
	TargetRevisions []RunTarget `json:"targetRevisions,omitempty"`

	// groups of the run.
	// +listType=atomic
	// +optional
	Groups []RunGroupRecord `json:"groups,omitempty"`
}

// RunGroupRecord is what is kept of a pinned group.
type RunGroupRecord struct {
	// source of the progression.
	// +required
	Source ProgressionSource `json:"source"`

	// policyRef is the policy, when it was the source.
	// +optional
	PolicyRef *RolloutPolicyRef `json:"policyRef,omitempty"`

	// portableDigest is the digest of the pinned progression.
	// +optional
	PortableDigest string `json:"portableDigest,omitempty"`
}

// RolloutRunHistoryEntry is one closed run in the audit trail.
type RolloutRunHistoryEntry struct {
	// runID of the run.
	// +required
	RunID string `json:"runID"`

	// outcome of the run.
	// +required
	Outcome RunOutcome `json:"outcome"`

	// openedAt is when the run began.
	// +optional
	OpenedAt *metav1.Time `json:"openedAt,omitempty"`

	// closedAt is when the run ended.
	// +optional
	ClosedAt *metav1.Time `json:"closedAt,omitempty"`

	// targetRevisions of the run.
	// +listType=map
	// +listMapKey=component
	// +optional
	TargetRevisions []RunTarget `json:"targetRevisions,omitempty"`

	// cause says what opened or ended the run.
	// +optional
	Cause string `json:"cause,omitempty"`

	// actor is who asked, where that is known.
	// +optional
	Actor string `json:"actor,omitempty"`
}

// GroupResolution says what a new run would pin for one group of the spec.
type GroupResolution struct {
	// index in spec.rollout.groups.
	// +required
	Index int32 `json:"index"`

	// source that a new run would use.
	// +required
	Source ProgressionSource `json:"source"`

	// policyRef of the group.
	// +optional
	PolicyRef *RolloutPolicyRef `json:"policyRef,omitempty"`

	// observedDigest of the live progression. Empty while it can't be resolved.
	// +optional
	ObservedDigest string `json:"observedDigest,omitempty"`

	// shadowedPolicyRef is a policy that the group's own progression outranks.
	// +optional
	ShadowedPolicyRef *ShadowedRolloutPolicy `json:"shadowedPolicyRef,omitempty"`
}

// ShadowedRolloutPolicy is a policy that the group's own progression outranks.
type ShadowedRolloutPolicy struct {
	// name of the policy.
	// +required
	Name string `json:"name"`

	// wouldPinDigest is the digest it would pin.
	// +optional
	WouldPinDigest string `json:"wouldPinDigest,omitempty"`
}

// CanaryFailureReason says why a canary parked.
// +kubebuilder:validation:Enum=CapacityTimeout;AnalysisStalled;StableRevisionMissing
type CanaryFailureReason string

const (
	CanaryCapacityTimeout       CanaryFailureReason = "CapacityTimeout"
	CanaryAnalysisStalled       CanaryFailureReason = "AnalysisStalled"
	CanaryStableRevisionMissing CanaryFailureReason = "StableRevisionMissing"
)

// CanaryStatus is the step machine of one canary unit.
type CanaryStatus struct {
	// observedGeneration is the generation of the service that this write reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// targetID identifies the set of targets. Another set starts the canary again.
	// +optional
	TargetID string `json:"targetID,omitempty"`

	// canaryRevisionHash is being rolled out.
	// +optional
	CanaryRevisionHash string `json:"canaryRevisionHash,omitempty"`

	// stableRevisionHash is what a rollback returns to.
	// +optional
	StableRevisionHash string `json:"stableRevisionHash,omitempty"`

	// currentStep counts from zero and equals the number of steps at the end.
	// +required
	CurrentStep int32 `json:"currentStep"`

	// stepEnteredTime is when the step's Instances were ready. Its timers start here.
	// +optional
	StepEnteredTime *metav1.Time `json:"stepEnteredTime,omitempty"`

	// observedTrafficWeight is the recorded weight.
	// +required
	ObservedTrafficWeight int32 `json:"observedTrafficWeight"`

	// promotedThrough is the promote value already used.
	// +optional
	PromotedThrough string `json:"promotedThrough,omitempty"`

	// preStepHold waits for a promote after a repin raised the weight.
	// +optional
	PreStepHold bool `json:"preStepHold,omitempty"`

	// rolledBackRevisionHash was rejected and stays out until another target appears.
	// +optional
	RolledBackRevisionHash string `json:"rolledBackRevisionHash,omitempty"`

	// members lists the revisions of every component of the unit.
	// +listType=map
	// +listMapKey=component
	// +optional
	Members []CanaryMember `json:"members,omitempty"`

	// analysisFailedChecks counts the failing samples of this step.
	// +optional
	AnalysisFailedChecks int32 `json:"analysisFailedChecks,omitempty"`

	// lastEvaluationTime is when the last sample was judged.
	// +optional
	LastEvaluationTime *metav1.Time `json:"lastEvaluationTime,omitempty"`

	// lastConclusiveEvaluationTime is when a sample last passed or failed.
	// +optional
	LastConclusiveEvaluationTime *metav1.Time `json:"lastConclusiveEvaluationTime,omitempty"`

	// metricResults is the last sample of each metric.
	// +listType=map
	// +listMapKey=name
	// +optional
	MetricResults []MetricResult `json:"metricResults,omitempty"`

	// analysisSeries remembers the series seen while the step has had its capacity, so that one that
	// disappears is noticed.
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +optional
	AnalysisSeries []AnalysisSeries `json:"analysisSeries,omitempty"`

	// capacityWaitSince is when capacity was last found missing.
	// +optional
	CapacityWaitSince *metav1.Time `json:"capacityWaitSince,omitempty"`

	// failed says why the canary parked.
	// +optional
	Failed *CanaryFailure `json:"failed,omitempty"`

	// lastRequest is the request annotation handled last, and what became of it.
	// +optional
	LastRequest *CanaryRequest `json:"lastRequest,omitempty"`
}

// CanaryMember holds the revisions of one component of a unit.
type CanaryMember struct {
	// component of the unit.
	// +required
	Component ComponentType `json:"component"`

	// stable is the hash to return to.
	// +optional
	Stable string `json:"stable,omitempty"`

	// rejected is the hash that was rolled back.
	// +optional
	Rejected string `json:"rejected,omitempty"`
}

// CanaryFailure says why a canary parked.
type CanaryFailure struct {
	// reason in one word.
	// +required
	Reason CanaryFailureReason `json:"reason"`

	// time when it parked.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// CanaryRequest is a request annotation that was handled.
type CanaryRequest struct {
	// key of the annotation.
	// +required
	Key string `json:"key"`

	// value of the annotation.
	// +optional
	Value string `json:"value,omitempty"`

	// outcome says what became of it.
	// +required
	Outcome string `json:"outcome"`

	// time when it was handled.
	// +required
	Time metav1.Time `json:"time"`
}

// MetricResult is the last sample of one metric.
type MetricResult struct {
	// name of the metric.
	// +required
	Name string `json:"name"`

	// passed is true when the value met the threshold.
	// +required
	Passed bool `json:"passed"`

	// query that was sent, with its template filled in.
	// +optional
	Query string `json:"query,omitempty"`

	// value that was judged. Empty when there was none.
	// +optional
	Value string `json:"value,omitempty"`

	// threshold of the metric.
	// +optional
	Threshold string `json:"threshold,omitempty"`

	// operator of the metric.
	// +optional
	Operator string `json:"operator,omitempty"`

	// message says what went wrong.
	// +optional
	Message string `json:"message,omitempty"`

	// time of the sample.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// AnalysisSeries remembers which series a metric had.
type AnalysisSeries struct {
	// name of the metric.
	// +required
	Name string `json:"name"`

	// query is a short hash of the query that gave them.
	// +required
	Query string `json:"query"`

	// hashes of the series, five characters each, in order.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Hashes string `json:"hashes,omitempty"`
}

// RolloutCoordinationStatus reports the groups that aren't canaries.
type RolloutCoordinationStatus struct {
	// groups by name.
	// +listType=map
	// +listMapKey=name
	// +optional
	Groups []CoordinationGroupStatus `json:"groups,omitempty"`
}

// CoordinationPolicy is the effective policy of a group.
// +kubebuilder:validation:Enum=BlueGreen;RollingUpdate;Independent;Sequential
type CoordinationPolicy string

const (
	CoordinationBlueGreen     CoordinationPolicy = "BlueGreen"
	CoordinationRollingUpdate CoordinationPolicy = "RollingUpdate"
	CoordinationIndependent   CoordinationPolicy = "Independent"
	CoordinationSequential    CoordinationPolicy = "Sequential"
)

// CoordinationPhase is the phase of a group.
// +kubebuilder:validation:Enum=Idle;Surging;Waiting;Shifting;Draining;ScalingDown;Staged;Failed;RollingBack;Paused
type CoordinationPhase string

const (
	// CoordinationIdle has nothing to roll.
	CoordinationIdle CoordinationPhase = "Idle"
	// CoordinationSurging creates Instances of the new revision.
	CoordinationSurging CoordinationPhase = "Surging"
	// CoordinationWaiting waits for new Instances, or is held.
	CoordinationWaiting CoordinationPhase = "Waiting"
	// CoordinationShifting brings new Instances into rotation.
	CoordinationShifting CoordinationPhase = "Shifting"
	// CoordinationDraining takes old Instances out of rotation.
	CoordinationDraining CoordinationPhase = "Draining"
	// CoordinationScalingDown deletes old pods.
	CoordinationScalingDown CoordinationPhase = "ScalingDown"
	// CoordinationStaged did all that a partition allows.
	CoordinationStaged CoordinationPhase = "Staged"
	// CoordinationFailed has a failed Instance.
	CoordinationFailed CoordinationPhase = "Failed"
	// CoordinationRollingBack goes back to the revision before.
	CoordinationRollingBack CoordinationPhase = "RollingBack"
	// CoordinationPaused is held by a pause.
	CoordinationPaused CoordinationPhase = "Paused"
)

// CoordinationGroupStatus reports one group that isn't a canary. A sequence is one group.
type CoordinationGroupStatus struct {
	// name is the index of the group.
	// +required
	Name string `json:"name"`

	// observedGeneration is the generation of the service that this write reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// components of the group.
	// +listType=atomic
	// +optional
	Components []ComponentType `json:"components,omitempty"`

	// policy in force.
	// +optional
	Policy CoordinationPolicy `json:"policy,omitempty"`

	// order of a sequence.
	// +listType=atomic
	// +optional
	Order []ComponentType `json:"order,omitempty"`

	// phase for programs and metrics.
	// +optional
	Phase CoordinationPhase `json:"phase,omitempty"`

	// compositePhase is the phase with its component, for people.
	// +optional
	CompositePhase string `json:"compositePhase,omitempty"`

	// currentComponent of a sequence.
	// +optional
	CurrentComponent ComponentType `json:"currentComponent,omitempty"`

	// previousComponent of a sequence.
	// +optional
	PreviousComponent ComponentType `json:"previousComponent,omitempty"`

	// observedSurge is the surge budget in force.
	// +optional
	ObservedSurge *intstr.IntOrString `json:"observedSurge,omitempty"`

	// observedRatio is the replica ratio last seen.
	// +optional
	ObservedRatio *ObservedRatio `json:"observedRatio,omitempty"`

	// lastTransitionTime is when phase last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`

	// message for the phases Failed, RollingBack and Paused.
	// +optional
	Message string `json:"message,omitempty"`

	// lastFinished says when each component last finished a rollout. A soak counts from it.
	// +listType=map
	// +listMapKey=component
	// +optional
	LastFinished []ComponentFinish `json:"lastFinished,omitempty"`
}

// ObservedRatio holds replica counts by component.
type ObservedRatio struct {
	// original counts, at the start of the run.
	// +optional
	Original map[ComponentType]int32 `json:"original,omitempty"`

	// current counts.
	// +optional
	Current map[ComponentType]int32 `json:"current,omitempty"`

	// newPods counts those on the new revision.
	// +optional
	NewPods map[ComponentType]int32 `json:"newPods,omitempty"`
}

// ComponentFinish says when a component last finished a rollout.
type ComponentFinish struct {
	// component that finished.
	// +required
	Component ComponentType `json:"component"`

	// time when it finished.
	// +required
	Time metav1.Time `json:"time"`
}
