package guarded

import (
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/sim"
)

// TestRepinReadsWhatTheControllerWrites: in the middle of a simulated roll the group is
// edited. The status that the controller writes for that is evidence enough, and its
// next pass takes the plan that the action asked for.
func TestRepinReadsWhatTheControllerWrites(t *testing.T) {
	group := func(surge int32) *v1beta1.RolloutSpec {
		return &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{{Components: []v1beta1.ComponentType{v1beta1.EngineComponent},
			RollingUpdate: &v1beta1.GroupRollingUpdate{MaxSurge: new(intstr.FromInt32(surge))}}}}
	}
	c := sim.New(map[v1beta1.ComponentType]sim.Piece{v1beta1.EngineComponent: {Image: "v1", Replicas: 4, MaxSurge: intstr.FromString("25%")}}, group(1))
	if err := c.Settle(5000); err != nil {
		t.Fatal(err)
	}
	c.SetImage(v1beta1.EngineComponent, "v2")
	open := func() bool {
		ro := c.World().Service.Status.Rollout
		return ro != nil && ro.ActiveRun != nil
	}
	for i := 0; !open(); i++ {
		if i == 20 {
			t.Fatal("no run opened")
		}
		if err := c.Round(); err != nil {
			t.Fatal(err)
		}
		c.SyncAll()
	}

	// pass has the controller look at a service and returns the service with its answer.
	pass := func(s *v1beta1.InferenceService) (*v1beta1.InferenceService, core.Decision) {
		w := c.World()
		w.Service, w.Now = s, w.Now.Add(time.Minute)
		d := core.Decide(w)
		s = s.DeepCopy()
		if d.Status != nil {
			s.Status = *d.Status.DeepCopy()
		}
		return s, d
	}
	evidence := func(s *v1beta1.InferenceService) *Evidence {
		now := c.Now.Add(time.Hour)
		return &Evidence{Name: s.Name, Namespace: s.Namespace, Context: "c", Now: now, ServerNow: now, Service: s}
	}
	refusal := func(ev *Evidence) *Error {
		for _, refuse := range Repin().Refusals {
			if e := refuse(ev); e != nil {
				return e
			}
		}
		return nil
	}
	same, _ := pass(c.World().Service)
	if e := refusal(evidence(same)); e == nil || e.Message != MsgRepinPinned {
		t.Fatalf("before the edit: %v", e)
	}
	edited := same.DeepCopy()
	edited.Spec.Rollout, edited.Generation = group(2), edited.Generation+1
	if e := refusal(evidence(edited)); e == nil || e.Message != MsgRepinEvidence {
		t.Fatalf("before the controller has seen the edit: %v", e)
	}
	drifted, _ := pass(edited)
	if e := refusal(evidence(drifted)); e != nil {
		t.Fatalf("after the edit: %s %v", e.Message, e.Details)
	}
	asked := drifted.DeepCopy()
	asked.Annotations = maps.Clone(asked.Annotations)
	if asked.Annotations == nil {
		asked.Annotations = map[string]string{}
	}
	request := Repin().Change(evidence(drifted)).Annotations[0]
	asked.Annotations[request.Key] = *request.Value
	if e := refusal(evidence(asked)); e == nil || e.Message != MsgRepinMailbox {
		t.Fatalf("while the request waits: %v", e)
	}
	after, d := pass(asked)
	if got := plan.PinnedDigest(after.Status.Rollout.ActiveRun.Plan); got != *request.Value {
		t.Errorf("the run has pinned %s, and %s was asked for", got, *request.Value)
	}
	if d.RemoveAnnotations[request.Key] != *request.Value {
		t.Errorf("the request stays: %v", d.RemoveAnnotations)
	}
	delete(after.Annotations, request.Key)
	if e := refusal(evidence(after)); e == nil || e.Message != MsgRepinPinned {
		t.Fatalf("after the repin: %v", e)
	}
}
