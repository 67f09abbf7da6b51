package guarded

import (
	"fmt"
	"strings"

	"ome.io/ome/api/v1beta1"
)

// FlagDiscard is the resume flag that also drops pending promote and rollback requests.
const FlagDiscard = "--discard-pending-actions"

// Resume lets a paused service go on: it removes the pause annotation at either
// depth, and with discard the pending promote and rollback requests too.
func Resume(discard bool) *Action {
	a := &Action{
		Name:     "rollout resume",
		Title:    titleAlpha,
		Reads:    Reads{Runtime: true},
		Refusals: []Refusal{refuseNotPaused},
		Preview:  previewResume(discard),
		Words:    rolloutWords,
	}
	keys := []string{v1beta1.RolloutPausedAnnotation}
	if discard {
		a.Demand = needsYes(FlagDiscard)
		keys = append(keys, mailboxes...)
	} else {
		a.Refusals = append(a.Refusals, refuseMailbox(func(ev *Evidence) string {
			return "to drop it with the pause: " + ev.Command("rollout resume", FlagDiscard, "--yes")
		}))
	}
	a.Refusals = append(a.Refusals, refuseUnsafe(keys...))
	a.Change = func(*Evidence) Change {
		var gone []Annotation
		for _, k := range keys {
			gone = append(gone, Annotation{Key: k})
		}
		return Change{Annotations: gone}
	}
	return a
}

func refuseNotPaused(ev *Evidence) *Error {
	v, ok := ev.Annotation(v1beta1.RolloutPausedAnnotation)
	switch {
	case recognizedPause(v):
		return nil
	case !ok:
		return Refuse(MsgNotPaused, "annotation "+v1beta1.RolloutPausedAnnotation+" is absent", "to see what holds it: "+ev.Command("rollout status"))
	}
	return Refuse(MsgNotPaused, "annotation "+v1beta1.RolloutPausedAnnotation+" is "+Quote(Clean(v))+", and only true and freeze pause",
		"to remove it: "+ev.kubectl("annotate inferenceservices."+v1beta1.Group+" "+ShellQuote(ev.Name)+" "+v1beta1.RolloutPausedAnnotation+"-"))
}

func previewResume(discard bool) func(*Evidence) ([]Row, []string) {
	return func(ev *Evidence) ([]Row, []string) {
		depth, _ := ev.Annotation(v1beta1.RolloutPausedAnnotation)
		rows := append(serviceRows(ev, "rollout resume"),
			Row{"Pause depth", depth},
			Row{"Remove annotation", v1beta1.RolloutPausedAnnotation},
			Row{"Value", Quote(depth)},
		)
		if discard {
			for _, key := range mailboxes {
				if v, ok := ev.Annotation(key); ok {
					rows = append(rows, Row{"Remove annotation", key}, Row{"Value", Quote(v)})
				}
			}
		}
		migrations := 0
		for key := range ev.Service.Annotations {
			if strings.HasPrefix(key, v1beta1.MigrationRequestAnnotationPrefix) {
				migrations++
			}
		}
		// Replicas aren't read here, and a count that wasn't made isn't zero.
		rows = append(rows, Row{"Active records", fmt.Sprintf("operations=not-read migrations=%d", migrations)})
		notes := []string{
			"Note: this lifts the lifecycle pause of the whole service, at either depth; held updates, creates and migrations start again.",
		}
		notes = append(notes, ev.timedGates("", "ran out while paused: it opens at once")...)
		return rows, append(notes, noteGuard)
	}
}
