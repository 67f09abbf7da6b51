package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/metrics"
)

// pass writes one decision.
type pass struct {
	sender
	world    core.World
	decision core.Decision
	wakes    []time.Time
	// stopped are the components whose writes stopped early; committed are those
	// whose status was written, or needed no write.
	stopped, committed map[v1beta1.ComponentType]bool
	// notes are events of the shell's own.
	notes []core.Event
}

// errStopped ends a component's writes. The reason was recorded where it happened.
var errStopped = errors.New("an earlier write of the pass did not succeed")

// run sends the writes in the order that makes every crash harmless:
// ControllerRevisions; the service's status; each replica's spec, then its
// status, then its pods; other objects; consumed annotations; events.
func (p *pass) run(ctx context.Context) {
	p.stopped, p.committed = map[v1beta1.ComponentType]bool{}, map[v1beta1.ComponentType]bool{}
	p.createRevisions(ctx)
	if p.serviceStatus(ctx) != nil {
		return
	}
	p.eachComponent(ctx, p.component)
	p.services(ctx)
	p.scalers(ctx)
	p.annotations(ctx)
	p.events()
}

// eachComponent runs f for the components that have not stopped, side by side.
func (p *pass) eachComponent(ctx context.Context, f func(context.Context, *core.Component, *core.ComponentDecision) error) {
	var wg sync.WaitGroup
	stopped := make([]bool, len(p.decision.Components))
	for i := range p.decision.Components {
		d := &p.decision.Components[i]
		if p.stopped[d.Type] {
			continue
		}
		wg.Go(func() { stopped[i] = f(ctx, p.read(d.Type), d) != nil })
	}
	wg.Wait()
	for i, s := range stopped {
		if s {
			p.stopped[p.decision.Components[i].Type] = true
		}
	}
}

// read returns the component as it was read.
func (p *pass) read(c v1beta1.ComponentType) *core.Component {
	for i := range p.world.Components {
		if p.world.Components[i].Type == c {
			return &p.world.Components[i]
		}
	}
	return &core.Component{Type: c}
}

