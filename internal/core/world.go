package core

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/keda"
	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/revision"
	"ome.io/ome/internal/core/rollout"
)

// World is one consistent reading of a service and everything that belongs to it.
// Core reads it and never writes to it.
type World struct {
	// Key names the service. It outlives the object: with Service nil a pass
	// still tears down what the service left behind.
	Key types.NamespacedName
	// Now is the time of the pass; core has no other clock.
	Now time.Time
	// Seed makes the IDs of this pass unique: operation and run IDs derive from
	// it. Twelve lowercase hex digits from a random source.
	Seed string
	// Settings are the operator's, defaults filled in.
	Settings config.Settings
	// Service is the InferenceService as read; nil when it does not exist.
	Service *v1beta1.InferenceService
	// Policies are the RolloutPolicies that the service refers to, by name; nil where the
	// manager found no such kind when it started.
	Policies map[string]plan.Policy
	// Components are those the service declares in OMENative mode and those that
	// still have a replica, in the order engine, decoder, router.
	Components []Component
	// Services are the core Services that carry the service's label.
	Services []*corev1.Service
	// Scalers are the HorizontalPodAutoscalers that carry the service's label.
	Scalers []*autoscalingv2.HorizontalPodAutoscaler
	// ScaledObjects are the same of KEDA; KEDAServed is false where the cluster has no such kind.
	ScaledObjects []*keda.ScaledObject
	KEDAServed    bool
	// Nodes are those of pods that should have been gone for longer than
	// Lifecycle.ForceDelete.OverdueSlack, by name; nil for a node that is gone. It is
	// filled only while force deletion is configured.
	Nodes map[string]*corev1.Node
	// Samples are the finished samples of metrics that were asked for, and Reach tells how
	// far back a query looks.
	Samples []analysis.Sample                         `json:"-"`
	Reach   func(query string) (time.Duration, error) `json:"-"`
	// SettingsProblems say which operator settings have a bad value and what is used
	// instead; empty when all are good.
	SettingsProblems []string
	// SkipDrain deletes pods without taking them out of rotation first. Only the
	// lab sets it, for the run that must show lost requests.
	SkipDrain bool
	// SkipPairing drains old pods whether or not an engine and a decoder that pair
	// go on serving. Only the lab sets it, for the run that must show mismatches.
	SkipPairing bool
}

// Component is what is known about one component of the service.
type Component struct {
	Type v1beta1.ComponentType
	// Declared is false for a component that left the spec and only has leftovers.
	Declared bool
	// Template is what the component should run; nil when it could not be
	// rendered, and then TemplateError says why.
	Template *Template
	// TemplateError is a problem a person must fix; existing pods stay as they are.
	TemplateError *TemplateError
	// Replica is the projected InferenceReplica as read; nil when absent.
	Replica *v1beta1.InferenceReplica
	// Revisions are the ControllerRevisions of the replica.
	Revisions []*appsv1.ControllerRevision
	// Pods are the pods that carry the component's labels.
	Pods []*corev1.Pod
	// Refusal is the text with which the API server last refused a write of this
	// component (a quota, an admission webhook, an invalid pod); empty after a pass
	// whose writes were all accepted.
	Refusal string
	// RefusedPods are the pod creations that the API server turned down when they were
	// last asked for, by pod name. A creation that was accepted, or is no longer asked
	// for, leaves the map.
	RefusedPods map[string]Refusal
	// ScalerRefusal is why the last write of the component's scaler was turned down; its
	// text is empty when none was. It concerns nothing else of the component.
	ScalerRefusal ScalerRefusal
	// Routed holds the UIDs of pods that some EndpointSlice of a routing Service
	// still offers as ready. Services that publish unready pods don't count.
	Routed map[types.UID]bool
}

// Template is the rendered form of a component.
type Template struct {
	Runners []v1beta1.Runner
	// Lifecycle is the effective policy: service, runtime and operator merged.
	Lifecycle v1beta1.LifecycleSpec
	// MinReadySeconds is projected to the replica's spec.
	MinReadySeconds int32
	// MinReplicas and MaxReplicas bound the count; both at least 1.
	MinReplicas, MaxReplicas int32
	// Autoscaler is recorded on the replica; AutoscalerSource is the layer it came from.
	Autoscaler       *v1beta1.ComponentAutoscaler
	AutoscalerSource string
	// PairingProtocol is set on engine and decoder only.
	PairingProtocol   string
	TopologyKey       string
	TopologySpread    v1beta1.TopologySpreadMode
	TopologySpreadKey string
	// ServicePorts are what the component's Services publish.
	ServicePorts []corev1.ServicePort
	// ExcludedAnnotationKeys are left out of the revision hash.
	ExcludedAnnotationKeys []string
	// prepared and scale are set by Seal.
	prepared *revision.Prepared
	scale    *preparedScaler
}

