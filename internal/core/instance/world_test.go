package instance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
)

// world is a component and the part of a cluster that matters to it, small enough that
// a test can tell its story in a few lines: pass decides once and does what was decided,
// kubelet moves every pod one step, run lets time go by from wake to wake.
type world struct {
	t    *testing.T
	in   Input
	pods []*corev1.Pod
	last Result
	// sick says why containers wait, by revision hash, by node, or by pod as "0/1".
	sick map[string]string
	// slow are revisions or nodes on which containers run and never become ready.
	slow map[string]bool
	// stays are pods that outlive their deletion.
	stays map[string]bool
	// old are pods whose kubelet has not seen their new image yet.
	old map[string]bool
	// noRoom is what the scheduler says about pods without a node; gated queues new pods.
	noRoom string
	gated  bool
	// refuse answers creations.
	refuse func(*corev1.Pod) *Refusal
	nodes  []string

	// acts are the calls of the last pass, all those of every pass.
	acts, all []string
	events    []Event
	// floor is how many Instances must serve after every pass; surge the most pods
	// beyond one per Instance, Terminating ones included; both unchecked below zero.
	floor, most int
	passes      int
	made        int
}

// started is a component of n Instances that serve revision a.
func started(t *testing.T, n int32) *world {
	t.Helper()
	w := empty(t)
	w.in.Desired = n
	w.settle()
	if got := w.serving(); got != int(n) {
		t.Fatalf("%d of %d Instances serve to begin with: %v", got, n, w.summaries())
	}
	w.events, w.all, w.floor = nil, nil, -1
	w.run(time.Minute)
	return w
}

// empty is a component without Instances, with the settings of an installation that
// says nothing and budgets of one.
func empty(t *testing.T) *world {
	l := config.Default().Lifecycle
	w := &world{
		t: t, sick: map[string]string{}, slow: map[string]bool{}, stays: map[string]bool{}, old: map[string]bool{},
		nodes: []string{"n1", "n2", "n3", "n4", "n5"}, floor: -1, most: -1,
		in: Input{
			Now: t0, Namespace: "ns", Prefix: "svc", Component: "engine",
			Owner: metav1.OwnerReference{UID: "owner", Controller: new(true)}, Desired: 1, Target: rev("a"),
			Revisions: map[string]Revision{}, Strategy: v1beta1.SurgeThenDrain, MaxSurge: 1, MaxUnavailable: 1,
			ReadyTimeout: l.InstanceReadyTimeout, StuckGrace: l.StuckPodGracePeriod, UnschedulableGrace: l.UnschedulableGracePeriod,
			Retry: l.UpdateRetry, Relocations: l.AutoMigrate.MaxAttempts, RecordsKept: l.Audit.Window, MaxOpen: l.MaxOpenOperations,
			Routed: map[types.UID]bool{}, RefusedPods: map[string]Refusal{},
		},
	}
	for _, r := range []Revision{rev("a"), rev("b"), rev("c"), otherRev("x"), otherRev("y")} {
		w.in.Revisions[r.Name] = r
	}
	return w
}

// otherRev differs from those of rev by more than its image.
func otherRev(letter string) Revision {
	r := rev(letter)
	template := r.Template()
	template.Spec.Containers[0].Args = []string{letter}
	r.Template = func() *corev1.PodTemplateSpec { return template }
	return r
}

func (w *world) target(letter string) { w.in.Target = w.in.Revisions["svc-engine-"+letter] }

func (w *world) strategy(s v1beta1.UpdateStrategyType) { w.in.Strategy = s }

