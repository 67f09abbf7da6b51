package core

import (
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// Most passes decide what is stored already, and a reflective comparison of whole
// statuses would be most of their cost. So what moves often is compared by hand, and
// the rest by identity first. No field can be forgotten: the test walks them all.

// weigh is how close a comparison looks.
type weigh bool

const (
	exactly weigh = false
	// byWeight passes over what only counts and words: two statuses that agree by
	// weight may be written later.
	byWeight weigh = true
)

func (w weigh) count(a, b int32) bool { return w == byWeight || a == b }
func (w weigh) text(a, b string) bool { return w == byWeight || a == b }

func sameServiceStatus(a, b *v1beta1.InferenceServiceStatus, w weigh) bool {
	return a.ObservedGeneration == b.ObservedGeneration && a.URL == b.URL && a.LastRuntimeSyncToken == b.LastRuntimeSyncToken &&
		a.PinnedRevisionName == b.PinnedRevisionName && sameDeep(a.Placement, b.Placement) &&
		slices.EqualFunc(a.Conditions, b.Conditions, w.sameDuck) && w.sameComponents(a.Components, b.Components) &&
		maps.Equal(a.Annotations, b.Annotations) && sameDeep(a.Rollout, b.Rollout) && sameDeep(a.RolloutCoordination, b.RolloutCoordination) &&
		sameDeep(a.Address, b.Address) && sameDeep(a.ModelStatus, b.ModelStatus) && sameDeep(a.Traffic, b.Traffic) && sameDeep(a.Canary, b.Canary) &&
		sameList(a.Addresses, b.Addresses) && sameList(a.MigrationHistory, b.MigrationHistory) && sameList(a.MountedOverlays, b.MountedOverlays)
}

// sameReplicaStatus compares everything but the rows.
func sameReplicaStatus(a, b *v1beta1.InferenceReplicaStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration && a.Replicas == b.Replicas && a.ReadyReplicas == b.ReadyReplicas &&
		a.ServingReplicas == b.ServingReplicas && a.AvailableReplicas == b.AvailableReplicas &&
		a.UpdatedReplicas == b.UpdatedReplicas && a.UpdatedReadyReplicas == b.UpdatedReadyReplicas &&
		a.CurrentRevision == b.CurrentRevision && a.UpdateRevision == b.UpdateRevision && a.LabelSelector == b.LabelSelector &&
		a.CoordinationGroupRef == b.CoordinationGroupRef && samePointee(a.CollisionCount, b.CollisionCount) &&
		samePointee(a.PlacementObservedGeneration, b.PlacementObservedGeneration) &&
		slices.EqualFunc(a.Conditions, b.Conditions, exactly.sameCondition) && exactly.sameHold(a.RolloutHold, b.RolloutHold) &&
		slices.EqualFunc(a.Traffic, b.Traffic, sameTraffic) && sameList(a.RetryBlocks, b.RetryBlocks) && sameList(a.Migrations, b.Migrations)
}

// sameReplicaSpec passes over templates that are the very same object.
func sameReplicaSpec(a, b *v1beta1.InferenceReplicaSpec) bool {
	return a.Component == b.Component && a.MinReadySeconds == b.MinReadySeconds && a.PairingProtocol == b.PairingProtocol &&
		a.TopologyKey == b.TopologyKey && a.TopologySpread == b.TopologySpread && a.TopologySpreadKey == b.TopologySpreadKey &&
		a.Paused == b.Paused && a.PauseMode == b.PauseMode && samePointee(a.ParentRef, b.ParentRef) &&
		samePointee(a.Replicas, b.Replicas) && samePointee(a.RevisionHistoryLimit, b.RevisionHistoryLimit) &&
		samePointee(a.PlacementReplicaLimit, b.PlacementReplicaLimit) && sameDeep(a.ModelRef, b.ModelRef) && sameDeep(a.RuntimeRef, b.RuntimeRef) &&
		sameDeep(a.Pacing, b.Pacing) && sameDeep(a.Autoscaler, b.Autoscaler) && sameDeep(a.PlacementExecution, b.PlacementExecution) &&
		samePolicies(a.Lifecycle, b.Lifecycle) && sameList(a.Runners, b.Runners)
}

func samePolicies(a, b *v1beta1.LifecycleSpec) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.RestartPolicy == b.RestartPolicy && a.ReadyPolicy == b.ReadyPolicy && samePointee(a.InstanceReadyTimeout, b.InstanceReadyTimeout) &&
		samePointee(a.MinReadySeconds, b.MinReadySeconds) && sameDeep(a.MigrationPolicy, b.MigrationPolicy) &&
		sameStrategy(a.UpdateStrategy, b.UpdateStrategy)
}

