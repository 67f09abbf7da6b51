package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
)

// house is a world with an engine at image v2 whose Instances a case lays out. Old is the
// revision of image v1, new the target.
type house struct {
	World
	old, new *appsv1.ControllerRevision
	// partition is what a canary keeps back; nil for none.
	partition *int32
}

func newHouse(t *testing.T, replicas int32) *house {
	t.Helper()
	mint := func(image string) *appsv1.ControllerRevision {
		w := scaledWorld(replicas, nil)
		w.engine().Template.Runners[0].Template.Spec.Containers[0].Image = image
		w.engine().Template.Seal()
		d := Decide(w)
		if len(d.Components[0].CreateRevisions) != 1 {
			t.Fatalf("revisions: %v", d.Components[0].CreateRevisions)
		}
		return d.Components[0].CreateRevisions[0]
	}
	h := &house{World: scaledWorld(replicas, nil), old: mint("engine:v1"), new: mint("engine:v2")}
	h.old.CreationTimestamp, h.new.CreationTimestamp = metav1.NewTime(scalerNow.Add(-2*time.Hour)), metav1.NewTime(scalerNow.Add(-time.Hour))
	e := h.engine()
	e.Template.Runners[0].Template.Spec.Containers[0].Image = "engine:v2"
	e.Template.MinReplicas, e.Template.MaxReplicas = 1, 10
	e.Template.Seal()
	e.Revisions = []*appsv1.ControllerRevision{h.old, h.new}
	e.Routed = map[types.UID]bool{}
	e.Replica.Finalizers = []string{v1beta1.InferenceReplicaFinalizer}
	return h
}

func (h *house) rolling() *v1beta1.InstanceRollingUpdate {
	l := &h.engine().Template.Lifecycle
	if l.UpdateStrategy == nil {
		l.UpdateStrategy = &v1beta1.UpdateStrategy{RollingUpdate: &v1beta1.InstanceRollingUpdate{}}
	}
	return l.UpdateStrategy.RollingUpdate
}

// row lays an Instance out at a revision, with a pod that serves or does not.
func (h *house) row(index int32, at *appsv1.ControllerRevision, phase v1beta1.InstancePhase, serves bool) *v1beta1.InstanceStatus {
	st := &h.engine().Replica.Status
	st.InstanceStatuses = append(st.InstanceStatuses, v1beta1.InstanceStatus{Index: index, Incarnation: 1, Phase: phase, RunningRevision: at.Name})
	h.pod(index, at, serves)
	return &st.InstanceStatuses[len(st.InstanceStatuses)-1]
}

func (h *house) pod(index int32, at *appsv1.ControllerRevision, serves bool) {
	e := h.engine()
	status := corev1.ConditionFalse
	if serves {
		status = corev1.ConditionTrue
	}
	since := metav1.NewTime(scalerNow.Add(-time.Hour))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: instance.PodName("svc", "engine", index, 0), UID: types.UID(fmt.Sprintf("pod-%d", index)),
			OwnerReferences: []metav1.OwnerReference{*ownerReference(e.Replica, "InferenceReplica")},
			Labels: map[string]string{
				v1beta1.InstanceIndexLabel: fmt.Sprint(index), v1beta1.InstanceIncarnationLabel: "1", v1beta1.PodOrdinalLabel: "0",
				v1beta1.RevisionHashLabel: at.Name[strings.LastIndexByte(at.Name, '-')+1:],
			},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: status, LastTransitionTime: since},
			{Type: v1beta1.ServingReadinessGate, Status: corev1.ConditionTrue, LastTransitionTime: since},
			{Type: corev1.PodReady, Status: status, LastTransitionTime: since},
		}},
	}
	e.Pods = append(e.Pods, pod)
	e.Routed[pod.UID] = serves
}

func (h *house) removePods() { h.engine().Pods = nil }

// decide returns the replica's next status, or the stored one when it stays.
func (h *house) decide(t *testing.T) (*v1beta1.InferenceReplicaStatus, ComponentDecision) {
	t.Helper()
	d := decided(t, h.World)
	if st := d.Components[0].ReplicaStatus; st != nil {
		return st, d.Components[0]
	}
	return &h.engine().Replica.Status, d.Components[0]
}

