package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// RolloutStatusReport is the report of `rollout status`.
type RolloutStatusReport = Report[RolloutStatus]

// RolloutStatus says where a rollout is.
type RolloutStatus struct {
	Summary    RolloutSummary     `json:"summary"`
	Groups     []RolloutGroup     `json:"groups"`
	Components []RolloutComponent `json:"components"`
	Issues     []Issue            `json:"issues"`
}

// RolloutSummary is the answer for the whole service.
type RolloutSummary struct {
	// State is ReportedState when the status is proved to be about the newest
	// spec, and Unknown when it isn't.
	State             string `json:"state"`
	ReportedState     string `json:"reportedState"`
	Evidence          string `json:"evidence"`
	Epoch             string `json:"epoch"`
	CoordinationReady string `json:"coordinationReady"`
}

// RolloutGroup is a group as it is executed: pinned by the open run, else declared.
type RolloutGroup struct {
	Index            int      `json:"index"`
	Strategy         string   `json:"strategy"`
	Components       []string `json:"components"`
	Phase            string   `json:"phase,omitempty"`
	CurrentComponent string   `json:"currentComponent,omitempty"`
	PreviousComp     string   `json:"previousComponent,omitempty"`
}

// RolloutComponent is one component's part.
type RolloutComponent struct {
	Type              string    `json:"type"`
	Group             *int      `json:"group,omitempty"`
	Strategy          string    `json:"strategy,omitempty"`
	GroupPhase        string    `json:"groupPhase,omitempty"`
	Phase             string    `json:"phase,omitempty"`
	Step              *Step     `json:"step,omitempty"`
	RolledOutRevision string    `json:"rolledOutRevision,omitempty"`
	ReadyRevision     string    `json:"readyRevision,omitempty"`
	PreviousRevision  string    `json:"previousRevision,omitempty"`
	Traffic           []Traffic `json:"traffic"`

	groupCurrent, groupPrevious string
}

// Step is where a canary is. Current counts from 1.
type Step struct {
	Current         int    `json:"current"`
	Total           int    `json:"total"`
	Gate            string `json:"gate,omitempty"`
	Capacity        string `json:"capacity,omitempty"`
	TargetTraffic   int32  `json:"targetTraffic"`
	ObservedTraffic int32  `json:"observedTraffic"`
}

// Traffic is a recorded weight.
type Traffic struct {
	Revision string `json:"revision"`
	Percent  int32  `json:"percent"`
	Tag      string `json:"tag,omitempty"`
}

// Issue is something that keeps the report from being complete.
type Issue struct {
	Code      string `json:"code"`
	Group     *int   `json:"group,omitempty"`
	Component string `json:"component,omitempty"`
}

func (i Issue) String() string {
	if i.Group != nil {
		return fmt.Sprintf("%s(group=%d)", i.Code, *i.Group)
	}
	return i.Code
}

// Words of the summary and of the rows.
const (
	StateUnknown       = "Unknown"
	StateNotConfigured = "NotConfigured"
	StateFailed        = "Failed"
	StateRollingBack   = "RollingBack"
	StateRolledBack    = "RolledBack"
	StatePaused        = "Paused"
	StateInProgress    = "InProgress"
	StateStaged        = "Staged"
	StateSucceeded     = "Succeeded"

	EpochVerified      = "Verified"
	EpochUnverifiable  = "Unverifiable"
	EpochNotApplicable = "NotApplicable"

	strategyCanary        = "Canary"
	strategyBlueGreen     = "BlueGreen"
	strategyRollingUpdate = "RollingUpdate"
	strategySequential    = "Sequential"
)

// Issue codes.
const (
	IssueAnalysisInconclusive   = "AnalysisInconclusive"
	IssueCanaryStatusMissing    = "CanaryStatusMissing"
	IssueCanaryStatusUnexpected = "CanaryStatusUnexpected"
	IssueCanaryStepInvalid      = "CanaryStepInvalid"
	IssueComponentStatusMissing = "ComponentStatusMissing"
	IssueEpochUnverifiable      = "EpochUnverifiable"
	IssueGroupStatusMissing     = "GroupStatusMissing"
	IssueGroupStatusUnexpected  = "GroupStatusUnexpected"
	IssueRevisionNameInvalid    = "RevisionNameInvalid"
	IssueSpecMalformed          = "SpecMalformed"
	IssueStatusMalformed        = "StatusMalformed"
	IssueTrafficInvalid         = "TrafficInvalid"
)

