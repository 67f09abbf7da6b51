package core

import (
	"errors"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/rollout"
	"ome.io/ome/internal/core/rows"
)

// Decide is the whole judgement of one pass.
func Decide(w World) Decision {
	var out Decision
	components := make([]*component, 0, len(w.Components))
	for i := range w.Components {
		components = append(components, prepare(&w, &w.Components[i]))
	}

	// What a rollout may not know of: a service on its way out only drains.
	in := rollout.Input{Now: w.Now, Seed: w.Seed, Namespace: w.Key.Namespace, Service: w.Key.Name, Samples: w.Samples, Reach: w.Reach, SkipPairing: w.SkipPairing}
	if w.Service != nil {
		in.Generation = w.Service.Generation
		in.Pause = rollout.PauseOf(w.Service.Annotations)
		in.Spec, in.Previous, in.Coordination = w.Service.Spec.Rollout, w.Service.Status.Rollout, w.Service.Status.RolloutCoordination
	}
	if w.Service != nil {
		readCanaries(&w, &in)
	}
	held := rollout.Held(in, targets(components))
	var declared []v1beta1.ComponentType
	for _, c := range components {
		c.hold(held)
		if c.Declared {
			declared = append(declared, c.Type)
		}
		if c.Declared && !c.foreign {
			in.Members = append(in.Members, c.member())
		}
	}
	live := sources(&w).Resolve(in.Spec)
	in.DefaultTolerance = w.Settings.Coordination.DefaultRatioTolerancePercent
	takeCensus(w.Now, &in, live, components)
	run := rollout.Decide(in, live)
	wake(&out, run.Wake)
	wake(&out, lookAgain(&w, run.ParkReason))
	out.RemoveAnnotations = run.Consumed

	out.Counts, out.Values, out.Samples = run.Counts, run.Values, run.Due
	for _, c := range components {
		permit := run.Permits[c.Type]
		c.follow(permit)
		c.project(&w, in.Pause)
		if c.live() {
			pause := in.Pause
			if c.desired == 0 {
				pause = rollout.NotPaused // removal goes on under a pause
			}
			c.instances(&w, permit, pause, declared)
			c.decideStatus(&w)
			c.prune(&w)
		}
		c.release(&w)
		c.out.Events = append(c.out.Events, c.result.Events...)
		wake(&out, c.result.Wake)
	}
	out.Events = append(out.Events, run.Events...)
	scalers(&w, components, &out)
	if w.Service != nil && w.Service.DeletionTimestamp == nil {
		serviceStatus(&w, components, in, run, live, &out)
	}
	services(&w, components, &out)
	for _, c := range components {
		c.out.CodecError = codecError(c.unreadable)
		out.Components = append(out.Components, c.out)
	}
	return out
}

// takeCensus counts pods for the members whose group weighs them: most services have
// neither a ratio nor a token that changes, and need none.
func takeCensus(now time.Time, in *rollout.Input, live plan.Resolution, components []*component) {
	weighed := rollout.Weighed(*in, live)
	if len(weighed) == 0 {
		return
	}
	for _, c := range components {
		for i := range in.Members {
			if m := &in.Members[i]; m.Component == c.Type && weighed[c.Type] && c.Replica != nil {
				m.Census = instance.TakeCensus(c.rows, c.Pods, c.Replica.UID, c.Routed, now, time.Duration(c.minReadySeconds())*time.Second)
			}
		}
	}
}

// codecError is the stable word of an error of package rows.
func codecError(err error) string {
	var decode *rows.DecodeError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &decode):
		return string(decode.Reason)
	}
	return "encode"
}

func wake(out *Decision, at time.Time) {
	if !at.IsZero() && (out.Wake.IsZero() || at.Before(out.Wake)) {
		out.Wake = at
	}
}