// Each reason of Ready, and which goes before which.
func TestReadyReasons(t *testing.T) {
	failure := &v1beta1.InstanceTermination{PodName: "svc-engine-0-default-0", Reason: "ImagePullBackOff"}
	// failed lays out an Instance that stays Failed: its target is held.
	failed := func(h *house) {
		h.row(0, h.old, v1beta1.InstanceFailed, true).LastFailure = failure
		h.engine().Replica.Status.RetryBlocks = []v1beta1.RetryBlock{{TargetRevision: h.new.Name, State: v1beta1.RetryHeld, AttemptsStarted: 3, CountedFailures: 3}}
	}
	cases := []struct {
		name    string
		count   int32
		set     func(*house)
		status  metav1.ConditionStatus
		reason  string
		message []string
	}{
		{"nothing can be rendered", 2, func(h *house) {
			h.row(0, h.new, v1beta1.InstanceReady, true)
			h.row(1, h.new, v1beta1.InstanceReady, true)
			h.engine().Template, h.engine().TemplateError = nil, &TemplateError{Reason: v1beta1.ReasonRuntimeNotFound, Message: "runtime r does not exist"}
		}, metav1.ConditionFalse, v1beta1.ReasonRuntimeNotFound, []string{"runtime r does not exist"}},
		{"nothing can be rendered goes before a failure", 1, func(h *house) {
			failed(h)
			h.engine().Template, h.engine().TemplateError = nil, &TemplateError{Reason: v1beta1.ReasonRuntimeNotFound, Message: "m"}
			h.engine().Replica.Status.UpdateRevision = h.new.Name
		}, metav1.ConditionFalse, v1beta1.ReasonRuntimeNotFound, nil},
		{"an Instance failed", 1, failed, metav1.ConditionFalse, v1beta1.ReasonInstanceFailed, []string{"Failed", "Instance 0", "ImagePullBackOff", "svc-engine-0-default-0"}},
		{"a failure goes before a partition", 2, func(h *house) {
			failed(h)
			h.row(1, h.old, v1beta1.InstanceReady, true)
			h.rolling().Partition = new(int32(1))
			h.engine().Replica.Status.InstanceStatuses[0], h.engine().Replica.Status.InstanceStatuses[1] = h.engine().Replica.Status.InstanceStatuses[1], h.engine().Replica.Status.InstanceStatuses[0]
			h.engine().Replica.Status.InstanceStatuses[0].Index, h.engine().Replica.Status.InstanceStatuses[1].Index = 0, 1
		}, metav1.ConditionFalse, v1beta1.ReasonInstanceFailed, nil},
		{"held at a partition", 3, func(h *house) {
			h.row(0, h.old, v1beta1.InstanceReady, true)
			h.row(1, h.old, v1beta1.InstanceReady, true)
			h.row(2, h.new, v1beta1.InstanceReady, true)
			h.rolling().Partition = new(int32(2))
		}, metav1.ConditionTrue, v1beta1.ReasonStaged, []string{"partition 2", "1/3", "2 held on the prior revision"}},
		{"a partition whose Instances have yet to move", 2, func(h *house) {
			h.row(0, h.old, v1beta1.InstanceReady, true)
			h.row(1, h.old, v1beta1.InstanceReady, true)
			h.rolling().Partition = new(int32(1))
		}, metav1.ConditionUnknown, v1beta1.ReasonRolloutInProgress, []string{"0/2"}},
		{"a rollout", 2, func(h *house) {
			h.row(0, h.old, v1beta1.InstanceReady, true)
			h.row(1, h.new, v1beta1.InstanceReady, true)
		}, metav1.ConditionUnknown, v1beta1.ReasonRolloutInProgress, []string{"1/2 Instances on target"}},
		{"a rollout goes before what is missing", 3, func(h *house) {
			h.row(0, h.old, v1beta1.InstanceReady, true)
			h.row(1, h.new, v1beta1.InstanceReady, false)
			h.row(2, h.new, v1beta1.InstanceReady, false)
		}, metav1.ConditionUnknown, v1beta1.ReasonRolloutInProgress, nil},
		{"no Instance is desired", 1, func(h *house) {
			h.row(0, h.new, v1beta1.InstanceReady, true)
			h.engine().Replica.DeletionTimestamp = &metav1.Time{Time: scalerNow}
		}, metav1.ConditionFalse, v1beta1.ReasonNoReplicas, nil},
		{"all are ready", 2, func(h *house) {
			h.row(0, h.new, v1beta1.InstanceReady, true)
			h.row(1, h.new, v1beta1.InstanceReady, true)
		}, metav1.ConditionTrue, v1beta1.ReasonAllInstancesReady, []string{"2/2"}},
		{"enough serve", 3, func(h *house) {
			h.row(0, h.new, v1beta1.InstanceReady, true)
			h.row(1, h.new, v1beta1.InstanceReady, true)
			h.row(2, h.new, v1beta1.InstanceReady, false)
			h.rolling().MaxUnavailable = new(intstr.FromInt32(1))
		}, metav1.ConditionTrue, v1beta1.ReasonMinimumAvailable, []string{"2/3", "minimum 2"}},
		{"too few serve", 3, func(h *house) {
			h.row(0, h.new, v1beta1.InstanceReady, true)
			h.row(1, h.new, v1beta1.InstanceReady, false)
			h.row(2, h.new, v1beta1.InstanceReady, false)
			h.rolling().MaxUnavailable = new(intstr.FromInt32(1))
		}, metav1.ConditionFalse, v1beta1.ReasonReplicaCountMismatch, []string{"1/3", "need 2"}},
		{"without a budget all must serve", 2, func(h *house) {
			h.row(0, h.new, v1beta1.InstanceReady, true)
			h.row(1, h.new, v1beta1.InstanceReady, false)
		}, metav1.ConditionFalse, v1beta1.ReasonReplicaCountMismatch, []string{"1/2", "need 2"}},
		{"a percentage counts upward", 3, func(h *house) {
			h.row(0, h.new, v1beta1.InstanceReady, true)
			h.row(1, h.new, v1beta1.InstanceReady, true)
			h.row(2, h.new, v1beta1.InstanceReady, false)
			h.rolling().MaxUnavailable = new(intstr.FromString("25%"))
		}, metav1.ConditionTrue, v1beta1.ReasonMinimumAvailable, []string{"minimum 2"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t, tc.count)
			tc.set(h)
			st, _ := h.decide(t)
			got := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionReady)
			if got == nil || got.Status != tc.status || got.Reason != tc.reason || got.ObservedGeneration != 1 {
				t.Fatalf("Ready is %+v, want %s %s", got, tc.status, tc.reason)
			}
			for _, word := range tc.message {
				if !strings.Contains(got.Message, word) {
					t.Errorf("it says %q, without %q", got.Message, word)
				}
			}
		})
	}
}

