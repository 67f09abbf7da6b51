package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"ome.io/ome/lab/internal/stub"
)

// hostIP is the address of every node: the kubelet endpoint listens there.
const hostIP = "127.0.0.1"

// status is what the pod's status should say now, in the fields a kubelet owns and no others.
func (m *machine) status() corev1.PodStatus {
	now := m.env.now()
	s := corev1.PodStatus{
		ObservedGeneration: m.pod.Generation,
		HostIP:             hostIP,
		HostIPs:            []corev1.HostIP{{IP: hostIP}},
		StartTime:          m.pod.Status.StartTime,
	}
	if s.StartTime == nil {
		s.StartTime = ptr.To(stamp(m.began))
	}
	if m.ip.IsValid() && m.sandboxUp() {
		s.PodIP = m.ip.String()
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
	s.InitContainerStatuses = m.initStatuses(now)
	for _, c := range m.containers {
		s.ContainerStatuses = append(s.ContainerStatuses, c.status(now.Before(m.initDone)))
	}
	s.Phase = m.phase()
	s.Conditions = m.conditions(s.Phase, now)
	return s
}

// sandboxUp reports that the pod got as far as having an address, which it then keeps.
func (m *machine) sandboxUp() bool {
	if m.pod.Status.PodIP != "" {
		return true
	}
	for _, c := range m.containers {
		if c.starts > 0 {
			return true
		}
	}
	return false
}

func (m *machine) phase() corev1.PodPhase {
	var waiting, up, ended, failed int
	for _, c := range m.containers {
		switch {
		case c.isRunning():
			up++
		case c.phase == exited:
			ended++
			if c.end.ExitCode != 0 {
				failed++
			}
		case c.starts == 0 && c.restarts0 == 0:
			waiting++
		default:
			up++ // between two runs
		}
	}
	switch {
	case waiting > 0:
		return corev1.PodPending
	case up > 0:
		return corev1.PodRunning
	case failed > 0:
		return corev1.PodFailed
	default:
		return corev1.PodSucceeded
	}
}

func (m *machine) conditions(phase corev1.PodPhase, now time.Time) []corev1.PodCondition {
	condition := func(t corev1.PodConditionType, ok bool, reason, message string) corev1.PodCondition {
		c := corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, ObservedGeneration: m.pod.Generation}
		if !ok {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, reason, message
		}
		c.LastTransitionTime = stamp(now)
		for _, old := range m.pod.Status.Conditions {
			if old.Type == t && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		return c
	}

	var unready, gates []string
	anyUp := false
	for _, c := range m.containers {
		if !c.ready {
			unready = append(unready, c.name)
		}
		anyUp = anyUp || c.isRunning()
	}
	for _, gate := range m.pod.Spec.ReadinessGates {
		status := corev1.ConditionStatus("absent")
		for _, c := range m.pod.Status.Conditions {
			if c.Type == gate.ConditionType {
				status = c.Status
			}
		}
		if status != corev1.ConditionTrue {
			gates = append(gates, fmt.Sprintf("%s is %s", gate.ConditionType, status))
		}
	}

	reason, message := "ContainersNotReady", fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
	if phase == corev1.PodSucceeded {
		reason, message = "PodCompleted", ""
	}
	containersReady := len(unready) == 0
	ready := condition(corev1.PodReady, containersReady, reason, message)
	if containersReady && len(gates) > 0 {
		ready = condition(corev1.PodReady, false, "ReadinessGatesNotReady", "readiness gates not True: "+strings.Join(gates, ", "))
	}
	return []corev1.PodCondition{
		condition(corev1.PodReadyToStartContainers, anyUp || (!m.dying && m.sandboxUp() && phase != corev1.PodSucceeded && phase != corev1.PodFailed), "", ""),
		condition(corev1.PodInitialized, !now.Before(m.initDone), "ContainersNotInitialized", "init containers are still running"),
		ready,
		condition(corev1.ContainersReady, containersReady, reason, message),
	}
}

func (c *container) status(initialising bool) corev1.ContainerStatus {
	s := corev1.ContainerStatus{
		Name:         c.name,
		Image:        c.image,
		Ready:        c.ready,
		RestartCount: c.restartCount(),
		Started:      ptr.To(c.isRunning() && c.listening),
	}
	if c.starts > 0 {
		// Of the newest run, also while the next one's image is being pulled.
		s.Image, s.ContainerID, s.ImageID = c.ran, c.id, c.imageID
	}
	s.LastTerminationState.Terminated = c.last
	switch {
	case c.isRunning():
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: stamp(c.startedAt)}
	case c.phase == exited, c.phase == creating && c.end != nil:
		s.State.Terminated = c.end
	case initialising:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	default:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.reason, Message: c.message}
		if c.end != nil {
			s.LastTerminationState.Terminated = c.end
		}
	}
	return s
}