func (p *pass) createRevisions(ctx context.Context) {
	p.eachComponent(ctx, func(ctx context.Context, _ *core.Component, d *core.ComponentDecision) error {
		for _, cr := range d.CreateRevisions {
			if err := p.send(ctx, &Write{Kind: WriteRevision, Component: d.Type, Verb: VerbCreate, Object: cr.DeepCopy()}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *pass) serviceStatus(ctx context.Context) error {
	next, isvc := p.decision.Status, p.world.Service
	if next == nil || isvc == nil {
		return nil
	}
	patch, err := difference(statusPart{&isvc.Status}, statusPart{next}, isvc.ResourceVersion)
	if err != nil {
		return p.failed(fmt.Errorf("InferenceService %s: status: %w", p.key, err))
	}
	if patch == nil {
		return nil
	}
	if due := held(p.decision.StatusUrgent, p.state.serviceWritten, p.world.Now); !due.IsZero() {
		p.hold("", WriteServiceStatus, due)
		return nil
	}
	target := &v1beta1.InferenceService{ObjectMeta: named(isvc)}
	err = p.send(ctx, &Write{Kind: WriteServiceStatus, Verb: VerbPatch, Subresource: "status", Object: target, PatchType: types.MergePatchType, Patch: patch})
	if err == nil {
		p.state.serviceWritten = p.world.Now
	}
	return err
}

// component writes what belongs to one component.
func (p *pass) component(ctx context.Context, read *core.Component, d *core.ComponentDecision) error {
	replica, err := p.replica(ctx, read.Replica, d)
	if err != nil {
		return err
	}
	if replica, err = p.replicaStatus(ctx, replica, d); err != nil {
		return err
	}
	p.mu.Lock()
	p.committed[d.Type] = true
	p.mu.Unlock()
	if err := p.pods(ctx, d.Type, d.Pods); err != nil {
		return err
	}
	for _, cr := range d.DeleteRevisions {
		if err := p.send(ctx, &Write{Kind: WriteRevision, Component: d.Type, Verb: VerbDelete, Object: cr, UID: cr.UID}); err != nil {
			return err
		}
	}
	if err := p.release(ctx, replica, d); err != nil {
		return err
	}
	p.mu.Lock()
	p.tally(d.Type).finished = true
	p.mu.Unlock()
	return nil
}

// replica brings spec and marks to what was decided and returns the replica as it is then.
func (p *pass) replica(ctx context.Context, read *v1beta1.InferenceReplica, d *core.ComponentDecision) (*v1beta1.InferenceReplica, error) {
	switch {
	case d.CreateReplica != nil:
		created := d.CreateReplica.DeepCopy()
		return created, p.send(ctx, &Write{Kind: WriteReplica, Component: d.Type, Verb: VerbCreate, Object: created})
	case d.UpdateReplica != nil && read != nil:
		patch, err := difference(replicaPart(read), replicaPart(d.UpdateReplica), read.ResourceVersion)
		if err != nil {
			return nil, p.failed(fmt.Errorf("InferenceReplica %s: %w", keyOf(read), err))
		}
		if patch == nil {
			return read, nil
		}
		target := &v1beta1.InferenceReplica{ObjectMeta: named(read)}
		return target, p.send(ctx, &Write{Kind: WriteReplica, Component: d.Type, Verb: VerbPatch, Object: target, PatchType: types.MergePatchType, Patch: patch})
	}
	return read, nil
}

func (p *pass) replicaStatus(ctx context.Context, replica *v1beta1.InferenceReplica, d *core.ComponentDecision) (*v1beta1.InferenceReplica, error) {
	if d.ReplicaStatus == nil || replica == nil {
		return replica, nil
	}
	next := *d.ReplicaStatus
	next.ObservedGeneration = replica.Generation
	patch, err := difference(statusPart{&replica.Status}, statusPart{&next}, replica.ResourceVersion)
	if err != nil {
		return nil, p.failed(fmt.Errorf("InferenceReplica %s: status: %w", keyOf(replica), err))
	}
	if patch == nil {
		return replica, nil
	}
	// What a generation of the spec did to the status is never mere chatter, nor is
	// what a request or an event tells of: those come after it.
	urgent := d.ReplicaStatusUrgent || next.ObservedGeneration != replica.Status.ObservedGeneration ||
		len(d.RemoveReplicaAnnotations)+len(d.Events) > 0
	if due := held(urgent, p.lastReplicaWrite(d.Type), p.world.Now); !due.IsZero() {
		p.hold(d.Type, WriteReplicaStatus, due)
		return replica, nil
	}
	target := &v1beta1.InferenceReplica{ObjectMeta: named(replica)}
	err = p.send(ctx, &Write{Kind: WriteReplicaStatus, Component: d.Type, Verb: VerbPatch, Subresource: "status", Object: target, PatchType: types.MergePatchType, Patch: patch})
	p.accountForStatus(replica, &next, d.Type, err)
	if err != nil {
		return nil, err
	}
	p.replicaWrite(d.Type)
	return target, nil
}

// pods sends the pod calls that the replica's status authorizes, side by side.
// They don't depend on each other: core is safe with any subset.
func (p *pass) pods(ctx context.Context, c v1beta1.ComponentType, actions []core.PodAction) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var stopped error
	now := metav1.NewTime(p.world.Now)
	p.mu.Lock()
	p.tally(c).reachedPods = true
	p.mu.Unlock()
	for i := range actions {
		a := &actions[i]
		if a.Verb == core.PodCreate && !p.again(c, a).IsZero() {
			continue // refused a moment ago; settlePods wakes for it
		}
		release, err := p.slot(ctx)
		if err != nil {
			wg.Wait()
			return err
		}
		wg.Go(func() {
			defer release()
			w, err := podWrite(a, now)
			if err == nil {
				w.Component = c
				err = p.send(ctx, w)
			} else {
				err = p.failed(fmt.Errorf("Pod %s: %w", keyOf(a.Pod), err))
			}
			if err != nil {
				mu.Lock()
				stopped = err
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return stopped
}

func podWrite(a *core.PodAction, now metav1.Time) (*Write, error) {
	switch a.Verb {
	case core.PodCreate:
		return &Write{Kind: WritePodCreate, Verb: VerbCreate, Object: a.Pod.DeepCopy()}, nil
	case core.PodServe, core.PodUnserve:
		patch, err := gatePatch(a.Pod, a.Verb == core.PodServe, a.Reason, a.Message, now)
		if err != nil {
			return nil, err
		}
		return &Write{
			Kind: WritePodGate, Verb: VerbPatch, Subresource: "status", Object: &corev1.Pod{ObjectMeta: named(a.Pod)},
			PatchType: types.StrategicMergePatchType, Patch: patch,
		}, nil
	case core.PodUpdate:
		patch, err := podPatch(a.Pod, a.Patch)
		if err != nil {
			return nil, err
		}
		return &Write{
			Kind: WritePodUpdate, Verb: VerbPatch, Object: &corev1.Pod{ObjectMeta: named(a.Pod)},
			PatchType: types.StrategicMergePatchType, Patch: patch,
		}, nil
	case core.PodDelete:
		return &Write{Kind: WritePodDelete, Verb: VerbDelete, Object: &corev1.Pod{ObjectMeta: named(a.Pod)}, UID: a.Pod.UID}, nil
	case core.PodForceDelete, core.PodKill:
		kind, now := WritePodForceDelete, int64(0)
		if a.Verb == core.PodKill {
			kind = WritePodDelete
		}
		return &Write{Kind: kind, Verb: VerbDelete, Object: &corev1.Pod{ObjectMeta: named(a.Pod)}, UID: a.Pod.UID, GracePeriod: &now}, nil
	}
	return nil, fmt.Errorf("unknown pod action %q", a.Verb)
}

// release deletes a replica, or lets a deleted one go.
func (p *pass) release(ctx context.Context, replica *v1beta1.InferenceReplica, d *core.ComponentDecision) error {
	if replica == nil {
		return nil
	}
	if d.DeleteReplica {
		if err := p.send(ctx, &Write{Kind: WriteReplica, Component: d.Type, Verb: VerbDelete, Object: &v1beta1.InferenceReplica{ObjectMeta: named(replica)}, UID: replica.UID}); err != nil {
			return err
		}
	}
	if d.RemoveFinalizer {
		patch, err := finalizerPatch(replica, v1beta1.InferenceReplicaFinalizer)
		if err != nil {
			return p.failed(err)
		}
		if patch == nil {
			return nil
		}
		return p.send(ctx, &Write{
			Kind: WriteReplica, Component: d.Type, Verb: VerbPatch, Object: &v1beta1.InferenceReplica{ObjectMeta: named(replica)},
			PatchType: types.MergePatchType, Patch: patch,
		})
	}
	return nil
}

// services writes core Services. Each stands alone: one that is refused must not
// keep another from its endpoints.
func (p *pass) services(ctx context.Context) {
	stored := map[string]*corev1.Service{}
	for _, s := range p.world.Services {
		stored[s.Name] = s
	}
	var writes []*Write
	for _, s := range p.decision.CreateServices {
		writes = append(writes, &Write{Kind: WriteService, Component: componentOf(s), Verb: VerbCreate, Object: s.DeepCopy()})
	}
	for _, s := range p.decision.UpdateServices {
		read, ok := stored[s.Name]
		if !ok {
			continue
		}
		patch, err := difference(servicePart(read), servicePart(s), read.ResourceVersion)
		if err != nil {
			p.failed(fmt.Errorf("Service %s: %w", keyOf(s), err))
			continue
		}
		if patch != nil {
			writes = append(writes, &Write{
				Kind: WriteService, Component: componentOf(s), Verb: VerbPatch, Object: &corev1.Service{ObjectMeta: named(read)},
				PatchType: types.MergePatchType, Patch: patch,
			})
		}
	}
	for _, s := range p.decision.DeleteServices {
		writes = append(writes, &Write{Kind: WriteService, Component: componentOf(s), Verb: VerbDelete, Object: &corev1.Service{ObjectMeta: named(s)}, UID: s.UID})
	}
	var wg sync.WaitGroup
	for _, w := range writes {
		release, err := p.slot(ctx)
		if err != nil {
			break
		}
		wg.Go(func() {
			defer release()
			// The sender records what went wrong.
			_ = p.send(ctx, w)
		})
	}
	wg.Wait()
}

// annotations removes the requests that were answered. The answer to a replica's is
// in its status, so that must have been written; whether pods moved since does not
// matter.
func (p *pass) annotations(ctx context.Context) {
	for i := range p.decision.Components {
		d := &p.decision.Components[i]
		replica := p.read(d.Type).Replica
		if replica == nil || !p.committed[d.Type] {
			continue
		}
		target := &v1beta1.InferenceReplica{ObjectMeta: named(replica)}
		p.removeAnnotations(ctx, Write{Kind: WriteReplicaAnnotation, Component: d.Type, Object: target}, replica.UID, d.RemoveReplicaAnnotations)
	}
	if isvc := p.world.Service; isvc != nil {
		target := &v1beta1.InferenceService{ObjectMeta: named(isvc)}
		p.removeAnnotations(ctx, Write{Kind: WriteAnnotation, Object: target}, isvc.UID, p.decision.RemoveAnnotations)
	}
}

func (p *pass) removeAnnotations(ctx context.Context, w Write, uid types.UID, consumed map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(consumed)) {
		patch, err := removeAnnotationPatch(uid, key, consumed[key])
		if err != nil {
			p.failed(err)
			continue
		}
		w.Verb, w.PatchType, w.Patch = VerbPatch, types.JSONPatchType, patch
		_ = p.send(ctx, &w)
	}
}

// hold puts a write off.
func (p *pass) hold(c v1beta1.ComponentType, k WriteKind, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally(c).held[k] = true
	p.wakes = append(p.wakes, due)
	metrics.StatusHeld(string(k))
}

func (p *pass) lastReplicaWrite(c v1beta1.ComponentType) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.replicaWritten[c]
}

func (p *pass) replicaWrite(c v1beta1.ComponentType) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.replicaWritten[c] = p.world.Now
}

func named(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}
}