// stored is what a value is after it went through the API server.
func storedCopy[T any](t *testing.T, v T) (out T) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// pass decides once, checks what any decision must keep, stores it and makes its calls.
func (w *world) pass() {
	w.t.Helper()
	w.passes++
	in := w.in
	in.Seed, in.Pods = fmt.Sprintf("%012x", w.passes), w.pods
	before := v1beta1.InferenceReplicaStatus{InstanceStatuses: in.Rows, RetryBlocks: in.RetryBlocks, Migrations: in.Migrations}
	kept := before.DeepCopy()
	w.last = Decide(in)
	if !apiequality.Semantic.DeepEqual(&before, kept) {
		w.t.Fatalf("a decision wrote to its input (-before +after):\n%s", cmp.Diff(kept, &before))
	}
	w.in.Rows, w.in.RetryBlocks, w.in.Migrations = storedCopy(w.t, w.last.Rows), storedCopy(w.t, w.last.RetryBlocks), storedCopy(w.t, w.last.Migrations)
	w.events = append(w.events, w.last.Events...)
	if _, ok := w.last.Consumed[v1beta1.ReleaseHeldRevisionAnnotation]; ok {
		w.in.Release = nil
	}
	if _, ok := w.last.Consumed[v1beta1.ResetInstancesAnnotation]; ok {
		w.in.Reset = nil
	}
	w.acts = nil
	ids := map[string]bool{}
	for i := range w.in.Rows {
		row := &w.in.Rows[i]
		if row.Operation != nil {
			ids[row.Operation.ID] = true
		}
		if (row.Phase == v1beta1.InstanceReady || row.Phase == v1beta1.InstancePending) && row.Operation != nil {
			w.t.Fatalf("%s row %d keeps an operation", row.Phase, row.Index)
		}
		if row.Operation == nil && row.Phase != v1beta1.InstanceReady && row.Phase != v1beta1.InstancePending && row.Phase != v1beta1.InstanceFailed {
			w.t.Fatalf("row %d is %s without an operation", row.Index, row.Phase)
		}
	}
	for _, a := range w.last.Pods {
		name := fmt.Sprintf("%s %s/%s %s", a.Verb, a.Pod.Labels[v1beta1.InstanceIndexLabel], a.Pod.Labels[v1beta1.PodOrdinalLabel], a.Pod.Labels[v1beta1.RevisionHashLabel])
		if !ids[a.Operation] && (a.Operation != "" || a.Verb != PodServe) {
			w.t.Fatalf("%s: no stored operation names it", name)
		}
		w.acts = append(w.acts, name)
		w.apply(a)
	}
	w.all = append(w.all, w.acts...)
	if got := w.serving(); got < w.floor {
		w.t.Fatalf("%d Instances serve after %v, the floor is %d: %v", got, w.acts, w.floor, w.summaries())
	}
	if w.most >= 0 {
		perIndex := map[string]int{}
		for _, p := range w.pods {
			perIndex[p.Labels[v1beta1.InstanceIndexLabel]]++
		}
		extra := 0
		for _, n := range perIndex {
			extra += n - 1
		}
		if extra > w.most {
			w.t.Fatalf("%d pods too many after %v, the budget is %d", extra, w.acts, w.most)
		}
	}
}

const grace = 30 * time.Second

func (w *world) apply(a PodAction) {
	w.t.Helper()
	if a.Verb == PodCreate {
		w.create(a.Pod)
		return
	}
	i := slices.IndexFunc(w.pods, func(p *corev1.Pod) bool { return p.UID == a.Pod.UID })
	if i < 0 {
		w.t.Fatalf("%s of a pod that is gone", a.Verb)
	}
	p := w.pods[i].DeepCopy()
	w.pods[i] = p
	switch a.Verb {
	case PodServe, PodUnserve:
		w.condition(p, v1beta1.ServingReadinessGate, a.Verb == PodServe)
		for i := range p.Status.Conditions {
			if c := &p.Status.Conditions[i]; c.Type == v1beta1.ServingReadinessGate {
				c.Message = a.Message
			}
		}
	case PodDelete:
		if p.DeletionTimestamp != nil {
			w.t.Fatalf("pod %s is deleted twice", p.Name)
		}
		p.DeletionTimestamp = &metav1.Time{Time: w.in.Now.Add(grace)}
	case PodForceDelete:
		if p.DeletionTimestamp == nil || len(p.Finalizers) > 0 {
			w.t.Fatalf("pod %s is force-deleted", p.Name)
		}
		w.pods = slices.Delete(w.pods, i, i+1)
	case PodUpdate:
		for k := range p.Spec.Containers {
			if image := a.Patch.Images[p.Spec.Containers[k].Name]; image != "" {
				p.Spec.Containers[k].Image = image
			}
		}
		for k, v := range a.Patch.Labels {
			p.Labels[k] = v
		}
		for k, v := range a.Patch.Annotations {
			if v == nil {
				delete(p.Annotations, k)
				continue
			}
			p.Annotations[k] = *v
		}
	default:
		w.t.Fatalf("verb %s", a.Verb)
	}
}

