package config

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Settings is everything an operator can tune.
type Settings struct {
	Lifecycle           Lifecycle            `json:"lifecycle"`
	Deploy              Deploy               `json:"deploy"`
	InstanceStatus      InstanceStatus       `json:"omenativeStatus"`
	PodDisruptionBudget PodDisruptionBudgets `json:"podDisruptionBudget"`
	Rollout             Rollout              `json:"rollout"`
	Coordination        Coordination         `json:"coordination"`
	CanaryAnalysis      CanaryAnalysis       `json:"canaryAnalysis"`
	// MetricProviders are the servers that a canary may name, by name.
	MetricProviders map[string]MetricProvider `json:"metricProviders,omitempty"`
}

// CanaryAnalysis tunes how the metrics of canaries are asked for.
type CanaryAnalysis struct {
	// BundledPrometheusAddress is asked where a canary names no source and no default is bound.
	BundledPrometheusAddress string `json:"bundledPrometheusAddress"`
	// DefaultProvider is the one of MetricProviders that is asked where a canary names no source.
	DefaultProvider string `json:"defaultProvider"`
	// QueryTimeout bounds all queries of one sample together.
	QueryTimeout time.Duration `json:"queryTimeout"`
	// MaxConcurrency is the number of samples taken at one time.
	MaxConcurrency int32 `json:"maxConcurrency"`
	// CacheTTL is how long a finished sample waits to be judged.
	CacheTTL time.Duration `json:"cacheTTL"`
	// AllowedServerAddresses limits the addresses that a canary may name itself: host patterns such
	// as *.monitoring.svc, and networks such as 10.0.0.0/8. Empty: any but those of the manager's own
	// machine and link, which only a network in the list can open.
	AllowedServerAddresses []string `json:"allowedServerAddresses,omitempty"`
}

// MetricProvider is a server that metrics are asked of.
type MetricProvider struct {
	// ServerAddress is its base URL.
	ServerAddress string `json:"serverAddress"`
	// AuthSecretRef selects a bearer token from a Secret in the namespace of each service.
	AuthSecretRef *SecretKey `json:"authSecretRef,omitempty"`
	// Headers to send.
	Headers map[string]string `json:"headers,omitempty"`
}

// SecretKey is one value of a Secret.
type SecretKey struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Lifecycle tunes how one Instance is created, judged and retried.
type Lifecycle struct {
	// InstanceReadyTimeout bounds one attempt to bring an Instance up. 0: no deadline.
	InstanceReadyTimeout time.Duration `json:"instanceReadyTimeout"`
	// StuckPodGracePeriod is how long a container may wait for a terminal cause,
	// such as an image that cannot be pulled, before its pod is called stuck. 0: never.
	StuckPodGracePeriod time.Duration `json:"stuckPodGracePeriod"`
	// UnschedulableGracePeriod is how long to wait for room. 0: for ever.
	UnschedulableGracePeriod time.Duration `json:"unschedulableGracePeriod"`
	// UpdateRetry paces new attempts at a revision that failed.
	UpdateRetry UpdateRetry `json:"updateRetry"`
	// AutoMigrate bounds automatic relocation off a node on which an attempt failed.
	AutoMigrate AutoMigrate `json:"autoMigrate"`
	// Audit bounds what is remembered of migrations.
	Audit Audit `json:"audit"`
	// ForceDelete removes pods of dead nodes; off unless both of its values are set.
	ForceDelete ForceDelete `json:"forceDelete"`
	// Requeue paces the second look at held work that no watched object ends.
	Requeue Requeue `json:"requeue"`
	// TeardownDeadline bounds how long a deleted replica waits for its pods. 0: until they are gone.
	TeardownDeadline time.Duration `json:"teardownDeadline"`
	// RevisionHistoryLimit is how many revisions out of use are kept. 0: all.
	RevisionHistoryLimit int32 `json:"revisionHistoryLimit"`
	// ScaleUpPodBatchSize bounds the pods created for one component in one pass. 0: no bound.
	ScaleUpPodBatchSize int32 `json:"scaleUpPodBatchSize"`
	// ScaleDownPodBatchSize bounds the pods in removal for one component. 0: no bound.
	ScaleDownPodBatchSize int32 `json:"scaleDownPodBatchSize"`
	// ScaleDownRequeueInterval is the fallback look at a removal under way. 0: none.
	ScaleDownRequeueInterval time.Duration `json:"scaleDownRequeueInterval"`
	// MaxOpenOperations bounds the operations open at one time in one component,
	// which bounds the size of its status. Always above 0.
	MaxOpenOperations int32 `json:"maxOpenOperations"`
}

