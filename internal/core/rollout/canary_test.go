package rollout

import (
	"testing"
	"time"

	"ome.io/ome/api/v1beta1"
)

const (
	promote  = v1beta1.RolloutPromoteAnnotation
	rollback = v1beta1.RolloutRollbackAnnotation
	retry    = v1beta1.RolloutResumeAnnotation
)

// pair is a service of four engines and two decoders in one canary group.
func pair(t *testing.T, list ...v1beta1.RolloutGroupStep) *stage {
	return newStage(t, canaryOf(steps(list...), engine, decoder), map[v1beta1.ComponentType]int32{engine: 4, decoder: 2})
}

// change asks for a revision on both members.
func (s *stage) change(hash string) {
	for c := range s.wants {
		s.wants[c] = hash
	}
	s.settle()
}

func TestCanaryWalk(t *testing.T) {
	t.Run("the first revision of a service rolls out plain", func(t *testing.T) {
		s := pair(t, stepAt("25%", 25, manual()), stepAt("100%", 100, nil))
		s.want("decoder 2a, engine 4a")
	})
	t.Run("step by step: capacity, weight, gate; engine and decoder move together", func(t *testing.T) {
		s := pair(t, stepAt("25%", 10, manual()), stepAt("50%", 50, timed(time.Minute)), stepAt("100%", 100, nil))
		s.change("b")
		s.want("engine Paused step 0 weight 10, decoder 1a+1b, engine 3a+1b, run open")
		s.ask(promote, "b")
		s.want("engine Paused step 1 weight 50, decoder 1a+1b, engine 2a+2b, run open")
		s.later(59 * time.Second)
		s.want("engine Paused step 1 weight 50, decoder 1a+1b, engine 2a+2b, run open")
		s.later(time.Second)
		s.want("engine Stable step 3 weight 100, decoder 2b, engine 4b, run Completed")
		s.told(v1beta1.EventCanaryStepAdvanced, 2)
		s.told(v1beta1.EventCanaryCompleted, 1)
	})
	t.Run("a weight is recorded only once the capacity is there", func(t *testing.T) {
		s := pair(t, stepAt("50%", 50, manual()), stepAt("100%", 100, nil))
		s.stuck = true
		s.change("b")
		s.want("engine Pending step 0 weight 0, decoder 2a, engine 4a, run open")
		s.stuck = false
		s.settle()
		s.want("engine Paused step 0 weight 50, decoder 1a+1b, engine 2a+2b, run open")
	})
	t.Run("one member that lacks capacity holds both", func(t *testing.T) {
		s := pair(t, stepAt("50%", 50, nil), stepAt("100%", 100, nil))
		s.unready[decoder] = 1
		s.change("b")
		s.want("engine Pending step 0 weight 0, decoder 1a+1b, engine 2a+2b, run open")
		s.unready[decoder] = 0
		s.settle()
		s.want("engine Stable step 2 weight 100, decoder 2b, engine 4b, run Completed")
	})
	t.Run("the last step reports Promoting while it waits", func(t *testing.T) {
		s := pair(t, stepAt("50%", 50, nil), stepAt("100%", 100, manual()))
		s.change("b")
		s.want("engine Promoting step 1 weight 100, decoder 2b, engine 4b, run open")
		s.ask(promote, "b")
		s.want("engine Stable step 2 weight 100, decoder 2b, engine 4b, run Completed")
	})
	t.Run("the delay before completion leaves a way back", func(t *testing.T) {
		g := steps(stepAt("100%", 100, nil))
		g.ScaleDownDelaySeconds = new(int32(60))
		s := newStage(t, canaryOf(g, engine), map[v1beta1.ComponentType]int32{engine: 2})
		s.change("b")
		s.later(59 * time.Second)
		s.want("engine Promoting step 0 weight 100, engine 2b, run open")
		s.ask(rollback, "true")
		s.want("engine RolledBack step 0 weight 0, engine 2a, run RolledBack")
	})
	t.Run("a promote during the delay completes at its end, and once is enough", func(t *testing.T) {
		g := steps(stepAt("100%", 100, manual()))
		g.ScaleDownDelaySeconds = new(int32(60))
		s := newStage(t, canaryOf(g, engine), map[v1beta1.ComponentType]int32{engine: 2})
		s.change("b")
		s.ask(promote, "b")
		s.later(59 * time.Second)
		s.want("engine Promoting step 0 weight 100, engine 2b, run open")
		s.later(time.Second)
		s.want("engine Stable step 1 weight 100, engine 2b, run Completed")
	})
	t.Run("a last step of less than everything leaves nothing to roll without a gate", func(t *testing.T) {
		s := pair(t, stepAt("1", 100, manual()))
		s.change("b")
		s.want("engine Promoting step 0 weight 100, decoder 2b, engine 4b, run open")
	})
	t.Run("a smaller capacity takes nothing back", func(t *testing.T) {
		s := pair(t, stepAt("50%", 10, manual()), stepAt("25%", 20, manual()), stepAt("100%", 100, nil))
		s.change("b")
		s.ask(promote, "b")
		s.want("engine Paused step 1 weight 20, decoder 1a+1b, engine 2a+2b, run open")
	})
}

