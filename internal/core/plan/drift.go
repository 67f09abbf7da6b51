package plan

import (
	"fmt"

	"ome.io/ome/api/v1beta1"
)

// DriftReason words the RolloutPlanDrift condition of an open run: the live plan is
// no longer the pinned one when a progression differs, or the number of groups.
// Edits of components, order, soak and ratio are no drift.
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
