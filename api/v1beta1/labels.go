package v1beta1

// Labels that bind objects to a component. Names are never parsed; these labels are what selects.
const (
	// InferenceServiceLabel is the service, or the replica when that is standalone.
	InferenceServiceLabel = "ome.io/inferenceservice"

	// ComponentLabel is the component word.
	ComponentLabel = "component"

	// ManagedByLabel is ManagedByOMENative on what an InferenceReplica makes.
	ManagedByLabel = "ome.io/managed-by"

	// ManagedByOMENative is the value of ManagedByLabel.
	ManagedByOMENative = "OMENative"

	// InstanceIndexLabel is the index of the Instance, in decimal.
	InstanceIndexLabel = "ome.io/instance-index"

	// InstanceIncarnationLabel is the incarnation of the Instance, in decimal.
	InstanceIncarnationLabel = "ome.io/instance-incarnation"

	// RunnerLabel is the role of the pod inside its Instance.
	RunnerLabel = "ome.io/runner"

	// PodOrdinalLabel is the name slot of the pod inside its role.
	PodOrdinalLabel = "ome.io/pod-ordinal"

	// RevisionHashLabel is the hash part of the revision.
	RevisionHashLabel = "ome.io/revision-hash"

	// PairingProtocolLabel is the wire token of the revision, on engine and decoder pods and on
	// revision Services. On a ControllerRevision it is an annotation.
	PairingProtocolLabel = "ome.io/pairing-protocol"

	// PodGroupLabel is the PodGroup of a pod of a multi-pod Instance.
	PodGroupLabel = "scheduling.x-k8s.io/pod-group"

	// QueueNameLabel is copied from a service to the pods that ask for an accelerator. It is never
	// part of a revision.
	QueueNameLabel = "kueue.x-k8s.io/queue-name"

	// PlacementOriginLabel is the UID of the source, on a service that placement derived.
	PlacementOriginLabel = "ome.io/placement-origin"
)

// Labels of stored runtime revisions, beside RevisionHashLabel.
const (
	// RuntimeOfLabel is the name of the runtime.
	RuntimeOfLabel = "ome.io/runtime-of"

	// RuntimeOfKindLabel is its kind.
	RuntimeOfKindLabel = "ome.io/runtime-of-kind"

	// RuntimeOfNamespaceLabel is its namespace.
	RuntimeOfNamespaceLabel = "ome.io/runtime-of-namespace"
)

// Labels that inform people.
const (
	// ServingRuntimeLabel is the runtime of the pod.
	ServingRuntimeLabel = "serving-runtime"

	// BaseModelNameLabel is the model of the pod.
	BaseModelNameLabel = "base-model-name"

	// BaseModelSizeLabel is its parameter count.
	BaseModelSizeLabel = "base-model-size"

	// BaseModelTypeLabel is its type.
	BaseModelTypeLabel = "base-model-type"

	// BaseModelVendorLabel is its vendor.
	BaseModelVendorLabel = "base-model-vendor"

	// FineTunedServingLabel marks pods that serve fine-tuned weights.
	FineTunedServingLabel = "fine-tuned-serving"
)

// Labels of nodes that hold a copy of a model. The value is NodeModelReady once it is whole.
const (
	// NodeClusterBaseModelLabelPrefix is followed by the name of a ClusterBaseModel.
	NodeClusterBaseModelLabelPrefix = "models.ome.io/clusterbasemodel."

	// NodeModelLabelPrefix is followed by namespace, NodeBaseModelInfix and name of a BaseModel.
	NodeModelLabelPrefix = "models.ome.io/"

	// NodeBaseModelInfix stands between namespace and name.
	NodeBaseModelInfix = ".basemodel."

	// NodeModelReady says that the copy is whole.
	NodeModelReady = "Ready"
)

// InferenceReplicaFinalizer lets a replica take its pods out of rotation before they go.
const InferenceReplicaFinalizer = "ome.io/ir-teardown"
