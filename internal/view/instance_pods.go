package view

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

const (
	maxPods   = 16
	maxEvents = 25
)

// InstancePods is the live pods of an Instance, the worst first.
type InstancePods struct {
	State string        `json:"state"`
	Total int           `json:"total"`
	Items []InstancePod `json:"items"`
}

// InstancePod is one pod.
type InstancePod struct {
	Name            string `json:"name"`
	UID             string `json:"uid"`
	Phase           string `json:"phase"`
	Reason          string `json:"reason,omitempty"`
	Message         string `json:"message,omitempty"`
	Node            string `json:"node,omitempty"`
	Runner          string `json:"runner,omitempty"`
	Ordinal         string `json:"ordinal,omitempty"`
	Incarnation     string `json:"incarnation,omitempty"`
	Revision        string `json:"revision,omitempty"`
	ContainersReady bool   `json:"containersReady"`
	Serving         bool   `json:"serving"`
	ServingSince    string `json:"servingSince,omitempty"`
	Restarts        int64  `json:"restarts"`
	Deleting        bool   `json:"deleting"`
	CreatedAt       string `json:"createdAt,omitempty"`

	rank int
}

// InstanceEvents is Warning events, the newest first.
type InstanceEvents struct {
	State string          `json:"state"`
	Total int             `json:"total"`
	Items []InstanceEvent `json:"items"`
}

// InstanceEvent is one Warning event.
type InstanceEvent struct {
	Object   string `json:"object"`
	Reason   string `json:"reason"`
	Message  string `json:"message,omitempty"`
	Count    int32  `json:"count"`
	LastSeen string `json:"lastSeen,omitempty"`

	at time.Time
}

// Issue codes of pods and events.
const (
	IssuePodsUnavailable     = "PodsUnavailable"
	IssuePodsTruncated       = "PodsTruncated"
	IssuePodIdentityRejected = "PodIdentityRejected"
	IssueEventsUnavailable   = "EventsUnavailable"
	IssueEventsTruncated     = "EventsTruncated"
)

// ranks of pods, the worst first.
const (
	rankFailed = iota
	rankStuck
	rankUnscheduled
	rankNotReady
	rankNotServing
	rankServing
)

// owned are the pods among those read that the replica controls, the worst first.
func (b *instanceBuilder) owned(r *replicaView) (out []InstancePod, rejected []string) {
	for i := range b.in.Pods.Items {
		p := &b.in.Pods.Items[i]
		if !controlledByReplica(r, p.OwnerReferences) || p.Namespace != r.Namespace || p.UID == "" {
			rejected = append(rejected, safe(p.Name))
			continue
		}
		out = append(out, podView(p))
	}
	slices.SortFunc(out, func(a, c InstancePod) int {
		if a.rank != c.rank {
			return a.rank - c.rank
		}
		return strings.Compare(a.Name, c.Name)
	})
	slices.Sort(rejected)
	return out, rejected
}

func controlledByReplica(r *replicaView, refs []metav1.OwnerReference) bool {
	for _, ref := range refs {
		if ref.Controller != nil && *ref.Controller {
			return ref.Kind == v1beta1.InferenceReplicaKind && ref.Name == r.Name && ref.UID == r.UID
		}
	}
	return false
}

func (b *instanceBuilder) pods(r *replicaView) {
	in := &b.in.Pods
	if in.Failed != "" {
		b.issue(IssuePodsUnavailable, safe(in.Failed))
		return
	}
	items, rejected := b.owned(r)
	for _, name := range rejected[:min(len(rejected), 4)] {
		b.issue(IssuePodIdentityRejected, name)
	}
	b.out.Pods = InstancePods{State: EvidenceObserved, Total: len(items), Items: append([]InstancePod{}, items[:min(len(items), maxPods)]...)}
	if in.Truncated || len(items) > maxPods {
		b.issue(IssuePodsTruncated, fmt.Sprintf("%d pods read, %d shown", len(items), len(b.out.Pods.Items)))
	}
}

