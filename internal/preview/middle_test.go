package preview_test

import (
	"testing"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/preview"
	"ome.io/ome/internal/sim"
)

// TestFromTheMiddleOfARoll: a preview starts where the service stands, half way through a
// run whose plan is pinned.
func TestFromTheMiddleOfARoll(t *testing.T) {
	old := serviceOf(t, pd42)
	rolling := old.DeepCopy()
	next(rolling)
	c := sim.NewPreview(old, specOf(t, old).Templates, config.Default(), now)
	rounds := func(n int) {
		for range n {
			if err := c.Round(); err != nil {
				t.Fatal(err)
			}
		}
	}
	rounds(40)
	c.Apply(rolling, specOf(t, rolling).Templates)
	rounds(8)
	live := &preview.Live{Revisions: c.Revisions(), Pods: c.Pods()}
	for _, kind := range v1beta1.Components() {
		live.Replicas = append(live.Replicas, c.Replica(kind))
	}
	stored := c.Service()
	run := stored.Status.Rollout.ActiveRun
	if run == nil {
		t.Fatal("no run is open")
	}
	play := func(change func(*v1beta1.InferenceService)) preview.Result {
		to := stored.DeepCopy()
		change(to)
		return preview.Preview(preview.Input{Now: c.Now, Settings: config.Default(), Timing: usual,
			Old: preview.Spec{Service: stored}, Live: live, New: specOf(t, to)})
	}

	same := play(func(*v1beta1.InferenceService) {})
	if same.Outcome != preview.Completes || !same.Pinned || same.Run.RunID != run.RunID || same.Drift != "" {
		t.Errorf("the same spec: %s, pinned %v, run %+v, drift %q", same.Outcome, same.Pinned, same.Run, same.Drift)
	}
	if s := same.Moves[0].States[0]; s.New == 0 || s.Old == 0 {
		t.Errorf("it starts with %+v, not from the middle", s)
	}
	edited := play(func(s *v1beta1.InferenceService) {
		s.Spec.Rollout.Groups[0].RollingUpdate = &v1beta1.GroupRollingUpdate{}
	})
	if edited.Outcome != preview.Completes || !edited.Pinned || edited.Drift == "" {
		t.Errorf("an edit of the plan: %s, pinned %v, drift %q", edited.Outcome, edited.Pinned, edited.Drift)
	}
	another := play(func(s *v1beta1.InferenceService) { images(s, "v3", v1beta1.EngineComponent) })
	if another.Outcome != preview.Completes || another.Pinned || !another.Superseded {
		t.Errorf("another image: %s, pinned %v, superseded %v", another.Outcome, another.Pinned, another.Superseded)
	}
	back := play(func(s *v1beta1.InferenceService) { s.Spec = old.Spec })
	if back.Outcome != preview.Completes || !back.Superseded {
		t.Errorf("the old spec again: %s, superseded %v", back.Outcome, back.Superseded)
	}
}
