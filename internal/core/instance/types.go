package instance

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
)

// Revision is one pod template of the component, under its ControllerRevision's name.
type Revision struct {
	// Name is the ControllerRevision; Hash is what pods carry as a label.
	Name, Hash string
	// Template returns the pod of the only runner, nil when it cannot be read. It
	// is a function because most passes create no pod of most revisions.
	Template func() *corev1.PodTemplateSpec
	// Token is the pairing protocol of the revision; empty pairs with anything.
	Token string
}

// Hold says why an update may not start: the gate, and the reason a person can act on.
type Hold struct {
	Gate   v1beta1.RolloutHoldGate
	Reason string
}

// Input is what one component's decision depends on.
type Input struct {
	Now  time.Time
	Seed string

	Namespace string
	// Prefix starts every generated name: the service's name.
	Prefix    string
	Component v1beta1.ComponentType
	// Owner is the replica, as controller owner of pods.
	Owner metav1.OwnerReference

	// Desired is the number of Instances wanted; 0 only when the replica goes away.
	Desired int32
	// Target is the revision of the current spec.
	Target Revision
	// Revisions are the known revisions by name, Target included.
	Revisions map[string]Revision
	// Strategy is how Instances move to another revision from now on; an update under
	// way keeps the one it began with.
	Strategy v1beta1.UpdateStrategyType
	// MaxSurge is the number of extra pods allowed at one time. SurgeThenDrain reads it.
	MaxSurge int32
	// MaxUnavailable is the number of Instances that may be out for an update or a
	// restart at one time. Every other strategy reads it; NoBudget means no limit.
	MaxUnavailable int32
	// SurgeField and UnavailableField are where a person finds the two; empty for the
	// component's own.
	SurgeField, UnavailableField string
	// Partition is the number of Instances kept on the revision they run.
	Partition int32
	// RestartPolicy says whether a restarted container restarts its whole Instance.
	RestartPolicy v1beta1.InstanceRestartPolicy
	// ExcludedAnnotations are annotation keys that are no part of a revision.
	ExcludedAnnotations []string
	// KeepInRotation leaves a pod in rotation while its images are changed in place.
	KeepInRotation bool
	// ReadyTimeout bounds one attempt; 0 means no deadline.
	ReadyTimeout time.Duration
	// StuckGrace is how long a pod may wait for a terminal cause, UnschedulableGrace
	// how long for room; 0 means for ever.
	StuckGrace, UnschedulableGrace time.Duration
	// Retry paces new attempts at a revision that failed.
	Retry config.UpdateRetry
	// Relocations is how many times an Instance may leave a node before it is next
	// Ready; 0 turns relocation off.
	Relocations int32
	// RecordsKept is how long the record of a relocation is kept; 0 means for ever.
	RecordsKept time.Duration
	// ForceDelete is the escalation for pods on dead nodes.
	ForceDelete config.ForceDelete
	// RetryBlocks and Migrations are the stored ones.
	RetryBlocks []v1beta1.RetryBlock
	Migrations  []v1beta1.MigrationStatus
	// Release and Reset are the replica's mailboxes; nil when empty.
	Release, Reset *string
	// StartHold denies the start of updates, and of drains toward a revision that
	// is no longer the target; nil allows.
	StartHold *Hold
	// Starts bounds the updates that begin in this pass, of Instances that serve;
	// Drains the old pods that leave rotation after a surge. Nil is no bound.
	Starts, Drains *Quota
	// Paused stops starts and stops a surge before its drain. Lost pods are still
	// replaced, at the revision they ran, unless Frozen.
	Paused, Frozen bool
	// Refusal is what the API server said when it last refused a write of this component.
	Refusal string
	// RefusedPods are the creations that the API server turned down when they were last
	// asked for, by pod name.
	RefusedPods map[string]Refusal
	// Nodes are the nodes of pods that are overdue, by name; nil for one that is gone. A
	// node that is not in the map was not looked at.
	Nodes map[string]*corev1.Node
	// MinReady is how long a pod must be Ready before an old one may leave.
	MinReady time.Duration
	// MaxOpen bounds open operations; CreateBatch bounds creations in one pass,
	// DeleteBatch removals under way. 0 means no bound.
	MaxOpen, CreateBatch, DeleteBatch int32
	// Env is stamped on every regular container at creation, outside the revision.
	Env []corev1.EnvVar
	// Labels are further pod labels that are not part of the revision.
	Labels map[string]string
	// GraceSeconds is the operator's grace period for templates that name none; 0
	// leaves it to the cluster. An operator default never enters a revision.
	GraceSeconds int64

	Rows []v1beta1.InstanceStatus
	Pods []*corev1.Pod
	// Routed holds the UIDs of pods that traffic can still reach.
	Routed map[types.UID]bool
	// SkipDrain kills old pods while they are in rotation (the lab's control).
	SkipDrain bool
}

