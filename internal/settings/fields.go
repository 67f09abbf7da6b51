package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/internal/core/config"
)

const encodingColumnar = "ColumnarV2"

// The two halves of force deletion, which is off unless both are set.
const (
	overdueSlack    = "forceDelete.overdueSlack"
	nodeUnreachable = "forceDelete.nodeUnreachableThreshold"
)

// field is one value: where it stands in the ConfigMap and where it goes in Settings.
type field struct {
	key, path string
	set       func(*config.Settings, any) error
	keep      func(dst, src *config.Settings)
	// unused says that the field does nothing in this release; empty when it does.
	unused string
}

// notUsed marks fields that are read and checked, and that nothing acts on.
func notUsed(f ...field) []field {
	for i := range f {
		f[i].unused = "not used by this release; remove it, or expect nothing of it"
	}
	return f
}

func newField[T any](key, path string, at func(*config.Settings) *T, parse func(any) (T, error)) field {
	return field{
		key: key, path: path,
		set: func(s *config.Settings, v any) error {
			parsed, err := parse(v)
			if err == nil {
				*at(s) = parsed
			}
			return err
		},
		keep: func(dst, src *config.Settings) { *at(dst) = *at(src) },
	}
}

type settingsT = config.Settings

// fields lists everything that is read, in the order problems are reported.
var fields = concat(
	analysisFields,
	[]field{
		newField("coordination", "defaultRatioTolerancePercent", func(s *settingsT) *int32 { return &s.Coordination.DefaultRatioTolerancePercent }, count(0, 100)),
	},
	[]field{
		newField("deploy", "defaultDeploymentMode", func(s *settingsT) *string { return new(string) }, oneOf("RawDeployment")),
		newField("deploy", "minReadySeconds", func(s *settingsT) *int32 { return &s.Deploy.MinReadySeconds }, orOff(count(0, math.MaxInt32))),
		newField("deploy", "terminationGracePeriodSeconds", func(s *settingsT) *int64 { return &s.Deploy.TerminationGracePeriodSeconds }, orOff(seconds)),
		newField("deploy", "replicas.defaultMinReplicas", func(s *settingsT) *int32 { return &s.Deploy.DefaultMinReplicas }, count(1, math.MaxInt32)),
		newField("deploy", "replicas.defaultMaxReplicas.engine", func(s *settingsT) *int32 { return &s.Deploy.DefaultMaxReplicas.Engine }, count(1, math.MaxInt32)),
		newField("deploy", "replicas.defaultMaxReplicas.decoder", func(s *settingsT) *int32 { return &s.Deploy.DefaultMaxReplicas.Decoder }, count(1, math.MaxInt32)),
		newField("deploy", "replicas.defaultMaxReplicas.router", func(s *settingsT) *int32 { return &s.Deploy.DefaultMaxReplicas.Router }, count(1, math.MaxInt32)),
	},
	strategyFields("engine", func(s *settingsT) *config.UpdateStrategy { return &s.Deploy.UpdateStrategy.Engine }),
	strategyFields("decoder", func(s *settingsT) *config.UpdateStrategy { return &s.Deploy.UpdateStrategy.Decoder }),
	strategyFields("router", func(s *settingsT) *config.UpdateStrategy { return &s.Deploy.UpdateStrategy.Router }),
	[]field{
		newField("lifecycle", "instanceReadyTimeout", func(s *settingsT) *time.Duration { return &s.Lifecycle.InstanceReadyTimeout }, orOff(duration)),
		newField("lifecycle", "stuckPodGracePeriod", func(s *settingsT) *time.Duration { return &s.Lifecycle.StuckPodGracePeriod }, orOff(duration)),
		newField("lifecycle", "unschedulableGracePeriod", func(s *settingsT) *time.Duration { return &s.Lifecycle.UnschedulableGracePeriod }, orOff(duration)),
		newField("lifecycle", "updateRetry.maxAttempts", func(s *settingsT) *int32 { return &s.Lifecycle.UpdateRetry.MaxAttempts }, orOff(count(0, math.MaxInt32))),
		newField("lifecycle", "updateRetry.initialBackoff", func(s *settingsT) *time.Duration { return &s.Lifecycle.UpdateRetry.InitialBackoff }, positive),
		newField("lifecycle", "updateRetry.backoffFactor", func(s *settingsT) *int32 { return &s.Lifecycle.UpdateRetry.BackoffFactor }, count(1, 100)),
		newField("lifecycle", "updateRetry.maxBackoff", func(s *settingsT) *time.Duration { return &s.Lifecycle.UpdateRetry.MaxBackoff }, orOff(duration)),
		newField("lifecycle", "autoMigrate.maxAttempts", func(s *settingsT) *int32 { return &s.Lifecycle.AutoMigrate.MaxAttempts }, orOff(count(0, math.MaxInt32))),
		newField("lifecycle", "audit.window", func(s *settingsT) *time.Duration { return &s.Lifecycle.Audit.Window }, orOff(duration)),
		newField("lifecycle", overdueSlack, func(s *settingsT) *time.Duration { return &s.Lifecycle.ForceDelete.OverdueSlack }, orOff(positive)),
		newField("lifecycle", nodeUnreachable, func(s *settingsT) *time.Duration { return &s.Lifecycle.ForceDelete.NodeUnreachableThreshold }, orOff(positive)),
		newField("lifecycle", "requeue.operation", func(s *settingsT) *time.Duration { return &s.Lifecycle.Requeue.Operation }, positive),
		newField("lifecycle", "teardown.deadline", func(s *settingsT) *time.Duration { return &s.Lifecycle.TeardownDeadline }, orOff(duration)),
	},
	notUsed(
		newField("lifecycle", "requeue.gate", func(s *settingsT) *time.Duration { return &s.Lifecycle.Requeue.Gate }, positive),
		newField("lifecycle", "scaleDownRequeueInterval", func(s *settingsT) *time.Duration { return &s.Lifecycle.ScaleDownRequeueInterval }, orOff(positive)),
	),
	[]field{
		newField("lifecycle", "revisionHistoryLimit", func(s *settingsT) *int32 { return &s.Lifecycle.RevisionHistoryLimit }, orOff(count(1, math.MaxInt32))),
		newField("lifecycle", "scaleUpPodBatchSize", func(s *settingsT) *int32 { return &s.Lifecycle.ScaleUpPodBatchSize }, orOff(count(1, math.MaxInt32))),
		newField("lifecycle", "scaleDownPodBatchSize", func(s *settingsT) *int32 { return &s.Lifecycle.ScaleDownPodBatchSize }, orOff(count(1, math.MaxInt32))),
		newField("lifecycle", "maxOpenOperations", func(s *settingsT) *int32 { return &s.Lifecycle.MaxOpenOperations }, count(1, 5000)),

		newField("omenativeStatus", "instanceStatusEncoding", func(s *settingsT) *string { return &s.InstanceStatus.Encoding }, oneOf("DenseV1", encodingColumnar)),
		newField("omenativeStatus", "maxDecodedInstances", func(s *settingsT) *int32 { return &s.InstanceStatus.MaxDecodedInstances }, orOff(count(1, math.MaxInt32))),
	},
	notUsed(
		budgetField("rawDeployment", func(s *settingsT) *config.DisruptionBudget { return &s.PodDisruptionBudget.RawDeployment }),
		budgetField("omeNative", func(s *settingsT) *config.DisruptionBudget { return &s.PodDisruptionBudget.OMENative }),
		newField("rollout", "maxConcurrentServices", func(s *settingsT) *int32 { return &s.Rollout.MaxConcurrentServices }, orOff(count(0, math.MaxInt32))),
	),
	[]field{
		newField("rollout", "defaultReadyTimeout", func(s *settingsT) *time.Duration { return &s.Rollout.DefaultReadyTimeout }, orOff(duration)),
		newField("rollout", "maxPinnedPlanBytes", func(s *settingsT) *int32 { return &s.Rollout.MaxPinnedPlanBytes }, orOff(count(0, math.MaxInt32))),
	},
)