// UpdateRetry is the backoff between attempts at one revision.
type UpdateRetry struct {
	// MaxAttempts is the number of attempts before the revision is held. 0: the first failure holds it.
	MaxAttempts int32 `json:"maxAttempts"`
	// InitialBackoff is the wait after the first failure.
	InitialBackoff time.Duration `json:"initialBackoff"`
	// BackoffFactor multiplies the wait after each further failure. At least 1.
	BackoffFactor int32 `json:"backoffFactor"`
	// MaxBackoff caps the wait. 0: no cap.
	MaxBackoff time.Duration `json:"maxBackoff"`
}

// AutoMigrate bounds relocations.
type AutoMigrate struct {
	// MaxAttempts is how many relocations an Instance gets before it is next Ready. 0: none.
	MaxAttempts int32 `json:"maxAttempts"`
}

// Audit bounds migration records.
type Audit struct {
	// Window is how long an ended record is kept. 0: for ever.
	Window time.Duration `json:"window"`
}

// ForceDelete is the escalation for pods that outlive their deletion on a dead node.
type ForceDelete struct {
	// OverdueSlack is how long past its deletionTimestamp a pod must be. 0: off.
	OverdueSlack time.Duration `json:"overdueSlack"`
	// NodeUnreachableThreshold is how long its node must have been unreachable. 0: off.
	NodeUnreachableThreshold time.Duration `json:"nodeUnreachableThreshold"`
}

// Enabled is true when both values are set.
func (f ForceDelete) Enabled() bool { return f.OverdueSlack > 0 && f.NodeUnreachableThreshold > 0 }

// Requeue is how soon held work is looked at again without an event.
type Requeue struct {
	Operation time.Duration `json:"operation"`
	Gate      time.Duration `json:"gate"`
}

// Deploy holds what a component gets when neither the service nor its runtime says.
type Deploy struct {
	// MinReadySeconds is how long a pod stays Ready before it counts as available.
	MinReadySeconds int32 `json:"minReadySeconds"`
	// TerminationGracePeriodSeconds goes into pod templates that name none. 0: the cluster's own default.
	TerminationGracePeriodSeconds int64 `json:"terminationGracePeriodSeconds"`
	// DefaultMinReplicas is the floor of a component that names none. At least 1.
	DefaultMinReplicas int32 `json:"defaultMinReplicas"`
	// DefaultMaxReplicas is the ceiling of a component that names none.
	DefaultMaxReplicas PerComponent[int32] `json:"defaultMaxReplicas"`
	// UpdateStrategy is how each component's Instances are replaced by default.
	UpdateStrategy PerComponent[UpdateStrategy] `json:"updateStrategy"`
}

// UpdateStrategy is an operator's default for one component.
type UpdateStrategy struct {
	// Type is one of the API's update strategy types.
	Type string `json:"type"`
	// MaxSurge is the budget that SurgeThenDrain reads.
	MaxSurge intstr.IntOrString `json:"maxSurge"`
	// MaxUnavailable is the budget that every other strategy reads.
	MaxUnavailable intstr.IntOrString `json:"maxUnavailable"`
}

// InstanceStatus chooses how Instance rows are stored.
type InstanceStatus struct {
	// Encoding is DenseV1 or ColumnarV2.
	Encoding string `json:"instanceStatusEncoding"`
	// MaxDecodedInstances bounds the rows that a ColumnarV2 status may expand to. 0: ColumnarV2 is not read.
	MaxDecodedInstances int32 `json:"maxDecodedInstances"`
}

