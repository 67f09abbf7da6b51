package view

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// InstanceRetryBlocksReport is the report of `instance retry-blocks`.
type InstanceRetryBlocksReport = Report[InstanceRetryBlocks]

// InstanceRetryBlocks says which failed revisions of a component may be tried again.
type InstanceRetryBlocks struct {
	Summary RetrySummary    `json:"summary"`
	Mailbox ReleaseMailbox  `json:"releaseMailbox"`
	Blocks  []RetryBlock    `json:"blocks"`
	Issues  []InstanceIssue `json:"issues"`
}

// RetrySummary counts the blocks.
type RetrySummary struct {
	Component string `json:"component"`
	Replica   string `json:"inferenceReplica,omitempty"`
	UID       string `json:"uid,omitempty"`
	// Evidence is the level of the status behind the blocks.
	Evidence        string `json:"evidence"`
	Total           int    `json:"total"`
	Backoff         int    `json:"backoff"`
	RetryInProgress int    `json:"retryInProgress"`
	Held            int    `json:"held"`
	Invalid         int    `json:"invalid"`
	ReleaseEligible int    `json:"releaseEligible"`
}

// ReleaseMailbox is a request to release a held revision that the manager has not
// answered yet.
type ReleaseMailbox struct {
	// State is Pending, Absent or Unknown.
	State string `json:"state"`
	Value string `json:"value,omitempty"`
}

// RetryBlock is one block.
type RetryBlock struct {
	TargetRevision  string   `json:"targetRevision"`
	State           string   `json:"state"`
	Valid           bool     `json:"valid"`
	AttemptsStarted int32    `json:"attemptsStarted"`
	CountedFailures int32    `json:"countedFailures"`
	NextRetryAt     string   `json:"nextRetryAt,omitempty"`
	FirstFailureAt  string   `json:"firstFailureAt,omitempty"`
	LastFailureAt   string   `json:"lastFailureAt,omitempty"`
	Reason          string   `json:"reason,omitempty"`
	ReleaseEligible bool     `json:"releaseEligible"`
	Problems        []string `json:"problems"`

	next *metav1.Time
}

// Issue codes of retry blocks.
const (
	IssueBlocksTruncated = "BlocksTruncated"
	IssueTargetBad       = "TargetInvalid"
	IssueStateBad        = "StateInvalid"
	IssueAttemptsBad     = "AttemptsInvalid"
	IssueTimeBad         = "TimeInvalid"
	IssueDuplicateTarget = "DuplicateTarget"
)

// retryAliases are the short words of the table.
var retryAliases = map[string]string{
	IssueStatusUnobserved: "STATUS_UNOBS", IssueStatusStale: "STATUS_STALE", IssueParentStale: "PARENT_STALE",
	IssueComponentMissing: "NO_COMPONENT", IssueDuplicateComponent: "DUP_COMP", IssueCollectionUnavailable: "COLL_UNAV",
	IssueIdentityRejected: "ID_REJECT", IssueCollectionTruncated: "COLL_TRUNC", IssueBlocksTruncated: "BLOCK_TRUNC",
	IssueParentMissing: "PARENT_MISS", IssueParentBad: "PARENT_BAD", IssueParentAhead: "PARENT_AHEAD",
	IssueObservedGenerationBad: "OBSGEN_BAD", IssueTargetBad: "TARGET_BAD", IssueStateBad: "STATE_BAD",
	IssueAttemptsBad: "ATT_BAD", IssueTimeBad: "TIME_BAD", IssueDuplicateTarget: "DUP_TARGET",
}

// maxBlocks is how many retry blocks a report shows.
const maxBlocks = 256

// BuildRetryBlocks reports on the retry blocks of one component. The reference
// time decides which recorded times lie in the future.
func BuildRetryBlocks(s *v1beta1.InferenceService, c v1beta1.ComponentType, reads *ReplicaReads, reference, now time.Time) *InstanceRetryBlocksReport {
	j := judge(s, reads)
	out := InstanceRetryBlocks{Blocks: []RetryBlock{}, Issues: j.issues, Mailbox: ReleaseMailbox{State: "Unknown"},
		Summary: RetrySummary{Component: string(c), Evidence: EvidenceUnavailable}}
	add := func(i InstanceIssue) { out.Issues = append(out.Issues, i) }
	switch found := j.byComponent[c]; {
	case len(found) == 1:
		out.blocks(s, found[0], reference, add)
	case len(found) > 1:
		add(InstanceIssue{Code: IssueDuplicateComponent, Component: string(c), Detail: fmt.Sprintf("%d InferenceReplicas", len(found))})
		out.Summary.Evidence = EvidenceMalformed
	case reads.Failed == "":
		add(InstanceIssue{Code: IssueComponentMissing, Component: string(c)})
	}
	return &InstanceRetryBlocksReport{
		APIVersion: APIVersion, Kind: "InstanceRetryBlocksReport", Metadata: Metadata{s.Namespace, s.Name}, CollectedAt: stamp(now),
		Sources: j.sources(s, reads, now, c), Content: out, Warnings: warningsOf(out.Issues),
	}
}

