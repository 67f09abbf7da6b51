package node

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"

	"ome.io/ome/lab/internal/stub"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world runs one pod by hand: a clock that only step moves, and an API server that applies patches.
type world struct {
	t       *testing.T
	now     time.Time
	posted  []func()
	m       *machine
	writes  int
	process *fakeProcess // the newest
	served  int
	logs    *stub.Logs
}

type fakeProcess struct {
	stopped, killed bool
	exited          func()
	labels          map[string]string
	behaviour       stub.Behaviour
}

func (p *fakeProcess) Stop(exited func())     { p.stopped, p.exited = true, exited }
func (p *fakeProcess) Kill()                  { p.killed = true }
func (p *fakeProcess) SetPod(pod *corev1.Pod) { p.labels = pod.Labels }

func (p *fakeProcess) SetBehaviour(b stub.Behaviour) { p.behaviour = b }

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid-1", Generation: 1, Labels: map[string]string{}},
		Spec: corev1.PodSpec{
			NodeName:                      "lab-00",
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: ptr.To[int64](30),
			Containers: []corev1.Container{{
				Name: "main", Image: "lab.ome.io/engine:v1-pull1s-start2s",
				Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
			}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
		},
	}
	if change != nil {
		change(p)
	}
	return p
}

func newWorld(t *testing.T, p *corev1.Pod) *world {
	w := &world{t: t, now: epoch}
	e := &env{
		now:  func() time.Time { return w.now },
		post: func(f func()) { w.posted = append(w.posted, f) },
		serve: func(pod *corev1.Pod, _ *corev1.Container, _ netip.Addr, b stub.Behaviour, _ *stub.Logs) (process, error) {
			w.served++
			w.process = &fakeProcess{labels: pod.Labels, behaviour: b}
			return w.process, nil
		},
		logs:    func(_ *corev1.Pod, _ string, current, _ *stub.Logs) { w.logs = current },
		backOff: 10 * time.Second, maxBackOff: 5 * time.Minute,
	}
	w.m = newMachine(e, p, netip.MustParseAddr("198.18.0.7"))
	w.settle()
	return w
}

// settle does what is due and writes the status until neither changes anything.
func (w *world) settle() (wake time.Time) {
	w.t.Helper()
	for range 50 {
		for _, f := range w.posted {
			f()
		}
		w.posted = nil
		wake = w.m.advance()
		patch := w.m.patch()
		if patch == nil {
			return wake
		}
		w.writes++
		w.apply(patch)
	}
	w.t.Fatal("the status never settles")
	return
}

func (w *world) apply(patch []byte) {
	w.t.Helper()
	old, err := json.Marshal(w.m.pod)
	if err != nil {
		w.t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatch(old, patch, &corev1.Pod{})
	if err != nil {
		w.t.Fatalf("%v: %s", err, patch)
	}
	var p corev1.Pod
	if err := json.Unmarshal(merged, &p); err != nil {
		w.t.Fatal(err)
	}
	w.m.see(&p)
}

// step moves the clock to each wake-up in turn until d has passed.
func (w *world) step(d time.Duration) {
	w.t.Helper()
	end := w.now.Add(d)
	for range 1000 {
		wake := w.settle()
		if wake.IsZero() || wake.After(end) {
			w.now = end
			w.settle()
			return
		}
		if wake.After(w.now) {
			w.now = wake
		}
	}
	w.t.Fatal("the pod never rests")
}

// edit changes the pod as another client would.
func (w *world) edit(change func(*corev1.Pod)) {
	w.t.Helper()
	p := w.m.pod.DeepCopy()
	change(p)
	if !equality.Semantic.DeepEqual(p.Spec, w.m.pod.Spec) {
		p.Generation++
	}
	w.m.see(p)
	w.settle()
}

func (w *world) delete(grace int64) {
	w.t.Helper()
	w.edit(func(p *corev1.Pod) {
		p.DeletionTimestamp = ptr.To(metav1.NewTime(w.now.Add(time.Duration(grace) * time.Second)))
		p.DeletionGracePeriodSeconds = &grace
	})
}

// line is the pod in a line: phase, readiness, and the state of its containers.
func (w *world) line() string {
	s := w.m.pod.Status
	parts := []string{string(s.Phase)}
	for _, c := range s.Conditions {
		if c.Type == corev1.PodReady {
			if c.Status == corev1.ConditionTrue {
				parts = append(parts, "ready")
			} else {
				parts = append(parts, c.Reason)
			}
		}
	}
	for _, c := range s.ContainerStatuses {
		state := "?"
		switch {
		case c.State.Waiting != nil:
			state = c.State.Waiting.Reason
		case c.State.Running != nil:
			state = "running"
		case c.State.Terminated != nil:
			state = fmt.Sprintf("exited %d", c.State.Terminated.ExitCode)
		}
		parts = append(parts, fmt.Sprintf("%s(%s x%d)", c.Name, state, c.RestartCount))
	}
	return strings.Join(parts, " ")
}

func (w *world) want(line string) {
	w.t.Helper()
	if got := w.line(); got != line {
		w.t.Errorf("at %s: %q, want %q", w.now.Sub(epoch), got, line)
	}
}

func image(tag string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Image = "lab.ome.io/engine:" + tag }
}

