package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// GroupOrdering is what the order of the group list promises.
// +kubebuilder:validation:Enum=Sequential;Concurrent
type GroupOrdering string

const (
	// GroupOrderingSequential accepts one group, or a sequence alone. The default.
	GroupOrderingSequential GroupOrdering = "Sequential"
	// GroupOrderingConcurrent accepts any list.
	GroupOrderingConcurrent GroupOrdering = "Concurrent"
)

// TrafficRouting says what becomes of a step's traffic weight.
// +kubebuilder:validation:Enum=Recorded;GatewayAPI
type TrafficRouting string

const (
	// TrafficRecorded keeps the weight in status only. The default.
	TrafficRecorded TrafficRouting = "Recorded"
	// TrafficGatewayAPI also writes it to the HTTPRoute.
	TrafficGatewayAPI TrafficRouting = "GatewayAPI"
)

// Progression is the way a group moves to its new revisions. The words are also the JSON names of
// the three progression fields.
// +kubebuilder:validation:Enum=canary;blueGreen;rollingUpdate
type Progression string

const (
	ProgressionCanary        Progression = "canary"
	ProgressionBlueGreen     Progression = "blueGreen"
	ProgressionRollingUpdate Progression = "rollingUpdate"
)

// RolloutSpec says which components roll together and how.
type RolloutSpec struct {
	// groups of components that roll as one. A component in no group rolls on its own.
	// +kubebuilder:validation:MaxItems=3
	// +listType=atomic
	// +optional
	Groups []RolloutGroup `json:"groups,omitempty"`

	// groupOrdering is what the order of the list promises; it changes what is admitted, not how
	// groups roll. Unset means Sequential.
	// +optional
	GroupOrdering GroupOrdering `json:"groupOrdering,omitempty"`

	// pairingProtocol is a token for the wire protocol of engine and decoder. It is part of the
	// revisions of both.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +optional
	PairingProtocol string `json:"pairingProtocol,omitempty"`

	// trafficRouting says what becomes of a canary step's traffic weight. Unset means Recorded.
	// +optional
	TrafficRouting TrafficRouting `json:"trafficRouting,omitempty"`
}

// RolloutGroup is a set of components that roll as one. With no progression and no policyRef it
// rolls blue-green.
//
// +kubebuilder:validation:XValidation:rule="(has(self.canary) ? 1 : 0) + (has(self.blueGreen) ? 1 : 0) + (has(self.rollingUpdate) ? 1 : 0) <= 1",message="at most one of canary, blueGreen and rollingUpdate may be set"
// +kubebuilder:validation:XValidation:rule="!has(self.order) || self.order.all(o, self.components.exists(c, c == o))",message="order may only name components of the group"
type RolloutGroup struct {
	// components of the group.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=atomic
	// +required
	Components []ComponentType `json:"components"`

	// order is reserved.
	// +kubebuilder:validation:MaxItems=3
	// +listType=atomic
	// +optional
	Order []ComponentType `json:"order,omitempty"`

	// canary moves capacity in steps.
	// +optional
	Canary *GroupCanary `json:"canary,omitempty"`

	// blueGreen starts all components together.
	// +optional
	BlueGreen *GroupBlueGreen `json:"blueGreen,omitempty"`

	// rollingUpdate moves each component within a budget.
	// +optional
	RollingUpdate *GroupRollingUpdate `json:"rollingUpdate,omitempty"`

	// policyRef takes the progression from a RolloutPolicy. A progression set here wins.
	// +optional
	PolicyRef *RolloutPolicyRef `json:"policyRef,omitempty"`

	// soak is how long the next component of a sequence waits.
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`

	// maintainRatio keeps the components in step.
	// +optional
	MaintainRatio *MaintainRatio `json:"maintainRatio,omitempty"`
}

// GroupBlueGreen has no settings.
type GroupBlueGreen struct{}

// GroupRollingUpdate is the budget of each component of a group.
type GroupRollingUpdate struct {
	// maxSurge is the number, or percentage, of extra Instances. Unset means 25%.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// maxUnavailable is the number, or percentage, of missing Instances. Unset means 25%.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// MaintainRatio keeps the components of a group in step.
type MaintainRatio struct {
	// tolerance is the allowed drift of the replica ratio in percent. Unset takes the operator's
	// value.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Tolerance *int32 `json:"tolerance,omitempty"`
}

// RolloutPolicyRef names a RolloutPolicy of the namespace.
type RolloutPolicyRef struct {
	// name of the policy.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`

	// progression that the policy is expected to hold. A mismatch parks the rollout.
	// +required
	Progression Progression `json:"progression"`

	// kind of the policy. Only RolloutPolicy is supported.
	// +kubebuilder:default=RolloutPolicy
	// +optional
	Kind string `json:"kind,omitempty"`
}

