package controller

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// refusedPod is a pod creation that was turned down when it was last asked for.
type refusedPod struct {
	core.Refusal
	// asked is when, and attempt what it was for.
	asked   time.Time
	attempt attempt
}

// attempt tells apart what a pod of one name is created for. Another attempt may
// fare better, so it never waits for the refusal of the one before.
type attempt struct{ operation, revision string }

func attemptOf(a *core.PodAction) attempt {
	return attempt{a.Operation, a.Pod.Labels[v1beta1.RevisionHashLabel]}
}

// podAnswer is what came of a creation in this pass.
type podAnswer struct {
	// accepted is set when the pod exists; refusal when it was turned down. With
	// neither, nobody knows or it was not the time.
	accepted bool
	refusal  *core.Refusal
}

// tried notes that a creation was sent.
func (s *sender) tried(w *Write, accepted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally(w.Component).pods[w.Object.GetName()] = podAnswer{accepted: accepted}
}

// turnDown notes that a creation was refused.
func (s *sender) turnDown(w *Write, k core.RefusalKind, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turnedDown = append(s.turnedDown, err)
	s.tally(w.Component).pods[w.Object.GetName()] = podAnswer{refusal: &core.Refusal{Kind: k, Text: cleaned(refusalText(err))}}
	return errStopped
}

// kindOfRefusal sorts the answers of an API server that turns a pod down. An
// admission webhook may use any of its reasons, and may think better of it.
func kindOfRefusal(err error) core.RefusalKind {
	text := refusalText(err)
	webhook := strings.Contains(text, "admission webhook")
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return core.RefusedTerminating
	case apierrors.IsForbidden(err) && !webhook && strings.Contains(text, "exceeded quota"):
		return core.RefusedQuota
	case apierrors.IsInvalid(err) && !webhook:
		return core.RefusedInvalid
	}
	return core.RefusedOther
}

// again is when a refused creation may be asked for once more; zero when it may be
// now. Events come many times a second while others are served, and each pass would
// have the same answer.
func (p *pass) again(c v1beta1.ComponentType, a *core.PodAction) time.Time {
	last, ok := p.state.refusedPods[c][a.Pod.Name]
	if !ok || last.attempt != attemptOf(a) {
		return time.Time{}
	}
	if due := last.asked.Add(p.retryPace()); due.After(p.world.Now) {
		return due
	}
	return time.Time{}
}

func (p *pass) retryPace() time.Duration {
	return max(p.world.Settings.Lifecycle.Requeue.Operation, paceLeast)
}

// settlePods carries the refused creations of a component over to the next pass:
// those that were refused now, and those that are still wanted and have no other
// answer yet. Nothing else would bring the key back to them, so it wakes for them.
func (p *pass) settlePods(d *core.ComponentDecision, t *tally) map[string]refusedPod {
	known := p.state.refusedPods[d.Type]
	var next map[string]refusedPod
	var due time.Time
	for i := range d.Pods {
		a := &d.Pods[i]
		if a.Verb != core.PodCreate {
			continue
		}
		answer, tried := t.pods[a.Pod.Name]
		r, had := known[a.Pod.Name]
		switch {
		case answer.accepted:
			continue
		case answer.refusal == nil && (!had || r.attempt != attemptOf(a)):
			continue // nothing is known of this attempt
		case answer.refusal != nil:
			r.Refusal = *answer.refusal
		}
		if tried {
			r.asked, r.attempt = p.world.Now, attemptOf(a)
		}
		if next == nil {
			next = map[string]refusedPod{}
		}
		next[a.Pod.Name] = r
		if at := r.asked.Add(p.retryPace()); due.IsZero() || at.Before(due) {
			due = at
		}
	}
	// What stopped the component before its pods has a pace of its own.
	if t.reachedPods && !due.IsZero() {
		p.wakes = append(p.wakes, due)
	}
	return next
}

// firstRefused is the refusal that stands for all of them.
func firstRefused(pods map[string]refusedPod) *refusal {
	if len(pods) == 0 {
		return nil
	}
	name := slices.MinFunc(slices.Collect(maps.Keys(pods)), cmp.Compare[string])
	return &refusal{kind: WritePodCreate, name: name, text: pods[name].Text}
}

// sameRefusals compares what core can act on: which pods, and what kind of answer.
// The texts count pods in use and would differ all the time.
func sameRefusals(a, b map[string]refusedPod) bool {
	return maps.EqualFunc(a, b, func(x, y refusedPod) bool { return x.Kind == y.Kind })
}

// told is what core is told of them.
func told(pods map[string]refusedPod) map[string]core.Refusal {
	if len(pods) == 0 {
		return nil
	}
	out := make(map[string]core.Refusal, len(pods))
	for name, r := range pods {
		out[name] = r.Refusal
	}
	return out
}
