package render

import (
	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
)

// lifecycle merges the policies of one component field by field: service, runtime, operator, then
// a fixed value for a single-pod Instance. The second result is the availability window, which a
// replica carries outside its lifecycle block.
func lifecycle(own, base *v1beta1.LifecycleSpec, operator config.Settings, c v1beta1.ComponentType) (v1beta1.LifecycleSpec, int32) {
	// DeepCopy: results must not share memory with the inputs.
	own, base = own.DeepCopy(), base.DeepCopy()
	if own == nil {
		own = &v1beta1.LifecycleSpec{}
	}
	if base == nil {
		base = &v1beta1.LifecycleSpec{}
	}
	out := v1beta1.LifecycleSpec{
		RestartPolicy:  first(own.RestartPolicy, base.RestartPolicy, v1beta1.RestartNone),
		ReadyPolicy:    first(own.ReadyPolicy, base.ReadyPolicy, v1beta1.ReadyPolicyNone),
		UpdateStrategy: updateStrategy(own.UpdateStrategy, base.UpdateStrategy, operator.Deploy.UpdateStrategy.For(string(c))),
	}

	// A zero timeout counts as unset and still hides the runtime's value.
	timeout := own.InstanceReadyTimeout
	if timeout == nil {
		timeout = base.InstanceReadyTimeout
	}
	if timeout != nil && timeout.Duration > 0 {
		out.InstanceReadyTimeout = timeout
	} else if d := operator.Lifecycle.InstanceReadyTimeout; d > 0 {
		out.InstanceReadyTimeout = duration(d)
	}

	mode := v1beta1.MigrationAuto
	for _, p := range []*v1beta1.MigrationPolicy{base.MigrationPolicy, own.MigrationPolicy} {
		if p != nil && p.Mode != "" {
			mode = p.Mode
		}
	}
	out.MigrationPolicy = &v1beta1.MigrationPolicy{Mode: mode}

	window := firstSet(own.MinReadySeconds, base.MinReadySeconds)
	if window == nil {
		return out, operator.Deploy.MinReadySeconds
	}
	return out, *window
}

func updateStrategy(own, base *v1beta1.UpdateStrategy, operator config.UpdateStrategy) *v1beta1.UpdateStrategy {
	if own == nil {
		own = &v1beta1.UpdateStrategy{}
	}
	if base == nil {
		base = &v1beta1.UpdateStrategy{}
	}
	out := &v1beta1.UpdateStrategy{
		Type: first(own.Type, base.Type, v1beta1.UpdateStrategyType(operator.Type), v1beta1.SurgeThenDrain),
	}

	var rolling v1beta1.InstanceRollingUpdate
	for _, r := range []*v1beta1.InstanceRollingUpdate{own.RollingUpdate, base.RollingUpdate} {
		if r == nil {
			continue
		}
		rolling.Partition = firstSet(rolling.Partition, r.Partition)
		rolling.MaxSurge = firstSet(rolling.MaxSurge, r.MaxSurge)
		rolling.MaxUnavailable = firstSet(rolling.MaxUnavailable, r.MaxUnavailable)
	}
	// The operator fills only the budget that the strategy reads: the other one would bound repairs.
	if out.Type == v1beta1.SurgeThenDrain {
		rolling.MaxSurge = firstSet(rolling.MaxSurge, &operator.MaxSurge)
	} else {
		rolling.MaxUnavailable = firstSet(rolling.MaxUnavailable, &operator.MaxUnavailable)
	}
	out.RollingUpdate = &rolling

	var inPlace v1beta1.InPlaceUpdateStrategy
	for _, p := range []*v1beta1.InPlaceUpdateStrategy{own.InPlaceUpdateStrategy, base.InPlaceUpdateStrategy} {
		if p == nil {
			continue
		}
		inPlace.GracePeriodSeconds = firstSet(inPlace.GracePeriodSeconds, p.GracePeriodSeconds)
		inPlace.MarkNotReadyDuringLifecycle = firstSet(inPlace.MarkNotReadyDuringLifecycle, p.MarkNotReadyDuringLifecycle)
	}
	if inPlace.MarkNotReadyDuringLifecycle == nil {
		yes := true
		inPlace.MarkNotReadyDuringLifecycle = &yes
	}
	out.InPlaceUpdateStrategy = &inPlace
	return out
}

// first returns the first non-empty value.
func first[T ~string](values ...T) T {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// firstSet returns the first pointer that isn't nil.
func firstSet[T any](values ...*T) *T {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}