func (w *world) create(p *corev1.Pod) {
	w.t.Helper()
	if w.refuse != nil {
		if r := w.refuse(p); r != nil {
			w.in.RefusedPods[p.Name] = *r
			return
		}
	}
	delete(w.in.RefusedPods, p.Name)
	if slices.ContainsFunc(w.pods, func(q *corev1.Pod) bool { return q.Name == p.Name }) {
		w.t.Fatalf("pod %s is created while it exists", p.Name)
	}
	w.made++
	p = p.DeepCopy()
	p.UID, p.CreationTimestamp = types.UID(fmt.Sprintf("pod-%d", w.made)), metav1.NewTime(w.in.Now)
	if w.gated {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
	}
	w.pods = append(w.pods, p)
}

func (w *world) condition(p *corev1.Pod, kind corev1.PodConditionType, yes bool) *corev1.PodCondition {
	status := corev1.ConditionFalse
	if yes {
		status = corev1.ConditionTrue
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == kind {
			if c.Status != status {
				c.Status, c.LastTransitionTime = status, metav1.NewTime(w.in.Now)
			}
			return c
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(w.in.Now)})
	return &p.Status.Conditions[len(p.Status.Conditions)-1]
}

func short(p *corev1.Pod) string {
	return p.Labels[v1beta1.InstanceIndexLabel] + "/" + p.Labels[v1beta1.PodOrdinalLabel]
}

// kubelet moves every pod one step: a node, its containers, its readiness, its end.
func (w *world) kubelet() {
	var left []*corev1.Pod
	for _, p := range w.pods {
		p = p.DeepCopy()
		if p.DeletionTimestamp != nil && !w.stays[short(p)] && len(p.Finalizers) == 0 {
			delete(w.in.Routed, p.UID)
			continue
		}
		left = append(left, p)
		if p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodUnknown && w.placed(p) {
			w.containers(p)
		}
		gate := w.is(p, v1beta1.ServingReadinessGate)
		ready := w.is(p, corev1.ContainersReady) && gate && p.Status.Phase != corev1.PodFailed
		w.condition(p, corev1.PodReady, ready)
		w.in.Routed[p.UID] = ready && p.DeletionTimestamp == nil
	}
	w.pods = left
}

// placed gives the pod a node, unless something keeps it from one.
func (w *world) placed(p *corev1.Pod) bool {
	switch {
	case len(p.Spec.SchedulingGates) > 0:
		return false
	case p.Spec.NodeName != "":
		return true
	}
	node := ""
	if w.noRoom == "" {
		for _, n := range w.nodes {
			if node == "" && !slices.Contains(keptOff(p), n) {
				node = n
			}
		}
	}
	c := w.condition(p, corev1.PodScheduled, node != "")
	if node == "" {
		c.Reason, c.Message = corev1.PodReasonUnschedulable, w.noRoom
		return false
	}
	p.Spec.NodeName = node
	return true
}

// keptOff are the nodes that the pod's affinity excludes.
func keptOff(p *corev1.Pod) (nodes []string) {
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, f := range term.MatchFields {
				if f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpNotIn {
					nodes = append(nodes, f.Values...)
				}
			}
		}
	}
	return nodes
}

func (w *world) containers(p *corev1.Pod) {
	if w.old[short(p)] {
		return
	}
	p.Status.Phase = corev1.PodRunning
	why, slow := "", false
	for _, key := range []string{p.Labels[v1beta1.RevisionHashLabel], p.Spec.NodeName, short(p)} {
		why, slow = orElse(why, w.sick[key]), slow || w.slow[key]
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if len(p.Status.ContainerStatuses) <= i {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name})
		}
		s := &p.Status.ContainerStatuses[i]
		s.State = corev1.ContainerState{}
		if why != "" {
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: why, Message: "because of " + why}
			s.Ready = false
			continue
		}
		if s.Image != c.Image {
			w.made++
			s.Image, s.ImageID, s.ContainerID = c.Image, "sha256:"+c.Image, fmt.Sprintf("containerd://%d", w.made)
		}
		s.State.Running, s.Ready = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.in.Now)}, !slow
	}
	w.condition(p, corev1.ContainersReady, why == "" && !slow)
}

