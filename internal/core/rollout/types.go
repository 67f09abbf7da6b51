package rollout

import (
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/instance"
)

// Pause is the depth of a pause, as the annotation spells it.
type Pause string

const (
	// NotPaused is also what any value but the two below means.
	NotPaused Pause = ""
	// Recover stops updates and creations; lost pods are still replaced.
	Recover Pause = "true"
	// Freeze stops repair too.
	Freeze Pause = "freeze"
)

// PauseOf reads the pause annotation of a service.
func PauseOf(annotations map[string]string) Pause {
	switch p := Pause(annotations[v1beta1.RolloutPausedAnnotation]); p {
	case Recover, Freeze:
		return p
	}
	return NotPaused
}

// Member is what a rollout knows about one component.
type Member struct {
	Component v1beta1.ComponentType
	// Target and Stable are revision hashes: what the Instances are to run, and what the
	// component serves as a whole. Stable is empty before the first revision serves.
	Target, Stable string
	// Spec is the hash that the spec wants. It differs from Target while Held: a
	// rejected canary keeps the component on an earlier revision.
	Spec string
	Held bool
	// Has tells whether a revision is still there to go back to; nil knows of all.
	Has func(hash string) bool
	// Behind is true while some Instance does not run the target, or is on its way
	// to another revision.
	Behind bool
	// Settled is true when every desired Instance runs the target and none has work.
	Settled bool
	// Failed is true while some Instance is in phase Failed.
	Failed bool
	// Desired is the number of Instances wanted.
	Desired int32
	// Base is what a canary's capacity is taken of: the least number of Instances that
	// is always there, so that an autoscaler moves no step.
	Base int32
	// UpdatedReady counts Instances that run the target and are ready.
	UpdatedReady int32
	// Strategy is how its Instances move.
	Strategy v1beta1.UpdateStrategyType
	// Token is the pairing protocol of the target; empty pairs with anything.
	Token string
	// Census is filled while a ratio or a pairing asks for it.
	Census instance.Census
	// Unreadable is set when the component's rows do not decode: nothing is known of
	// it, so it neither opens, supersedes nor finishes a run.
	Unreadable bool
}

// Input is everything a rollout decision depends on.
type Input struct {
	Now time.Time
	// Seed makes the ID of a new run unique.
	Seed               string
	Namespace, Service string
	// Generation is the service's; every status this pass writes reflects it.
	Generation int64
	Pause      Pause
	Spec       *v1beta1.RolloutSpec
	Previous   *v1beta1.RolloutStatus
	// Coordination is what the groups last reported: when members finished.
	Coordination *v1beta1.RolloutCoordinationStatus
	// DefaultTolerance is a ratio's tolerance in percent where its group names none.
	DefaultTolerance int32
	Members          []Member
	// Canaries are the stored records, by primary.
	Canaries map[v1beta1.ComponentType]CanaryRecord
	// Repin, Promote, Rollback and Resume are the service's mailboxes; nil when empty.
	Repin, Promote, Rollback, Resume *string
	// ReadyTimeout is the service's annotation, DefaultReadyTimeout the operator's
	// setting; 0 is no timeout.
	ReadyTimeout        string
	DefaultReadyTimeout time.Duration
	// Samples are the finished samples of metrics that the shell has; Reach tells how far
	// back a query looks.
	Samples []analysis.Sample
	Reach   func(query string) (time.Duration, error)
	// SkipPairing lets a token change drain what still pairs (the lab's control).
	SkipPairing bool
}

// Permit is what one component may do.
type Permit struct {
	// Hold denies starts; nil allows.
	Hold *instance.Hold
	// MaxSurge and MaxUnavailable are the group's ceilings for the component, in
	// Instances; instance.NoBudget where it has none.
	MaxSurge, MaxUnavailable int32
	// BudgetField is where a person set the two; empty for what nobody set.
	BudgetField string
	// Starts and Drains bound what may begin in this pass; nil is no bound.
	Starts, Drains *instance.Quota
	// Partition keeps that many Instances on the revision they run; nil leaves it to the
	// component's own lifecycle.
	Partition *int32
	// Aim is the hash of the revision to return to, empty for what the spec wants.
	Aim string
}

// CountKind is something that happens and is counted.
type CountKind string

const (
	CountCanaryStep     CountKind = "CanaryStep"
	CountCanaryComplete CountKind = "CanaryComplete"
	// CountCanaryRollback has the cause as label: analysis or manual.
	CountCanaryRollback CountKind = "CanaryRollback"
	// CountCanaryFailed has the reason as label.
	CountCanaryFailed CountKind = "CanaryFailed"
	// CountCanaryEvaluation has the verdict as label: pass, fail or inconclusive.
	CountCanaryEvaluation CountKind = "CanaryEvaluation"
	// CountRepin has the outcome as label: applied or rejected.
	CountRepin CountKind = "Repin"
	// CountGroupTransition has the phase as label.
	CountGroupTransition CountKind = "GroupTransition"
)

// MetricValue is what a metric of an analysis last came to; empty when nothing did.
type MetricValue struct {
	Component     v1beta1.ComponentType
	Metric, Value string
}

// Count is one step of a counter. The shell takes it once the pass is stored.
type Count struct {
	Kind      CountKind
	Component v1beta1.ComponentType
	// Group is the index of a group that isn't a canary.
	Group string
	Label string
}

// Result is the outcome of Decide.
type Result struct {
	// Status is the next status.rollout.
	Status *v1beta1.RolloutStatus
	// Configured is true with rollout groups, or while a run is open.
	Configured bool
	Permits    map[v1beta1.ComponentType]Permit
	// Canaries are the next records, by primary, of what is under way or rejected. One
	// without a status is dropped.
	Canaries map[v1beta1.ComponentType]Canary
	Events   []instance.Event
	Counts   []Count
	// Due are the samples to ask the metrics server for; Values what samples measured.
	Due    []analysis.Request
	Values []MetricValue
	// Consumed are the service's mailboxes that this pass answered, by annotation and value.
	Consumed map[string]string
	// Wake is when a soak ends, or a pod has been in rotation for long enough to be paired with.
	Wake time.Time
	// ParkReason and ParkMessage say why no plan could be pinned; empty otherwise.
	ParkReason, ParkMessage string
}
