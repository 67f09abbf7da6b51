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
	if was != nil && was.Phase == v1beta1.InstanceFailed && c.comesBack(seen, row) {
		return // an attempt that came about after all
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
		if target, _ := runTarget(run, m.kind); target != "" {
			if c.revisionOf(m.kind, target) != m.revision {
				c.violate("%s: Instance %d begins to move to %s, and run %s takes it to %s", m.kind, m.index, m.revision, run.RunID, target)
			}
			return
		}
	}
	if c.groupOf(m.kind) != nil {
		c.violate("%s: Instance %d begins to move to %s without a run", m.kind, m.index, m.revision)
	}
}

func (c *Cluster) revisionOf(kind v1beta1.ComponentType, hash string) string {
	return revision.Name(c.key.Name, kind, hash)
}

// pool is a member of a group with a ratio, as the pass saw it.
type pool struct {
	kind v1beta1.ComponentType
	// desired and serving are counted now, coming are those on their way.
	desired, serving, coming int64
	updated                  int64
	// behind is true while some Instance is not on the target.
	behind bool
	// inPlace is true for a member that keeps its pods; surge for one that adds first.
	inPlace, surge bool
	starts, outs   int64
}

func (c *Cluster) pool(w *core.World, kind v1beta1.ComponentType) *pool {
	seen := seenComponent(w, kind)
	if seen == nil || !seen.Declared || seen.Replica == nil || seen.Replica.DeletionTimestamp != nil {
		return nil
	}
	s := c.Pieces[kind].strategy()
	p := &pool{kind: kind, desired: int64(c.seenDesired(seen)), starts: c.book.pass.starts[kind], outs: c.book.pass.outs[kind],
		inPlace: s == v1beta1.InPlaceIfPossible || s == v1beta1.InPlaceOnly, surge: s == v1beta1.SurgeThenDrain}
	target := c.actual.replicas[kind].Status.UpdateRevision
	list, _ := rows.Decode(&seen.Replica.Status, math.MaxInt32)
	slots := map[[2]int32]bool{}
	for _, pod := range seen.Pods {
		if owned(pod, seen.Replica) && serving(pod) && !lost(pod) {
			p.serving++
			slots[[2]int32{index(pod), ordinal(pod)}] = true
		}
	}
	for i := range list {
		row := &list[i]
		if row.Phase == v1beta1.InstanceDeleting {
			continue
		}
		if row.RunningRevision == target && row.Phase == v1beta1.InstanceReady && row.ServingPodCount > 0 {
			p.updated++
		}
		p.behind = p.behind || offTarget(row, target)
		if op := row.Operation; op != nil && row.Phase != v1beta1.InstanceFailed {
			up := row.ActiveOrdinal
			if surges(op) {
				if op.TargetRevision == row.RunningRevision || op.Step != v1beta1.StepSurge {
					continue
				}
				up = 1 - up
			}
			if !slots[[2]int32{row.Index, up}] {
				p.coming++
			}
		}
	}
	return p
}

func ordinal(p *corev1.Pod) int32 {
	if p.Labels[v1beta1.PodOrdinalLabel] == "1" {
		return 1
	}
	return 0
}

func offTarget(row *v1beta1.InstanceStatus, target string) bool {
	if row.RunningRevision != "" && row.RunningRevision != target {
		return true
	}
	return row.Operation != nil && row.Operation.TargetRevision != "" && row.Operation.TargetRevision != target
}

// seenDesired is the wanted count as the pass read it.
func (c *Cluster) seenDesired(seen *core.Component) int32 {
	if piece := c.Pieces[seen.Type]; !piece.External && !c.Broken[seen.Type] {
		return max(1, piece.Replicas)
	}
	if seen.Replica.Spec.Replicas == nil {
		return 1
	}
	return max(1, *seen.Replica.Spec.Replicas)
}

// The ways in which a move is let through although the proportion leaves the band.
const (
	escapeSurge   = "ratio: one surge from balance"
	escapeDrain   = "ratio: one drain within twice the band"
	escapeSurplus = "ratio: a surplus pod that nobody is short of"
	insideBand    = "ratio: inside the band"
	escapePair    = "ratio: the first of a new token, which a pairing waits for"
	// What a surge brought up and nobody wants any more gives back what it added.
	escapeUnwanted = "ratio: a surge pod that is not wanted any more"
)

