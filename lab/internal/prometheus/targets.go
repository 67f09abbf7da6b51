package prometheus

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/lab/internal/addr"
	"ome.io/ome/lab/internal/stub"
)

// target is a group of one in the format of file_sd_config.
type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// targets are the pods of services that have a listener, in a fixed order.
func targets(pods []*corev1.Pod) []target {
	out := []target{} // a file that holds null is not one of targets
	for _, p := range pods {
		address, ok := address(p)
		if p.Labels[stub.LabelService] == "" || p.Status.Phase != corev1.PodRunning || !ok {
			continue
		}
		out = append(out, target{
			Targets: []string{address},
			Labels: map[string]string{
				"namespace":        p.Namespace,
				"inferenceservice": p.Labels[stub.LabelService],
				"component":        p.Labels[stub.LabelComponent],
				"revision_hash":    p.Labels[stub.LabelRevision],
				"pod":              p.Name,
			},
		})
	}
	slices.SortFunc(out, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.Labels["namespace"], b.Labels["namespace"]), cmp.Compare(a.Labels["pod"], b.Labels["pod"]))
	})
	return out
}

// address is where the pod's first server listens.
func address(p *corev1.Pod) (string, bool) {
	ip, err := netip.ParseAddr(p.Status.PodIP)
	if err != nil {
		return "", false
	}
	listen, ok := addr.Listen(ip)
	if !ok {
		return "", false
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if _, serves := stub.ComponentOf(p, c); !serves {
			continue
		}
		port := stub.DefaultPort
		if ports := stub.Ports(c); len(ports) > 0 {
			port = int(ports[0])
		}
		return net.JoinHostPort(listen.String(), strconv.Itoa(port)), true
	}
	return "", false
}
