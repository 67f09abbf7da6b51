package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// PolicyStatus is the next status of a policy. The problem is what speaks against its body,
// attached the number of groups that refer to it.
func PolicyStatus(p *v1beta1.RolloutPolicy, problem string, attached int32, bound func(string) bool, now time.Time) v1beta1.RolloutPolicyStatus {
	usable := NewPolicy(p, problem)
	next := v1beta1.RolloutPolicyStatus{
		ObservedGeneration: p.Generation, PortableDigest: usable.Digest, AttachedGroups: attached,
		// Conditions of others are not ours to drop.
		Conditions: append([]metav1.Condition(nil), p.Status.Conditions...),
	}
	ready := metav1.Condition{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonBodyValid, Message: "groups can use it"}
	provider := unbound(p.Spec.Canary, bound)
	switch {
	case usable.Problem != "":
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, v1beta1.ReasonBodyInvalid, usable.Problem
	case provider != "":
		ready.Reason = v1beta1.ReasonProviderUnbound
		ready.Message = "metric provider \"" + provider + "\" is not bound in this cluster's metricProviders configuration; groups that use this policy wait until it is"
	}
	use := metav1.Condition{Type: v1beta1.ConditionInUse, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonAttached, Message: "groups of this namespace refer to it"}
	if attached == 0 {
		use.Status, use.Reason, use.Message = metav1.ConditionFalse, v1beta1.ReasonNoConsumers, "no group of this namespace refers to it"
	}
	for _, c := range []metav1.Condition{ready, use} {
		c.ObservedGeneration = p.Generation
		next.Conditions = withCondition(next.Conditions, c, now)
	}
	return next
}

// withCondition puts a condition into its place; its time moves with its status only.
func withCondition(list []metav1.Condition, c metav1.Condition, now time.Time) []metav1.Condition {
	c.LastTransitionTime = metav1.NewTime(now)
	for i := range list {
		if list[i].Type != c.Type {
			continue
		}
		if list[i].Status == c.Status {
			c.LastTransitionTime = list[i].LastTransitionTime
		}
		list[i] = c
		return list
	}
	return append(list, c)
}

// Attached counts the groups of a service that refer to a policy.
func Attached(spec *v1beta1.RolloutSpec, policy string) int32 {
	n := int32(0)
	for _, name := range PolicyNames(spec) {
		if name == policy {
			n++
		}
	}
	return n
}