func TestStart(t *testing.T) {
	w := newWorld(t, pod(nil))
	w.want("Pending ContainersNotReady main(ContainerCreating x0)")
	if w.m.pod.Status.PodIP != "" {
		t.Error("a pod has no address before its sandbox is up")
	}
	w.step(time.Second)
	w.want("Running ContainersNotReady main(running x0)")
	if w.served != 0 {
		t.Error("it listens before it has started up")
	}
	w.step(2 * time.Second)
	w.want("Running ready main(running x0)")
	if w.served != 1 {
		t.Errorf("%d listeners", w.served)
	}
	s := w.m.pod.Status
	if s.PodIP != "198.18.0.7" || len(s.PodIPs) != 1 || s.HostIP == "" || s.StartTime == nil {
		t.Errorf("addresses and start: %+v", s)
	}
	for _, c := range s.Conditions {
		if c.Status != corev1.ConditionTrue || c.Reason != "" || c.Message != "" {
			t.Errorf("condition %s is %s, reason %q, message %q", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	if w.writes != 3 {
		t.Errorf("%d status writes, want 3", w.writes)
	}
	w.step(time.Hour)
	if w.writes != 3 {
		t.Errorf("a pod at rest was written %d times", w.writes-3)
	}
}

func TestReadinessGate(t *testing.T) {
	w := newWorld(t, pod(func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "ome.io/serving"}}
	}))
	set := func(s corev1.ConditionStatus) {
		w.apply(fmt.Appendf(nil, `{"status":{"conditions":[{"type":"ome.io/serving","status":%q}]}}`, s))
		w.settle()
	}
	set(corev1.ConditionTrue)
	w.want("Pending ContainersNotReady main(ContainerCreating x0)")
	set(corev1.ConditionFalse)
	w.step(5 * time.Second)
	w.want("Running ReadinessGatesNotReady main(running x0)")
	set(corev1.ConditionTrue)
	w.want("Running ready main(running x0)")
	before := w.writes
	set(corev1.ConditionFalse)
	w.want("Running ReadinessGatesNotReady main(running x0)")
	if w.writes != before+1 {
		t.Errorf("closing a gate took %d writes", w.writes-before)
	}
	for _, c := range w.m.pod.Status.Conditions {
		if c.Type == "ome.io/serving" && c.Status != corev1.ConditionFalse {
			t.Errorf("the kubelet touched the gate's own condition: %+v", c)
		}
	}
}

func TestFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		pod   func(*corev1.Pod)
		after []time.Duration
		want  []string
	}{
		"unpullable": {image("v1-pull1s-unpullable"),
			[]time.Duration{time.Second, 2 * time.Second, 9 * time.Second, 2 * time.Second, 19 * time.Second},
			[]string{
				"Pending ContainersNotReady main(ErrImagePull x0)", "Pending ContainersNotReady main(ImagePullBackOff x0)",
				"Pending ContainersNotReady main(ErrImagePull x0)", "Pending ContainersNotReady main(ImagePullBackOff x0)",
				"Pending ContainersNotReady main(ErrImagePull x0)",
			}},
		"crash loop": {image("v1-pull0s-crash1s"),
			[]time.Duration{500 * time.Millisecond, time.Second, time.Second, 10 * time.Second, time.Second, 20 * time.Second},
			[]string{
				"Running ready main(running x0)", "Running ready main(running x1)", "Running ContainersNotReady main(CrashLoopBackOff x1)",
				"Running ready main(running x2)", "Running ContainersNotReady main(CrashLoopBackOff x2)", "Running ready main(running x3)",
			}},
		"crash twice, then run": {image("v1-pull0s-crash1s-times2"),
			[]time.Duration{500 * time.Millisecond, time.Second, time.Second, 10 * time.Second, time.Hour},
			[]string{
				"Running ready main(running x0)", "Running ready main(running x1)", "Running ContainersNotReady main(CrashLoopBackOff x1)",
				"Running ready main(running x2)", "Running ready main(running x2)",
			}},
		"crash after serving": {image("v1-pull0s-start5s-serves2s-exitcode3"),
			[]time.Duration{5 * time.Second, 2 * time.Second, 5 * time.Second, 2 * time.Second},
			[]string{
				"Running ready main(running x0)", "Running ContainersNotReady main(running x1)", "Running ready main(running x1)",
				"Running ContainersNotReady main(CrashLoopBackOff x1)",
			}},
		"crash and never restart": {func(p *corev1.Pod) {
			image("v1-pull0s-crash")(p)
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
		}, []time.Duration{time.Second}, []string{"Failed ContainersNotReady main(exited 1 x0)"}},
		"complete": {func(p *corev1.Pod) {
			image("v1-pull0s-exit3s")(p)
			p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		}, []time.Duration{time.Second, 3 * time.Second}, []string{"Running ready main(running x0)", "Succeeded PodCompleted main(exited 0 x0)"}},
		"never ready":       {image("v1-neverready"), []time.Duration{time.Hour}, []string{"Running ContainersNotReady main(running x0)"}},
		"bad configuration": {image("v1-start9"), []time.Duration{time.Hour}, []string{"Pending ContainersNotReady main(CreateContainerConfigError x0)"}},
		"initial delay": {func(p *corev1.Pod) {
			image("v1-pull0s-start0s")(p)
			p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{InitialDelaySeconds: 5}
		}, []time.Duration{4 * time.Second, time.Second}, []string{"Running ContainersNotReady main(running x0)", "Running ready main(running x0)"}},
		"init container first": {func(p *corev1.Pod) {
			image("v1-pull0s-start0s")(p)
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "busybox:1-pull5s"}}
		}, []time.Duration{4 * time.Second, time.Second}, []string{"Pending ContainersNotReady main(PodInitializing x0)", "Running ready main(running x0)"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pod(tc.pod))
			for i, d := range tc.after {
				w.step(d)
				w.want(tc.want[i])
			}
		})
	}
}

func TestDeletion(t *testing.T) {
	hook := func(p *corev1.Pod) {
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}}
	}
	up := func(t *testing.T, change func(*corev1.Pod)) *world {
		w := newWorld(t, pod(change))
		w.step(5 * time.Second)
		w.want("Running ready main(running x0)")
		return w
	}
	t.Run("serves through the hook, then exits when done", func(t *testing.T) {
		w := up(t, hook)
		before := w.writes
		w.delete(30)
		w.step(4 * time.Second)
		if w.process.stopped || w.m.done() {
			t.Fatal("stopped during its preStop hook")
		}
		w.want("Running ready main(running x0)")
		w.step(time.Second)
		if !w.process.stopped {
			t.Fatal("no SIGTERM after the hook")
		}
		w.step(3 * time.Second)
		if w.m.done() {
			t.Fatal("gone with requests in flight")
		}
		w.process.exited()
		w.settle()
		w.want("Succeeded PodCompleted main(exited 0 x0)")
		if !w.m.done() {
			t.Error("not done after its container exited")
		}
		if w.writes != before+1 {
			t.Errorf("its end took %d status writes, want 1", w.writes-before)
		}
	})
	t.Run("killed at the end of the grace period", func(t *testing.T) {
		w := up(t, hook)
		w.delete(10)
		w.step(9 * time.Second)
		if w.process.killed || w.m.done() {
			t.Fatal("killed early")
		}
		w.step(time.Second)
		w.want("Failed ContainersNotReady main(exited 137 x0)")
		if !w.process.killed || !w.m.done() {
			t.Error("still there after its grace period")
		}
		w.process.exited() // too late, and harmless
		w.settle()
		w.want("Failed ContainersNotReady main(exited 137 x0)")
	})
	t.Run("a hook as long as the grace period leaves two seconds", func(t *testing.T) {
		w := up(t, hook)
		w.delete(3)
		w.step(3 * time.Second)
		if !w.process.stopped || w.process.killed {
			t.Fatal("want SIGTERM when the grace period ends inside the hook")
		}
		w.step(2 * time.Second)
		if !w.m.done() {
			t.Error("still there two seconds later")
		}
	})
	t.Run("no grace", func(t *testing.T) {
		w := up(t, hook)
		w.delete(0)
		if !w.process.killed || !w.m.done() {
			t.Error("a pod without grace is killed at once")
		}
	})
	t.Run("grace shortened later", func(t *testing.T) {
		w := up(t, nil)
		w.delete(30)
		w.step(5 * time.Second)
		w.delete(1)
		w.step(2 * time.Second)
		if !w.m.done() {
			t.Error("the second, shorter grace period didn't count")
		}
	})
	t.Run("before it ran", func(t *testing.T) {
		w := newWorld(t, pod(image("unpullable")))
		w.step(5 * time.Second)
		w.delete(30)
		if !w.m.done() {
			t.Error("nothing runs, so nothing to wait for")
		}
	})
	t.Run("in the middle of a restart", func(t *testing.T) {
		w := up(t, nil)
		w.edit(image("v2"))
		w.delete(30)
		w.process.exited()
		w.settle()
		w.step(time.Second)
		if !w.m.done() {
			t.Errorf("a dying pod started its new image: %s", w.line())
		}
	})
	t.Run("without a listener", func(t *testing.T) {
		w := newWorld(t, pod(func(p *corev1.Pod) {
			p.Spec.Containers[0].Image = "busybox:1-pull0s-start0s-drain3s"
			p.Spec.Containers[0].Ports = nil
		}))
		w.step(time.Second)
		w.want("Running ready main(running x0)")
		if w.served != 0 {
			t.Error("a pod without ports got a listener")
		}
		w.delete(30)
		w.step(2 * time.Second)
		if w.m.done() {
			t.Error("exited before its drain time")
		}
		w.step(time.Second)
		if !w.m.done() {
			t.Error("still there after its drain time")
		}
	})
}

