package view

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/validate"
)

// RolloutValidateReport is the report of `rollout validate`.
type RolloutValidateReport = Report[RolloutValidate]

// RolloutValidate says whether a service's rollout, traffic and scaling settings hold.
type RolloutValidate struct {
	Overall string          `json:"overall"`
	Checks  []ValidateCheck `json:"checks"`
	// Problems are what admission refuses, Advice what it warns of, in its words.
	Problems []ValidateProblem `json:"problems"`
	Advice   []ValidateProblem `json:"advice"`
	// NotChecked is what a file alone can't show.
	NotChecked []string `json:"notChecked"`
}

// ValidateCheck is one assertion.
type ValidateCheck struct {
	Check     string   `json:"check"`
	Component string   `json:"component,omitempty"`
	Result    string   `json:"result"`
	Evidence  string   `json:"evidence"`
	Freshness string   `json:"freshness"`
	Codes     []string `json:"codes"`
}

// ValidateProblem is one reason, under the check it belongs to.
type ValidateProblem struct {
	Check     string `json:"check"`
	Component string `json:"component,omitempty"`
	Code      string `json:"code,omitempty"`
	Field     string `json:"field,omitempty"`
	// Text is the line that admission answers with.
	Text string `json:"text"`
}

// Results of a check.
const (
	ResultValid         = "Valid"
	ResultInvalid       = "Invalid"
	ResultUnverifiable  = "Unverifiable"
	ResultNotApplicable = "NotApplicable"
)

// freshNotApplicable is the freshness of a check that has nothing to look at.
const freshNotApplicable = "NotApplicable"

// Checks, in their order. The last one holds every other rule of admission.
const (
	checkRefs              = "ROLLOUT-REFS"
	checkPlan              = "ROLLOUT-PLAN"
	checkOrder             = "ROLLOUT-ORDER"
	checkResolve           = "ROLLOUT-RESOLVE"
	checkTrafficSpec       = "TRAFFIC-SPEC"
	checkTrafficReady      = "TRAFFIC-READY"
	checkScalingPolicy     = "SCALING-POLICY"
	checkAutoscalerSpec    = "AUTOSCALER-SPEC"
	checkAutoscalerResolve = "AUTOSCALER-RESOLVE"
	checkAdmission         = "ADMISSION"
)

// BuildRolloutValidate judges a stored service.
func BuildRolloutValidate(s *v1beta1.InferenceService, now time.Time) *RolloutValidateReport {
	v := &validator{isvc: s, stored: true}
	// The service was admitted, so KEDA and RolloutPolicies were there; its name can't change any more.
	v.admission(validate.InferenceService(s, nil, asAdmitted), "metadata.name")
	return v.report(now, Source{v1beta1.InferenceServiceKind, safe(s.Namespace), safe(s.Name), string(s.UID), s.Generation, EvidenceObserved, stamp(now)})
}

// asAdmitted takes for granted what only the cluster could deny.
var asAdmitted = validate.Options{KEDAServed: true, PoliciesServed: true}

// BuildFileValidate judges a service from a file as admission would judge its
// creation, with the RolloutPolicies that the file holds beside it. typos are fields
// that the API doesn't have.
func BuildFileValidate(s *v1beta1.InferenceService, typos []string, now time.Time, policies ...*v1beta1.RolloutPolicy) *RolloutValidateReport {
	v := &validator{isvc: s, policies: map[string]plan.Policy{}}
	v.out.NotChecked = []string{
		"the ranges and patterns of the CRD, which the API server checks",
		"whether the model, the runtime and the policies that it names exist",
		"rules about edits, which compare with the stored service",
	}
	if slices.ContainsFunc(v1beta1.IsvcComponents(s), func(c v1beta1.ComponentType) bool {
		a := s.Spec.Extension(c).Autoscaler
		return a != nil && a.Class == v1beta1.AutoscalerKEDA
	}) {
		v.out.NotChecked = append(v.out.NotChecked, "whether the cluster has KEDA")
	}
	if len(plan.PolicyNames(s.Spec.Rollout)) > 0 {
		v.out.NotChecked = append(v.out.NotChecked, "whether the cluster has RolloutPolicies")
	}
	if len(typos) > 0 {
		v.problem(validate.Problem{Message: validate.UnknownFields(typos)})
	}
	v.admission(validate.InferenceService(s, nil, asAdmitted), "")
	for _, p := range policies {
		v.policy(p)
	}
	return v.report(now, Source{v1beta1.InferenceServiceKind, safe(s.Namespace), safe(s.Name), "", 0, EvidenceDeclared, stamp(now)})
}

