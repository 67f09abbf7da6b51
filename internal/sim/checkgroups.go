package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/revision"
	"ome.io/ome/internal/core/rollout"
	"ome.io/ome/internal/core/rows"
)

// passBook is what one pass did that a group may have a say in.
type passBook struct {
	// pairs and offered say whether engine and decoder served an equal token before the
	// pass, in rotation and behind their Services.
	pairs, offered bool
	// starts counts Instances that served and that began to leave their revision; begun
	// lists every move that began, with the revision it is to.
	starts map[v1beta1.ComponentType]int64
	begun  []move
	// outs counts pods that left rotation while another pod of their Instance served.
	outs map[v1beta1.ComponentType]int64
	// removals is true when a scale-down took pods.
	removals bool
}

type move struct {
	kind     v1beta1.ComponentType
	index    int32
	revision string
}

// beforePass opens the book of a pass.
func (c *Cluster) beforePass(*core.World) passBook {
	c.book.pass = passBook{starts: map[v1beta1.ComponentType]int64{}, outs: map[v1beta1.ComponentType]int64{}}
	c.book.pass.pairs, c.book.pass.offered = c.paired(&c.actual, false), c.paired(&c.actual, true)
	return c.book.pass
}

// noteMove records an operation that takes an Instance to another revision.
func (c *Cluster) noteMove(seen *core.Component, row, was *v1beta1.InstanceStatus) {
	op := row.Operation
	if op.Type != v1beta1.OperationUpdate || row.RunningRevision == "" || op.TargetRevision == row.RunningRevision {
		return
	}
	if was != nil && (was.Operation != nil || was.Phase == v1beta1.InstanceFailed) && c.comesBack(seen, row) {
		return // its pod is up: it goes on with it
	}
	if was != nil && was.Operation != nil && was.Operation.Type == v1beta1.OperationUpdate && was.Operation.TargetRevision == op.TargetRevision {
		return // the same attempt again, such as on another node
	}
	c.book.pass.begun = append(c.book.pass.begun, move{seen.Type, row.Index, op.TargetRevision})
	under := was != nil && was.Operation != nil && was.Operation.Type == v1beta1.OperationUpdate && was.Phase != v1beta1.InstanceFailed
	for _, p := range seen.Pods {
		if !under && index(p) == row.Index && serving(p) && !lost(p) && owned(p, seen.Replica) {
			c.book.pass.starts[seen.Type]++
			return
		}
	}
}

// noteOut records a pod that leaves rotation.
func (c *Cluster) noteOut(seen *core.Component, a core.PodAction, row *v1beta1.InstanceStatus) {
	switch {
	case !serving(a.Pod) || lost(a.Pod):
	case row.Operation.Type == v1beta1.OperationDelete:
		c.book.pass.removals = true
	case a.Verb != core.PodUnserve || !othersServe(seen, a.Pod):
	case surges(row.Operation) && c.revisionName(seen.Type, a.Pod) != row.RunningRevision:
		c.escape(escapeUnwanted)
	default:
		c.book.pass.outs[seen.Type]++
	}
}

// checkGroups is run after each pass: what the pass did as a whole is what the groups
// allow, as far as the controller could see.
func (c *Cluster) checkGroups(w *core.World, before passBook) {
	c.checkPair(before)
	run := c.Run()
	for _, m := range c.book.pass.begun {
		c.checkInRun(w, run, m)
	}
	if run == nil {
		return
	}
	groups := plan.GroupsOf(run.Plan)
	for i := range groups {
		if t := groups[i].MaintainRatio; t != nil {
			tolerance := int64(c.Settings.Coordination.DefaultRatioTolerancePercent)
			if t.Tolerance != nil {
				tolerance = int64(*t.Tolerance)
			}
			c.checkRatio(w, &groups[i], tolerance)
		}
	}
	if sequential(groups) {
		c.checkSequence(w, run, groups)
	}
	c.noteFinished(run)
}

