package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// stage is a service under canary groups whose Instances obey at once unless they are
// told not to: what a permit allows is there in the next pass.
type stage struct {
	t    *testing.T
	now  time.Time
	spec *v1beta1.RolloutSpec
	// wants is what the spec asks for, by component.
	wants map[v1beta1.ComponentType]string
	// on counts the Instances of a component by the revision they run.
	on map[v1beta1.ComponentType]map[string]int32
	// unready keeps that many of the newest Instances from being ready; stuck keeps all
	// from moving.
	unready     map[v1beta1.ComponentType]int32
	stuck       bool
	annotations map[string]string
	// lose drops what the next pass decided: a crash before anything was written.
	// loseMail keeps the removal of annotations from happening.
	lose, loseMail bool
	gone           map[string]bool
	timeout        time.Duration
	pause          Pause

	status   *v1beta1.RolloutStatus
	canaries map[v1beta1.ComponentType]CanaryRecord
	res      Result
	events   []string
	counts   []string
	passes   int
}

func newStage(t *testing.T, spec *v1beta1.RolloutSpec, sizes map[v1beta1.ComponentType]int32) *stage {
	s := &stage{t: t, now: t0, spec: spec, wants: map[v1beta1.ComponentType]string{}, on: map[v1beta1.ComponentType]map[string]int32{},
		unready: map[v1beta1.ComponentType]int32{}, annotations: map[string]string{}, timeout: 15 * time.Minute,
		gone: map[string]bool{}, canaries: map[v1beta1.ComponentType]CanaryRecord{}}
	for c, n := range sizes {
		s.wants[c] = "a"
		s.on[c] = map[string]int32{"a": n}
	}
	s.settle()
	return s
}

func steps(list ...v1beta1.RolloutGroupStep) *v1beta1.GroupCanary {
	return &v1beta1.GroupCanary{Steps: list}
}

func stepAt(capacity string, traffic int32, pause *v1beta1.RolloutPause) v1beta1.RolloutGroupStep {
	return v1beta1.RolloutGroupStep{Capacity: intstr.Parse(capacity), Traffic: traffic, Pause: pause}
}

func manual() *v1beta1.RolloutPause { return &v1beta1.RolloutPause{} }

func timed(d time.Duration) *v1beta1.RolloutPause {
	return &v1beta1.RolloutPause{Duration: &metav1.Duration{Duration: d}}
}

func canaryOf(g *v1beta1.GroupCanary, components ...v1beta1.ComponentType) *v1beta1.RolloutSpec {
	return &v1beta1.RolloutSpec{GroupOrdering: v1beta1.GroupOrderingConcurrent, Groups: []v1beta1.RolloutGroup{{Components: components, Canary: g}}}
}

func (s *stage) size(c v1beta1.ComponentType) (n int32) {
	for _, k := range s.on[c] {
		n += k
	}
	return n
}

func (s *stage) input() Input {
	in := Input{Now: s.now, Seed: fmt.Sprintf("%012d", s.passes), Service: "svc", Generation: 1, Pause: s.pause, Spec: s.spec, Previous: s.status,
		Canaries: s.canaries, DefaultReadyTimeout: s.timeout, ReadyTimeout: s.annotations[v1beta1.RolloutReadyTimeoutAnnotation]}
	box := func(key string) *string {
		if v, ok := s.annotations[key]; ok {
			return &v
		}
		return nil
	}
	in.Repin, in.Promote = box(v1beta1.RolloutRepinAnnotation), box(v1beta1.RolloutPromoteAnnotation)
	in.Rollback, in.Resume = box(v1beta1.RolloutRollbackAnnotation), box(v1beta1.RolloutResumeAnnotation)
	held := Held(in, s.wants)
	for _, c := range slices.Sorted(maps.Keys(s.on)) {
		m := Member{Component: c, Target: s.wants[c], Spec: s.wants[c], Stable: "a", Desired: s.size(c), Base: s.size(c), Strategy: v1beta1.SurgeThenDrain,
			Has: func(hash string) bool { return !s.gone[hash] }}
		if h, ok := held[c]; ok {
			m.Target, m.Held = h, true
		}
		for hash, n := range s.on[c] {
			if n == s.size(c) {
				m.Stable = hash
			}
		}
		m.UpdatedReady = max(0, s.on[c][m.Target]-s.unready[c])
		m.Behind = s.on[c][m.Target] < s.size(c)
		m.Settled = !m.Behind && s.unready[c] == 0
		in.Members = append(in.Members, m)
	}
	return in
}

