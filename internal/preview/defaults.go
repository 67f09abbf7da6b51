package preview

import (
	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

// Default fills in what the API server's schema adds to the pods of a service when it is
// stored. Without it a file would seem to change every pod.
func Default(s *v1beta1.InferenceService) {
	if e := s.Spec.Engine; e != nil {
		defaultPiece(&e.PodSpec, e.Runner)
	}
	if d := s.Spec.Decoder; d != nil {
		defaultPiece(&d.PodSpec, d.Runner)
	}
	if r := s.Spec.Router; r != nil {
		defaultPiece(&r.PodSpec, r.Runner)
	}
}

// DefaultRuntime does so for a runtime.
func DefaultRuntime(r *v1beta1.ServingRuntimeSpec) {
	if e := r.EngineConfig; e != nil {
		defaultPiece(&e.PodSpec, e.Runner)
	}
	if d := r.DecoderConfig; d != nil {
		defaultPiece(&d.PodSpec, d.Runner)
	}
	if o := r.RouterConfig; o != nil {
		defaultPiece(&o.PodSpec, o.Runner)
	}
}

func defaultPiece(pod *corev1.PodSpec, runner *v1beta1.RunnerSpec) {
	for _, list := range [2][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			defaultContainer(&list[i])
		}
	}
	if runner != nil {
		defaultContainer(&runner.Container)
	}
}

func defaultContainer(c *corev1.Container) {
	for i := range c.Ports {
		if c.Ports[i].Protocol == "" {
			c.Ports[i].Protocol = corev1.ProtocolTCP
		}
	}
}