type validator struct {
	isvc   *v1beta1.InferenceService
	stored bool
	// policies are those that a file holds beside the service.
	policies map[string]plan.Policy
	out      RolloutValidate
}

// admission files each problem under its check. Those of one field may be left out.
func (v *validator) admission(r validate.Result, except string) {
	for _, p := range r.Errors {
		if except == "" || p.Field != except {
			v.problem(p)
		}
	}
	for _, p := range r.Warnings {
		v.out.Advice = append(v.out.Advice, filed(p))
	}
}

func (v *validator) problem(p validate.Problem) { v.out.Problems = append(v.out.Problems, filed(p)) }

func filed(p validate.Problem) ValidateProblem {
	check, c := checkOf(p.Field)
	return ValidateProblem{check, c, p.Code, safe(p.Field), safeTo(p.String(), maxReason)}
}

// checkOf finds the check, and the component, that a field belongs to.
func checkOf(field string) (check, component string) {
	under := func(prefix string) bool {
		rest, ok := strings.CutPrefix(field, prefix)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	annotation := strings.TrimSuffix(strings.TrimPrefix(field, "metadata.annotations["), "]")
	switch {
	case under("spec.rollout"):
		switch {
		case strings.Contains(field, ".policyRef"):
			return checkRefs, ""
		case under("spec.rollout.groupOrdering"), strings.HasSuffix(field, ".order"):
			return checkOrder, ""
		}
		return checkPlan, ""
	case under("spec.traffic"), annotation == v1beta1.TrafficDrainAnnotation:
		return checkTrafficSpec, ""
	case under("spec.scalingPolicy"):
		return checkScalingPolicy, ""
	case slices.Contains([]string{v1beta1.AutoscalerClassAnnotation, v1beta1.AutoscalerMetricsAnnotation, v1beta1.AutoscalerTargetUtilizationAnnotation}, annotation):
		return checkAutoscalerSpec, ""
	}
	for _, c := range v1beta1.Components() {
		for _, part := range []string{"autoscaler", "autoscalerPolicyRef", "minReplicas", "maxReplicas"} {
			if under("spec." + string(c) + "." + part) {
				return checkAutoscalerSpec, string(c)
			}
		}
		if under("spec." + string(c) + ".lifecycle") {
			return checkPlan, ""
		}
	}
	return checkAdmission, ""
}

// report runs every check and sums them up.
func (v *validator) report(now time.Time, source Source) *RolloutValidateReport {
	s := v.isvc
	var groups []v1beta1.RolloutGroup
	if s.Spec.Rollout != nil {
		groups = s.Spec.Rollout.Groups
	}
	refs := slices.ContainsFunc(groups, func(g v1beta1.RolloutGroup) bool { return g.PolicyRef != nil })
	resolve := v.resolve(groups) // may add a problem
	v.declared(checkRefs, "", refs)
	v.declared(checkPlan, "", len(groups) > 0)
	v.declared(checkOrder, "", len(groups) > 0)
	v.add(resolve)
	_, drained := s.Annotations[v1beta1.TrafficDrainAnnotation]
	traffic := s.Spec.Traffic != nil || drained
	v.declared(checkTrafficSpec, "", traffic)
	v.add(v.trafficReady(traffic))
	v.declared(checkScalingPolicy, "", s.Spec.ScalingPolicy != nil)
	annotated := slices.ContainsFunc([]string{v1beta1.AutoscalerClassAnnotation, v1beta1.AutoscalerMetricsAnnotation, v1beta1.AutoscalerTargetUtilizationAnnotation},
		func(key string) bool { _, ok := s.Annotations[key]; return ok })
	v.declared(checkAutoscalerSpec, "", annotated)
	for _, c := range v1beta1.IsvcComponents(s) {
		v.declared(checkAutoscalerSpec, string(c), true)
	}
	for _, c := range v1beta1.IsvcComponents(s) {
		if s.Spec.Extension(c).AutoscalerPolicyRef != nil {
			v.add(v.autoscalerResolve(c))
		}
	}
	v.canaries()
	v.declared(checkAdmission, "", true)
	v.sumUp()

	report := &RolloutValidateReport{
		APIVersion: APIVersion, Kind: "RolloutValidateReport", Metadata: Metadata{safe(s.Namespace), safe(s.Name)}, CollectedAt: stamp(now),
		Sources: []Source{source}, Content: v.out, Warnings: []Warning{},
	}
	if v.out.Overall == ResultUnverifiable {
		report.Warnings = append(report.Warnings, Warning{WarningPartialData})
	}
	if slices.ContainsFunc(v.out.Checks, func(c ValidateCheck) bool { return c.Freshness == freshStale }) {
		report.Warnings = append(report.Warnings, Warning{WarningStaleEvidence})
	}
	return report
}

func (v *validator) add(c ValidateCheck) {
	if c.Codes == nil {
		c.Codes = []string{}
	}
	v.out.Checks = append(v.out.Checks, c)
}

// declared is the check of what the spec says: its problems, if any, decide.
func (v *validator) declared(check, component string, applies bool) {
	c := ValidateCheck{Check: check, Component: component, Result: ResultValid, Evidence: EvidenceDeclared, Freshness: freshCurrent}
	if !applies {
		c.Result, c.Freshness = ResultNotApplicable, freshNotApplicable
	}
	for _, p := range v.out.Problems {
		if p.Check != check || p.Component != component {
			continue
		}
		c.Result, c.Freshness = ResultInvalid, freshCurrent
		if p.Code != "" && !slices.Contains(c.Codes, p.Code) {
			c.Codes = append(c.Codes, p.Code)
		}
	}
	v.add(c)
}

// resolve says whether a run could open: of a stored service by what the controller
// wrote, of a file by working the plan out.
func (v *validator) resolve(groups []v1beta1.RolloutGroup) ValidateCheck {
	s := v.isvc
	c := ValidateCheck{Check: checkResolve, Result: ResultNotApplicable, Evidence: EvidenceDeclared, Freshness: freshNotApplicable}
	run := v.stored && s.Status.Rollout != nil && s.Status.Rollout.ActiveRun != nil
	if len(groups) == 0 && !run {
		return c
	}
	if !v.stored {
		c.Result, c.Evidence, c.Freshness = ResultValid, EvidenceComputed, freshCurrent
		if res := (plan.Sources{Policies: v.policies, Unread: true}).Resolve(s.Spec.Rollout); res.Parked() {
			c.Result, c.Codes = ResultInvalid, []string{res.Reason}
			v.out.Problems = append(v.out.Problems, ValidateProblem{Check: checkResolve, Code: res.Reason, Field: "spec.rollout",
				Text: safeTo("spec.rollout: no run could open: "+res.Message+" ("+res.Reason+")", maxReason)})
		}
		return c
	}
	e := &explainer{isvc: s}
	e.conditions()
	ready := e.out.PlanReady
	c.Result, c.Evidence, c.Freshness = ResultUnverifiable, ready.Evidence, freshUnverifiable
	if ready.Evidence == EvidenceUnavailable {
		c.Codes = []string{IssuePlanConditionMissing}
		return c
	}
	if ro := s.Status.Rollout; ro != nil && ro.ObservedGeneration != 0 {
		c.Freshness = freshCurrent
		if ro.ObservedGeneration != s.Generation {
			c.Freshness = freshStale
		}
	}
	switch {
	case ready.State == wordInvalid:
		c.Codes = []string{IssuePlanConditionMalformed}
	case ready.State == "False":
		c.Codes = []string{ready.Reason}
	case c.Freshness == freshCurrent:
		c.Result = ResultValid
	}
	return c
}

// IssuePlanConditionMissing: the controller has said nothing of the plan.
const IssuePlanConditionMissing = "PlanConditionMissing"

// trafficReady has nothing to rest on but a status that carries no generation.
func (v *validator) trafficReady(applies bool) ValidateCheck {
	c := ValidateCheck{Check: checkTrafficReady, Result: ResultNotApplicable, Evidence: EvidenceDeclared, Freshness: freshNotApplicable}
	if v.stored && (applies || v.isvc.Status.Traffic != nil) {
		c.Result, c.Evidence, c.Freshness = ResultUnverifiable, EvidenceReported, freshUnverifiable
		if v.isvc.Status.Traffic == nil {
			c.Evidence = EvidenceUnavailable
		}
	}
	return c
}

func (v *validator) autoscalerResolve(c v1beta1.ComponentType) ValidateCheck {
	out := ValidateCheck{Check: checkAutoscalerResolve, Component: string(c), Result: ResultUnverifiable, Evidence: EvidenceUnavailable, Freshness: freshUnverifiable}
	if !v.stored {
		out.Result, out.Evidence, out.Freshness = ResultNotApplicable, EvidenceDeclared, freshNotApplicable
		return out
	}
	a := v.isvc.Status.Components[c].Autoscaler
	if a == nil {
		return out
	}
	for i := range a.Conditions {
		cond := &a.Conditions[i]
		if cond.Type != conditionAutoscalerResolved {
			continue
		}
		out.Evidence, out.Freshness = EvidenceReported, freshStale
		switch cond.ObservedGeneration {
		case 0:
			out.Freshness = freshUnverifiable
		case v.isvc.Generation:
			out.Freshness = freshCurrent
			if cond.Status == metav1.ConditionTrue {
				out.Result = ResultValid
			}
		}
	}
	return out
}

// sumUp: anything invalid decides, then anything that can't be verified.
func (v *validator) sumUp() {
	v.out.Overall = ResultValid
	for _, c := range v.out.Checks {
		if c.Result == ResultInvalid {
			v.out.Overall = ResultInvalid
		} else if c.Result == ResultUnverifiable && v.out.Overall == ResultValid {
			v.out.Overall = ResultUnverifiable
		}
	}
	for _, list := range []*[]ValidateProblem{&v.out.Problems, &v.out.Advice} {
		if *list == nil {
			*list = []ValidateProblem{}
		}
	}
	if v.out.NotChecked == nil {
		v.out.NotChecked = []string{}
	}
}

// RolloutValidateTable is the default table: a row a check, the verdict first.
func RolloutValidateTable(r *RolloutValidateReport) *Table {
	t := &Table{Header: []string{"CHECK", "COMP", "RESULT", "SOURCE"}}
	for _, c := range r.Content.rows() {
		t.Rows = append(t.Rows, []string{c.Check, dash(c.Component), c.Result, c.Evidence + "/" + c.Freshness})
	}
	return t
}

// RolloutValidateWide adds the codes.
func RolloutValidateWide(r *RolloutValidateReport) *Table {
	t := &Table{Header: []string{"CHECK", "COMP", "RESULT", "EVIDENCE", "FRESHNESS", "CODES"}}
	for _, c := range r.Content.rows() {
		t.Rows = append(t.Rows, []string{c.Check, dash(c.Component), c.Result, c.Evidence, c.Freshness, dash(joined(c.Codes))})
	}
	return t
}

func (v *RolloutValidate) rows() []ValidateCheck {
	overall := ValidateCheck{Check: "OVERALL", Result: v.Overall, Evidence: EvidenceComputed, Freshness: freshCurrent}
	for _, fresh := range []string{freshUnverifiable, freshStale} {
		if slices.ContainsFunc(v.Checks, func(c ValidateCheck) bool { return c.Freshness == fresh }) {
			overall.Freshness = fresh
		}
	}
	return append([]ValidateCheck{overall}, v.Checks...)
}
