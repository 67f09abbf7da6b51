package guarded

import (
	"fmt"
	"strings"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// Messages of repin beside the shared ones.
const (
	MsgRepinNoRun    = "rollout repin refused: no active pinned run"
	MsgRepinEmpty    = "rollout repin refused: empty live plans are not supported by this command"
	MsgRepinEvidence = "rollout repin refused: controller plan evidence is missing, stale or inconsistent"
	MsgRepinPinned   = "rollout repin refused: the current plan is already pinned"
	MsgRepinTopology = "rollout repin refused: live and pinned rollout topology differ"
	MsgRepinCanaries = "rollout repin refused: this command supports at most one canary group"
	MsgRepinMailbox  = "rollout repin refused: a rollout action mailbox is already present"

	msgRepinUnknown = "rollout repin request outcome unknown; do not replay, check rollout explain"
)

// repinMailboxes are the requests that the controller would answer before, or
// instead of, a repin.
var repinMailboxes = []string{v1beta1.RolloutRepinAnnotation, v1beta1.RolloutPromoteAnnotation, v1beta1.RolloutRollbackAnnotation}

// Repin asks the controller to take the current plan into the open run. The request
// names the digest of the plan that was shown, so that an edit in between is not
// taken unseen.
func Repin() *Action {
	return &Action{
		Name:  "rollout repin",
		Title: titleAlpha,
		Refusals: []Refusal{
			refuseNoRun,
			refuseNoGroups,
			refuseCanaries,
			refusePlanEvidence,
			refusePinned,
			refuseDriftEvidence,
			refuseTopology,
			refuseRepinMailbox,
		},
		Change: func(ev *Evidence) Change {
			digest := ev.requestedDigest()
			if digest == "" {
				return Change{}
			}
			return Change{Annotations: []Annotation{{Key: v1beta1.RolloutRepinAnnotation, Value: &digest}}}
		},
		Preview: previewRepin,
		Result: func(ev *Evidence, res *ActionResult) {
			run := ev.openRun()
			res.Rollout = &RolloutResult{RunID: run.RunID, PinnedPlanDigest: plan.PinnedDigest(run.Plan),
				RequestedPlanDigest: ev.requestedDigest(), GroupCount: int32(len(run.Plan.Groups))}
		},
		Words: Words{
			Accepted:      "API accepted repin annotation; controller consumption and convergence not observed.",
			Conflict:      "guarded annotation patch rejected; refresh rollout explain and retry explicitly",
			Unknown:       msgRepinUnknown,
			Rejected:      MsgReadFailed,
			Unbound:       msgRepinUnknown,
			WriteFailed:   "write rollout action result failed; check rollout explain",
			PreviewFailed: msgPreviewFailed,
			FollowUp:      func(ev *Evidence) string { return ev.Command("rollout explain") },
		},
	}
}

// RolloutResult is what a repin adds to the result.
type RolloutResult struct {
	RunID               string `json:"runID"`
	PinnedPlanDigest    string `json:"pinnedPlanDigest"`
	RequestedPlanDigest string `json:"requestedPlanDigest"`
	GroupCount          int32  `json:"groupCount"`
}

// openRun is the run in progress; nil when there is none.
func (ev *Evidence) openRun() *v1beta1.RolloutRun {
	if ro := ev.Service.Status.Rollout; ro != nil {
		return ro.ActiveRun
	}
	return nil
}

// liveGroups are the groups that the spec asks for now.
func (ev *Evidence) liveGroups() []v1beta1.RolloutGroup {
	if ev.Service.Spec.Rollout == nil {
		return nil
	}
	return ev.Service.Spec.Rollout.Groups
}

// liveDigests are the digests of the live groups as the controller reports them,
// empty where it reports none. It may leave out that of a group without settings.
func (ev *Evidence) liveDigests() []string {
	groups := ev.liveGroups()
	digests := make([]string, len(groups))
	for i := range groups {
		if ro := ev.Service.Status.Rollout; ro != nil && i < len(ro.Groups) {
			digests[i] = ro.Groups[i].ObservedDigest
		}
		if digests[i] == "" && plan.Kind(&groups[i]) == v1beta1.ProgressionBlueGreen && !fromPolicy(&groups[i]) {
			digests[i], _ = plan.GroupDigest(&groups[i])
		}
	}
	return digests
}

// requestedDigest names the live plan as a whole; empty while a group has no digest.
func (ev *Evidence) requestedDigest() string { return plan.PlanDigest(ev.liveDigests()) }

// fromPolicy is true when a policy has the group's progression: one that the group
// carries itself outranks it.
func fromPolicy(g *v1beta1.RolloutGroup) bool {
	return g.PolicyRef != nil && progressions(g) == 0
}

// progressions counts what a group carries itself.
func progressions(g *v1beta1.RolloutGroup) int {
	n := 0
	for _, set := range []bool{g.Canary != nil, g.BlueGreen != nil, g.RollingUpdate != nil} {
		if set {
			n++
		}
	}
	return n
}

func refuseNoRun(ev *Evidence) *Error {
	if ev.openRun() != nil {
		return nil
	}
	return Refuse(MsgRepinNoRun, "status.rollout.activeRun is absent: no rollout is under way",
		"the next run pins the plan as it is then; nothing needs to be repinned")
}

func refuseNoGroups(ev *Evidence) *Error {
	if len(ev.liveGroups()) > 0 {
		return nil
	}
	return Refuse(MsgRepinEmpty, "spec.rollout.groups is empty; run "+Quote(Clean(ev.openRun().RunID))+" goes on with the plan that it pinned",
		"to pin another plan, write the groups into spec.rollout.groups")
}

func refuseCanaries(ev *Evidence) *Error {
	var at []string
	for i, groups := 0, ev.liveGroups(); i < len(groups); i++ {
		if plan.Kind(&groups[i]) == v1beta1.ProgressionCanary {
			at = append(at, fmt.Sprintf("groups[%d]", i))
		}
	}
	if len(at) < 2 {
		return nil
	}
	return Refuse(MsgRepinCanaries, "spec.rollout: "+strings.Join(at, " and ")+" are canary groups", "let the run finish; the next one pins the plan as it is then")
}

// refusePinned refuses when there is nothing to take over.
func refusePinned(ev *Evidence) *Error {
	run, requested := ev.openRun(), ev.requestedDigest()
	pinned := plan.PinnedDigest(run.Plan)
	drift := ev.condition(v1beta1.ConditionRolloutPlanDrift)
	var details []string
	switch {
	case drift.Status == "False" && drift.Reason == v1beta1.ReasonInSync:
		details = append(details, "condition "+v1beta1.ConditionRolloutPlanDrift+" is False/"+v1beta1.ReasonInSync)
	case requested != pinned:
		return nil
	}
	if requested == pinned {
		details = append(details, "run "+Quote(run.RunID)+" has pinned "+pinned+", and the spec renders the same")
	} else {
		details = append(details, "the digests differ nevertheless, "+requested+" and "+pinned, ev.explainLater())
	}
	if difference := ev.topology(); difference != "" {
		details = append(details, difference+"; such an edit applies at the next run")
	}
	return Refuse(MsgRepinPinned, details...)
}

// livePlan is what the spec alone says of the plan. Policies aren't read: their digests are the
// controller's to report.
func (ev *Evidence) livePlan() plan.Resolution {
	return plan.Sources{Unread: true}.Resolve(ev.Service.Spec.Rollout)
}

// topology says how the live plan differs in what a digest doesn't cover.
func (ev *Evidence) topology() string {
	return plan.Topology(ev.openRun().Plan, ev.livePlan().Plan)
}

func refuseTopology(ev *Evidence) *Error {
	difference := ev.topology()
	if difference == "" {
		return nil
	}
	return Refuse(MsgRepinTopology, difference,
		"such an edit applies at the next run: let this one finish, or change spec.rollout.groups back in this point")
}

func refuseRepinMailbox(ev *Evidence) *Error {
	for _, key := range repinMailboxes {
		if v, ok := ev.Annotation(key); ok {
			return Refuse(MsgRepinMailbox, "annotation "+key+" is "+Quote(Clean(v)),
				"let the controller consume it, or remove it with: "+
					ev.kubectl("annotate inferenceservices."+v1beta1.Group+" "+ShellQuote(ev.Name)+" "+key+"-"))
		}
	}
	return nil
}

func previewRepin(ev *Evidence) ([]Row, []string) {
	t, run, requested := ev.target(), ev.openRun(), ev.requestedDigest()
	rows := []Row{
		{"Action", "rollout repin"},
		{"Context", ev.Context},
		{"Workload NS", ev.Namespace},
		{"Target", t.Kind + "/" + t.Name},
		{"UID", t.UID},
		{rowResourceVersion, t.ResourceVersion},
		{"Dry-run", string(ev.DryRun)},
		{"Run ID", run.RunID},
		{"Pinned digest", plan.PinnedDigest(run.Plan)},
		{"Requested digest", requested},
		{"Groups", fmt.Sprint(len(run.Plan.Groups))},
		{"Pause state", ev.pauseState()},
		{"Set annotation", v1beta1.RolloutRepinAnnotation},
		{"Value", Quote(requested)},
	}
	var notes []string
	groups := ev.liveGroups()
	for i, live := range ev.liveDigests() {
		if was := run.Plan.Groups[i].PortableDigest; was != live {
			notes = append(notes, fmt.Sprintf("Note: groups[%d], %s of %s, goes from %s to %s.",
				i, plan.Kind(&groups[i]), componentList(groups[i].Components), was, live))
		}
	}
	notes = append(notes,
		"Note: the run keeps its ID, its targets and what it has reached; moves that have begun go on under the new plan.",
		"Note: the controller takes the plan only if it still has this digest; a later edit makes it answer "+v1beta1.EventRolloutRepinRejected+".")
	if v, _ := ev.Annotation(v1beta1.RolloutPausedAnnotation); recognizedPause(v) {
		notes = append(notes, "Note: the service is paused; the request is kept, and taken after the resume.")
	}
	notes = append(notes, "Note: the guard is on the InferenceService alone; the run may move on, finish or be superseded meanwhile.")
	return rows, append(notes, ev.skewNotes()...)
}

func componentList(components []v1beta1.ComponentType) string {
	names := make([]string, len(components))
	for i, c := range components {
		names[i] = string(c)
	}
	return strings.Join(names, ",")
}

// skewNotes tell when this computer's clock isn't the one that times are judged by.
func (ev *Evidence) skewNotes() []string {
	skew := ev.Now.Sub(ev.ServerNow).Abs()
	if skew < time.Minute {
		return nil
	}
	return []string{fmt.Sprintf("Note: this computer's clock is %s off the API server's; times are judged by the server's, %s.",
		skew.Truncate(time.Second), utc(ev.ServerNow))}
}
