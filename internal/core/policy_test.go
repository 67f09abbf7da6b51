package core

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/rollout"
)

// What a component's lifecycle and the operator's settings make of a decision's input.
func TestPolicy(t *testing.T) {
	cases := []struct {
		name    string
		count   int32
		grouped bool
		set     func(*house)
		check   func(instance.Input) bool
	}{
		{"nothing set: a surge without a limit", 3, false, nil, func(in instance.Input) bool {
			return in.Strategy == v1beta1.SurgeThenDrain && in.MaxSurge == instance.NoBudget && in.MaxUnavailable == instance.NoBudget && in.Partition == 0 && !in.KeepInRotation
		}},
		{"a percentage of the count, rounded upward", 5, false, func(h *house) {
			h.rolling().MaxSurge, h.rolling().MaxUnavailable = new(intstr.FromString("25%")), new(intstr.FromString("1%"))
		}, func(in instance.Input) bool { return in.MaxSurge == 2 && in.MaxUnavailable == 1 }},
		{"one of a hundred percent of one", 1, false, func(h *house) { h.rolling().MaxSurge = new(intstr.FromString("1%")) },
			func(in instance.Input) bool { return in.MaxSurge == 1 }},
		{"other strategies have no surge", 3, false, func(h *house) {
			h.rolling().MaxSurge = new(intstr.FromInt32(3))
			h.engine().Template.Lifecycle.UpdateStrategy.Type = v1beta1.RecreatePod
		}, func(in instance.Input) bool { return in.MaxSurge == 0 && in.Strategy == v1beta1.RecreatePod }},
		{"a group's ceiling caps the surge", 8, true, nil, func(in instance.Input) bool { return in.MaxSurge == 2 && in.MaxUnavailable == instance.NoBudget }},
		{"a group's ceiling caps what may be out", 8, true, func(h *house) {
			h.rolling().MaxUnavailable = new(intstr.FromInt32(5))
			h.engine().Template.Lifecycle.UpdateStrategy.Type = v1beta1.RecreatePod
		}, func(in instance.Input) bool { return in.MaxUnavailable == 2 }},
		{"a group's ceiling raises nothing", 8, true, func(h *house) { h.rolling().MaxSurge = new(intstr.FromInt32(1)) },
			func(in instance.Input) bool { return in.MaxSurge == 1 }},
		{"the partition", 3, false, func(h *house) { h.rolling().Partition = new(int32(2)) }, func(in instance.Input) bool { return in.Partition == 2 }},
		{"a canary's partition goes before it", 3, false, func(h *house) {
			h.rolling().Partition = new(int32(2))
			h.partition = new(int32(0))
		}, func(in instance.Input) bool { return in.Partition == 0 }},
		{"a pod kept in rotation while it changes in place", 1, false, func(h *house) {
			h.rolling()
			h.engine().Template.Lifecycle.UpdateStrategy.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{MarkNotReadyDuringLifecycle: new(false)}
		}, func(in instance.Input) bool { return in.KeepInRotation }},
		{"taken out by default", 1, false, func(h *house) {
			h.rolling()
			h.engine().Template.Lifecycle.UpdateStrategy.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{}
		}, func(in instance.Input) bool { return !in.KeepInRotation }},
		{"the operator's timeout", 1, false, nil, func(in instance.Input) bool { return in.ReadyTimeout == 30*time.Minute }},
		{"the component's timeout", 1, false, func(h *house) {
			h.engine().Template.Lifecycle.InstanceReadyTimeout = &metav1.Duration{Duration: time.Hour}
		}, func(in instance.Input) bool { return in.ReadyTimeout == time.Hour }},
		{"a timeout of zero counts as unset", 1, false, func(h *house) {
			h.engine().Template.Lifecycle.InstanceReadyTimeout = &metav1.Duration{}
		}, func(in instance.Input) bool { return in.ReadyTimeout == 30*time.Minute }},
		{"relocation by default", 1, false, nil, func(in instance.Input) bool { return in.Relocations == 3 }},
		{"relocation under Auto", 1, false, func(h *house) {
			h.engine().Template.Lifecycle.MigrationPolicy = &v1beta1.MigrationPolicy{Mode: v1beta1.MigrationAuto}
		}, func(in instance.Input) bool { return in.Relocations == 3 }},
		{"no relocation under Never", 1, false, func(h *house) {
			h.engine().Template.Lifecycle.MigrationPolicy = &v1beta1.MigrationPolicy{Mode: v1beta1.MigrationNever}
		}, func(in instance.Input) bool { return in.Relocations == 0 }},
		{"no relocation without attempts", 1, false, func(h *house) { h.Settings.Lifecycle.AutoMigrate.MaxAttempts = 0 },
			func(in instance.Input) bool { return in.Relocations == 0 }},
		{"the mailboxes, empty values too", 1, false, func(h *house) {
			h.engine().Replica.Annotations = map[string]string{v1beta1.ReleaseHeldRevisionAnnotation: "x", v1beta1.ResetInstancesAnnotation: ""}
		}, func(in instance.Input) bool {
			return in.Release != nil && *in.Release == "x" && in.Reset != nil && *in.Reset == ""
		}},
		{"no mailboxes", 1, false, nil, func(in instance.Input) bool { return in.Release == nil && in.Reset == nil }},
		{"the graces and the pace", 1, false, nil, func(in instance.Input) bool {
			return in.StuckGrace == time.Minute && in.UnschedulableGrace == 15*time.Minute && in.Retry == (config.UpdateRetry{
				MaxAttempts: 3, InitialBackoff: time.Minute, BackoffFactor: 2, MaxBackoff: 10 * time.Minute})
		}},
		{"no force deletion by default", 1, false, nil, func(in instance.Input) bool { return !in.ForceDelete.Enabled() }},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t, tc.count)
			if tc.set != nil {
				tc.set(h)
			}
			c := prepare(&h.World, h.engine())
			var in instance.Input
			permit := rollout.Permit{MaxSurge: instance.NoBudget, MaxUnavailable: instance.NoBudget}
			if tc.grouped {
				permit.MaxSurge = plan.BlueGreenBudget(c.desired)
				if c.strategy() != v1beta1.SurgeThenDrain {
					permit.MaxUnavailable = permit.MaxSurge
				}
			}
			permit.Partition = h.partition
			c.policy(&h.World, permit, &in)
			if !tc.check(in) {
				t.Errorf("strategy %s, surge %d, unavailable %d, partition %d, timeout %s, relocations %d, %+v", in.Strategy, in.MaxSurge, in.MaxUnavailable,
					in.Partition, in.ReadyTimeout, in.Relocations, in)
			}
		})
	}
}

