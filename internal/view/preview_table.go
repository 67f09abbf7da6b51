package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ome.io/ome/internal/preview"
)

// RolloutPreviewTable is a row a move. The text above and below it belongs to it.
func RolloutPreviewTable(r *RolloutPreviewReport) *Table { return previewTable(r, false) }

// RolloutPreviewWide splits the pods by component.
func RolloutPreviewWide(r *RolloutPreviewReport) *Table { return previewTable(r, true) }

func previewTable(r *RolloutPreviewReport, wide bool) *Table {
	c := &r.Content
	t := &Table{Header: []string{"#", "AFTER"}}
	for _, ch := range c.Changes {
		t.Header = append(t.Header, strings.ToUpper(ch.Component))
	}
	if c.PairsBy != "" {
		t.Header = append(t.Header, "PAIRS")
	}
	t.Header = append(t.Header, "PODS", "MOVE")
	for i := range c.Moves {
		m := &c.Moves[i]
		row := []string{strconv.Itoa(m.Number), (time.Duration(m.AfterSeconds) * time.Second).String()}
		var pods []string
		for k, s := range m.Components {
			row = append(row, servingText(&c.Changes[k], &s))
			pods = append(pods, strconv.Itoa(int(s.Pods)))
		}
		if m.Pairs != nil {
			row = append(row, pairsText(m.Pairs.OldEngines, m.Pairs.OldDecoders)+" / "+pairsText(m.Pairs.NewEngines, m.Pairs.NewDecoders))
		}
		total := strconv.Itoa(int(m.Pods))
		if wide {
			total = strings.Join(pods, "+")
		}
		t.Rows = append(t.Rows, append(row, total, moveText(m)))
	}
	return t
}

// servingText counts new, old and all in rotation; of a component that stays, all.
func servingText(c *PreviewChange, s *PreviewState) string {
	if c.Kind == string(preview.Updates) {
		return fmt.Sprintf("%d/%d/%d", s.New, s.Old, s.Serving)
	}
	return strconv.Itoa(int(s.Serving))
}

func pairsText(engines, decoders int32) string {
	if engines == 0 || decoders == 0 {
		return none
	}
	return fmt.Sprintf("%dx%d", engines, decoders)
}

// moveText words a move: what a drain takes out of rotation is also stopped, which goes
// without saying.
func moveText(m *PreviewMove) string {
	parts := slices.Clone(m.Notes)
	var verbs []string
	by := map[string][]string{}
	for _, a := range m.Actions {
		if a.Verb == string(preview.Stop) && slices.ContainsFunc(m.Actions, func(d PreviewAction) bool {
			return d.Verb == string(preview.Drain) && d.Component == a.Component && slices.Equal(d.Instances, a.Instances)
		}) {
			continue
		}
		if by[a.Verb] == nil {
			verbs = append(verbs, a.Verb)
		}
		by[a.Verb] = append(by[a.Verb], a.Component+" "+indexText(a.Instances))
	}
	for _, v := range verbs {
		parts = append(parts, v+" "+strings.Join(by[v], ", "))
	}
	parts = append(parts, m.Then...)
	if len(parts) == 0 && m.Number == 0 {
		return "the new spec is stored"
	}
	return strings.Join(parts, "; ")
}

