package view

import (
	"fmt"
	"strings"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// PlanView is one of the plans.
type PlanView struct {
	Mode     string `json:"mode,omitempty"`
	Evidence string `json:"evidence"`
	// Digest stands for all groups together; a repin names the live one.
	Digest   string      `json:"digest,omitempty"`
	RunID    string      `json:"runID,omitempty"`
	OpenedAt string      `json:"openedAt,omitempty"`
	PinnedAt string      `json:"pinnedAt,omitempty"`
	Groups   []PlanGroup `json:"groups"`

	plan v1beta1.RolloutPlan
}

// PlanGroup is one group of a plan.
type PlanGroup struct {
	Index      int      `json:"index"`
	Strategy   string   `json:"strategy"`
	Components []string `json:"components"`
	Source     string   `json:"source"`
	Evidence   string   `json:"evidence"`
	Policy     string   `json:"policy,omitempty"`
	Digest     string   `json:"digest,omitempty"`
	// Shadowed is a policy that the group's own progression outranks, and ShadowedDigest what
	// it would pin.
	Shadowed       string `json:"shadowed,omitempty"`
	ShadowedDigest string `json:"shadowedDigest,omitempty"`

	Config []PlanConfig `json:"config"`
	Steps  []PlanStep   `json:"steps"`
}

// PlanConfig is one setting of a group.
type PlanConfig struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source,omitempty"`
	// Effect says why the setting has none; empty when it has.
	Effect string `json:"effect,omitempty"`
}

func (c PlanConfig) String() string {
	if c.Source == "" {
		return c.Key + "=" + c.Value
	}
	text := c.Key + "=" + c.Value + "(" + c.Source
	if c.Effect != "" {
		text += ";" + c.Effect
	}
	return text + ")"
}

// PlanStep is one canary step.
type PlanStep struct {
	Capacity string `json:"capacity"`
	Traffic  int32  `json:"traffic"`
	Gate     string `json:"gate"`
}

// Words of the plans.
const (
	modePinned = "Pinned"
	modeLive   = "Live"

	sourceDefaulted  = "Defaulted"
	sourceConfigured = "Configured"
	sourceUnresolved = "Unresolved"

	effectFinalGroup      = "IgnoredFinalGroup"
	effectPlanShape       = "IgnoredPlanShape"
	effectSingleComponent = "IgnoredSingleComponent"
)

// plans builds the three views.
func (e *explainer) plans() {
	var declared []v1beta1.RolloutGroup
	if e.isvc.Spec.Rollout != nil {
		declared = e.isvc.Spec.Rollout.Groups
	}
	e.out.Declared = e.specView(declared, false)
	e.out.Live = e.specView(declared, true)
	run := e.run()
	if run == nil {
		e.out.Effective = e.out.Live
		e.out.Effective.Mode = modeLive
		return
	}
	e.out.Effective = e.pinnedView(run)
}

// specView shows the groups of the spec; with digests they are what a new run would pin.
func (e *explainer) specView(groups []v1beta1.RolloutGroup, live bool) PlanView {
	v := PlanView{Evidence: EvidenceDeclared, Groups: []PlanGroup{}}
	var digests []string
	for i := range groups {
		g := &groups[i]
		out := planGroup(i, groups)
		out.Evidence = EvidenceDeclared
		inline := g.Canary != nil || g.BlueGreen != nil || g.RollingUpdate != nil
		switch {
		case inline:
			out.Source = string(v1beta1.SourceInline)
			if g.PolicyRef != nil {
				out.Shadowed = safe(g.PolicyRef.Name)
			}
		case g.PolicyRef != nil:
			out.Source, out.Policy = string(v1beta1.SourcePolicy), safe(g.PolicyRef.Name)
		default:
			out.Source = sourceDefaulted
			out.Config = append([]PlanConfig{{Key: "strategy", Value: "defaulted"}}, out.Config...)
		}
		pinned := v1beta1.RunGroup{Source: v1beta1.SourceInline, Group: *g}
		if live {
			digest := ""
			if out.Policy != "" {
				pinned.Source = v1beta1.SourcePolicy
				digest, out.Evidence = e.policyDigest(i, g.PolicyRef.Name), EvidenceReported
				index := i
				e.issue(IssuePolicyBodyUnavailable, &index)
			} else if d, err := plan.GroupDigest(g); err == nil {
				digest = d
			}
			out.ShadowedDigest = e.shadowedDigest(i, out.Shadowed)
			out.Digest, pinned.PortableDigest = digest, digest
			digests = append(digests, digest)
		}
		v.plan.Groups = append(v.plan.Groups, pinned)
		v.Groups = append(v.Groups, out)
	}
	v.Digest = plan.PlanDigest(digests)
	return v
}

// policyDigest is what the controller would pin for a group that takes its
// progression from a policy.
func (e *explainer) policyDigest(index int, policy string) string {
	if e.isvc.Status.Rollout == nil {
		return ""
	}
	for _, g := range e.isvc.Status.Rollout.Groups {
		if int(g.Index) == index && g.PolicyRef != nil && g.PolicyRef.Name == policy {
			return safe(g.ObservedDigest)
		}
	}
	return ""
}

// shadowedDigest is what the controller would pin of a policy without the group's own progression.
func (e *explainer) shadowedDigest(index int, policy string) string {
	if e.isvc.Status.Rollout == nil || policy == "" {
		return ""
	}
	for _, g := range e.isvc.Status.Rollout.Groups {
		if s := g.ShadowedPolicyRef; int(g.Index) == index && s != nil && safe(s.Name) == policy {
			return safe(s.WouldPinDigest)
		}
	}
	return ""
}