func TestCanaryPromote(t *testing.T) {
	two := func(t *testing.T) *stage {
		s := pair(t, stepAt("25%", 10, manual()), stepAt("50%", 50, manual()), stepAt("100%", 100, manual()))
		s.change("b")
		return s
	}
	const first, second = "engine Paused step 0 weight 10, decoder 1a+1b, engine 3a+1b, run open", "engine Paused step 1 weight 50, decoder 1a+1b, engine 2a+2b, run open"
	t.Run("one promote is one step, also when its removal is lost", func(t *testing.T) {
		s := two(t)
		s.loseMail = true
		s.ask(promote, "b")
		s.want(second)
		if _, ok := s.annotations[promote]; ok {
			t.Errorf("the annotation is still there")
		}
		if p := s.canaries[engine].Status.PromotedThrough; p != "" {
			t.Errorf("promotedThrough is still %q, so that no other promote counts", p)
		}
	})
	t.Run("a second promote waits for the first to be gone", func(t *testing.T) {
		s := two(t)
		for range 3 {
			s.loseMail = true
			s.annotations[promote] = "b"
			s.pass()
		}
		s.settle()
		s.want(second)
	})
	t.Run("a crash before the write repeats the step, not the promote", func(t *testing.T) {
		s := two(t)
		s.annotations[promote], s.lose = "b", true
		s.settle()
		s.want(second)
	})
	t.Run("another hash is inert and stays for a person", func(t *testing.T) {
		s := two(t)
		s.ask(promote, "c")
		s.want(first)
		if s.annotations[promote] != "c" {
			t.Errorf("it was removed")
		}
	})
	t.Run("a promote that comes before capacity is dropped, and passes no later gate", func(t *testing.T) {
		s := pair(t, stepAt("25%", 10, manual()), stepAt("100%", 100, nil))
		s.stuck = true
		s.change("b")
		s.ask(promote, "b")
		s.told(v1beta1.EventCanaryPromoteIgnored, 1)
		s.stuck = false
		s.settle()
		s.want(first)
	})
	t.Run("a promote never shortens a timed gate and is dropped there", func(t *testing.T) {
		s := pair(t, stepAt("25%", 10, timed(time.Hour)), stepAt("100%", 100, manual()))
		s.change("b")
		s.ask(promote, "b")
		s.want(first)
		s.told(v1beta1.EventCanaryPromoteIgnored, 1)
		s.later(time.Hour)
		s.want("engine Promoting step 1 weight 100, decoder 2b, engine 4b, run open")
	})
	t.Run("nothing is consumed under a pause", func(t *testing.T) {
		s := two(t)
		s.pause = Recover
		s.ask(promote, "b")
		s.want(first)
		if s.annotations[promote] != "b" {
			t.Errorf("it was consumed")
		}
		s.pause = NotPaused
		s.settle()
		s.want(second)
	})
}