// checkRatio: whatever order the moves of the pass come about in, no pair of members
// leaves the band, but for one move at a time by an escape.
func (c *Cluster) checkRatio(w *core.World, g *v1beta1.RolloutGroup, tolerance int64) {
	var pools []*pool
	var moves int64
	for _, kind := range g.Components {
		if p := c.pool(w, kind); p != nil {
			pools = append(pools, p)
			if !p.inPlace {
				moves += p.starts + p.outs
			}
		}
	}
	if len(pools) < 2 || moves == 0 {
		return
	}
	var escaped *pool
	for _, p := range pools {
		if p.inPlace {
			continue
		}
		for _, q := range pools {
			if q == p {
				continue
			}
			if p.starts > 0 && q.behind && (p.updated*q.desired-q.updated*p.desired)*100 > tolerance*p.desired*q.desired {
				c.violate("ratio: %s starts at %d of %d updated, %s is at %d of %d, and the tolerance is %d%%",
					p.kind, p.updated, p.desired, q.kind, q.updated, q.desired, tolerance)
			}
			most, least := p.serving+p.coming, p.serving-p.outs
			if p.surge {
				most += p.starts
			} else {
				least -= p.starts
			}
			up, down := most > p.serving+p.coming, least < p.serving
			high := up && !within(most, q.serving-q.outs, p, q, tolerance)
			low := down && !within(least, q.serving+q.coming+q.added(), p, q, tolerance)
			if !high && !low {
				if up || down {
					c.escape(insideBand)
				}
				continue
			}
			way := c.escapeOf(pools, p, moves, tolerance)
			if way == "" || (escaped != nil && escaped != p) {
				c.violate("ratio: %s serves %d of %d with %d coming, starts %d and takes %d out; %s serves %d of %d with %d coming, starts %d and takes %d out; tolerance %d%%",
					p.kind, p.serving, p.desired, p.coming, p.starts, p.outs, q.kind, q.serving, q.desired, q.coming, q.starts, q.outs, tolerance)
			}
			c.escape(way)
			escaped = p
		}
	}
}

// added is what the starts of a pass add.
func (p *pool) added() int64 {
	if p.surge {
		return p.starts
	}
	return 0
}

// within is true while n of p against m of q is the wanted proportion, give or take the
// tolerance; against none there is no proportion.
func within(n, m int64, p, q *pool, tolerance int64) bool {
	if m <= 0 {
		return true
	}
	have, want := n*q.desired*100, p.desired*m
	return have >= want*(100-tolerance) && have <= want*(100+tolerance)
}

// escapeOf names the documented way by which the only move of a pass leaves the band.
func (c *Cluster) escapeOf(pools []*pool, p *pool, moves, tolerance int64) string {
	balanced, short := true, false
	for _, q := range pools {
		out := !q.inPlace && (q.outs > 0 || q.starts > 0 && !q.surge)
		balanced = balanced && q.serving == q.desired && q.coming == 0 && !out
		short = short || q.serving < q.desired
	}
	switch {
	case p.starts == 1 && p.surge && balanced:
		return escapeSurge
	case p.starts == 1 && p.surge && moves == 1 && p.coming == 0 && c.unpaired(p.kind):
		return escapePair
	case moves != 1 || (p.starts == 1 && p.surge):
		return ""
	}
	twice := true
	for _, q := range pools {
		twice = twice && (q == p || within(p.serving-1, q.serving, p, q, 2*tolerance))
	}
	switch {
	case twice:
		return escapeDrain
	case p.outs == 1 && p.serving > p.desired && !short:
		return escapeSurplus
	}
	return ""
}

// unpaired is true for an engine or decoder that serves no pod of the token it is to have,
// beside pods of another.
func (c *Cluster) unpaired(kind v1beta1.ComponentType) bool {
	r := c.Rollout()
	if r == nil || r.PairingProtocol == "" {
		return false
	}
	some := false
	for _, p := range c.seen.pods {
		if p.Labels[v1beta1.ComponentLabel] != string(kind) || !serving(p) {
			continue
		}
		if token := p.Labels[v1beta1.PairingProtocolLabel]; token == "" || token == r.PairingProtocol {
			return false
		}
		some = true
	}
	return some
}

