package controller

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// refusal is a write of a component that was turned down, and will be until
// something changes: a quota, an admission webhook, an invalid object.
type refusal struct {
	kind WriteKind
	// name is the object's.
	name, text string
}

// before orders the refusals of one pass. Writes go side by side, and which is
// refused last is chance; what status tells must not be.
func (r *refusal) before(other *refusal) bool {
	if r.kind != other.kind {
		all := WriteKinds()
		return slices.Index(all, r.kind) < slices.Index(all, other.kind)
	}
	return r.name < other.name
}

// tally is what came of one component's writes in one pass.
type tally struct {
	refused *refusal
	// failed is set when some write was not accepted, for whatever reason.
	failed bool
	// held are writes that were put off; finished is set when no write was left out.
	held     map[WriteKind]bool
	finished bool
	// pods are the answers to the creations that were sent, by pod name; reachedPods is
	// set when nothing before the pods stopped the component.
	pods        map[string]podAnswer
	reachedPods bool
}

// tally returns the component's; s.mu must be held.
func (s *sender) tally(c v1beta1.ComponentType) *tally {
	if s.tallies == nil {
		s.tallies = map[v1beta1.ComponentType]*tally{}
	}
	t, ok := s.tallies[c]
	if !ok {
		t = &tally{held: map[WriteKind]bool{}, pods: map[string]podAnswer{}}
		s.tallies[c] = t
	}
	return t
}

// unaccepted notes that a write failed, and why when it was refused.
func (s *sender) unaccepted(w *Write, refusedWith string) {
	if w.Kind == WriteScaler {
		s.scalerUnaccepted(w, core.ScalerRefusal{Text: cleaned(refusedWith)})
		return
	}
	if w.Component == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tally(w.Component)
	t.failed = true
	if refusedWith == "" {
		return
	}
	r := &refusal{kind: w.Kind, name: w.Object.GetName(), text: cleaned(refusedWith)}
	if t.refused == nil || r.before(t.refused) {
		t.refused = r
	}
}

// settleRefusals carries what was refused over to the next pass, and lets go of
// what no longer is. A pass that learns something new comes back soon, so that
// status can tell it.
func (p *pass) settleRefusals(now time.Time) {
	known := p.state.refusals
	next := map[v1beta1.ComponentType]refusal{}
	pods := map[v1beta1.ComponentType]map[string]refusedPod{}
	news := false
	for i := range p.decision.Components {
		d := &p.decision.Components[i]
		t := p.tally(d.Type)
		if refused := p.settlePods(d, t); len(refused) > 0 {
			pods[d.Type] = refused
		}
		news = news || !sameRefusals(pods[d.Type], p.state.refusedPods[d.Type])

		now := t.refused
		if first := firstRefused(pods[d.Type]); first != nil && (now == nil || first.before(now)) {
			now = first
		}
		old, had := known[d.Type]
		switch {
		case now != nil:
			next[d.Type] = *now
		case had && old.kind != WritePodCreate && p.asks(d, old.kind) && (!t.finished || t.failed || t.held[old.kind]):
			next[d.Type] = old
		}
	}
	news = news || len(next) != len(known)
	for c := range next {
		_, had := known[c]
		news = news || !had
	}
	p.state.refusals, p.state.refusedPods = next, pods
	if news {
		p.wakes = append(p.wakes, now.Add(paceLeast))
	}
}

// asks says whether the decision holds a write of a kind for the component.
func (p *pass) asks(d *core.ComponentDecision, k WriteKind) bool {
	verbs := func(of ...core.PodVerb) bool {
		return slices.ContainsFunc(d.Pods, func(a core.PodAction) bool { return slices.Contains(of, a.Verb) })
	}
	switch k {
	case WriteRevision:
		return len(d.CreateRevisions)+len(d.DeleteRevisions) > 0
	case WriteReplica:
		return d.CreateReplica != nil || d.UpdateReplica != nil || d.DeleteReplica || d.RemoveFinalizer
	case WriteReplicaStatus:
		return d.ReplicaStatus != nil
	case WritePodCreate:
		return verbs(core.PodCreate)
	case WritePodGate:
		return verbs(core.PodServe, core.PodUnserve)
	case WritePodUpdate:
		return verbs(core.PodUpdate)
	case WritePodDelete:
		return verbs(core.PodDelete, core.PodKill)
	case WritePodForceDelete:
		return verbs(core.PodForceDelete)
	case WriteReplicaAnnotation:
		return len(d.RemoveReplicaAnnotations) > 0
	case WriteService:
		return slices.ContainsFunc(slices.Concat(p.decision.CreateServices, p.decision.UpdateServices, p.decision.DeleteServices),
			func(s *corev1.Service) bool { return componentOf(s) == d.Type })
	}
	return false
}

// componentOf reads the component that a generated object belongs to off its label.
func componentOf(o interface{ GetLabels() map[string]string }) v1beta1.ComponentType {
	return v1beta1.ComponentType(o.GetLabels()[v1beta1.ComponentLabel])
}

// refusalText is what the API server said.
func refusalText(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}

// mostRefusal bounds the text of a refusal, which goes into a condition.
const mostRefusal = 300

// cleaned makes one line of a text that anybody may have written, and cuts it.
func cleaned(text string) string {
	text = strings.ToValidUTF8(text, "")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= mostRefusal {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:mostRefusal-len(ellipsis)], "") + ellipsis
}
