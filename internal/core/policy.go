package core

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/rollout"
)

// policy fills in how the component's Instances live, move, fail and recover: its own
// lifecycle, the operator's settings, and the ceilings of its group.
func (c *component) policy(w *World, permit rollout.Permit, in *instance.Input) {
	settings := &w.Settings.Lifecycle
	in.StuckGrace, in.UnschedulableGrace = settings.StuckPodGracePeriod, settings.UnschedulableGracePeriod
	in.Retry, in.ForceDelete = settings.UpdateRetry, settings.ForceDelete
	in.RecordsKept = settings.Audit.Window
	in.RetryBlocks, in.Migrations = c.Replica.Status.RetryBlocks, c.Replica.Status.Migrations
	in.Release = mailbox(c.Replica, v1beta1.ReleaseHeldRevisionAnnotation)
	in.Reset = mailbox(c.Replica, v1beta1.ResetInstancesAnnotation)

	l := c.lifecycle()
	if l == nil {
		l = &v1beta1.LifecycleSpec{}
	}
	in.Strategy = c.strategy()
	in.MaxSurge, in.MaxUnavailable = instance.NoBudget, instance.NoBudget
	if u := l.UpdateStrategy; u != nil {
		if r := u.RollingUpdate; r != nil {
			in.MaxSurge, in.MaxUnavailable = budget(r.MaxSurge, c.desired), budget(r.MaxUnavailable, c.desired)
			in.Partition = valueOr(r.Partition, 0)
		}
		if p := u.InPlaceUpdateStrategy; p != nil && p.MarkNotReadyDuringLifecycle != nil {
			in.KeepInRotation = !*p.MarkNotReadyDuringLifecycle
		}
	}
	if permit.Partition != nil {
		in.Partition = *permit.Partition
	}
	if in.Strategy != v1beta1.SurgeThenDrain {
		in.MaxSurge = 0
	}
	if permit.MaxSurge < in.MaxSurge {
		in.MaxSurge, in.SurgeField = permit.MaxSurge, permit.BudgetField
	}
	if permit.MaxUnavailable < in.MaxUnavailable {
		in.MaxUnavailable, in.UnavailableField = permit.MaxUnavailable, permit.BudgetField
	}
	in.Starts, in.Drains = permit.Starts, permit.Drains
	in.RestartPolicy = l.RestartPolicy
	in.ReadyTimeout = c.readyTimeout(w)
	if l.MigrationPolicy == nil || l.MigrationPolicy.Mode != v1beta1.MigrationNever {
		in.Relocations = settings.AutoMigrate.MaxAttempts
	}
	if c.Template != nil {
		in.ExcludedAnnotations = c.Template.ExcludedAnnotationKeys
	}
}

// readyTimeout is the component's own, else the operator's; 0 counts as unset.
func (c *component) readyTimeout(w *World) time.Duration {
	if l := c.lifecycle(); l != nil && l.InstanceReadyTimeout != nil && l.InstanceReadyTimeout.Duration > 0 {
		return l.InstanceReadyTimeout.Duration
	}
	return w.Settings.Lifecycle.InstanceReadyTimeout
}

func mailbox(r *v1beta1.InferenceReplica, key string) *string {
	if v, ok := r.Annotations[key]; ok {
		return &v
	}
	return nil
}

// budget is the value in Instances; nothing set, or what admission would have refused,
// limits nothing.
func budget(v *intstr.IntOrString, desired int32) int32 {
	if v == nil {
		return instance.NoBudget
	}
	if n, err := plan.Budget(*v, desired); err == nil {
		return n
	}
	return instance.NoBudget
}

func (c *component) strategy() v1beta1.UpdateStrategyType {
	if l := c.lifecycle(); l != nil && l.UpdateStrategy != nil && l.UpdateStrategy.Type != "" {
		return l.UpdateStrategy.Type
	}
	return v1beta1.SurgeThenDrain
}
