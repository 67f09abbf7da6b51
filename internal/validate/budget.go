package validate

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
)

// checkPair judges a maxSurge and maxUnavailable that stand together.
func checkPair(r *Result, field string, surge, unavailable *intstr.IntOrString) {
	ok := checkBudget(r, field+".maxSurge", surge)
	ok = checkBudget(r, field+".maxUnavailable", unavailable) && ok
	if ok && surge != nil && unavailable != nil && isZero(*surge) && isZero(*unavailable) {
		r.refuse(field, CodeZeroBudgetPacingUnstartable,
			"maxSurge %s and maxUnavailable %s are both zero, so no Instance could ever move; set one of them above zero", surge.String(), unavailable.String())
	}
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
	return forComponents(s, func(_ v1beta1.ComponentType, e *v1beta1.ComponentExtensionSpec) any { return componentBudget(e) })
}

func checkBudgets(r *Result, s *v1beta1.InferenceService) {
	for _, c := range v1beta1.IsvcComponents(s) {
		if b := componentBudget(s.Spec.Extension(c)); b != nil {
			checkPair(r, component(c, ".lifecycle.updateStrategy.rollingUpdate"), b.MaxSurge, b.MaxUnavailable)
		}
	}
}
