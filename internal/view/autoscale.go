package view

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// AutoscaleStatusReport is the report of `autoscale status`.
type AutoscaleStatusReport = Report[AutoscaleStatus]

// AutoscaleStatus says what sets the Instance counts of a service.
type AutoscaleStatus struct {
	Summary    AutoscaleSummary     `json:"summary"`
	Components []AutoscaleComponent `json:"components"`
	Issues     []AutoscaleIssue     `json:"issues"`

	liveScale, liveScaler bool
}

// AutoscaleSummary is the answer for the whole service.
type AutoscaleSummary struct {
	// State is Invalid, Unavailable, Partial or Reported.
	State string `json:"state"`
}

// AutoscaleComponent is one component.
type AutoscaleComponent struct {
	Type       string              `json:"type"`
	State      string              `json:"state"`
	Class      string              `json:"class"`
	ManagedBy  string              `json:"managedBy"`
	SpecSource string              `json:"specSource"`
	Policy     *AutoscalePolicy    `json:"policy,omitempty"`
	Target     AutoscaleTarget     `json:"target"`
	Replicas   AutoscaleReplicas   `json:"replicas"`
	Conditions AutoscaleConditions `json:"conditions"`
	LiveScale  *LiveScale          `json:"liveScale,omitempty"`
	LiveScaler *LiveScaler         `json:"liveScaler,omitempty"`
}

// AutoscalePolicy is the shared policy that the status names.
type AutoscalePolicy struct {
	State string `json:"state"`
	Name  string `json:"name"`
	// Resolution is the AutoscalerResolved condition, as status/reason.
	Resolution string `json:"resolution,omitempty"`
}

