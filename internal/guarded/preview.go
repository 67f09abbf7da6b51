package guarded

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// Row is one line of a preview. Values are shown in full.
type Row struct {
	Label, Value string
}

// The rows that may differ when a person asked to go on despite status writes.
const (
	rowResourceVersion = "ResourceVersion"
	rowReplicaVersion  = "IR RV"
)

// serviceRows begin the preview of an action on the service itself.
func serviceRows(ev *Evidence, action string) []Row {
	t := ev.target()
	var names []string
	for _, c := range ev.Native {
		names = append(names, string(c))
	}
	return []Row{
		{"Action", action},
		{"Context", ev.Context},
		{"Workload NS", ev.Namespace},
		{"OME NS", ev.OMENamespace},
		{"Target", t.Kind + "/" + t.Name},
		{"UID", t.UID},
		{rowResourceVersion, t.ResourceVersion},
		{"Dry-run", string(ev.DryRun)},
		{"Affected", strings.Join(names, ",")},
	}
}

// continued breaks a long value over rows without labels.
func continued(label, value string, width int) []Row {
	runes := []rune(value)
	var rows []Row
	for len(runes) > width {
		rows = append(rows, Row{label, string(runes[:width])})
		runes, label = runes[width:], ""
	}
	return append(rows, Row{label, string(runes)})
}

// writePreview prints title, rows in two columns, and notes under them, in one
// write.
func writePreview(w io.Writer, title string, rows []Row, notes []string) error {
	var buf bytes.Buffer
	buf.WriteString(title + "\n")
	width := 0
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(r.Label))
	}
	for _, r := range rows {
		buf.WriteString(r.Label)
		for range width - utf8.RuneCountInString(r.Label) + 2 {
			buf.WriteByte(' ')
		}
		buf.WriteString(r.Value + "\n")
	}
	for _, n := range notes {
		buf.WriteString(n + "\n")
	}
	_, err := w.Write(buf.Bytes())
	return err
}