func TestNodeDeathAndReturn(t *testing.T) {
	w := newWorld(t, pod(nil))
	w.step(5 * time.Second)
	first := w.process
	w.m.silence()
	if !first.killed {
		t.Fatal("the sockets of a dead node stay open")
	}
	w.now = w.now.Add(time.Minute)
	w.m.reboot()
	w.settle()
	w.want("Running ContainersNotReady main(running x1)")
	w.step(2 * time.Second)
	w.want("Running ready main(running x1)")

	w.m.silence()
	p := w.m.pod.DeepCopy()
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(w.now)), ptr.To[int64](30)
	w.m.see(p)
	w.m.reboot()
	w.settle()
	if !w.m.done() {
		t.Errorf("a pod deleted while its node was dead should end when it returns: %s", w.line())
	}
}

func TestAdoptsPodsOfAnEarlierRun(t *testing.T) {
	w := newWorld(t, pod(nil))
	w.step(5 * time.Second)
	next := newWorld(t, w.m.pod.DeepCopy())
	next.want("Running ContainersNotReady main(ContainerCreating x1)")
	next.step(5 * time.Second)
	next.want("Running ready main(running x1)")
	if a, b := w.m.pod.Status.ContainerStatuses[0].ContainerID, next.m.pod.Status.ContainerStatuses[0].ContainerID; a == b {
		t.Error("the restarted container kept its ID")
	}
}

func TestLabelsReachTheProcess(t *testing.T) {
	w := newWorld(t, pod(nil))
	w.step(5 * time.Second)
	w.edit(func(p *corev1.Pod) { p.Labels = map[string]string{stub.LabelRevision: "new"} })
	if diff := cmp.Diff(map[string]string{stub.LabelRevision: "new"}, w.process.labels); diff != "" {
		t.Error(diff)
	}
}

func TestPatchLeavesOthersAlone(t *testing.T) {
	w := newWorld(t, pod(nil))
	w.step(time.Second)
	w.now = w.now.Add(2 * time.Second)
	w.m.advance()
	patch := w.m.patch()
	var got struct {
		Metadata map[string]any
		Status   map[string]json.RawMessage
	}
	if err := json.Unmarshal(patch, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"uid": "uid-1"}, got.Metadata); diff != "" {
		t.Errorf("only the UID may be a precondition: %s", diff)
	}
	for _, unchanged := range []string{"phase", "podIP", "hostIP", "startTime", "qosClass"} {
		if _, there := got.Status[unchanged]; there {
			t.Errorf("%s didn't change and is in the patch", unchanged)
		}
	}
	if strings.Contains(string(got.Status["conditions"]), "PodScheduled") {
		t.Error("PodScheduled belongs to the scheduler")
	}
}

func TestBackOff(t *testing.T) {
	var got []time.Duration
	for n := range 7 {
		got = append(got, backOff(10*time.Second, 5*time.Minute, n))
	}
	want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
