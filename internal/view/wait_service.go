package view

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

// Bounds of what a check looks through.
const (
	maxWaitConditions = 64
	maxWaitGroups     = 16
	maxConditionBytes = 32 << 10
)

// ready judges the Ready condition. Without one, or with two that disagree,
// nothing matches; nor does one of a status that is proved to be about an older spec.
func (w *Waiter) ready(s *v1beta1.InferenceService, reference time.Time) (matched bool, failed string) {
	conditions := s.Status.Conditions
	if len(conditions) > maxWaitConditions {
		return false, WaitConditionLimit
	}
	o := &WaitObserved{Status: "NotRecorded", Validity: stateUnavailable, GenerationFreshness: generationFreshness(s.Status.ObservedGeneration, s.Generation),
		Inspection: inspect(conditions, reference)}
	w.last.Observed = o
	var found []*v1beta1.DuckCondition
	for i := range conditions {
		if conditions[i].Type == v1beta1.ConditionReady {
			found = append(found, &conditions[i])
		}
	}
	if len(found) == 0 {
		w.last.Reason, w.last.Evidence = "ConditionNotRecorded", EvidenceUnavailable
		return false, ""
	}
	o.Status, o.Validity = string(corev1.ConditionUnknown), valid
	for i, c := range found {
		if problem(c, reference) != "" || i > 0 && c.Status != found[0].Status {
			o.Validity = stateInvalid
		}
	}
	if o.Validity == valid {
		o.Status = string(found[0].Status)
	}
	switch {
	case o.Validity != valid || o.GenerationFreshness == stateInvalid:
		w.last.Reason = "InvalidCondition"
	case o.Status == w.Predicate.Want && o.GenerationFreshness != freshStale:
		w.last.Reason = "ConditionMatched"
		return true, ""
	default:
		w.last.Reason = "ConditionNotMatched"
	}
	return false, ""
}

// problem is the inspection warning that a condition deserves; empty for none.
func problem(c *v1beta1.DuckCondition, reference time.Time) string {
	switch {
	case c.Type == "" || c.Status != corev1.ConditionTrue && c.Status != corev1.ConditionFalse && c.Status != corev1.ConditionUnknown:
		return "InvalidConditionRecord"
	case len(c.Type)+len(c.Reason)+len(c.Message) > maxConditionBytes:
		return "OversizedConditionRecord"
	case c.LastTransitionTime != nil && c.LastTransitionTime.After(reference):
		return "FutureConditionTimestamp"
	}
	return ""
}

func inspect(conditions []v1beta1.DuckCondition, reference time.Time) WaitInspection {
	out := WaitInspection{State: inspectionComplete, Total: len(conditions), Inspected: len(conditions), Warnings: []string{}}
	warn := func(word string) {
		if word != "" && !slices.Contains(out.Warnings, word) {
			out.Warnings = append(out.Warnings, word)
		}
	}
	var first *v1beta1.DuckCondition
	for i := range conditions {
		c := &conditions[i]
		if word := problem(c, reference); word != "" {
			warn(word)
			out.State = inspectionPartial
		}
		switch {
		case c.Type != v1beta1.ConditionReady:
		case first == nil:
			first = c
		case c.Status != first.Status:
			warn("ConflictingReadyConditions")
		default:
			warn("DuplicateReadyConditions")
		}
	}
	slices.Sort(out.Warnings)
	return out
}

// rolloutWant is the state behind each word. Paused is a canary that waits at a gate, or
// a pause of the service.
var rolloutWant = map[string]string{"stable": StateSucceeded, "failed": StateFailed, "rolled-back": StateRolledBack, "paused": StatePaused}

// moving is true while a request that the controller hasn't taken yet may end the gate
// that is reported.
func moving(s *v1beta1.InferenceService) bool {
	for _, key := range []string{v1beta1.RolloutPromoteAnnotation, v1beta1.RolloutRollbackAnnotation} {
		if v, ok := s.Annotations[key]; ok && v != "false" {
			return true
		}
	}
	return false
}

