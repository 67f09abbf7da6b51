package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/rows"
)

// canaryHouse is a service of four engines, two on each revision, at the first of two
// steps that both wait for a person.
func canaryHouse(t *testing.T) *house {
	h := newHouse(t, 4)
	h.engine().Template.MinReplicas = 4
	for i := range int32(4) {
		at := h.old
		if i >= 2 {
			at = h.new
		}
		row := h.row(i, at, v1beta1.InstanceReady, true)
		row.PodCount, row.ServingPodCount, row.AvailablePodCount = 1, 1, 1
	}
	st := &h.engine().Replica.Status
	st.CurrentRevision, st.UpdateRevision = h.old.Name, h.new.Name
	manual := &v1beta1.RolloutPause{}
	h.Service.Spec.Rollout = &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{{Components: []v1beta1.ComponentType{v1beta1.EngineComponent},
		Canary: &v1beta1.GroupCanary{Steps: []v1beta1.RolloutGroupStep{
			{Capacity: intstr.FromString("50%"), Traffic: 40, Pause: manual}, {Capacity: intstr.FromString("100%"), Traffic: 100, Pause: manual}}}}}}
	old, target := h.hash(h.old.Name), h.hash(h.new.Name)
	run := &v1beta1.RolloutRun{RunID: "svc-1", Plan: plan.Resolve(h.Service.Spec.Rollout).Plan,
		TargetRevisions: []v1beta1.RunTarget{{Component: v1beta1.EngineComponent, Revision: target, StableRevision: old}}}
	h.Service.Status.Rollout = &v1beta1.RolloutStatus{ActiveRun: run}
	h.settle(t)
	return h
}

func (h *house) hash(name string) string { return name[len("svc-engine-"):] }

// settle stores the service's status until it stays.
func (h *house) settle(t *testing.T) Decision {
	t.Helper()
	for range 10 {
		d := decided(t, h.World)
		for key := range d.RemoveAnnotations {
			delete(h.Service.Annotations, key)
		}
		if d.Status == nil && len(d.RemoveAnnotations) == 0 {
			return d
		}
		if d.Status != nil {
			h.Service.Status = *d.Status.DeepCopy()
		}
	}
	t.Fatal("ten passes and the status still changes")
	return Decision{}
}

func (h *house) canary() *v1beta1.CanaryStatus { return h.Service.Status.Components["engine"].Canary }

func TestCanaryOnTheReplica(t *testing.T) {
	h := canaryHouse(t)
	d := decided(t, h.World)
	update := d.Components[0].UpdateReplica
	if update == nil || update.Spec.Pacing == nil || update.Spec.Pacing.Partition == nil || *update.Spec.Pacing.Partition != 2 {
		t.Fatalf("pacing %+v, want a partition of 2", update)
	}
	for _, a := range d.Components[0].Pods {
		if a.Verb == instance.PodCreate {
			t.Errorf("a pod is created beyond the step: %s", a.Pod.Name)
		}
	}
	engine := h.Service.Status.Components["engine"]
	if engine.RolloutPhase != v1beta1.RolloutPaused || h.canary().ObservedTrafficWeight != 40 {
		t.Errorf("phase %s, %+v", engine.RolloutPhase, h.canary())
	}
	want := []v1beta1.TrafficTarget{
		{RevisionName: "svc-engine-rev-" + h.hash(h.new.Name), Percent: 40, Tag: "canary", LatestRevision: new(true)},
		{RevisionName: "svc-engine-rev-" + h.hash(h.old.Name), Percent: 60, Tag: "stable", LatestRevision: new(false)},
	}
	if diff := cmp.Diff(want, engine.Traffic); diff != "" {
		t.Errorf("traffic (-want +got):\n%s", diff)
	}
	if h.Service.Status.Canary == nil || !cmp.Equal(h.Service.Status.Canary, h.canary()) {
		t.Errorf("status.canary is not the same record: %+v", h.Service.Status.Canary)
	}
}