func strategyFields(component string, at func(*settingsT) *config.UpdateStrategy) []field {
	path := "updateStrategy." + component + "."
	return []field{
		newField("deploy", path+"type", func(s *settingsT) *string { return &at(s).Type },
			oneOf("SurgeThenDrain", "RecreatePod", "InPlaceIfPossible", "InPlaceOnly")),
		newField("deploy", path+"maxSurge", func(s *settingsT) *intstr.IntOrString { return &at(s).MaxSurge }, budget),
		newField("deploy", path+"maxUnavailable", func(s *settingsT) *intstr.IntOrString { return &at(s).MaxUnavailable }, budget),
	}
}

// A mode that sets one budget field replaces the default, which is the other field.
func budgetField(mode string, at func(*settingsT) *config.DisruptionBudget) field {
	whole := func(v any) (config.DisruptionBudget, error) {
		if v == nil {
			return config.DisruptionBudget{}, nil
		}
		object, ok := v.(map[string]any)
		if !ok {
			return config.DisruptionBudget{}, errors.New("must be a JSON object with minAvailable or maxUnavailable")
		}
		var out config.DisruptionBudget
		for name, dst := range map[string]**intstr.IntOrString{"minAvailable": &out.MinAvailable, "maxUnavailable": &out.MaxUnavailable} {
			if object[name] == nil {
				continue
			}
			b, err := budget(object[name])
			if err != nil {
				return config.DisruptionBudget{}, fmt.Errorf("%s %w", name, err)
			}
			*dst = &b
		}
		return out, nil
	}
	return newField("podDisruptionBudget", mode, at, whole)
}