// indexText writes indexes with ranges.
func indexText(list []int32) string {
	sorted := slices.Sorted(slices.Values(list))
	var out []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		switch {
		case j == i:
			out = append(out, fmt.Sprint(sorted[i]))
		case j == i+1:
			out = append(out, fmt.Sprint(sorted[i]), fmt.Sprint(sorted[j]))
		default:
			out = append(out, fmt.Sprintf("%d-%d", sorted[i], sorted[j]))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}

// RolloutPreviewHead is the text above the table: the answer, then what it rests on.
func RolloutPreviewHead(r *RolloutPreviewReport, width int) string {
	c := &r.Content
	lines := []string{c.answer(), c.changeText(), c.basisText(), c.planText()}
	for _, ch := range c.Changes {
		if ch.Kind == string(preview.Updates) {
			columns := "of each component: serving on the new revision / on the old one / in all"
			if c.PairsBy != "" {
				columns += "; pairs: engines x decoders of the old " + strings.ToLower(c.PairsBy) + " / of the new one"
			}
			if c.PairsBy == pairsByRevision {
				columns += " (the token stays, so old and new also pair with each other)"
			}
			lines = append(lines, columns)
			break
		}
	}
	return paragraphs(lines, width) + "\n"
}

// RolloutPreviewFoot is the text below the table.
func RolloutPreviewFoot(r *RolloutPreviewReport, width int) string {
	c := &r.Content
	var lines []string
	if c.Stall != nil {
		lines = append(lines, c.stallLines()...)
	}
	var serving, pods []string
	for i, e := range c.Extremes {
		if kind := c.Changes[i].Kind; kind != string(preview.Joins) && kind != string(preview.Leaves) {
			serving = append(serving, fmt.Sprintf("%s %d", e.Component, e.LeastServing))
		}
		pods = append(pods, fmt.Sprintf("%s %d", e.Component, e.MostPods))
	}
	if len(pods) > 0 {
		text := fmt.Sprintf("most pods: %s, %d at one time", strings.Join(pods, ", "), c.MostPods)
		if len(serving) > 0 {
			text = "least serving: " + strings.Join(serving, ", ") + "; " + text
		}
		if c.LeastPairs != nil {
			text += fmt.Sprintf("; pairs never below %d", *c.LeastPairs)
		}
		lines = append(lines, text)
	}
	lines = append(lines, "assumed: "+strings.Join(c.Assumptions, "; "))
	return "\n" + paragraphs(lines, width)
}

// paragraphs breaks lines at words where a terminal has a width.
func paragraphs(lines []string, width int) string {
	var b strings.Builder
	for _, l := range lines {
		if l == "" {
			continue
		}
		if width > 0 {
			for _, part := range wrap(l, width) {
				b.WriteString(part + "\n")
			}
			continue
		}
		b.WriteString(l + "\n")
	}
	return b.String()
}

func (c *RolloutPreview) answer() string {
	took := (time.Duration(c.TookSeconds) * time.Second).String()
	moving := slices.ContainsFunc(c.Changes, func(ch PreviewChange) bool { return ch.Kind != string(preview.Stays) })
	switch preview.Outcome(c.Outcome) {
	case preview.Completes:
		if !moving && len(c.Moves) <= 2 {
			return c.name + ": nothing moves."
		}
		return fmt.Sprintf("%s: completes after about %s, in %s.", c.name, took, counted(c.actions(), "move"))
	case preview.Partitioned:
		return fmt.Sprintf("%s: moves all that its partition lets move after about %s, in %s; the others stay.", c.name, took, counted(c.actions(), "move"))
	case preview.Stalls:
		return fmt.Sprintf("%s: stalls after about %s, at move %d.", c.name, took, c.Stall.Move)
	}
	return c.name + ": comes to no end."
}

// actions counts the lines in which something is done.
func (c *RolloutPreview) actions() (n int) {
	for i := range c.Moves {
		if len(c.Moves[i].Actions) > 0 {
			n++
		}
	}
	return n
}

func (c *RolloutPreview) changeText() string {
	var parts, stays []string
	for _, ch := range c.Changes {
		switch preview.ChangeKind(ch.Kind) {
		case preview.Updates:
			from := ch.From
			if from == "" {
				from = "another revision"
			}
			text := fmt.Sprintf("%s %s -> %s", ch.Component, from, dash(ch.To))
			if ch.Before != ch.After {
				text += fmt.Sprintf(" and %d -> %d replicas", ch.Before, ch.After)
			}
			parts = append(parts, text)
		case preview.Scales:
			parts = append(parts, fmt.Sprintf("%s %d -> %d replicas", ch.Component, ch.Before, ch.After))
		case preview.Joins:
			parts = append(parts, ch.Component+" is new, with "+counted(int(ch.After), "replica"))
		case preview.Leaves:
			parts = append(parts, ch.Component+" leaves")
		default:
			stays = append(stays, ch.Component)
		}
	}
	switch len(stays) {
	case 0:
	case 1:
		parts = append(parts, stays[0]+" stays")
	default:
		last := len(stays) - 1
		parts = append(parts, strings.Join(stays[:last], ", ")+" and "+stays[last]+" stay")
	}
	if len(parts) == 0 {
		return "change: the manager runs no component of it in OMENative mode"
	}
	return "change: " + strings.Join(parts, ", ")
}

func (c *RolloutPreview) basisText() string {
	switch c.Basis {
	case BasisLive:
		return "old: the service " + c.namespace + "/" + c.name + " as it runs now"
	case BasisFile:
		return "old: the file of --from, with every Instance Ready"
	}
	return "old: assumed. No --from was given, so every component is taken to run another image of the same spec, with every Instance Ready"
}

func (c *RolloutPreview) planText() string {
	var groups []string
	for i := range c.Plan.Groups {
		g := &c.Plan.Groups[i]
		text := fmt.Sprintf("group %d %s, %s", g.Index, strings.Join(g.Components, "+"), g.Strategy)
		if g.Strategy == strategyBlueGreen || g.Strategy == strategySequential {
			text += " 25%"
		}
		for _, cfg := range g.Config {
			text += ", " + cfg.Key + " " + cfg.Value
			if cfg.Effect != "" {
				text += " (no effect: " + cfg.Effect + ")"
			}
		}
		groups = append(groups, text)
	}
	text := "plan: " + strings.Join(groups, "; ")
	switch c.Plan.State {
	case planNoGroups:
		return "plan: no groups; each component moves on its own"
	case planOpens:
		text += ". It is pinned when the run opens"
	case planSupersedes:
		text += ". The open run is superseded, and the new one pins it"
	case planPinned:
		text += ". The open run " + c.Plan.RunID + " goes on by it"
		if c.Plan.Drift != "" {
			text += "; the plan of the new spec waits for the next run (" + c.Plan.Drift + ")"
		}
	case planNoRun:
		text += ". No run opens"
	}
	return text
}

// stallLines name the cause, then the way out.
func (c *RolloutPreview) stallLines() []string {
	var out []string
	for _, h := range c.Stall.Holds {
		out = append(out, fmt.Sprintf("stalls at move %d: %s: %s: %s", c.Stall.Move, h.Component, h.Gate, h.Reason))
	}
	if c.Stall.Paused != "" {
		out = append(out, fmt.Sprintf("stalls at move %d: paused by the annotation ome.io/rollout-paused: %s", c.Stall.Move, c.Stall.Paused))
	}
	for _, w := range c.Stall.WaysOut {
		out = append(out, "  way out: "+w)
	}
	return out
}

// RolloutPreviewCauses are the lines that an error about a stall ends with.
func RolloutPreviewCauses(r *RolloutPreviewReport) []string {
	if r.Content.Stall == nil {
		return nil
	}
	var out []string
	for _, l := range r.Content.stallLines() {
		out = append(out, strings.TrimSpace(l))
	}
	return out
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