// Result is the next state of the component's Instances.
type Result struct {
	Rows []v1beta1.InstanceStatus
	Pods []PodAction
	// Hold is why an Instance that should update did not start; nil when none waits.
	Hold   *Hold
	Events []Event
	// Wake is the earliest time at which waiting alone changes something.
	Wake time.Time
	// RetryBlocks and Migrations are the next ones.
	RetryBlocks []v1beta1.RetryBlock
	Migrations  []v1beta1.MigrationStatus
	// OverdueFor names a pod that keeps a removal beyond its deadline, and what to do.
	OverdueFor string
	// Consumed are the mailboxes that this pass answered, by annotation and value.
	Consumed map[string]string
	Counts
}

// NoBudget is a budget that limits nothing.
const NoBudget = math.MaxInt32

// Counts sums the rows.
type Counts struct {
	// Total counts rows in any phase.
	Total, Ready, Serving, Available int32
	// Updated counts rows that run the target; UpdatedReady those of them that are ready.
	Updated, UpdatedReady int32
	// Settled is true when every row runs the target and none has work to do.
	Settled bool
	// Surging, Draining, Deleting and Creating count operations by what they wait for.
	Surging, Draining, Deleting, Creating int32
	// Failed counts rows in phase Failed; Stalled those of them that do not run the target.
	Failed, Stalled int32
	// Overdue counts removals past their deadline.
	Overdue int32
	// KeptBack counts Instances that the partition keeps on their revision.
	KeptBack int32
	// Pods counts listed pods, Terminating ones included.
	Pods int32
}

// PodVerb is what to do to a pod.
type PodVerb string

const (
	// PodCreate creates the pod.
	PodCreate PodVerb = "Create"
	// PodServe sets the serving gate True.
	PodServe PodVerb = "Serve"
	// PodUnserve sets the serving gate False.
	PodUnserve PodVerb = "Unserve"
	// PodDelete deletes the pod with its own grace period.
	PodDelete PodVerb = "Delete"
	// PodUpdate patches labels, annotations and images of the pod as Patch says.
	PodUpdate PodVerb = "Update"
	// PodForceDelete removes the API object of a pod whose node is dead, without grace.
	PodForceDelete PodVerb = "ForceDelete"
	// PodKill deletes the pod without grace; the lab's negative control only.
	PodKill PodVerb = "Kill"
)

// PodPatch is what a PodUpdate changes in one request.
type PodPatch struct {
	// Images are the new images by container name.
	Images map[string]string
	// Labels are set; an Annotation that is nil is removed, any other is set.
	Labels      map[string]string
	Annotations map[string]*string
}

// RefusalKind sorts the answers of an API server that turns a pod down.
type RefusalKind string

const (
	// RefusedQuota is a ResourceQuota; room may come back by itself.
	RefusedQuota RefusalKind = "Quota"
	// RefusedInvalid is a pod that the API server will never take.
	RefusedInvalid RefusalKind = "Invalid"
	// RefusedTerminating is a namespace on its way out.
	RefusedTerminating RefusalKind = "NamespaceTerminating"
	// RefusedOther is anything else, such as an admission webhook or a missing right.
	RefusedOther RefusalKind = "Other"
)

// Refusal is a pod creation that the API server turned down.
type Refusal struct {
	Kind RefusalKind
	Text string
}

// PodAction is one call on one pod. Pod is the object to create, or the pod as
// read, whose UID (and resourceVersion, for a gate) the call must carry.
type PodAction struct {
	Verb PodVerb
	Pod  *corev1.Pod
	// Operation is the ID of the operation that authorizes the call; empty only
	// for a gate put back at rest.
	Operation string
	// Reason and Message are stored in the gate's condition.
	Reason, Message string
	// Patch is the change of a PodUpdate; nil for every other verb.
	Patch *PodPatch
}

// Event is a Kubernetes event to record, best effort.
type Event struct {
	// Object is the component whose replica the event is about; empty for the service.
	Object  v1beta1.ComponentType
	Warning bool
	Reason  string
	Message string
}
