package preview

import (
	"time"

	"ome.io/ome/api/v1beta1"
)

// Outcome is how a preview ends.
type Outcome string

// The outcomes.
const (
	// Completes: every Instance runs what the spec asks for.
	Completes Outcome = "Completes"
	// Partitioned: all that a partition leaves to move has moved.
	Partitioned Outcome = "Partitioned"
	// Stalls: nothing is left to happen, and the spec is not reached.
	Stalls Outcome = "Stalls"
	// Endless: the moves did not end within the bound, which is a bug.
	Endless Outcome = "Endless"
)

// Result is what would happen.
type Result struct {
	Outcome Outcome
	Changes []Change
	// Run is the run that moves the Instances, nil without one. Pinned says that it was
	// open before the change and goes on by the plan it pinned, Superseded that another
	// one was.
	Run                *v1beta1.RolloutRun
	Pinned, Superseded bool
	// Drift is why an edit of the plan waits for the next run, empty when none does.
	Drift string
	Moves []Move
	// Paired is false without an engine and a decoder of which one changes. PairsByToken
	// says that the cohorts of Pairs are those of a pairing token, and not of revisions.
	Paired, PairsByToken bool
	// Extremes are the least that serves and the most pods of each component.
	Extremes []Extreme
	// LeastPairs is the least number of pairs of an engine and a decoder that understand
	// each other.
	LeastPairs int64
	// PodsBefore and MostPods are all pods, at first and at most.
	PodsBefore, MostPods int32
	Took                 time.Duration
	// GatesPassed says that canary gates were passed which a person or an analysis opens.
	GatesPassed bool
	// Stall is set when the outcome is Stalls.
	Stall *Stall
}

// ChangeKind sorts changes.
type ChangeKind string

// The kinds of change.
const (
	Updates ChangeKind = "Updates"
	Scales  ChangeKind = "Scales"
	Stays   ChangeKind = "Stays"
	Joins   ChangeKind = "Joins"
	Leaves  ChangeKind = "Leaves"
)

// Change is what the new spec means for one component.
type Change struct {
	Component v1beta1.ComponentType
	Kind      ChangeKind
	// From and To are revision hashes; From is empty for a new component, To for one that
	// leaves.
	From, To string
	// Before and After are the wanted counts.
	Before, After int32
	// Strategy is how its Instances move.
	Strategy v1beta1.UpdateStrategyType
}

// Verb is what is done to pods.
type Verb string

// The verbs, in the order in which one Instance meets them.
const (
	Start       Verb = "start"
	Serve       Verb = "serve"
	Drain       Verb = "drain"
	Stop        Verb = "stop"
	ChangeImage Verb = "change image"
	ForceDelete Verb = "force-delete"
)

// Action is a verb and the Instances it is done to.
type Action struct {
	Verb      Verb
	Component v1beta1.ComponentType
	Instances []int32
}

// Move is a batch of what the manager does at one time, and how things stand after it.
type Move struct {
	After   time.Duration
	Actions []Action
	// Notes tell what comes before the actions of other causes, Then what follows them: a
	// run that opens or closes, a count that moves, a wait.
	Notes, Then []string
	States      []State
	Pairs       Pairs
	// Pods are all pods there are.
	Pods int32
}

// State counts the pods of a component: in rotation on the new revision and on others,
// and all there are, on their way up or down included.
type State struct {
	Component      v1beta1.ComponentType
	New, Old, Pods int32
}

// Serving counts the pods in rotation.
func (s State) Serving() int32 { return s.New + s.Old }

// Pairs counts the engines and decoders of the old cohort and of the new one.
type Pairs struct {
	OldEngines, OldDecoders, NewEngines, NewDecoders int32
}

// Extreme is the least that serves and the most pods of a component.
type Extreme struct {
	Component     v1beta1.ComponentType
	Serving, Pods int32
}

// Stall says where and why it stops.
type Stall struct {
	// Move is the number of the last move.
	Move  int
	Holds []Hold
	// Paused is the pause annotation in force, empty for none.
	Paused string
	// Tolerance is the least maintainRatio.tolerance, of those tried, under which the same
	// change completes; 0 when there is none.
	Tolerance int32
}

// Hold is what keeps one component.
type Hold struct {
	Component v1beta1.ComponentType
	Gate      v1beta1.RolloutHoldGate
	Reason    string
}
