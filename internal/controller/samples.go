package controller

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/metrics"
	"ome.io/ome/internal/prom"
	"ome.io/ome/internal/prom/promql"
)

// sampler takes samples of metrics off the reconcile loop.
type sampler interface {
	Ask(analysis.Request)
	Samples(types.NamespacedName) []analysis.Sample
	Forget(types.NamespacedName)
}

// newPool is the sampler of a running manager. Its samples wake their service once the
// queue is there.
func (r *reconciler) newPool(wakes *atomic.Pointer[queue]) *prom.Pool {
	return prom.NewPool(prom.Options{
		Settings: func() config.Settings {
			set, _ := r.settings.get(r.stores)
			return set
		},
		Token: tokenReader(r.live),
		Wake: func(key types.NamespacedName) {
			if q := wakes.Load(); q != nil {
				(*q).Add(key)
			}
		},
		Observer: metrics.Sampler{},
		Now:      r.clock.Now,
	})
}

// tokenReader reads one key of one Secret, from the API server and for this sample
// alone: no Secret is cached or watched, and the manager has the right only where
// somebody bound it.
func tokenReader(live client.Reader) prom.TokenReader {
	return func(ctx context.Context, namespace, name, key string) (string, error) {
		var s corev1.Secret
		if err := live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &s); err != nil {
			return "", err
		}
		token, ok := s.Data[key]
		if !ok {
			return "", fmt.Errorf("Secret %s/%s has no key %q", namespace, name, key)
		}
		return string(token), nil
	}
}

// withSamples hands core what was measured.
func (r *reconciler) withSamples(w *core.World) {
	w.Reach = promql.Reach
	if r.sampler != nil {
		w.Samples = r.sampler.Samples(w.Key)
	}
}

// askFor asks for the samples that a decision wants; asking twice is asking once.
func (r *reconciler) askFor(d *core.Decision) {
	if r.sampler == nil {
		return
	}
	for _, request := range d.Samples {
		r.sampler.Ask(request)
	}
}