// precedence orders what a group or component can report; the first that applies
// anywhere is the service's.
var precedence = []string{StateFailed, StateRollingBack, StateRolledBack, StatePaused, StateUnknown,
	StateInProgress, StateStaged, StateSucceeded}

// BuildRolloutStatus reports on one service.
func BuildRolloutStatus(s *v1beta1.InferenceService, now time.Time) *RolloutStatusReport {
	b := &statusBuilder{isvc: s}
	b.build()
	r := &RolloutStatusReport{
		APIVersion:  APIVersion,
		Kind:        "RolloutStatusReport",
		Metadata:    Metadata{s.Namespace, s.Name},
		CollectedAt: stamp(now),
		Sources: []Source{{v1beta1.InferenceServiceKind, s.Namespace, s.Name, string(s.UID), s.Generation,
			EvidenceObserved, stamp(now)}},
		Content:  b.out,
		Warnings: []Warning{},
	}
	if len(r.Content.Issues) > 0 {
		r.Warnings = append(r.Warnings, Warning{WarningPartialData})
	}
	return r
}

// group is a group under construction, with what the executor would look at.
type group struct {
	RolloutGroup
	canary *v1beta1.GroupCanary
	status *v1beta1.CoordinationGroupStatus
}

type statusBuilder struct {
	isvc   *v1beta1.InferenceService
	out    RolloutStatus
	groups []*group
	states []string
}

func (b *statusBuilder) build() {
	b.out = RolloutStatus{Groups: []RolloutGroup{}, Components: []RolloutComponent{}, Issues: []Issue{}}
	if !b.configured() {
		b.out.Summary = RolloutSummary{StateNotConfigured, StateNotConfigured, EvidenceDeclared, EpochNotApplicable, EpochNotApplicable}
		return
	}
	b.buildGroups()
	b.matchCoordination()
	for _, c := range b.components() {
		b.buildComponent(c)
	}
	for _, g := range b.groups {
		b.out.Groups = append(b.out.Groups, g.RolloutGroup)
	}
	b.summarize()
}

// configured reports whether the service rolls out at all: it declares groups or
// its status has recorded a rollout.
func (b *statusBuilder) configured() bool {
	s := b.isvc
	if s.Spec.Rollout != nil && len(s.Spec.Rollout.Groups) > 0 || s.Status.Rollout != nil || s.Status.Canary != nil {
		return true
	}
	if s.Status.RolloutCoordination != nil && len(s.Status.RolloutCoordination.Groups) > 0 {
		return true
	}
	for _, c := range s.Status.Components {
		if c.RolloutPhase != "" || c.Canary != nil || c.LatestReadyRevision != "" || c.LatestRolledoutRevision != "" || c.PreviousRolledoutRevision != "" {
			return true
		}
	}
	return false
}

// components are those that are declared or have a status, in component order.
func (b *statusBuilder) components() []v1beta1.ComponentType {
	var out []v1beta1.ComponentType
	for _, c := range v1beta1.Components() {
		if _, ok := b.isvc.Status.Components[c]; ok || b.isvc.Spec.Extension(c) != nil {
			out = append(out, c)
		}
	}
	return out
}

func (b *statusBuilder) issue(code string, group *int, component v1beta1.ComponentType) {
	b.out.Issues = append(b.out.Issues, Issue{code, group, string(component)})
}

// buildGroups takes the plan that the open run pinned, else the spec.
func (b *statusBuilder) buildGroups() {
	var specs []v1beta1.RolloutGroup
	if ro := b.isvc.Status.Rollout; ro != nil && ro.ActiveRun != nil {
		for _, g := range ro.ActiveRun.Plan.Groups {
			specs = append(specs, g.Group)
		}
	} else if b.isvc.Spec.Rollout != nil {
		specs = b.isvc.Spec.Rollout.Groups
	}
	seen := map[v1beta1.ComponentType]bool{}
	for i, g := range specs {
		out := &group{canary: g.Canary, RolloutGroup: RolloutGroup{Index: i, Strategy: strategyOf(&g), Components: []string{}}}
		for _, c := range g.Components {
			if !v1beta1.IsComponent(c) || seen[c] {
				index := i
				b.issue(IssueSpecMalformed, &index, "")
				continue
			}
			seen[c] = true
			out.Components = append(out.Components, string(c))
		}
		b.groups = append(b.groups, out)
	}
	b.collapseSequence(specs)
}

