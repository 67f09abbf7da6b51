package v1beta1

// ModelRef names the model to serve.
type ModelRef struct {
	// name of the model object.
	// +required
	Name string `json:"name"`

	// kind of the model object. A BaseModel is looked up in the service's namespace; there is no
	// fallback from one kind to the other.
	// +kubebuilder:default=ClusterBaseModel
	// +optional
	Kind *string `json:"kind,omitempty"`

	// apiGroup of the model object.
	// +kubebuilder:default=ome.io
	// +optional
	APIGroup *string `json:"apiGroup,omitempty"`

	// fineTunedWeights names fine-tuned weights. Not supported.
	// +listType=atomic
	// +optional
	FineTunedWeights []string `json:"fineTunedWeights,omitempty"`

	// overlays are further models mounted in every pod.
	// +listType=map
	// +listMapKey=name
	// +optional
	Overlays []ModelOverlayRef `json:"overlays,omitempty"`
}

// ModelOverlayRef names a further model to mount.
type ModelOverlayRef struct {
	// name of the model object.
	// +required
	Name string `json:"name"`

	// kind of the model object.
	// +kubebuilder:default=ClusterBaseModel
	// +optional
	Kind *string `json:"kind,omitempty"`

	// apiGroup of the model object.
	// +kubebuilder:default=ome.io
	// +optional
	APIGroup *string `json:"apiGroup,omitempty"`
}

// ServingRuntimeRef names the runtime to use, and optionally one stored revision of it.
type ServingRuntimeRef struct {
	// name of the runtime object.
	// +required
	Name string `json:"name"`

	// kind of the runtime object. ClusterServingRuntime looks among cluster runtimes first and then
	// in the namespace; ServingRuntime looks in the namespace only.
	// +kubebuilder:default=ClusterServingRuntime
	// +optional
	Kind *string `json:"kind,omitempty"`

	// apiGroup of the runtime object.
	// +kubebuilder:default=ome.io
	// +optional
	APIGroup *string `json:"apiGroup,omitempty"`

	// autoSync follows every edit of the runtime. False keeps the service on a stored revision.
	// +kubebuilder:default=true
	// +optional
	AutoSync *bool `json:"autoSync,omitempty"`

	// revision is the stored revision to run. It needs autoSync false.
	// +optional
	Revision string `json:"revision,omitempty"`
}

// ReplicaRefs names standalone InferenceReplicas to front instead of making some.
type ReplicaRefs struct {
	// engine names the replica in the engine role.
	// +listType=set
	// +optional
	Engine []string `json:"engine,omitempty"`

	// decoder names the replica in the decoder role.
	// +listType=set
	// +optional
	Decoder []string `json:"decoder,omitempty"`

	// router names the replica in the router role.
	// +listType=set
	// +optional
	Router []string `json:"router,omitempty"`
}
