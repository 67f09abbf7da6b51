package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// RolloutExplainReport is the report of `rollout explain`.
type RolloutExplainReport = Report[RolloutExplain]

// RolloutExplain says which plan runs, which one would run next, and what waits for what.
type RolloutExplain struct {
	// Answer is the whole in plain words.
	Answer string `json:"answer"`
	// Declared is the spec as written, Live what a run that opens now would pin, and
	// Effective what moves the Instances: the pinned plan during a run, else Live.
	Declared   PlanView           `json:"declared"`
	Live       PlanView           `json:"live"`
	Effective  PlanView           `json:"effective"`
	PlanReady  PlanCondition      `json:"planReady"`
	PlanDrift  PlanCondition      `json:"planDrift"`
	Holds      []ExplainHold      `json:"holds"`
	Groups     []ExplainGroup     `json:"groups"`
	Components []ExplainComponent `json:"components"`
	Issues     []Issue            `json:"issues"`
}

// PlanCondition is a condition about the plan.
type PlanCondition struct {
	// State is the condition's status, Unobserved or Invalid.
	State    string `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
	Evidence string `json:"evidence"`
	// WayOut and Command say when a plan that drifted from the pinned one counts.
	WayOut  string `json:"wayOut,omitempty"`
	Command string `json:"command,omitempty"`
}

func (c PlanCondition) String() string {
	text := c.State
	if c.Reason != "" {
		text += "/" + c.Reason
	}
	return text + "; evidence=" + c.Evidence
}

// ExplainGroup is where the executor of a group is. A sequence is one executor.
type ExplainGroup struct {
	RolloutGroup
	CompositePhase string              `json:"compositePhase,omitempty"`
	Since          string              `json:"since,omitempty"`
	Message        string              `json:"message,omitempty"`
	Revisions      []ComponentRevision `json:"revisions"`
	Traffic        []ComponentTraffic  `json:"traffic"`
	Ratio          *RatioCounts        `json:"ratio,omitempty"`
	Canary         *ExplainCanary      `json:"canary,omitempty"`
}

// ComponentRevision holds the revision hashes that a group moves a component between.
type ComponentRevision struct {
	Component string `json:"component"`
	Stable    string `json:"stable,omitempty"`
	Target    string `json:"target,omitempty"`
	Rejected  string `json:"rejected,omitempty"`
}

// ComponentTraffic is one recorded weight.
type ComponentTraffic struct {
	Component string `json:"component"`
	Traffic
}

// RatioCounts are the Instance counts that a ratio is about, by component.
type RatioCounts struct {
	Wanted  map[string]int32 `json:"wanted"`
	Serving map[string]int32 `json:"serving"`
	New     map[string]int32 `json:"new"`
}

// ExplainComponent is one component's part.
type ExplainComponent struct {
	Type     string `json:"type"`
	Group    *int   `json:"group,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	Phase    string `json:"phase,omitempty"`
	Evidence string `json:"evidence"`
	Current  string `json:"currentRevision,omitempty"`
	Ready    string `json:"readyRevision,omitempty"`
	Previous string `json:"previousRevision,omitempty"`
}

// Words of the plan conditions.
const (
	wordUnobserved = "Unobserved"
	wordInvalid    = "Invalid"
)

// Issue codes beside those of `rollout status`.
const (
	IssuePolicyBodyUnavailable  = "PolicyBodyUnavailable"
	IssuePlanConditionMalformed = "PlanConditionMalformed"
	IssueActiveRunMalformed     = "ActiveRunMalformed"
)

// maxReason is the longest reason of a hold, which may name a whole command.
const maxReason = 1024

