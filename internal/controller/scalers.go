package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/keda"
	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// KEDAServed returns a function that tells whether the cluster has ScaledObjects. The first
// answer holds until the next start, like the watches; while there is none it says no.
func KEDAServed(mapper meta.RESTMapper) func() bool {
	var mu sync.Mutex
	var known, served bool
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		if !known {
			is, err := hasScaledObjects(mapper)
			known, served = err == nil, is
		}
		return served
	}
}

func hasScaledObjects(mapper meta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(keda.GroupVersion.WithKind(keda.ScaledObjectKind).GroupKind(), keda.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// watchedKinds are the kinds to watch: KEDA's too where it is served. It asks until it
// gets an answer.
func watchedKinds(ctx context.Context, mapper meta.RESTMapper, policies bool, log logr.Logger) ([]kind, error) {
	kinds := slices.Clone(kinds)
	if policies {
		kinds = append(kinds, kindPolicy)
	}
	for {
		served, err := hasScaledObjects(mapper)
		switch {
		case err == nil && served:
			log.Info("KEDA is here: class KEDA makes ScaledObjects")
			return append(kinds, kindScaledObject), nil
		case err == nil:
			log.Info("no CRD " + keda.ScaledObjectCRD + ": class KEDA is refused until KEDA is installed and this manager restarted")
			return kinds, nil
		}
		log.Info("waiting for the API server", "kind", keda.ScaledObjectKind, "error", err.Error())
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// trimScaler drops the measurements: they change every few seconds and no decision reads them.
func trimScaler(obj any) (any, error) {
	if o, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler); ok {
		o.ManagedFields, o.Status.CurrentMetrics = nil, nil
	}
	return obj, nil
}

// sameScaler is true for a change of nothing that is kept.
func sameScaler(before, after any) bool {
	a, ok1 := before.(*autoscalingv2.HorizontalPodAutoscaler)
	b, ok2 := after.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok1 || !ok2 {
		return false
	}
	x, y := *a, *b
	x.ResourceVersion, y.ResourceVersion = "", ""
	return apiequality.Semantic.DeepEqual(&x, &y)
}

// scalersOf fills in what scales the service at a key.
func scalersOf(s stores, at string, w *core.World) {
	w.Scalers = sorted(listOf[*autoscalingv2.HorizontalPodAutoscaler](s[kindScaler].Index(byService, at)))
	if r, ok := s[kindScaledObject]; ok {
		w.KEDAServed = true
		w.ScaledObjects = sorted(listOf[*keda.ScaledObject](r.Index(byService, at)))
	}
}

// scalers writes scalers. Each stands alone, and what becomes of it stops nothing else.
func (p *pass) scalers(ctx context.Context) {
	p.scaled = true
	var writes []*Write
	for _, s := range p.decision.CreateScalers {
		writes = append(writes, &Write{Kind: WriteScaler, Component: s.Component, Verb: VerbCreate, Object: scalerObject(s).DeepCopyObject().(client.Object)})
	}
	for _, s := range p.decision.UpdateScalers {
		w, err := p.scalerPatch(s)
		if err != nil {
			p.failed(fmt.Errorf("scaler of %s: %w", s.Component, err))
		} else if w != nil {
			writes = append(writes, w)
		}
	}
	for _, s := range p.decision.DeleteScalers {
		o := scalerObject(s)
		target := newObject(kindOf(o))
		target.SetNamespace(o.GetNamespace())
		target.SetName(o.GetName())
		writes = append(writes, &Write{Kind: WriteScaler, Component: s.Component, Verb: VerbDelete, Object: target, UID: o.GetUID()})
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

func scalerObject(s core.Scaler) client.Object {
	if s.HPA != nil {
		return s.HPA
	}
	return s.ScaledObject
}

func (p *pass) scalerPatch(s core.Scaler) (*Write, error) {
	w := &Write{Kind: WriteScaler, Component: s.Component, Verb: VerbPatch, PatchType: types.MergePatchType}
	var err error
	switch {
	case s.HPA != nil:
		for _, read := range p.world.Scalers {
			if read.Name == s.HPA.Name {
				w.Object = &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named(read)}
				w.Patch, err = difference(specPart{marksOf(read), &read.Spec}, specPart{marksOf(s.HPA), &s.HPA.Spec}, read.ResourceVersion)
			}
		}
	case s.ScaledObject != nil:
		for _, read := range p.world.ScaledObjects {
			if read.Name == s.ScaledObject.Name {
				w.Object = &keda.ScaledObject{ObjectMeta: named(read)}
				w.Patch, err = difference(specPart{marksOf(read), &read.Spec}, specPart{marksOf(s.ScaledObject), &s.ScaledObject.Spec}, read.ResourceVersion)
			}
		}
	}
	if err != nil || w.Patch == nil {
		return nil, err
	}
	return w, nil
}

// scalerUnaccepted notes that a scaler's write failed, and why when it was refused.
func (s *sender) scalerUnaccepted(w *Write, why core.ScalerRefusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scalers == nil {
		s.scalers = map[v1beta1.ComponentType]core.ScalerRefusal{}
	}
	if why.Text != "" || s.scalers[w.Component].Text == "" {
		s.scalers[w.Component] = why
	}
}

// settleScalers carries refusals of scalers over to the next pass, which tells them in the
// service's status, and lets go of what was accepted or is no longer asked for.
func (p *pass) settleScalers(now time.Time) {
	if !p.scaled {
		return
	}
	known, next := p.state.scalers, map[v1beta1.ComponentType]core.ScalerRefusal{}
	for c, why := range p.sender.scalers {
		if why.Text == "" {
			why = known[c] // this time it failed otherwise
		}
		if why.Text != "" {
			next[c] = why
		}
	}
	if !maps.Equal(known, next) {
		p.wakes = append(p.wakes, now.Add(paceLeast))
	}
	p.state.scalers = next
}
