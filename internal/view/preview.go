package view

import (
	"fmt"
	"strings"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/preview"
)

// RolloutPreviewReport is what `rollout preview` prints.
type RolloutPreviewReport = Report[RolloutPreview]

// RolloutPreview says what the manager would do with a changed service.
type RolloutPreview struct {
	// Outcome is Completes, Partitioned or Stalls.
	Outcome string `json:"outcome"`
	// Basis says what the change starts from: Live, File or Assumed.
	Basis   string          `json:"basis"`
	Changes []PreviewChange `json:"changes"`
	Plan    PreviewPlan     `json:"plan"`
	// PairsBy is Token or Revision; empty when no pairs are counted.
	PairsBy string        `json:"pairsBy,omitempty"`
	Moves   []PreviewMove `json:"moves"`
	// Took is the time of the last move, by the start-up and shut-down times assumed.
	TookSeconds int64            `json:"tookSeconds"`
	Extremes    []PreviewExtreme `json:"extremes"`
	// LeastPairs is absent when no pairs are counted.
	LeastPairs  *int64        `json:"leastPairs,omitempty"`
	PodsBefore  int32         `json:"podsBefore"`
	MostPods    int32         `json:"mostPods"`
	Stall       *PreviewStall `json:"stall,omitempty"`
	Assumptions []string      `json:"assumptions"`
	// Advice are warnings of admission.
	Advice []string `json:"advice"`

	name, namespace string
}

// The bases.
const (
	BasisLive    = "Live"
	BasisFile    = "File"
	BasisAssumed = "Assumed"
)

const (
	pairsByRevision = "Revision"
	pairsByToken    = "Token"
)

// PreviewChange is what the change means for one component.
type PreviewChange struct {
	Component string `json:"component"`
	// Kind is Updates, Scales, Stays, Joins or Leaves.
	Kind     string `json:"kind"`
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	Before   int32  `json:"replicasBefore"`
	After    int32  `json:"replicasAfter"`
	Strategy string `json:"strategy,omitempty"`
}

// PreviewPlan is the plan that the moves follow.
type PreviewPlan struct {
	// State is NoGroups, NoRun, Opens, Supersedes or Pinned.
	State string `json:"state"`
	RunID string `json:"runID,omitempty"`
	// Drift is why an edit of the plan waits for the next run.
	Drift  string      `json:"drift,omitempty"`
	Groups []PlanGroup `json:"groups"`
}

// The states of a PreviewPlan.
const (
	planNoGroups   = "NoGroups"
	planNoRun      = "NoRun"
	planOpens      = "Opens"
	planSupersedes = "Supersedes"
	planPinned     = "Pinned"
)

// PreviewMove is a batch of moves, and how things stand after it.
type PreviewMove struct {
	Number       int             `json:"number"`
	AfterSeconds int64           `json:"afterSeconds"`
	Actions      []PreviewAction `json:"actions"`
	// Notes come before the actions, Then after them.
	Notes      []string       `json:"notes"`
	Then       []string       `json:"then"`
	Components []PreviewState `json:"components"`
	Pairs      *PreviewPairs  `json:"pairs,omitempty"`
	Pods       int32          `json:"pods"`
}

// PreviewAction is a verb and the Instances it is done to.
type PreviewAction struct {
	Verb      string  `json:"verb"`
	Component string  `json:"component"`
	Instances []int32 `json:"instances"`
}

// PreviewState counts the pods of a component.
type PreviewState struct {
	Component string `json:"component"`
	// New and Old are in rotation; Pods are all there are.
	New     int32 `json:"servingNew"`
	Old     int32 `json:"servingOld"`
	Serving int32 `json:"serving"`
	Pods    int32 `json:"pods"`
}

// PreviewPairs counts engines and decoders of each cohort.
type PreviewPairs struct {
	OldEngines  int32 `json:"oldEngines"`
	OldDecoders int32 `json:"oldDecoders"`
	NewEngines  int32 `json:"newEngines"`
	NewDecoders int32 `json:"newDecoders"`
}

// PreviewExtreme is the least that serves and the most pods of a component.
type PreviewExtreme struct {
	Component    string `json:"component"`
	LeastServing int32  `json:"leastServing"`
	MostPods     int32  `json:"mostPods"`
}

// PreviewStall says where and why it stops.
type PreviewStall struct {
	Move   int           `json:"move"`
	Paused string        `json:"paused,omitempty"`
	Holds  []PreviewHold `json:"holds"`
	// Tolerance is a maintainRatio.tolerance under which the change completes; 0 for none.
	Tolerance int32    `json:"tolerance,omitempty"`
	WaysOut   []string `json:"waysOut"`
}

// PreviewHold is what keeps one component.
type PreviewHold struct {
	Component string `json:"component"`
	Gate      string `json:"gate"`
	Reason    string `json:"reason"`
}

// PreviewSubject is what a preview was made of.
type PreviewSubject struct {
	Basis   string
	Service *v1beta1.InferenceService
	Timing  preview.Timing
	Sources []Source
	// Advice are warnings of admission, Assumed what a caller assumed besides.
	Advice, Assumed []string
}

