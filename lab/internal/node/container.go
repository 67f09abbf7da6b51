package node

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/lab/internal/stub"
)

// process is what listens for a container.
type process interface {
	// SetPod tells it of changed labels.
	SetPod(*corev1.Pod)
	// SetBehaviour tells it of a changed behaviour.
	SetBehaviour(stub.Behaviour)
	// Stop is SIGTERM; exited is called, on any goroutine, when it is done.
	Stop(exited func())
	// Kill is SIGKILL.
	Kill()
}

type containerPhase int

const (
	creating  containerPhase = iota // the image is being pulled
	pullWait                        // the pull failed; another try is due
	unusable                        // its configuration can't be read; only an edit helps
	running                         // runs; see readyAt and exitAt
	hooking                         // runs, its preStop hook too
	signalled                       // got SIGTERM
	crashWait                       // exited, another start is due
	exited                          // exited for good
)

// container is the simulated life of one regular container.
type container struct {
	name      string
	image     string // what runs, or is about to
	behaviour stub.Behaviour
	asked     string // the pod's own request that is part of behaviour
	crashes   int    // runs that ended in a crash that was asked for, since it was

	phase containerPhase
	due   time.Time // when phase changes by itself; zero for never

	reason, message string // of a wait

	id        string // of the newest run, like the two below
	imageID   string
	ran       string // image
	starts    int    // how often it began to run; starts-1 is its restart count
	restarts0 int    // restarts before this lab process began
	startedAt time.Time
	readyAt   time.Time // listens and is ready from here on; zero for never
	exitAt    time.Time // ends by itself here; zero for never
	exitCode  int32
	listening bool
	ready     bool

	killBy time.Time // end of the grace period of a stop that is not the pod's

	last *corev1.ContainerStateTerminated // how the run before the newest one ended
	end  *corev1.ContainerStateTerminated // how the newest one ended, until the next begins

	failures int  // failed pulls or crashes in a row, for the back-off
	again    bool // start again after hooking and signalled: the image changed

	proc process
	run  int // counts processes, so that a late exit is not taken for a later one's
	logs *stub.Logs
	prev *stub.Logs
}

func (c *container) isRunning() bool {
	return c.phase == running || c.phase == hooking || c.phase == signalled
}

func (c *container) restartCount() int32 {
	return int32(c.restarts0 + max(c.starts-1, 0))
}

// create begins a pull.
func (m *machine) create(c *container, spec *corev1.Container, now time.Time) {
	c.image = spec.Image
	c.asked, c.crashes = m.pod.Annotations[stub.AnnotationBehaviour], 0
	c.reason, c.message = "ContainerCreating", ""
	b, err := stub.PodBehaviour(m.pod, spec)
	if err != nil {
		c.phase, c.due = unusable, time.Time{}
		c.reason, c.message = "CreateContainerConfigError", err.Error()
		return
	}
	c.behaviour = b
	c.phase, c.due = creating, now.Add(b.Pull)
}

// begin makes a pulled container run.
func (m *machine) begin(c *container, now time.Time) {
	c.starts++
	c.id = containerID(m.pod, c)
	c.imageID = imageID(c.image)
	c.ran = c.image
	c.phase = running
	c.reason, c.message = "", ""
	c.startedAt = now
	c.listening, c.ready = false, false
	if c.end != nil {
		c.last, c.end = c.end, nil
	}
	c.again = false
	c.readyAt = now.Add(max(c.behaviour.Start, probeDelay(m.spec(c.name))))
	c.exitAt = time.Time{}
	c.foresee(now)
	c.prev, c.logs = c.logs, stub.NewLogs()
	if c.prev != nil {
		c.prev.Close()
	}
	fmt.Fprintf(c.logs, "started %s\n", c.image)
	m.env.logs(m.pod, c.name, c.logs, c.prev)
	m.dueWhileRunning(c)
}

// foresee sets when a run ends by itself, as far as its behaviour tells now; a time that it can't tell yet, or has told, stays.
func (c *container) foresee(from time.Time) {
	b := c.behaviour
	crashes := b.CrashTimes == 0 || c.crashes < b.CrashTimes
	switch {
	case b.Crashes && crashes:
		c.exitAt, c.exitCode = from.Add(b.CrashAfter), b.ExitCode
	case b.Serves > 0 && crashes && c.listening:
		c.exitAt, c.exitCode = from.Add(b.Serves), b.ExitCode
	case b.Exits:
		c.exitAt, c.exitCode = from.Add(b.ExitAfter), 0
	}
}