func strategyOf(g *v1beta1.RolloutGroup) string {
	// Only a policy that was read could say what such a group does.
	inline := g.Canary != nil || g.BlueGreen != nil || g.RollingUpdate != nil
	if g.PolicyRef != nil && !inline && g.PolicyRef.Progression == "" {
		return StateUnknown
	}
	switch plan.Kind(g) {
	case v1beta1.ProgressionCanary:
		return strategyCanary
	case v1beta1.ProgressionRollingUpdate:
		return strategyRollingUpdate
	case v1beta1.ProgressionBlueGreen:
		return strategyBlueGreen
	}
	return StateUnknown
}

// collapseSequence shows the groups that take turns as the one sequence they are.
func (b *statusBuilder) collapseSequence(specs []v1beta1.RolloutGroup) {
	unknown := func(g *group) bool { return g.Strategy == StateUnknown }
	if !plan.Sequence(specs) || slices.ContainsFunc(b.groups, unknown) {
		return
	}
	var first *group
	var shown []*group
	for _, g := range b.groups {
		switch {
		case g.Strategy == strategyCanary:
			shown = append(shown, g)
		case first == nil:
			first = g
			shown = append(shown, g)
		default:
			first.Components = append(first.Components, g.Components...)
		}
	}
	b.groups = shown
	first.Strategy = strategySequential
}

// matchCoordination pairs each group that isn't a canary with its status.
func (b *statusBuilder) matchCoordination() {
	var entries []v1beta1.CoordinationGroupStatus
	if c := b.isvc.Status.RolloutCoordination; c != nil {
		entries = c.Groups
	}
	used := map[string]bool{}
	for _, g := range b.groups {
		if g.Strategy == strategyCanary {
			continue
		}
		for i := range entries {
			if entries[i].Name == fmt.Sprint(g.Index) {
				g.status = &entries[i]
			}
		}
		if g.status == nil {
			index := g.Index
			b.issue(IssueGroupStatusMissing, &index, "")
			g.Phase = StateUnknown
			b.states = append(b.states, StateUnknown)
			continue
		}
		used[g.status.Name] = true
		g.Phase = string(g.status.Phase)
		if g.Strategy == strategySequential {
			g.CurrentComponent, g.PreviousComp = b.member(g, g.status.CurrentComponent), b.member(g, g.status.PreviousComponent)
		}
		state, ok := groupStates[g.status.Phase]
		if !ok {
			index := g.Index
			b.issue(IssueStatusMalformed, &index, "")
			g.Phase, state = StateUnknown, StateUnknown
		}
		b.states = append(b.states, state)
	}
	for _, e := range entries {
		if !used[e.Name] {
			b.issue(IssueGroupStatusUnexpected, nil, "")
		}
	}
}

// member is a component word of the status, or empty with an issue.
func (b *statusBuilder) member(g *group, c v1beta1.ComponentType) string {
	if c != "" && !v1beta1.IsComponent(c) {
		index := g.Index
		b.issue(IssueStatusMalformed, &index, "")
		return ""
	}
	return string(c)
}

var groupStates = map[v1beta1.CoordinationPhase]string{
	v1beta1.CoordinationIdle:        StateSucceeded,
	v1beta1.CoordinationSurging:     StateInProgress,
	v1beta1.CoordinationWaiting:     StateInProgress,
	v1beta1.CoordinationShifting:    StateInProgress,
	v1beta1.CoordinationDraining:    StateInProgress,
	v1beta1.CoordinationScalingDown: StateInProgress,
	v1beta1.CoordinationStaged:      StateStaged,
	v1beta1.CoordinationFailed:      StateFailed,
	v1beta1.CoordinationRollingBack: StateRollingBack,
	v1beta1.CoordinationPaused:      StatePaused,
}

var phaseStates = map[v1beta1.RolloutPhase]string{
	v1beta1.RolloutStable:           StateSucceeded,
	v1beta1.RolloutCanarying:        StateInProgress,
	v1beta1.RolloutBlueGreenStandby: StateInProgress,
	v1beta1.RolloutPending:          StateInProgress,
	v1beta1.RolloutPromoting:        StateInProgress,
	v1beta1.RolloutPaused:           StatePaused,
	v1beta1.RolloutRollingBack:      StateRollingBack,
	v1beta1.RolloutRolledBack:       StateRolledBack,
	v1beta1.RolloutFailed:           StateFailed,
}