// rollout judges what the status says about the rollout, as `rollout status` does.
func (w *Waiter) rollout(s *v1beta1.InferenceService, reference time.Time) (matched bool, failed string) {
	total := len(s.Status.Components)
	expansion := EvidenceDeclared
	if ro := s.Status.Rollout; ro != nil && ro.ActiveRun != nil {
		total += len(ro.ActiveRun.Plan.Groups)
		expansion = "Pinned"
	} else if s.Spec.Rollout != nil {
		total += len(s.Spec.Rollout.Groups)
	}
	if c := s.Status.RolloutCoordination; c != nil {
		total += len(c.Groups)
	}
	if total > 2*maxWaitGroups+len(v1beta1.Components()) {
		return false, WaitRolloutLimit
	}
	report := BuildRolloutStatus(s, reference)
	sum := &report.Content.Summary
	o := &WaitedRollout{ReportedState: sum.ReportedState, State: sum.State, Validity: valid, Evidence: sum.Evidence, Epoch: sum.Epoch,
		CoordinationReady: sum.CoordinationReady, GenerationFreshness: freshUnverifiable, Expansion: expansion, Issues: report.Content.Issues,
		Inspection: WaitInspection{State: inspectionComplete, Total: total, Inspected: total, Warnings: []string{}}}
	w.last.Rollout = o
	if ro := s.Status.Rollout; ro != nil && ro.ObservedGeneration != 0 {
		o.GenerationFreshness = generationFreshness(ro.ObservedGeneration, s.Generation)
	}
	if o.GenerationFreshness == freshStale {
		o.Inspection.Warnings = append(o.Inspection.Warnings, "StaleReportedCondition")
	}
	if ro := s.Status.Rollout; ro != nil && ro.ActiveRun != nil && (ro.ActiveRun.OpenedAt.After(reference) || ro.ActiveRun.PinnedAt.After(reference)) {
		o.Inspection.Warnings = append(o.Inspection.Warnings, "InvalidRolloutTimestamp")
		o.Validity = stateInvalid
	}
	for _, i := range o.Issues {
		// Neither says that what is reported is wrong.
		if i.Code != IssueEpochUnverifiable && i.Code != IssueAnalysisInconclusive {
			o.Validity = stateInvalid
		}
	}
	switch {
	case sum.ReportedState == StateNotConfigured:
		o.Validity, w.last.Reason, w.last.Evidence = stateUnavailable, "RolloutNotRecorded", EvidenceUnavailable
	case o.Validity != valid || o.GenerationFreshness == stateInvalid:
		w.last.Reason = "InvalidRollout"
	case sum.ReportedState == rolloutWant[w.Predicate.Want] && o.GenerationFreshness != freshStale && !(sum.ReportedState == StatePaused && moving(s)):
		w.last.Reason = "RolloutMatched"
		return true, ""
	default:
		w.last.Reason = "RolloutNotMatched"
	}
	return false, ""
}

// runtimeSync judges whether the manager has acted on a sync token.
func (w *Waiter) runtimeSync(s *v1beta1.InferenceService, reference time.Time) (matched bool, failed string) {
	if len(s.Status.Conditions) > maxWaitConditions {
		return false, WaitConditionLimit
	}
	want := w.Predicate.RequestID
	token, asked := s.Annotations[v1beta1.RuntimeSyncAnnotation]
	seen := s.Status.LastRuntimeSyncToken
	o := &WaitedSync{RequestID: want, TokenState: "Absent", DriftState: "Clear", PinState: "NotApplicable", PlacementState: "NotApplicable", Validity: valid,
		InspectedConditions: len(s.Status.Conditions), GenerationFreshness: generationFreshness(s.Status.ObservedGeneration, s.Generation)}
	w.last.RuntimeSync = o
	switch {
	case asked && token == want && seen == want:
		o.TokenState = "Acknowledged"
	case asked && token == want:
		o.TokenState = "Pending"
	case asked:
		o.TokenState = "Superseded"
	case seen == want:
		o.TokenState = "StatusOnly"
	}
	drifts := 0
	for i := range s.Status.Conditions {
		c := &s.Status.Conditions[i]
		if c.Type != v1beta1.ConditionRuntimeDrifted {
			continue
		}
		drifts++
		if o.DriftState = "Reported" + string(c.Status); problem(c, reference) != "" {
			o.DriftState = stateInvalid
		}
	}
	if drifts > 1 {
		o.DriftState = stateInvalid
	}
	if ref := s.Spec.Runtime; ref != nil && ref.AutoSync != nil && !*ref.AutoSync {
		o.PinState = "Managed"
		if s.Status.PinnedRevisionName == "" {
			o.PinState = stateUnavailable
		}
	}
	switch {
	case placed(s):
		o.PlacementState = LiveUnsupported
		w.last.Reason = "UnsupportedPlacement"
	case o.DriftState == stateInvalid || o.GenerationFreshness == stateInvalid:
		o.Validity, w.last.Reason = stateInvalid, "InvalidCondition"
	case o.TokenState == "Absent":
		o.Validity, w.last.Reason, w.last.Evidence = stateUnavailable, "RuntimeSyncNotRecorded", EvidenceUnavailable
	case o.TokenState == "Acknowledged" && o.PinState == "Managed" && o.DriftState == "Clear" && o.GenerationFreshness != freshStale:
		w.last.Reason = "RuntimeSyncObserved"
		return true, ""
	default:
		w.last.Reason = "RuntimeSyncNotAcknowledged"
	}
	return false, ""
}

// placed is true for a service whose replicas live in other clusters.
func placed(s *v1beta1.InferenceService) bool {
	return s.Spec.Placement != nil || s.Status.Placement != nil
}
