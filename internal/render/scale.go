package render

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
)

// Autoscaler sources, as they appear in status.
const (
	ScalerFromService = "isvc"
	ScalerFromRuntime = "runtime"
	ScalerFromDefault = "default"
)

// bounds resolves the replica bounds. An Instance count is never below one, and a maximum below
// the minimum is raised to it.
func bounds(own, base *piece, operator config.Deploy, c v1beta1.ComponentType) (least, most int32) {
	least, most = operator.DefaultMinReplicas, operator.DefaultMaxReplicas.For(string(c))
	if n := firstSet(own.MinReplicas, base.MinReplicas); n != nil {
		least = int32(min(*n, math.MaxInt32))
	}
	// A maximum of zero counts as unset.
	for _, n := range []*int{base.MaxReplicas, own.MaxReplicas} {
		if n != nil && *n > 0 {
			most = int32(min(*n, math.MaxInt32))
		}
	}
	least = max(least, 1)
	return least, max(least, most)
}

// autoscaler takes the whole block from the first layer that has one.
func autoscaler(own, base *piece) (*v1beta1.ComponentAutoscaler, string) {
	switch {
	case own.Autoscaler != nil:
		return withClass(own.Autoscaler), ScalerFromService
	case base.Autoscaler != nil:
		return withClass(base.Autoscaler), ScalerFromRuntime
	}
	return &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerHPA}, ScalerFromDefault
}

func withClass(in *v1beta1.ComponentAutoscaler) *v1beta1.ComponentAutoscaler {
	out := in.DeepCopy()
	if out.Class == "" {
		out.Class = v1beta1.AutoscalerHPA
	}
	return out
}

// defaultPort is published when no container names a port.
const defaultPort = 8080

// servicePorts publishes the ports of the main container, which is the first.
func servicePorts(spec *corev1.PodSpec, appProtocols map[string]string) []corev1.ServicePort {
	ports := spec.Containers[0].Ports
	if len(ports) == 0 {
		ports = []corev1.ContainerPort{{Name: "http", ContainerPort: defaultPort}}
	}
	var out []corev1.ServicePort
	for i, p := range ports {
		port := corev1.ServicePort{
			Name:       p.Name,
			Port:       p.ContainerPort,
			TargetPort: intstr.FromInt32(p.ContainerPort),
			Protocol:   p.Protocol,
		}
		if port.Name == "" && (i > 0 || len(ports) > 1) {
			port.Name = "port-" + port.TargetPort.String()
		}
		if port.Name == "" {
			port.Name = "http"
		}
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		if protocol, ok := appProtocols[port.Name]; ok {
			port.AppProtocol = &protocol
		}
		out = append(out, port)
	}
	return out
}
