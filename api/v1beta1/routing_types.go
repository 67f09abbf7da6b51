package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RoutingSpec weighs the clusters that run the service.
type RoutingSpec struct {
	// enabled false opts out. True can't enable what the installation disables.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// capacityFactors weigh a replica of each cluster.
	// +optional
	CapacityFactors map[string]resource.Quantity `json:"capacityFactors,omitempty"`

	// probe replaces the operator's health probe as a whole.
	// +optional
	Probe *RoutingProbe `json:"probe,omitempty"`

	// capacity replaces the operator's capacity poll as a whole.
	// +optional
	Capacity *RoutingCapacity `json:"capacity,omitempty"`

	// publisher holds settings of the publisher.
	// +optional
	Publisher *RoutingPublisher `json:"publisher,omitempty"`
}

// RoutingPublisher holds settings of the publisher.
type RoutingPublisher struct {
	// options of the publisher.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) >= 1 && size(k) <= 128 && size(self[k]) >= 1 && size(self[k]) <= 4096)",message="a key has 1 to 128 characters and a value 1 to 4096"
	// +optional
	Options map[string]string `json:"options,omitempty"`
}

// RoutingProbe is a health probe. Either it is disabled or every other field is set.
//
// +kubebuilder:validation:XValidation:rule="has(self.disabled) && self.disabled ? !(has(self.path) || has(self.method) || has(self.acceptStatuses) || has(self.gateStatuses) || has(self.period) || has(self.timeout) || has(self.failureThreshold) || has(self.successThreshold) || has(self.allFailedPolicy)) : has(self.path) && has(self.method) && has(self.acceptStatuses) && has(self.gateStatuses) && has(self.period) && has(self.timeout) && has(self.failureThreshold) && has(self.successThreshold) && has(self.allFailedPolicy)",message="a disabled probe has no other field, an enabled one has all of them"
// +kubebuilder:validation:XValidation:rule="!has(self.period) || duration(self.period) > duration('0s')",message="period must be above zero"
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || duration(self.timeout) > duration('0s')",message="timeout must be above zero"
// +kubebuilder:validation:XValidation:rule="!has(self.period) || !has(self.timeout) || duration(self.timeout) < duration(self.period)",message="timeout must be below period"
type RoutingProbe struct {
	// disabled turns the probe off.
	// +optional
	Disabled bool `json:"disabled,omitempty"`

	// path of the request.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^/`
	// +optional
	Path string `json:"path,omitempty"`

	// method of the request.
	// +kubebuilder:validation:Enum=GET;HEAD;POST
	// +optional
	Method string `json:"method,omitempty"`

	// acceptStatuses are the codes that pass.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Minimum=100
	// +kubebuilder:validation:items:Maximum=599
	// +listType=set
	// +optional
	AcceptStatuses []int32 `json:"acceptStatuses,omitempty"`

	// gateStatuses are the codes that close the gate.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	// +kubebuilder:validation:items:Minimum=100
	// +kubebuilder:validation:items:Maximum=599
	// +kubebuilder:validation:XValidation:rule="self.all(s, s != 401 && s != 403 && s != 429)",message="401, 403 and 429 can't gate"
	// +listType=set
	// +optional
	GateStatuses []int32 `json:"gateStatuses,omitempty"`

	// period between probes.
	// +optional
	Period *metav1.Duration `json:"period,omitempty"`

	// timeout of one probe.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// failureThreshold is the number of failures in a row that count.
	// +kubebuilder:validation:Minimum=1
	// +optional
	FailureThreshold *int32 `json:"failureThreshold,omitempty"`

	// successThreshold is the number of passes in a row that count.
	// +kubebuilder:validation:Minimum=1
	// +optional
	SuccessThreshold *int32 `json:"successThreshold,omitempty"`

	// allFailedPolicy says what happens when every cluster fails.
	// +kubebuilder:validation:Enum=PreserveTraffic;Drain
	// +optional
	AllFailedPolicy string `json:"allFailedPolicy,omitempty"`
}

// RoutingCapacity is a capacity poll. Either it is disabled or every field but options is set.
//
// +kubebuilder:validation:XValidation:rule="has(self.disabled) && self.disabled ? !(has(self.path) || has(self.method) || has(self.format) || has(self.options) || has(self.period) || has(self.timeout) || has(self.maxAge) || has(self.samples) || has(self.quorum)) : has(self.path) && has(self.method) && has(self.format) && has(self.period) && has(self.timeout) && has(self.maxAge) && has(self.samples) && has(self.quorum)",message="a disabled poll has no other field, an enabled one has all but options"
// +kubebuilder:validation:XValidation:rule="!has(self.period) || duration(self.period) > duration('0s')",message="period must be above zero"
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || duration(self.timeout) > duration('0s')",message="timeout must be above zero"
// +kubebuilder:validation:XValidation:rule="!has(self.period) || !has(self.timeout) || duration(self.timeout) < duration(self.period)",message="timeout must be below period"
// +kubebuilder:validation:XValidation:rule="!has(self.period) || !has(self.maxAge) || duration(self.maxAge) >= duration(self.period)",message="maxAge must be at least period"
// +kubebuilder:validation:XValidation:rule="!has(self.samples) || !has(self.quorum) || self.quorum <= self.samples",message="quorum must be at most samples"
type RoutingCapacity struct {
	// disabled turns the poll off.
	// +optional
	Disabled bool `json:"disabled,omitempty"`

	// path of the request.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^/`
	// +optional
	Path string `json:"path,omitempty"`

	// method of the request.
	// +kubebuilder:validation:Enum=GET;HEAD;POST
	// +optional
	Method string `json:"method,omitempty"`

	// format of the answer.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Format string `json:"format,omitempty"`

	// options of the format.
	// +optional
	Options map[string]string `json:"options,omitempty"`

	// period between polls.
	// +optional
	Period *metav1.Duration `json:"period,omitempty"`

	// timeout of one poll.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// maxAge of an answer.
	// +optional
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`

	// samples of one poll.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Samples *int32 `json:"samples,omitempty"`

	// quorum of samples.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Quorum *int32 `json:"quorum,omitempty"`
}