// AutoscaleTarget is the object whose count is set.
type AutoscaleTarget struct {
	State      string `json:"state"`
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

// AutoscaleReplicas is the counts that the scaler reports.
type AutoscaleReplicas struct {
	State           string `json:"state"`
	CurrentReplicas *int32 `json:"currentReplicas,omitempty"`
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`
	LastScaleTime   string `json:"lastScaleTime,omitempty"`

	last *metav1.Time
}

// AutoscaleConditions is the conditions copied from the scaler.
type AutoscaleConditions struct {
	State string               `json:"state"`
	Items []AutoscaleCondition `json:"items"`
}

// AutoscaleCondition is one of them.
type AutoscaleCondition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
}

// AutoscaleIssue is a finding.
type AutoscaleIssue struct {
	Code      string `json:"code"`
	Component string `json:"component,omitempty"`
}

// States and evidence words.
const (
	stateInvalid     = "Invalid"
	stateNotReported = "NotReported"
	stateAmbiguous   = "Ambiguous"

	kindDeployment = "Deployment"
	specPolicy     = "policy"

	conditionAutoscalerResolved = "AutoscalerResolved"
	maxScalerConditions         = 16
)

// autoscaleRule is what an issue code is called in the table and what it makes of
// its component.
type autoscaleRule struct{ alias, state string }

// Issue codes of `autoscale status`.
const (
	issueUnknownComponent  = "UnknownComponentStatus"
	issueNoAutoscaler      = "AutoscalerNotReported"
	issueNoTarget          = "ScaleTargetNotReported"
	issueClass             = "ClassInvalid"
	issueManagedBy         = "ManagedByInvalid"
	issueOwnership         = "OwnershipMismatch"
	issueSpecSource        = "SpecSourceInvalid"
	issueUnexpectedScaler  = "UnexpectedScalerEvidence"
	issueReplicasAmbiguous = "ReplicaEvidenceAmbiguous"
	issueReplicasInvalid   = "ReplicaEvidenceInvalid"
	issueTarget            = "ScaleTargetInvalid"
	issueCondition         = "ConditionInvalid"
	issueConditionConflict = "ConditionConflict"
	issuePolicy            = "PolicyEvidenceInvalid"
	issuePolicyConflict    = "PolicyConditionConflict"
)

var autoscaleRules = map[string]autoscaleRule{
	issueUnknownComponent:  {"UnknownComp", stateInvalid},
	issueNoAutoscaler:      {"NoAutoscaler", stateNotReported},
	issueNoTarget:          {"NoTarget", statePartial},
	issueClass:             {"BadClass", stateInvalid},
	issueManagedBy:         {"BadManager", stateInvalid},
	issueOwnership:         {"OwnerMismatch", stateInvalid},
	issueSpecSource:        {"BadSpecSource", stateInvalid},
	issueUnexpectedScaler:  {"UnexpectedEv", stateInvalid},
	issueReplicasAmbiguous: {"ReplicaAmbig", statePartial},
	issueReplicasInvalid:   {"BadReplica", stateInvalid},
	issueTarget:            {"BadTarget", stateInvalid},
	issueCondition:         {"BadCondition", statePartial},
	issueConditionConflict: {"CondConflict", statePartial},
	issuePolicy:            {"BadPolicy", stateInvalid},
	issuePolicyConflict:    {"PolicyClash", stateInvalid},
}

// AutoscaleLive is what the live checks found, per component. A nil map means
// that a check was not asked for.
type AutoscaleLive struct {
	Scale  map[v1beta1.ComponentType]*LiveScale
	Scaler map[v1beta1.ComponentType]*LiveScaler
	// Sources are the objects that were read.
	Sources []Source
}

// BuildAutoscaleStatus reports on what sets the counts of a service.
func BuildAutoscaleStatus(s *v1beta1.InferenceService, live *AutoscaleLive, reference, now time.Time) *AutoscaleStatusReport {
	out := AutoscaleStatus{Components: []AutoscaleComponent{}, Issues: []AutoscaleIssue{}, liveScale: live.Scale != nil, liveScaler: live.Scaler != nil}
	partial := false
	for _, c := range v1beta1.Components() {
		st, present := s.Status.Components[c]
		if !present && s.Spec.Extension(c) == nil {
			continue
		}
		b := &autoscaleBuilder{service: s, component: c, status: &st, reference: reference, out: &out}
		comp := b.build()
		if live.Scale != nil {
			comp.LiveScale = live.Scale[c]
			partial = partial || comp.LiveScale == nil || comp.LiveScale.State != EvidenceReported || comp.LiveScale.Count != countEqual
		}
		if live.Scaler != nil {
			comp.LiveScaler = live.Scaler[c]
			partial = partial || comp.ManagedBy == v1beta1.AutoscalerManagedByOME && (comp.LiveScaler == nil || comp.LiveScaler.State != EvidenceReported)
		}
		out.Components = append(out.Components, comp)
	}
	for name := range s.Status.Components {
		if !v1beta1.IsComponent(name) {
			// However many there are, they are one finding.
			out.Issues = append(out.Issues, AutoscaleIssue{Code: issueUnknownComponent})
			break
		}
	}
	out.Summary.State = out.state()
	r := &AutoscaleStatusReport{
		APIVersion: APIVersion, Kind: "AutoscaleStatusReport", Metadata: Metadata{s.Namespace, s.Name}, CollectedAt: stamp(now),
		Sources: append([]Source{{v1beta1.InferenceServiceKind, s.Namespace, s.Name, string(s.UID), s.Generation, EvidenceReported, stamp(now)}}, live.Sources...),
		Content: out, Warnings: []Warning{},
	}
	if partial || out.Summary.State != EvidenceReported {
		r.Warnings = append(r.Warnings, Warning{WarningPartialData})
	}
	return r
}

// state is that of the service: the worst of what is known about its components.
func (a *AutoscaleStatus) state() string {
	has := func(state string) bool {
		return slices.ContainsFunc(a.Components, func(c AutoscaleComponent) bool { return c.State == state })
	}
	unknown := slices.ContainsFunc(a.Issues, func(i AutoscaleIssue) bool { return i.Code == issueUnknownComponent })
	switch {
	case unknown || has(stateInvalid):
		return stateInvalid
	case !has(EvidenceReported) && !has(statePartial):
		return stateUnavailable
	case has(statePartial) || has(stateNotReported):
		return statePartial
	}
	return EvidenceReported
}

type autoscaleBuilder struct {
	service   *v1beta1.InferenceService
	component v1beta1.ComponentType
	status    *v1beta1.ComponentStatus
	reference time.Time
	out       *AutoscaleStatus
	state     string
}

// found records an issue and worsens the component's state.
func (b *autoscaleBuilder) found(code string) {
	b.out.Issues = append(b.out.Issues, AutoscaleIssue{code, string(b.component)})
	order := []string{EvidenceReported, statePartial, stateNotReported, stateInvalid}
	if state := autoscaleRules[code].state; slices.Index(order, state) > slices.Index(order, b.state) {
		b.state = state
	}
}

func (b *autoscaleBuilder) build() AutoscaleComponent {
	b.state = EvidenceReported
	out := AutoscaleComponent{Type: string(b.component), Class: StateUnknown, ManagedBy: StateUnknown, SpecSource: StateUnknown,
		Replicas: AutoscaleReplicas{State: stateNotReported}, Conditions: AutoscaleConditions{State: stateNotReported, Items: []AutoscaleCondition{}}}
	out.Target = b.target()
	a := b.status.Autoscaler
	if a == nil {
		b.found(issueNoAutoscaler)
		out.State = b.state
		return out
	}
	switch a.Class {
	case v1beta1.AutoscalerHPA, v1beta1.AutoscalerKEDA, v1beta1.AutoscalerExternal, v1beta1.AutoscalerNone:
		out.Class = string(a.Class)
	default:
		b.found(issueClass)
	}
	switch a.ManagedBy {
	case v1beta1.AutoscalerManagedByOME, v1beta1.AutoscalerManagedByExternal, v1beta1.AutoscalerManagedByNone:
		out.ManagedBy = a.ManagedBy
	default:
		b.found(issueManagedBy)
	}
	if out.Class != StateUnknown && out.ManagedBy != StateUnknown && out.ManagedBy != managerOf(a.Class) {
		b.found(issueOwnership)
	}
	switch a.SpecSource {
	case "isvc", specPolicy, "runtime", "legacy", "default":
		out.SpecSource = a.SpecSource
	default:
		b.found(issueSpecSource)
	}
	out.Replicas = b.replicas(a, out.ManagedBy)
	out.Conditions = b.conditions(a, out.ManagedBy)
	out.Policy = b.policy(a)
	out.State = b.state
	return out
}

func managerOf(c v1beta1.AutoscalerClass) string {
	switch c {
	case v1beta1.AutoscalerExternal:
		return v1beta1.AutoscalerManagedByExternal
	case v1beta1.AutoscalerNone:
		return v1beta1.AutoscalerManagedByNone
	}
	return v1beta1.AutoscalerManagedByOME
}

func (b *autoscaleBuilder) target() AutoscaleTarget {
	t := b.status.ScaleTargetRef
	if t == nil {
		b.found(issueNoTarget)
		return AutoscaleTarget{State: stateNotReported}
	}
	out := AutoscaleTarget{State: EvidenceReported, APIVersion: safe(t.APIVersion), Kind: safe(t.Kind), Namespace: b.service.Namespace, Name: safe(t.Name)}
	replica := t.APIVersion == v1beta1.GroupVersion.String() && t.Kind == v1beta1.InferenceReplicaKind && t.Name == v1beta1.ReplicaName(b.service.Name, b.component)
	deployment := t.APIVersion == "apps/v1" && t.Kind == kindDeployment && objectName(t.Name)
	if !replica && !deployment {
		b.found(issueTarget)
		out.State = stateInvalid
	}
	return out
}

// replicas reads the scaler's counts. Zeros are not stored, so a zero may be a
// count or the lack of one.
func (b *autoscaleBuilder) replicas(a *v1beta1.ComponentAutoscalerStatus, managedBy string) AutoscaleReplicas {
	out := AutoscaleReplicas{State: EvidenceReported, LastScaleTime: timePtr(a.LastScaleTime), last: a.LastScaleTime}
	if managedBy != v1beta1.AutoscalerManagedByOME {
		if managedBy == StateUnknown {
			return AutoscaleReplicas{State: stateUnavailable}
		}
		if a.CurrentReplicas != 0 || a.DesiredReplicas != 0 || a.LastScaleTime != nil {
			b.found(issueUnexpectedScaler)
			out.State = stateInvalid
			return out
		}
		return AutoscaleReplicas{State: stateUnavailable}
	}
	out.CurrentReplicas, out.DesiredReplicas = &a.CurrentReplicas, &a.DesiredReplicas
	switch {
	case a.CurrentReplicas < 0 || a.DesiredReplicas < 0 || a.LastScaleTime != nil && a.LastScaleTime.After(b.reference):
		b.found(issueReplicasInvalid)
		out.State = stateInvalid
	case a.CurrentReplicas == 0 || a.DesiredReplicas == 0:
		b.found(issueReplicasAmbiguous)
		out.State = stateAmbiguous
	}
	return out
}

func (b *autoscaleBuilder) conditions(a *v1beta1.ComponentAutoscalerStatus, managedBy string) AutoscaleConditions {
	out := AutoscaleConditions{State: EvidenceReported, Items: []AutoscaleCondition{}}
	if managedBy != v1beta1.AutoscalerManagedByOME && len(a.Conditions) == 0 {
		out.State = stateUnavailable
		return out
	}
	if len(a.Conditions) == 0 {
		out.State = stateNotReported
		return out
	}
	seen := map[string]bool{}
	invalid, conflict := len(a.Conditions) > maxScalerConditions, false
	for _, c := range a.Conditions[:min(len(a.Conditions), maxScalerConditions)] {
		conflict = conflict || seen[c.Type]
		seen[c.Type] = true
		if !conditionStatus(c.Status) || c.Type == "" || c.LastTransitionTime.After(b.reference) {
			invalid = true
		}
		out.Items = append(out.Items, AutoscaleCondition{safe(c.Type), safe(string(c.Status)), timePtr(&c.LastTransitionTime)})
	}
	slices.SortStableFunc(out.Items, func(x, y AutoscaleCondition) int {
		return strings.Compare(x.Type+"\x00"+x.Status+x.LastTransitionTime, y.Type+"\x00"+y.Status+y.LastTransitionTime)
	})
	if invalid {
		b.found(issueCondition)
	}
	if conflict {
		b.found(issueConditionConflict)
	}
	if invalid || conflict {
		out.State = stateInvalid
	}
	return out
}

func conditionStatus(s metav1.ConditionStatus) bool {
	return s == metav1.ConditionTrue || s == metav1.ConditionFalse || s == metav1.ConditionUnknown
}

// policy says which shared policy is behind the scaler, as far as the status and
// the reference in the spec tell.
func (b *autoscaleBuilder) policy(a *v1beta1.ComponentAutoscalerStatus) *AutoscalePolicy {
	var resolved *metav1.Condition
	for i := range a.Conditions {
		if a.Conditions[i].Type == conditionAutoscalerResolved {
			resolved = &a.Conditions[i]
		}
	}
	var out *AutoscalePolicy
	switch {
	case a.SpecSource == specPolicy && (a.Policy == nil || a.Policy.Name == "") && (resolved == nil || resolved.Status == metav1.ConditionTrue):
		b.found(issuePolicy)
	case a.Policy != nil && a.SpecSource != specPolicy:
		b.found(issuePolicy)
		out = &AutoscalePolicy{State: stateInvalid, Name: safe(a.Policy.Name)}
	case a.Policy != nil:
		out = &AutoscalePolicy{State: "Current", Name: safe(a.Policy.Name)}
		if resolved != nil && resolved.Status == metav1.ConditionFalse {
			out.State = "Held" // the last good rendering stays in force
		}
		if a.ShadowedPolicyRef != nil && a.ShadowedPolicyRef.Name == a.Policy.Name {
			b.found(issuePolicyConflict)
		}
	case a.ShadowedPolicyRef != nil:
		out = &AutoscalePolicy{State: "Shadowed", Name: safe(a.ShadowedPolicyRef.Name)}
	case resolved != nil && resolved.Status == metav1.ConditionFalse:
		out = &AutoscalePolicy{State: "Unresolved"}
	}
	if ext := b.service.Spec.Extension(b.component); ext != nil && ext.AutoscalerPolicyRef != nil {
		ref := ext.AutoscalerPolicyRef
		switch {
		case out == nil && ref.Kind == "ClusterAutoscalerPolicy":
			out = &AutoscalePolicy{State: "Unsupported", Name: safe(ref.Name)}
		case out == nil:
			out = &AutoscalePolicy{State: "Unresolved", Name: safe(ref.Name)}
		case out.Name == "":
			out.Name = safe(ref.Name)
		}
	}
	if out != nil && resolved != nil {
		out.Resolution = safe(string(resolved.Status) + "/" + resolved.Reason)
	}
	return out
}