func TestDiagnosticConditions(t *testing.T) {
	find := func(t *testing.T, h *house, kind string) *metav1.Condition {
		st, _ := h.decide(t)
		return meta.FindStatusCondition(st.Conditions, kind)
	}
	calm := func(t *testing.T) *house {
		h := newHouse(t, 1)
		h.row(0, h.new, v1beta1.InstanceReady, true)
		return h
	}
	told := func(h *house, kinds ...string) {
		for _, kind := range kinds {
			h.engine().Replica.Status.Conditions = append(h.engine().Replica.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "Before", LastTransitionTime: metav1.NewTime(scalerNow.Add(-time.Hour))})
		}
	}
	all := []string{v1beta1.ConditionRolloutStalled, v1beta1.ConditionDrainOverdue, v1beta1.ConditionInstanceReadyTimeoutUnconfigured}
	t.Run("none before the first trouble", func(t *testing.T) {
		for _, kind := range all {
			if c := find(t, calm(t), kind); c != nil {
				t.Errorf("%+v", c)
			}
		}
	})
	t.Run("each ends with its trouble", func(t *testing.T) {
		h := calm(t)
		told(h, all...)
		want := map[string]string{all[0]: v1beta1.ReasonProgressing, all[1]: v1beta1.ReasonDrainsWithinDeadline, all[2]: v1beta1.ReasonInstanceReadyTimeoutConfigured}
		for kind, reason := range want {
			if c := find(t, h, kind); c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason || !c.LastTransitionTime.Time.Equal(scalerNow) {
				t.Errorf("%+v", c)
			}
		}
		if c := find(t, h, all[2]); !strings.Contains(c.Message, "30m0s") {
			t.Errorf("it says %q, without the timeout in force", c.Message)
		}
	})
	t.Run("a condition of another kind stays", func(t *testing.T) {
		h := calm(t)
		told(h, "example.com/Checked")
		h.engine().Replica.Status.RolloutHold = &v1beta1.RolloutHold{Gate: v1beta1.GateBudget} // so that a status is written
		if c := find(t, h, "example.com/Checked"); c == nil || c.Reason != "Before" {
			t.Errorf("%+v", c)
		}
	})
	t.Run("RolloutStalled while an Instance that is not on the target failed", func(t *testing.T) {
		h := newHouse(t, 2)
		h.row(0, h.old, v1beta1.InstanceReady, true)
		h.row(1, h.old, v1beta1.InstanceFailed, true).LastFailure = &v1beta1.InstanceTermination{Reason: "ErrImagePull", PodName: "p"}
		h.engine().Replica.Status.RetryBlocks = []v1beta1.RetryBlock{{TargetRevision: h.new.Name, State: v1beta1.RetryHeld, AttemptsStarted: 1, CountedFailures: 1}}
		c := find(t, h, v1beta1.ConditionRolloutStalled)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1beta1.ReasonInstancesFailing || !strings.Contains(c.Message, "ErrImagePull") {
			t.Errorf("%+v", c)
		}
	})
	t.Run("DrainOverdue while a removal is past its deadline", func(t *testing.T) {
		h := calm(t)
		r := h.row(1, h.new, v1beta1.InstanceDeleting, true)
		past := metav1.NewTime(scalerNow.Add(-time.Second))
		r.Operation = &v1beta1.InstanceOperation{ID: "op", Type: v1beta1.OperationDelete, Step: v1beta1.StepDrain, Deadline: &past}
		c := find(t, h, v1beta1.ConditionDrainOverdue)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1beta1.ReasonDrainsOverdue || !strings.Contains(c.Message, "1 removal") {
			t.Errorf("%+v", c)
		}
		if ready := find(t, h, v1beta1.ConditionReady); ready.Status != metav1.ConditionTrue {
			t.Errorf("it changed Ready: %+v", ready)
		}
	})
	t.Run("InstanceReadyTimeoutUnconfigured while nobody set one, and it names where to", func(t *testing.T) {
		h := calm(t)
		h.Settings.Lifecycle.InstanceReadyTimeout = 0
		c := find(t, h, v1beta1.ConditionInstanceReadyTimeoutUnconfigured)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1beta1.ReasonInstanceReadyTimeoutUnconfigured || !strings.Contains(c.Message, "lifecycle.instanceReadyTimeout") {
			t.Errorf("%+v", c)
		}
		h.engine().Template.Lifecycle.InstanceReadyTimeout = &metav1.Duration{Duration: time.Minute}
		if c := find(t, h, v1beta1.ConditionInstanceReadyTimeoutUnconfigured); c != nil && c.Status == metav1.ConditionTrue {
			t.Errorf("%+v", c)
		}
	})
}