// GroupCanary moves capacity to the new revision in steps.
type GroupCanary struct {
	// steps in the order they are taken.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Steps []RolloutGroupStep `json:"steps,omitempty"`

	// prometheus is the source of every analysis of this canary.
	// +optional
	Prometheus *AnalysisPrometheus `json:"prometheus,omitempty"`

	// scaleDownDelaySeconds keeps the old revision for a while after the last step is ready.
	// +optional
	ScaleDownDelaySeconds *int32 `json:"scaleDownDelaySeconds,omitempty"`

	// readyTimeout bounds the wait for capacity and for readable samples.
	// +optional
	ReadyTimeout *metav1.Duration `json:"readyTimeout,omitempty"`
}

// RolloutGroupStep is one step of a canary.
type RolloutGroupStep struct {
	// capacity is the number, or percentage, of each component's Instances on the new revision.
	// +required
	Capacity intstr.IntOrString `json:"capacity"`

	// traffic is the weight recorded for the new revision.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +required
	Traffic int32 `json:"traffic"`

	// pause holds the step: for its duration, or until a promote when it has none.
	// +optional
	Pause *RolloutPause `json:"pause,omitempty"`

	// analysis holds the step until metrics pass.
	// +optional
	Analysis *RolloutAnalysis `json:"analysis,omitempty"`
}

// RolloutPause holds a step.
type RolloutPause struct {
	// duration of the hold. Beside an analysis it is the least time the step bakes.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// InconclusivePolicy says what a sample that can't be read leads to.
// +kubebuilder:validation:Enum=Hold;Rollback;RollbackOnStall
type InconclusivePolicy string

const (
	// InconclusiveHold keeps sampling, and fails the canary on a stall. The default.
	InconclusiveHold InconclusivePolicy = "Hold"
	// InconclusiveRollback rolls back at once.
	InconclusiveRollback InconclusivePolicy = "Rollback"
	// InconclusiveRollbackOnStall keeps sampling, and rolls back on a stall.
	InconclusiveRollbackOnStall InconclusivePolicy = "RollbackOnStall"
)

// RolloutAnalysis judges a step by metrics.
type RolloutAnalysis struct {
	// interval between samples.
	// +required
	Interval metav1.Duration `json:"interval"`

	// initialDelay before the first sample.
	// +optional
	InitialDelay *metav1.Duration `json:"initialDelay,omitempty"`

	// failureLimit is the number of failing samples at this step that roll back. A pass doesn't
	// reset the count.
	// +kubebuilder:validation:Minimum=1
	// +required
	FailureLimit int32 `json:"failureLimit"`

	// onInconclusive says what a sample that can't be read leads to. Unset means Hold.
	// +optional
	OnInconclusive InconclusivePolicy `json:"onInconclusive,omitempty"`

	// metrics that must all pass.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +required
	Metrics []AnalysisMetric `json:"metrics"`
}

// MetricOperator compares a value with a threshold.
// +kubebuilder:validation:Enum=LT;LTE;GT;GTE
type MetricOperator string

const (
	MetricLT  MetricOperator = "LT"
	MetricLTE MetricOperator = "LTE"
	MetricGT  MetricOperator = "GT"
	MetricGTE MetricOperator = "GTE"
)

// AnalysisMetric passes when the value of query, operator and threshold hold together.
type AnalysisMetric struct {
	// name of the metric.
	// +required
	Name string `json:"name"`

	// query is PromQL, written as a Go template.
	// +required
	Query string `json:"query"`

	// operator compares the value with the threshold.
	// +required
	Operator MetricOperator `json:"operator"`

	// threshold is a quoted number.
	// +required
	Threshold string `json:"threshold"`
}

// AnalysisPrometheus is where queries are sent.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.providerRef) && has(self.serverAddress))",message="at most one of providerRef and serverAddress may be set"
type AnalysisPrometheus struct {
	// providerRef names a server that the operator has bound.
	// +optional
	ProviderRef *AnalysisProviderRef `json:"providerRef,omitempty"`

	// serverAddress is the base URL of a server.
	// +optional
	ServerAddress string `json:"serverAddress,omitempty"`

	// authRef selects a bearer token from a Secret of the namespace.
	// +optional
	AuthRef *corev1.SecretKeySelector `json:"authRef,omitempty"`

	// headers to send.
	// +optional
	Headers map[string]string `json:"headers,omitempty"`
}

// AnalysisProviderRef names a server that the operator has bound.
type AnalysisProviderRef struct {
	// name of the binding.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}
