package view

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// RolloutHistoryReport is the report of `rollout history`.
type RolloutHistoryReport = Report[RolloutHistory]

// RolloutHistory is what the status keeps of the runs of a service. It is bounded, and
// no audit trail.
type RolloutHistory struct {
	// Window says whether there are records at all: Partial, Empty or Unavailable.
	Window       string         `json:"window"`
	Completeness string         `json:"completeness"`
	Current      HistoryCurrent `json:"current"`
	// Outcome is that of the run closed last.
	Outcome    string              `json:"outcome,omitempty"`
	ActiveRuns []HistoryRun        `json:"activeRuns"`
	LastRun    *HistoryRun         `json:"lastRun,omitempty"`
	Earlier    []HistoryRun        `json:"earlierRuns"`
	Provenance []HistoryProvenance `json:"provenance"`
	Revisions  []HistoryRevision   `json:"revisions"`
	Issues     []Issue             `json:"issues"`
}

// HistoryCurrent is where the rollout is now.
type HistoryCurrent struct {
	State    string `json:"state"`
	Evidence string `json:"evidence"`
	Epoch    string `json:"epoch"`
}

// HistoryRun is one run.
type HistoryRun struct {
	RunID    string              `json:"runID,omitempty"`
	State    string              `json:"state"`
	OpenedAt string              `json:"openedAt,omitempty"`
	PinnedAt string              `json:"pinnedAt,omitempty"`
	ClosedAt string              `json:"closedAt,omitempty"`
	Groups   *int                `json:"groups,omitempty"`
	Targets  []ComponentRevision `json:"targets"`
	Cause    string              `json:"cause,omitempty"`
	Actor    string              `json:"actor,omitempty"`
}

// HistoryProvenance says where the progression of a group came from.
type HistoryProvenance struct {
	// Run is Active, Last, or Next for a run that would open now.
	Run        string `json:"run"`
	Group      int    `json:"group"`
	Source     string `json:"source"`
	Policy     string `json:"policy,omitempty"`
	Generation int64  `json:"policyGeneration,omitempty"`
	Digest     string `json:"digest,omitempty"`
	Shadowed   string `json:"shadowed,omitempty"`
}

// HistoryRevision is a revision that the status of a component names.
type HistoryRevision struct {
	Component string `json:"component"`
	Phase     string `json:"phase,omitempty"`
	Hash      string `json:"hash"`
	// Role is Current, Ready, Previous, or Rejected for one that was rolled back.
	Role string `json:"role"`
}

// Words of the history.
const (
	windowPartial     = "Partial"
	windowEmpty       = "Empty"
	windowUnavailable = "Unavailable"

	retentionBounded = "RetentionBounded"

	runActive = "Active"
	runLast   = "Last"
	runNext   = "Next"
)

// BuildRolloutHistory reports on the runs of one service.
func BuildRolloutHistory(s *v1beta1.InferenceService, now time.Time) *RolloutHistoryReport {
	status := BuildRolloutStatus(s, now)
	sum := status.Content.Summary
	h := &RolloutHistory{
		Window: windowUnavailable, Completeness: retentionBounded,
		Current:    HistoryCurrent{sum.ReportedState, sum.Evidence, sum.Epoch},
		ActiveRuns: []HistoryRun{}, Earlier: []HistoryRun{}, Provenance: []HistoryProvenance{}, Revisions: []HistoryRevision{},
		Issues: slices.Clone(status.Content.Issues),
	}
	if ro := s.Status.Rollout; ro != nil {
		h.runs(ro)
	}
	for _, c := range status.Content.Components {
		for _, r := range []struct{ hash, role string }{{c.RolledOutRevision, "Current"}, {c.ReadyRevision, "Ready"}, {c.PreviousRevision, "Previous"}} {
			if r.hash != "" {
				h.Revisions = append(h.Revisions, HistoryRevision{c.Type, c.Phase, r.hash, r.role})
			}
		}
		if hash := rejectedOf(s, v1beta1.ComponentType(c.Type)); hash != "" {
			h.Revisions = append(h.Revisions, HistoryRevision{c.Type, c.Phase, hash, "Rejected"})
		}
	}
	report := &RolloutHistoryReport{
		APIVersion: APIVersion, Kind: "RolloutHistoryReport", Metadata: Metadata{s.Namespace, s.Name}, CollectedAt: stamp(now),
		Sources: status.Sources, Content: *h, Warnings: []Warning{},
	}
	if len(h.Issues) > 0 {
		report.Warnings = append(report.Warnings, Warning{WarningPartialData})
	}
	return report
}

