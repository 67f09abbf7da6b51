package view

import (
	"fmt"
	"slices"
	"strings"

	"ome.io/ome/api/v1beta1"
)

// ExplainHold is something that keeps the rollout from going on, with its way out.
type ExplainHold struct {
	// Kind is a hold of the whole service, or the gate of a component's.
	Kind      string `json:"kind"`
	Component string `json:"component,omitempty"`
	Group     *int   `json:"group,omitempty"`
	Evidence  string `json:"evidence"`
	Reason    string `json:"reason"`
	Target    string `json:"target,omitempty"`
	Since     string `json:"since,omitempty"`
	// WayOut says what ends the hold: what it waits for, or what to do.
	WayOut string `json:"wayOut"`
	// Command is what to run for it, or to learn more.
	Command string `json:"command,omitempty"`
}

// Kinds of holds beside the gates of components.
const (
	holdGlobalPause    = "GlobalPause"
	holdObservedPaused = "ObservedPaused"
	holdPlanParked     = "PlanParked"
	holdCanaryPreStep  = "CanaryPreStep"
	holdGroupFailed    = "GroupFailed"
)

// holds lists what holds the whole first, then groups, then components in their order.
func (e *explainer) holds() {
	e.pauses()
	e.parked()
	for i := range e.out.Groups {
		if g := &e.out.Groups[i]; g.Canary == nil && g.Phase == string(v1beta1.CoordinationFailed) {
			index := g.Index
			e.hold(ExplainHold{Kind: holdGroupFailed, Group: &index, Evidence: EvidenceReported, Reason: g.Message, Since: g.Since,
				WayOut: "a revision that can't start is mended in the spec; which Instance it is", Command: e.command("instance list")})
		}
	}
	e.canaryHolds()
	for _, c := range v1beta1.Components() {
		st, ok := e.isvc.Status.Components[c]
		if !ok {
			continue
		}
		if st.Lifecycle != nil && st.Lifecycle.RolloutHold != nil {
			e.componentHold(c, st.Lifecycle)
		}
	}
}

func (e *explainer) hold(h ExplainHold) { e.out.Holds = append(e.out.Holds, h) }

func (e *explainer) command(words string) string {
	return "kubectl ome " + words + " " + e.isvc.Name + " -n " + e.isvc.Namespace
}

// pauses shows the pause that is asked for and the one that the controller obeys.
func (e *explainer) pauses() {
	asked := e.isvc.Annotations[v1beta1.RolloutPausedAnnotation]
	if asked == v1beta1.PauseTrue || asked == v1beta1.PauseFreeze {
		e.hold(ExplainHold{Kind: holdGlobalPause, Evidence: EvidenceDeclared,
			Reason: fmt.Sprintf("paused by the annotation %s: %q", v1beta1.RolloutPausedAnnotation, asked),
			WayOut: "resume the service", Command: e.command("rollout resume")})
	} else {
		asked = ""
	}
	if e.isvc.Status.Rollout == nil || e.isvc.Status.Rollout.ObservedPause == "" {
		return
	}
	observed := safe(e.isvc.Status.Rollout.ObservedPause)
	h := ExplainHold{Kind: holdObservedPaused, Evidence: EvidenceReported, Reason: "the controller keeps to the pause " + observed,
		WayOut: "resume the service", Command: e.command("rollout resume")}
	if asked == "" {
		h.Command, h.WayOut = "", "the pause is lifted; the controller's next pass takes that up"
	}
	e.hold(h)
}

// parked shows a plan that can't be pinned: nothing of its groups moves.
func (e *explainer) parked() {
	c := e.out.PlanReady
	if c.State != "False" {
		return
	}
	reason := c.Reason
	if c.Message != "" {
		reason += ": " + c.Message
	}
	way, command := "change the field that the message names; to check an edit first", "kubectl ome rollout validate -f FILE"
	switch c.Reason {
	case v1beta1.ReasonPolicyNotFound, v1beta1.ReasonPolicyNotReady, v1beta1.ReasonProgressionMismatch:
		command, way = "", "mend the RolloutPolicy, or write the progression into the group of spec.rollout.groups"
	case v1beta1.ReasonProviderUnbound:
		command, way = "", "name a metrics server that the operator has bound, or set prometheus.serverAddress"
	}
	e.hold(ExplainHold{Kind: holdPlanParked, Evidence: EvidenceReported, Reason: reason, WayOut: way, Command: command})
}

