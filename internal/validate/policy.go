package validate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// RolloutPolicy judges a policy's progression by the rules of an inline one and by those that only a
// shared one has. old is nil on create. Whether the policy is in use is judged apart, by
// PolicyUpdate and PolicyDelete, since that takes a look at the services.
func RolloutPolicy(p, old *v1beta1.RolloutPolicy, opts Options) Result {
	var r Result
	if p.DeletionTimestamp != nil {
		return r
	}
	if old == nil || !equality.Semantic.DeepEqual(p.Spec, old.Spec) {
		checkPolicyBody(&r, &p.Spec, opts)
	}
	var before map[string]string
	if old != nil {
		before = old.Annotations
	}
	checkAnnotations(&r, p.Annotations, before)
	checkAllowDelete(&r, p.Annotations, before)
	return r
}

// checkPolicyBody judges the progression itself.
func checkPolicyBody(r *Result, s *v1beta1.RolloutPolicySpec, opts Options) {
	if !plan.OneProgression(s) {
		// The schema asks for it too; a body from a file hasn't met the schema.
		r.refuse("spec", CodeRolloutPolicyInvalid, "exactly one of canary, blueGreen, or rollingUpdate must be set")
		return
	}
	if s.RollingUpdate != nil {
		checkPair(r, "spec.rollingUpdate", s.RollingUpdate.MaxSurge, s.RollingUpdate.MaxUnavailable)
	}
	if s.Canary != nil {
		// A group of any members may refer to it, so its queries may be about any of them.
		checkCanary(r, "spec.canary", s.Canary, v1beta1.Components()...)
		checkSharedCanary(r, s.Canary)
	}
	checkPlanSize(r, "spec", plan.GroupOfPolicy(s), opts)
}

// checkSharedCanary refuses what means something in one service only: a count of Instances, an
// address and a Secret.
func checkSharedCanary(r *Result, c *v1beta1.GroupCanary) {
	const field = "spec.canary.prometheus"
	analysed := false
	for i := range c.Steps {
		step := &c.Steps[i]
		analysed = analysed || step.Analysis != nil
		if step.Capacity.Type == intstr.Int {
			r.refuse(fmt.Sprintf("spec.canary.steps[%d].capacity", i), CodeRolloutPolicyInvalid,
				"%d is a count, which fits services of one size only; use a percentage such as \"25%%\"", step.Capacity.IntVal)
		}
	}
	source := c.Prometheus
	if source != nil && source.ServerAddress != "" {
		r.refuseLine(field+".serverAddress", CodeRolloutPolicyInvalid, "spec.canary.prometheus.serverAddress is not allowed in a policy body; "+
			"bind the server under metricProviders in the operator's settings and name it in providerRef")
	}
	if source != nil && source.AuthRef != nil {
		r.refuseLine(field+".authRef", CodeRolloutPolicyInvalid, "spec.canary.prometheus.authRef is not allowed in a policy body; "+
			"the Secret belongs to the binding under metricProviders in the operator's settings")
	}
	if analysed && (source == nil || source.ProviderRef == nil) {
		r.refuseLine(field+".providerRef", CodeRolloutPolicyInvalid, "spec.canary.prometheus.providerRef is required when any step declares analysis; "+
			"name a server of metricProviders in the operator's settings")
	}
}

// checkPlanSize refuses a progression that would make every status that pins it large.
func checkPlanSize(r *Result, field string, g *v1beta1.RolloutGroup, opts Options) {
	if opts.MaxPlanBytes <= 0 {
		return
	}
	raw, err := json.Marshal(plan.PolicyOfGroup(g))
	if err != nil {
		r.refuse(field, CodePlanTooLarge, "the progression can't be written out: %v", err)
		return
	}
	if len(raw) > int(opts.MaxPlanBytes) {
		r.refuse(field, CodePlanTooLarge, "the progression takes %d bytes and rollout.maxPinnedPlanBytes allows %d; use fewer steps or shorter queries", len(raw), opts.MaxPlanBytes)
	}
}

// checkAllowDelete tells of a value that looks like permission and is none.
func checkAllowDelete(r *Result, annotations, before map[string]string) {
	value, set := annotations[v1beta1.AllowInUseDeleteAnnotation]
	if set && value != "true" && slices.Contains(changedKeys(annotations, before), v1beta1.AllowInUseDeleteAnnotation) {
		r.warn("metadata.annotations["+v1beta1.AllowInUseDeleteAnnotation+"]", "", `%q allows nothing; only "true" does`, value)
	}
}

// PolicyUpdate judges an update of a policy that these services refer to.
func PolicyUpdate(p, old *v1beta1.RolloutPolicy, users []string) Result {
	var r Result
	if p.DeletionTimestamp != nil || len(users) == 0 || equality.Semantic.DeepEqual(p.Spec, old.Spec) {
		return r
	}
	was, is := plan.Kind(plan.GroupOfPolicy(&old.Spec)), plan.Kind(plan.GroupOfPolicy(&p.Spec))
	if was != is {
		r.refuse("spec", CodeRolloutPolicyInvalid, "%s to %s changes the kind of a policy that %s; create a new policy and refer to that", was, is, inUse(users))
		return r
	}
	r.warn("spec", "", "%s; open runs keep what they pinned, and each takes this at its next run, or by repin", inUse(users))
	return r
}

// PolicyDelete judges the delete of a policy that these services refer to.
func PolicyDelete(p *v1beta1.RolloutPolicy, users []string) Result {
	var r Result
	if len(users) > 0 && p.Annotations[v1beta1.AllowInUseDeleteAnnotation] != "true" {
		r.refuse("", "", `RolloutPolicy "%s" is referenced by %d InferenceService(s): %s; remove the refs first, or set the %s="true" annotation to force deletion`,
			p.Name, len(users), some(users), v1beta1.AllowInUseDeleteAnnotation)
	}
	return r
}

func inUse(users []string) string {
	return fmt.Sprintf("%d InferenceService(s) refer to: %s", len(users), some(users))
}

// some names ten at most.
func some(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
