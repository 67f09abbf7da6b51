package view

import (
	"fmt"
	"strings"
	"time"
)

// RolloutExplainText is the answer for people: the whole in plain words, then each
// hold with its way out. It stands above the table.
func RolloutExplainText(r *RolloutExplainReport, now time.Time, width int) string {
	var b strings.Builder
	line := func(indent, text string) {
		at := 0
		for i, word := range strings.Fields(text) {
			switch {
			case i == 0:
				at, _ = b.WriteString(indent)
			case width > 0 && at+1+runes(word) > width:
				b.WriteString("\n")
				at, _ = b.WriteString(strings.Repeat(" ", len(indent)))
			default:
				b.WriteString(" ")
				at++
			}
			b.WriteString(word)
			at += runes(word)
		}
		b.WriteString("\n")
	}
	// A command stays on one line, to be copied.
	way := func(text, command string) {
		if command == "" {
			line("  way out: ", text)
			return
		}
		line("  way out: ", text+":")
		b.WriteString("    " + command + "\n")
	}
	c := &r.Content
	line("", c.Answer)
	for i := range c.Holds {
		h := &c.Holds[i]
		b.WriteString("\n")
		line("", h.title(now)+": "+dash(h.Reason))
		way(h.WayOut, h.Command)
	}
	if c.PlanDrift.State == "True" {
		b.WriteString("\n")
		line("", "drift ("+c.PlanDrift.Reason+"): "+dash(c.PlanDrift.Message))
		way(c.PlanDrift.WayOut, c.PlanDrift.Command)
	}
	return b.String()
}

// title names who waits, at which gate and how long.
func (h *ExplainHold) title(now time.Time) string {
	who := "the service"
	switch {
	case h.Component != "":
		who = h.Component
	case h.Group != nil:
		who = fmt.Sprintf("group %d", *h.Group)
	}
	inside := h.Kind
	if t, err := time.Parse(time.RFC3339, h.Since); err == nil {
		inside += ", " + age(now.Sub(t))
	}
	if h.Evidence == EvidenceStale {
		inside += ", of an older target"
	}
	return who + " waits (" + inside + ")"
}

// RolloutExplainTable is the default table: a section per view.
func RolloutExplainTable(r *RolloutExplainReport) *Table {
	c := &r.Content
	t := &explainTable{Table: Table{Header: []string{"VIEW", "ITEM", "DETAIL"}}}
	t.view = "Declared"
	t.plan(&c.Declared, "")
	t.view = "Live"
	t.plan(&c.Live, "evidence="+c.Live.Evidence+"; ")
	t.view = "Effective"
	t.add("PLAN", fmt.Sprintf("mode=%s; evidence=%s; groups=%d", c.Effective.Mode, c.Effective.Evidence, len(c.Effective.Groups)))
	if c.Effective.Digest != "" {
		t.add("DIGEST", c.Effective.Digest)
	}
	if c.Effective.RunID != "" {
		t.add("RUN", fmt.Sprintf("id=%s; opened=%s; pinned=%s", c.Effective.RunID, dash(c.Effective.OpenedAt), dash(c.Effective.PinnedAt)))
	}
	t.add("READY", c.PlanReady.String())
	t.add("DRIFT", c.PlanDrift.String())
	if c.PlanDrift.State == "True" {
		t.add("DRIFT", dash(c.PlanDrift.Message))
		t.add("WAY-OUT", withCommand(c.PlanDrift.WayOut, c.PlanDrift.Command))
	}
	for i := range c.Holds {
		t.hold(&c.Holds[i])
	}
	for i := range c.Effective.Groups {
		t.group(&c.Effective.Groups[i])
		for j := range c.Groups {
			if c.Groups[j].Index == i {
				t.where(&c.Groups[j])
			}
		}
	}
	for i := range c.Components {
		if comp := &c.Components[i]; comp.Group == nil {
			t.add("COMPONENT "+comp.Type, fmt.Sprintf("%s; phase=%s; evidence=%s", comp.Strategy, dash(comp.Phase), comp.Evidence))
			if rev := pairs("current", comp.Current, "ready", comp.Ready, "previous", comp.Previous); rev != "" {
				t.add("REVISIONS", rev)
			}
		}
	}
	if issues := allIssues(c.Issues); issues != "" {
		t.add("ISSUES", issues)
	}
	return &t.Table
}

type explainTable struct {
	Table
	view string
}

// add writes the name of a section in its first row only.
func (t *explainTable) add(item, detail string) {
	t.Rows = append(t.Rows, []string{t.view, item, detail})
	t.view = ""
}

func (t *explainTable) plan(p *PlanView, prefix string) {
	t.add("PLAN", fmt.Sprintf("%sgroups=%d", prefix, len(p.Groups)))
	if p.Digest != "" {
		t.add("DIGEST", p.Digest)
	}
	for i := range p.Groups {
		t.group(&p.Groups[i])
	}
}

func (t *explainTable) group(g *PlanGroup) {
	t.add(fmt.Sprintf("GROUP %d", g.Index), fmt.Sprintf("%s; components=%s; source=%s/%s", g.Strategy, joined(g.Components), g.Evidence, g.Source))
	for _, s := range g.settings() {
		t.add("CONFIG", s)
	}
	for i, s := range g.Steps {
		t.add(fmt.Sprintf("STEP %d/%d", i+1, len(g.Steps)), fmt.Sprintf("capacity=%s; traffic=%d%%; gate=%s", s.Capacity, s.Traffic, s.Gate))
	}
}