func TestCanaryRollback(t *testing.T) {
	half := func(t *testing.T) *stage {
		s := pair(t, stepAt("50%", 50, manual()), stepAt("100%", 100, nil))
		s.change("b")
		return s
	}
	const back = "engine RolledBack step 0 weight 0, decoder 2a, engine 4a, run RolledBack"
	t.Run("every member goes back to its own stable revision, and the request is removed", func(t *testing.T) {
		s := half(t)
		s.ask(rollback, "true")
		s.want(back)
		s.told(v1beta1.EventCanaryRollbackStarted, 1)
		s.told(v1beta1.EventCanaryRollbackIgnored, 0)
		if _, ok := s.annotations[rollback]; ok {
			t.Errorf("the request is still there")
		}
	})
	t.Run("the request stays while it is being done", func(t *testing.T) {
		s := half(t)
		s.stuck = true
		s.ask(rollback, "true")
		s.want("engine RollingBack step 0 weight 0, decoder 1a+1b, engine 2a+2b, run open")
		if s.annotations[rollback] != "true" {
			t.Errorf("it is gone")
		}
	})
	t.Run("a rollback wins over a promote", func(t *testing.T) {
		s := half(t)
		s.annotations[promote] = "b"
		s.ask(rollback, "true")
		s.want(back)
	})
	t.Run("the hash of the canary asks for this one alone", func(t *testing.T) {
		s := half(t)
		s.ask(rollback, "b")
		s.want(back)
	})
	t.Run("false equals absent", func(t *testing.T) {
		s := half(t)
		s.ask(rollback, "false")
		s.want("engine Paused step 0 weight 50, decoder 1a+1b, engine 2a+2b, run open")
	})
	t.Run("without a canary in flight it is removed and told of", func(t *testing.T) {
		s := pair(t, stepAt("100%", 100, nil))
		s.ask(rollback, "true")
		s.told(v1beta1.EventCanaryRollbackIgnored, 1)
		if _, ok := s.annotations[rollback]; ok {
			t.Errorf("it is still there")
		}
	})
	t.Run("the rejected set stays away by itself: spec untouched, reverted, and applied again", func(t *testing.T) {
		s := half(t)
		s.ask(rollback, "true")
		s.later(24 * time.Hour)
		s.want(back)
		s.change("a")
		s.want(back)
		s.change("b")
		s.want(back)
		if s.status.ActiveRun != nil {
			t.Errorf("a run is open")
		}
	})
	t.Run("another revision starts a canary from the first step, with the same stable one", func(t *testing.T) {
		s := half(t)
		s.ask(rollback, "true")
		s.change("c")
		s.want("engine Paused step 0 weight 50, decoder 1a+1c, engine 2a+2c, run open")
		if r := s.canaries[engine].Status; r.StableRevisionHash != "a" || r.RolledBackRevisionHash != "" || r.Members[0].Rejected != "" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a request that lingers does not hit the new canary", func(t *testing.T) {
		s := half(t)
		s.stuck = true
		s.ask(rollback, "true") // still rolling back
		s.stuck = false
		s.loseMail = true
		s.change("c")
		s.want("engine Paused step 0 weight 50, decoder 1a+1c, engine 2a+2c, run open")
		s.told(v1beta1.EventCanaryRollbackStarted, 1)
	})
	t.Run("a stable revision that is gone parks the canary and drops the request", func(t *testing.T) {
		s := half(t)
		s.gone["a"] = true
		s.ask(rollback, "true")
		s.want("engine Failed step 0 weight 50 StableRevisionMissing, decoder 1a+1b, engine 2a+2b, run open")
		s.told(v1beta1.EventCanaryRollbackIgnored, 1)
	})
	t.Run("a failed canary can be rolled back", func(t *testing.T) {
		s := half(t)
		s.unready[engine] = 2
		s.later(16 * time.Minute)
		s.unready[engine] = 0
		s.ask(rollback, "true")
		s.want(back)
	})
	t.Run("the run's record keeps the outcome", func(t *testing.T) {
		s := half(t)
		s.ask(rollback, "true")
		if s.status.LastRun.Outcome != v1beta1.RunRolledBack {
			t.Errorf("%+v", s.status.LastRun)
		}
	})
}

