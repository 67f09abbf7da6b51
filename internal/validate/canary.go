package validate

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/prom/source"
)

// readsCanaries is what the rules of canary groups look at. They compare nothing when there is no
// such group, so that an edit of replica counts elsewhere doesn't wake them.
func readsCanaries(s *v1beta1.InferenceService) any {
	if s.Spec.Rollout == nil || !slices.ContainsFunc(s.Spec.Rollout.Groups, isCanary) {
		return nil
	}
	return []any{s.Spec.Rollout, forComponents(s, func(_ v1beta1.ComponentType, e *v1beta1.ComponentExtensionSpec) any { return e.MinReplicas })}
}

func isCanary(g v1beta1.RolloutGroup) bool { return plan.Kind(&g) == v1beta1.ProgressionCanary }

// checkCanaries judges the canary groups of a service: who is in them, and their steps.
func checkCanaries(r *Result, s *v1beta1.InferenceService) {
	if s.Spec.Rollout == nil {
		return
	}
	groups := s.Spec.Rollout.Groups
	unitOf := map[string]int{}
	for i := range groups {
		g := &groups[i]
		if !isCanary(*g) {
			continue
		}
		checkCanaryMembers(r, s, i, unitOf)
		if g.MaintainRatio != nil {
			r.refuse(groupField(i, ".maintainRatio"), CodeCanaryInvalid, "a canary keeps the ratio by the capacity of its steps; remove it")
		}
		if g.Canary != nil {
			checkCanary(r, groupField(i, ".canary"), g.Canary, primary(g.Components))
		}
	}
}

// primary is the member whose names and revisions the canary's queries are filled in with.
func primary(members []v1beta1.ComponentType) v1beta1.ComponentType {
	for _, c := range []v1beta1.ComponentType{v1beta1.RouterComponent, v1beta1.EngineComponent} {
		if slices.Contains(members, c) {
			return c
		}
	}
	return v1beta1.DecoderComponent
}

// checkCanaryMembers keeps the units of canaries whole and apart: router is one, engine and
// decoder together the other.
func checkCanaryMembers(r *Result, s *v1beta1.InferenceService, i int, unitOf map[string]int) {
	members := s.Spec.Rollout.Groups[i].Components
	field := groupField(i, ".components")
	has := func(c v1beta1.ComponentType) bool { return slices.Contains(members, c) }
	if s.Spec.Engine != nil && s.Spec.Decoder != nil {
		switch {
		case has(v1beta1.DecoderComponent) && !has(v1beta1.EngineComponent):
			r.refuse(field, CodeCanaryInvalid, "the canary unit of engine and decoder must include its entrypoint Component %q; add it", v1beta1.EngineComponent)
		case has(v1beta1.EngineComponent) && !has(v1beta1.DecoderComponent):
			r.refuse(field, CodeCanaryInvalid, "the service declares engine and decoder, and a canary group naming either must name both; add decoder")
		}
	}
	mine := map[string]bool{}
	for _, c := range members {
		e := s.Spec.Extension(c)
		if e == nil {
			continue // told by the rules of all groups
		}
		if e.MinReplicas != nil && *e.MinReplicas == 0 {
			r.refuse(component(c, ".minReplicas"), CodeCanaryInvalid,
				"0 makes every step of the canary in groups[%d] a step of no Instances; use 1 or more, or blueGreen", i)
		}
		unit := string(v1beta1.RouterComponent)
		if c != v1beta1.RouterComponent {
			unit = "engine and decoder"
		}
		if mine[unit] {
			continue
		}
		mine[unit] = true
		if at, taken := unitOf[unit]; taken {
			r.refuse(field, CodeMultipleCanaryGroups, "groups[%d] is a canary of the unit %s already; a unit has one canary group", at, unit)
			continue
		}
		unitOf[unit] = i
	}
}

// checkCanary judges the progression itself, of a service or of a policy; where is its path, and
// primaries are the components that its queries may be about: any, for a policy.
func checkCanary(r *Result, where string, c *v1beta1.GroupCanary, primaries ...v1beta1.ComponentType) {
	if len(c.Steps) == 0 {
		r.refuse(where+".steps", CodeCanaryInvalid, "a canary has at least one step; the last one has capacity \"100%%\" and traffic 100")
	}
	for i := range c.Steps {
		checkStep(r, fmt.Sprintf("%s.steps[%d]", where, i), c.Steps, i, primaries)
	}
	if d := c.ReadyTimeout; d != nil && d.Duration <= 0 {
		r.refuse(where+".readyTimeout", CodeCanaryInvalid, "%s must be > 0; remove it to take the operator's value", d.Duration)
	}
	if n := c.ScaleDownDelaySeconds; n != nil && *n < 0 {
		r.refuse(where+".scaleDownDelaySeconds", CodeCanaryInvalid, "%d is negative; use 0 or more", *n)
	}
	checkPrometheus(r, where+".prometheus", c.Prometheus)
}

