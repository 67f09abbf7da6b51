package controller

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/core/plan"
)

// policyReconciler keeps the status of RolloutPolicies. It writes nothing else: what a policy moves,
// it moves through the services that refer to it, whose own passes look it up.
type policyReconciler struct {
	stores   stores
	settings *operatorSettings
	writer   Writer
	clock    clock.PassiveClock
}

func (c *Controller) policyController(w *watched, r *reconciler) (ctrl.TypedController[types.NamespacedName], error) {
	controller, err := ctrl.NewTypedUnmanaged("rolloutpolicy", ctrl.TypedOptions[types.NamespacedName]{
		MaxConcurrentReconciles: 1,
		Reconciler:              &policyReconciler{stores: r.stores, settings: r.settings, writer: r.writer, clock: r.clock},
		LogConstructor: func(key *types.NamespacedName) logr.Logger {
			l := c.mgr.GetLogger().WithName("policies")
			if key != nil {
				l = l.WithValues("namespace", key.Namespace, "policy", key.Name)
			}
			return l
		},
		RecoverPanic:       ptr.To(true),
		SkipNameValidation: ptr.To(c.options.SkipNameValidation),
		RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](failureFirst, failureLast),
	})
	if err != nil {
		return nil, err
	}
	return controller, controller.Watch(source.TypedFunc[types.NamespacedName](func(_ context.Context, q queue) error {
		return feedPolicies(w, r.stores, q)
	}))
}

// feedPolicies wakes a policy for its own changes, for those of references to it and for those of
// the operator's settings.
func feedPolicies(w *watched, s stores, q queue) error {
	for k, handler := range map[kind]toolscache.ResourceEventHandler{
		kindPolicy:    policyEvents(q),
		kindService:   referenceEvents(q),
		kindConfigMap: policySettingsEvents(s, q),
	} {
		if _, err := w.informers[k].AddEventHandler(handler); err != nil {
			return err
		}
	}
	return nil
}

func policyEvents(q queue) toolscache.ResourceEventHandler {
	add := func(obj any) {
		if p, ok := obj.(*v1beta1.RolloutPolicy); ok {
			q.Add(keyOf(p))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, after any) { add(after) }}
}

// referenceEvents wakes the policies that a service refers to, before and after a change of it.
func referenceEvents(q queue) toolscache.ResourceEventHandler {
	add := func(obj any) {
		if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = last.Obj
		}
		if isvc, ok := obj.(*v1beta1.InferenceService); ok {
			for _, name := range plan.PolicyNames(isvc.Spec.Rollout) {
				q.Add(types.NamespacedName{Namespace: isvc.Namespace, Name: name})
			}
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: add,
		UpdateFunc: func(before, after any) {
			old, ok1 := before.(*v1beta1.InferenceService)
			now, ok2 := after.(*v1beta1.InferenceService)
			if ok1 && ok2 && old.Generation == now.Generation && (old.DeletionTimestamp == nil) == (now.DeletionTimestamp == nil) {
				return // a status, of which a rollout writes many
			}
			add(before)
			add(after)
		},
		DeleteFunc: add,
	}
}

func policySettingsEvents(s stores, q queue) toolscache.ResourceEventHandler {
	wakeAll := func() {
		for _, p := range listOf[*v1beta1.RolloutPolicy](s[kindPolicy].List()) {
			q.Add(keyOf(p))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { wakeAll() },
		UpdateFunc: func(before, after any) {
			old, ok1 := before.(*corev1.ConfigMap)
			cm, ok2 := after.(*corev1.ConfigMap)
			if ok1 && ok2 && !sameSettings(old, cm) {
				wakeAll()
			}
		},
		DeleteFunc: func(any) { wakeAll() },
	}
}

// Reconcile writes the status of one policy when it is no longer true. A conflict means that the
// cache is behind, and is tried again quietly.
func (r *policyReconciler) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	p, ok := getAs[*v1beta1.RolloutPolicy](r.stores[kindPolicy], key.String())
	if !ok || p.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	set, _ := r.settings.get(r.stores)
	next := r.next(p, set)
	before := statusPart{&p.Status}
	if p.Status.ObservedGeneration == 0 {
		before = statusPart{struct{}{}} // so that a count of zero is written too
	}
	patch, err := difference(before, statusPart{&next}, p.ResourceVersion)
	if err != nil || patch == nil {
		return reconcile.Result{}, err
	}
	w := &Write{
		Kind: WritePolicyStatus, Verb: VerbPatch, Subresource: "status", PatchType: types.MergePatchType, Patch: patch,
		Object: &v1beta1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}},
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	err = r.writer.Write(call, w)
	switch {
	case err == nil:
		return reconcile.Result{}, nil
	case classify(w, err) == conflicted:
		return reconcile.Result{RequeueAfter: conflictFirst}, nil
	}
	return reconcile.Result{}, fmt.Errorf("status of RolloutPolicy %s: %w", key, err)
}

func (r *policyReconciler) next(p *v1beta1.RolloutPolicy, set config.Settings) v1beta1.RolloutPolicyStatus {
	attached := int32(0)
	for _, isvc := range listOf[*v1beta1.InferenceService](r.stores[kindService].Index(byPolicy, localRef(p.Namespace, p.Name))) {
		if isvc.DeletionTimestamp == nil {
			attached += plan.Attached(isvc.Spec.Rollout, p.Name)
		}
	}
	bound := func(name string) bool {
		_, ok := set.MetricProviders[name]
		return ok
	}
	return plan.PolicyStatus(p, policyProblem(p, set), attached, bound, r.clock.Now())
}