// BuildRolloutExplain explains the rollout of one service.
func BuildRolloutExplain(s *v1beta1.InferenceService, now time.Time) *RolloutExplainReport {
	status := BuildRolloutStatus(s, now)
	e := &explainer{isvc: s, now: now, status: &status.Content}
	e.out = RolloutExplain{
		Holds: []ExplainHold{}, Groups: []ExplainGroup{}, Components: []ExplainComponent{},
		Issues: slices.Clone(status.Content.Issues),
	}
	e.plans()
	e.conditions()
	e.groups()
	e.components()
	e.holds()
	e.out.Answer = safeTo(sentence(s, status, now, false)+e.tail(), maxReason)
	report := &RolloutExplainReport{
		APIVersion: APIVersion, Kind: "RolloutExplainReport", Metadata: Metadata{s.Namespace, s.Name}, CollectedAt: stamp(now),
		Sources: status.Sources, Content: e.out, Warnings: []Warning{},
	}
	if len(e.out.Issues) > 0 {
		report.Warnings = append(report.Warnings, Warning{WarningPartialData})
	}
	return report
}

type explainer struct {
	isvc   *v1beta1.InferenceService
	now    time.Time
	status *RolloutStatus
	out    RolloutExplain
}

func (e *explainer) issue(code string, group *int) {
	e.out.Issues = append(e.out.Issues, Issue{Code: code, Group: group})
}

func (e *explainer) run() *v1beta1.RolloutRun {
	if e.isvc.Status.Rollout == nil {
		return nil
	}
	return e.isvc.Status.Rollout.ActiveRun
}

// conditions takes over what the controller says of the plan.
func (e *explainer) conditions() {
	e.out.PlanReady = e.condition(v1beta1.ConditionRolloutPlanReady, v1beta1.ReasonPinned, v1beta1.ReasonNoActiveRun,
		v1beta1.ReasonPolicyNotFound, v1beta1.ReasonPolicyNotReady, v1beta1.ReasonProgressionMismatch, v1beta1.ReasonPlanInvalid, v1beta1.ReasonProviderUnbound)
	e.out.PlanDrift = e.condition(v1beta1.ConditionRolloutPlanDrift, v1beta1.ReasonSpecNewerThanRun, v1beta1.ReasonPolicyNewerThanRun, v1beta1.ReasonInSync)
	if e.out.PlanDrift.State == "True" && e.run() != nil {
		e.out.PlanDrift.WayOut, e.out.PlanDrift.Command = e.driftWayOut()
	}
}

// driftWayOut says how this run takes the live plan, or why it can't.
func (e *explainer) driftWayOut() (text, command string) {
	live := &e.out.Live
	cannot := ""
	switch {
	case len(live.Groups) == 0:
		cannot = "the spec has no rollout groups any more"
	case plan.Topology(e.run().Plan, live.plan) != "":
		cannot = safe(plan.Topology(e.run().Plan, live.plan))
	case live.Digest == "":
		cannot = "a group has no digest"
	}
	if cannot != "" {
		return "the next run pins the live plan; this one can't take it: " + cannot, ""
	}
	return "the next run pins the live plan; to take it, " + live.Digest + ", into this one", e.command("rollout repin")
}

func (e *explainer) condition(kind string, reasons ...string) PlanCondition {
	for _, c := range e.isvc.Status.Conditions {
		if string(c.Type) != kind {
			continue
		}
		if (c.Status == "True" || c.Status == "False") && slices.Contains(reasons, c.Reason) {
			return PlanCondition{State: string(c.Status), Reason: c.Reason, Message: safeTo(c.Message, maxReason), Evidence: EvidenceReported}
		}
		e.issue(IssuePlanConditionMalformed, nil)
		return PlanCondition{State: wordInvalid, Reason: StateUnknown, Evidence: EvidenceReported}
	}
	return PlanCondition{State: wordUnobserved, Evidence: EvidenceUnavailable}
}

