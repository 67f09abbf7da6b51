package view

import (
	"fmt"
	"strings"

	"ome.io/ome/api/v1beta1"
)

const none = "-"

// componentRow is a row of the table that speaks of components.
type componentRow struct {
	name  string
	value func(*RolloutComponent) string
}

var componentRows = []componentRow{
	{"GROUP", func(c *RolloutComponent) string {
		if c.Group == nil {
			return ""
		}
		return fmt.Sprint(*c.Group)
	}},
	{"STRATEGY", func(c *RolloutComponent) string { return c.Strategy }},
	{"GROUP-PHASE", func(c *RolloutComponent) string { return c.GroupPhase }},
	{"PHASE", func(c *RolloutComponent) string { return c.Phase }},
	{"GROUP-CURRENT", func(c *RolloutComponent) string { return c.groupCurrent }},
	{"GROUP-PREVIOUS", func(c *RolloutComponent) string { return c.groupPrevious }},
	{"STEP", step(func(s *Step) string { return fmt.Sprintf("%d/%d", s.Current, s.Total) })},
	{"GATE", step(func(s *Step) string { return s.Gate })},
	{"CAPACITY", step(func(s *Step) string { return s.Capacity })},
	{"TRAFFIC", step(func(s *Step) string { return fmt.Sprintf("%d%% -> %d%%", s.TargetTraffic, s.ObservedTraffic) })},
	{"ROLLED-OUT", func(c *RolloutComponent) string { return c.RolledOutRevision }},
	{"READY", func(c *RolloutComponent) string { return c.ReadyRevision }},
	{"PREVIOUS", func(c *RolloutComponent) string { return c.PreviousRevision }},
}

func step(value func(*Step) string) func(*RolloutComponent) string {
	return func(c *RolloutComponent) string {
		if c.Step == nil {
			return ""
		}
		return value(c.Step)
	}
}

// RolloutStatusTable is the default table: a row per question, a column per component.
func RolloutStatusTable(r *RolloutStatusReport) *Table {
	c := &r.Content
	t := &Table{Header: []string{"FIELD", "SERVICE"}}
	order := v1beta1.Components()
	for _, name := range order {
		t.Header = append(t.Header, strings.ToUpper(string(name)))
	}
	service := func(name, value string) {
		t.Rows = append(t.Rows, []string{name, value, none, none, none})
	}
	service("STATE", c.Summary.State)
	service("REPORTED", c.Summary.ReportedState)
	service("EVIDENCE", c.Summary.Evidence)
	service("EPOCH", c.Summary.Epoch)
	service("COORDINATION", c.Summary.CoordinationReady)
	for _, row := range componentRows {
		cells, any := []string{row.name, none}, false
		for _, name := range order {
			v := ""
			if comp := c.component(string(name)); comp != nil {
				v = row.value(comp)
			}
			any = any || v != ""
			cells = append(cells, dash(v))
		}
		if any {
			t.Rows = append(t.Rows, cells)
		}
	}
	if len(c.Issues) > 0 {
		cells := []string{"ISSUES", dash(issuesOf(c.Issues, ""))}
		for _, name := range order {
			cells = append(cells, dash(issuesOf(c.Issues, string(name))))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// RolloutStatusWide is the wide table: a row per component, a column per question.
func RolloutStatusWide(r *RolloutStatusReport) *Table {
	c := &r.Content
	t := &Table{Header: []string{"COMPONENT", "STATE", "REPORTED", "EVIDENCE", "EPOCH"}}
	for _, row := range componentRows {
		t.Header = append(t.Header, row.name)
	}
	t.Header = append(t.Header, "ISSUES")
	components := c.Components
	if len(components) == 0 {
		components = []RolloutComponent{{}}
	}
	for i := range components {
		comp := &components[i]
		cells := []string{dash(comp.Type), c.Summary.State, c.Summary.ReportedState, c.Summary.Evidence, c.Summary.Epoch}
		for _, row := range componentRows {
			cells = append(cells, dash(row.value(comp)))
		}
		issues := issuesOf(c.Issues, comp.Type)
		if shared := issuesOf(c.Issues, ""); shared != "" && comp.Type != "" {
			issues = strings.Trim(shared+","+issues, ",")
		}
		t.Rows = append(t.Rows, append(cells, dash(issues)))
	}
	return t
}

func (r *RolloutStatus) component(name string) *RolloutComponent {
	for i := range r.Components {
		if r.Components[i].Type == name {
			return &r.Components[i]
		}
	}
	return nil
}

func issuesOf(issues []Issue, component string) string {
	var out []string
	for _, i := range issues {
		if i.Component == component {
			out = append(out, i.String())
		}
	}
	return strings.Join(out, ",")
}

func dash(s string) string {
	if s == "" {
		return none
	}
	return s
}