func (w *world) is(p *corev1.Pod, kind corev1.PodConditionType) bool {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// serving counts the Instances of which some pod can be reached.
func (w *world) serving() int {
	serve := map[string]bool{}
	for _, p := range w.pods {
		if p.DeletionTimestamp == nil && w.is(p, corev1.ContainersReady) && w.is(p, v1beta1.ServingReadinessGate) {
			serve[p.Labels[v1beta1.InstanceIndexLabel]] = true
		}
	}
	return len(serve)
}

// settle passes until nothing moves while the clock stands still.
func (w *world) settle() {
	w.t.Helper()
	for range 200 {
		rows, blocks, records, refused := w.in.Rows, w.in.RetryBlocks, w.in.Migrations, len(w.in.RefusedPods)
		pods := slices.Clone(w.pods) // what changes is replaced
		w.pass()
		w.kubelet()
		if apiequality.Semantic.DeepEqual(rows, w.in.Rows) && apiequality.Semantic.DeepEqual(blocks, w.in.RetryBlocks) &&
			apiequality.Semantic.DeepEqual(records, w.in.Migrations) && refused == len(w.in.RefusedPods) &&
			apiequality.Semantic.DeepEqual(pods, w.pods) && w.in.Release == nil && w.in.Reset == nil {
			return
		}
	}
	w.t.Fatalf("never at rest at %s: %v, calls %v", w.in.Now.Format(time.TimeOnly), w.summaries(), w.acts)
}

// run lets the time go by. Between its ends a pass happens only when the last one asked
// for it: nothing may count on an event that does not come.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	end := w.in.Now.Add(d)
	for range 1000 {
		w.settle()
		wake := w.last.Wake
		if wake.IsZero() || wake.After(end) {
			w.in.Now = end
			return
		}
		if !wake.After(w.in.Now) {
			w.t.Fatalf("at rest at %s, and asks for a pass at %s: %v", w.in.Now.Format(time.TimeOnly), wake.Format(time.TimeOnly), w.summaries())
		}
		w.in.Now = wake
	}
	w.t.Fatalf("too many wakes by %s: %v", w.in.Now.Format(time.TimeOnly), w.summaries())
}

// later moves the clock without a pass.
func (w *world) later(d time.Duration) { w.in.Now = w.in.Now.Add(d) }

func (w *world) row(index int32) *v1beta1.InstanceStatus {
	w.t.Helper()
	for i := range w.in.Rows {
		if w.in.Rows[i].Index == index {
			return &w.in.Rows[i]
		}
	}
	w.t.Fatalf("no Instance %d: %v", index, w.summaries())
	return nil
}

// pod is the one named as "index/slot"; change edits it.
func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	i := w.podAt(name)
	if i < 0 {
		w.t.Fatalf("no pod %s: %v", name, w.podNames())
	}
	return w.pods[i]
}

func (w *world) podAt(name string) int {
	return slices.IndexFunc(w.pods, func(p *corev1.Pod) bool { return short(p) == name })
}

func (w *world) change(name string, do func(*corev1.Pod)) {
	w.t.Helper()
	w.pod(name)
	i := w.podAt(name)
	w.pods[i] = w.pods[i].DeepCopy()
	do(w.pods[i])
}

// lose takes a pod away at once, as a forced deletion by somebody else does.
func (w *world) lose(name string) {
	w.t.Helper()
	w.pod(name)
	w.pods = slices.Delete(w.pods, w.podAt(name), w.podAt(name)+1)
}

// leaveAt is the deletionTimestamp of a pod that somebody deletes now.
func (w *world) leaveAt() *metav1.Time { return &metav1.Time{Time: w.in.Now.Add(grace)} }

