package view

import (
	"fmt"
	"strings"
	"time"

	"ome.io/ome/api/v1beta1"
)

// InstanceListReport is the report of `instance list`.
type InstanceListReport = Report[InstanceList]

// InstanceList is every Instance of a service.
type InstanceList struct {
	Summary    InstanceListSummary     `json:"summary"`
	Components []InstanceListComponent `json:"components"`
	Instances  []InstanceListRow       `json:"instances"`
	Issues     []InstanceIssue         `json:"issues"`

	// collection is the word for a problem with the read as a whole.
	collection string
}

// InstanceListSummary counts.
type InstanceListSummary struct {
	// State is OK, Partial or Unavailable.
	State     string `json:"state"`
	Instances int    `json:"instances"`
}

// InstanceListComponent is a component that has Instances, or should have.
type InstanceListComponent struct {
	Component string `json:"component"`
	Replica   string `json:"inferenceReplica,omitempty"`
	UID       string `json:"uid,omitempty"`
	// Evidence is the level of the status behind the rows; Word is how the table
	// puts it.
	Evidence string `json:"evidence"`
	Word     string `json:"reason"`
	// IndexSet is Contiguous, Sparse, Empty or Unknown.
	IndexSet  string `json:"indexSet"`
	Instances int    `json:"instances"`
}

// InstanceListRow is one Instance.
type InstanceListRow struct {
	Component       string     `json:"component"`
	Index           int32      `json:"index"`
	Incarnation     int64      `json:"incarnation"`
	Phase           string     `json:"phase"`
	RunningRevision string     `json:"runningRevision,omitempty"`
	TargetRevision  string     `json:"targetRevision,omitempty"`
	Pods            PodCounts  `json:"pods"`
	Admitted        bool       `json:"admitted"`
	Operation       *Operation `json:"operation,omitempty"`
	FailureReason   string     `json:"failureReason,omitempty"`
	Failed          bool       `json:"failureRecorded"`
	Evidence        string     `json:"evidence"`
	Word            string     `json:"reason"`
}

// PodCounts counts the pods of an Instance.
type PodCounts struct {
	Total     int32 `json:"total"`
	Serving   int32 `json:"serving"`
	Available int32 `json:"available"`
}

