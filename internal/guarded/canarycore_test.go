package guarded

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/sim"
)

// canaryCluster is a simulated service of engine and decoder with a canary group.
type canaryCluster struct {
	*testing.T
	*sim.Cluster
}

func newCanaryCluster(t *testing.T) *canaryCluster {
	manual := &v1beta1.RolloutPause{}
	group := v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent},
		Canary: &v1beta1.GroupCanary{Steps: []v1beta1.RolloutGroupStep{
			{Capacity: intstr.FromString("25%"), Traffic: 10, Pause: manual},
			{Capacity: intstr.FromString("50%"), Traffic: 50, Pause: &v1beta1.RolloutPause{Duration: &metav1.Duration{Duration: time.Minute}}},
			{Capacity: intstr.FromString("100%"), Traffic: 100, Pause: manual},
		}}}
	piece := func(image string, n int32) sim.Piece {
		return sim.Piece{Image: image, Replicas: n, MaxSurge: intstr.FromString("25%")}
	}
	c := &canaryCluster{T: t, Cluster: sim.New(map[v1beta1.ComponentType]sim.Piece{v1beta1.EngineComponent: piece("e1", 4), v1beta1.DecoderComponent: piece("d1", 2)},
		&v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{group}})}
	if err := c.Settle(5000); err != nil {
		t.Fatal(err)
	}
	c.SetImage(v1beta1.EngineComponent, "e2")
	c.SetImage(v1beta1.DecoderComponent, "d2")
	return c
}

// until goes on until the canary of the engine is in a phase at a step.
func (c *canaryCluster) until(phase v1beta1.RolloutPhase, step int32) {
	c.Helper()
	for range 400 {
		st := c.World().Service.Status.Components[v1beta1.EngineComponent]
		if st.RolloutPhase == phase && st.Canary != nil && st.Canary.CurrentStep == step {
			return
		}
		if err := c.Round(); err != nil {
			c.Fatal(err)
		}
		c.SyncAll()
	}
	st := c.World().Service.Status.Components[v1beta1.EngineComponent]
	c.Fatalf("never %s at step %d: %s %+v", phase, step, st.RolloutPhase, st.Canary)
}

// evidence is what the command reads of the cluster as it is.
func (c *canaryCluster) evidence(annotations map[string]string) *Evidence {
	w := c.World()
	s := w.Service.DeepCopy()
	s.Annotations = maps.Clone(annotations)
	ev := &Evidence{Name: s.Name, Namespace: s.Namespace, Context: "c", Now: c.Now, ServerNow: c.Now, Service: s,
		Native: []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent}}
	for _, component := range w.Components {
		ev.Replicas = append(ev.Replicas, Replica{Object: component.Replica})
	}
	return ev
}

func firstRefusal(a *Action, ev *Evidence) *Error {
	for _, refuse := range a.Refusals {
		if e := refuse(ev); e != nil {
			return e
		}
	}
	return nil
}

func (c *canaryCluster) settle() {
	c.Helper()
	if err := c.Settle(5000); err != nil {
		c.Fatal(err)
	}
}

// expect holds each action against the cluster: an empty message means that it goes ahead.
func (c *canaryCluster) expect(promote, rollback, retry string) {
	c.Helper()
	for _, a := range []struct {
		action *Action
		want   string
	}{{Promote(Promotion{Group: AnyGroup}), promote}, {Rollback(AnyGroup), rollback}, {Retry(AnyGroup), retry}} {
		got := ""
		var details []string
		if e := firstRefusal(a.action, c.evidence(nil)); e != nil {
			got, details = e.Message, e.Details
		} else if rows, _ := a.action.Preview(c.evidence(nil)); len(rows) < 10 {
			c.Errorf("%s previews %v", a.action.Name, rows)
		}
		if got != a.want {
			c.Errorf("%s: %q %q, want %q", a.action.Name, got, details, a.want)
		}
	}
}

// ask puts the request of an action on the service. Nothing is promoted beside it.
func (c *canaryCluster) ask(a *Action) {
	c.Helper()
	request := a.Change(c.evidence(nil)).Annotations[0]
	c.Annotate(request.Key, *request.Value)
	if e := firstRefusal(Promote(Promotion{Group: AnyGroup}), c.evidence(c.World().Service.Annotations)); e == nil {
		c.Errorf("a promote goes ahead beside %s=%s", request.Key, *request.Value)
	}
}