// groups adds to each executor what it moves.
func (e *explainer) groups() {
	for _, g := range e.status.Groups {
		out := ExplainGroup{RolloutGroup: g, Revisions: []ComponentRevision{}, Traffic: []ComponentTraffic{}}
		if st := e.coordination(g.Index); st != nil {
			out.CompositePhase, out.Message = safe(st.CompositePhase), safe(st.Message)
			if st.LastTransitionTime != nil {
				out.Since = stamp(st.LastTransitionTime.Time)
			}
			out.Ratio = ratioCounts(st.ObservedRatio)
		}
		if out.Canary = e.canary(&g); out.Canary != nil {
			out.Phase = e.phaseOf(out.Canary)
		}
		for _, c := range g.Components {
			name := v1beta1.ComponentType(c)
			if r := e.revisions(name); r != (ComponentRevision{Component: c}) {
				out.Revisions = append(out.Revisions, r)
			}
			if comp := e.status.component(c); comp != nil {
				for _, t := range comp.Traffic {
					t.Revision, t.Tag = safe(t.Revision), safe(t.Tag)
					out.Traffic = append(out.Traffic, ComponentTraffic{c, t})
				}
			}
		}
		e.out.Groups = append(e.out.Groups, out)
	}
}

func (e *explainer) coordination(index int) *v1beta1.CoordinationGroupStatus {
	if c := e.isvc.Status.RolloutCoordination; c != nil {
		for i := range c.Groups {
			if c.Groups[i].Name == fmt.Sprint(index) {
				return &c.Groups[i]
			}
		}
	}
	return nil
}

// revisions are those of the run, else those the component stands on.
func (e *explainer) revisions(c v1beta1.ComponentType) ComponentRevision {
	out := ComponentRevision{Component: string(c)}
	if run := e.run(); run != nil {
		for _, t := range run.TargetRevisions {
			if t.Component == c {
				out.Stable, out.Target = safe(t.StableRevision), safe(t.Revision)
			}
		}
	} else if comp := e.status.component(string(c)); comp != nil {
		out.Stable = comp.RolledOutRevision
	}
	out.Rejected = rejectedOf(e.isvc, c)
	return out
}

func ratioCounts(r *v1beta1.ObservedRatio) *RatioCounts {
	if r == nil {
		return nil
	}
	words := func(counts map[v1beta1.ComponentType]int32) map[string]int32 {
		out := map[string]int32{}
		for c, n := range counts {
			if v1beta1.IsComponent(c) {
				out[string(c)] = n
			}
		}
		return out
	}
	return &RatioCounts{words(r.Original), words(r.Current), words(r.NewPods)}
}

func (e *explainer) components() {
	for _, c := range e.status.Components {
		out := ExplainComponent{Type: c.Type, Group: c.Group, Strategy: c.Strategy, Phase: c.Phase, Evidence: EvidenceReported,
			Current: c.RolledOutRevision, Ready: c.ReadyRevision, Previous: c.PreviousRevision}
		if _, ok := e.isvc.Status.Components[v1beta1.ComponentType(c.Type)]; !ok {
			out.Evidence = EvidenceUnavailable
		}
		if out.Strategy == "" {
			out.Strategy = strategyIndependent
		}
		e.out.Components = append(e.out.Components, out)
	}
}

const strategyIndependent = "Independent"

// tail adds to the sentence who waits, and what only the plans show.
func (e *explainer) tail() string {
	text := ""
	var waits []string
	for i := range e.out.Holds {
		// The sentence has said what a canary waits for.
		if h := &e.out.Holds[i]; h.Component != "" && !strings.HasPrefix(h.Kind, "Canary") {
			waits = append(waits, h.Component+" ("+h.Kind+")")
		}
	}
	if len(waits) > 0 {
		text = " Waiting: " + strings.Join(waits, ", ") + "."
	}
	if e.out.PlanReady.State == "False" {
		text += " No run can start: its plan can't be pinned (" + e.out.PlanReady.Reason + ")."
	}
	if e.out.PlanDrift.State != "True" {
		return text
	}
	if e.out.PlanDrift.Reason == v1beta1.ReasonPolicyNewerThanRun {
		return text + " Its policy changed after the run pinned its plan."
	}
	return text + " Its rollout groups changed after the run pinned its plan."
}
