package preview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/sim"
)

// tally counts the pods of a component by the revision hash and the token they carry.
type tally struct {
	byHash, byToken map[string]int32
	serving, pods   int32
}

type census map[v1beta1.ComponentType]*tally

func count(c *sim.Cluster) census {
	out := census{}
	for _, p := range c.Pods() {
		kind := v1beta1.ComponentType(p.Labels[v1beta1.ComponentLabel])
		t := out.of(kind)
		t.pods++
		if sim.Serves(p) {
			t.serving++
			t.byHash[p.Labels[v1beta1.RevisionHashLabel]]++
			t.byToken[p.Labels[v1beta1.PairingProtocolLabel]]++
		}
	}
	return out
}

func (c census) of(kind v1beta1.ComponentType) *tally {
	if c[kind] == nil {
		c[kind] = &tally{byHash: map[string]int32{}, byToken: map[string]int32{}}
	}
	return c[kind]
}

// pods are all pods there are.
func (c census) pods() (n int32) {
	for _, t := range c {
		n += t.pods
	}
	return n
}

// pairs are the pairs of an engine and a decoder that understand each other: those with
// the same token, and any with a side that has none.
func (c census) pairs() (n int64) {
	for from, engines := range c.of(v1beta1.EngineComponent).byToken {
		for to, decoders := range c.of(v1beta1.DecoderComponent).byToken {
			if from == to || from == "" || to == "" {
				n += int64(engines) * int64(decoders)
			}
		}
	}
	return n
}

// line is a Move before the targets are known.
type line struct {
	Move
	counts census
	verbs  []Verb
}

// recorder turns passes into lines, and keeps the extremes.
type recorder struct {
	c     *sim.Cluster
	from  time.Time
	lines []*line
	least map[v1beta1.ComponentType]int32
	most  map[v1beta1.ComponentType]int32
	pairs int64
	pods  int32
	// ran are the runs that were opened.
	ran []*v1beta1.RolloutRun
	// told are the canary steps that were told of.
	told map[v1beta1.ComponentType]string
	// passed is set once a gate was passed that somebody else would have to open.
	passed bool
	// drift is what the open run was last said to differ in from the spec.
	drift string
}

func newRecorder(c *sim.Cluster) *recorder {
	r := &recorder{c: c, from: c.Now, least: map[v1beta1.ComponentType]int32{}, most: map[v1beta1.ComponentType]int32{}}
	now := count(c)
	for _, kind := range v1beta1.Components() {
		r.least[kind], r.most[kind] = now.of(kind).serving, now.of(kind).pods
	}
	r.pairs, r.pods = now.pairs(), now.pods()
	r.lines = []*line{{counts: now}}
	return r
}

// sample looks at the cluster as it is.
func (r *recorder) sample() {
	now := count(r.c)
	for _, kind := range v1beta1.Components() {
		r.least[kind] = min(r.least[kind], now.of(kind).serving)
		r.most[kind] = max(r.most[kind], now.of(kind).pods)
	}
	r.pairs, r.pods = min(r.pairs, now.pairs()), max(r.pods, now.pods())
	if last := r.last(); last.After == r.after() {
		last.counts = now
	}
}

func (r *recorder) after() time.Duration { return r.c.Now.Sub(r.from) }

func (r *recorder) last() *line { return r.lines[len(r.lines)-1] }

// at is the line of this time: the last one, unless it is of another time, the first, or
// has verbs that the new ones would hide.
func (r *recorder) at(verbs ...Verb) *line {
	last := r.last()
	apart := len(r.lines) == 1 || last.After != r.after()
	for _, v := range verbs {
		switch v {
		case Serve:
			apart = apart || last.has(Drain) || last.has(Stop)
		case Drain:
			apart = apart || last.has(Serve) || last.has(Start)
		case Start, ChangeImage:
			apart = apart || last.has(Serve) || last.has(Drain) || last.has(Stop)
		}
	}
	if apart {
		last = &line{Move: Move{After: r.after()}, counts: count(r.c)}
		r.lines = append(r.lines, last)
	}
	return last
}

func (l *line) has(v Verb) bool {
	return slices.ContainsFunc(l.Actions, func(a Action) bool { return a.Verb == v })
}

// rank is the place of a verb among those of the line, in the order they came.
func (l *line) rank(v Verb) int { return slices.Index(l.verbs, v) }

func (l *line) add(v Verb, kind v1beta1.ComponentType, index int32) {
	for i := range l.Actions {
		if a := &l.Actions[i]; a.Verb == v && a.Component == kind {
			if !slices.Contains(a.Instances, index) {
				a.Instances = append(a.Instances, index)
			}
			return
		}
	}
	l.Actions = append(l.Actions, Action{v, kind, []int32{index}})
	if !slices.Contains(l.verbs, v) {
		l.verbs = append(l.verbs, v)
	}
}

