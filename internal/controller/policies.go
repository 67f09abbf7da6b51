package controller

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/settings"
	"ome.io/ome/internal/validate"
)

// PoliciesServed asks whether the cluster has RolloutPolicies, until it gets an answer. A manager
// asks once, when it starts: what it watches and what its webhooks admit must not part.
func PoliciesServed(ctx context.Context, mapper meta.RESTMapper, log logr.Logger) (bool, error) {
	for {
		_, err := mapper.RESTMapping(v1beta1.Kind(v1beta1.RolloutPolicyKind), v1beta1.Version)
		switch {
		case err == nil:
			log.Info("RolloutPolicies are here: groups may refer to them")
			return true, nil
		case meta.IsNoMatchError(err):
			log.Info("no CRD " + v1beta1.RolloutPolicyResource + "." + v1beta1.Group + ": a policyRef is refused until it is installed and this manager restarted")
			return false, nil
		}
		log.Info("waiting for the API server", "kind", v1beta1.RolloutPolicyKind, "error", err.Error())
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// StoredSettings reads the operator's settings once, for what is fixed when a manager starts.
func StoredSettings(ctx context.Context, reader client.Reader, namespace string, log logr.Logger) (config.Settings, error) {
	for {
		// A list, since that is what the manager may do; it can be narrowed to one name.
		list := &corev1.ConfigMapList{}
		err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"metadata.name": settings.ConfigMapName})
		if err == nil {
			var cm *corev1.ConfigMap
			if len(list.Items) > 0 {
				cm = &list.Items[0]
			}
			set, _ := parseSettings(cm)
			return set, nil
		}
		log.Info("waiting for the API server", "kind", string(kindConfigMap), "error", err.Error())
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return config.Settings{}, ctx.Err()
		}
	}
}

// policyProblem says why the body of a policy can't be used, by the rules of admission: it may have
// been stored before a rule, or past the webhook.
func policyProblem(p *v1beta1.RolloutPolicy, set config.Settings) string {
	const most = 1024 // of the text, which goes into conditions
	fresh := &v1beta1.RolloutPolicy{Spec: p.Spec}
	result := validate.RolloutPolicy(fresh, nil, validate.Options{PoliciesServed: true, MaxPlanBytes: set.Rollout.MaxPinnedPlanBytes})
	text := result.Denial()
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// policyCache keeps what became of the policies that one service refers to: judging a body costs
// more than a pass does, and bodies hardly ever change.
type policyCache struct {
	max  int32
	read map[*v1beta1.RolloutPolicy]plan.Policy
}

// of looks the policies of a service up. It is nil where the cluster has no such kind.
func (c *policyCache) of(s stores, isvc *v1beta1.InferenceService, set config.Settings) map[string]plan.Policy {
	store, ok := s[kindPolicy]
	if !ok {
		return nil
	}
	out := map[string]plan.Policy{}
	if isvc == nil {
		return out
	}
	// Objects in a cache are replaced, never changed.
	next := map[*v1beta1.RolloutPolicy]plan.Policy{}
	for _, name := range plan.PolicyNames(isvc.Spec.Rollout) {
		p, ok := getAs[*v1beta1.RolloutPolicy](store, isvc.Namespace+"/"+name)
		if !ok {
			continue
		}
		judged, known := c.read[p]
		if !known || c.max != set.Rollout.MaxPinnedPlanBytes {
			judged = plan.NewPolicy(p, policyProblem(p, set))
		}
		next[p], out[name] = judged, judged
	}
	c.read, c.max = next, set.Rollout.MaxPinnedPlanBytes
	return out
}

// samePolicy is true for a change that no service could notice: of a policy's status or metadata.
func samePolicy(before, after any) bool {
	old, ok1 := before.(*v1beta1.RolloutPolicy)
	now, ok2 := after.(*v1beta1.RolloutPolicy)
	return ok1 && ok2 && old.UID == now.UID && old.Generation == now.Generation
}
