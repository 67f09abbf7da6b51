package node

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/lab/internal/stub"
)

// env is the world around a pod, so that tests can be the world.
type env struct {
	now   func() time.Time
	post  func(func()) // runs a change on the loop and looks at the pod after it
	serve func(pod *corev1.Pod, c *corev1.Container, ip netip.Addr, b stub.Behaviour, logs *stub.Logs) (process, error)
	logs  func(pod *corev1.Pod, container string, current, previous *stub.Logs)

	backOff, maxBackOff time.Duration
}

// machine is the simulated life of one pod. It is driven by see and advance and read by status
// and done; it never waits and never writes.
type machine struct {
	env *env
	pod *corev1.Pod // as last seen or written
	ip  netip.Addr

	began      time.Time
	initDone   time.Time // when the init containers have all run
	containers []*container

	dying    bool
	grace    time.Duration
	deadline time.Time // end of the grace period
}

// minimumGrace is what a container gets after its hook took the whole grace period.
const minimumGrace = 2 * time.Second

func newMachine(e *env, pod *corev1.Pod, ip netip.Addr) *machine {
	now := e.now()
	m := &machine{env: e, pod: pod, ip: ip, began: now, initDone: now}
	for i := range pod.Spec.InitContainers {
		if b, err := stub.PodBehaviour(pod, &pod.Spec.InitContainers[i]); err == nil {
			m.initDone = m.initDone.Add(b.Pull)
		}
	}
	for i := range pod.Spec.Containers {
		spec := &pod.Spec.Containers[i]
		c := &container{name: spec.Name}
		// A pod that ran under an earlier lab process: that run is over, this is a restart.
		for _, old := range pod.Status.ContainerStatuses {
			if old.Name == spec.Name && old.ContainerID != "" {
				c.restarts0 = int(old.RestartCount) + 1
				c.last = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error", ContainerID: old.ContainerID, FinishedAt: stamp(now)}
				if old.State.Running != nil {
					c.last.StartedAt = old.State.Running.StartedAt
				}
			}
		}
		if over := pod.Status.Phase; over == corev1.PodSucceeded || over == corev1.PodFailed {
			c.phase, c.end = exited, &corev1.ContainerStateTerminated{Reason: "Completed"}
		} else {
			m.create(c, spec, m.initDone)
		}
		m.containers = append(m.containers, c)
	}
	return m
}

// over reports a pod whose terminal phase is already recorded: nothing of it runs or is written.
func (m *machine) over() bool {
	p := m.pod.Status.Phase
	return p == corev1.PodSucceeded || p == corev1.PodFailed
}

func (m *machine) spec(container string) *corev1.Container {
	for i := range m.pod.Spec.Containers {
		if m.pod.Spec.Containers[i].Name == container {
			return &m.pod.Spec.Containers[i]
		}
	}
	return nil
}

// see takes in a newer pod object.
func (m *machine) see(pod *corev1.Pod) {
	m.pod = pod
	for _, c := range m.containers {
		// The labels that come with a new image are those of the run that will have it.
		if spec := m.spec(c.name); c.proc != nil && spec != nil && spec.Image == c.image {
			c.proc.SetPod(pod)
		}
	}
}

// advance makes every change that is due and returns when to call it next; zero for not before
// the pod changes.
func (m *machine) advance() (wake time.Time) {
	now := m.env.now()
	if m.pod.DeletionTimestamp != nil {
		m.die(now)
	}
	for _, c := range m.containers {
		for m.stepContainer(c, now) {
		}
		if !c.due.IsZero() {
			wake = earlier(wake, c.due)
		}
	}
	if now.Before(m.initDone) {
		wake = earlier(wake, m.initDone)
	}
	return wake
}

// die begins the end of a pod under deletion, or brings it forward.
func (m *machine) die(now time.Time) {
	grace := 30 * time.Second
	if s := m.pod.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	if m.dying {
		// A second delete may only shorten the grace period.
		if grace < m.grace {
			m.grace, m.deadline = grace, now.Add(grace)
			for _, c := range m.containers {
				if c.isRunning() {
					c.due = earlier(c.due, m.deadline)
				}
			}
			if grace == 0 {
				m.kill()
			}
		}
		return
	}
	m.dying = true
	m.grace, m.deadline = grace, now.Add(grace)
	for _, c := range m.containers {
		switch c.phase {
		case running:
			m.terminate(c, now)
		case hooking, signalled:
			c.again = false
			c.due = earlier(c.due, m.deadline)
		case exited:
		default:
			// It doesn't run now, so there is nothing to stop.
			if c.end == nil {
				c.end = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "the pod was deleted before the container ran"}
			}
			c.phase, c.due = exited, time.Time{}
		}
	}
	if grace == 0 {
		m.kill()
	}
}

// kill ends every container of a dying pod at once.
func (m *machine) kill() {
	now := m.env.now()
	for _, c := range m.containers {
		if c.isRunning() {
			m.finish(c, now, 137, "Error", "")
		}
	}
}

// silence closes the pod's sockets without a word to the API server: its node died.
func (m *machine) silence() {
	for _, c := range m.containers {
		if c.proc != nil {
			c.proc.Kill()
			c.proc = nil
			c.run++
		}
	}
}

// reboot starts the pod's containers again after its node came back.
func (m *machine) reboot() {
	now := m.env.now()
	if m.pod.DeletionTimestamp != nil {
		m.die(now)
		m.kill()
		return
	}
	for _, c := range m.containers {
		if c.isRunning() {
			c.failures = 0 // a kubelet forgets them when it starts
			m.finish(c, now, 137, "Error", "the node died")
		}
	}
}

// killBy is the end of the grace period that a container's stop has.
func (m *machine) killBy(c *container) time.Time {
	if m.dying {
		return m.deadline
	}
	return c.killBy
}

// killAt is when SIGKILL follows a SIGTERM sent now.
func (m *machine) killAt(c *container, now time.Time) time.Time {
	at := m.killBy(c)
	if least := now.Add(minimumGrace); at.Before(least) {
		at = least
	}
	return at
}

func (m *machine) gracePeriod() time.Duration {
	if s := m.pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 30 * time.Second
}

// done reports that the pod is being deleted and nothing of it runs any more.
func (m *machine) done() bool {
	if !m.dying {
		return false
	}
	for _, c := range m.containers {
		if c.phase != exited {
			return false
		}
	}
	return true
}

// stamp is a time as the API keeps it, in whole seconds.
func stamp(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(t.Truncate(time.Second))
}