// crash ends the pod's container and has it run again.
func (w *world) crash(name, container string) {
	w.t.Helper()
	w.change(name, func(p *corev1.Pod) {
		i := slices.IndexFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == container })
		if i < 0 {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: container})
			i = len(p.Status.ContainerStatuses) - 1
		}
		s := &p.Status.ContainerStatuses[i]
		s.RestartCount++
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", FinishedAt: metav1.NewTime(w.in.Now)}
	})
}

func (w *world) podNames() (out []string) {
	for _, p := range w.pods {
		name := short(p) + " " + p.Labels[v1beta1.RevisionHashLabel]
		if p.DeletionTimestamp != nil {
			name += " leaving"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (w *world) summaries() (out []string) {
	for _, r := range w.in.Rows {
		s := summary(r)
		if r.Incarnation != 1 {
			s += fmt.Sprintf(" incarnation %d", r.Incarnation)
		}
		out = append(out, s)
	}
	return out
}

// rows compares the rows with their summaries.
func (w *world) rows(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.summaries()); diff != "" {
		w.t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func (w *world) wantPods(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.podNames()); diff != "" {
		w.t.Errorf("pods (-want +got):\n%s", diff)
	}
}

// calls compares the calls of the last pass, or of every pass since forgetCalls.
func (w *world) calls(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.acts); diff != "" {
		w.t.Errorf("calls of the pass (-want +got):\n%s", diff)
	}
}

func (w *world) allCalls(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.all); diff != "" {
		w.t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// never fails when a call that begins so was made.
func (w *world) never(prefix string) {
	w.t.Helper()
	for _, c := range w.all {
		if strings.HasPrefix(c, prefix) {
			w.t.Errorf("%s was called: %v", prefix, w.all)
			return
		}
	}
}

// told compares how often an event was sent, and looks for words in the last one.
func (w *world) told(reason string, times int, words ...string) {
	w.t.Helper()
	n, text := 0, ""
	for _, e := range w.events {
		if e.Reason == reason {
			n++
			text = e.Message
		}
	}
	if n != times {
		w.t.Errorf("%s was sent %d times, want %d: %v", reason, n, times, w.events)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			w.t.Errorf("%s says %q, without %q", reason, text, word)
		}
	}
}

// holds looks for a gate and words in the hold; no gate means that nothing may hold.
func (w *world) holds(gate v1beta1.RolloutHoldGate, words ...string) {
	w.t.Helper()
	switch h := w.last.Hold; {
	case gate == "" && h != nil:
		w.t.Errorf("held at %s: %s", h.Gate, h.Reason)
	case gate == "":
	case h == nil:
		w.t.Errorf("nothing is held, want %s: %v", gate, w.summaries())
	case h.Gate != gate:
		w.t.Errorf("held at %s (%s), want %s", h.Gate, h.Reason, gate)
	default:
		for _, word := range words {
			if !strings.Contains(h.Reason, word) {
				w.t.Errorf("the hold says %q, without %q", h.Reason, word)
			}
		}
	}
}

// block compares a revision's retry block, as "State attempts/counted", "" for none.
func (w *world) block(letter, want string) *v1beta1.RetryBlock {
	w.t.Helper()
	got := ""
	var found *v1beta1.RetryBlock
	for i := range w.in.RetryBlocks {
		if b := &w.in.RetryBlocks[i]; b.TargetRevision == "svc-engine-"+letter {
			found, got = b, fmt.Sprintf("%s %d/%d", b.State, b.AttemptsStarted, b.CountedFailures)
		}
	}
	if got != want {
		w.t.Errorf("retry block of %s is %q, want %q", letter, got, want)
	}
	if found == nil {
		found = &v1beta1.RetryBlock{}
	}
	return found
}

// clock compares how long the row's operation still has; "parked" for no deadline.
func (w *world) clock(index int32, want string) {
	w.t.Helper()
	got := "none"
	if op := w.row(index).Operation; op != nil {
		got = "parked"
		if op.Deadline != nil {
			got = op.Deadline.Sub(w.in.Now).String()
		}
	}
	if got != want {
		w.t.Errorf("the clock of Instance %d shows %s, want %s", index, got, want)
	}
}