func podView(p *corev1.Pod) InstancePod {
	out := InstancePod{
		Name: safe(p.Name), UID: safe(string(p.UID)), Phase: safe(string(p.Status.Phase)), Reason: safe(p.Status.Reason), Message: safe(p.Status.Message),
		Node: safe(p.Spec.NodeName), Runner: safe(p.Labels[v1beta1.RunnerLabel]), Ordinal: safe(p.Labels[v1beta1.PodOrdinalLabel]),
		Incarnation: safe(p.Labels[v1beta1.InstanceIncarnationLabel]), Revision: safe(p.Labels[v1beta1.RevisionHashLabel]),
		Deleting: p.DeletionTimestamp != nil, CreatedAt: timePtr(&p.CreationTimestamp), rank: rankServing,
	}
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		yes := c.Status == corev1.ConditionTrue
		switch c.Type {
		case corev1.ContainersReady:
			out.ContainersReady = yes
		case v1beta1.ServingReadinessGate:
			out.Serving = yes
			if yes {
				out.ServingSince = timePtr(&c.LastTransitionTime)
			}
		case corev1.PodScheduled:
			if !yes && out.Reason == "" {
				out.Reason, out.Message, out.rank = safe(c.Reason), safe(c.Message), rankUnscheduled
			}
		}
	}
	out.Serving = out.Serving && out.ContainersReady
	stuck := false
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			c := &list[i]
			out.Restarts += int64(max(c.RestartCount, 0))
			if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				stuck = true
				out.Reason, out.Message = safe(w.Reason), safe(w.Message)
			}
		}
	}
	switch {
	case p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded:
		out.rank = rankFailed
	case stuck:
		out.rank = rankStuck
	case out.rank == rankUnscheduled:
	case !out.ContainersReady:
		out.rank = rankNotReady
	case !out.Serving:
		out.rank = rankNotServing
	}
	return out
}

// gateSince is when the pod in a name slot went into rotation, as the gate says.
func (b *instanceBuilder) gateSince(ordinal int32) string {
	for i := range b.out.Pods.Items {
		p := &b.out.Pods.Items[i]
		if p.Serving && !p.Deleting && p.Ordinal == strconv.Itoa(int(ordinal)) {
			return p.ServingSince
		}
	}
	return ""
}

// EventTargets are the UIDs of the replica and of the shown pods, whose events
// belong to the report.
func EventTargets(s *v1beta1.InferenceService, in *InstanceReads) []string {
	r := judge(s, &in.Replicas).one(in.Component)
	if r == nil {
		return nil
	}
	out := []string{string(r.UID)}
	pods, _ := (&instanceBuilder{in: in}).owned(r)
	for _, p := range pods[:min(len(pods), maxPods)] {
		out = append(out, p.UID)
	}
	return out
}

// namesInstance finds the Instance that an event of a replica is about.
var namesInstance = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bInstance ([a-z]+-\d+)\b`) })

func (b *instanceBuilder) events(r *replicaView) {
	in := &b.in.Events
	if in.Failed != "" {
		b.issue(IssueEventsUnavailable, safe(in.Failed))
		return
	}
	wanted := map[string]bool{string(r.UID): true}
	for _, p := range b.out.Pods.Items {
		wanted[p.UID] = true
	}
	items := []InstanceEvent{}
	for i := range in.Items {
		e := &in.Items[i]
		if e.Type != corev1.EventTypeWarning || !wanted[string(e.InvolvedObject.UID)] || e.InvolvedObject.Namespace != r.Namespace {
			continue
		}
		about := namesInstance().FindStringSubmatch(clip(e.Message, maxScan))
		if e.InvolvedObject.UID == r.UID && about != nil && about[1] != fmt.Sprintf("%s-%d", b.in.Component, b.in.Index) {
			continue // about another Instance
		}
		at := lastSeen(e)
		out := InstanceEvent{Object: safe(e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name), Reason: safe(e.Reason), Message: safe(e.Message), Count: count(e), at: at}
		if !at.IsZero() {
			out.LastSeen = stamp(at)
		}
		items = append(items, out)
	}
	slices.SortStableFunc(items, func(x, y InstanceEvent) int {
		if d := y.at.Compare(x.at); d != 0 {
			return d
		}
		return strings.Compare(x.Object+x.Reason+x.Message, y.Object+y.Reason+y.Message)
	})
	b.out.Events = InstanceEvents{State: EvidenceObserved, Total: len(items), Items: items[:min(len(items), maxEvents)]}
	if in.Truncated || len(items) > maxEvents {
		b.issue(IssueEventsTruncated, fmt.Sprintf("%d Warning events read, %d shown", len(items), len(b.out.Events.Items)))
	}
}

// lastSeen is when an event last happened; new and old API keep it in different fields.
func lastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

func count(e *corev1.Event) int32 {
	if e.Series != nil {
		return max(e.Series.Count, 1)
	}
	return max(e.Count, 1)
}
