package sim

import (
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/core/rollout"
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
		return nil // checkStatus sees that we never store such a status
	}
	return list
}

func rowAt(list []v1beta1.InstanceStatus, i int32) *v1beta1.InstanceStatus {
	for k := range list {
		if list[k].Index == i {
			return &list[k]
		}
	}
	return nil
}

func index(p *corev1.Pod) int32 {
	n, _ := strconv.ParseInt(p.Labels[v1beta1.InstanceIndexLabel], 10, 32)
	return int32(n)
}

func serving(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded &&
		is(p, corev1.ContainersReady) && is(p, v1beta1.ServingReadinessGate)
}

// lost is true for a pod that was in rotation and whose node was declared dead since.
func lost(p *corev1.Pod) bool {
	var gate, ready *corev1.PodCondition
	for i := range p.Status.Conditions {
		switch cond := &p.Status.Conditions[i]; cond.Type {
		case v1beta1.ServingReadinessGate:
			gate = cond
		case corev1.PodReady:
			ready = cond
		}
	}
	return gate != nil && ready != nil && ready.Status != corev1.ConditionTrue && ready.LastTransitionTime.After(gate.LastTransitionTime.Time)
}

// surges is true for an operation that takes capacity out only after it put as much in.
func surges(op *v1beta1.InstanceOperation) bool {
	return op != nil && op.Type == v1beta1.OperationUpdate && (op.Strategy == "" || op.Strategy == v1beta1.SurgeThenDrain)
}

// seenComponent is the component as the pass read it.
func seenComponent(w *core.World, kind v1beta1.ComponentType) *core.Component {
	for k := range w.Components {
		if w.Components[k].Type == kind {
			return &w.Components[k]
		}
	}
	return nil
}

// check is run before each pod call lands.
func (c *Cluster) check(w core.World, cd *core.ComponentDecision, a core.PodAction) {
	list := c.Rows(cd.Type)
	row := rowAt(list, index(a.Pod))
	if a.Operation != "" && (row == nil || row.Operation == nil || row.Operation.ID != a.Operation) {
		c.violate("%s: %s %s without its operation %s in the stored status", cd.Type, a.Verb, short(a.Pod), a.Operation)
		return
	}
	if a.Operation == "" && a.Verb != core.PodServe {
		c.violate("%s: %s %s without an operation", cd.Type, a.Verb, short(a.Pod))
		return
	}
	seen := seenComponent(&w, cd.Type)
	c.checkPause(w, seen, a, row)
	switch a.Verb {
	case core.PodCreate:
		c.checkSurge(cd, a)
		c.checkAlone(cd, a, row)
		c.checkHeld(cd, row, c.revisionName(cd.Type, a.Pod))
	case core.PodUpdate:
		c.checkInPlace(seen, cd, a, row)
	case core.PodServe:
		c.checkContainers(cd, a)
	case core.PodForceDelete:
		c.checkForce(w, cd, a, row)
	case core.PodUnserve, core.PodDelete, core.PodKill:
		c.checkFloor(seen, cd, a, row)
		c.noteOut(seen, a, row)
	}
}

// checkPause: under a freeze only what already began and removals touch pods, and
// under any pause no serving pod leaves for a surge.
func (c *Cluster) checkPause(w core.World, seen *core.Component, a core.PodAction, row *v1beta1.InstanceStatus) {
	pause := rollout.NotPaused
	if w.Service != nil {
		pause = rollout.PauseOf(w.Service.Annotations)
	}
	if pause == rollout.NotPaused || a.Verb == core.PodServe || row == nil || row.Operation == nil ||
		row.Operation.Type == v1beta1.OperationDelete || c.Desired(seen.Type) == 0 {
		return
	}
	if surges(row.Operation) && serving(a.Pod) && !lost(a.Pod) {
		c.violate("%s: paused, yet %s %s", seen.Type, a.Verb, short(a.Pod))
	}
	if pause == rollout.Freeze {
		old, _ := rows.Decode(&seen.Replica.Status, math.MaxInt32)
		if was := rowAt(old, row.Index); was == nil || was.Operation == nil || was.Operation.Type != row.Operation.Type {
			c.violate("%s: frozen, yet %s %s for an operation that was not under way", seen.Type, a.Verb, short(a.Pod))
		}
	}
}