// retune follows what the pod itself asks for. What a run already did or pulled stays; times count from now.
func (m *machine) retune(c *container, spec *corev1.Container, now time.Time) {
	if c.phase == unusable {
		m.create(c, spec, now)
		return
	}
	c.asked, c.crashes = m.pod.Annotations[stub.AnnotationBehaviour], 0
	b, err := stub.PodBehaviour(m.pod, spec)
	if err != nil {
		if c.logs != nil {
			fmt.Fprintf(c.logs, "nothing changes: %v\n", err)
		}
		return
	}
	start := c.behaviour.Start
	c.behaviour = b
	if c.phase != running {
		return
	}
	if !c.listening && b.Start != start {
		c.readyAt = now.Add(b.Start)
	}
	c.exitAt = time.Time{}
	c.foresee(now)
	c.ready = c.listening && !b.NeverReady
	if c.proc != nil {
		c.proc.SetBehaviour(b)
	}
	m.dueWhileRunning(c)
}

func (m *machine) dueWhileRunning(c *container) {
	c.due = time.Time{}
	if !c.listening {
		c.due = c.readyAt
	}
	if !c.exitAt.IsZero() && (c.due.IsZero() || c.exitAt.Before(c.due)) {
		c.due = c.exitAt
	}
}

// listen opens the container's ports once it has started up.
func (m *machine) listen(c *container, now time.Time) {
	c.listening = true
	spec := m.spec(c.name)
	if _, serves := stub.ComponentOf(m.pod, spec); serves {
		p, err := m.env.serve(m.pod, spec, m.ip, c.behaviour, c.logs)
		if err != nil {
			fmt.Fprintf(c.logs, "can't listen: %v\n", err)
			m.finish(c, now, 1, "Error", err.Error())
			return
		}
		c.proc, c.run = p, c.run+1
	}
	c.ready = !c.behaviour.NeverReady
	if c.exitAt.IsZero() {
		c.foresee(now)
	}
	m.dueWhileRunning(c)
}

// terminate begins a graceful stop. Its grace period covers the hook and what follows.
func (m *machine) terminate(c *container, now time.Time) {
	c.phase, c.killBy = hooking, now.Add(m.gracePeriod())
	c.due = earlier(m.killBy(c), now.Add(preStop(m.spec(c.name), c.behaviour)))
}

// signal sends SIGTERM.
func (m *machine) signal(c *container, now time.Time) {
	c.phase = signalled
	c.due, c.exitCode = m.killAt(c, now), 137 // unless it exits before
	if !m.dying {
		c.ready = false // a restart in place; of a dying pod only the end is recorded
	}
	if c.proc == nil {
		if end := now.Add(c.behaviour.Drain); !end.After(c.due) {
			c.due, c.exitCode = end, 0
		}
		return
	}
	name, run := c.name, c.run
	c.proc.Stop(func() {
		m.env.post(func() { m.processExited(name, run) })
	})
}

// processExited records that a container ended by itself after SIGTERM.
func (m *machine) processExited(name string, run int) {
	for _, c := range m.containers {
		if c.name == name && c.run == run && c.phase == signalled && c.proc != nil {
			c.proc = nil
			c.exitCode = 0
			c.due = m.env.now()
		}
	}
}

// finish ends a run and decides what comes next.
func (m *machine) finish(c *container, now time.Time, code int32, reason, message string) {
	if c.proc != nil {
		c.proc.Kill()
		c.proc = nil
	}
	c.run++
	fmt.Fprintf(c.logs, "exited with code %d\n", code)
	c.logs.Close()
	c.end = &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message,
		StartedAt: stamp(c.startedAt), FinishedAt: stamp(now), ContainerID: c.id,
	}
	c.listening, c.ready = false, false
	switch {
	case m.dying:
		c.phase, c.due = exited, time.Time{}
	case c.again:
		c.again = false
		c.failures = 0
		m.create(c, m.spec(c.name), now)
	case m.restarts(code):
		if now.Sub(c.startedAt) >= 2*m.env.maxBackOff {
			c.failures = 0 // it ran long enough for earlier failures to be forgotten
		}
		c.failures++
		if c.failures == 1 {
			m.begin(c, now) // the first restart is at once
			return
		}
		wait := backOff(m.env.backOff, m.env.maxBackOff, c.failures-2)
		c.phase, c.due = crashWait, now.Add(wait)
		c.reason = "CrashLoopBackOff"
		c.message = fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", wait, c.name, m.pod.Name, m.pod.Namespace, m.pod.UID)
	default:
		c.phase, c.due = exited, time.Time{}
	}
}