func (o *InstanceRetryBlocks) blocks(s *v1beta1.InferenceService, r *replicaView, reference time.Time, add func(InstanceIssue)) {
	c := string(r.Spec.Component)
	sum := &o.Summary
	sum.Replica, sum.UID, sum.Evidence = safe(r.Name), safe(string(r.UID)), EvidenceReported
	switch {
	case r.malformed():
		sum.Evidence = EvidenceMalformed
	case r.standing == IssueStatusUnobserved:
		sum.Evidence = EvidenceUnavailable
	case r.standing != "":
		sum.Evidence = EvidenceStale
	}
	if r.standing != "" {
		add(InstanceIssue{Code: r.standing, Component: c, Detail: r.generations()})
	}
	o.Mailbox.State = "Absent"
	if v, ok := r.Annotations[v1beta1.ReleaseHeldRevisionAnnotation]; ok {
		o.Mailbox = ReleaseMailbox{State: "Pending", Value: safe(v)}
	}
	stored := r.Status.RetryBlocks
	if len(stored) > maxBlocks {
		add(InstanceIssue{Code: IssueBlocksTruncated, Component: c, Detail: fmt.Sprintf("%d blocks, %d shown", len(stored), maxBlocks)})
		stored = stored[:maxBlocks]
	}
	current := r.standing == "" && s.DeletionTimestamp == nil && r.DeletionTimestamp == nil
	for i := range stored {
		b := &stored[i]
		out := RetryBlock{
			TargetRevision: safe(b.TargetRevision), State: safe(string(b.State)), AttemptsStarted: b.AttemptsStarted, CountedFailures: b.CountedFailures,
			NextRetryAt: timePtr(b.NextRetryAt), FirstFailureAt: timePtr(b.FirstFailureAt), LastFailureAt: timePtr(b.LastFailureAt),
			Reason: safe(b.Reason), Problems: blockProblems(r.Name, stored, i, reference), next: b.NextRetryAt,
		}
		out.Valid = len(out.Problems) == 0
		out.ReleaseEligible = out.Valid && b.State == v1beta1.RetryHeld && current
		for _, code := range out.Problems {
			add(InstanceIssue{Code: code, Component: c, Detail: out.TargetRevision})
		}
		sum.Total++
		switch {
		case !out.Valid:
			sum.Invalid++
		case b.State == v1beta1.RetryBackoff:
			sum.Backoff++
		case b.State == v1beta1.RetryHeld:
			sum.Held++
		case b.State == v1beta1.RetryInProgress:
			sum.RetryInProgress++
		}
		if out.ReleaseEligible {
			sum.ReleaseEligible++
		}
		o.Blocks = append(o.Blocks, out)
	}
	slices.SortStableFunc(o.Blocks, func(a, b RetryBlock) int { return strings.Compare(a.TargetRevision, b.TargetRevision) })
}

// blockProblems are the codes of what is wrong with one block.
func blockProblems(replica string, blocks []v1beta1.RetryBlock, i int, reference time.Time) []string {
	b, out := &blocks[i], []string{}
	if !revisionOf(replica, b.TargetRevision) {
		out = append(out, IssueTargetBad)
	}
	for k := range blocks {
		if k != i && blocks[k].TargetRevision == b.TargetRevision {
			out = append(out, IssueDuplicateTarget)
			break
		}
	}
	switch b.State {
	case v1beta1.RetryBackoff, v1beta1.RetryHeld, v1beta1.RetryInProgress:
	default:
		out = append(out, IssueStateBad)
	}
	if b.AttemptsStarted < 1 || b.CountedFailures < 0 {
		out = append(out, IssueAttemptsBad)
	}
	future := func(t *metav1.Time) bool { return t != nil && t.After(reference) }
	if future(b.FirstFailureAt) || future(b.LastFailureAt) ||
		b.FirstFailureAt != nil && b.LastFailureAt != nil && b.FirstFailureAt.After(b.LastFailureAt.Time) ||
		b.NextRetryAt != nil && b.State != v1beta1.RetryBackoff {
		out = append(out, IssueTimeBad)
	}
	return out
}

// InstanceRetryBlocksTable draws one row per block and one per issue.
func InstanceRetryBlocksTable(r *InstanceRetryBlocksReport) *Table {
	c := &r.Content
	t := &Table{Header: []string{"COMP", "STATE", "TARGET", "ATT", "NEXT", "REL", "REASON"}}
	for i := range c.Blocks {
		b := &c.Blocks[i]
		state := "INVALID"
		if b.Valid {
			state = map[string]string{string(v1beta1.RetryBackoff): "BACKOFF", string(v1beta1.RetryHeld): "HELD", string(v1beta1.RetryInProgress): "RUNNING"}[b.State]
		}
		attempts := fmt.Sprint(b.AttemptsStarted)
		if b.AttemptsStarted > 99 {
			attempts = "99+"
		}
		next := none
		if b.next != nil {
			next = b.next.UTC().Format("06-01-02T15:04Z")
		}
		t.Rows = append(t.Rows, []string{c.Summary.Component, state, dash(shortTarget(b.TargetRevision)), attempts, next, yesNo(b.ReleaseEligible), dash(clip(b.Reason, 40))})
	}
	for _, i := range c.Issues {
		component := i.Component
		if component == "" {
			component = c.Summary.Component
		}
		t.Rows = append(t.Rows, []string{component, "ISSUE", none, none, none, "NO", retryAliases[i.Code]})
	}
	if len(t.Rows) == 0 {
		t.Rows = append(t.Rows, []string{none, "EMPTY", none, none, none, "NO", none})
	}
	return t
}

// shortTarget keeps a name recognizable: its start and a digest of all of it.
func shortTarget(name string) string {
	r := []rune(name)
	if len(r) <= 14 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return string(r[:5]) + "#" + hex.EncodeToString(sum[:4])
}

func yesNo(yes bool) string {
	if yes {
		return "YES"
	}
	return "NO"
}