func (c *Cluster) escape(way string) {
	if c.Ways != nil && way != "" {
		c.Ways(way)
	}
}

// CheckProportions is for a world without faults and lag, in which nobody changes
// counts: at every moment the serving pods of each group with a ratio are in proportion,
// or one pod away from it by an escape.
func (c *Cluster) CheckProportions() error {
	run := c.Run()
	if run == nil {
		return nil
	}
	for i := range run.Plan.Groups {
		g := &run.Plan.Groups[i].Group
		if g.MaintainRatio == nil {
			continue
		}
		tolerance := int64(c.Settings.Coordination.DefaultRatioTolerancePercent)
		if t := g.MaintainRatio.Tolerance; t != nil {
			tolerance = int64(*t)
		}
		if err := c.proportions(g, tolerance); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) proportions(g *v1beta1.RolloutGroup, tolerance int64) error {
	var pools []*pool
	for _, kind := range g.Components {
		p := &pool{kind: kind, desired: int64(c.Desired(kind))}
		s := c.Pieces[kind].strategy()
		if p.desired == 0 || s == v1beta1.InPlaceIfPossible || s == v1beta1.InPlaceOnly {
			continue
		}
		for _, pod := range c.actual.pods {
			if pod.Labels[v1beta1.ComponentLabel] == string(kind) && serving(pod) {
				p.serving++
			}
		}
		pools = append(pools, p)
	}
	for _, p := range pools {
		for _, q := range pools {
			switch {
			case p == q, within(p.serving, q.serving, p, q, tolerance):
			case p.serving == p.desired+1 && q.serving >= q.desired: // one surge from balance
			case q.serving == q.desired+1 && p.serving >= p.desired:
			case within(p.serving, q.serving, p, q, 2*tolerance):
			default:
				return fmt.Errorf("ratio: %s serves %d of %d beside %s %d of %d, and the tolerance is %d%%",
					p.kind, p.serving, p.desired, q.kind, q.serving, q.desired, tolerance)
			}
		}
	}
	return nil
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

// checkRun is run when the status of a rollout is stored: the shape of runs, that a
// pause leaves them alone, and that digests stand for what they are of.
func (c *Cluster) checkRun(w *core.World, before, after *v1beta1.RolloutStatus) {
	if before == nil {
		before = &v1beta1.RolloutStatus{}
	}
	if after == nil {
		if before.ActiveRun != nil {
			c.violate("run: %s is forgotten", before.ActiveRun.RunID)
		}
		return
	}
	was, is := before.ActiveRun, after.ActiveRun
	if rollout.PauseOf(w.Service.Annotations) != rollout.NotPaused && (!sameRun(was, is) || len(before.History) != len(after.History)) {
		c.violate("run: paused, yet %s becomes %s", runWords(was), runWords(is))
	}
	if is != nil {
		c.checkOpenRun(w, was, is)
	}
	if is == nil && was != nil || is != nil && was != nil && was.RunID != is.RunID {
		c.checkClosed(was, after)
	}
	if is != nil && after.LastRun != nil && is.OpenedAt.Time.Before(after.LastRun.ClosedAt.Time) {
		c.violate("run: %s opened at %s, before the last one closed at %s", is.RunID, is.OpenedAt, after.LastRun.ClosedAt)
	}
	for i := range after.Groups {
		if g := &w.Service.Spec.Rollout.Groups[i]; after.Groups[i].Source == v1beta1.SourceInline {
			c.checkDigest(g, after.Groups[i].ObservedDigest)
		}
	}
}

func sameRun(a, b *v1beta1.RolloutRun) bool {
	return a == b || a != nil && b != nil && a.RunID == b.RunID && a.PinnedAt.Equal(&b.PinnedAt)
}

func runWords(r *v1beta1.RolloutRun) string {
	if r == nil {
		return "no run"
	}
	return fmt.Sprintf("run %s pinned at %s", r.RunID, r.PinnedAt.Format(time.TimeOnly))
}

func (c *Cluster) checkOpenRun(w *core.World, was, is *v1beta1.RolloutRun) {
	if was != nil && was.RunID == is.RunID {
		switch {
		case is.PinnedAt.Time.Before(was.PinnedAt.Time):
			c.violate("run: %s was pinned at %s and now at %s", is.RunID, was.PinnedAt, is.PinnedAt)
		case !is.OpenedAt.Equal(&was.OpenedAt):
			c.violate("run: %s opened at %s and now at %s", is.RunID, was.OpenedAt, is.OpenedAt)
		case !slices.Equal(is.TargetRevisions, was.TargetRevisions):
			c.violate("run: %s goes to %v and now to %v", is.RunID, was.TargetRevisions, is.TargetRevisions)
		}
	} else {
		if !is.OpenedAt.Equal(&is.PinnedAt) {
			c.violate("run: %s opens at %s with a plan of %s", is.RunID, is.OpenedAt, is.PinnedAt)
		}
		if c.parked() {
			c.violate("run: %s opens while the plan is parked", is.RunID)
		}
	}
	seen := map[v1beta1.ComponentType]int{}
	for _, t := range is.TargetRevisions {
		seen[t.Component]++
	}
	for i := range is.Plan.Groups {
		g := &is.Plan.Groups[i]
		c.checkDigest(&g.Group, g.PortableDigest)
		for _, kind := range g.Group.Components {
			if s := seenComponent(w, kind); s != nil && s.Declared && s.Replica != nil && seen[kind] != 1 && (was == nil || was.RunID != is.RunID) {
				c.violate("run: %s has %d targets for %s", is.RunID, seen[kind], kind)
			}
		}
	}
}

// checkClosed: a run that closes is the last one of the record, and one that is
// completed left every member on its target.
func (c *Cluster) checkClosed(was *v1beta1.RolloutRun, after *v1beta1.RolloutStatus) {
	last := after.LastRun
	if last == nil || last.RunID != was.RunID && len(after.History) > 0 && after.History[0].RunID != was.RunID {
		c.violate("run: %s closes without a record", was.RunID)
		return
	}
	if len(after.History) == 0 || len(after.History) > v1beta1.MaxRolloutHistory || after.History[0].RunID != last.RunID {
		c.violate("run: the history of %d runs does not begin with %s", len(after.History), last.RunID)
	}
	if last.Outcome != v1beta1.RunCompleted {
		return
	}
	for _, t := range was.TargetRevisions {
		if _, declared := c.Pieces[t.Component]; !declared || c.actual.replicas[t.Component] == nil {
			continue
		}
		for _, row := range c.Rows(t.Component) {
			if row.Phase != v1beta1.InstanceDeleting && row.RunningRevision != c.revisionOf(t.Component, t.Revision) {
				c.violate("run: %s completes with Instance %d of %s on %s", was.RunID, row.Index, t.Component, row.RunningRevision)
			}
		}
	}
}

// parked is true while a group's progression is nowhere to be found.
func (c *Cluster) parked() bool {
	r := c.Rollout()
	if r == nil {
		return false
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		if g.PolicyRef == nil || g.Canary != nil || g.BlueGreen != nil || g.RollingUpdate != nil {
			continue
		}
		p, ok := c.policies[g.PolicyRef.Name]
		if !ok || p.Problem != "" || plan.Kind(plan.GroupOfPolicy(&p.Spec)) != g.PolicyRef.Progression {
			return true
		}
	}
	return false
}

// checkDigest: the digest of a progression depends on what it says and on nothing else.
func (c *Cluster) checkDigest(g *v1beta1.RolloutGroup, digest string) {
	text := bodyText(g)
	if text == "" || c.Digests == nil {
		return
	}
	if known := c.Digests(text, digest); known != digest {
		c.violate("digest: %s has digest %s and had %s", text, digest, known)
	}
}

// bodyText spells a progression out, by hand.
func bodyText(g *v1beta1.RolloutGroup) string {
	if g.Canary != nil {
		return ""
	}
	r := g.RollingUpdate
	if r == nil {
		return "blue-green"
	}
	text := "rolling"
	if r.MaxSurge != nil {
		text += fmt.Sprintf(" surge %d %s", r.MaxSurge.Type, r.MaxSurge)
	}
	if r.MaxUnavailable != nil {
		text += fmt.Sprintf(" unavailable %d %s", r.MaxUnavailable.Type, r.MaxUnavailable)
	}
	return text
}
