package controller

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ome.io/ome/internal/core"
	"ome.io/ome/internal/metrics"
)

// Outcomes of a pass, as a metric label.
const (
	passClean    = "clean"
	passWrote    = "wrote"
	passConflict = "conflict"
	passFailed   = "failed"
	passRefused  = "refused"
	passWaited   = "waited"
)

// reconciler runs passes. The queue gives it one key at a time for each worker.
type reconciler struct {
	stores   stores
	settings *operatorSettings
	writer   Writer
	live     client.Reader
	latest   func(context.Context, kind) (string, error)
	recorder events.EventRecorder
	clock    clock.PassiveClock
	limits   *limits
	states   states
	nodes    nodes
	decide   func(core.World) core.Decision
	// sampler is nil in tests that need none.
	sampler sampler

	skipDrain, skipPairing bool
	// checkPurity proves after each decision that it wrote to nothing it was given.
	checkPurity bool
}

// Reconcile runs one pass and tells the queue when to look again. The queue's own
// backoff would be deaf to a wake that is due earlier, so errors end here.
func (r *reconciler) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	after, err := r.pass(ctx, key)
	if err != nil {
		log.FromContext(ctx).Error(err, "a pass failed", "again", after.String())
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// pass runs one pass, unless it is too early for one. It returns how soon the
// next is due, also with an error; zero means when something happens.
func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	state := r.states.of(key)
	now := r.clock.Now()
	if early := state.early(now); early > 0 {
		return early, nil
	}
	if err := state.fence.settle(ctx, r.live, r.stores); err != nil {
		if ctx.Err() != nil {
			return 0, nil
		}
		metrics.Pass(passFailed)
		return state.failureDelay(), err
	}
	if lag := state.fence.behind(r.stores); lag != "" {
		return r.waitForCaches(ctx, state, lag, now)
	}

	set, problems := r.settings.get(r.stores)
	world := snapshot(r.stores, key, set, &state.templates, now)
	world.SettingsProblems = problems
	world.Policies = state.policies.of(r.stores, world.Service, set)
	if world.Service == nil && len(world.Components) == 0 && len(world.Services) == 0 {
		r.states.forget(key)
		metrics.Forget(key.Namespace, key.Name)
		if r.sampler != nil {
			r.sampler.Forget(key)
		}
		return 0, nil
	}
	world.Seed, world.SkipDrain, world.SkipPairing = newSeed(), r.skipDrain, r.skipPairing
	for i := range world.Components {
		c := &world.Components[i]
		c.Refusal = state.refusals[c.Type].text
		c.ScalerRefusal = state.scalers[c.Type]
		c.RefusedPods = told(state.refusedPods[c.Type])
	}
	r.withSamples(&world)
	assembled := r.clock.Since(now)
	looked := r.nodes.look(ctx, r.live, &world)
	start := r.clock.Now()
	decision, err := r.decideOn(world)
	if err != nil {
		metrics.Pass(passFailed)
		return state.failureDelay(), err
	}
	took := assembled + r.clock.Since(start)
	state.decided(now, took)
	metrics.Stage("decide", took)
	for i := range decision.Components {
		if reason := decision.Components[i].CodecError; reason != "" {
			metrics.CodecError(reason)
		}
	}

	p := pass{
		sender: sender{
			key: key, state: state, writer: r.writer, live: r.live, limits: r.limits,
			recorder: r.recorder, service: world.Service, slots: make(chan struct{}, perService),
		},
		world: world, decision: decision,
	}
	if !looked.IsZero() {
		p.wakes = append(p.wakes, looked)
	}
	start = r.clock.Now()
	p.run(ctx)
	r.askFor(&decision)
	if p.sent > 0 {
		metrics.Stage("write", r.clock.Since(start))
	}
	return r.result(ctx, &p)
}

// decideOn asks core, and in tests proves that it only read.
func (r *reconciler) decideOn(w core.World) (core.Decision, error) {
	if !r.checkPurity {
		return r.decide(w), nil
	}
	before := fingerprint(w)
	d := r.decide(w)
	if fingerprint(w) != before {
		return d, fmt.Errorf("InferenceService %s: deciding changed its input; the caches can't be trusted any more", w.Key)
	}
	return d, nil
}

func fingerprint(w core.World) string {
	raw, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// result says when to look again.
func (r *reconciler) result(ctx context.Context, p *pass) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, nil // told to stop: the next manager goes on
	}
	now := r.clock.Now()
	p.settleRefusals(now)
	p.settleScalers(now)
	var until time.Duration // zero: nothing is due by itself
	for _, t := range append(p.wakes, p.decision.Wake) {
		if !t.IsZero() && (until == 0 || t.Sub(now) < until) {
			until = max(t.Sub(now), time.Millisecond)
		}
	}
	if len(p.errs) > 0 {
		metrics.Pass(passFailed)
		delay := p.state.failureDelay()
		if until > 0 {
			delay = min(delay, max(until, paceLeast))
		}
		return delay, summary(slices.Concat(p.errs, p.turnedDown))
	}
	p.state.failures = 0
	if len(p.conflicts) > 0 {
		// Somebody else wrote first. That is normal, and the cure is to decide again.
		metrics.Pass(passConflict)
		log.FromContext(ctx).V(1).Info("deciding again", "conflicts", p.conflicts)
		return p.state.conflictDelay(), nil
	}
	p.state.conflicts = 0
	if len(p.turnedDown) > 0 {
		metrics.Pass(passRefused)
		return until, summary(p.turnedDown)
	}
	if p.sent > 0 {
		metrics.Pass(passWrote)
	} else {
		metrics.Pass(passClean)
	}
	return until, nil
}

// summary joins errors, but not hundreds: when a namespace is out of quota every
// pod says the same.
func summary(errs []error) error {
	const most = 5
	if len(errs) <= most {
		return errors.Join(errs...)
	}
	return errors.Join(append(slices.Clone(errs[:most]), fmt.Errorf("and %d more", len(errs)-most))...)
}

// waitForCaches puts a pass off until the caches show our own writes.
func (r *reconciler) waitForCaches(ctx context.Context, state *keyState, lag string, now time.Time) (time.Duration, error) {
	metrics.Pass(passWaited)
	delay, stalled := state.fence.wait(now)
	if stalled {
		log.FromContext(ctx).Info("a cache lags far behind our own writes", "lag", lag)
		if err := state.fence.rewind(ctx, r.latest, now); err != nil {
			return delay, err
		}
	}
	return delay, nil
}

// newSeed makes the IDs of a pass unlike those of any other.
func newSeed() string {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // the kernel has no randomness: nothing works
	}
	return hex.EncodeToString(b[:])
}

// latestVersion asks the API server for the version that a kind is at.
func latestVersion(reader client.Reader, scheme schemer, namespace string) func(context.Context, kind) (string, error) {
	return func(ctx context.Context, k kind) (string, error) {
		gvks, _, err := scheme.ObjectKinds(newObject(k))
		if err != nil {
			return "", err
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvks[0].GroupVersion().WithKind(gvks[0].Kind + "List"))
		opts := []client.ListOption{client.Limit(1)}
		if k == kindConfigMap {
			opts = append(opts, client.InNamespace(namespace)) // the only ones the manager may read
		}
		// No resourceVersion: the answer comes from a quorum of the store.
		if err := reader.List(ctx, list, opts...); err != nil {
			return "", fmt.Errorf("%s: %w", k, err)
		}
		return list.ResourceVersion, nil
	}
}
