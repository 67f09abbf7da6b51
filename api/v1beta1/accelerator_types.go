package v1beta1

// AcceleratorPolicy picks one accelerator class among those that match.
// +kubebuilder:validation:Enum=BestFit;Cheapest;MostCapable;FirstAvailable
type AcceleratorPolicy string

// AcceleratorSelector chooses the accelerator of a component.
type AcceleratorSelector struct {
	// acceleratorClass names one class and wins over the rest of the selector.
	// +optional
	AcceleratorClass *string `json:"acceleratorClass,omitempty"`

	// policy picks among the classes that match.
	// +optional
	Policy AcceleratorPolicy `json:"policy,omitempty"`

	// constraints narrow the classes that match.
	// +optional
	Constraints *AcceleratorConstraints `json:"constraints,omitempty"`
}

// AcceleratorConstraints narrow the classes that match.
type AcceleratorConstraints struct {
	// minMemory is the least memory in GB.
	// +optional
	MinMemory *int64 `json:"minMemory,omitempty"`

	// maxMemory is the most memory in GB.
	// +optional
	MaxMemory *int64 `json:"maxMemory,omitempty"`

	// minComputePerformanceTFLOPS is the least throughput in TFLOPS.
	// +optional
	MinComputePerformanceTFLOPS *int64 `json:"minComputePerformanceTFLOPS,omitempty"`

	// minArchitectureVersion is the least compute capability.
	// +optional
	MinArchitectureVersion string `json:"minArchitectureVersion,omitempty"`

	// requiredFeatures must all be there.
	// +listType=atomic
	// +optional
	RequiredFeatures []string `json:"requiredFeatures,omitempty"`

	// excludedClasses never match.
	// +listType=atomic
	// +optional
	ExcludedClasses []string `json:"excludedClasses,omitempty"`

	// architectureFamilies are the families that match.
	// +listType=atomic
	// +optional
	ArchitectureFamilies []string `json:"architectureFamilies,omitempty"`

	// preferredPrecisions are number formats, best first.
	// +listType=atomic
	// +optional
	PreferredPrecisions []string `json:"preferredPrecisions,omitempty"`
}

// AcceleratorRequirements say what a runtime runs on.
type AcceleratorRequirements struct {
	// acceleratorClasses the runtime runs on.
	// +listType=atomic
	// +optional
	AcceleratorClasses []string `json:"acceleratorClasses,omitempty"`

	// minMemory is the least memory in GB.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinMemory *int64 `json:"minMemory,omitempty"`

	// minComputePerformanceTFLOPS is the least throughput in TFLOPS.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinComputePerformanceTFLOPS *int64 `json:"minComputePerformanceTFLOPS,omitempty"`

	// minArchitectureVersion is the least compute capability.
	// +optional
	MinArchitectureVersion string `json:"minArchitectureVersion,omitempty"`

	// requiredFeatures must all be there.
	// +listType=atomic
	// +optional
	RequiredFeatures []string `json:"requiredFeatures,omitempty"`

	// preferredPrecisions are number formats, best first.
	// +listType=atomic
	// +optional
	PreferredPrecisions []string `json:"preferredPrecisions,omitempty"`
}
