package v1beta1

import "k8s.io/apimachinery/pkg/api/resource"

// LoadBalancingAlgorithm spreads requests over pods.
// +kubebuilder:validation:Enum=RoundRobin;LeastRequest;Random;ConsistentHash
type LoadBalancingAlgorithm string

const (
	AlgorithmRoundRobin     LoadBalancingAlgorithm = "RoundRobin"
	AlgorithmLeastRequest   LoadBalancingAlgorithm = "LeastRequest"
	AlgorithmRandom         LoadBalancingAlgorithm = "Random"
	AlgorithmConsistentHash LoadBalancingAlgorithm = "ConsistentHash"
)

// TrafficSpec configures load balancing at the gateway.
type TrafficSpec struct {
	// algorithm to use. Unset leaves it to the gateway.
	// +optional
	Algorithm LoadBalancingAlgorithm `json:"algorithm,omitempty"`

	// consistentHash configures the algorithm ConsistentHash.
	// +optional
	ConsistentHash *ConsistentHash `json:"consistentHash,omitempty"`

	// endpointOverride lets a request name its endpoint.
	// +optional
	EndpointOverride *EndpointOverride `json:"endpointOverride,omitempty"`
}

// ConsistentHash says what a request is hashed by.
type ConsistentHash struct {
	// type of the source.
	// +kubebuilder:validation:Enum=Header;Cookie;SourceIP
	// +optional
	Type string `json:"type,omitempty"`

	// headers for type Header.
	// +listType=atomic
	// +optional
	Headers []HeaderName `json:"headers,omitempty"`

	// cookie for type Cookie.
	// +optional
	Cookie *HashCookie `json:"cookie,omitempty"`
}

// HeaderName names a request header.
type HeaderName struct {
	// name of the header.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// HashCookie names a cookie.
type HashCookie struct {
	// name of the cookie.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`

	// ttlSeconds of the cookie. Above zero the gateway issues it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSeconds *int64 `json:"ttlSeconds,omitempty"`
}

// EndpointOverride lets a request name its endpoint.
type EndpointOverride struct {
	// type of the source. Metadata is reserved.
	// +kubebuilder:validation:Enum=Header;Metadata
	// +optional
	Type string `json:"type,omitempty"`

	// headers for type Header.
	// +listType=atomic
	// +optional
	Headers []HeaderName `json:"headers,omitempty"`
}

// ScalingMode couples the counts of components.
// +kubebuilder:validation:Enum=Independent;Proportional;Pinned
type ScalingMode string

const (
	// ScalingIndependent scales each component by itself.
	ScalingIndependent ScalingMode = "Independent"
	// ScalingProportional is not supported.
	ScalingProportional ScalingMode = "Proportional"
	// ScalingPinned is not supported.
	ScalingPinned ScalingMode = "Pinned"
)

// ScalingPolicy couples the counts of components.
type ScalingPolicy struct {
	// mode of the coupling. Only Independent is supported.
	// +kubebuilder:default=Independent
	// +required
	Mode ScalingMode `json:"mode"`

	// proportional configures the mode Proportional.
	// +optional
	Proportional *ProportionalScaling `json:"proportional,omitempty"`
}

// ProportionalScaling ties followers to an anchor.
type ProportionalScaling struct {
	// anchor is the component that others follow.
	// +kubebuilder:validation:Enum=engine;decoder;router
	// +kubebuilder:default=engine
	// +optional
	Anchor ComponentType `json:"anchor,omitempty"`

	// ratios are followers for each anchor.
	// +optional
	Ratios map[ComponentType]resource.Quantity `json:"ratios,omitempty"`
}