// initStatuses shows init containers as waiting until their time is over and as completed, or for
// sidecars as running, from then on. They do nothing else.
func (m *machine) initStatuses(now time.Time) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for i := range m.pod.Spec.InitContainers {
		spec := &m.pod.Spec.InitContainers[i]
		s := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, Started: ptr.To(false)}
		sidecar := spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
		switch {
		case now.Before(m.initDone):
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
		default:
			s.ImageID = imageID(spec.Image)
			s.ContainerID = containerID(m.pod, &container{name: spec.Name, starts: 1})
			s.Ready = true
			if sidecar && !m.done() {
				s.Started = ptr.To(true)
				s.State.Running = &corev1.ContainerStateRunning{StartedAt: stamp(m.initDone)}
			} else {
				s.Ready = !sidecar
				s.State.Terminated = &corev1.ContainerStateTerminated{
					Reason: "Completed", StartedAt: stamp(m.began), FinishedAt: stamp(m.initDone), ContainerID: s.ContainerID,
				}
			}
		}
		list = append(list, s)
	}
	return list
}

// patch is a strategic merge patch from what the API says to what it should say, or nil when they
// agree. It has no resourceVersion and names only conditions a kubelet owns, so it neither fails on
// nor undoes what others write beside it; the UID keeps it off a successor of the same name.
func (m *machine) patch() []byte {
	if m.over() {
		return nil
	}
	old, want := &m.pod.Status, m.status()
	changes := map[string]any{}
	differ := func(name string, a, b any) {
		if !equality.Semantic.DeepEqual(a, b) {
			changes[name] = b
		}
	}
	differ("phase", old.Phase, want.Phase)
	differ("hostIP", old.HostIP, want.HostIP)
	differ("startTime", old.StartTime, want.StartTime)
	differ("containerStatuses", old.ContainerStatuses, want.ContainerStatuses)
	differ("initContainerStatuses", old.InitContainerStatuses, want.InitContainerStatuses)
	if !equality.Semantic.DeepEqual(old.HostIPs, want.HostIPs) {
		changes["hostIPs"] = []any{map[string]string{"$patch": "replace"}, want.HostIPs[0]}
	}
	if want.PodIP != "" && want.PodIP != old.PodIP {
		changes["podIP"] = want.PodIP
		changes["podIPs"] = []any{map[string]string{"$patch": "replace"}, want.PodIPs[0]}
	}
	var conditions []map[string]any
	for _, c := range want.Conditions {
		if !sameCondition(old.Conditions, c) {
			conditions = append(conditions, conditionPatch(c))
		}
	}
	if conditions != nil {
		changes["conditions"] = conditions
	}
	if len(changes) == 0 && (m.dying || m.pod.Generation == old.ObservedGeneration) {
		return nil // the generation that a deletion brings is not worth a write
	}
	changes["observedGeneration"] = want.ObservedGeneration
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": m.pod.UID},
		"status":   changes,
	})
	if err != nil {
		panic(err) // API types always marshal
	}
	return data
}

// conditionPatch spells out every field: a merge keeps what a patch doesn't name, so the reason of
// a condition that became True would stay.
func conditionPatch(c corev1.PodCondition) map[string]any {
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{
		"type": c.Type, "status": c.Status, "reason": orNull(c.Reason), "message": orNull(c.Message),
		"lastTransitionTime": c.LastTransitionTime, "observedGeneration": c.ObservedGeneration,
	}
}

// sameCondition ignores observedGeneration, which moves with every edit of the spec.
func sameCondition(list []corev1.PodCondition, c corev1.PodCondition) bool {
	for _, old := range list {
		if old.Type == c.Type {
			return old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message
		}
	}
	return false
}

var _ process = (*stub.Server)(nil)
