package preview

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/sim"
)

const (
	// maxPasses bounds a preview; the largest service that a test rolls needs a tenth.
	maxPasses = 20000
	// stillness is how long nothing may change, while the manager only looks again,
	// before the service counts as at rest.
	stillness = 3 * time.Hour
)

// player lets time pass in a cluster: pods come up and go when they are due, and the
// manager decides whenever something changed or it asked to look again.
type player struct {
	c      *sim.Cluster
	timing Timing
	// templates say between which bounds an autoscaler keeps a count.
	templates map[v1beta1.ComponentType]*core.Template
	// due is when a pod comes up, or is gone.
	due    map[step]time.Time
	still  time.Duration
	passes int

	// Each may be nil. sampled follows every small step, decided every pass, waiting a
	// leap in time that no pod ends.
	sampled  func()
	decided  func(before *v1beta1.RolloutStatus, d *core.Decision)
	waiting  func(d time.Duration)
	scaled   func(kind v1beta1.ComponentType, n int32)
	promoted func(note string)
}

// step is a pod's way up, or down.
type step struct {
	pod  types.UID
	down bool
}

func stepOf(p *corev1.Pod) step { return step{p.UID, p.DeletionTimestamp != nil} }

func newPlayer(c *sim.Cluster, timing Timing, templates map[v1beta1.ComponentType]*core.Template) *player {
	return &player{c: c, timing: timing, templates: templates, due: map[step]time.Time{}, still: stillness}
}

// play runs until over says so or nothing is left to happen; false when neither comes.
func (p *player) play(over func() bool) bool {
	version, since := p.c.Version(), p.c.Now
	for {
		if !p.tick() {
			return false
		}
		if over() {
			return true
		}
		if v := p.c.Version(); v != version {
			version, since = v, p.c.Now
		}
		next, pods := p.next()
		if next.IsZero() || p.c.Now.Sub(since) > p.still {
			return true
		}
		leap := max(time.Millisecond, next.Sub(p.c.Now))
		if !pods && p.waiting != nil {
			p.waiting(leap)
		}
		p.c.Advance(leap)
		if w := p.c.Wake(); !w.IsZero() && !w.After(p.c.Now) {
			p.c.Woken()
		}
	}
}

// tick lets everything happen that is due; false when it never ends.
func (p *player) tick() bool {
	for ; p.passes < maxPasses; p.passes++ {
		p.pods()
		p.scale()
		p.c.Kubelet()
		p.c.Endpoints()
		p.sample()
		if !p.c.Dirty() && !p.promote() {
			return true
		}
		p.c.SyncAll()
		var before *v1beta1.RolloutStatus
		if s := p.c.Service(); s != nil {
			before = s.Status.Rollout
		}
		d := p.c.Pass()
		if p.decided != nil {
			p.decided(before, &d)
		}
		p.sample()
	}
	return false
}

// scale does the one thing that an autoscaler does whatever it measures: it brings a
// count into its bounds, at once.
func (p *player) scale() {
	for _, kind := range v1beta1.Components() {
		t, r := p.templates[kind], p.c.Replica(kind)
		if t == nil || r == nil || r.DeletionTimestamp != nil || r.Spec.Replicas == nil {
			continue
		}
		if a := t.Autoscaler; a != nil && a.Class != "" && a.Class != v1beta1.AutoscalerHPA && a.Class != v1beta1.AutoscalerKEDA {
			continue
		}
		n := min(max(*r.Spec.Replicas, t.MinReplicas), max(t.MinReplicas, t.MaxReplicas))
		if n != *r.Spec.Replicas {
			p.c.SetCount(kind, n)
			if p.scaled != nil {
				p.scaled(kind, n)
			}
		}
	}
}

func (p *player) sample() {
	if p.sampled != nil {
		p.sampled()
	}
}

// pods lets each pod make the steps that are due.
func (p *player) pods() {
	for _, pod := range p.c.Pods() {
		if p.c.Stops(pod) {
			p.c.Start(pod.Name) // the new process takes its time from here
			delete(p.due, stepOf(pod))
			continue
		}
		if at, moves := p.dueOf(pod); moves && !at.After(p.c.Now) {
			delete(p.due, stepOf(pod))
			if pod.DeletionTimestamp != nil {
				p.c.Gone(pod.Name)
			} else {
				p.c.Start(pod.Name)
			}
		}
	}
}

// dueOf is when the pod's next step ends; it has none when it runs, or when a foreign
// finalizer keeps it.
func (p *player) dueOf(pod *corev1.Pod) (time.Time, bool) {
	takes := p.timing.StartUp
	switch {
	case pod.DeletionTimestamp != nil && len(pod.Finalizers) > 0:
		return time.Time{}, false
	case pod.DeletionTimestamp != nil:
		takes = p.timing.ShutDown
	case p.c.Idle(pod):
		return time.Time{}, false
	}
	at, known := p.due[stepOf(pod)]
	if !known {
		at = p.c.Now.Add(takes)
		p.due[stepOf(pod)] = at
	}
	return at, true
}

// next is when something happens by itself, zero for never; pods says that some pod is
// on its way up or down.
func (p *player) next() (at time.Time, pods bool) {
	for _, pod := range p.c.Pods() {
		if due, moves := p.dueOf(pod); moves {
			pods = true
			if at.IsZero() || due.Before(at) {
				at = due
			}
		}
	}
	if w := p.c.Wake(); !w.IsZero() && (at.IsZero() || w.Before(at)) {
		at = w
	}
	return at, pods
}
