package sim

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/rows"
)

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