func checkStep(r *Result, field string, steps []v1beta1.RolloutGroupStep, i int, primaries []v1beta1.ComponentType) {
	step := &steps[i]
	ok := checkCapacity(r, field+".capacity", step.Capacity)
	if ok && step.Traffic > 0 && isZero(step.Capacity) {
		r.refuse(field+".traffic", CodeCanaryInvalid, "%d%% of the traffic for a capacity of %s, which is no Instance; raise capacity or set traffic to 0", step.Traffic, step.Capacity.String())
	}
	if p := step.Pause; p != nil && p.Duration != nil && p.Duration.Duration < 0 {
		r.refuse(field+".pause.duration", CodeCanaryInvalid, "%s is negative; remove duration to wait for a promote", p.Duration.Duration)
	}
	if step.Analysis != nil {
		checkAnalysis(r, field+".analysis", step.Analysis, primaries)
		if step.Pause != nil && step.Pause.Duration == nil {
			r.warn(field+".pause", "", "has no effect beside an analysis, which is what the step waits for; set a duration to let it bake, or remove it")
		}
	}
	if i > 0 {
		before := &steps[i-1]
		if step.Traffic < before.Traffic {
			r.refuse(field+".traffic", CodeCanaryInvalid, "%d is less than the %d of the step before; traffic never falls", step.Traffic, before.Traffic)
		}
		switch {
		case equality.Semantic.DeepEqual(step, before):
			r.warn(field, "", "is the same as the step before; it only repeats its gate")
		case ok && less(step.Capacity, before.Capacity):
			r.warn(field+".capacity", "", "%s is less than the %s of the step before; a later step takes no Instance back", step.Capacity.String(), before.Capacity.String())
		}
	}
	if i < len(steps)-1 {
		return
	}
	if step.Traffic != 100 {
		r.refuse(field+".traffic", CodeCanaryInvalid, "%d in the last step; it must be 100", step.Traffic)
	}
	switch {
	case !ok:
	case step.Capacity.Type == intstr.Int:
		r.warn(field+".capacity", "", "%d in the last step is taken for all Instances; write \"100%%\"", step.Capacity.IntVal)
	default:
		if n, _ := percent(step.Capacity.StrVal); n != 100 {
			r.refuse(field+".capacity", CodeCanaryInvalid, "%q in the last step; it must be \"100%%\"", step.Capacity.StrVal)
		}
	}
}

// checkCapacity judges the spelling of a step's capacity.
func checkCapacity(r *Result, field string, v intstr.IntOrString) bool {
	if v.Type == intstr.Int {
		if v.IntVal < 0 {
			r.refuse(field, CodeCanaryInvalid, "%d is negative; use 0 or more", v.IntVal)
			return false
		}
		return true
	}
	if _, ok := percent(v.StrVal); !ok {
		r.refuse(field, CodeCanaryInvalid, `%q is not a percentage from "0%%" to "100%%"; a count is written without quotes`, v.StrVal)
		return false
	}
	return true
}

// less compares two capacities of one kind; a count and a percentage don't compare here.
func less(a, b intstr.IntOrString) bool {
	if a.Type != b.Type {
		return false
	}
	if a.Type == intstr.Int {
		return a.IntVal < b.IntVal
	}
	x, okx := percent(a.StrVal)
	y, oky := percent(b.StrVal)
	return okx && oky && x < y
}

// checkPrometheus judges where a canary's queries are sent. Nothing is looked up.
func checkPrometheus(r *Result, field string, p *v1beta1.AnalysisPrometheus) {
	if p == nil {
		return
	}
	if p.ServerAddress != "" {
		if _, err := source.Address(p.ServerAddress); err != nil {
			r.refuse(field+".serverAddress", CodeAnalysisInvalid, "%v", err)
		}
	}
	if p.AuthRef != nil && (p.AuthRef.Name == "" || p.AuthRef.Key == "") {
		r.refuse(field+".authRef", CodeAnalysisInvalid, "name %q and key %q must name a Secret of the namespace and a key in it", p.AuthRef.Name, p.AuthRef.Key)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		if err := source.Header(name, p.Headers[name]); err != nil {
			r.refuse(field+".headers["+name+"]", CodeAnalysisInvalid, "%v", err)
		}
	}
}
