package v1beta1

// Environment variables that every regular container of a pod gets. They win over variables of the
// same name in the template, and they are no part of a revision.
const (
	// EnvInferenceServiceName is the service, or the replica when that is standalone.
	EnvInferenceServiceName = "OME_INFERENCESERVICE_NAME"

	// EnvComponent is the component word.
	EnvComponent = "OME_COMPONENT"

	// EnvComponentReplicas is the number of Instances when the pod was created.
	EnvComponentReplicas = "OME_COMPONENT_REPLICAS"

	// EnvInstanceIndex is the index of the Instance.
	EnvInstanceIndex = "OME_INSTANCE_INDEX"

	// EnvInstanceSubdomain identifies the Instance. It doesn't resolve.
	EnvInstanceSubdomain = "OME_INSTANCE_SUBDOMAIN"

	// EnvRunner is the role of the pod.
	EnvRunner = "OME_RUNNER"

	// EnvRunnerSize is the number of pods in that role.
	EnvRunnerSize = "OME_RUNNER_SIZE"

	// EnvRunnerIndex is the position of the pod in that role.
	EnvRunnerIndex = "OME_RUNNER_INDEX"

	// EnvLeaderAddress is the address of the leader of a multi-pod Instance.
	EnvLeaderAddress = "OME_LEADER_ADDRESS"

	// EnvInstancePodRank is 0 for the leader and counts the workers from 1.
	EnvInstancePodRank = "OME_INSTANCE_POD_RANK"

	// EnvInstancePodCount is the number of pods of a multi-pod Instance.
	EnvInstancePodCount = "OME_INSTANCE_POD_COUNT"

	// EnvPeerPrefix, a component word in upper case and EnvEndpointSuffix name the address of
	// another component. Only with rollout groups.
	EnvPeerPrefix = "OME_"

	// EnvEndpointSuffix ends the name of a component's address.
	EnvEndpointSuffix = "_ENDPOINT"

	// EnvRevisionEndpointSuffix ends the name of the address of a component's pods of equal token.
	EnvRevisionEndpointSuffix = "_REVISION_ENDPOINT"
)

// Environment variables that a rendered template gets; these are part of the revision.
const (
	// EnvModelPath is where the model is mounted.
	EnvModelPath = "MODEL_PATH"

	// EnvParallelismSize is the number of GPUs of an Instance.
	EnvParallelismSize = "PARALLELISM_SIZE"

	// EnvOverlayPrefix, the name of an overlay in upper case with underscores, and
	// EnvOverlaySuffix name the mount path of an overlay.
	EnvOverlayPrefix = "OVERLAY_"

	// EnvOverlaySuffix ends the name of an overlay's mount path.
	EnvOverlaySuffix = "_MODEL_PATH"
)

// ModelOverlayMountRoot is the directory that overlays are mounted under, by name.
const ModelOverlayMountRoot = "/opt/ml/model-overlays"
