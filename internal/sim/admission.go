package sim

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// refuse says whether the API server turns the pod down, and remembers it for the
// controller's next pass.
func (c *Cluster) refuse(kind v1beta1.ComponentType, p *corev1.Pod) bool {
	var why core.Refusal
	listed := 0
	for _, other := range c.actual.pods {
		if other.Status.Phase != corev1.PodFailed && other.Status.Phase != corev1.PodSucceeded {
			listed++
		}
	}
	bad := ""
	for _, k := range p.Spec.Containers {
		if strings.Contains(k.Image, " ") {
			bad = k.Image
		}
	}
	event := "refused"
	switch {
	case bad != "":
		why = core.Refusal{Kind: core.RefusedInvalid, Text: fmt.Sprintf("spec.containers[0].image: Invalid value: %q", bad)}
		event = "invalid pod"
	case c.WebhookDown:
		why = core.Refusal{Kind: core.RefusedOther, Text: "admission webhook \"example.com\" denied the request"}
	case c.Quota > 0 && listed >= c.Quota:
		why = core.Refusal{Kind: core.RefusedQuota, Text: fmt.Sprintf("exceeded quota: pods, requested: pods=1, used: pods=%d, limited: pods=%d", listed, c.Quota)}
		event = "quota exceeded"
	default:
		return false
	}
	c.happens(event, p)
	c.turnDown(kind, p, why)
	return true
}

// turnDown remembers an answer for the controller's next pass.
func (c *Cluster) turnDown(kind v1beta1.ComponentType, p *corev1.Pod, why core.Refusal) {
	if c.refused[kind] == nil {
		c.refused[kind] = map[string]core.Refusal{}
	}
	if c.refused[kind][p.Name] != why {
		c.logf("%s: refused %s: %s", kind, short(p), why.Kind)
	}
	c.refused[kind][p.Name] = why
}

// forgetRefusals lets go of refusals of pods that are no longer asked for, or are
// about to be asked for again.
func (c *Cluster) forgetRefusals(cd *core.ComponentDecision) {
	if len(c.refused[cd.Type]) == 0 {
		return
	}
	again := map[string]core.Refusal{}
	for _, a := range cd.Pods {
		if why, ok := c.refused[cd.Type][a.Pod.Name]; ok && a.Verb == core.PodCreate {
			again[a.Pod.Name] = why
		}
	}
	c.refused[cd.Type] = again
}

// removeMail takes consumed mailboxes off the replica, unless a newer value is there.
func (c *Cluster) removeMail(cd *core.ComponentDecision) {
	r := c.actual.replicas[cd.Type]
	if len(cd.RemoveReplicaAnnotations) == 0 || r == nil || c.lost("mailboxes of %s", cd.Type) {
		return
	}
	r = r.DeepCopy()
	for key, value := range cd.RemoveReplicaAnnotations {
		if r.Annotations[key] == value {
			delete(r.Annotations, key)
		}
	}
	r.ResourceVersion = c.next()
	c.actual.replicas[cd.Type] = r
	c.landed(KindReplica)
}
