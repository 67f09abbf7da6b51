package plan

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// blueGreenPercent is the share of its replicas that a blue-green member moves
// at a time. It is fixed.
const blueGreenPercent = 25

// DefaultBudget is what an unset budget of a rolling-update group means.
func DefaultBudget() intstr.IntOrString { return intstr.FromString("25%") }

// Percent is pct percent of n, rounded up.
func Percent(n, pct int32) int32 {
	return int32((int64(n)*int64(pct) + 99) / 100)
}

// BlueGreenBudget is the number of Instances that a blue-green member of that
// many replicas moves at a time.
func BlueGreenBudget(replicas int32) int32 { return Percent(max(replicas, 0), blueGreenPercent) }

// Budget resolves maxSurge or maxUnavailable for a number of replicas. Both
// round percentages up. It accepts a number of at least 0 and "0%" to "100%".
func Budget(v intstr.IntOrString, replicas int32) (int32, error) {
	if v.Type == intstr.Int {
		if v.IntVal < 0 {
			return 0, fmt.Errorf("%d is negative; use a number of at least 0 or a percentage", v.IntVal)
		}
		return v.IntVal, nil
	}
	pct, err := ParsePercent(v.StrVal)
	if err != nil {
		return 0, err
	}
	return Percent(max(replicas, 0), pct), nil
}

// ParsePercent reads "0%" to "100%".
func ParsePercent(s string) (int32, error) {
	digits, ok := strings.CutSuffix(s, "%")
	n, err := strconv.ParseUint(digits, 10, 8) // refuses signs and blanks
	if !ok || err != nil || n > 100 {
		return 0, fmt.Errorf(`%q is not a percentage; use "0%%" to "100%%" or an unquoted number`, s)
	}
	return int32(n), nil
}
