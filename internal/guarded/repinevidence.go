package guarded

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

var (
	digestForm = regexp.MustCompile(`^rp1:[0-9a-f]{12}$`)
	runSuffix  = regexp.MustCompile(`^-[0-9a-f]{12}$`)
	// The two ways in which the controller words a drift.
	groupDrift = regexp.MustCompile(`^groups\[(\d{1,3})\]: live render (\S+) differs from pinned ([^\s;]+);`)
	countDrift = regexp.MustCompile(`^groups: live render has (\d{1,3}) and the run pinned (\d{1,3});`)
)

// condition is a condition of the service; the zero value when it is absent.
func (ev *Evidence) condition(kind string) v1beta1.DuckCondition {
	for _, c := range ev.Service.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return v1beta1.DuckCondition{}
}

func (ev *Evidence) refuseEvidence(format string, args ...any) *Error {
	return Refuse(MsgRepinEvidence, fmt.Sprintf(format, args...), ev.explainLater())
}

func (ev *Evidence) explainLater() string {
	return "wait until the controller has caught up, then: " + ev.Command("rollout explain")
}

// refusePlanEvidence demands that the status is about the spec as it is now, that the
// run has a plan which was pinned, and that every live group can be named by a digest.
func refusePlanEvidence(ev *Evidence) *Error {
	if e := checkStamps(ev); e != nil {
		return ev.refuseEvidence("%s", e.Details[0])
	}
	run := ev.openRun()
	if suffix, ok := strings.CutPrefix(run.RunID, ev.Name); !ok || !runSuffix.MatchString(suffix) {
		return ev.refuseEvidence("status.rollout.activeRun.runID %s isn't an ID of a run of this service", Quote(Clean(run.RunID)))
	}
	ready := ev.condition(v1beta1.ConditionRolloutPlanReady)
	if ready.Status != "True" || ready.Reason != v1beta1.ReasonPinned {
		return ev.refuseEvidence("condition %s is %s, not True/%s", v1beta1.ConditionRolloutPlanReady, told(ready), v1beta1.ReasonPinned)
	}
	for _, t := range []struct {
		what string
		at   *metav1.Time
	}{
		{"status.rollout.activeRun.openedAt", &run.OpenedAt},
		{"status.rollout.activeRun.pinnedAt", &run.PinnedAt},
		{"lastTransitionTime of " + v1beta1.ConditionRolloutPlanReady, ready.LastTransitionTime},
	} {
		if e := ev.checkTime(t.what, t.at); e != nil {
			return e
		}
	}
	if run.PinnedAt.Time.Before(run.OpenedAt.Time) {
		return ev.refuseEvidence("status.rollout.activeRun: pinnedAt %s is before openedAt %s", utc(run.PinnedAt.Time), utc(run.OpenedAt.Time))
	}
	if what := badPinned(run.Plan); what != "" {
		return ev.refuseEvidence("status.rollout.activeRun.plan: %s", what)
	}
	return ev.checkLive()
}

// checkLive demands a digest for each group of the spec.
func (ev *Evidence) checkLive() *Error {
	if live := ev.livePlan(); live.Reason == v1beta1.ReasonPlanInvalid {
		return Refuse(MsgRepinEvidence, "spec.rollout can't be run: "+Clean(live.Message), "correct it; the run goes on with the plan that it pinned")
	}
	groups, reported := ev.liveGroups(), ev.Service.Status.Rollout.Groups
	if len(groups) != len(reported) {
		return ev.refuseEvidence("status.rollout.groups has %d groups and spec.rollout.groups %d", len(reported), len(groups))
	}
	// A status without a stamp may be about an older spec. What the spec itself says
	// then has to agree with it.
	stamped := ev.Service.Status.Rollout.ObservedGeneration != 0
	digests := ev.liveDigests()
	for i := range groups {
		source := v1beta1.SourceInline
		if fromPolicy(&groups[i]) {
			source = v1beta1.SourcePolicy
		}
		own, err := plan.GroupDigest(&groups[i])
		switch {
		case reported[i].Index != int32(i):
			return ev.refuseEvidence("status.rollout.groups[%d].index is %d", i, reported[i].Index)
		case reported[i].Source != source:
			return ev.refuseEvidence("status.rollout.groups[%d].source is %s and the spec's is %s", i, Quote(Clean(string(reported[i].Source))), source)
		case digests[i] == "" && source == v1beta1.SourcePolicy:
			return ev.refuseEvidence("status.rollout.groups[%d].observedDigest is empty: the policy %s isn't resolved", i, Quote(Clean(groups[i].PolicyRef.Name)))
		case !digestForm.MatchString(digests[i]):
			return ev.refuseEvidence("status.rollout.groups[%d].observedDigest %s is no digest such as rp1:cca45ec1fb0f", i, Quote(Clean(digests[i])))
		case !stamped && source == v1beta1.SourceInline && (err != nil || own != digests[i]):
			return ev.refuseEvidence("status.rollout.groups[%d].observedDigest is %s and the spec renders %s", i, digests[i], own)
		}
	}
	return nil
}