// BuildRolloutPreview words the outcome of a preview.
func BuildRolloutPreview(res *preview.Result, of PreviewSubject, now time.Time) *RolloutPreviewReport {
	s := of.Service
	out := RolloutPreview{
		Outcome: string(res.Outcome), Basis: of.Basis, Plan: previewPlan(res, s), Changes: []PreviewChange{}, Moves: []PreviewMove{},
		TookSeconds: seconds(res.Took), Extremes: []PreviewExtreme{}, PodsBefore: res.PodsBefore, MostPods: res.MostPods,
		Advice: []string{}, name: safe(s.Name), namespace: safe(s.Namespace),
	}
	for _, c := range res.Changes {
		if of.Basis == BasisAssumed {
			c.From = "" // nobody knows it
		}
		out.Changes = append(out.Changes, PreviewChange{string(c.Component), string(c.Kind), safe(c.From), safe(c.To), c.Before, c.After, string(c.Strategy)})
	}
	if res.Paired {
		out.PairsBy, out.LeastPairs = pairsByRevision, &res.LeastPairs
		if res.PairsByToken {
			out.PairsBy = pairsByToken
		}
	}
	for i := range res.Moves {
		out.Moves = append(out.Moves, previewMove(i, &res.Moves[i], res.Paired))
	}
	for _, e := range res.Extremes {
		out.Extremes = append(out.Extremes, PreviewExtreme{string(e.Component), e.Serving, e.Pods})
	}
	for _, a := range of.Advice {
		out.Advice = append(out.Advice, safeTo(a, maxReason))
	}
	out.Assumptions = assumptions(res, of)
	if res.Stall != nil {
		out.Stall = previewStall(res.Stall, s)
	}
	return &RolloutPreviewReport{
		APIVersion: APIVersion, Kind: "RolloutPreviewReport", Metadata: Metadata{safe(s.Namespace), safe(s.Name)}, CollectedAt: stamp(now),
		Sources: append([]Source{}, of.Sources...), Content: out, Warnings: []Warning{},
	}
}

func seconds(d time.Duration) int64 { return int64(d.Round(time.Second) / time.Second) }

func previewMove(number int, m *preview.Move, paired bool) PreviewMove {
	out := PreviewMove{Number: number, AfterSeconds: seconds(m.After), Actions: []PreviewAction{}, Notes: []string{}, Then: []string{}, Components: []PreviewState{}, Pods: m.Pods}
	for _, a := range m.Actions {
		out.Actions = append(out.Actions, PreviewAction{string(a.Verb), string(a.Component), a.Instances})
	}
	for _, n := range m.Notes {
		out.Notes = append(out.Notes, safeTo(n, maxReason))
	}
	for _, n := range m.Then {
		out.Then = append(out.Then, safeTo(n, maxReason))
	}
	for _, s := range m.States {
		out.Components = append(out.Components, PreviewState{string(s.Component), s.New, s.Old, s.Serving(), s.Pods})
	}
	if paired {
		p := PreviewPairs(m.Pairs)
		out.Pairs = &p
	}
	return out
}

func previewPlan(res *preview.Result, s *v1beta1.InferenceService) PreviewPlan {
	out := PreviewPlan{State: planNoGroups, Groups: []PlanGroup{}}
	var groups []v1beta1.RolloutGroup
	if s.Spec.Rollout != nil {
		groups = s.Spec.Rollout.Groups
	}
	switch {
	case res.Run != nil:
		out.State, out.RunID, out.Drift = planOpens, safe(res.Run.RunID), safeTo(res.Drift, maxReason)
		groups = plan.GroupsOf(res.Run.Plan)
		switch {
		case res.Pinned:
			out.State = planPinned
		case res.Superseded:
			out.State = planSupersedes
		}
		if !res.Pinned {
			out.RunID = "" // the manager will give it another name
		}
	case len(groups) > 0:
		out.State = planNoRun
	}
	for i := range groups {
		g := planGroup(i, groups)
		g.Source, g.Evidence = string(v1beta1.SourceInline), EvidenceComputed
		out.Groups = append(out.Groups, g)
	}
	return out
}

// assumptions say what a real roll may do otherwise.
func assumptions(res *preview.Result, of PreviewSubject) []string {
	out := []string{
		fmt.Sprintf("every pod is ready %s after its start and gone %s after it is told to go", of.Timing.StartUp, of.Timing.ShutDown),
		"no pod fails: images can be pulled, nothing crashes",
	}
	if extra := res.MostPods - res.PodsBefore; extra > 0 {
		out = append(out, "nodes and quotas have room for "+counted(int(extra), "more pod"))
	}
	out = append(out, "nobody edits anything meanwhile, and autoscalers keep the counts, within their bounds")
	if res.GatesPassed {
		out = append(out, "canary gates that a person or an analysis opens are passed as soon as they are reached")
	}
	for _, a := range of.Assumed {
		out = append(out, safeTo(a, maxReason))
	}
	return out
}

func previewStall(s *preview.Stall, isvc *v1beta1.InferenceService) *PreviewStall {
	out := &PreviewStall{Move: s.Move, Paused: safe(s.Paused), Holds: []PreviewHold{}, Tolerance: s.Tolerance, WaysOut: []string{}}
	gates := map[v1beta1.RolloutHoldGate]bool{}
	for _, h := range s.Holds {
		out.Holds = append(out.Holds, PreviewHold{string(h.Component), string(h.Gate), safeTo(h.Reason, maxReason)})
		gates[h.Gate] = true
	}
	target := safe(isvc.Name) + " -n " + safe(isvc.Namespace)
	if s.Paused != "" {
		out.WaysOut = append(out.WaysOut, "the service is paused: kubectl ome rollout resume "+target)
	}
	if s.Tolerance > 0 {
		out.WaysOut = append(out.WaysOut, fmt.Sprintf("with maintainRatio.tolerance: %d the same change completes", s.Tolerance))
	}
	if gates[v1beta1.GateHeld] || gates[v1beta1.GateRetryBlock] {
		out.WaysOut = append(out.WaysOut, "the revision failed before: kubectl ome instance release-held "+target+", or another spec")
	}
	if len(out.WaysOut) == 0 && len(out.Holds) == 0 {
		out.WaysOut = append(out.WaysOut, "no hold is told: "+strings.TrimSpace("kubectl ome rollout explain "+target+" may say more"))
	}
	return out
}
