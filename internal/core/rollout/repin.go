package rollout

import (
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/plan"
)

var digestForm = regexp.MustCompile(`^rp1:[0-9a-f]{12}$`)

// repin takes the live plan into the open run, when the request names the digest that
// the live plan has. Progress, targets and the run's identity stay. Nothing is consumed
// under a pause.
func repin(res *Result, in *Input, live plan.Resolution) {
	if in.Repin == nil || in.Pause != NotPaused {
		return
	}
	value := *in.Repin
	res.consume(v1beta1.RolloutRepinAnnotation, value)
	reject := func(format string, args ...any) {
		res.Counts = append(res.Counts, Count{Kind: CountRepin, Label: "rejected"})
		res.Events = append(res.Events, instance.Event{Warning: true, Reason: v1beta1.EventRolloutRepinRejected, Message: fmt.Sprintf(format, args...)})
	}
	run := res.Status.ActiveRun
	if run == nil {
		reject("no run is open; the next run pins the plan as it is then")
		return
	}
	current, pinned := plan.PinnedDigest(live.Plan), plan.PinnedDigest(run.Plan)
	switch difference := plan.Topology(run.Plan, live.Plan); {
	case value != v1beta1.RepinNow && !digestForm.MatchString(value):
		reject("%q is neither %q nor a digest such as rp1:cca45ec1fb0f", clip(value), v1beta1.RepinNow)
	case len(live.Plan.Groups) == 0:
		reject("the spec has no rollout groups any more; run %s goes on with the plan it pinned", run.RunID)
	case live.Parked():
		reject("the current source does not render: %s: %s", live.Reason, live.Message)
	case current == "":
		reject("the current source does not render: a group has no digest")
	case value != v1beta1.RepinNow && value != current:
		reject("expected render digest %s but the current render is %s (a concurrent edit landed; re-issue with the current digest)", value, current)
	case difference != "":
		reject("%s; such an edit applies at the next run", difference)
	case current == pinned:
		// Pinned already: nothing to tell.
	default:
		next := *run
		next.Plan, next.PinnedAt = *live.Plan.DeepCopy(), metav1.NewTime(in.Now)
		res.Status.ActiveRun = &next
		clampAll(in, plan.GroupsOf(next.Plan))
		res.Counts = append(res.Counts, Count{Kind: CountRepin, Label: "applied"})
		res.Events = append(res.Events, instance.Event{Reason: v1beta1.EventRolloutPlanRepinned,
			Message: fmt.Sprintf("run %s repinned: %s -> %s", run.RunID, pinned, current)})
	}
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64]
	}
	return s
}
