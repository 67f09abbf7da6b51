package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// Drift is true when the live plan is no longer the pinned one: a progression
// differs, or the number of groups. Edits of components, order, soak and ratio
// are no drift; SameTopology sees them.
func Drift(pinned, live v1beta1.RolloutPlan) bool {
	reason, _ := DriftReason(pinned, live)
	return reason != v1beta1.ReasonInSync
}

// DriftReason words the RolloutPlanDrift condition of an open run.
func DriftReason(pinned, live v1beta1.RolloutPlan) (reason, message string) {
	const applies = "the edit applies at the next run (or via " + v1beta1.RolloutRepinAnnotation + ")"
	for i := range min(len(pinned.Groups), len(live.Groups)) {
		was, is := pinned.Groups[i].PortableDigest, live.Groups[i].PortableDigest
		if was == is {
			continue
		}
		reason = v1beta1.ReasonSpecNewerThanRun
		if live.Groups[i].Source == v1beta1.SourcePolicy {
			reason = v1beta1.ReasonPolicyNewerThanRun
		}
		if is == "" {
			is = "(unresolvable)"
		}
		return reason, fmt.Sprintf("groups[%d]: live render %s differs from pinned %s; %s", i, is, was, applies)
	}
	if len(pinned.Groups) != len(live.Groups) {
		return v1beta1.ReasonSpecNewerThanRun, fmt.Sprintf("groups: live render has %d and the run pinned %d; %s", len(live.Groups), len(pinned.Groups), applies)
	}
	return v1beta1.ReasonInSync, ""
}

// SameTopology compares what a digest doesn't cover: the number of groups and,
// for each, kind, components, order, soak and ratio. A plan may replace another
// under an open run only when they agree. The second result names the first
// difference.
func SameTopology(a, b v1beta1.RolloutPlan) (bool, string) {
	if len(a.Groups) != len(b.Groups) {
		return false, fmt.Sprintf("groups: %d and %d", len(a.Groups), len(b.Groups))
	}
	for i := range a.Groups {
		x, y := &a.Groups[i].Group, &b.Groups[i].Group
		switch {
		case Kind(x) != Kind(y):
			return false, fmt.Sprintf("groups[%d]: %s and %s", i, Kind(x), Kind(y))
		case !sameMembers(x.Components, y.Components):
			return false, fmt.Sprintf("groups[%d].components: %v and %v", i, x.Components, y.Components)
		case !equality.Semantic.DeepEqual(x.Order, y.Order):
			return false, fmt.Sprintf("groups[%d].order: %v and %v", i, x.Order, y.Order)
		case !equality.Semantic.DeepEqual(x.Soak, y.Soak):
			return false, fmt.Sprintf("groups[%d].soak: %s and %s", i, soak(x.Soak), soak(y.Soak))
		case !equality.Semantic.DeepEqual(x.MaintainRatio, y.MaintainRatio):
			return false, fmt.Sprintf("groups[%d].maintainRatio: %s and %s", i, ratio(x.MaintainRatio), ratio(y.MaintainRatio))
		}
	}
	return true, ""
}

func soak(d *metav1.Duration) string {
	if d == nil {
		return "unset"
	}
	return d.Duration.String()
}

func ratio(r *v1beta1.MaintainRatio) string {
	switch {
	case r == nil:
		return "unset"
	case r.Tolerance == nil:
		return "the operator's tolerance"
	}
	return fmt.Sprintf("%d%%", *r.Tolerance)
}
