package view

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// autoscaleRow is a row of the table; value is of one component, empty for none.
type autoscaleRow struct {
	name  string
	value func(*AutoscaleComponent) string
	// always keeps the row when no component has a value.
	always bool
}

func countOf(n *int32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

func targetKind(c *AutoscaleComponent) string {
	if c.Target.Kind == v1beta1.InferenceReplicaKind {
		return "IR"
	}
	return c.Target.Kind
}

func policyOf(value func(*AutoscalePolicy) string) func(*AutoscaleComponent) string {
	return func(c *AutoscaleComponent) string {
		if c.Policy == nil {
			return ""
		}
		return value(c.Policy)
	}
}

func scaleOf(value func(*LiveScale) string) func(*AutoscaleComponent) string {
	return func(c *AutoscaleComponent) string {
		if c.LiveScale == nil {
			return ""
		}
		return value(c.LiveScale)
	}
}

func scalerOf(value func(*LiveScaler) string) func(*AutoscaleComponent) string {
	return func(c *AutoscaleComponent) string {
		if c.LiveScaler == nil {
			return ""
		}
		return value(c.LiveScaler)
	}
}

func conditionOf(items []AutoscaleCondition, kind string) string {
	for _, i := range items {
		if i.Type == kind {
			return i.Status
		}
	}
	return ""
}

// Conditions of an HPA, then of a ScaledObject, with the names of their rows.
var scalerConditions = []struct{ row, live, kind string }{
	{"ABLE-TO-SCALE", "SCALER-ABLE", "AbleToScale"},
	{"SCALING-ACTIVE", "SCALER-SCALING", "ScalingActive"},
	{"SCALING-LIMITED", "SCALER-LIMITED", "ScalingLimited"},
	{"READY", "SCALER-READY", "Ready"},
	{"ACTIVE", "SCALER-ACTIVE", "Active"},
	{"FALLBACK", "SCALER-FALLBACK", "Fallback"},
	{"PAUSED", "SCALER-PAUSED", "Paused"},
}

func liveRows() (scale, scaler []autoscaleRow) {
	scale = []autoscaleRow{
		{"LIVE-EVIDENCE", scaleOf(func(l *LiveScale) string { return l.State }), true},
		{"LIVE-SPEC", scaleOf(func(l *LiveScale) string { return countOf(l.SpecReplicas) }), true},
		{"LIVE-CURRENT", scaleOf(func(l *LiveScale) string { return countOf(l.CurrentReplicas) }), true},
		{"LIVE-COUNT", scaleOf(func(l *LiveScale) string { return l.Count }), true},
	}
	scaler = []autoscaleRow{
		{"SCALER-KIND", scalerOf(func(l *LiveScaler) string { return l.Kind }), true},
		{"SCALER-EVIDENCE", scalerOf(func(l *LiveScaler) string { return l.State }), true},
		{"SCALER-GEN", scalerOf(func(l *LiveScaler) string { return l.Generation }), false},
		{"SCALER-CURRENT", scalerOf(func(l *LiveScaler) string { return countOf(l.CurrentReplicas) }), false},
		{"SCALER-DESIRED", scalerOf(func(l *LiveScaler) string { return countOf(l.DesiredReplicas) }), false},
	}
	for _, c := range scalerConditions {
		scaler = append(scaler, autoscaleRow{c.live, scalerOf(func(l *LiveScaler) string { return conditionOf(l.Conditions, c.kind) }), false})
	}
	return scale, scaler
}

func (a *AutoscaleStatus) issuesOf(component string) string {
	var out []string
	for _, i := range a.Issues {
		if alias := autoscaleRules[i.Code].alias; i.Component == component && !slices.Contains(out, alias) {
			out = append(out, alias)
		}
	}
	return strings.Join(out, ",")
}

// AutoscaleStatusTable is the default table: a row per question, a column per
// component that the report knows.
func AutoscaleStatusTable(r *AutoscaleStatusReport) *Table {
	a := &r.Content
	rows := []autoscaleRow{
		{"CLASS", func(c *AutoscaleComponent) string { return c.Class }, true},
		{"MANAGED-BY", func(c *AutoscaleComponent) string { return c.ManagedBy }, true},
		{"SPEC-SOURCE", func(c *AutoscaleComponent) string { return c.SpecSource }, true},
		{"POLICY-STATE", policyOf(func(p *AutoscalePolicy) string { return p.State }), false},
		{"POLICY", policyOf(func(p *AutoscalePolicy) string { return p.Name }), false},
		{"TARGET-KIND", targetKind, true},
		{"TARGET-NAME", func(c *AutoscaleComponent) string { return c.Target.Name }, true},
		{"TARGET-EVIDENCE", func(c *AutoscaleComponent) string { return c.Target.State }, true},
		{"CURRENT", func(c *AutoscaleComponent) string { return countOf(c.Replicas.CurrentReplicas) }, true},
		{"DESIRED", func(c *AutoscaleComponent) string { return countOf(c.Replicas.DesiredReplicas) }, true},
		{"REPLICA-EVIDENCE", func(c *AutoscaleComponent) string { return c.Replicas.State }, true},
	}
	scale, scaler := liveRows()
	if a.liveScale {
		rows = append(rows, scale...)
	}
	if a.liveScaler {
		rows = append(rows, scaler...)
	}
	rows = append(rows,
		autoscaleRow{"LAST-SCALE", func(c *AutoscaleComponent) string { return lastScale(c.Replicas.last) }, false},
		autoscaleRow{"COND-EVIDENCE", func(c *AutoscaleComponent) string { return c.Conditions.State }, true})
	for _, k := range scalerConditions {
		rows = append(rows, autoscaleRow{k.row, func(c *AutoscaleComponent) string { return conditionOf(c.Conditions.Items, k.kind) }, false})
	}

	t := &Table{Header: []string{"FIELD", "SERVICE"}}
	state := []string{"STATE", a.Summary.State}
	for i := range a.Components {
		t.Header = append(t.Header, strings.ToUpper(a.Components[i].Type))
		state = append(state, a.Components[i].State)
	}
	t.Rows = append(t.Rows, state)
	for _, row := range rows {
		cells, some := []string{row.name, none}, row.always && len(a.Components) > 0
		for i := range a.Components {
			v := row.value(&a.Components[i])
			some = some || v != ""
			cells = append(cells, dash(v))
		}
		if some {
			t.Rows = append(t.Rows, cells)
		}
	}
	if len(a.Issues) > 0 {
		cells := []string{"ISSUES", dash(a.issuesOf(""))}
		for i := range a.Components {
			cells = append(cells, dash(a.issuesOf(a.Components[i].Type)))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// lastScale is short enough for a column: the year is in the other forms.
func lastScale(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format("Jan02 15:04Z")
}

// AutoscaleStatusWide is the wide table: a row per component, a column per question.
func AutoscaleStatusWide(r *AutoscaleStatusReport) *Table {
	a := &r.Content
	columns := []autoscaleRow{
		{"COMPONENT", func(c *AutoscaleComponent) string { return c.Type }, true},
		{"COMPONENT-STATE", func(c *AutoscaleComponent) string { return c.State }, true},
		{"CLASS", func(c *AutoscaleComponent) string { return c.Class }, true},
		{"MANAGED-BY", func(c *AutoscaleComponent) string { return c.ManagedBy }, true},
		{"SPEC-SOURCE", func(c *AutoscaleComponent) string { return c.SpecSource }, true},
	}
	if slices.ContainsFunc(a.Components, func(c AutoscaleComponent) bool { return c.Policy != nil }) {
		columns = append(columns,
			autoscaleRow{"POLICY-STATE", policyOf(func(p *AutoscalePolicy) string { return p.State }), true},
			autoscaleRow{"POLICY", policyOf(func(p *AutoscalePolicy) string { return p.Name }), true},
			autoscaleRow{"POLICY-RESOLUTION", policyOf(func(p *AutoscalePolicy) string { return p.Resolution }), true})
	}
	columns = append(columns, []autoscaleRow{
		{"TARGET", func(c *AutoscaleComponent) string {
			if c.Target.Name == "" {
				return ""
			}
			return targetKind(c) + "/" + c.Target.Namespace + "/" + c.Target.Name
		}, true},
		{"TARGET-EVIDENCE", func(c *AutoscaleComponent) string { return c.Target.State }, true},
		{"CURRENT", func(c *AutoscaleComponent) string { return countOf(c.Replicas.CurrentReplicas) }, true},
		{"DESIRED", func(c *AutoscaleComponent) string { return countOf(c.Replicas.DesiredReplicas) }, true},
		{"REPLICA-EVIDENCE", func(c *AutoscaleComponent) string { return c.Replicas.State }, true},
		{"LAST-SCALE", func(c *AutoscaleComponent) string { return c.Replicas.LastScaleTime }, true},
		{"CONDITION-EVIDENCE", func(c *AutoscaleComponent) string { return c.Conditions.State }, true},
		{"CONDITIONS", func(c *AutoscaleComponent) string {
			var out []string
			for _, i := range c.Conditions.Items {
				out = append(out, i.Type+"="+i.Status)
			}
			return strings.Join(out, ",")
		}, true},
		{"ISSUES", func(c *AutoscaleComponent) string {
			return strings.Trim(a.issuesOf("")+","+a.issuesOf(c.Type), ",")
		}, true},
	}...)
	scale, scaler := liveRows()
	if a.liveScale {
		columns = append(columns, scale...)
	}
	if a.liveScaler {
		columns = append(columns, scaler...)
	}
	t := &Table{Header: []string{"STATE"}}
	for _, c := range columns {
		t.Header = append(t.Header, c.name)
	}
	components := a.Components
	if len(components) == 0 {
		components = []AutoscaleComponent{{}}
	}
	for i := range components {
		cells := []string{a.Summary.State}
		for _, c := range columns {
			cells = append(cells, dash(c.value(&components[i])))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}
