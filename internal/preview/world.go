package preview

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/sim"
)

// begin is the cluster before the change.
func begin(in *Input) (*sim.Cluster, bool) {
	now := in.Now.Truncate(time.Second)
	if in.Live == nil {
		return rested(in, now)
	}
	c := sim.NewPreview(in.Old.Service, in.Old.Templates, in.Settings, now)
	c.Policies(in.Policies)
	pods := make([]*corev1.Pod, 0, len(in.Live.Pods))
	for _, p := range in.Live.Pods {
		if slices.ContainsFunc(in.Live.Replicas, func(r *v1beta1.InferenceReplica) bool { return metav1.IsControlledBy(p, r) }) {
			pods = append(pods, willing(p))
		}
	}
	c.Load(in.Live.Replicas, in.Live.Revisions, pods)
	c.Grace = max(c.Grace, in.Timing.ShutDown)
	return c, true
}

// rested brings a service up on the old spec, in no time.
func rested(in *Input, now time.Time) (*sim.Cluster, bool) {
	s := in.Old.Service.DeepCopy()
	s.Status = v1beta1.InferenceServiceStatus{} // of another cluster's making, if any
	delete(s.Annotations, v1beta1.RolloutPausedAnnotation)
	set := in.Settings
	set.Lifecycle.ScaleUpPodBatchSize = 0
	c := sim.NewPreview(s, in.Old.Templates, set, now)
	c.Policies(in.Policies)
	p := newPlayer(c, Timing{}, in.Old.Templates)
	if !p.play(func() bool { return reached(c, in.Old.Templates) == atGoal }) || reached(c, in.Old.Templates) != atGoal {
		return nil, false
	}
	c.Settings = in.Settings
	c.Grace = max(c.Grace, in.Timing.ShutDown)
	c.Moves = nil
	return c, true
}

// willing is a live pod as the preview assumes it to be: what runs goes on, and what
// doesn't is going to.
func willing(pod *corev1.Pod) *corev1.Pod {
	p := pod.DeepCopy()
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return p
	}
	p.Spec.SchedulingGates = nil
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue
	})
	up := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.ContainersReady && c.Status == corev1.ConditionTrue
	})
	if !up {
		p.Status.ContainerStatuses = nil
		return p
	}
	// A container runtime spells images out in full.
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		for k := range p.Spec.Containers {
			if p.Spec.Containers[k].Name == s.Name && s.State.Running != nil {
				s.Image = p.Spec.Containers[k].Image
			}
		}
	}
	return p
}

// Previous is a component as it may have been before: the same, with another image in its
// main container. It stands for a spec that nobody gave.
func Previous(t *core.Template) *core.Template {
	out := new(*t)
	out.Runners = make([]v1beta1.Runner, len(t.Runners))
	for i := range t.Runners {
		out.Runners[i] = *t.Runners[i].DeepCopy()
		if list := out.Runners[i].Template.Spec.Containers; len(list) > 0 {
			list[0].Image += "-before"
		}
	}
	out.Seal()
	return out
}
