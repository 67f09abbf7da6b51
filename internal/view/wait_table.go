package view

import (
	"fmt"
	"strings"
)

// Sentences of the report: what a match means and what it doesn't.
const (
	readyCaveat    = "a status that is proved to be about an older spec never matches; one without a stamp does"
	rolloutCaveat  = "a status stamped with an older generation never matches; one without a stamp does"
	notAttributed  = "the state is observed; what brought it about is not"
	migrationNote  = "terminal includes Failed; read the migration outcome"
	readyMeans     = "Instances whose pods all have ready containers"
	currentMeans   = "wanted and present count agree; Instances of any phase count"
	currentCaveat  = "a count says nothing about readiness"
	syncMeans      = "the token in status is the requested one and no drift is reported"
	syncCaveat     = "acknowledged does not mean rolled out"
	heldMeans      = "no block holds the revision and no release is pending"
	heldCaveat     = "Backoff, RetryInProgress and Absent are all unheld"
	countAuthority = "status.readyReplicas of the InferenceReplica"
	servingCaveat  = "ready Instances may not be in rotation yet"
	cancelCaveat   = "an interrupt ends the wait without a report"
)

// WaitTable is the default table.
func WaitTable(r *WaitReport) *Table { return waitTable(r, false) }

// WaitWide adds what the default leaves out.
func WaitWide(r *WaitReport) *Table { return waitTable(r, true) }

func waitTable(r *WaitReport, wide bool) *Table {
	c := &r.Content
	p := c.predicate
	t := &Table{Header: []string{"FIELD", "VALUE"}}
	row := func(name, value string) { t.Rows = append(t.Rows, []string{name, dash(value)}) }
	counts := func() {
		row("GET / WATCH / polls", fmt.Sprintf("%d / %d / %d", c.Counts.Gets, c.Counts.Watches, c.Counts.Polls))
	}
	elapsed := func() { row("Elapsed milliseconds", fmt.Sprint(c.ElapsedMilliseconds)) }
	method := func() {
		row("Source method", c.SourceMethod)
		row("Polling fallback", fmt.Sprint(c.PollingFallback))
		elapsed()
		counts()
	}
	row("Service", r.Metadata.Namespace+"/"+r.Metadata.Name)
	row("Requested", c.Requested)
	switch p.Family {
	case WaitReady:
		o := orEmpty(c.Observed)
		row("Outcome", c.Outcome)
		row("Observed Ready", o.Status)
		row("Condition validity", o.Validity)
		row("Reason", c.Reason)
		row("Evidence", c.Evidence)
		row("Generation freshness", o.GenerationFreshness)
		row("Freshness caveat", readyCaveat)
		row("Condition inspection", o.Inspection.String())
		method()
		row("Events / observations", fmt.Sprintf("%d / %d", c.Counts.Events, c.Counts.Observations))
	case WaitRollout:
		o := orEmpty(c.Rollout)
		row("Outcome", c.Outcome)
		row("Reported rollout", o.ReportedState)
		row("Rollout state", o.State)
		row("Rollout validity", o.Validity)
		row("Reason", c.Reason)
		row("Evidence", c.Evidence)
		row("Rollout epoch", o.Epoch)
		row("Coordination Ready", o.CoordinationReady)
		row("Freshness caveat", rolloutCaveat)
		row("Attribution caveat", notAttributed)
		row("Rollout inspection", o.Inspection.String())
		row("Expansion", o.Expansion)
		method()
		row("Events / observations", fmt.Sprintf("%d / %d", c.Counts.Events, c.Counts.Observations))
		for _, i := range o.Issues {
			text := i.String()
			if i.Component != "" {
				text += " " + i.Component
			}
			row("Rollout issue", text)
		}
	case WaitMigration:
		o := orEmpty(c.Migration)
		row("Request ID", p.RequestID)
		row("Outcome", c.Outcome)
		row("Migration phase", o.Phase)
		row("Migration outcome", o.MigrationOutcome)
		row("Component", o.Component)
		row("Migration validity", o.Validity)
		row("Reason", c.Reason)
		row("Evidence", c.Evidence)
		row("Attribution", migrationNote)
		method()
	case WaitReplicaReady:
		o := orEmpty(c.ReadyReplicas)
		row("Component", string(p.Component))
		row("Target ready", fmt.Sprint(p.Replicas))
		row("Outcome", c.Outcome)
		row("Observed ready", countOf(o.Observed))
		row("Count validity", o.Validity)
		row("Reason", c.Reason)
		row("Evidence", c.Evidence)
		row("Interpretation", readyMeans)
		method()
		if wide {
			row("Count authority", countAuthority)
			row("Readiness caveat", servingCaveat)
			row("Cancellation", cancelCaveat)
		}
	case WaitReplicaCount:
		o := orEmpty(c.Scale)
		row("Component", string(p.Component))
		row("Target replicas", fmt.Sprint(p.Replicas))
		row("Outcome", c.Outcome)
		row("Spec replicas", countOf(o.Spec))
		row("Current replicas", countOf(o.Current))
		row("Ready replicas", countOf(o.Ready))
		row("Status encoding", o.Encoding)
		row("Validity", o.Validity)
		row("Freshness", o.Freshness)
		row("Reason", c.Reason)
		row("Evidence", c.Evidence)
		row("Interpretation", currentMeans)
		row("Count caveat", currentCaveat)
		row("Attribution", notAttributed)
		row("Source method", c.SourceMethod)
		counts()
		elapsed()
	case WaitRuntimeSync:
		o := orEmpty(c.RuntimeSync)
		row("Request ID", p.RequestID)
		row("Outcome", c.Outcome)
		row("Token state", o.TokenState)
		row("Drift state", o.DriftState)
		row("Managed pin", o.PinState)
		row("Placement", o.PlacementState)
		row("Validity", o.Validity)
		row("Reason", c.Reason)
		row("Evidence", c.Evidence)
		row("Interpretation", syncMeans)
		row("Sync caveat", syncCaveat)
		row("Attribution", notAttributed)
		method()
	case WaitHeld:
		o := orEmpty(c.HeldRevision)
		row("Component", string(p.Component))
		row("Revision", p.Revision)
		row("InferenceReplica", p.ReplicaIs+" "+p.ReplicaUID)
		row("Outcome", c.Outcome)
		row("Target state", o.Target)
		row("Mailbox", o.Mailbox)
		row("Validity", o.Validity)
		row("Reason", c.Reason)
		row("Evidence", c.Evidence)
		row("Interpretation", heldMeans)
		row("Attribution", notAttributed)
		row("State caveat", heldCaveat)
		row("Source method", c.SourceMethod)
		counts()
		elapsed()
	}
	return t
}

func orEmpty[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

func (i *WaitInspection) String() string {
	if i.State == "" {
		return ""
	}
	text := fmt.Sprintf("%s %d/%d", i.State, i.Inspected, i.Total)
	if len(i.Warnings) > 0 {
		text += " " + strings.Join(i.Warnings, ",")
	}
	return text
}
