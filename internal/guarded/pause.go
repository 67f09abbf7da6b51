package guarded

import (
	"fmt"

	"ome.io/ome/api/v1beta1"
)

// Pause holds a service's lifecycle: it sets the pause annotation to true. It
// never lowers a freeze.
func Pause() *Action {
	return &Action{
		Name:  "rollout pause",
		Title: titleAlpha,
		Reads: Reads{Runtime: true, Replicas: true},
		Refusals: []Refusal{
			refusePaused,
			refuseMailbox(letItBeConsumed),
			checkConsistent,
			checkWork,
			refuseUnsafe(v1beta1.RolloutPausedAnnotation),
		},
		Change: func(*Evidence) Change {
			return Change{Annotations: []Annotation{{Key: v1beta1.RolloutPausedAnnotation, Value: new(v1beta1.PauseTrue)}}}
		},
		Preview: previewPause,
		Words:   rolloutWords,
	}
}

func refusePaused(ev *Evidence) *Error {
	v, _ := ev.Annotation(v1beta1.RolloutPausedAnnotation)
	if !recognizedPause(v) {
		return nil
	}
	return Refuse(MsgAlreadyPaused, "annotation "+v1beta1.RolloutPausedAnnotation+" is "+Quote(v),
		"to let it go on: "+ev.Command("rollout resume"))
}

func previewPause(ev *Evidence) ([]Row, []string) {
	rows := append(serviceRows(ev, "rollout pause"),
		Row{"Pause depth", v1beta1.PauseTrue},
		Row{"Set annotation", v1beta1.RolloutPausedAnnotation},
		Row{"Value", Quote(v1beta1.PauseTrue)},
	)
	if old, ok := ev.Annotation(v1beta1.RolloutPausedAnnotation); ok {
		rows = append(rows, Row{"Replaces value", Quote(old)})
	}
	operations, migrations := ev.records()
	rows = append(rows, Row{"Active records", fmt.Sprintf("operations=%d migrations=%d", operations, migrations)})
	notes := []string{
		"Note: this pauses the lifecycle of the whole service; its pods keep running and keep serving.",
		"Note: true starts no update, create or migration, and an attempt that already took capacity out is finished first. Lost pods are still replaced, at the revision they ran.",
		"Note: freeze, set by hand, would stop repair too. rollout resume clears either depth.",
		"Note: scale-down and deletion go on while paused.",
	}
	notes = append(notes, ev.timedGates("keeps ageing while paused: a resume after that opens it at once",
		"is due already: a resume opens it at once")...)
	return rows, append(notes, noteGuard)
}

const noteGuard = "Note: the guard is on the InferenceService alone; its replicas and pods may move meanwhile."

// timedGates says of each timed canary gate when it opens. Its clock doesn't
// stop for a pause.
func (ev *Evidence) timedGates(later, due string) []string {
	var notes []string
	for _, c := range ev.canaries() {
		if c.status == nil || c.status.StepEnteredTime == nil || c.status.CurrentStep < 0 || int(c.status.CurrentStep) >= len(c.steps) {
			continue
		}
		step := c.steps[c.status.CurrentStep]
		if step.Analysis != nil || step.Pause == nil || step.Pause.Duration == nil {
			continue
		}
		opens := c.status.StepEnteredTime.Add(step.Pause.Duration.Duration)
		which := fmt.Sprintf("the timed gate of step %d of %d", c.status.CurrentStep+1, len(c.steps))
		if left := opens.Sub(ev.Now); left > 0 {
			if later != "" {
				notes = append(notes, fmt.Sprintf("Note: %s opens at %s and %s.", which, opens.UTC().Format("2006-01-02T15:04:05Z"), later))
			}
		} else {
			notes = append(notes, fmt.Sprintf("Note: %s %s.", which, due))
		}
	}
	return notes
}