// PodDisruptionBudgets holds the default budget of each mode.
type PodDisruptionBudgets struct {
	RawDeployment DisruptionBudget `json:"rawDeployment"`
	OMENative     DisruptionBudget `json:"omeNative"`
}

// DisruptionBudget sets at most one of its fields; with neither, no budget is made.
type DisruptionBudget struct {
	MinAvailable   *intstr.IntOrString `json:"minAvailable,omitempty"`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// Rollout bounds grouped rollouts.
type Rollout struct {
	// DefaultReadyTimeout bounds a canary step's wait for capacity. 0: none.
	DefaultReadyTimeout time.Duration `json:"defaultReadyTimeout"`
	// MaxPinnedPlanBytes caps the JSON of one progression. 0: no cap.
	MaxPinnedPlanBytes int32 `json:"maxPinnedPlanBytes"`
	// MaxConcurrentServices caps the services that a shared change rolls at one time. 0: no cap.
	MaxConcurrentServices int32 `json:"maxConcurrentServices"`
}

// Coordination tunes groups.
type Coordination struct {
	// DefaultRatioTolerancePercent applies where a group's maintainRatio names no tolerance.
	DefaultRatioTolerancePercent int32 `json:"defaultRatioTolerancePercent"`
}

// PerComponent holds one value for each component.
type PerComponent[T any] struct {
	Engine  T `json:"engine"`
	Decoder T `json:"decoder"`
	Router  T `json:"router"`
}

// For returns the component's value. Component words are the API's: engine, decoder, router.
func (p PerComponent[T]) For(component string) T {
	switch component {
	case "decoder":
		return p.Decoder
	case "router":
		return p.Router
	default:
		return p.Engine
	}
}

// Default returns the settings of an installation that says nothing.
func Default() Settings {
	strategy := UpdateStrategy{
		Type:           "SurgeThenDrain",
		MaxSurge:       intstr.FromString("25%"),
		MaxUnavailable: intstr.FromString("25%"),
	}
	one := intstr.FromInt32(1)
	return Settings{
		Lifecycle: Lifecycle{
			InstanceReadyTimeout:     30 * time.Minute,
			StuckPodGracePeriod:      time.Minute,
			UnschedulableGracePeriod: 15 * time.Minute,
			UpdateRetry: UpdateRetry{
				MaxAttempts:    3,
				InitialBackoff: time.Minute,
				BackoffFactor:  2,
				MaxBackoff:     10 * time.Minute,
			},
			AutoMigrate:              AutoMigrate{MaxAttempts: 3},
			Audit:                    Audit{Window: time.Hour},
			Requeue:                  Requeue{Operation: 5 * time.Second, Gate: 3 * time.Second},
			TeardownDeadline:         30 * time.Minute,
			RevisionHistoryLimit:     10,
			ScaleUpPodBatchSize:      100,
			ScaleDownPodBatchSize:    100,
			ScaleDownRequeueInterval: 5 * time.Second,
			MaxOpenOperations:        500,
		},
		Deploy: Deploy{
			TerminationGracePeriodSeconds: 600,
			DefaultMinReplicas:            1,
			DefaultMaxReplicas:            PerComponent[int32]{Engine: 3, Decoder: 3, Router: 2},
			UpdateStrategy:                PerComponent[UpdateStrategy]{Engine: strategy, Decoder: strategy, Router: strategy},
		},
		InstanceStatus: InstanceStatus{Encoding: "ColumnarV2", MaxDecodedInstances: 20000},
		PodDisruptionBudget: PodDisruptionBudgets{
			RawDeployment: DisruptionBudget{MaxUnavailable: &one},
			OMENative:     DisruptionBudget{MaxUnavailable: &one},
		},
		Rollout:      Rollout{DefaultReadyTimeout: 15 * time.Minute, MaxPinnedPlanBytes: 16384},
		Coordination: Coordination{DefaultRatioTolerancePercent: 5},
		CanaryAnalysis: CanaryAnalysis{
			BundledPrometheusAddress: "http://ome-prometheus.ome.svc:9090",
			QueryTimeout:             5 * time.Second,
			MaxConcurrency:           8,
			CacheTTL:                 2 * time.Minute,
		},
	}
}