func (e *explainer) pinnedView(run *v1beta1.RolloutRun) PlanView {
	v := PlanView{Mode: modePinned, Evidence: EvidenceReported, RunID: safe(run.RunID), Digest: safe(plan.PinnedDigest(run.Plan)),
		OpenedAt: timePtr(&run.OpenedAt), PinnedAt: timePtr(&run.PinnedAt), Groups: []PlanGroup{}, plan: run.Plan}
	groups := plan.GroupsOf(run.Plan)
	for i := range run.Plan.Groups {
		g := &run.Plan.Groups[i]
		out := planGroup(i, groups)
		out.Evidence, out.Digest = EvidenceReported, safe(g.PortableDigest)
		switch g.Source {
		case v1beta1.SourceInline:
			out.Source = string(g.Source)
			if out.Strategy == strategyBlueGreen {
				// The record of a default is that of a blue-green group.
				out.Config = append([]PlanConfig{{Key: "origin", Value: StateUnknown}}, out.Config...)
			}
		case v1beta1.SourcePolicy:
			out.Source = string(g.Source)
			if g.PolicyRef != nil {
				out.Policy = safe(g.PolicyRef.Name)
				if g.PolicyGeneration > 0 {
					out.Policy += fmt.Sprintf("@%d", g.PolicyGeneration)
				}
			}
		default:
			out.Source = StateUnknown
			index := i
			e.issue(IssueActiveRunMalformed, &index)
		}
		v.Groups = append(v.Groups, out)
	}
	return v
}

// planGroup is what all views show of a group.
func planGroup(i int, groups []v1beta1.RolloutGroup) PlanGroup {
	g := &groups[i]
	out := PlanGroup{Index: i, Strategy: strategyOf(g), Components: []string{}, Config: []PlanConfig{}, Steps: []PlanStep{}}
	for _, c := range g.Components {
		out.Components = append(out.Components, safe(string(c)))
	}
	inSequence := plan.Sequence(groups) && plan.Kind(g) == v1beta1.ProgressionBlueGreen
	if inSequence {
		out.Strategy = strategySequential
	}
	out.add("soak", g.Soak != nil, func() (string, string) {
		switch {
		case !inSequence:
			return g.Soak.Duration.String(), effectPlanShape
		case lastOfSequence(groups, i):
			return g.Soak.Duration.String(), effectFinalGroup
		}
		return g.Soak.Duration.String(), ""
	})
	if out.Strategy == strategyRollingUpdate {
		out.budgets(g)
	}
	out.add("ratio", g.MaintainRatio != nil, func() (string, string) {
		if g.MaintainRatio.Tolerance == nil {
			return sourceUnresolved, "" // the operator's value, which is not the service's to show
		}
		text := fmt.Sprintf("%d%%", *g.MaintainRatio.Tolerance)
		switch {
		case inSequence:
			return text, effectPlanShape
		case len(g.Components) < 2:
			return text, effectSingleComponent
		case out.Strategy == StateUnknown || out.Strategy == strategyCanary:
			return text, StateUnknown
		}
		return text, ""
	})
	if g.Canary != nil {
		for j := range g.Canary.Steps {
			step := &g.Canary.Steps[j]
			out.Steps = append(out.Steps, PlanStep{oneLine(step.Capacity.String()), step.Traffic, string(plan.StepGate(step))})
		}
	}
	return out
}

func (g *PlanGroup) add(key string, set bool, value func() (text, effect string)) {
	if !set {
		return
	}
	text, effect := value()
	if text == sourceUnresolved {
		g.Config = append(g.Config, PlanConfig{Key: key, Value: text})
		return
	}
	g.Config = append(g.Config, PlanConfig{key, text, sourceConfigured, effect})
}

// budgets of a rolling update: its own, those of a policy that isn't read, or 25%.
func (g *PlanGroup) budgets(spec *v1beta1.RolloutGroup) {
	if spec.RollingUpdate == nil {
		g.Config = append(g.Config, PlanConfig{Key: "surge", Value: sourceUnresolved}, PlanConfig{Key: "unavailable", Value: sourceUnresolved})
		return
	}
	quarter := plan.DefaultBudget()
	for _, b := range []PlanConfig{{Key: "surge"}, {Key: "unavailable"}} {
		set := spec.RollingUpdate.MaxSurge
		if b.Key == "unavailable" {
			set = spec.RollingUpdate.MaxUnavailable
		}
		b.Value, b.Source = quarter.String(), sourceDefaulted
		if set != nil {
			b.Value, b.Source = safe(set.String()), sourceConfigured
		}
		g.Config = append(g.Config, b)
	}
}

// lastOfSequence is true for the last group that takes a turn: nothing waits after it.
func lastOfSequence(groups []v1beta1.RolloutGroup, i int) bool {
	for j := i + 1; j < len(groups); j++ {
		if plan.Kind(&groups[j]) == v1beta1.ProgressionBlueGreen {
			return false
		}
	}
	return true
}

// settings are the CONFIG lines of a group.
func (g *PlanGroup) settings() []string {
	var out []string
	for _, c := range g.Config {
		if c.Key == "strategy" || c.Key == "origin" {
			out = append(out, c.String())
		}
	}
	if g.Policy != "" {
		out = append(out, "policy=RolloutPolicy/"+g.Policy)
	}
	if g.Digest != "" {
		out = append(out, "digest="+g.Digest)
	}
	switch {
	case g.Shadowed == "":
	case g.ShadowedDigest == "":
		out = append(out, "shadowed="+g.Shadowed)
	default:
		out = append(out, "shadowed="+g.Shadowed+"("+g.ShadowedDigest+")")
	}
	for _, c := range g.Config {
		if c.Key != "strategy" && c.Key != "origin" {
			out = append(out, c.String())
		}
	}
	return out
}

func joined(words []string) string { return strings.Join(words, ",") }
