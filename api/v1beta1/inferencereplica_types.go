package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PauseMode says how far a pause goes.
// +kubebuilder:validation:Enum=Recover;Freeze
type PauseMode string

const (
	// PauseModeRecover still repairs broken Instances. The default.
	PauseModeRecover PauseMode = "Recover"
	// PauseModeFreeze stops repair too.
	PauseModeFreeze PauseMode = "Freeze"
)

// RunnerName is the role of a pod inside an Instance.
// +kubebuilder:validation:Enum=default;leader;worker
type RunnerName string

const (
	// RunnerDefault is the only pod of an Instance.
	RunnerDefault RunnerName = "default"
	// RunnerLeader is the first pod of a multi-pod Instance.
	RunnerLeader RunnerName = "leader"
	// RunnerWorker is one of the others.
	RunnerWorker RunnerName = "worker"
)

// InferenceReplicaSpec describes a set of Instances of one component.
type InferenceReplicaSpec struct {
	// component is the role of the Instances: engine, decoder or router. It never changes.
	// +required
	Component ComponentType `json:"component"`

	// parentRef names the service that projects this replica. It never changes, and a standalone
	// replica has none.
	// +optional
	ParentRef *ParentRef `json:"parentRef,omitempty"`

	// modelRef names the model to render the pods from. Exclusive with runners.
	// +optional
	ModelRef *ModelRef `json:"modelRef,omitempty"`

	// runtimeRef names the runtime to render the pods from. Exclusive with runners.
	// +optional
	RuntimeRef *ServingRuntimeRef `json:"runtimeRef,omitempty"`

	// runners are the rendered pod templates of one Instance: default, or leader and worker.
	// +listType=map
	// +listMapKey=name
	// +optional
	Runners []Runner `json:"runners,omitempty"`

	// replicas is the number of Instances. Unset and zero both run one.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// minReadySeconds is how long a pod is Ready before it counts as available.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// topologyKey is a node label whose value all pods of one multi-pod Instance share.
	// +optional
	TopologyKey string `json:"topologyKey,omitempty"`

	// topologySpread spreads Instances over fault domains. It isn't part of a revision.
	// +optional
	TopologySpread TopologySpreadMode `json:"topologySpread,omitempty"`

	// topologySpreadKey is the node label that names a fault domain. Unset means topologyKey.
	// +optional
	TopologySpreadKey string `json:"topologySpreadKey,omitempty"`

	// pairingProtocol is a token for the wire protocol of engine and decoder. It is part of the
	// revision.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +optional
	PairingProtocol string `json:"pairingProtocol,omitempty"`

	// lifecycle holds the policies for the Instances. It isn't part of a revision.
	// +optional
	Lifecycle *LifecycleSpec `json:"lifecycle,omitempty"`

	// pacing bounds the update in flight.
	// +optional
	Pacing *Pacing `json:"pacing,omitempty"`

	// autoscaler is the scaler in force.
	// +optional
	Autoscaler *ComponentAutoscaler `json:"autoscaler,omitempty"`

	// paused stops updates, creates and migrations.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// pauseMode says how far the pause goes. Unset means Recover.
	// +optional
	PauseMode PauseMode `json:"pauseMode,omitempty"`

	// revisionHistoryLimit is the number of old revisions to keep. Unset takes the operator's value.
	// +kubebuilder:validation:Minimum=1
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// placementExecution is written by the placement controller only.
	// +optional
	PlacementExecution *PlacementExecution `json:"placementExecution,omitempty"`

	// placementReplicaLimit caps growth while placement pauses.
	// +kubebuilder:validation:Minimum=1
	// +optional
	PlacementReplicaLimit *int32 `json:"placementReplicaLimit,omitempty"`
}