// pass decides once, stores the outcome, and moves the Instances as far as they may.
func (s *stage) pass() {
	s.t.Helper()
	s.passes++
	in := s.input()
	s.res = Decide(in, plan.Resolve(s.spec))
	if s.lose {
		s.lose = false
		return
	}
	s.status = s.res.Status
	for primary, c := range s.res.Canaries {
		if c.Status == nil {
			delete(s.canaries, primary)
			continue
		}
		s.canaries[primary] = c.CanaryRecord
	}
	for _, e := range s.res.Events {
		s.events = append(s.events, e.Reason)
	}
	for _, c := range s.res.Counts {
		s.counts = append(s.counts, strings.TrimSuffix(string(c.Kind)+" "+c.Label, " "))
	}
	if s.loseMail {
		s.loseMail = false
	} else {
		for key, v := range s.res.Consumed {
			if s.annotations[key] == v {
				delete(s.annotations, key)
			}
		}
	}
	if s.stuck || s.pause != NotPaused {
		return
	}
	for _, m := range in.Members {
		p := s.res.Permits[m.Component]
		target, keep := m.Target, int32(0)
		if p.Aim != "" {
			target = p.Aim
		}
		if p.Partition != nil {
			keep = *p.Partition
		}
		if p.Hold != nil {
			continue
		}
		on := s.on[m.Component]
		for hash, n := range on {
			if hash == target {
				continue
			}
			left := min(n, max(0, keep))
			keep -= left
			on[target] += n - left
			if on[hash] = left; left == 0 {
				delete(on, hash)
			}
		}
	}
}

// settle passes until nothing changes any more.
func (s *stage) settle() {
	s.t.Helper()
	for range 60 {
		before := s.look() + s.line()
		s.pass()
		if before == s.look()+s.line() && !s.res.Wake.Equal(s.now) {
			return
		}
	}
	s.t.Fatalf("60 passes and still moving: %s", s.look())
}

func (s *stage) later(d time.Duration) { s.now = s.now.Add(d); s.settle() }

// promote asks for the step to be left.
func (s *stage) ask(key, value string) { s.annotations[key] = value; s.settle() }

// look is the state as a person would tell it: phase, step, weight; what runs; the run.
func (s *stage) look() string {
	var parts []string
	for _, primary := range slices.Sorted(maps.Keys(s.canaries)) {
		r := s.canaries[primary]
		text := fmt.Sprintf("%s %s step %d weight %d", primary, r.Phase, r.Status.CurrentStep, r.Status.ObservedTrafficWeight)
		if r.Status.Failed != nil {
			text += " " + string(r.Status.Failed.Reason)
		}
		if r.Status.PreStepHold {
			text += " hold"
		}
		parts = append(parts, text)
	}
	for _, c := range slices.Sorted(maps.Keys(s.on)) {
		var on []string
		for _, hash := range slices.Sorted(maps.Keys(s.on[c])) {
			on = append(on, fmt.Sprintf("%d%s", s.on[c][hash], hash))
		}
		parts = append(parts, string(c)+" "+strings.Join(on, "+"))
	}
	switch {
	case s.status == nil:
	case s.status.ActiveRun != nil:
		parts = append(parts, "run open")
	case s.status.LastRun != nil:
		parts = append(parts, "run "+string(s.status.LastRun.Outcome))
	}
	return strings.Join(parts, ", ")
}

// line is what look leaves out of the records.
func (s *stage) line() string {
	var b strings.Builder
	for _, primary := range slices.Sorted(maps.Keys(s.canaries)) {
		fmt.Fprintf(&b, " %+v", *s.canaries[primary].Status)
	}
	fmt.Fprint(&b, s.annotations)
	return b.String()
}

func (s *stage) want(text string) {
	s.t.Helper()
	if got := s.look(); got != text {
		s.t.Errorf("after %s\n got %s\nwant %s\nevents %v", s.now.Sub(t0), got, text, s.events)
	}
}

func (s *stage) told(reason string, times int) {
	s.t.Helper()
	n := 0
	for _, e := range s.events {
		if e == reason {
			n++
		}
	}
	if n != times {
		s.t.Errorf("event %s: %d times, want %d, in %v", reason, n, times, s.events)
	}
}