// target is the revision that a run takes a component to.
func runTarget(run *v1beta1.RolloutRun, kind v1beta1.ComponentType) (target, stable string) {
	for _, t := range run.TargetRevisions {
		if t.Component == kind {
			return t.Revision, t.StableRevision
		}
	}
	return "", ""
}

// checkInRun: a member that serves moves in a run that has its target, so while the plan
// is parked it does not move at all.
func (c *Cluster) checkInRun(w *core.World, run *v1beta1.RolloutRun, m move) {
	seen := seenComponent(w, m.kind)
	if seen.Replica == nil || seen.Replica.Status.CurrentRevision == "" {
		return // its first revision has never served as a whole
	}
	if run != nil {
		if target, stable := runTarget(run, m.kind); target != "" {
			if c.rejected(m.kind, target) {
				target = stable
			}
			if c.revisionOf(m.kind, target) != m.revision {
				c.violate("%s: Instance %d begins to move to %s, and run %s takes it to %s", m.kind, m.index, m.revision, run.RunID, target)
			}
			return
		}
	}
	if c.groupOf(m.kind) != nil && !c.keptBack(m.kind) {
		c.violate("%s: Instance %d begins to move to %s without a run", m.kind, m.index, m.revision)
	}
}

// rejected is true once a canary rolls the revision back.
func (c *Cluster) rejected(kind v1beta1.ComponentType, hash string) bool {
	for _, s := range c.actual.service.Status.Components {
		if s.Canary == nil {
			continue
		}
		for _, m := range s.Canary.Members {
			if m.Component == kind && m.Rejected == hash {
				return true
			}
		}
	}
	return false
}

// keptBack is true for a component that a rejected canary keeps on its stable revision, or
// takes back to it, with a run or without.
func (c *Cluster) keptBack(kind v1beta1.ComponentType) bool {
	for _, r := range c.canaryRecords() {
		if rollout.Rejected(r.Status) && slices.ContainsFunc(r.Status.Members, func(m v1beta1.CanaryMember) bool { return m.Component == kind }) {
			return true
		}
	}
	return false
}

func (c *Cluster) revisionOf(kind v1beta1.ComponentType, hash string) string {
	return revision.Name(c.key.Name, kind, hash)
}

// sequential is true for groups that take turns.
func sequential(groups []v1beta1.RolloutGroup) bool {
	n := 0
	for i := range groups {
		g := &groups[i]
		switch {
		case g.Canary != nil:
		case g.RollingUpdate != nil || len(g.Components) != 1:
			return false
		default:
			n++
		}
	}
	return n > 1
}

// checkSequence: a member begins only when all before it are done and healthy, and when
// the longest soak has passed since the one before it finished.
func (c *Cluster) checkSequence(w *core.World, run *v1beta1.RolloutRun, groups []v1beta1.RolloutGroup) {
	var members []v1beta1.ComponentType
	var soak, last time.Duration
	for i := range groups {
		if groups[i].Canary != nil {
			continue
		}
		members = append(members, groups[i].Components[0])
		soak, last = max(soak, last), 0
		if s := groups[i].Soak; s != nil {
			last = s.Duration
		}
	}
	for _, m := range c.book.pass.begun {
		k := slices.Index(members, m.kind)
		for _, before := range members[:max(k, 0)] {
			seen := seenComponent(w, before)
			target, stable := runTarget(run, before)
			if seen == nil || !seen.Declared || seen.Replica == nil {
				continue
			}
			list, _ := rows.Decode(&seen.Replica.Status, math.MaxInt32)
			for i := range list {
				row := &list[i]
				switch {
				case row.Phase == v1beta1.InstanceDeleting:
				case row.Phase == v1beta1.InstanceFailed:
					c.violate("sequence: %s begins while Instance %d of %s has failed", m.kind, row.Index, before)
				case offTarget(row, c.revisionOf(before, target)):
					c.violate("sequence: %s begins while Instance %d of %s is not on its target", m.kind, row.Index, before)
				case target != stable && row.Operation != nil:
					c.violate("sequence: %s begins while Instance %d of %s is not at rest", m.kind, row.Index, before)
				}
			}
		}
		if k < 1 || soak == 0 {
			continue
		}
		// Times are stored in whole seconds.
		if end, ok := c.book.finished[members[k-1]]; ok && c.Now.Add(time.Second).Before(end.Add(soak)) {
			c.violate("soak: %s begins %s after %s finished, and the soak is %s", m.kind, c.Now.Sub(end), members[k-1], soak)
		}
		c.escape("sequence: a turn came")
	}
}

