package analysis

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
)

// Input is what Judge looks at. It writes to nothing in it.
type Input struct {
	// Now is the time of the pass.
	Now time.Time
	// Service is the key of the InferenceService.
	Service types.NamespacedName
	// Run, Group and Step are the open run, the index of the group in the pinned plan and the
	// zero-based step.
	Run   string
	Group int32
	Step  int32
	// Canary is the progression as pinned; Step is in range and has an analysis.
	Canary *v1beta1.GroupCanary
	// Record is the canary's status with the changes this pass has made so far.
	Record *v1beta1.CanaryStatus
	// Variables fill in the queries.
	Variables Variables
	// Delay holds a passing sample back like pause.duration does: scaleDownDelaySeconds at the
	// last step, else zero.
	Delay time.Duration
	// ReadyTimeout is the one in force; zero or less means that nothing ever stalls.
	ReadyTimeout time.Duration
	// Reach tells how far back a query looks, or what is wrong with it: promql.Reach.
	Reach func(query string) (time.Duration, error)
	// Samples are the finished samples that the shell has of this service.
	Samples []Sample
}

// Verdict is what the gate does.
type Verdict string

const (
	// Hold keeps the gate closed.
	Hold Verdict = "Hold"
	// Pass opens the gate.
	Pass Verdict = "Pass"
	// Rollback rolls the canary back, with cause analysis.
	Rollback Verdict = "Rollback"
	// Stalled parks the canary as AnalysisStalled.
	Stalled Verdict = "Stalled"
)

// Judgement is what one sample came to. The words are also label values of the metric that
// counts them.
type Judgement string

const (
	Passed       Judgement = "pass"
	Failed       Judgement = "fail"
	Inconclusive Judgement = "inconclusive"
)

// Output is what Judge says.
type Output struct {
	Verdict Verdict
	// Judged is empty when this pass consumed no sample.
	Judged Judgement
	// Why says in one line what the gate waits for, or what ended it.
	Why string
	// Due is the sample to ask for; nil when none is due.
	Due *Request
	// Wake is when to judge again without an event. Zero once the gate is decided.
	Wake time.Time

	// The record as it is after the sample; see Store.
	failedChecks int32
	evaluated    time.Time
	conclusive   bool
	results      []v1beta1.MetricResult
	series       []v1beta1.AnalysisSeries
}

// ID names one sample.
type ID struct {
	Service types.NamespacedName
	Run     string
	Group   int32
	Step    int32
	// Entered is StepEnteredTime in seconds: another stay in the step asks anew.
	Entered int64
	// Plan is a digest of the analysis and its source as pinned: a repin asks anew.
	Plan string
	// After is the evaluation before this one in seconds, zero for the first of a step.
	After int64
}

// Request asks for a sample.
type Request struct {
	ID ID
	// Source is the pinned prometheus block; nil means the operator's default. Bindings and
	// Secrets are looked up when the sample is taken.
	Source *v1beta1.AnalysisPrometheus
	// Queries by metric. Metrics whose query can't be filled in are left out.
	Queries []Query
}

// Query is one metric's query, filled in.
type Query struct {
	Metric string
	Text   string
}

// Sample is the answer to a request.
type Sample struct {
	ID ID
	// At is the time that the queries were evaluated for.
	At time.Time
	// Done is when the last answer was there.
	Done time.Time
	// Problem is set when nothing was asked at all.
	Problem *Problem
	// Answers in the order of the queries.
	Answers []Answer
}

// Names of problems, which are also the names of their metricResults.
const (
	// ProblemAuth is a token that can't be read.
	ProblemAuth = "auth"
	// ProblemPrometheus is a source for which there is no client.
	ProblemPrometheus = "prometheus"
)

// Problem keeps a sample from being taken.
type Problem struct {
	Name    string
	Message string
}

// ResultType is the type of an answer, in the words of the Prometheus API.
type ResultType string

const (
	Scalar ResultType = "scalar"
	Vector ResultType = "vector"
	Matrix ResultType = "matrix"
	String ResultType = "string"
)

// Answer is what one query gave.
type Answer struct {
	Metric string
	// Query as it was sent.
	Query string
	// Error says why there is no answer, free of credentials. Nothing else is set then.
	Error string
	Type  ResultType
	// Series of a vector; a scalar is one series without labels.
	Series []Series
	// Warnings of the server.
	Warnings []string
}

// Series is one value.
type Series struct {
	// Labels in a form that is the same for the same series.
	Labels string
	Value  float64
}
