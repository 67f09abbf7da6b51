package sim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// Piece is how the user configures one component.
type Piece struct {
	Image string
	// Sidecar is the image of a second container; empty for none.
	Sidecar string
	// Env is a variable of the main container: a change that no image patch makes.
	Env string
	// Replicas is minReplicas and, as in a pinned service, maxReplicas.
	Replicas int32
	// External leaves the count to somebody else, who writes it on the replica.
	External bool
	// Strategy is SurgeThenDrain when empty.
	Strategy v1beta1.UpdateStrategyType
	// MaxSurge and MaxUnavailable are the component's own budgets; an empty
	// MaxUnavailable is unset.
	MaxSurge       intstr.IntOrString
	MaxUnavailable string
	// Partition is how many Instances are kept back.
	Partition int32
	// MinReadySeconds delays the drain of old pods.
	MinReadySeconds int32
	// RestartPolicy is None when empty.
	RestartPolicy v1beta1.InstanceRestartPolicy
	// KeepServing is markNotReadyDuringLifecycle: false.
	KeepServing bool
	// NoRelocation is migrationPolicy.mode: Never.
	NoRelocation bool
	// Template, when set, is the rendered component, and nothing above describes it.
	Template *core.Template
}

// strategy is the strategy in force.
func (p Piece) strategy() v1beta1.UpdateStrategyType {
	if p.Strategy == "" {
		return v1beta1.SurgeThenDrain
	}
	return p.Strategy
}

// images are the images by container.
func (p Piece) images() map[string]string {
	out := map[string]string{mainContainer: p.Image}
	if p.Sidecar != "" {
		out[sidecar] = p.Sidecar
	}
	return out
}

const (
	mainContainer = "ome-container"
	sidecar       = "sidecar"
)

// template renders a piece once.
func (c *Cluster) template(kind v1beta1.ComponentType, piece Piece) *core.Template {
	if piece.Template != nil {
		return piece.Template
	}
	token := ""
	if s := c.seen.service; s != nil && s.Spec.Rollout != nil && kind != v1beta1.RouterComponent {
		token = s.Spec.Rollout.PairingProtocol
	}
	key := fmt.Sprintf("%s %+v %s %s", kind, piece, c.Settings.Lifecycle.InstanceReadyTimeout, token)
	if c.templates[key] == nil {
		t := c.render(kind, piece)
		t.PairingProtocol = token
		c.templates[key] = t
		t.Seal()
	}
	return c.templates[key]
}

// render is the smallest template that has what core reads.
func (c *Cluster) render(kind v1beta1.ComponentType, piece Piece) *core.Template {
	surge := piece.MaxSurge
	budget := &v1beta1.InstanceRollingUpdate{MaxSurge: &surge}
	if piece.MaxUnavailable != "" {
		budget.MaxUnavailable = new(intstr.Parse(piece.MaxUnavailable))
	}
	if piece.Partition > 0 {
		budget.Partition = new(piece.Partition)
	}
	t := &core.Template{
		Runners: []v1beta1.Runner{{Name: v1beta1.RunnerDefault, Size: 1, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: mainContainer, Image: piece.Image}}},
		}}},
		MinReplicas: piece.Replicas, MaxReplicas: piece.Replicas, MinReadySeconds: piece.MinReadySeconds,
		Autoscaler: &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerNone},
		Lifecycle: v1beta1.LifecycleSpec{
			UpdateStrategy: &v1beta1.UpdateStrategy{Type: piece.strategy(), RollingUpdate: budget},
			RestartPolicy:  piece.RestartPolicy,
		},
		ServicePorts: []corev1.ServicePort{{Name: "http", Port: 80}},
	}
	spec := &t.Runners[0].Template.Spec
	if piece.Sidecar != "" {
		spec.Containers = append(spec.Containers, corev1.Container{Name: sidecar, Image: piece.Sidecar})
	}
	if piece.Env != "" {
		spec.Containers[0].Env = []corev1.EnvVar{{Name: "FLAVOUR", Value: piece.Env}}
	}
	if piece.External {
		t.Autoscaler.Class, t.MaxReplicas = v1beta1.AutoscalerExternal, 100
	}
	if piece.KeepServing {
		t.Lifecycle.UpdateStrategy.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{MarkNotReadyDuringLifecycle: new(false)}
	}
	if piece.NoRelocation {
		t.Lifecycle.MigrationPolicy = &v1beta1.MigrationPolicy{Mode: v1beta1.MigrationNever}
	}
	if timeout := c.Settings.Lifecycle.InstanceReadyTimeout; timeout > 0 {
		t.Lifecycle.InstanceReadyTimeout = &metav1.Duration{Duration: timeout}
	}
	return t
}