// noteFinished notes when each member first had nothing but serving pods of the target.
func (c *Cluster) noteFinished(run *v1beta1.RolloutRun) {
	for _, t := range run.TargetRevisions {
		if t.Revision == t.StableRevision || c.book.finishedIn[t.Component] == run.RunID {
			continue
		}
		serves, others := map[int32]bool{}, 0
		for _, p := range c.actual.pods {
			if p.Labels[v1beta1.ComponentLabel] != string(t.Component) {
				continue
			}
			if p.Labels[v1beta1.RevisionHashLabel] == t.Revision && serving(p) {
				serves[index(p)] = true
			} else if p.DeletionTimestamp == nil {
				others++
			}
		}
		if others == 0 && int32(len(serves)) >= c.Desired(t.Component) {
			c.book.finished[t.Component], c.book.finishedIn[t.Component] = c.Now, run.RunID
		}
	}
}

// paired is true while an engine and a decoder serve that understand each other.
func (c *Cluster) paired(s *state, offered bool) bool {
	tokens := map[v1beta1.ComponentType]map[string]bool{v1beta1.EngineComponent: {}, v1beta1.DecoderComponent: {}}
	for _, p := range s.pods {
		of := tokens[v1beta1.ComponentType(p.Labels[v1beta1.ComponentLabel])]
		if of != nil && serving(p) && !lost(p) && !c.hangs(p) && (!offered || (s.offered[p.UID] && is(p, corev1.PodReady))) {
			of[p.Labels[v1beta1.PairingProtocolLabel]] = true
		}
	}
	for e := range tokens[v1beta1.EngineComponent] {
		for d := range tokens[v1beta1.DecoderComponent] {
			if e == d || e == "" || d == "" {
				return true
			}
		}
	}
	return false
}

// checkPair: with SurgeThenDrain on both no pass takes the last pair out of rotation that
// the controller knew of, nor the last that is behind the Services.
func (c *Cluster) checkPair(before passBook) {
	for _, kind := range []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent} {
		if piece, ok := c.Pieces[kind]; !ok || piece.strategy() != v1beta1.SurgeThenDrain {
			return
		}
		for _, row := range c.Rows(kind) {
			if op := row.Operation; op != nil && op.Type != v1beta1.OperationCreate && !surges(op) {
				return // begun under another strategy, a restart, or a removal
			}
		}
		for _, p := range c.seen.pods {
			if now := c.actual.pods[p.Name]; p.Labels[v1beta1.ComponentLabel] == string(kind) && serving(p) && !lost(p) &&
				(now == nil || now.UID != p.UID || (c.hangs(now) || lost(now) || !is(now, corev1.ContainersReady))) {
				return // the cluster lost a pod, and nobody knows yet
			}
		}
	}
	if c.book.pass.removals {
		return
	}
	switch {
	case before.pairs && !c.paired(&c.actual, false):
		c.violate("pairing: no engine and decoder of one token serve any more: %s", c.tokens())
	case before.offered && !c.paired(&c.actual, true):
		c.violate("pairing: no engine and decoder of one token are offered any more: %s", c.tokens())
	}
}

// tokens words what serves by token.
func (c *Cluster) tokens() string {
	var out []string
	for _, p := range c.Pods() {
		if serving(p) {
			out = append(out, fmt.Sprintf("%s %s %q", p.Labels[v1beta1.ComponentLabel], short(p), p.Labels[v1beta1.PairingProtocolLabel]))
		}
	}
	return strings.Join(out, ", ")
}
