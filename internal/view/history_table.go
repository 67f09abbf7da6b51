package view

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// historyRow is one record, in the columns of both tables.
type historyRow struct {
	kind, state, component, identity, time, detail string
	// What only the wide table has room for.
	run, stable, opened, closed, policy, digest, cause, actor string
}

const maxHistoryState = 13

// RolloutHistoryTable is the default table: short words, a row a record.
func RolloutHistoryTable(r *RolloutHistoryReport) *Table {
	t := &Table{Header: []string{"TYPE", "STATE", "COMP", "IDENT", "TIME", "DETAIL", "ISS"}}
	issues := fmt.Sprint(len(r.Content.Issues))
	for _, row := range r.Content.rows() {
		state := row.state
		if s, ok := shortPhases[state]; ok {
			state = s
		}
		t.Rows = append(t.Rows, []string{row.kind, dash(clip(state, maxHistoryState)), dash(row.component), dash(row.identity), minute(row.time), dash(row.detail), issues})
	}
	return t
}

// RolloutHistoryWide prints every kept field in full.
func RolloutHistoryWide(r *RolloutHistoryReport) *Table {
	t := &Table{Header: []string{"TYPE", "STATE", "COMP", "RUN", "REVISION", "STABLE", "OPENED", "CLOSED", "POLICY", "DIGEST", "CAUSE", "ACTOR", "DETAIL", "ISSUES"}}
	issues := dash(allIssues(r.Content.Issues))
	for _, row := range r.Content.rows() {
		revision := ""
		if row.kind == "TARGET" || row.kind == "REV" {
			revision = row.identity
		}
		t.Rows = append(t.Rows, []string{row.kind, dash(row.state), dash(row.component), dash(row.run), dash(revision), dash(row.stable), dash(row.opened), dash(row.closed),
			dash(row.policy), dash(row.digest), dash(row.cause), dash(row.actor), dash(row.detail), issues})
	}
	return t
}

func (h *RolloutHistory) rows() []historyRow {
	verified := map[string]string{EpochVerified: "Verified", EpochUnverifiable: "Unverified"}[h.Current.Epoch]
	if verified == "" {
		verified = "N/A"
	}
	out := []historyRow{
		{kind: "WINDOW", state: h.Window, detail: "bounded"},
		{kind: "CURR", state: h.Current.State, identity: h.Current.Evidence, detail: verified},
	}
	for _, run := range h.ActiveRuns {
		row := run.row("ACTIVE", run.OpenedAt)
		row.detail += fmt.Sprintf(" T:%d", len(run.Targets))
		out = append(out, row)
		for _, t := range run.Targets {
			out = append(out, historyRow{kind: "TARGET", state: EvidenceReported, component: t.Component, identity: t.Target, stable: t.Stable, run: run.RunID, detail: "run-target"})
		}
	}
	if h.LastRun != nil {
		out = append(out, h.LastRun.row("LAST", h.LastRun.ClosedAt))
	}
	for _, run := range h.Earlier {
		out = append(out, run.row("PAST", run.ClosedAt))
	}
	for _, p := range h.Provenance {
		row := historyRow{kind: map[string]string{runActive: "PROV-A", runLast: "PROV-L", runNext: "PROV-C"}[p.Run], state: p.Source, component: fmt.Sprintf("g%d", p.Group),
			identity: strings.TrimPrefix(p.Digest, "rp1:"), digest: p.Digest, policy: p.Policy, detail: shortPolicy(p.Policy)}
		if p.Generation > 0 {
			row.policy += fmt.Sprintf("@%d", p.Generation)
		}
		if p.Shadowed != "" {
			row.policy, row.detail = "shadowed "+p.Shadowed, "shadowed "+shortPolicy(p.Shadowed)
		}
		out = append(out, row)
	}
	for _, r := range h.Revisions {
		out = append(out, historyRow{kind: "REV", state: r.Phase, component: r.Component, identity: r.Hash, detail: r.Role})
	}
	return out
}

func (run *HistoryRun) row(kind, at string) historyRow {
	row := historyRow{kind: kind, state: run.State, identity: run.RunID[strings.LastIndexByte(run.RunID, '-')+1:], time: at,
		run: run.RunID, opened: run.OpenedAt, closed: run.ClosedAt, cause: run.Cause, actor: run.Actor}
	if run.Groups != nil {
		row.detail = fmt.Sprintf("G:%d", *run.Groups)
	}
	return row
}

var shortPhases = map[string]string{
	"BlueGreenStandby": "BGStandby", "RollingBack": "RollingBk", "ScalingDown": "ScaleDown", "AwaitingNextComponent": "AwaitNext",
}

// minute is a time without its year and seconds.
func minute(stamped string) string {
	t, err := time.Parse(time.RFC3339, stamped)
	if err != nil {
		return none
	}
	return t.UTC().Format("01-02T15:04")
}

// shortPolicy tells two long names apart in a narrow column.
func shortPolicy(name string) string {
	if runes(name) <= 10 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return string([]rune(name)[:1]) + "#" + hex.EncodeToString(sum[:])[:8]
}