// where says how far the executor of a group is.
func (t *explainTable) where(g *ExplainGroup) {
	if g.Phase != "" {
		detail := g.Phase
		if g.CompositePhase != "" && g.CompositePhase != g.Phase {
			detail += "; composite=" + g.CompositePhase
		}
		if g.Since != "" {
			detail += "; since=" + g.Since
		}
		t.add("PHASE", detail)
	}
	if g.Strategy == strategySequential {
		t.add("SEQUENCE", fmt.Sprintf("current=%s; previous=%s", dash(g.CurrentComponent), dash(g.PreviousComp)))
	}
	if r := g.Ratio; r != nil {
		t.add("RATIO", fmt.Sprintf("wanted=%s; serving=%s; new=%s", counts(g.Components, r.Wanted), counts(g.Components, r.Serving), counts(g.Components, r.New)))
	}
	var stable, target, rejected []string
	for _, r := range g.Revisions {
		for _, part := range []struct {
			list *[]string
			hash string
		}{{&stable, r.Stable}, {&target, r.Target}, {&rejected, r.Rejected}} {
			if part.hash != "" {
				*part.list = append(*part.list, r.Component+":"+part.hash)
			}
		}
	}
	if text := pairs("stable", joined(stable), "target", joined(target), "rejected", joined(rejected)); text != "" {
		t.add("REVISIONS", text)
	}
	var traffic []string
	for _, w := range g.Traffic {
		traffic = append(traffic, fmt.Sprintf("%s:%s=%d%%", w.Component, w.Revision, w.Percent))
	}
	if len(traffic) > 0 {
		t.add("TRAFFIC", joined(traffic))
	}
	if g.Canary != nil {
		t.canary(g.Canary)
	}
}

func (t *explainTable) hold(h *ExplainHold) {
	detail := h.Kind
	if h.Component != "" {
		detail += "; component=" + h.Component
	}
	if h.Group != nil {
		detail += fmt.Sprintf("; group=%d", *h.Group)
	}
	detail += "; evidence=" + h.Evidence
	if h.Since != "" {
		detail += "; since=" + h.Since
	}
	t.add("HOLD", detail+"; "+dash(h.Reason))
	t.add("WAY-OUT", withCommand(h.WayOut, h.Command))
}

func withCommand(text, command string) string {
	if command == "" {
		return text
	}
	return text + ": " + command
}

// RolloutExplainWide has a row for each step, or group without steps, and for each
// component in no group.
func RolloutExplainWide(r *RolloutExplainReport) *Table {
	c := &r.Content
	t := &Table{Header: []string{"VIEW", "GROUP", "COMPONENTS", "STRATEGY", "SOURCE", "EVIDENCE", "PHASE", "STEP", "CAPACITY", "TRAFFIC", "GATE", "READY", "DRIFT", "HOLDS", "CONFIG", "ISSUES"}}
	holds := func(group *int, component string) string {
		var out []string
		for _, h := range c.Holds {
			mine := h.Group == nil && h.Component == "" || h.Group != nil && group != nil && *h.Group == *group || component != "" && h.Component == component
			if !mine {
				continue
			}
			kind := h.Kind
			if h.Component != "" {
				kind += "(" + h.Component + ")"
			}
			out = append(out, kind)
		}
		return dash(joined(out))
	}
	issues := dash(allIssues(c.Issues))
	for _, v := range []struct {
		name string
		plan *PlanView
	}{{"Declared", &c.Declared}, {"Live", &c.Live}, {"Effective", &c.Effective}} {
		for i := range v.plan.Groups {
			g := &v.plan.Groups[i]
			ready, drift, held, phase := none, none, none, none
			if v.name == "Effective" {
				ready, drift, held = c.PlanReady.word(), c.PlanDrift.word(), holds(&g.Index, "")
				for j := range c.Groups {
					if c.Groups[j].Index == g.Index {
						phase = dash(c.Groups[j].Phase)
					}
				}
			}
			row := func(step, capacity, traffic, gate string) {
				t.Rows = append(t.Rows, []string{v.name, fmt.Sprint(g.Index), joined(g.Components), g.Strategy, g.Source, g.Evidence, phase,
					step, capacity, traffic, gate, ready, drift, held, dash(strings.Join(g.settings(), " ")), issues})
			}
			for j, s := range g.Steps {
				row(fmt.Sprintf("%d/%d", j+1, len(g.Steps)), s.Capacity, fmt.Sprintf("%d%%", s.Traffic), s.Gate)
			}
			if len(g.Steps) == 0 {
				row(none, none, none, none)
			}
		}
	}
	for i := range c.Components {
		comp := &c.Components[i]
		if comp.Group != nil {
			continue
		}
		t.Rows = append(t.Rows, []string{"Observed", none, comp.Type, comp.Strategy, none, comp.Evidence, dash(comp.Phase),
			none, none, none, none, none, none, holds(nil, comp.Type),
			dash(pairs("current", comp.Current, "ready", comp.Ready, "previous", comp.Previous)), issues})
	}
	return t
}

func (c PlanCondition) word() string {
	if c.Reason == "" {
		return c.State
	}
	return c.State + "/" + c.Reason
}

func counts(order []string, by map[string]int32) string {
	var out []string
	for _, c := range order {
		if n, ok := by[c]; ok {
			out = append(out, fmt.Sprintf("%s:%d", c, n))
		}
	}
	return dash(joined(out))
}

// pairs joins the key=value pairs that have a value.
func pairs(words ...string) string {
	var out []string
	for i := 0; i+1 < len(words); i += 2 {
		if words[i+1] != "" {
			out = append(out, words[i]+"="+words[i+1])
		}
	}
	return strings.Join(out, "; ")
}

func allIssues(issues []Issue) string {
	var out []string
	for _, i := range issues {
		text := i.String()
		if i.Component != "" {
			text += "(" + i.Component + ")"
		}
		out = append(out, text)
	}
	return joined(out)
}
