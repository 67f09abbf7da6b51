package guarded

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// ResultAPIVersion is the version of every report and result the CLI prints.
const ResultAPIVersion = "cli.ome.io/v1alpha1"

// Target is the object a patch is for, as read.
type Target struct {
	Kind            string `json:"kind"`
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
}

// ActionResult is what a successful action prints. It is no Kubernetes object.
type ActionResult struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	CollectedAt string `json:"collectedAt"`
	Action      string `json:"action"`
	Target      Target `json:"target"`
	DryRun      DryRun `json:"dryRun"`
	// RequestID and RevisionHash are set by the actions that have one.
	RequestID    string `json:"requestID,omitempty"`
	RevisionHash string `json:"revisionHash,omitempty"`
	Accepted     bool   `json:"accepted"`
	Applied      bool   `json:"applied"`
	Message      string `json:"message"`
	FollowUp     string `json:"followUp"`
	// Revision is the full name of the revision behind RevisionHash, where a
	// command that reads the outcome asks for it.
	Revision string `json:"revision,omitempty"`
	// Rollout is set by repin, Scale by the action of that name.
	Rollout *RolloutResult `json:"rollout,omitempty"`
	Scale   *ScaleResult   `json:"scale,omitempty"`
}

// Default messages of the three modes; an action may word the last one.
const (
	msgValidated = "Validated locally; no patch sent."
	msgDryRun    = "API dry-run accepted; no changes persisted."
)

// Cells longer than maxCell characters are cut in a table.
const maxCell = 56

// PrintResult writes the result in one format. It encodes first and writes
// once, so that a failing stdout never gets half an object.
func PrintResult(w io.Writer, r *ActionResult, format Output) error {
	var buf bytes.Buffer
	switch format {
	case OutputJSON:
		if err := EncodeJSON(&buf, r); err != nil {
			return err
		}
	case OutputYAML:
		b, err := yaml.Marshal(r)
		if err != nil {
			return err
		}
		buf.Write(b)
	default:
		rows := resultRows(r)
		switch {
		case r.Scale != nil:
			rows = scaleRows(r, format == OutputWide)
		case r.Rollout != nil:
			rows = repinRows(r, format == OutputWide)
		}
		if err := printTable(&buf, rows); err != nil {
			return err
		}
	}
	_, err := w.Write(buf.Bytes())
	return err
}

// EncodeJSON writes indented JSON without HTML escapes.
func EncodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// resultRows is the table of an action without rows of its own.
func resultRows(r *ActionResult) [][2]string {
	return [][2]string{
		{"action", r.Action},
		{"target", r.Target.Kind + "/" + r.Target.Namespace + "/" + r.Target.Name},
		{"dry-run", string(r.DryRun)},
		{"accepted", yesNo(r.Accepted)},
		{"applied", yesNo(r.Applied)},
		{"request-id", r.RequestID},
		{"revision-hash", r.RevisionHash},
		{"message", r.Message},
		{"follow-up", r.FollowUp},
	}
}

// repinRows are the rows of a repin.
func repinRows(r *ActionResult, wide bool) [][2]string {
	rows := [][2]string{
		{"action", r.Action},
		{"target", r.Target.Kind + "/" + r.Target.Namespace + "/" + r.Target.Name},
	}
	if wide {
		rows = append(rows, [2]string{"uid", r.Target.UID}, [2]string{"resource-version", r.Target.ResourceVersion})
	}
	return append(rows,
		[2]string{"dry-run", string(r.DryRun)},
		[2]string{"accepted", yesNo(r.Accepted)},
		[2]string{"applied", yesNo(r.Applied)},
		[2]string{"run-id", r.Rollout.RunID},
		[2]string{"pinned-plan-digest", r.Rollout.PinnedPlanDigest},
		[2]string{"requested-plan-digest", r.Rollout.RequestedPlanDigest},
		[2]string{"group-count", itoa(r.Rollout.GroupCount)},
		[2]string{"message", r.Message},
		[2]string{"follow-up", r.FollowUp})
}

func printTable(w io.Writer, rows [][2]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	rows = slices.Concat([][2]string{{"FIELD", "VALUE"}}, rows, [][2]string{{"hint", "Use -o json or -o yaml for full values."}})
	for _, row := range rows {
		_, _ = tw.Write([]byte(row[0] + "\t" + cut(row[1]) + "\n"))
	}
	return tw.Flush()
}

func cut(s string) string {
	if s == "" {
		return "-"
	}
	// A tab would start another column.
	s = strings.ReplaceAll(s, "\t", " ")
	if r := []rune(s); len(r) > maxCell {
		return string(r[:maxCell-3]) + "..."
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "Yes"
	}
	return "No"
}
