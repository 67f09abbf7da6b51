package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"golang.org/x/sync/errgroup"

	"ome.io/ome/api/keda"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/settings"
)

// Options are the controller's.
type Options struct {
	// Namespace holds the settings ConfigMap.
	Namespace string
	// Workers is the number of services worked on at one time.
	Workers int
	// PoliciesServed is true when the cluster had RolloutPolicies as the manager started;
	// ask PoliciesServed.
	PoliciesServed bool
	// SkipDrain is the lab's negative control: pods go without leaving rotation first.
	SkipDrain bool
	// SkipPairing is another: no drain waits for a pair of engine and decoder.
	SkipPairing bool
	// Wrap, when set, stands between the passes and the API server: it can lose or
	// watch writes.
	Wrap func(Writer) Writer
	// CheckPurity proves after each decision that core wrote to nothing.
	CheckPurity bool
	// SkipNameValidation allows several managers in one process.
	SkipNameValidation bool
}

// Controller runs on the leader only.
type Controller struct {
	mgr     manager.Manager
	options Options
	leading atomic.Bool
	synced  atomic.Bool
}

var _ manager.LeaderElectionRunnable = (*Controller)(nil)

type schemer interface {
	ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error)
}

// Setup adds the controller to the manager.
func Setup(mgr manager.Manager, o Options) (*Controller, error) {
	if o.Namespace == "" {
		return nil, errors.New("controller: Namespace is empty; it says where the settings are")
	}
	if o.Workers < 1 {
		return nil, fmt.Errorf("controller: Workers is %d; it must be at least 1", o.Workers)
	}
	if err := keda.AddToScheme(mgr.GetScheme()); err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	c := &Controller{mgr: mgr, options: o}
	return c, mgr.Add(c)
}

// NeedLeaderElection makes the manager start the controller on the leader only.
func (c *Controller) NeedLeaderElection() bool { return true }

// Ready is nil unless this process leads and its caches are still being filled.
func (c *Controller) Ready() error {
	if c.leading.Load() && !c.synced.Load() {
		return errors.New("leading, and the caches are not filled yet")
	}
	return nil
}

// Start fills the caches and runs passes until ctx ends. The caches are filled
// only now: what they hold then includes all that an earlier leader wrote.
func (c *Controller) Start(ctx context.Context) error {
	c.leading.Store(true)
	defer c.leading.Store(false)
	log := c.mgr.GetLogger().WithName("controller")

	direct, err := client.New(c.mgr.GetConfig(), client.Options{
		HTTPClient: c.mgr.GetHTTPClient(), Scheme: c.mgr.GetScheme(), Mapper: c.mgr.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	latest := latestVersion(direct, c.mgr.GetScheme(), c.options.Namespace)
	watch, err := watchedKinds(ctx, c.mgr.GetRESTMapper(), c.options.PoliciesServed, log)
	if err != nil {
		return nil // told to stop
	}
	least, err := latestOfAll(ctx, latest, log, watch)
	if err != nil {
		return nil // told to stop
	}
	w, err := newWatched(ctx, c.mgr.GetConfig(), c.mgr.GetHTTPClient(), c.mgr.GetScheme(), c.mgr.GetRESTMapper(), c.options.Namespace, watch)
	if err != nil {
		return err
	}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.cache.Start(ctx) })
	group.Go(func() error {
		if !w.cache.WaitForCacheSync(ctx) {
			return ctx.Err()
		}
		if err := waitForVersions(ctx, w.stores(), least); err != nil {
			return err
		}
		log.Info("caches are filled")
		c.synced.Store(true)
		return c.runPasses(ctx, w, direct, latest)
	})
	err = group.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// latestOfAll asks until every kind answers: the API server may be starting, and
// the CRDs may come after the manager.
func latestOfAll(ctx context.Context, latest func(context.Context, kind) (string, error), log logr.Logger, kinds []kind) (map[kind]string, error) {
	least := map[kind]string{}
	for _, k := range kinds {
		for {
			at, err := latest(ctx, k)
			if err == nil {
				least[k] = at
				break
			}
			log.Info("waiting for the API server", "kind", k, "error", err.Error())
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	return least, nil
}

// waitForVersions waits until each store is at least as new as an answer that a
// quorum gave after this process became leader.
func waitForVersions(ctx context.Context, s stores, least map[kind]string) error {
	ticker := time.NewTicker(fenceFirst)
	defer ticker.Stop()
	for k := range least {
		for {
			at := s[k].Version()
			if at == "" {
				return fmt.Errorf("the cache of %s does not tell its version; the client library was started with informer versions turned off", k)
			}
			order, err := resourceversion.CompareResourceVersion(at, least[k])
			if err != nil {
				return fmt.Errorf("the cache of %s is at version %q: %w", k, at, err)
			}
			if order >= 0 {
				break
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

func (c *Controller) runPasses(ctx context.Context, w *watched, direct client.Client, latest func(context.Context, kind) (string, error)) error {
	var writer Writer = clientWriter{direct}
	if c.options.Wrap != nil {
		writer = c.options.Wrap(writer)
	}
	r := &reconciler{
		stores:      w.stores(),
		settings:    &operatorSettings{key: types.NamespacedName{Namespace: c.options.Namespace, Name: settings.ConfigMapName}},
		writer:      writer,
		live:        direct,
		latest:      latest,
		recorder:    c.mgr.GetEventRecorder("ome-manager"),
		clock:       clock.RealClock{},
		limits:      newLimits(),
		decide:      core.Decide,
		skipDrain:   c.options.SkipDrain,
		skipPairing: c.options.SkipPairing,
		checkPurity: c.options.CheckPurity,
	}
	var wakes atomic.Pointer[queue]
	pool := r.newPool(&wakes)
	r.sampler = pool
	controller, err := ctrl.NewTypedUnmanaged("inferenceservice", ctrl.TypedOptions[types.NamespacedName]{
		MaxConcurrentReconciles: c.options.Workers,
		Reconciler:              r,
		LogConstructor: func(key *types.NamespacedName) logr.Logger {
			l := c.mgr.GetLogger().WithName("controller")
			if key != nil {
				l = l.WithValues("namespace", key.Namespace, "service", key.Name)
			}
			return l
		},
		RecoverPanic:       ptr.To(true),
		SkipNameValidation: ptr.To(c.options.SkipNameValidation),
		RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](failureFirst, failureLast),
	})
	if err != nil {
		return err
	}
	feed := source.TypedFunc[types.NamespacedName](func(ctx context.Context, q workqueue.TypedRateLimitingInterface[types.NamespacedName]) error {
		var wake queue = q
		wakes.Store(&wake)
		return feed(w, r.stores, q, func(cm *corev1.ConfigMap) { c.settingsChanged(ctx, r, cm) })
	})
	if err := controller.Watch(feed); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if c.options.PoliciesServed {
		policies, err := c.policyController(w, r)
		if err != nil {
			return err
		}
		group.Go(func() error { return policies.Start(ctx) })
	}
	group.Go(func() error { return controller.Start(ctx) })
	group.Go(func() error { return pool.Start(ctx) })
	return group.Wait()
}

// settingsChanged runs beside the event handler, which must not wait for a write.
func (c *Controller) settingsChanged(ctx context.Context, r *reconciler, cm *corev1.ConfigMap) {
	go func() {
		r.settings.tellUnused(r.recorder, cm)
		if err := keepLastGood(ctx, r.writer, r.recorder, cm); err != nil && ctx.Err() == nil {
			c.mgr.GetLogger().Info("the last good settings could not be kept on their ConfigMap", "error", err.Error())
		}
	}()
}
