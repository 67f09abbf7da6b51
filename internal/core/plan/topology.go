package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"ome.io/ome/api/v1beta1"
)

// Topology says in which way two plans differ in what no digest covers: the number of
// groups and, for each, kind, components, order, soak and ratio. It is "" when they
// differ in progressions at most.
func Topology(pinned, live v1beta1.RolloutPlan) string {
	if len(pinned.Groups) != len(live.Groups) {
		return fmt.Sprintf("the run pinned %d groups and the spec has %d", len(pinned.Groups), len(live.Groups))
	}
	for i := range pinned.Groups {
		a, b := &pinned.Groups[i].Group, &live.Groups[i].Group
		for _, part := range []struct {
			name string
			same bool
		}{
			{"progression kind", Kind(a) == Kind(b)},
			{"components", equality.Semantic.DeepEqual(a.Components, b.Components)},
			{"order", equality.Semantic.DeepEqual(a.Order, b.Order)},
			{"soak", equality.Semantic.DeepEqual(a.Soak, b.Soak)},
			{"maintainRatio", equality.Semantic.DeepEqual(a.MaintainRatio, b.MaintainRatio)},
		} {
			if !part.same {
				return fmt.Sprintf("groups[%d] has another %s than the run pinned", i, part.name)
			}
		}
	}
	return ""
}
