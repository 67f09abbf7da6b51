package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/internal/core"
)

// Passes sends decisions to an API server as the passes of one key do.
type Passes struct {
	r   *reconciler
	key types.NamespacedName
}

// NewPasses returns the passes of a key; wrap, when set, stands before the API server.
func NewPasses(c client.Client, key types.NamespacedName, recorder events.EventRecorder, wrap func(Writer) Writer) *Passes {
	var w Writer = clientWriter{c}
	if wrap != nil {
		w = wrap(w)
	}
	return &Passes{key: key, r: &reconciler{writer: w, live: c, clock: clock.RealClock{}, limits: newLimits(), recorder: recorder}}
}

// Send sends one decision, and returns when to look again.
func (p *Passes) Send(ctx context.Context, w core.World, d core.Decision) (time.Duration, error) {
	state := p.r.states.of(p.key)
	w.Key, w.Now = p.key, p.r.clock.Now()
	one := pass{
		sender: sender{
			key: p.key, state: state, writer: p.r.writer, live: p.r.live, limits: p.r.limits,
			recorder: p.r.recorder, service: w.Service, slots: make(chan struct{}, perService),
		},
		world: w, decision: d,
	}
	one.run(ctx)
	return p.r.result(ctx, &one)
}

// Refused is what core would be told of a component's refused creations.
func (p *Passes) Refused(d core.ComponentDecision) map[string]core.Refusal {
	return told(p.r.states.of(p.key).refusedPods[d.Type])
}

// Look puts the nodes of overdue pods into the world.
func (p *Passes) Look(ctx context.Context, w *core.World) time.Time {
	return p.r.nodes.look(ctx, p.r.live, w)
}