// checkSurge: a creation never uses more surge slots than there are. A slot is a pod
// of an Instance beyond its first; a Terminating one counts until its grace is over.
// An operation keeps the slot that it was admitted with, also beside one that was
// admitted when there were more.
func (c *Cluster) checkSurge(cd *core.ComponentDecision, a core.PodAction) {
	if c.actual.pods[a.Pod.Name] != nil {
		return // AlreadyExists
	}
	held := c.heldPods(cd.Type)
	held[index(a.Pod)]++
	if held[index(a.Pod)] < 2 {
		return // its first
	}
	slots := slotsOf(held)
	now := c.surge(cd.Type, c.Desired(cd.Type))
	then := c.book.admitted[a.Operation]
	for _, row := range c.Rows(cd.Type) {
		if row.Operation != nil {
			then = max(then, c.book.admitted[row.Operation.ID])
		}
	}
	if slots > max(now, then) {
		c.violate("%s: creating %s uses %d surge slots; %d were there when %s and those beside it were admitted, %d are now",
			cd.Type, short(a.Pod), slots, then, a.Operation, now)
	}
}

// heldPods counts the pods of each Instance that hold a place.
func (c *Cluster) heldPods(kind v1beta1.ComponentType) map[int32]int32 {
	held := map[int32]int32{}
	for _, p := range c.actual.pods {
		if p.Labels[v1beta1.ComponentLabel] != string(kind) || !owned(p, c.actual.replicas[kind]) {
			continue
		}
		if p.DeletionTimestamp == nil || c.inGrace(p) {
			held[index(p)]++
		}
	}
	return held
}

func slotsOf(held map[int32]int32) (n int32) {
	for _, pods := range held {
		n += max(0, pods-1)
	}
	return n
}

// inGrace is true for a Terminating pod whose grace was never over.
func (c *Cluster) inGrace(p *corev1.Pod) bool {
	return c.Now.Before(p.DeletionTimestamp.Time) && c.book.latest.Before(p.DeletionTimestamp.Time)
}

// checkAlone: who takes the old pods out first waits until they are gone, or until
// only a dead node can still hold them.
func (c *Cluster) checkAlone(cd *core.ComponentDecision, a core.PodAction, row *v1beta1.InstanceStatus) {
	op := row.Operation
	if surges(op) || (op.Type != v1beta1.OperationUpdate && op.Type != v1beta1.OperationRestart) {
		return
	}
	for _, p := range c.actual.pods {
		if p.Labels[v1beta1.ComponentLabel] == string(cd.Type) && index(p) == index(a.Pod) && p.Name != a.Pod.Name && owned(p, c.actual.replicas[cd.Type]) &&
			(p.DeletionTimestamp == nil || c.inGrace(p)) {
			c.violate("%s: %s %s of %s creates %s beside %s", cd.Type, op.Type, op.ID, op.Strategy, short(a.Pod), short(p))
		}
	}
	if got := a.Pod.Labels[v1beta1.InstanceIncarnationLabel]; got != strconv.FormatInt(row.Incarnation, 10) {
		c.violate("%s: %s carries incarnation %s of %d", cd.Type, short(a.Pod), got, row.Incarnation)
	}
}

// checkHeld: a held revision gets no pod, unless the Instance ran it before.
func (c *Cluster) checkHeld(cd *core.ComponentDecision, row *v1beta1.InstanceStatus, name string) {
	for _, b := range c.actual.replicas[cd.Type].Status.RetryBlocks {
		if b.TargetRevision == name && b.State == v1beta1.RetryHeld && row.RunningRevision != name {
			c.violate("%s: revision %s is held, yet Instance %d gets a pod of it", cd.Type, name, row.Index)
		}
	}
}

// checkInPlace: images change only on a pod out of rotation, unless the user wants
// it served throughout.
func (c *Cluster) checkInPlace(seen *core.Component, cd *core.ComponentDecision, a core.PodAction, row *v1beta1.InstanceStatus) {
	if a.Patch == nil {
		c.violate("%s: an update of %s changes nothing", cd.Type, short(a.Pod))
		return
	}
	if len(a.Patch.Images) == 0 {
		return
	}
	c.checkHeld(cd, row, row.Operation.TargetRevision)
	if c.Pieces[cd.Type].KeepServing {
		return
	}
	if is(a.Pod, v1beta1.ServingReadinessGate) {
		c.violate("%s: the images of %s change while it is in rotation", cd.Type, short(a.Pod))
	}
	if seen.Routed[a.Pod.UID] {
		c.violate("%s: the images of %s change while it is still routed to", cd.Type, short(a.Pod))
	}
}

