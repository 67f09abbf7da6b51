package view

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"ome.io/ome/api/v1beta1"
)

// RolloutStatusSentence says in one plain sentence where the rollout is and what
// it waits for. It is for people only and stands above the table.
func RolloutStatusSentence(s *v1beta1.InferenceService, r *RolloutStatusReport, now time.Time) string {
	return sentence(s, r, now, true)
}

// sentence leaves the hold out for a reader who gets every one of them below.
func sentence(s *v1beta1.InferenceService, r *RolloutStatusReport, now time.Time, withHold bool) string {
	name := s.Name
	sum := &r.Content.Summary
	pause := s.Annotations[v1beta1.RolloutPausedAnnotation]
	if sum.ReportedState == StateNotConfigured {
		return name + " has no rollout: it declares no groups and its status records none."
	}
	var text string
	switch sum.ReportedState {
	case StateFailed:
		text = name + ": the rollout failed" + failure(s) + "."
	case StateRollingBack:
		text = name + " is rolling back to its stable revision."
	case StateRolledBack:
		text = name + " was rolled back: it runs its stable revision, and the rejected one doesn't come back by itself."
	case StatePaused, StateInProgress:
		text = name + " is rolling out" + progress(s, r, now, withHold) + "."
	case StateStaged:
		text = name + " is staged: the group reached its partition, and the rest keeps the old revision."
	case StateSucceeded:
		text = name + " is stable: every component runs its newest revision."
	default:
		text = name + ": the status doesn't say where the rollout is."
	}
	if pause == v1beta1.PauseTrue || pause == v1beta1.PauseFreeze {
		observed := ""
		if ro := s.Status.Rollout; ro != nil {
			observed = ro.ObservedPause
		}
		if observed == pause {
			text += " It is paused (" + pause + ") until you resume it."
		} else {
			text += " A pause (" + pause + ") is asked for; the controller hasn't confirmed it yet."
		}
	}
	text += requested(s)
	if sum.Epoch == EpochUnverifiable {
		text += " This status isn't proved to be about the newest spec."
	}
	return text
}

// progress is the tail that says how far and waiting for what.
func progress(s *v1beta1.InferenceService, r *RolloutStatusReport, now time.Time, withHold bool) string {
	if text := canaryProgress(s, r, now); text != "" {
		return ": " + text
	}
	var parts []string
	var hold string
	for _, name := range v1beta1.Components() {
		l := s.Status.Components[name].Lifecycle
		if l == nil || (l.CurrentRevision == l.UpdateRevision && l.UpdatedReplicas == l.Replicas) {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %d of %d new", name, l.UpdatedReadyReplicas, l.Replicas))
		if withHold && l.RolloutHold != nil && hold == "" {
			hold = fmt.Sprintf("; %s waits: %s", name, strings.TrimRight(oneLine(l.RolloutHold.Reason), "."))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ") + hold
}

func failure(s *v1beta1.InferenceService) string {
	for _, name := range v1beta1.Components() {
		if c := s.Status.Components[name].Canary; c != nil && c.Failed != nil {
			return ": the canary of " + string(name) + " gave up, because " + failureWords(c.Failed.Reason)
		}
	}
	if c := s.Status.RolloutCoordination; c != nil {
		i := slices.IndexFunc(c.Groups, func(g v1beta1.CoordinationGroupStatus) bool { return g.Phase == v1beta1.CoordinationFailed })
		if i >= 0 && c.Groups[i].Message != "" {
			return ": " + strings.TrimRight(oneLine(c.Groups[i].Message), ".")
		}
	}
	return ""
}

// oneLine keeps text of the status on one line and on the screen.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r)
	}), " ")
}

func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}
