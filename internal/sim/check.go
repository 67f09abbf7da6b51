package sim

import (
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/rows"
)

// Rows are the stored rows of a component.
func (c *Cluster) Rows(kind v1beta1.ComponentType) []v1beta1.InstanceStatus {
	r := c.actual.replicas[kind]
	if r == nil {
		return nil
	}
	list, err := rows.Decode(&r.Status, math.MaxInt32)
	if err != nil {
		c.violate("%s: stored rows do not decode: %v", kind, err)
	}
	return list
}

func index(p *corev1.Pod) int32 {
	n, _ := strconv.ParseInt(p.Labels[v1beta1.InstanceIndexLabel], 10, 32)
	return int32(n)
}

func serving(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed &&
		is(p, corev1.ContainersReady) && is(p, v1beta1.ServingReadinessGate)
}

// check is run before each pod call lands.
func (c *Cluster) check(w core.World, cd *core.ComponentDecision, a core.PodAction) {
	i := index(a.Pod)
	var row *v1beta1.InstanceStatus
	list := c.Rows(cd.Type)
	standing := int32(0)
	for k := range list {
		if list[k].Index == i {
			row = &list[k]
		}
		if list[k].Phase != v1beta1.InstanceDeleting {
			standing++
		}
	}
	if a.Operation != "" && (row == nil || row.Operation == nil || row.Operation.ID != a.Operation) {
		c.violate("%s: %s %s without its operation %s in the stored status", cd.Type, a.Verb, short(a.Pod), a.Operation)
		return
	}
	if a.Operation == "" && a.Verb != core.PodServe {
		c.violate("%s: %s %s without an operation", cd.Type, a.Verb, short(a.Pod))
	}
	switch a.Verb {
	case core.PodCreate:
		c.checkSurge(cd, a, list)
	case core.PodUnserve, core.PodDelete, core.PodKill:
		c.checkFloor(w, cd, a, row)
	}
}

// checkSurge: a creation never brings the pods above the rows plus the surge.
func (c *Cluster) checkSurge(cd *core.ComponentDecision, a core.PodAction, list []v1beta1.InstanceStatus) {
	desired := c.Desired(cd.Type)
	if desired > c.peak[cd.Type] {
		c.peak[cd.Type] = desired
	}
	surge := c.surge(cd.Type, c.peak[cd.Type])
	pods := int32(1)
	for _, p := range c.actual.pods {
		if p.Labels[v1beta1.ComponentLabel] != string(cd.Type) {
			continue
		}
		if p.DeletionTimestamp != nil && !c.Now.Before(p.DeletionTimestamp.Time) {
			continue
		}
		pods++
	}
	if limit := max(desired, int32(len(list))) + surge; pods > limit && c.actual.pods[a.Pod.Name] == nil {
		c.violate("%s: creating %s makes %d pods of %d rows, %d desired and a surge of %d",
			cd.Type, short(a.Pod), pods, len(list), desired, surge)
	}
}

func (c *Cluster) surge(kind v1beta1.ComponentType, desired int32) int32 {
	own, err := plan.Budget(c.Pieces[kind].MaxSurge, desired)
	if err != nil {
		panic(err)
	}
	if s := c.actual.service; s != nil && s.Spec.Rollout != nil {
		for _, g := range s.Spec.Rollout.Groups {
			for _, m := range g.Components {
				if m == kind {
					own = min(own, plan.BlueGreenBudget(desired))
				}
			}
		}
	}
	return own
}