func sameStrategy(a, b *v1beta1.UpdateStrategy) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	x, y := a.RollingUpdate, b.RollingUpdate
	return a.Type == b.Type && sameDeep(a.InPlaceUpdateStrategy, b.InPlaceUpdateStrategy) && (x == nil) == (y == nil) &&
		(x == nil || samePointee(x.Partition, y.Partition) && samePointee(x.MaxUnavailable, y.MaxUnavailable) && samePointee(x.MaxSurge, y.MaxSurge))
}

func (w weigh) sameDuck(a, b v1beta1.DuckCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Severity == b.Severity && a.Reason == b.Reason && w.text(a.Message, b.Message) &&
		(a.LastTransitionTime == b.LastTransitionTime || a.LastTransitionTime.Equal(b.LastTransitionTime))
}

func (w weigh) sameComponents(a, b map[v1beta1.ComponentType]v1beta1.ComponentStatus) bool {
	if len(a) != len(b) {
		return false
	}
	for kind, x := range a {
		y, ok := b[kind]
		if !ok || !w.sameComponent(&x, &y) {
			return false
		}
	}
	return true
}

func (w weigh) sameComponent(a, b *v1beta1.ComponentStatus) bool {
	return a.URL == b.URL && a.RestURL == b.RestURL && a.RolloutPhase == b.RolloutPhase &&
		a.LatestReadyRevision == b.LatestReadyRevision && a.LatestRolledoutRevision == b.LatestRolledoutRevision &&
		a.PreviousRolledoutRevision == b.PreviousRolledoutRevision &&
		samePointee(a.ScaleTargetRef, b.ScaleTargetRef) && samePointee(a.TrafficApplied, b.TrafficApplied) &&
		w.sameLifecycle(a.Lifecycle, b.Lifecycle) && slices.EqualFunc(a.Traffic, b.Traffic, sameTraffic) &&
		sameDeep(a.Address, b.Address) && sameDeep(a.SelectedAccelerator, b.SelectedAccelerator) &&
		sameDeep(a.Canary, b.Canary) && w.sameAutoscaler(a.Autoscaler, b.Autoscaler)
}

func (w weigh) sameLifecycle(a, b *v1beta1.LifecycleStatus) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.ObservedGeneration == b.ObservedGeneration && a.CurrentRevision == b.CurrentRevision && a.UpdateRevision == b.UpdateRevision &&
		a.LabelSelector == b.LabelSelector && samePointee(a.CollisionCount, b.CollisionCount) &&
		w.count(a.Replicas, b.Replicas) && w.count(a.ReadyReplicas, b.ReadyReplicas) && w.count(a.ServingReplicas, b.ServingReplicas) &&
		w.count(a.AvailableReplicas, b.AvailableReplicas) && w.count(a.UpdatedReplicas, b.UpdatedReplicas) &&
		w.count(a.UpdatedReadyReplicas, b.UpdatedReadyReplicas) &&
		slices.EqualFunc(a.Conditions, b.Conditions, w.sameCondition) && w.sameHold(a.RolloutHold, b.RolloutHold)
}

func (w weigh) sameCondition(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.ObservedGeneration == b.ObservedGeneration &&
		w.text(a.Message, b.Message) && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

func (w weigh) sameHold(a, b *v1beta1.RolloutHold) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.Gate == b.Gate && a.Target == b.Target && w.text(a.Reason, b.Reason) && a.Since.Equal(&b.Since)
}

func sameTraffic(a, b v1beta1.TrafficTarget) bool {
	return a.RevisionName == b.RevisionName && a.Percent == b.Percent && a.Tag == b.Tag && a.PairingProtocol == b.PairingProtocol &&
		samePointee(a.LatestRevision, b.LatestRevision)
}

// samePointee compares what may be absent.
func samePointee[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// sameDeep is for what is mostly absent, or the very same object.
func sameDeep[T any](a, b *T) bool {
	return a == b || (a != nil && b != nil && apiequality.Semantic.DeepEqual(a, b))
}

// sameList is sameDeep for lists.
func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || apiequality.Semantic.DeepEqual(a, b))
}

// kept is the stored object while it says the same as the next one.
func kept[T comparable](stored *T, next T) *T {
	if stored != nil && *stored == next {
		return stored
	}
	return &next
}
