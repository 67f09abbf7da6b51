package view

import "time"

// APIVersion is the version of every report.
const APIVersion = "cli.ome.io/v1alpha1"

// Report is the envelope of a read command's report. It is no Kubernetes object.
type Report[T any] struct {
	APIVersion  string    `json:"apiVersion"`
	Kind        string    `json:"kind"`
	Metadata    Metadata  `json:"metadata"`
	CollectedAt string    `json:"collectedAt"`
	Sources     []Source  `json:"sources"`
	Content     T         `json:"content"`
	Warnings    []Warning `json:"warnings"`
}

// Metadata names what the report is about.
type Metadata struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Source is one object the report rests on.
type Source struct {
	Kind        string `json:"kind"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	UID         string `json:"uid,omitempty"`
	Generation  int64  `json:"generation,omitempty"`
	Evidence    string `json:"evidence"`
	CollectedAt string `json:"collectedAt"`
}

// Warning is a note about the report as a whole.
type Warning struct {
	Code string `json:"code"`
}

// Evidence levels of a source or of a summary.
const (
	EvidenceDeclared = "Declared"
	EvidenceReported = "Reported"
	EvidenceObserved = "Observed"
)

// WarningPartialData says that something a full report would have is missing.
const WarningPartialData = "PartialData"

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