func concat(parts ...[]field) []field {
	var all []field
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// orOff lets null turn a setting off, which is its zero value.
func orOff[T any](parse func(any) (T, error)) func(any) (T, error) {
	return func(v any) (T, error) {
		if v == nil {
			var off T
			return off, nil
		}
		return parse(v)
	}
}

func duration(v any) (time.Duration, error) {
	text, ok := v.(string)
	if !ok {
		return 0, errors.New(`must be a duration with a unit, such as "30m"`)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New(`must be a duration with a unit, such as "30m"`)
	}
	if d < 0 {
		return 0, errors.New("must not be negative")
	}
	return d, nil
}

func positive(v any) (time.Duration, error) {
	d, err := duration(v)
	if err == nil && d == 0 {
		return 0, errors.New("must be above zero")
	}
	return d, err
}

func count(least, most int32) func(any) (int32, error) {
	expected := fmt.Errorf("must be a whole number from %d to %d", least, most)
	if most == math.MaxInt32 {
		expected = fmt.Errorf("must be a whole number, %d or more", least)
	}
	return func(v any) (int32, error) {
		number, ok := v.(json.Number)
		if !ok {
			return 0, expected
		}
		n, err := strconv.ParseInt(number.String(), 10, 32)
		if err != nil || int32(n) < least || int32(n) > most {
			return 0, expected
		}
		return int32(n), nil
	}
}

func seconds(v any) (int64, error) {
	n, err := count(0, math.MaxInt32)(v)
	return int64(n), err
}

func oneOf(words ...string) func(any) (string, error) {
	return func(v any) (string, error) {
		text, _ := v.(string)
		for _, w := range words {
			if text == w {
				return w, nil
			}
		}
		return "", fmt.Errorf("must be %s", strings.Join(words, " or "))
	}
}

// budget reads a count or a percentage from 0% to 100%.
func budget(v any) (intstr.IntOrString, error) {
	expected := errors.New(`must be a whole number, 0 or more, or a percentage from "0%" to "100%"`)
	switch v := v.(type) {
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 32)
		if err != nil || n < 0 {
			return intstr.IntOrString{}, expected
		}
		return intstr.FromInt32(int32(n)), nil
	case string:
		digits, ok := strings.CutSuffix(v, "%")
		n, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || n > 100 {
			return intstr.IntOrString{}, expected
		}
		return intstr.FromString(v), nil
	}
	return intstr.IntOrString{}, expected
}

func isZero(b intstr.IntOrString) bool {
	return b.Type == intstr.Int && b.IntVal == 0 || b.Type == intstr.String && strings.TrimLeft(b.StrVal, "0") == "%"
}