// Seal writes the template's revision out once, for a template that is used in
// many passes. It must not change afterwards.
func (t *Template) Seal() {
	if p, err := revision.Prepare(t.revisionInput(0)); err == nil {
		t.prepared = p
	}
	t.scale = t.prepareScaler()
}

func (t *Template) revisionInput(collision int32) revision.Input {
	in := revision.Input{
		PairingProtocol: t.PairingProtocol, TopologyKey: t.TopologyKey, CollisionCount: collision,
		ExcludedAnnotations: t.ExcludedAnnotationKeys, Prepared: t.prepared,
	}
	for i := range t.Runners {
		r := &t.Runners[i]
		in.Runners = append(in.Runners, revision.Runner{Name: r.Name, Size: r.Size, Template: r.Template})
	}
	return in
}

// TemplateError is a render or lookup failure with its condition reason.
type TemplateError struct {
	Reason  string
	Message string
}

// Decision is what should happen, in the order of its writes:
// revisions; service status; each replica's spec and marks; that replica's
// status; pods; other objects; annotation removal; events.
// A replica's later writes need its earlier ones and the service status write
// to have succeeded.
type Decision struct {
	// Status is the whole next status of the service; nil leaves it alone.
	Status *v1beta1.InferenceServiceStatus
	// StatusUrgent is false when only counters and times moved: the shell may
	// hold such a write back for up to QuietStatusInterval.
	StatusUrgent bool
	// Components are the decisions of each component, in the World's order.
	Components []ComponentDecision
	// CreateServices, UpdateServices and DeleteServices are core Services.
	CreateServices, UpdateServices []*corev1.Service
	DeleteServices                 []*corev1.Service
	// CreateScalers, UpdateScalers and DeleteScalers are what moves the counts.
	CreateScalers, UpdateScalers, DeleteScalers []Scaler
	// RemoveAnnotations are consumed mailboxes of the service, by key and the
	// value that was consumed: another value means a newer request, which stays.
	RemoveAnnotations map[string]string
	Events            []Event
	// Counts are counters to raise once Status is stored.
	Counts []rollout.Count
	// Values are what metrics were judged to be, for the same moment.
	Values []rollout.MetricValue
	// Samples are those to ask a metrics server for; asking twice is asking once.
	Samples []analysis.Request
	// Wake is when to look again even if nothing happens; zero means never.
	Wake time.Time
}

// QuietStatusInterval is how long a status write that only moves counters may wait.
const QuietStatusInterval = 15 * time.Second

// ComponentDecision is the part of a Decision that concerns one component.
type ComponentDecision struct {
	Type v1beta1.ComponentType
	// CreateRevisions are new ControllerRevisions. Their owner reference needs
	// the replica's UID, so they appear only once the replica exists.
	CreateRevisions []*appsv1.ControllerRevision
	// DeleteRevisions are past the history limit.
	DeleteRevisions []*appsv1.ControllerRevision
	// CreateReplica is set when the replica does not exist.
	CreateReplica *v1beta1.InferenceReplica
	// UpdateReplica is the replica with spec and marks as they should be; nil
	// when they are. Its spec.replicas differs from the stored one only when
	// the count is ours to write.
	UpdateReplica *v1beta1.InferenceReplica
	// DeleteReplica asks for deletion of the replica as read.
	DeleteReplica bool
	// RemoveFinalizer releases a replica whose pods are gone.
	RemoveFinalizer bool
	// ReplicaStatus is the whole next status of the replica; nil leaves it
	// alone. The shell stamps observedGeneration with the generation that its
	// own spec write returned.
	ReplicaStatus *v1beta1.InferenceReplicaStatus
	// ReplicaStatusUrgent is Decision.StatusUrgent for the replica.
	ReplicaStatusUrgent bool
	// Pods are the pod calls that ReplicaStatus authorizes.
	Pods []PodAction
	// Events tell of what ReplicaStatus records, so they come after it was written, and
	// a status with events is never held back.
	Events []Event
	// RemoveReplicaAnnotations are consumed mailboxes of the replica, by key and the
	// value that was consumed. They go after the replica's status was written.
	RemoveReplicaAnnotations map[string]string
	// CodecError is the stable word for why Instance rows could not be read or
	// written; empty when they could.
	CodecError string
}

// The words of package instance that a Decision is made of.
type (
	PodAction   = instance.PodAction
	PodVerb     = instance.PodVerb
	PodPatch    = instance.PodPatch
	Refusal     = instance.Refusal
	RefusalKind = instance.RefusalKind
	Event       = instance.Event
)

const (
	PodCreate  = instance.PodCreate
	PodServe   = instance.PodServe
	PodUnserve = instance.PodUnserve
	PodDelete  = instance.PodDelete
	PodUpdate  = instance.PodUpdate
	PodKill    = instance.PodKill

	PodForceDelete = instance.PodForceDelete

	RefusedQuota       = instance.RefusedQuota
	RefusedInvalid     = instance.RefusedInvalid
	RefusedTerminating = instance.RefusedTerminating
	RefusedOther       = instance.RefusedOther
)