// badPinned says what a pinned plan lacks; empty when nothing.
func badPinned(p v1beta1.RolloutPlan) string {
	if len(p.Groups) == 0 {
		return "it has no groups"
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		switch n := progressions(&g.Group); {
		case n != 1:
			return fmt.Sprintf("groups[%d] has %d progressions, not one", i, n)
		case g.Group.PolicyRef != nil:
			return fmt.Sprintf("groups[%d] refers to a policy in place of a copy", i)
		case len(g.Group.Components) == 0:
			return fmt.Sprintf("groups[%d] has no components", i)
		case !digestForm.MatchString(g.PortableDigest):
			return fmt.Sprintf("groups[%d].portableDigest %s is no digest such as rp1:cca45ec1fb0f", i, Quote(Clean(g.PortableDigest)))
		}
	}
	return ""
}

// refuseDriftEvidence demands a drift that began after the plan was pinned and that
// names the very digests which were read.
func refuseDriftEvidence(ev *Evidence) *Error {
	run := ev.openRun()
	drift := ev.condition(v1beta1.ConditionRolloutPlanDrift)
	if drift.Status != "True" {
		return ev.refuseEvidence("condition %s is %s, not True", v1beta1.ConditionRolloutPlanDrift, told(drift))
	}
	if e := ev.checkTime("lastTransitionTime of "+v1beta1.ConditionRolloutPlanDrift, drift.LastTransitionTime); e != nil {
		return e
	}
	since := drift.LastTransitionTime.Time
	if since.Before(run.PinnedAt.Time) {
		return ev.refuseEvidence("condition %s is True since %s, and the plan was pinned after that, at %s",
			v1beta1.ConditionRolloutPlanDrift, utc(since), utc(run.PinnedAt.Time))
	}
	if ready := ev.condition(v1beta1.ConditionRolloutPlanReady).LastTransitionTime.Time; since.Before(ready) {
		return ev.refuseEvidence("condition %s is True since %s, and %s came after that, at %s",
			v1beta1.ConditionRolloutPlanDrift, utc(since), v1beta1.ConditionRolloutPlanReady, utc(ready))
	}
	want, what := ev.readDrift(drift.Message)
	if what != "" {
		return ev.refuseEvidence("the message of condition %s %s", v1beta1.ConditionRolloutPlanDrift, what)
	}
	if drift.Reason != want {
		return ev.refuseEvidence("condition %s is %s, and the group that it names calls for True/%s", v1beta1.ConditionRolloutPlanDrift, told(drift), want)
	}
	return nil
}

// readDrift holds the message of a drift against what was read, and tells the reason
// that goes with it, or what contradicts.
func (ev *Evidence) readDrift(message string) (reason, problem string) {
	groups, digests, pinned := ev.liveGroups(), ev.liveDigests(), ev.openRun().Plan.Groups
	if m := countDrift.FindStringSubmatch(message); m != nil {
		if m[1] != strconv.Itoa(len(groups)) || m[2] != strconv.Itoa(len(pinned)) || len(groups) == len(pinned) {
			return "", fmt.Sprintf("speaks of %s live and %s pinned groups; there are %d and %d", m[1], m[2], len(groups), len(pinned))
		}
		return v1beta1.ReasonSpecNewerThanRun, ""
	}
	m := groupDrift.FindStringSubmatch(message)
	if m == nil {
		return "", "names no groups: " + Quote(Clean(message))
	}
	i, err := strconv.Atoi(m[1])
	if err != nil || i >= len(digests) || i >= len(pinned) {
		return "", "names groups[" + m[1] + "], which is not in both plans"
	}
	if is, was := digests[i], pinned[i].PortableDigest; m[2] != is || m[3] != was || is == was {
		return "", fmt.Sprintf("says %s and %s of groups[%d], whose live and pinned digests are %s and %s", Clean(m[2]), Clean(m[3]), i, is, was)
	}
	if fromPolicy(&groups[i]) {
		return v1beta1.ReasonPolicyNewerThanRun, ""
	}
	return v1beta1.ReasonSpecNewerThanRun, ""
}

// checkTime refuses a time that is missing or ahead of the API server's clock.
func (ev *Evidence) checkTime(what string, at *metav1.Time) *Error {
	switch {
	case at == nil || at.IsZero():
		return ev.refuseEvidence("%s is missing", what)
	case at.After(ev.ServerNow):
		return ev.refuseEvidence("%s is %s, in the future by the API server's clock, %s", what, at.UTC().Format(time.RFC3339), utc(ev.ServerNow))
	}
	return nil
}

// told is a condition's status and reason for a person.
func told(c v1beta1.DuckCondition) string {
	if c.Type == "" {
		return "absent"
	}
	return Clean(string(c.Status) + "/" + c.Reason)
}