// checkContainers: what goes into rotation runs what its label says.
func (c *Cluster) checkContainers(cd *core.ComponentDecision, a core.PodAction) {
	p := c.actual.pods[a.Pod.Name]
	if p == nil || p.UID != a.Pod.UID || p.ResourceVersion != a.Pod.ResourceVersion || c.Pieces[cd.Type].KeepServing {
		return // a conflict
	}
	for name, image := range c.book.images[c.revisionName(cd.Type, p)] {
		if s := container(p, name); s == nil || s.Image != image || s.State.Running == nil {
			c.violate("%s: %s goes into rotation, but its container %s is %+v and its revision says %s", cd.Type, short(p), name, s, image)
		}
	}
}

// checkForce: only a pod that is overdue on a dead node, and held by nobody else, is
// removed without its kubelet.
func (c *Cluster) checkForce(w core.World, cd *core.ComponentDecision, a core.PodAction, row *v1beta1.InstanceStatus) {
	f := c.Settings.Lifecycle.ForceDelete
	p := a.Pod
	why := ""
	switch {
	case !f.Enabled():
		why = "force deletion is off"
	case p.DeletionTimestamp == nil || c.Now.Before(p.DeletionTimestamp.Add(f.OverdueSlack)):
		why = "it is not overdue"
	case len(p.Finalizers) > 0:
		why = "it has finalizers"
	case row.Operation.Type == v1beta1.OperationRestart && p.Status.Phase != corev1.PodUnknown:
		why = "a restart waits"
	}
	n, looked := w.Nodes[p.Spec.NodeName]
	switch {
	case why != "":
	case !looked:
		why = "nobody looked at its node"
	case n == nil:
	case alive(n):
		why = "its node is alive"
	case c.Now.Sub(n.Status.Conditions[0].LastTransitionTime.Time) < f.NodeUnreachableThreshold:
		why = "its node has not been silent for long enough"
	}
	if why != "" {
		c.violate("%s: %s is deleted by force, but %s", cd.Type, short(p), why)
	}
}

