package validate

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
)

// checkPair judges a maxSurge and maxUnavailable that stand together, and reports
// whether both are good.
func checkPair(r *Result, field string, surge, unavailable *intstr.IntOrString) bool {
	ok := checkBudget(r, field+".maxSurge", surge)
	ok = checkBudget(r, field+".maxUnavailable", unavailable) && ok
	if ok && surge != nil && unavailable != nil && isZero(*surge) && isZero(*unavailable) {
		r.refuse(field, CodeZeroBudgetPacingUnstartable,
			"maxSurge %s and maxUnavailable %s are both zero, so no Instance could ever move; set one of them above zero", surge.String(), unavailable.String())
		return false
	}
	return ok
}

func checkBudget(r *Result, field string, b *intstr.IntOrString) bool {
	if b == nil {
		return true
	}
	if b.Type == intstr.Int {
		if b.IntVal < 0 {
			r.refuse(field, CodeInvalidRollingUpdateInteger, "%d is negative; use 0 or more", b.IntVal)
			return false
		}
		return true
	}
	if _, ok := percent(b.StrVal); !ok {
		r.refuse(field, CodeInvalidRollingUpdatePercent, `%q is not a percentage from "0%%" to "100%%"; a count is written without quotes`, b.StrVal)
		return false
	}
	return true
}

// percent reads "0%" to "100%": digits only, no sign and no fraction.
func percent(text string) (int, bool) {
	digits, ok := strings.CutSuffix(text, "%")
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n <= 100
}

func isZero(b intstr.IntOrString) bool {
	if b.Type == intstr.Int {
		return b.IntVal == 0
	}
	n, ok := percent(b.StrVal)
	return ok && n == 0
}

// componentBudget is the budget of the component's own update strategy.
func componentBudget(e *v1beta1.ComponentExtensionSpec) *v1beta1.InstanceRollingUpdate {
	if e.Lifecycle == nil || e.Lifecycle.UpdateStrategy == nil {
		return nil
	}
	return e.Lifecycle.UpdateStrategy.RollingUpdate
}

func readsBudgets(s *v1beta1.InferenceService) any {
	return forComponents(s, func(_ v1beta1.ComponentType, e *v1beta1.ComponentExtensionSpec) any {
		if e.Lifecycle == nil {
			return nil
		}
		return e.Lifecycle.UpdateStrategy
	})
}

func checkBudgets(r *Result, s *v1beta1.InferenceService) {
	for _, c := range v1beta1.IsvcComponents(s) {
		e := s.Spec.Extension(c)
		b := componentBudget(e)
		if b == nil {
			continue
		}
		field := component(c, ".lifecycle.updateStrategy.rollingUpdate")
		if checkPair(r, field, b.MaxSurge, b.MaxUnavailable) {
			warnOfStandstill(r, field, e.Lifecycle.UpdateStrategy.Type, b)
		}
	}
}

// warnOfStandstill tells of a zero in the one budget that the strategy reads. It may be
// meant, as a brake. Without a type the strategy may come from the runtime.
func warnOfStandstill(r *Result, field string, strategy v1beta1.UpdateStrategyType, b *v1beta1.InstanceRollingUpdate) {
	name, value := ".maxUnavailable", b.MaxUnavailable
	switch strategy {
	case "":
		return
	case v1beta1.SurgeThenDrain:
		name, value = ".maxSurge", b.MaxSurge
	}
	if value != nil && isZero(*value) {
		r.warn(field+name, "", "%s reads no other budget, and with %s no Instance is updated; set it above zero", strategy, value.String())
	}
}
