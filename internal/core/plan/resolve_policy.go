package plan

import (
	"fmt"

	"ome.io/ome/api/v1beta1"
)

// Sources are what a group may take from elsewhere.
type Sources struct {
	// Policies are the RolloutPolicies that the spec refers to, by name. Nil means that the
	// cluster has no such kind.
	Policies map[string]Policy
	// Unread is set where policies can't be looked up: a group that takes its progression from
	// one that isn't given then has its shape, no digest, and parks nothing.
	Unread bool
	// Bound says whether a metric provider is bound. Nil means that nobody looked, and then
	// none is missed.
	Bound func(name string) bool
}

// Policy is a RolloutPolicy as it can be used.
type Policy struct {
	Spec       v1beta1.RolloutPolicySpec
	Generation int64
	// Digest is the portable digest of the spec.
	Digest string
	// Problem is what speaks against using it; empty when nothing does.
	Problem string
}

// NewPolicy reads a policy. The problem is the caller's judgement of its body.
func NewPolicy(p *v1beta1.RolloutPolicy, problem string) Policy {
	digest, err := PolicyDigest(&p.Spec)
	if err != nil && problem == "" {
		problem = err.Error()
	}
	return Policy{Spec: p.Spec, Generation: p.Generation, Digest: digest, Problem: problem}
}

// takePolicy writes the progression of a policy into a group of the plan, or parks and
// keeps the shape that the reference promises.
func (r *Resolution) takePolicy(i int, ref *v1beta1.RolloutPolicyRef, from *Sources, pinned *v1beta1.RunGroup) {
	pinned.Source, pinned.PolicyRef = v1beta1.SourcePolicy, ref.DeepCopy()
	setKind(&pinned.Group, ref.Progression)
	where := fmt.Sprintf("groups[%d].policyRef: RolloutPolicy %q", i, ref.Name)
	switch {
	case !KnownPolicyKind(ref.Kind):
		r.park(v1beta1.ReasonPlanInvalid, "groups[%d].policyRef.kind: %q is reserved; use %s, or write the progression into the group", i, ref.Kind, v1beta1.RolloutPolicyKind)
		return
	case from.Policies == nil && !from.Unread:
		r.park(v1beta1.ReasonPlanInvalid, "%s can't be read: the manager found no RolloutPolicies in this cluster when it started; "+
			"install their CRD and restart the manager, or write the progression into the group", where)
		return
	}
	p, ok := from.Policies[ref.Name]
	if !ok && from.Unread {
		return
	}
	if !ok {
		r.park(v1beta1.ReasonPolicyNotFound, "%s does not exist in the service's namespace; create it, or write the progression into the group", where)
		return
	}
	pinned.PortableDigest, pinned.PolicyGeneration = p.Digest, p.Generation
	body := GroupOfPolicy(p.Spec.DeepCopy())
	switch kind := Kind(body); {
	case p.Problem != "":
		r.park(v1beta1.ReasonPolicyNotReady, "%s is not usable: %s", where, p.Problem)
	case p.Digest == "":
		r.park(v1beta1.ReasonPolicyNotReady, "%s is not usable: spec: exactly one of canary, blueGreen, or rollingUpdate must be set", where)
	case kind != ref.Progression:
		r.park(v1beta1.ReasonProgressionMismatch, "%s holds %s and the group expects %s; change policyRef.progression, or refer to another policy", where, kind, ref.Progression)
	default:
		pinned.Group.Canary, pinned.Group.BlueGreen, pinned.Group.RollingUpdate = body.Canary, body.BlueGreen, body.RollingUpdate
	}
}

// setKind gives a group an empty progression, which keeps the shape of a parked plan right.
func setKind(g *v1beta1.RolloutGroup, kind v1beta1.Progression) {
	switch kind {
	case v1beta1.ProgressionCanary:
		g.Canary = &v1beta1.GroupCanary{}
	case v1beta1.ProgressionRollingUpdate:
		g.RollingUpdate = &v1beta1.GroupRollingUpdate{}
	default:
		g.BlueGreen = &v1beta1.GroupBlueGreen{}
	}
}

// shadowed tells of a policy that the group's own progression outranks, and what it would pin.
// What is wrong with it matters to nobody.
func (from *Sources) shadowed(ref *v1beta1.RolloutPolicyRef) *v1beta1.ShadowedRolloutPolicy {
	out := &v1beta1.ShadowedRolloutPolicy{Name: ref.Name}
	if KnownPolicyKind(ref.Kind) {
		out.WouldPinDigest = from.Policies[ref.Name].Digest
	}
	return out
}

// unbound is the metric provider that a canary needs and nobody has bound.
func (from *Sources) unbound(c *v1beta1.GroupCanary) string { return unbound(c, from.Bound) }

func unbound(c *v1beta1.GroupCanary, bound func(string) bool) string {
	if bound == nil || c == nil || c.Prometheus == nil || c.Prometheus.ProviderRef == nil {
		return ""
	}
	if name := c.Prometheus.ProviderRef.Name; !bound(name) {
		return name
	}
	return ""
}