// Operation is the work in flight on an Instance.
type Operation struct {
	Type    string `json:"type"`
	Step    string `json:"step,omitempty"`
	Waiting string `json:"waiting,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Words of the EVIDENCE column.
const (
	wordOK           = "OK"
	wordSparse       = "SPARSE"
	wordEmpty        = "EMPTY"
	wordNotObserved  = "NOT-OBSERVED"
	wordNotReported  = "NOT-REPORTED"
	wordParentUnavl  = "PARENT-UNAVL"
	wordParentStale  = "STALE:PARENT"
	wordRowsLimit    = "ROWS-LIMIT"
	wordUnavailable  = "UNAVAILABLE"
	wordSourceUnavl  = "SOURCE-UNAVL"
	wordRejected     = "REJECTED"
	wordTruncated    = "TRUNCATED"
	wordBad          = "BAD"
	stateOK          = "OK"
	statePartial     = "Partial"
	stateUnavailable = "Unavailable"
)

// BuildInstanceList reports on every Instance of a service.
func BuildInstanceList(s *v1beta1.InferenceService, reads *ReplicaReads, now time.Time) *InstanceListReport {
	j := judge(s, reads)
	out := InstanceList{Components: []InstanceListComponent{}, Instances: []InstanceListRow{}, Issues: j.issues}
	add := func(i InstanceIssue) { out.Issues = append(out.Issues, i) }
	for _, c := range j.expected(s) {
		found := j.byComponent[c]
		if len(found) == 0 {
			entry := InstanceListComponent{Component: string(c), Evidence: EvidenceUnavailable, Word: wordNotReported, IndexSet: "Unknown"}
			if reads.Failed != "" {
				entry.Word = wordUnavailable
			} else {
				add(InstanceIssue{Code: IssueComponentMissing, Component: string(c)})
			}
			out.Components = append(out.Components, entry)
			continue
		}
		if len(found) > 1 {
			add(InstanceIssue{Code: IssueDuplicateComponent, Component: string(c), Detail: fmt.Sprintf("%d InferenceReplicas", len(found))})
		}
		for _, r := range found {
			r.addIssues(add)
			out.list(r, len(found) > 1, add)
		}
	}
	switch {
	case reads.Failed != "":
		out.collection = wordSourceUnavl
	case j.rejected:
		out.collection = wordRejected
	case reads.Truncated:
		out.collection = wordTruncated
	}
	out.Summary = InstanceListSummary{State: stateOK, Instances: len(out.Instances)}
	switch {
	case reads.Failed != "":
		out.Summary.State = stateUnavailable
	case incomplete(out.Issues):
		out.Summary.State = statePartial
	}
	return &InstanceListReport{
		APIVersion: APIVersion, Kind: "InstanceListReport", Metadata: Metadata{s.Namespace, s.Name}, CollectedAt: stamp(now),
		Sources: j.sources(s, reads, now, ""), Content: out, Warnings: warningsOf(out.Issues),
	}
}

// word is how the table puts what a replica's status is worth.
func (r *replicaView) word(duplicate bool) string {
	bad := func(kind string) string {
		if kind == "" {
			return wordBad
		}
		return wordBad + ":" + kind
	}
	switch {
	case duplicate:
		return bad("DUP-COMP")
	case r.standing == IssueObservedGenerationBad:
		return bad("GEN")
	case r.standing == IssueParentBad || r.standing == IssueParentAhead:
		return bad("PARENT")
	case r.tooMany:
		return wordRowsLimit
	case r.decodeErr != nil:
		return bad(badRows(r.decodeErr))
	case r.standing == IssueStatusUnobserved:
		return wordNotObserved
	case r.standing == IssueStatusStale:
		return fmt.Sprintf("STALE:%d/%d", r.Status.ObservedGeneration, r.Generation)
	case r.standing == IssueParentStale:
		return wordParentStale
	case r.standing == IssueParentMissing:
		return wordParentUnavl
	case len(r.rows) == 0:
		return wordEmpty
	case r.sparse():
		return wordSparse
	}
	return wordOK
}

func (l *InstanceList) list(r *replicaView, duplicate bool, add func(InstanceIssue)) {
	c := string(r.Spec.Component)
	entry := InstanceListComponent{Component: c, Replica: safe(r.Name), UID: safe(string(r.UID)), Evidence: r.evidence(),
		Word: r.word(duplicate), IndexSet: "Contiguous", Instances: len(r.rows)}
	if duplicate {
		entry.Evidence = EvidenceMalformed
	}
	switch {
	case r.decodeErr != nil || r.tooMany:
		entry.IndexSet = "Unknown"
	case len(r.rows) == 0:
		entry.IndexSet = "Empty"
	case r.sparse():
		entry.IndexSet = "Sparse"
		add(InstanceIssue{Code: IssueSparseIndices, Component: c})
	}
	l.Components = append(l.Components, entry)
	for i := range r.rows {
		row := &r.rows[i]
		out := InstanceListRow{
			Component: c, Index: row.Index, Incarnation: row.Incarnation, Phase: safe(string(row.Phase)),
			RunningRevision: safe(row.RunningRevision), TargetRevision: safe(row.TargetRevision),
			Pods:     PodCounts{row.PodCount, row.ServingPodCount, row.AvailablePodCount},
			Admitted: row.Admitted, Evidence: entry.Evidence, Word: entry.Word,
		}
		if op := row.Operation; op != nil {
			out.Operation = &Operation{safe(string(op.Type)), safe(op.Step), safe(op.Waiting), safe(op.Reason)}
		}
		if f := row.LastFailure; f != nil {
			out.Failed, out.FailureReason = true, safe(f.Reason)
		}
		if kind := badRow(r.Name, row); kind != "" {
			index := row.Index
			add(InstanceIssue{Code: IssueRowInvalid, Component: c, Index: &index, Detail: kind})
			out.Evidence = EvidenceMalformed
			if !strings.HasPrefix(out.Word, wordBad) {
				out.Word = wordBad + ":" + kind
			}
		}
		l.Instances = append(l.Instances, out)
	}
}

// InstanceListTable draws one row per Instance.
func InstanceListTable(r *InstanceListReport) *Table {
	c := &r.Content
	t := &Table{Header: []string{"COMP", "IDX/INC", "PHASE", "PODS", "REVS", "AOF", "EVIDENCE"}}
	next := 0
	for _, comp := range c.Components {
		if comp.Instances == 0 {
			t.Rows = append(t.Rows, []string{comp.Component, none, none, none, none, none, comp.Word})
		}
		for range comp.Instances {
			i := &c.Instances[next]
			next++
			t.Rows = append(t.Rows, []string{
				i.Component, fmt.Sprintf("%d/%d", i.Index, i.Incarnation), dash(i.Phase),
				fmt.Sprintf("%d/%d/%d", i.Pods.Serving, i.Pods.Available, i.Pods.Total),
				dash(revisions(i.RunningRevision, i.TargetRevision)),
				letter(i.Admitted, "A") + letter(i.Operation != nil, "O") + letter(i.Failed, "F"), i.Word,
			})
		}
	}
	switch {
	case c.collection != "":
		t.Rows = append(t.Rows, []string{"summary", none, none, none, none, none, c.collection})
	case len(t.Rows) == 0:
		t.Rows = append(t.Rows, []string{none, none, none, none, none, none, strings.ToUpper(c.Summary.State)})
	}
	return t
}

func revisions(running, target string) string {
	if target == "" || target == running {
		return ends(running)
	}
	return ends(running) + ">" + ends(target)
}

func letter(on bool, word string) string {
	if on {
		return word
	}
	return none
}