func TestCanaryFails(t *testing.T) {
	waiting := func(t *testing.T) *stage {
		s := pair(t, stepAt("50%", 50, manual()), stepAt("100%", 100, nil))
		s.stuck = true
		s.change("b")
		return s
	}
	const failed = "engine Failed step 0 weight 0 CapacityTimeout, decoder 2a, engine 4a, run open"
	t.Run("capacity that does not come in time", func(t *testing.T) {
		s := waiting(t)
		s.later(15 * time.Minute)
		s.want("engine Pending step 0 weight 0, decoder 2a, engine 4a, run open")
		s.later(time.Second)
		s.want(failed)
		s.told(v1beta1.EventCanaryFailed, 1)
	})
	t.Run("the plan's timeout goes before the operator's, the annotation before both", func(t *testing.T) {
		s := waiting(t)
		s.annotations[v1beta1.RolloutReadyTimeoutAnnotation] = "2m"
		s.later(2*time.Minute + time.Second)
		s.want(failed)
	})
	t.Run("no timeout: it never fails", func(t *testing.T) {
		s := waiting(t)
		s.timeout = 0
		s.later(1000 * time.Hour)
		s.want("engine Pending step 0 weight 0, decoder 2a, engine 4a, run open")
	})
	t.Run("a clock that stood in a pause fails at once on resume", func(t *testing.T) {
		s := waiting(t)
		s.pause = Recover
		s.later(time.Hour)
		s.want("engine Pending step 0 weight 0, decoder 2a, engine 4a, run open")
		s.pause = NotPaused
		s.settle()
		s.want(failed)
	})
	t.Run("a fixed revision starts again with no manual step", func(t *testing.T) {
		s := waiting(t)
		s.later(16 * time.Minute)
		s.stuck = false
		s.change("c")
		s.want("engine Paused step 0 weight 50, decoder 1a+1c, engine 2a+2c, run open")
	})
	t.Run("a retry starts the failed one again", func(t *testing.T) {
		s := waiting(t)
		s.later(16 * time.Minute)
		s.stuck = false
		s.loseMail = true
		s.ask(retry, "b")
		s.want("engine Paused step 0 weight 50, decoder 1a+1b, engine 2a+2b, run open")
		if _, ok := s.annotations[retry]; ok {
			t.Errorf("the request is still there")
		}
		s.told(v1beta1.EventCanaryRetried, 1)
	})
	t.Run("ready Instances that are lost at a step start its timer anew", func(t *testing.T) {
		s := pair(t, stepAt("50%", 50, timed(time.Minute)), stepAt("100%", 100, manual()))
		s.change("b")
		s.later(50 * time.Second)
		s.unready[engine] = 1
		s.later(time.Second)
		s.want("engine Pending step 0 weight 50, decoder 1a+1b, engine 2a+2b, run open")
		s.unready[engine] = 0
		s.later(time.Second)
		s.later(59 * time.Second)
		s.want("engine Paused step 0 weight 50, decoder 1a+1b, engine 2a+2b, run open")
		s.later(time.Second)
		s.want("engine Promoting step 1 weight 100, decoder 2b, engine 4b, run open")
		s.told(v1beta1.EventCanaryCapacityLost, 1)
	})
}

func TestCanaryRetry(t *testing.T) {
	rejected := func(t *testing.T) *stage {
		s := pair(t, stepAt("50%", 50, manual()), stepAt("100%", 100, nil))
		s.change("b")
		s.ask(rollback, "true")
		return s
	}
	for _, value := range []string{"b", "engine=b", "decoder=b"} {
		t.Run("a rejected revision comes back by one request: "+value, func(t *testing.T) {
			s := rejected(t)
			s.ask(retry, value)
			s.want("engine Paused step 0 weight 50, decoder 1a+1b, engine 2a+2b, run open")
			s.told(v1beta1.EventCanaryRetried, 1)
		})
	}
	t.Run("one request is one retry, also when its removal is lost", func(t *testing.T) {
		s := rejected(t)
		s.annotations[retry], s.loseMail = "b", true
		s.pass()
		s.ask(rollback, "true")
		s.want("engine RolledBack step 0 weight 0, decoder 2a, engine 4a, run RolledBack")
		s.told(v1beta1.EventCanaryRetried, 1)
	})
	t.Run("another hash, or another component, is dropped", func(t *testing.T) {
		for _, value := range []string{"c", "router=b", ""} {
			s := rejected(t)
			s.ask(retry, value)
			s.want("engine RolledBack step 0 weight 0, decoder 2a, engine 4a, run RolledBack")
			s.told(v1beta1.EventCanaryRetryIgnored, 1)
			if _, ok := s.annotations[retry]; ok {
				t.Errorf("%q is still there", value)
			}
		}
	})
	t.Run("nothing happens under a pause", func(t *testing.T) {
		s := rejected(t)
		s.pause = Recover
		s.ask(retry, "b")
		s.want("engine RolledBack step 0 weight 0, decoder 2a, engine 4a, run RolledBack")
	})
}