func (e *explainer) componentHold(c v1beta1.ComponentType, l *v1beta1.LifecycleStatus) {
	r := l.RolloutHold
	h := ExplainHold{Kind: safe(string(r.Gate)), Component: string(c), Group: e.groupIndex(c), Evidence: EvidenceReported,
		Reason: safeTo(r.Reason, maxReason), Target: safe(r.Target), Since: timePtr(&r.Since)}
	// A hold on another target, or of another spec, is of the past.
	if l.UpdateRevision != "" && r.Target != "" && r.Target != l.UpdateRevision ||
		l.ObservedGeneration != 0 && l.ObservedGeneration != e.isvc.Generation {
		h.Evidence = EvidenceStale
	}
	h.WayOut, h.Command = e.wayOut(c, &h)
	e.hold(h)
}

func (e *explainer) groupIndex(c v1beta1.ComponentType) *int {
	for i := range e.out.Effective.Groups {
		if g := &e.out.Effective.Groups[i]; slices.Contains(g.Components, string(c)) {
			index := g.Index
			return &index
		}
	}
	return nil
}

// wayOut says what ends a component's hold. What a reason says itself isn't repeated.
func (e *explainer) wayOut(c v1beta1.ComponentType, h *ExplainHold) (text, command string) {
	field := ""
	var g *PlanGroup
	if h.Group != nil {
		g = &e.out.Effective.Groups[*h.Group]
		field = fmt.Sprintf("spec.rollout.groups[%d]", g.Index)
	}
	pinned := ""
	if e.out.Effective.Mode == modePinned {
		pinned = ", which counts from the next run on"
	}
	switch v1beta1.RolloutHoldGate(h.Kind) {
	case v1beta1.GatePairing:
		return "it goes on when engine and decoder both serve the new protocol; what the new Instances wait for", e.command("instance list")
	case v1beta1.GateRatio:
		return fmt.Sprintf("it goes on when the other components of the group have caught up; to let them drift further, raise %s.maintainRatio.tolerance%s", field, pinned), ""
	case v1beta1.GateSequential:
		return e.sequenceWayOut(c, g, pinned), ""
	case v1beta1.GateBudget:
		return e.budgetWayOut(c, g, field, pinned), ""
	case v1beta1.GateRetryBlock:
		return "it is tried again by itself; when", e.command("instance retry-blocks") + " --component=" + string(c)
	case v1beta1.GateHeld:
		way := "mend the spec, which makes a new revision"
		if IsRevision(v1beta1.ReplicaName(e.isvc.Name, c), h.Target) {
			return way + "; or try this one again", fmt.Sprintf("%s --component=%s --revision=%s", e.command("instance release-held"), c, h.Target)
		}
		return way, ""
	case v1beta1.GatePlan:
		if e.out.PlanReady.State == "False" {
			return "it goes on when the plan can be pinned: see " + holdPlanParked, ""
		}
		return "it goes on by itself when the reason is gone; a field that the reason names is in the way until it is changed", ""
	}
	return "this plugin doesn't know the gate; the reason says what it waits for", ""
}

// sequenceWayOut names who has to finish, and the soak that runs after it.
func (e *explainer) sequenceWayOut(c v1beta1.ComponentType, g *PlanGroup, pinned string) string {
	before := ""
	for _, unit := range e.out.Groups {
		if at := slices.Index(unit.Components, string(c)); at > 0 {
			before = unit.Components[at-1]
		}
	}
	if g == nil || before == "" {
		return "it goes on when the components before it have finished"
	}
	way := "it goes on when " + before + " has finished"
	var soaks []string
	for i := range e.out.Effective.Groups {
		for _, s := range e.out.Effective.Groups[i].Config {
			if s.Key == "soak" && s.Effect == "" {
				soaks = append(soaks, fmt.Sprintf("spec.rollout.groups[%d].soak: %s", i, s.Value))
			}
		}
	}
	if len(soaks) > 0 {
		way += " and its soak is over; to shorten it, change " + strings.Join(soaks, " and ") + pinned
	}
	return way
}

// budgetWayOut names the budgets that apply: the narrower of the group's and the component's own.
func (e *explainer) budgetWayOut(c v1beta1.ComponentType, g *PlanGroup, field, pinned string) string {
	own := fmt.Sprintf("spec.%s.lifecycle.updateStrategy.rollingUpdate", c)
	const way = "it goes on when a slot is free; "
	switch {
	case g == nil:
		return way + "to go faster, raise " + own
	case g.Strategy == strategyRollingUpdate:
		groups := field + ".rollingUpdate"
		if g.Policy != "" {
			name, _, _ := strings.Cut(g.Policy, "@")
			groups = "spec.rollingUpdate of RolloutPolicy " + name
		}
		return way + fmt.Sprintf("to go faster, raise %s or, when that is wider, %s%s", own, groups, pinned)
	}
	return way + fmt.Sprintf("the group moves 25%% of a component's replicas at a time, or less where %s says so", own)
}