// The hold of a replica: who set it is overwritten, since when it stands is not.
func TestRolloutHold(t *testing.T) {
	stuck := func(t *testing.T) *house {
		h := newHouse(t, 1)
		h.row(0, h.old, v1beta1.InstanceReady, true)
		h.rolling().MaxSurge = new(intstr.FromInt32(0))
		return h
	}
	before := metav1.NewTime(scalerNow.Add(-time.Hour))
	cases := []struct {
		name string
		was  *v1beta1.RolloutHold
		want time.Time
	}{
		{"the first denial", nil, scalerNow},
		{"the same gate and target, though the text changed", &v1beta1.RolloutHold{Gate: v1beta1.GateBudget, Reason: "another text", Since: before}, before.Time},
		{"another gate", &v1beta1.RolloutHold{Gate: v1beta1.GateHeld, Since: before}, scalerNow},
		{"another target", &v1beta1.RolloutHold{Gate: v1beta1.GateBudget, Target: "else", Since: before}, scalerNow},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := stuck(t)
			if tc.was != nil && tc.was.Target == "" {
				tc.was.Target = h.new.Name
			}
			h.engine().Replica.Status.RolloutHold = tc.was
			st, _ := h.decide(t)
			got := st.RolloutHold
			if got == nil || got.Gate != v1beta1.GateBudget || got.Target != h.new.Name || !got.Since.Time.Equal(tc.want) || !strings.Contains(got.Reason, "surge budget 0 exhausted") {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("it goes when nothing rolls", func(t *testing.T) {
		h := newHouse(t, 1)
		h.row(0, h.new, v1beta1.InstanceReady, true)
		h.engine().Replica.Status.RolloutHold = &v1beta1.RolloutHold{Gate: v1beta1.GateBudget, Target: h.new.Name, Since: before}
		if st, _ := h.decide(t); st.RolloutHold != nil || st.CurrentRevision != h.new.Name {
			t.Errorf("%+v", st)
		}
	})
	t.Run("it is the service's too, word for word", func(t *testing.T) {
		h := stuck(t)
		d := decided(t, h.World)
		got := d.Status.Components[v1beta1.EngineComponent].Lifecycle.RolloutHold
		if diff := cmp.Diff(d.Components[0].ReplicaStatus.RolloutHold, got); diff != "" {
			t.Error(diff)
		}
	})
}

// currentRevision follows when every Instance runs the target and none is kept back.
func TestCurrentRevision(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*house)
		want func(*house) string
	}{
		{"all on the target", func(h *house) {
			h.row(0, h.new, v1beta1.InstanceReady, true)
			h.row(1, h.new, v1beta1.InstanceReady, true)
		}, func(h *house) string { return h.new.Name }},
		{"one kept by the partition", func(h *house) {
			h.row(0, h.old, v1beta1.InstanceReady, true)
			h.row(1, h.new, v1beta1.InstanceReady, true)
			h.rolling().Partition = new(int32(1))
		}, func(h *house) string { return h.old.Name }},
		{"one yet to be made", func(h *house) { h.row(0, h.new, v1beta1.InstanceReady, true) }, func(h *house) string { return h.old.Name }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t, 2)
			h.engine().Replica.Status.CurrentRevision = h.old.Name
			tc.set(h)
			st, _ := h.decide(t)
			if st.CurrentRevision != tc.want(h) || st.UpdateRevision != h.new.Name {
				t.Errorf("current %s, update %s", st.CurrentRevision, st.UpdateRevision)
			}
		})
	}
}