// ParentRef names the service that projects a replica.
type ParentRef struct {
	// name of the InferenceService.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// Runner is one role inside an Instance.
type Runner struct {
	// name of the role.
	// +required
	Name RunnerName `json:"name"`

	// size is the number of pods in this role. It is 1 for default and leader.
	// +kubebuilder:validation:Minimum=1
	// +required
	Size int32 `json:"size"`

	// template of the pods.
	// +required
	Template corev1.PodTemplateSpec `json:"template"`
}

// Pacing bounds the update in flight.
type Pacing struct {
	// partition holds back the Instances with the lowest indexes. It wins over that of the
	// lifecycle.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Partition *int32 `json:"partition,omitempty"`

	// maxUnavailable is reserved and has no effect.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// rollbackToRevision is a ControllerRevision that every Instance returns to.
	// +optional
	RollbackToRevision string `json:"rollbackToRevision,omitempty"`
}

// PlacementExecution carries one step of a placement plan.
type PlacementExecution struct {
	// planID of the plan.
	// +required
	PlanID string `json:"planID"`

	// revision of the plan.
	// +kubebuilder:validation:Minimum=1
	// +required
	Revision int64 `json:"revision"`

	// sourceUID is the UID of the service on the control plane.
	// +required
	SourceUID string `json:"sourceUID"`

	// clusterUID identifies this cluster.
	// +required
	ClusterUID string `json:"clusterUID"`

	// pauseSurge stops new operations that need extra capacity.
	// +required
	PauseSurge bool `json:"pauseSurge"`

	// demand that the plan was made for.
	// +optional
	Demand *PlacementDemand `json:"demand,omitempty"`

	// replicaFloors are counts not to go below.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=map
	// +listMapKey=component
	// +optional
	ReplicaFloors []PlacementReplicaFloor `json:"replicaFloors,omitempty"`
}

// PlacementDemand is what a plan was made for.
type PlacementDemand struct {
	// fingerprint of the demand.
	// +kubebuilder:validation:Pattern=`^[a-f0-9]{64}$`
	// +required
	Fingerprint string `json:"fingerprint"`

	// components of the demand.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +listType=map
	// +listMapKey=component
	// +required
	Components []PlacementDemandComponent `json:"components"`
}

// PlacementDemandComponent is the demand of one component.
type PlacementDemandComponent struct {
	// component of the demand.
	// +kubebuilder:validation:Enum=engine;decoder
	// +required
	Component ComponentType `json:"component"`

	// renderingHash of its templates.
	// +kubebuilder:validation:Pattern=`^[a-f0-9]{64}$`
	// +optional
	RenderingHash string `json:"renderingHash,omitempty"`
}

// PlacementReplicaFloor is a count not to go below.
type PlacementReplicaFloor struct {
	// component of the floor.
	// +kubebuilder:validation:Enum=engine;decoder;router
	// +required
	Component ComponentType `json:"component"`

	// replicas not to go below.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// InferenceReplicaStatus reports the Instances. They are either a list or columns, never both.
//
// +kubebuilder:validation:XValidation:rule="has(self.instanceStatusEncoding) || !has(self.instanceStatusColumns)",message="instanceStatusColumns needs instanceStatusEncoding"
// +kubebuilder:validation:XValidation:rule="!has(self.instanceStatusEncoding) || (has(self.instanceStatusColumns) && !has(self.instanceStatuses))",message="instanceStatusEncoding needs instanceStatusColumns and excludes instanceStatuses"
type InferenceReplicaStatus struct {
	// observedGeneration is the generation that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// placementObservedGeneration is the generation reconciled under placement guards.
	// +kubebuilder:validation:Minimum=1
	// +optional
	PlacementObservedGeneration *int64 `json:"placementObservedGeneration,omitempty"`

	// replicas counts the Instances in any phase.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas counts the Instances whose pods all have ready containers.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// servingReplicas counts the Instances in rotation. Budgets use this number.
	// +optional
	ServingReplicas int32 `json:"servingReplicas"`

	// availableReplicas counts the Instances that are listed and past minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// updatedReplicas counts the Instances on updateRevision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// updatedReadyReplicas counts those of them that are ready.
	// +optional
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`

	// currentRevision is the ControllerRevision that serves.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// updateRevision is the ControllerRevision being rolled out.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// collisionCount salts the revision hash after a name collision.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// labelSelector selects the pods of this replica. The scale subresource reports it.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// instanceStatuses are the rows of the Instances, in the DenseV1 encoding.
	// +listType=map
	// +listMapKey=index
	// +optional
	InstanceStatuses []InstanceStatus `json:"instanceStatuses,omitempty"`

	// instanceStatusEncoding names the encoding of the rows. Absent means DenseV1.
	// +optional
	InstanceStatusEncoding InstanceStatusEncoding `json:"instanceStatusEncoding,omitempty"`

	// instanceStatusColumns are the rows of the Instances, in the ColumnarV2 encoding.
	// +optional
	InstanceStatusColumns *InstanceStatusColumns `json:"instanceStatusColumns,omitempty"`

	// retryBlocks say which failed revisions may be tried again, and when.
	// +listType=map
	// +listMapKey=targetRevision
	// +optional
	RetryBlocks []RetryBlock `json:"retryBlocks,omitempty"`

	// migrations are the records of Instances moved to other nodes.
	// +listType=map
	// +listMapKey=requestUUID
	// +optional
	Migrations []MigrationStatus `json:"migrations,omitempty"`

	// conditions of the replica.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// traffic is the recorded weight of each revision.
	// +listType=map
	// +listMapKey=revisionName
	// +optional
	Traffic []TrafficTarget `json:"traffic,omitempty"`

	// coordinationGroupRef names the rollout group that binds this replica.
	// +optional
	CoordinationGroupRef string `json:"coordinationGroupRef,omitempty"`

	// rolloutHold says why the rollout waits.
	// +optional
	RolloutHold *RolloutHold `json:"rolloutHold,omitempty"`
}

// InferenceReplica is a set of Instances of one component, with one history of revisions and one
// rollout. A service projects one for each OMENative component; one made by hand is standalone.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:path=inferencereplicas,singular=inferencereplica,shortName=irep,scope=Namespaced
// +kubebuilder:printcolumn:name="Component",type="string",JSONPath=".spec.component"
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".spec.replicas"
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.replicas"
// +kubebuilder:printcolumn:name="Ready",type="integer",JSONPath=".status.readyReplicas"
// +kubebuilder:printcolumn:name="Available",type="integer",JSONPath=".status.availableReplicas"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,priority=1
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.updateRevision`,priority=1
// +kubebuilder:printcolumn:name="Paused",type=boolean,JSONPath=`.spec.paused`,priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type InferenceReplica struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the Instances.
	// +optional
	Spec InferenceReplicaSpec `json:"spec,omitempty"`

	// status reports the Instances.
	// +optional
	Status InferenceReplicaStatus `json:"status,omitempty"`
}

// InferenceReplicaList is a list of InferenceReplicas.
// +kubebuilder:object:root=true
type InferenceReplicaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []InferenceReplica `json:"items"`
}