// The mailboxes of a replica are consumed by the value that was read.
func TestReplicaMailboxes(t *testing.T) {
	h := newHouse(t, 1)
	h.row(0, h.new, v1beta1.InstanceReady, true)
	h.engine().Replica.Annotations = map[string]string{v1beta1.ReleaseHeldRevisionAnnotation: "x", v1beta1.ResetInstancesAnnotation: "0"}
	_, d := h.decide(t)
	if len(d.RemoveReplicaAnnotations) != 2 || d.RemoveReplicaAnnotations[v1beta1.ReleaseHeldRevisionAnnotation] != "x" || d.RemoveReplicaAnnotations[v1beta1.ResetInstancesAnnotation] != "0" {
		t.Errorf("%v", d.RemoveReplicaAnnotations)
	}
	reasons := map[string]bool{}
	for _, e := range d.Events {
		reasons[e.Reason] = true
	}
	if !reasons[v1beta1.EventRetryBlockReleaseSkipped] || !reasons[v1beta1.EventInstancesResetSkipped] {
		t.Errorf("%+v", d.Events)
	}
}

// A deleted replica drains its pods and is let go, by its deadline at the latest.
func TestTeardown(t *testing.T) {
	going := func(t *testing.T, since time.Duration) *house {
		h := newHouse(t, 2)
		h.row(0, h.new, v1beta1.InstanceReady, true)
		h.row(1, h.new, v1beta1.InstanceReady, true)
		h.engine().Replica.DeletionTimestamp = &metav1.Time{Time: scalerNow.Add(-since)}
		return h
	}
	has := func(d ComponentDecision, reason string) *Event {
		for i := range d.Events {
			if d.Events[i].Reason == reason {
				return &d.Events[i]
			}
		}
		return nil
	}
	t.Run("the pods leave first", func(t *testing.T) {
		h := going(t, time.Minute)
		_, d := h.decide(t)
		if d.RemoveFinalizer || len(d.Pods) != 2 {
			t.Errorf("finalizer %v, pods %v", d.RemoveFinalizer, d.Pods)
		}
		if w := decided(t, h.World).Wake; !w.Equal(scalerNow.Add(29 * time.Minute)) {
			t.Errorf("wakes at %s", w)
		}
	})
	t.Run("then it goes", func(t *testing.T) {
		h := going(t, time.Minute)
		h.removePods()
		h.engine().Replica.Status.InstanceStatuses = nil
		if _, d := h.decide(t); !d.RemoveFinalizer {
			t.Errorf("%+v", d)
		}
	})
	t.Run("at its deadline it goes without them, and says how many are left", func(t *testing.T) {
		_, d := going(t, 30*time.Minute).decide(t)
		e := has(d, v1beta1.EventTeardownDeadlineExceeded)
		if !d.RemoveFinalizer || e == nil || !e.Warning || e.Object != v1beta1.EngineComponent || e.Message[:1] != "2" {
			t.Errorf("finalizer %v, event %+v", d.RemoveFinalizer, e)
		}
	})
	t.Run("without a deadline it waits, and says so", func(t *testing.T) {
		h := going(t, 100*time.Hour)
		h.Settings.Lifecycle.TeardownDeadline = 0
		_, d := h.decide(t)
		e := has(d, v1beta1.EventTeardownBlocked)
		if d.RemoveFinalizer || e == nil || e.Warning || e.Object != v1beta1.EngineComponent {
			t.Errorf("finalizer %v, event %+v", d.RemoveFinalizer, e)
		}
	})
	t.Run("a batch bounds it too", func(t *testing.T) {
		h := going(t, time.Minute)
		h.Settings.Lifecycle.ScaleDownPodBatchSize = 1
		if _, d := h.decide(t); len(d.Pods) != 1 || d.Pods[0].Verb != PodUnserve {
			t.Errorf("%+v", d.Pods)
		}
	})
	t.Run("a pause does not stop it", func(t *testing.T) {
		h := going(t, time.Minute)
		h.Service.Annotations = map[string]string{v1beta1.RolloutPausedAnnotation: "freeze"}
		if _, d := h.decide(t); len(d.Pods) != 2 {
			t.Errorf("%+v", d.Pods)
		}
	})
	t.Run("a pod of somebody else does not hold it", func(t *testing.T) {
		h := going(t, time.Minute)
		h.removePods()
		h.engine().Replica.Status.InstanceStatuses = nil
		h.engine().Pods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}}
		if _, d := h.decide(t); !d.RemoveFinalizer {
			t.Errorf("%+v", d)
		}
	})
}

// Nothing is stored that the next reader could not read: rows that do not fit their bound
// authorize no call.
func TestUnreadableRowsStopEverything(t *testing.T) {
	h := newHouse(t, 1)
	h.row(0, h.old, v1beta1.InstanceReady, false)
	h.engine().Replica.Status.InstanceStatusEncoding = "ColumnarV3"
	d := decided(t, h.World)
	c := d.Components[0]
	if len(c.Pods) != 0 || c.ReplicaStatus != nil || c.UpdateReplica != nil || c.CodecError == "" {
		t.Errorf("%+v", c)
	}
}