func TestCanaryGoesBackOnTheReplica(t *testing.T) {
	h := canaryHouse(t)
	h.Service.Annotations = map[string]string{v1beta1.RolloutRollbackAnnotation: "true"}
	h.settle(t)
	d := decided(t, h.World)
	update := d.Components[0].UpdateReplica
	if update == nil || update.Spec.Pacing == nil || update.Spec.Pacing.RollbackToRevision != h.old.Name || update.Spec.Pacing.Partition != nil {
		t.Fatalf("%+v, want a return to %s without a partition", update, h.old.Name)
	}
	st := d.Components[0].ReplicaStatus
	if st == nil || st.UpdateRevision != h.new.Name || st.CurrentRevision != h.old.Name {
		t.Fatalf("%+v: the spec still asks for %s", st, h.new.Name)
	}
	if st.UpdatedReplicas != 2 {
		t.Errorf("%d updated, want the 2 that run what the spec asks for", st.UpdatedReplicas)
	}
	engine := h.Service.Status.Components["engine"]
	want := []v1beta1.TrafficTarget{{RevisionName: "svc-engine-rev-" + h.hash(h.old.Name), Percent: 100, Tag: "stable", LatestRevision: new(false)}}
	if diff := cmp.Diff(want, engine.Traffic); diff != "" {
		t.Errorf("traffic (-want +got):\n%s", diff)
	}
	if engine.RolloutPhase != v1beta1.RolloutRollingBack {
		t.Errorf("phase %s", engine.RolloutPhase)
	}
	created := 0
	for _, a := range d.Components[0].Pods {
		if a.Verb == instance.PodCreate && a.Pod.Labels[v1beta1.RevisionHashLabel] == h.hash(h.old.Name) {
			created++
		}
	}
	next, err := rows.Decode(st, 100)
	if err != nil {
		t.Fatal(err)
	}
	if opened := next[3].Operation; opened == nil || opened.TargetRevision != h.old.Name || created == 0 {
		t.Errorf("Instance 3 does not go back: %+v, %d pods at the stable revision", opened, created)
	}
}

// The revisions that a rollback needs outlive any history limit, also after the run is closed.
func TestCanaryKeepsItsStableRevision(t *testing.T) {
	h := canaryHouse(t)
	h.Service.Status.Rollout = nil
	h.Service.Status.Components["engine"] = v1beta1.ComponentStatus{RolloutPhase: v1beta1.RolloutRolledBack, Canary: &v1beta1.CanaryStatus{
		CanaryRevisionHash: h.hash(h.new.Name), StableRevisionHash: h.hash(h.old.Name), RolledBackRevisionHash: h.hash(h.new.Name),
		Members: []v1beta1.CanaryMember{{Component: v1beta1.EngineComponent, Stable: h.hash(h.old.Name), Rejected: h.hash(h.new.Name)}}}}
	h.Settings.Lifecycle.RevisionHistoryLimit = 1
	for _, cr := range decided(t, h.World).Components[0].DeleteRevisions {
		t.Errorf("%s is deleted", cr.Name)
	}
}

// Somebody deleted the stable revision of a rejected canary: nothing moves, and the hold says why.
func TestCanaryWithoutItsStableRevision(t *testing.T) {
	h := canaryHouse(t)
	h.Service.Annotations = map[string]string{v1beta1.RolloutRollbackAnnotation: "true"}
	h.settle(t)
	h.engine().Revisions = h.engine().Revisions[1:]
	d := decided(t, h.World)
	st := d.Components[0].ReplicaStatus
	if st == nil || st.RolloutHold == nil || st.RolloutHold.Gate != v1beta1.GatePlan {
		t.Fatalf("%+v", st)
	}
	for _, a := range d.Components[0].Pods {
		t.Errorf("%s %s", a.Verb, a.Pod.Name)
	}
}