func (m *machine) restarts(code int32) bool {
	switch m.pod.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	}
	return true
}

// stepContainer makes one change that is due, and reports whether it made one.
func (m *machine) stepContainer(c *container, now time.Time) bool {
	if spec := m.spec(c.name); spec != nil && !m.dying {
		if spec.Image != c.image && m.retarget(c, spec, now) {
			return true
		}
		if spec.Image == c.image && m.pod.Annotations[stub.AnnotationBehaviour] != c.asked {
			m.retune(c, spec, now)
			return true
		}
	}
	if c.due.IsZero() || now.Before(c.due) {
		return false
	}
	switch c.phase {
	case creating:
		if c.behaviour.PullFails {
			m.pullFailed(c, now)
		} else {
			c.failures = 0 // those were failed pulls
			m.begin(c, now)
		}
	case pullWait:
		if c.reason == "ErrImagePull" {
			wait := backOff(m.env.backOff, m.env.maxBackOff, c.failures-1)
			c.due = now.Add(wait)
			c.reason, c.message = "ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q", c.image)
		} else if c.behaviour.PullFails {
			m.pullFailed(c, now)
		} else {
			c.failures = 0
			m.begin(c, now)
		}
	case running:
		if !c.exitAt.IsZero() && !now.Before(c.exitAt) {
			reason := "Completed"
			if c.exitCode != 0 {
				reason = "Error"
			}
			c.crashes++
			m.finish(c, now, c.exitCode, reason, "")
		} else {
			m.listen(c, now)
		}
	case hooking:
		m.signal(c, now)
	case signalled:
		reason := "Completed"
		if c.exitCode != 0 {
			reason = "Error"
		}
		m.finish(c, now, c.exitCode, reason, "")
	case crashWait:
		m.begin(c, now)
	default:
		c.due = time.Time{}
	}
	return true
}

// retarget turns a container towards a new image, and reports whether that changed anything now.
func (m *machine) retarget(c *container, spec *corev1.Container, now time.Time) bool {
	switch c.phase {
	case running:
		c.again = true
		m.terminate(c, now)
		return true
	case creating, pullWait, unusable, crashWait:
		c.failures = 0
		m.create(c, spec, now)
		return true
	}
	return false // hooking and signalled pick the image up when they end; exited never does
}

// pullErrorShows is how long ErrImagePull is shown before it turns into ImagePullBackOff.
const pullErrorShows = time.Second

func (m *machine) pullFailed(c *container, now time.Time) {
	c.failures++
	c.phase, c.due = pullWait, now.Add(pullErrorShows)
	c.reason = "ErrImagePull"
	c.message = fmt.Sprintf("failed to pull image %q: the lab was asked to refuse it", c.image)
}

// backOff is base doubled n times, at most limit.
func backOff(base, limit time.Duration, n int) time.Duration {
	d := base
	for range n {
		if d >= limit {
			break
		}
		d *= 2
	}
	return min(d, limit)
}

func probeDelay(c *corev1.Container) time.Duration {
	delay := time.Duration(0)
	for _, p := range []*corev1.Probe{c.ReadinessProbe, c.StartupProbe} {
		if p != nil {
			delay = max(delay, time.Duration(p.InitialDelaySeconds)*time.Second)
		}
	}
	return delay
}

var sleepCommand = regexp.MustCompile(`\bsleep\s+(\d+)`)

// preStop is how long a container's preStop hook runs. An exec hook that sleeps runs that long.
func preStop(c *corev1.Container, b stub.Behaviour) time.Duration {
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil {
		return 0
	}
	hook := c.Lifecycle.PreStop
	switch {
	case hook.Sleep != nil:
		return time.Duration(hook.Sleep.Seconds) * time.Second
	case hook.Exec != nil:
		line := fmt.Sprint(hook.Exec.Command)
		if m := sleepCommand.FindStringSubmatch(line); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				return time.Duration(n) * time.Second
			}
		}
		return b.PreStop
	case hook.HTTPGet != nil, hook.TCPSocket != nil:
		return b.PreStop
	}
	return 0
}

func containerID(pod *corev1.Pod, c *container) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", pod.UID, c.name, c.restarts0+c.starts))
	return fmt.Sprintf("lab://%x", sum)
}

func imageID(image string) string {
	return fmt.Sprintf("%s@sha256:%x", repository(image), sha256.Sum256([]byte(image)))
}

func repository(image string) string {
	if tag := stub.Tag(image); tag != "" {
		for i := len(image) - 1; i > 0; i-- {
			if image[i] == ':' && image[i+1:] == tag {
				return image[:i]
			}
		}
	}
	return image
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