// TestCanaryActionsReadWhatTheControllerWrites: at every stand of a simulated canary each
// action goes ahead exactly when it should, and its request does what its preview says.
func TestCanaryActionsReadWhatTheControllerWrites(t *testing.T) {
	c := newCanaryCluster(t)
	c.expect(MsgStale, MsgStale, MsgStale) // the spec is newer than the status
	c.until(v1beta1.RolloutPending, 0)
	c.expect(MsgPromoteGate, "", MsgRetryNothing)
	c.until(v1beta1.RolloutPaused, 0)
	c.expect("", "", MsgRetryNothing)
	c.ask(Promote(Promotion{Group: AnyGroup}))
	c.until(v1beta1.RolloutPaused, 1)
	if a := c.World().Service.Annotations; len(a) > 0 {
		t.Errorf("the request stays: %v", a)
	}
	c.expect(MsgPromoteGate, "", MsgRetryNothing) // a timed gate, which opens by itself
	c.Advance(2 * time.Minute)
	c.until(v1beta1.RolloutPromoting, 2)
	c.expect("", "", MsgRetryNothing)
	c.ask(Promote(Promotion{Group: AnyGroup}))
	c.until(v1beta1.RolloutStable, 3)
	c.settle()
	c.expect(MsgNothingActive, MsgNothingActive, MsgRetryNothing)
}

// TestRollbackAndRetryAreTaken: the controller takes a rollback at once, and nothing goes
// ahead beside it; a retry starts what was rejected again.
func TestRollbackAndRetryAreTaken(t *testing.T) {
	c := newCanaryCluster(t)
	c.until(v1beta1.RolloutPaused, 0)
	pass := func(s *v1beta1.InferenceService) (*v1beta1.InferenceService, map[string]string) {
		w := c.World()
		w.Service, w.Now = s, w.Now.Add(time.Minute)
		d := core.Decide(w)
		s = s.DeepCopy()
		if d.Status != nil {
			s.Status = *d.Status.DeepCopy()
		}
		return s, d.RemoveAnnotations
	}
	with := func(s *v1beta1.InferenceService, a Annotation) *v1beta1.InferenceService {
		s = s.DeepCopy()
		s.Annotations = map[string]string{a.Key: *a.Value}
		return s
	}
	evidence := func(s *v1beta1.InferenceService) *Evidence {
		ev := c.evidence(nil)
		ev.Service = s
		return ev
	}
	request := Rollback(AnyGroup).Change(c.evidence(nil)).Annotations[0]
	rolling, removed := pass(with(c.World().Service, request))
	if got := rolling.Status.Components[v1beta1.EngineComponent].RolloutPhase; got != v1beta1.RolloutRollingBack || len(removed) > 0 {
		t.Fatalf("phase %s, removed %v", got, removed)
	}
	rolling.Annotations = nil
	for _, a := range []struct {
		action *Action
		want   string
	}{{Promote(Promotion{Group: AnyGroup}), MsgNothingActive}, {Rollback(AnyGroup), MsgNothingActive}, {Retry(AnyGroup), MsgRetryNothing}} {
		if e := firstRefusal(a.action, evidence(rolling)); e == nil || e.Message != a.want {
			t.Errorf("%s while it rolls back: %v", a.action.Name, e)
		}
	}
	// The Instances are back, as the controller would find after a while.
	back := rolling.DeepCopy()
	engine := back.Status.Components[v1beta1.EngineComponent]
	engine.RolloutPhase = v1beta1.RolloutRolledBack
	back.Status.Components[v1beta1.EngineComponent] = engine
	back.Status.Rollout.LastRun, back.Status.Rollout.ActiveRun = &v1beta1.RolloutRunRecord{Outcome: v1beta1.RunRolledBack}, nil
	if e := firstRefusal(Retry(AnyGroup), evidence(back)); e != nil {
		t.Fatalf("retry: %s %v", e.Message, e.Details)
	}
	retry := Retry(AnyGroup).Change(evidence(back)).Annotations[0]
	again := with(back, retry)
	for range 3 {
		if again, removed = pass(again); removed[retry.Key] == *retry.Value {
			again.Annotations = nil
		}
	}
	after := again.Status.Components[v1beta1.EngineComponent].Canary
	if after == nil || after.RolledBackRevisionHash != "" || after.CanaryRevisionHash != *retry.Value || len(again.Annotations) > 0 {
		t.Errorf("after the retry %q: %+v, annotations %v", *retry.Value, after, again.Annotations)
	}
}
