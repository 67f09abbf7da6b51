package preview

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/core/plan"
)

// Spec is a service with the templates that were rendered from it, by component. A
// component that the manager doesn't run by itself has none.
type Spec struct {
	Service   *v1beta1.InferenceService
	Templates map[v1beta1.ComponentType]*core.Template
}

// Live is what a cluster holds of a service.
type Live struct {
	Replicas  []*v1beta1.InferenceReplica
	Revisions []*appsv1.ControllerRevision
	Pods      []*corev1.Pod
}

// Timing is how long pods take.
type Timing struct {
	// StartUp is from a pod's creation to its containers being ready, ShutDown from its
	// deletion to its end.
	StartUp, ShutDown time.Duration
}

// Input is all that a preview depends on.
type Input struct {
	Now      time.Time
	Settings config.Settings
	Timing   Timing
	// Policies are the RolloutPolicies that the services refer to, by name; nil where the
	// cluster has no such kind.
	Policies map[string]plan.Policy
	// Old is the service before the change. Without Live all its Instances are Ready on
	// this spec; with Live only its object is used.
	Old  Spec
	Live *Live
	// New is the service as it would be stored.
	New Spec
}