// checkFloor: as far as the controller could see, taking this pod out of rotation
// leaves its Instance served, unless the operation is there to take it out.
func (c *Cluster) checkFloor(seen *core.Component, cd *core.ComponentDecision, a core.PodAction, row *v1beta1.InstanceStatus) {
	if c.SkipDrain {
		return
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
	switch op := row.Operation; {
	case op.Type == v1beta1.OperationDelete, op.Type == v1beta1.OperationRestart:
		return
	case op.Type == v1beta1.OperationUpdate && !surges(op):
		return // checkUnavailable counts it
	}
	if serving(a.Pod) && !lost(a.Pod) && !othersServe(seen, a.Pod) {
		c.violate("%s: unserve %s leaves Instance %d unserved", cd.Type, short(a.Pod), index(a.Pod))
	}
}

func othersServe(seen *core.Component, pod *corev1.Pod) bool {
	for _, p := range seen.Pods {
		if index(p) == index(pod) && p.UID != pod.UID && serving(p) && !lost(p) {
			return true
		}
	}
	return false
}

// checkUnavailable: as far as the controller could see, the updates of one pass leave
// as many Instances serving as the budget wants, or take none out.
func (c *Cluster) checkUnavailable(w core.World, cd *core.ComponentDecision) {
	seen := seenComponent(&w, cd.Type)
	if seen == nil || seen.Template == nil || len(cd.Pods) == 0 {
		return
	}
	list := c.Rows(cd.Type)
	counts := map[int32]bool{}
	for _, p := range seen.Pods {
		if row := rowAt(list, index(p)); serving(p) && !lost(p) && row != nil && row.Phase != v1beta1.InstanceDeleting {
			counts[index(p)] = true
		}
	}
	taken := map[int32]bool{}
	for _, a := range cd.Pods {
		row := rowAt(list, index(a.Pod))
		out := a.Verb == core.PodUnserve || a.Verb == core.PodDelete || (a.Verb == core.PodUpdate && a.Patch != nil && len(a.Patch.Images) > 0 && !changing(a.Pod))
		if !out || row == nil || row.Operation == nil || row.Operation.Type != v1beta1.OperationUpdate || surges(row.Operation) {
			continue
		}
		if serving(a.Pod) && !lost(a.Pod) && !othersServe(seen, a.Pod) {
			taken[row.Index] = true
		}
	}
	desired := c.Desired(cd.Type)
	u := c.unavailable(cd.Type, desired)
	if left := int32(len(counts) - len(taken)); len(taken) > 0 && left < desired-min(u, desired) {
		c.violate("%s: %d of %d serving Instances are taken out for an update; %d desired, at most %d unavailable",
			cd.Type, len(taken), len(counts), desired, u)
	}
}

// changing is true for a pod whose images were changed and whose kubelet has yet to
// act on it.
func changing(p *corev1.Pod) bool {
	for _, k := range p.Spec.Containers {
		if s := container(p, k.Name); s != nil && s.Image != k.Image {
			return true
		}
	}
	return false
}

// surge is the component's budget of extra pods: its own, and that of its group.
func (c *Cluster) surge(kind v1beta1.ComponentType, desired int32) int32 {
	own := mustBudget(c.Pieces[kind].MaxSurge, desired)
	if g := c.groupOf(kind); g != nil {
		of, _ := groupBudget(g, desired)
		own = min(own, of)
	}
	return own
}

// unavailable is how many Instances of the component an update may take out.
func (c *Cluster) unavailable(kind v1beta1.ComponentType, desired int32) int32 {
	own := int32(math.MaxInt32)
	if b := c.Pieces[kind].MaxUnavailable; b != "" {
		own = mustBudget(intstr.Parse(b), desired)
	}
	if g := c.groupOf(kind); g != nil && c.Pieces[kind].strategy() != v1beta1.SurgeThenDrain {
		_, of := groupBudget(g, desired)
		own = min(own, of)
	}
	return own
}

func mustBudget(b intstr.IntOrString, desired int32) int32 {
	n, err := plan.Budget(b, desired)
	if err != nil {
		panic(err)
	}
	return n
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
	piece, declared := c.Pieces[kind]
	if !declared || c.actual.service == nil || r == nil || r.DeletionTimestamp != nil {
		return 0
	}
	if !piece.External && !c.Broken[kind] {
		return max(1, piece.Replicas)
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
		if p.Labels[v1beta1.ComponentLabel] == string(kind) && serving(p) && !c.hangs(p) {
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
		if err := c.restedComponent(kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func (c *Cluster) restedComponent(kind v1beta1.ComponentType) error {
	piece, declared := c.Pieces[kind]
	if !declared {
		if c.actual.replicas[kind] != nil {
			return fmt.Errorf("a replica of a component that left")
		}
		return nil
	}
	if c.actual.replicas[kind] == nil {
		return fmt.Errorf("no replica")
	}
	list, want := c.Rows(kind), c.Desired(kind)
	if int32(len(list)) != want {
		return fmt.Errorf("%d rows, want %d", len(list), want)
	}
	st := c.actual.replicas[kind].Status
	for _, row := range list {
		if row.Phase != v1beta1.InstanceReady || row.Operation != nil || row.RunningRevision != st.UpdateRevision {
			return fmt.Errorf("instance %d is %s at %s, want %s; operation %+v", row.Index, row.Phase, row.RunningRevision, st.UpdateRevision, row.Operation)
		}
	}
	pods := int32(0)
	for _, p := range c.actual.pods {
		if p.Labels[v1beta1.ComponentLabel] != string(kind) {
			continue
		}
		if p.DeletionTimestamp != nil && (c.hangs(p) || len(p.Finalizers) > 0) {
			continue // nobody waits for it
		}
		pods++
		if !serving(p) {
			return fmt.Errorf("pod %s does not serve", p.Name)
		}
		for name, image := range piece.images() {
			if s := container(p, name); s == nil || s.Image != image {
				return fmt.Errorf("container %s of pod %s runs %+v, want %s", name, p.Name, s, image)
			}
		}
		if env := p.Spec.Containers[0].Env; piece.Env != "" && (len(env) == 0 || env[0].Value != piece.Env) {
			return fmt.Errorf("pod %s has environment %+v, want %s", p.Name, env, piece.Env)
		}
		if p.Annotations[v1beta1.InPlaceImageTransitionAnnotation] != "" {
			return fmt.Errorf("pod %s still carries its image transition", p.Name)
		}
	}
	if pods != want {
		return fmt.Errorf("%d pods, want %d", pods, want)
	}
	if st.CurrentRevision != st.UpdateRevision {
		return fmt.Errorf("current revision %s, update revision %s", st.CurrentRevision, st.UpdateRevision)
	}
	if st.RolloutHold != nil {
		return fmt.Errorf("a hold of gate %s is left: %s", st.RolloutHold.Gate, st.RolloutHold.Reason)
	}
	return nil
}