// decided writes down what a pass did.
func (r *recorder) decided(before *v1beta1.RolloutStatus, d *core.Decision) {
	var after *v1beta1.RolloutStatus
	if s := r.c.Service(); s != nil {
		after = s.Status.Rollout
	}
	was, is := openRun(before), openRun(after)
	if was != nil && (is == nil || is.RunID != was.RunID) && after.LastRun != nil {
		l := r.at()
		l.Then = append(l.Then, fmt.Sprintf("the run closes: %s", after.LastRun.Outcome))
	}
	if is != nil && (was == nil || is.RunID != was.RunID) {
		l := r.at()
		l.Notes = append(l.Notes, "a run opens")
		r.ran = append(r.ran, is)
	}
	if is != nil {
		for _, cond := range r.c.Service().Status.Conditions {
			if cond.Type == v1beta1.ConditionRolloutPlanDrift && cond.Status == corev1.ConditionTrue {
				r.drift = cond.Reason + ": " + cond.Message
			}
		}
	}
	for _, kind := range v1beta1.Components() {
		if now := r.steps()[kind]; now != "" && now != r.told[kind] {
			if l := r.at(); len(l.Actions)+len(l.Then) == 0 {
				l.Notes = append(l.Notes, now)
			} else {
				l.Then = append(l.Then, now)
			}
		}
	}
	r.told = r.steps()
	for i := range d.Components {
		cd := &d.Components[i]
		for _, a := range cd.Pods {
			if v := verb(a); v != "" {
				r.at(v).add(v, cd.Type, sim.IndexOf(a.Pod))
			}
		}
	}
}

// verb is the word for a pod call, "" for one that nobody needs to know of.
func verb(a core.PodAction) Verb {
	switch a.Verb {
	case core.PodCreate:
		return Start
	case core.PodServe:
		return Serve
	case core.PodUnserve:
		return Drain
	case core.PodDelete, core.PodKill:
		return Stop
	case core.PodForceDelete:
		return ForceDelete
	case core.PodUpdate:
		if a.Patch != nil && len(a.Patch.Images) > 0 {
			return ChangeImage
		}
	}
	return ""
}

func openRun(s *v1beta1.RolloutStatus) *v1beta1.RolloutRun {
	if s == nil {
		return nil
	}
	return s.ActiveRun
}

const waitNote = "wait "

// scaled writes down that an autoscaler moved a count.
func (r *recorder) scaled(kind v1beta1.ComponentType, n int32) {
	l := r.at()
	l.Notes = append(l.Notes, fmt.Sprintf("the autoscaler asks for %d of %s", n, kind))
}

// waits writes down a leap in time that no pod ends.
func (r *recorder) waits(d time.Duration) {
	if d < time.Second {
		return
	}
	note := waitNote + d.Round(time.Second).String()
	for _, kind := range v1beta1.Components() {
		if h := holdOf(r.c, kind); h != nil && h.Gate == v1beta1.GateSequential {
			note += ": " + h.Reason
			break
		}
		if st, steps := canaryOf(r.c, kind); st != nil && st.StepEnteredTime != nil && int(st.CurrentStep) < len(steps) {
			note += fmt.Sprintf(": %s step %d/%d: %s", kind, st.CurrentStep+1, len(steps), gateText(&steps[st.CurrentStep]))
			break
		}
	}
	l := r.at()
	l.Then = append(l.Then, note)
}

// promoted writes down a gate that was passed.
func (r *recorder) promoted(note string) {
	l := r.at()
	l.Then = append(l.Then, note)
	r.passed = true
}

// trim takes off the waits that nothing came of.
func (r *recorder) trim() {
	for len(r.lines) > 1 {
		l := r.last()
		if len(l.Actions) > 0 || !slices.ContainsFunc(l.Then, func(n string) bool { return strings.HasPrefix(n, waitNote) }) {
			return
		}
		r.lines = r.lines[:len(r.lines)-1]
	}
}

// done closes the record with how things stand in the end.
func (r *recorder) done() {
	r.lines = append(r.lines, &line{Move: Move{After: r.after(), Notes: []string{"done"}}, counts: count(r.c)})
}

func holdOf(c *sim.Cluster, kind v1beta1.ComponentType) *v1beta1.RolloutHold {
	if rep := c.Replica(kind); rep != nil {
		return rep.Status.RolloutHold
	}
	return nil
}