func (b *statusBuilder) buildComponent(c v1beta1.ComponentType) {
	st, present := b.isvc.Status.Components[c]
	out := RolloutComponent{Type: string(c), Traffic: []Traffic{}}
	g := b.groupOf(c)
	if g != nil {
		index := g.Index
		out.Group, out.Strategy, out.GroupPhase = &index, g.Strategy, g.Phase
		out.groupCurrent, out.groupPrevious = g.CurrentComponent, g.PreviousComp
	}
	if !present {
		if g != nil {
			b.issue(IssueComponentStatusMissing, nil, c)
			b.states = append(b.states, StateUnknown)
		}
		b.out.Components = append(b.out.Components, out)
		return
	}
	out.Phase = b.phase(c, &st, g)
	out.RolledOutRevision = b.hash(c, st.LatestRolledoutRevision)
	out.ReadyRevision = b.hash(c, st.LatestReadyRevision)
	out.PreviousRevision = b.hash(c, st.PreviousRolledoutRevision)
	for _, t := range st.Traffic {
		if t.Percent < 0 || t.Percent > 100 {
			b.issue(IssueTrafficInvalid, nil, c)
			continue
		}
		out.Traffic = append(out.Traffic, Traffic{t.RevisionName, t.Percent, t.Tag})
	}
	b.canary(c, &st, g, &out)
	b.out.Components = append(b.out.Components, out)
}

func (b *statusBuilder) groupOf(c v1beta1.ComponentType) *group {
	for _, g := range b.groups {
		if slices.Contains(g.Components, string(c)) {
			return g
		}
	}
	return nil
}

// phase is the recorded phase; a component at rest may have none, and is Stable.
func (b *statusBuilder) phase(c v1beta1.ComponentType, st *v1beta1.ComponentStatus, g *group) string {
	if st.RolloutPhase != "" {
		state, ok := phaseStates[st.RolloutPhase]
		if !ok {
			b.issue(IssueStatusMalformed, nil, c)
			b.states = append(b.states, StateUnknown)
			return StateUnknown
		}
		b.states = append(b.states, state)
		return string(st.RolloutPhase)
	}
	l := st.Lifecycle
	switch {
	case l == nil:
		return ""
	case l.CurrentRevision != "" && l.CurrentRevision == l.UpdateRevision:
		b.states = append(b.states, StateSucceeded)
		return string(v1beta1.RolloutStable)
	case g == nil && l.UpdateRevision != "":
		// Alone and between revisions: no group speaks for it.
		b.states = append(b.states, StateInProgress)
	}
	return ""
}

// hash is the revision part of a per-revision Service name.
func (b *statusBuilder) hash(c v1beta1.ComponentType, name string) string {
	if name == "" {
		return ""
	}
	hash, ok := strings.CutPrefix(name, b.isvc.Name+"-"+string(c)+"-rev-")
	if !ok || hash == "" || strings.ContainsFunc(hash, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') }) {
		b.issue(IssueRevisionNameInvalid, nil, c)
		return ""
	}
	return hash
}

func (b *statusBuilder) summarize() {
	sum := &b.out.Summary
	sum.Evidence, sum.Epoch = EvidenceReported, EpochUnverifiable
	sum.ReportedState = StateUnknown
	for _, state := range precedence {
		if slices.Contains(b.states, state) {
			sum.ReportedState = state
			break
		}
	}
	sum.CoordinationReady = b.coordination()
	if b.verified() {
		sum.Epoch, sum.State = EpochVerified, sum.ReportedState
		return
	}
	sum.State = StateUnknown
	b.issue(IssueEpochUnverifiable, nil, "")
}

// verified reports whether the status is stamped with the spec's generation, and
// no part of it with another one.
func (b *statusBuilder) verified() bool {
	ro, generation := b.isvc.Status.Rollout, b.isvc.Generation
	if ro == nil || ro.ObservedGeneration != generation || generation == 0 {
		return false
	}
	other := func(stamp int64) bool { return stamp != 0 && stamp != generation }
	for _, g := range b.groups {
		if g.status != nil && other(g.status.ObservedGeneration) {
			return false
		}
	}
	for _, c := range b.isvc.Status.Components {
		if c.Canary != nil && other(c.Canary.ObservedGeneration) {
			return false
		}
	}
	return true
}

func (b *statusBuilder) coordination() string {
	if !slices.ContainsFunc(b.groups, func(g *group) bool { return g.Strategy != strategyCanary }) {
		return EpochNotApplicable
	}
	for _, c := range b.isvc.Status.Conditions {
		if c.Type == v1beta1.ConditionRolloutCoordinationReady {
			switch c.Status {
			case "True", "False", "Unknown":
				return string(c.Status)
			}
			return "Invalid"
		}
	}
	return "Unobserved"
}