func TestCanaryRetarget(t *testing.T) {
	half := func(t *testing.T) *stage {
		s := pair(t, stepAt("50%", 50, manual()), stepAt("100%", 100, manual()))
		s.change("b")
		return s
	}
	t.Run("a newer revision starts at the first step with the same stable one", func(t *testing.T) {
		s := half(t)
		s.ask(promote, "b") // every Instance runs b, and b is not trusted yet
		s.want("engine Promoting step 1 weight 100, decoder 2b, engine 4b, run open")
		s.change("c")
		if r := s.canaries[engine].Status; r.StableRevisionHash != "a" || r.CurrentStep != 0 {
			t.Errorf("%+v", r)
		}
		s.ask(rollback, "true")
		s.want("engine RolledBack step 0 weight 0, decoder 2a, engine 4a, run RolledBack")
	})
	t.Run("back to the stable revision: no canary, no hold, no partition", func(t *testing.T) {
		s := half(t)
		s.change("a")
		s.want("decoder 2a, engine 4a, run Completed")
		s.change("b")
		s.want("engine Paused step 0 weight 50, decoder 1a+1b, engine 2a+2b, run open")
	})
	t.Run("a new revision in a pause waits for its end", func(t *testing.T) {
		s := half(t)
		s.pause = Recover
		s.change("c")
		s.want("engine Paused step 0 weight 50, decoder 1a+1b, engine 2a+2b, run open")
	})
	t.Run("a change of another group leaves this canary at its step", func(t *testing.T) {
		spec := canaryOf(steps(stepAt("25%", 10, manual()), stepAt("50%", 50, manual()), stepAt("100%", 100, nil)), engine)
		spec.Groups = append(spec.Groups, v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{router}, BlueGreen: &v1beta1.GroupBlueGreen{}})
		s := newStage(t, spec, map[v1beta1.ComponentType]int32{engine: 4, router: 2})
		s.wants[engine] = "b"
		s.settle()
		s.ask(promote, "b")
		s.wants[router] = "r"
		s.settle()
		s.want("engine Paused step 1 weight 50, engine 2a+2b, router 2r, run open")
	})
	t.Run("while rejected, another group's runs open and complete", func(t *testing.T) {
		spec := canaryOf(steps(stepAt("50%", 10, manual()), stepAt("100%", 100, nil)), engine)
		spec.Groups = append(spec.Groups, v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{router}, BlueGreen: &v1beta1.GroupBlueGreen{}})
		s := newStage(t, spec, map[v1beta1.ComponentType]int32{engine: 4, router: 2})
		s.wants[engine] = "b"
		s.settle()
		s.ask(rollback, "true")
		s.wants[router] = "r"
		s.settle()
		s.want("engine RolledBack step 0 weight 0, engine 4a, router 2r, run Completed")
	})
	t.Run("two canaries at once: a hash rolls back one", func(t *testing.T) {
		spec := canaryOf(steps(stepAt("50%", 10, manual()), stepAt("100%", 100, nil)), engine)
		spec.Groups = append(spec.Groups, v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{router}, Canary: steps(stepAt("50%", 10, manual()), stepAt("100%", 100, nil))})
		s := newStage(t, spec, map[v1beta1.ComponentType]int32{engine: 4, router: 2})
		s.wants[engine], s.wants[router] = "b", "r"
		s.settle()
		s.ask(rollback, "r")
		s.want("engine Paused step 0 weight 10, router RolledBack step 0 weight 0, engine 2a+2b, router 2a, run open")
		s.ask(promote, "b")
		s.want("engine Stable step 2 weight 100, router RolledBack step 0 weight 0, engine 4b, router 2a, run RolledBack")
	})
}

func TestCanaryRepin(t *testing.T) {
	half := func(t *testing.T, list ...v1beta1.RolloutGroupStep) *stage {
		s := pair(t, stepAt("25%", 10, manual()), stepAt("50%", 50, manual()), stepAt("100%", 100, manual()))
		s.change("b")
		s.ask(promote, "b")
		s.spec = canaryOf(steps(list...), engine, decoder)
		s.ask(v1beta1.RolloutRepinAnnotation, v1beta1.RepinNow)
		return s
	}
	t.Run("a shorter plan clamps the step, and a higher weight waits for a promote", func(t *testing.T) {
		s := half(t, stepAt("25%", 10, nil), stepAt("100%", 100, manual()))
		s.want("engine Paused step 1 weight 50 hold, decoder 2b, engine 4b, run open")
		s.ask(promote, "b")
		s.want("engine Promoting step 1 weight 100, decoder 2b, engine 4b, run open")
		s.ask(promote, "b")
		s.want("engine Stable step 2 weight 100, decoder 2b, engine 4b, run Completed")
	})
	t.Run("a weight that does not rise needs no promote", func(t *testing.T) {
		s := half(t, stepAt("25%", 10, nil), stepAt("50%", 40, manual()), stepAt("100%", 100, manual()))
		s.want("engine Paused step 1 weight 50, decoder 1a+1b, engine 2a+2b, run open")
	})
	t.Run("an edit alone changes nothing", func(t *testing.T) {
		s := pair(t, stepAt("25%", 10, manual()), stepAt("100%", 100, nil))
		s.change("b")
		s.spec = canaryOf(steps(stepAt("100%", 100, nil)), engine, decoder)
		s.later(time.Hour)
		s.want("engine Paused step 0 weight 10, decoder 1a+1b, engine 3a+1b, run open")
	})
}