func (h *RolloutHistory) runs(ro *v1beta1.RolloutStatus) {
	h.Window = windowEmpty
	if run := ro.ActiveRun; run != nil {
		h.ActiveRuns = append(h.ActiveRuns, HistoryRun{RunID: safe(run.RunID), State: runActive, OpenedAt: timePtr(&run.OpenedAt),
			PinnedAt: timePtr(&run.PinnedAt), Groups: numberOf(len(run.Plan.Groups)), Targets: targets(run.TargetRevisions)})
		for i := range run.Plan.Groups {
			g := &run.Plan.Groups[i]
			h.provenance(HistoryProvenance{Run: runActive, Group: i, Generation: g.PolicyGeneration, Digest: g.PortableDigest}, g.Source, g.PolicyRef, IssueActiveRunMalformed)
		}
	}
	last := ro.LastRun
	if last != nil {
		h.LastRun = &HistoryRun{RunID: safe(last.RunID), State: h.outcome(last.Outcome), OpenedAt: timePtr(last.OpenedAt),
			ClosedAt: timePtr(last.ClosedAt), Groups: numberOf(len(last.Groups)), Targets: targets(last.TargetRevisions)}
		h.Outcome = h.LastRun.State
		for i := range last.Groups {
			g := &last.Groups[i]
			h.provenance(HistoryProvenance{Run: runLast, Group: i, Digest: g.PortableDigest}, g.Source, g.PolicyRef, IssueStatusMalformed)
		}
	}
	for i := range ro.History {
		e := &ro.History[i]
		if last != nil && e.RunID == last.RunID {
			// The same run, with what the record of the last one has no room for.
			h.LastRun.Cause, h.LastRun.Actor = safe(e.Cause), safe(e.Actor)
			continue
		}
		h.Earlier = append(h.Earlier, HistoryRun{RunID: safe(e.RunID), State: h.outcome(e.Outcome), OpenedAt: timePtr(e.OpenedAt),
			ClosedAt: timePtr(e.ClosedAt), Targets: targets(e.TargetRevisions), Cause: safe(e.Cause), Actor: safe(e.Actor)})
	}
	for i := range ro.Groups {
		g := &ro.Groups[i]
		p := HistoryProvenance{Run: runNext, Group: int(g.Index), Digest: g.ObservedDigest}
		if g.ShadowedPolicyRef != nil {
			p.Shadowed = safe(g.ShadowedPolicyRef.Name)
		}
		h.provenance(p, g.Source, g.PolicyRef, IssueStatusMalformed)
	}
	if len(h.ActiveRuns)+len(h.Earlier)+len(h.Provenance) > 0 || h.LastRun != nil {
		h.Window = windowPartial
	}
}

func (h *RolloutHistory) outcome(o v1beta1.RunOutcome) string {
	switch o {
	case v1beta1.RunCompleted, v1beta1.RunRolledBack, v1beta1.RunSuperseded:
		return string(o)
	}
	h.Issues = append(h.Issues, Issue{Code: IssueStatusMalformed})
	return StateUnknown
}

func (h *RolloutHistory) provenance(p HistoryProvenance, source v1beta1.ProgressionSource, ref *v1beta1.RolloutPolicyRef, code string) {
	p.Digest, p.Source = safe(p.Digest), string(source)
	switch source {
	case v1beta1.SourceInline:
	case v1beta1.SourcePolicy:
		if ref != nil {
			p.Policy = safe(ref.Name)
		}
	default:
		p.Source = StateUnknown
		group := p.Group
		h.Issues = append(h.Issues, Issue{Code: code, Group: &group})
	}
	h.Provenance = append(h.Provenance, p)
}

func targets(list []v1beta1.RunTarget) []ComponentRevision {
	out := []ComponentRevision{}
	for _, t := range list {
		out = append(out, ComponentRevision{Component: safe(string(t.Component)), Stable: safe(t.StableRevision), Target: safe(t.Revision)})
	}
	return out
}

func numberOf(n int) *int { return &n }

// RolloutHistorySentence says in plain words which run is open and how the last one ended.
func RolloutHistorySentence(s *v1beta1.InferenceService, r *RolloutHistoryReport, reference time.Time) string {
	h := &r.Content
	ago := func(t *metav1.Time) string {
		if t == nil || t.IsZero() {
			return ""
		}
		return " " + age(reference.Sub(t.Time)) + " ago"
	}
	if h.Window == windowUnavailable {
		return s.Name + ": no run was recorded yet."
	}
	text := s.Name + ": no run is open"
	if run := s.Status.Rollout.ActiveRun; run != nil {
		text = s.Name + ": run " + safe(run.RunID) + " opened" + ago(&run.OpenedAt)
	}
	if last := s.Status.Rollout.LastRun; last != nil {
		text += "; the last one was closed" + ago(last.ClosedAt) + ", " + runWords[h.Outcome]
	} else {
		text += "; none was closed yet"
	}
	return text + "."
}

var runWords = map[string]string{
	string(v1beta1.RunCompleted): "completed", string(v1beta1.RunRolledBack): "rolled back",
	string(v1beta1.RunSuperseded): "superseded by a newer target", StateUnknown: "with an unknown outcome",
}
