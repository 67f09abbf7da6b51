package view

import (
	"fmt"
	"strings"
)

// facts is one line of the report: a field with its parts in order.
type facts struct {
	field string
	parts []fact
}

// fact is a key and its value; empty values are left out. A fact without a key
// is the value alone.
type fact struct{ key, value string }

func (f *facts) String() string {
	var words []string
	for _, p := range f.parts {
		switch {
		case p.value == "":
		case p.key == "":
			words = append(words, p.value)
		default:
			words = append(words, p.key+"="+p.value)
		}
	}
	return strings.Join(words, " ")
}

// instanceFacts is the report in the order of its lines.
func instanceFacts(r *InstanceStatusReport) []facts {
	c := &r.Content
	var out []facts
	line := func(field string, parts ...fact) { out = append(out, facts{field, parts}) }
	line("state", fact{"", c.State})
	line("deployment", fact{"mode", c.Deployment.Mode}, fact{"source", c.Deployment.Source}, fact{"origin", c.Deployment.Origin}, fact{"evidence", c.Deployment.Evidence})
	line("encoding", fact{"name", c.Encoding.Name}, fact{"evidence", c.Encoding.Evidence}, fact{"reason", c.Encoding.Reason})
	instance := []fact{{"component", c.Component}, {"index", fmt.Sprint(c.Index)}}
	if i := c.Instance; i != nil {
		line("instance", append(instance, fact{"incarnation", fmt.Sprint(i.Incarnation)}, fact{"phase", i.Phase})...)
		line("revisions", fact{"running", i.RunningRevision}, fact{"target", i.TargetRevision}, fact{"current", c.Replica.CurrentRevision}, fact{"update", c.Replica.UpdateRevision})
		line("persisted", fact{"pods", fmt.Sprint(i.Pods.Total)}, fact{"serving", fmt.Sprint(i.Pods.Serving)},
			fact{"available", fmt.Sprint(i.Pods.Available)}, fact{"admitted", fmt.Sprint(i.Admitted)})
		since := dash(i.ReadySince)
		line("lifecycle", fact{"activeOrdinal", fmt.Sprint(i.ActiveOrdinal)}, fact{"readySince", since}, fact{"evidence", i.ReadySinceSource})
		for _, cond := range i.Conditions {
			line("condition", fact{"type", cond.Type}, fact{"status", cond.Status}, fact{"reason", cond.Reason}, fact{"since", cond.Since}, fact{"message", cond.Message})
		}
		if len(i.Announced) > 0 {
			line("announced", fact{"", strings.Join(i.Announced, ",")})
		}
		operationFacts(i.Operation, line)
		if f := i.LastFailure; f != nil {
			exit := ""
			if f.ExitCode != nil {
				exit = fmt.Sprint(*f.ExitCode)
			}
			line("failure", fact{"pod", f.Pod}, fact{"container", f.Container}, fact{"reason", f.Reason}, fact{"exitCode", exit}, fact{"message", f.Message})
			line("fail time", fact{"", dash(f.Time)})
		}
	} else {
		line("instance", instance...)
	}
	for _, m := range c.Migrations {
		surge := ""
		if m.Surge != nil {
			surge = fmt.Sprint(*m.Surge)
		}
		line("migration", fact{"role", m.Role}, fact{"phase", m.Phase}, fact{"trigger", m.Trigger}, fact{"request", m.RequestUUID}, fact{"source", fmt.Sprint(m.Source)},
			fact{"surge", surge}, fact{"started", m.StartedAt}, fact{"deadline", m.Deadline}, fact{"completed", m.CompletedAt}, fact{"reason", m.Reason}, fact{"message", m.Message})
	}
	for _, p := range c.Pods.Items {
		line("pod", fact{"name", p.Name}, fact{"phase", p.Phase}, fact{"containersReady", fmt.Sprint(p.ContainersReady)}, fact{"serving", fmt.Sprint(p.Serving)},
			fact{"restarts", fmt.Sprint(p.Restarts)}, fact{"node", p.Node}, fact{"revision", p.Revision}, fact{"ordinal", p.Ordinal}, fact{"incarnation", p.Incarnation},
			fact{"deleting", only(p.Deleting)}, fact{"reason", p.Reason}, fact{"message", p.Message})
	}
	for _, e := range c.Events.Items {
		line("event", fact{"object", e.Object}, fact{"reason", e.Reason}, fact{"count", fmt.Sprint(e.Count)}, fact{"last", e.LastSeen}, fact{"message", e.Message})
	}
	for _, i := range c.Issues {
		line("issue", fact{"", i.Code}, fact{"detail", i.Detail})
	}
	return out
}

func operationFacts(op *InstanceOperation, line func(string, ...fact)) {
	if op == nil {
		return
	}
	deadline := op.Deadline
	if op.Parked {
		deadline = "parked"
	}
	surge := ""
	if op.SurgeIndex != nil {
		surge = fmt.Sprint(*op.SurgeIndex)
	}
	line("operation", fact{"type", op.Type}, fact{"step", op.Step}, fact{"retryCount", fmt.Sprint(op.RetryCount)}, fact{"id", op.ID}, fact{"reason", op.Reason})
	if op.TargetRevision != "" {
		line("op target", fact{"", op.TargetRevision})
	}
	line("op timing", fact{"started", op.StartedAt}, fact{"progress", op.LastProgressAt}, fact{"deadline", deadline})
	if op.Waiting != "" || op.CapacityRefusedAt != "" {
		line("op hold", fact{"waiting", op.Waiting}, fact{"capacityRefusedAt", op.CapacityRefusedAt}, fact{"ends", holdEnds(op.Waiting)})
	}
	if op.Strategy != "" || surge != "" {
		line("op strategy", fact{"strategy", op.Strategy}, fact{"surgeIndex", surge})
	}
	if op.FromNode != "" || len(op.HintTargetNodes) > 0 || op.RequestUUID != "" {
		line("op nodes", fact{"from", op.FromNode}, fact{"hints", strings.Join(op.HintTargetNodes, ",")}, fact{"request", op.RequestUUID})
	}
}

// holdEnds says what would end a hold from outside.
func holdEnds(waiting string) string {
	switch waiting {
	case "QuotaExceeded":
		return "when the quota of the namespace has room"
	case "Unschedulable":
		return "when a node has room; the pod's message names what is short"
	case "PodGroupTerminating":
		return "when the old PodGroup is gone"
	case "NodeUnknown":
		return "when the node answers again or is deleted"
	case "Paused":
		return "when the service is resumed"
	case "SourceUnrouted":
		return "when the source is out of every endpoint list"
	case "RestartBackoff":
		return "when the delay between restarts is over"
	case "SchedulingGate":
		return "when the queue admits the pod"
	}
	return ""
}

func only(yes bool) string {
	if yes {
		return "true"
	}
	return ""
}

// InstanceStatusTable draws a line per field.
func InstanceStatusTable(r *InstanceStatusReport) *Table {
	t := &Table{Header: []string{"FIELD", "VALUE"}}
	for _, f := range instanceFacts(r) {
		t.Rows = append(t.Rows, []string{f.field, dash(f.String())})
	}
	return t
}

// InstanceStatusWide draws a line per part of a field.
func InstanceStatusWide(r *InstanceStatusReport) *Table {
	t := &Table{Header: []string{"FIELD", "VALUE"}}
	for _, f := range instanceFacts(r) {
		for _, p := range f.parts {
			if p.value == "" {
				continue
			}
			name := f.field
			if p.key != "" {
				name += "." + p.key
			}
			t.Rows = append(t.Rows, []string{name, p.value})
		}
	}
	return t
}
