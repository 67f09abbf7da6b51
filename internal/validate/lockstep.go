package validate

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// checkLockstep refuses an edit that changes the pods of only some members of a
// rolling-update group: they would run apart until somebody changes the others.
// What reaches the pods through the runtime is not seen here.
func checkLockstep(r *Result, s, old *v1beta1.InferenceService) {
	if s.Spec.Rollout == nil {
		return
	}
	for i := range s.Spec.Rollout.Groups {
		g := &s.Spec.Rollout.Groups[i]
		if plan.Kind(g) != v1beta1.ProgressionRollingUpdate || len(g.Components) < 2 {
			continue
		}
		var changed, same []v1beta1.ComponentType
		for _, c := range g.Components {
			if s.Spec.Extension(c) == nil || old.Spec.Extension(c) == nil {
				continue // it comes or goes as a whole
			}
			if equality.Semantic.DeepEqual(podSettings(s, c), podSettings(old, c)) {
				same = append(same, c)
			} else {
				changed = append(changed, c)
			}
		}
		if len(changed) > 0 && len(same) > 0 {
			r.refuse(groupField(i, ".components"), CodeRollingUpdateLockstepViolation,
				"the edit changes the pods of %s and not those of %s, which roll in lockstep; change them in one edit, or use blueGreen",
				words(changed), words(same))
		}
	}
}

// podSettings is what a component's own block contributes to its pods.
func podSettings(s *v1beta1.InferenceService, c v1beta1.ComponentType) any {
	e := s.Spec.Extension(c)
	meta := []any{e.Labels, e.Annotations}
	if c == v1beta1.RouterComponent {
		return append(meta, s.Spec.Router.PodSpec, s.Spec.Router.Runner, s.Spec.Router.Config)
	}
	shape := engineShape(s, c)
	return append(meta, shape.PodSpec, shape.Runner, shape.Leader, shape.Worker)
}

func words(list []v1beta1.ComponentType) string {
	var out string
	for i, c := range slices.Sorted(slices.Values(list)) {
		if i > 0 {
			out += " and "
		}
		out += string(c)
	}
	return out
}
