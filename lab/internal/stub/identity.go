package stub

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Identity is who a server is: what its pod's labels say now.
type Identity struct {
	Pod       types.NamespacedName
	Service   string
	Component string
	Revision  string
	Token     string
	Image     string
}

// imagePrefix is where the lab's own images are said to come from.
const imagePrefix = "lab.ome.io/"

// routerPairingEnv on a router, set to "off", makes it pick a decoder without regard to tokens.
const routerPairingEnv = "OME_LAB_ROUTER_PAIRING"

// ComponentOf says what a container of a pod serves as. serves is false when it has no listener:
// a worker of a multi-pod Instance, or a container without ports that is not a stub.
func ComponentOf(pod *corev1.Pod, c *corev1.Container) (component string, serves bool) {
	if pod.Labels[LabelRunner] == "worker" {
		return Plain, false
	}
	if name, ok := strings.CutPrefix(c.Image, imagePrefix); ok {
		name, _, _ = strings.Cut(name, ":")
		name, _, _ = strings.Cut(name, "@")
		if known(name) {
			return name, true
		}
	}
	if label := pod.Labels[LabelComponent]; known(label) && mainContainer(pod) == c.Name {
		return label, true
	}
	return Plain, len(Ports(c)) > 0
}

func known(component string) bool {
	return component == Engine || component == Decoder || component == Router
}

// mainContainer is the first container with a port, or the first.
func mainContainer(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		if len(Ports(&pod.Spec.Containers[i])) > 0 {
			return pod.Spec.Containers[i].Name
		}
	}
	return pod.Spec.Containers[0].Name
}

// DefaultPort is what a stub listens on when its container names no port.
const DefaultPort = 8080

// Ports returns the TCP ports a container declares.
func Ports(c *corev1.Container) []int32 {
	var ports []int32
	for _, p := range c.Ports {
		if p.Protocol == "" || p.Protocol == corev1.ProtocolTCP {
			ports = append(ports, p.ContainerPort)
		}
	}
	return ports
}

func identityOf(pod *corev1.Pod, c *corev1.Container, component string) *Identity {
	service := pod.Labels[LabelService]
	if service == "" {
		service = literalEnv(c, "OME_INFERENCESERVICE_NAME")
	}
	return &Identity{
		Pod:       types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
		Service:   service,
		Component: component,
		Revision:  pod.Labels[LabelRevision],
		Token:     pod.Labels[LabelPairing],
		Image:     c.Image,
	}
}

func literalEnv(c *corev1.Container, name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// peerService is the Service a component reaches a peer through: named by the environment, or
// {service}-{peer} in its own namespace.
func peerService(c *corev1.Container, id *Identity, peer string) types.NamespacedName {
	if host := literalEnv(c, "OME_"+strings.ToUpper(peer)+"_ENDPOINT"); host != "" {
		host, _, _ = strings.Cut(host, ":")
		name, rest, _ := strings.Cut(host, ".")
		namespace, _, _ := strings.Cut(rest, ".")
		if namespace == "" {
			namespace = id.Pod.Namespace
		}
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return types.NamespacedName{Namespace: id.Pod.Namespace, Name: id.Service + "-" + peer}
}
