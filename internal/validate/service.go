package validate

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"ome.io/ome/api/v1beta1"
)

// Options say who asks and what the installation has.
type Options struct {
	// FromManager is true for requests under the manager's own identity.
	FromManager bool
	// KEDAServed is true where the cluster has ScaledObjects.
	KEDAServed bool
	// PoliciesServed is true where the manager found RolloutPolicies when it started.
	PoliciesServed bool
	// MaxPlanBytes caps the JSON of one progression. 0: no cap.
	MaxPlanBytes int32
}

// rule is judged on create, and on an update when what it reads has changed.
type rule struct {
	reads func(*v1beta1.InferenceService) any
	check func(r *Result, s *v1beta1.InferenceService)
}

// serviceRules are the rules on the spec, in the order their problems are reported.
var serviceRules = []rule{
	{readsSource, checkSource},
	{readsLeaderWorker, checkLeaderWorker},
	{readsModes, checkModeCombination},
	{readsStrategies, checkDeploymentStrategy},
	{readsRollout, checkGroups},
	{readsCanaries, checkCanaries},
	{readsBudgets, checkBudgets},
	{readsBounds, checkBounds},
	{readsDisruption, checkDisruption},
	{readsScaling, checkScaling},
	{readsAutoscalers, checkAutoscalers},
	{readsPin, checkPin},
}

// InferenceService judges a service. old is nil on create.
func InferenceService(s, old *v1beta1.InferenceService, opts Options) Result {
	var r Result
	// An object on its way out must be able to lose its finalizers, whatever is wrong with it.
	if s.DeletionTimestamp != nil {
		return r
	}
	if old == nil || !hasOMENative(old) {
		checkName(&r, s)
	}
	for _, rule := range serviceRules {
		if old == nil || !equality.Semantic.DeepEqual(rule.reads(s), rule.reads(old)) {
			rule.check(&r, s)
		}
	}
	if old != nil {
		checkPairingChange(&r, s, old)
		checkLockstep(&r, s, old)
	}
	checkPlanOptions(&r, s, old, opts)
	checkUnsupported(&r, s, old)
	checkKEDA(&r, s, old, opts)
	if !opts.FromManager {
		var before map[string]string
		if old != nil {
			before = old.Annotations
		}
		checkAnnotations(&r, s.Annotations, before)
		checkComponentAnnotations(&r, s, old)
		checkRequests(&r, s.Annotations, before)
		checkRollback(&r, s, before)
		checkAddressee(&r, s, before)
	}
	return r
}

// forComponents collects one value from each declared component.
func forComponents(s *v1beta1.InferenceService, value func(v1beta1.ComponentType, *v1beta1.ComponentExtensionSpec) any) any {
	var out []any
	for _, c := range v1beta1.IsvcComponents(s) {
		out = append(out, c, value(c, s.Spec.Extension(c)))
	}
	return out
}

func component(c v1beta1.ComponentType, rest string) string {
	return "spec." + string(c) + rest
}

func readsSource(s *v1beta1.InferenceService) any {
	return []bool{s.Spec.Model != nil, s.Spec.Runtime != nil, s.Spec.ReplicaRefs != nil}
}

func checkSource(r *Result, s *v1beta1.InferenceService) {
	if s.Spec.Model == nil && s.Spec.Runtime == nil && s.Spec.ReplicaRefs == nil {
		r.refuse("", "", "at least one of spec.model or spec.runtime must be set")
	}
}

type shape struct{ leader, worker bool }

func shapes(s *v1beta1.InferenceService) map[v1beta1.ComponentType]shape {
	out := map[v1beta1.ComponentType]shape{}
	if e := s.Spec.Engine; e != nil {
		out[v1beta1.EngineComponent] = shape{e.Leader != nil, e.Worker != nil}
	}
	if d := s.Spec.Decoder; d != nil {
		out[v1beta1.DecoderComponent] = shape{d.Leader != nil, d.Worker != nil}
	}
	return out
}

func readsLeaderWorker(s *v1beta1.InferenceService) any {
	// Plain values, since the comparison sees exported fields only.
	var out []bool
	for _, c := range v1beta1.Components() {
		out = append(out, shapes(s)[c].leader, shapes(s)[c].worker)
	}
	return out
}

func checkLeaderWorker(r *Result, s *v1beta1.InferenceService) {
	for _, c := range v1beta1.Components() {
		switch is := shapes(s)[c]; {
		case is.leader && !is.worker:
			r.refuse(component(c, ".leader"), CodeInvalidLeaderWorkerPairing, "set without worker; set %s too, or remove leader", component(c, ".worker"))
		case is.worker && !is.leader:
			r.refuse(component(c, ".worker"), CodeInvalidLeaderWorkerPairing, "set without leader; set %s too, or remove worker", component(c, ".leader"))
		}
	}
}

func readsModes(s *v1beta1.InferenceService) any {
	return forComponents(s, func(c v1beta1.ComponentType, _ *v1beta1.ComponentExtensionSpec) any { return s.Spec.DeclaredMode(c) })
}

func checkModeCombination(r *Result, s *v1beta1.InferenceService) {
	if s.Spec.Engine == nil || s.Spec.Decoder == nil {
		return
	}
	engine, decoder := s.Spec.DeclaredMode(v1beta1.EngineComponent), s.Spec.DeclaredMode(v1beta1.DecoderComponent)
	if (engine == v1beta1.OMENativeMode) != (decoder == v1beta1.OMENativeMode) {
		r.refuse("spec.decoder", CodeInvalidDeploymentModeCombination,
			"engine declares deploymentMode=%q and decoder %q; declare OMENative for both, in spec.deploymentMode or the components' %s annotations, or for neither",
			engine, decoder, v1beta1.DeploymentModeAnnotation)
	}
}

func readsStrategies(s *v1beta1.InferenceService) any {
	return forComponents(s, func(c v1beta1.ComponentType, e *v1beta1.ComponentExtensionSpec) any {
		return []any{e.DeploymentStrategy, s.Spec.DeclaredMode(c)}
	})
}

func checkDeploymentStrategy(r *Result, s *v1beta1.InferenceService) {
	for _, c := range v1beta1.IsvcComponents(s) {
		if s.Spec.Extension(c).DeploymentStrategy != nil && s.Spec.DeclaredMode(c) == v1beta1.OMENativeMode {
			r.warn(component(c, ".deploymentStrategy"), "", "has no effect on an OMENative component; use %s", component(c, ".lifecycle.updateStrategy"))
		}
	}
}

// readsPin reads only whether a revision is named without a pin.
func readsPin(s *v1beta1.InferenceService) any { return s.Spec.Runtime }

func checkPin(r *Result, s *v1beta1.InferenceService) {
	ref := s.Spec.Runtime
	if ref != nil && ref.Revision != "" && (ref.AutoSync == nil || *ref.AutoSync) {
		r.refuse("spec.runtime.revision", "", "%q needs spec.runtime.autoSync: false; set it, or remove revision", ref.Revision)
	}
}

// hasOMENative reports whether some component runs, or would run, as an InferenceReplica.
func hasOMENative(s *v1beta1.InferenceService) bool {
	if s.Spec.DeploymentMode == v1beta1.OMENativeMode {
		return true
	}
	for _, is := range shapes(s) {
		if is.leader || is.worker {
			return true
		}
	}
	return slices.ContainsFunc(v1beta1.IsvcComponents(s), func(c v1beta1.ComponentType) bool {
		return s.Spec.DeclaredMode(c) == v1beta1.OMENativeMode
	})
}