// checkFloor: as far as the controller could see, taking this pod out of rotation
// leaves its Instance served, unless the Instance itself is going.
func (c *Cluster) checkFloor(w core.World, cd *core.ComponentDecision, a core.PodAction, row *v1beta1.InstanceStatus) {
	if c.SkipDrain {
		return
	}
	var seen *core.Component
	for k := range w.Components {
		if w.Components[k].Type == cd.Type {
			seen = &w.Components[k]
		}
	}
	others := 0
	for _, p := range seen.Pods {
		if index(p) == index(a.Pod) && p.UID != a.Pod.UID && serving(p) {
			others++
		}
	}
	if a.Verb != core.PodUnserve {
		if serving(a.Pod) {
			c.violate("%s: %s %s is still in rotation", cd.Type, a.Verb, short(a.Pod))
		}
		if seen.Routed[a.Pod.UID] && a.Pod.Status.Phase != corev1.PodFailed {
			c.violate("%s: %s %s is still routed to", cd.Type, a.Verb, short(a.Pod))
		}
		return
	}
	if row != nil && row.Phase == v1beta1.InstanceDeleting {
		return
	}
	if serving(a.Pod) && others == 0 {
		c.violate("%s: unserve %s leaves Instance %d unserved", cd.Type, short(a.Pod), index(a.Pod))
	}
}

func (c *Cluster) checkRevisionUnused(cd *core.ComponentDecision, name string) {
	for _, row := range c.Rows(cd.Type) {
		if row.RunningRevision == name || row.TargetRevision == name {
			c.violate("%s: revision %s is deleted but Instance %d refers to it", cd.Type, name, row.Index)
		}
	}
}

// Desired is the count a component should have.
func (c *Cluster) Desired(kind v1beta1.ComponentType) int32 {
	r := c.actual.replicas[kind]
	if _, declared := c.Pieces[kind]; !declared || c.actual.service == nil || r == nil || r.DeletionTimestamp != nil {
		return 0
	}
	if r.Spec.Replicas == nil {
		return 1
	}
	return max(1, *r.Spec.Replicas)
}

// Serving counts the Instances of a component that serve.
func (c *Cluster) Serving(kind v1beta1.ComponentType) int32 {
	by := map[int32]bool{}
	for _, p := range c.actual.pods {
		if p.Labels[v1beta1.ComponentLabel] == string(kind) && serving(p) {
			by[index(p)] = true
		}
	}
	return int32(len(by))
}

// Rested says why the service is not at its goal, nil when it is: every Instance
// on the target, one pod each, nothing under way.
func (c *Cluster) Rested() error {
	if c.actual.service == nil {
		if len(c.actual.replicas) > 0 || len(c.actual.pods) > 0 {
			return fmt.Errorf("%d replicas and %d pods outlive the service", len(c.actual.replicas), len(c.actual.pods))
		}
		return nil
	}
	if r := c.actual.service.Status.Rollout; r != nil && r.ActiveRun != nil {
		return fmt.Errorf("run %s is still open", r.ActiveRun.RunID)
	}
	for _, kind := range order {
		piece, declared := c.Pieces[kind]
		if !declared {
			if c.actual.replicas[kind] != nil {
				return fmt.Errorf("%s: a replica of a component that left", kind)
			}
			continue
		}
		list := c.Rows(kind)
		if int32(len(list)) != piece.Replicas {
			return fmt.Errorf("%s: %d rows, want %d", kind, len(list), piece.Replicas)
		}
		st := c.actual.replicas[kind].Status
		for _, row := range list {
			if row.Phase != v1beta1.InstanceReady || row.Operation != nil || row.RunningRevision != st.UpdateRevision {
				return fmt.Errorf("%s: Instance %d is %s at %s, want %s", kind, row.Index, row.Phase, row.RunningRevision, st.UpdateRevision)
			}
		}
		pods := int32(0)
		for _, p := range c.actual.pods {
			if p.Labels[v1beta1.ComponentLabel] != string(kind) {
				continue
			}
			pods++
			if p.Spec.Containers[0].Image != piece.Image || !serving(p) {
				return fmt.Errorf("%s: pod %s runs %s, serving %v", kind, p.Name, p.Spec.Containers[0].Image, serving(p))
			}
		}
		if pods != piece.Replicas {
			return fmt.Errorf("%s: %d pods, want %d", kind, pods, piece.Replicas)
		}
		if st.CurrentRevision != st.UpdateRevision {
			return fmt.Errorf("%s: current revision %s, update revision %s", kind, st.CurrentRevision, st.UpdateRevision)
		}
	}
	return nil
}
