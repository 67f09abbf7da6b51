package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
)

// headlessSuffix ends the names of Services that give pods names of their own.
const headlessSuffix = "-headless"

func selector(service string, c v1beta1.ComponentType) map[string]string {
	return map[string]string{
		v1beta1.InferenceServiceLabel: service,
		v1beta1.ComponentLabel:        string(c),
		v1beta1.ManagedByLabel:        v1beta1.ManagedByOMENative,
	}
}

// RevisionServiceName is the Service that selects one revision of a component.
func RevisionServiceName(service string, c v1beta1.ComponentType, hash string) string {
	return v1beta1.RevisionServiceName(service, c, hash)
}

// wantedService is a Service as it should be: what it takes to compare it with the
// one that exists, and to build it when it must be written.
type wantedService struct {
	name  string
	c     *component
	ports []corev1.ServicePort
	// hash selects one revision; empty selects the component. token is the wire token
	// that a revision's Service is labelled with.
	hash, token       string
	headless, unready bool
}

// services compares the Services that should exist with those that do. Most passes
// find all of them as they should be, so none is built before it is found wanting.
func services(w *World, components []*component, out *Decision) {
	if w.Service == nil || w.Service.DeletionTimestamp != nil {
		return // they go with their owner
	}
	wanted, unsure := desiredServices(w, components)
	keep := make([]bool, len(w.Services))
	for i := range wanted {
		want := &wanted[i]
		at := serviceNamed(w, want.name)
		if at < 0 {
			out.CreateServices = append(out.CreateServices, want.build(w))
			continue
		}
		keep[at] = true
		got := w.Services[at]
		switch {
		case !metav1.IsControlledBy(got, w.Service) && anyForeign(components):
			// It belongs to the earlier service of this name and goes with it.
		case !metav1.IsControlledBy(got, w.Service) && metav1.GetControllerOf(got) != nil:
			out.Events = append(out.Events, Event{Warning: true, Reason: "ServiceNotOurs",
				Message: "Service " + got.Name + " is not controlled by this InferenceService; delete or rename it"})
		case !want.served(got, w):
			next, built := got.DeepCopy(), want.build(w)
			next.Labels = withAll(next.Labels, built.Labels)
			next.Spec.Selector, next.Spec.PublishNotReadyAddresses = built.Spec.Selector, built.Spec.PublishNotReadyAddresses
			next.Spec.Ports = mergePorts(got.Spec.Ports, built.Spec.Ports)
			out.UpdateServices = append(out.UpdateServices, next)
		}
	}
	if unsure {
		return // what is in use can't be known, so nothing goes
	}
	for i, s := range w.Services {
		if !keep[i] && metav1.IsControlledBy(s, w.Service) && s.DeletionTimestamp == nil {
			out.DeleteServices = append(out.DeleteServices, s)
		}
	}
}

// serviceNamed is the place of a Service in the World, -1 for none. There are a
// dozen at most.
func serviceNamed(w *World, name string) int {
	return slices.IndexFunc(w.Services, func(s *corev1.Service) bool { return s.Name == name })
}

func anyForeign(components []*component) bool {
	return slices.ContainsFunc(components, func(c *component) bool { return c.foreign })
}

// desiredServices also says when it can't know all of them: a component whose rows,
// replica or ports are not there yet may need more.
func desiredServices(w *World, components []*component) (out []wantedService, unsure bool) {
	out = make([]wantedService, 0, len(w.Services)+2)
	for _, c := range components {
		if c.foreign {
			continue
		}
		if c.unreadable != nil || (c.Declared && c.Replica == nil) {
			unsure = true
		}
		if c.Replica == nil {
			continue
		}
		ports := c.servicePorts(w)
		if len(ports) == 0 {
			unsure = unsure || c.Declared
			continue
		}
		if c.Declared {
			name := v1beta1.ReplicaName(w.Key.Name, c.Type)
			out = append(out, wantedService{name: name, c: c, ports: ports},
				wantedService{name: name + headlessSuffix, c: c, ports: ports, headless: true, unready: true})
		}
		for _, name := range c.revisionsInUse() {
			rev, ok := c.known[name]
			if !ok || rev.Hash == "" {
				continue
			}
			s := wantedService{name: RevisionServiceName(w.Key.Name, c.Type, rev.Hash), c: c, ports: ports, hash: rev.Hash}
			if c.Type != v1beta1.RouterComponent {
				s.token = rev.Token
			}
			headless := s
			headless.name, headless.headless = s.name+headlessSuffix, true
			out = append(out, s, headless)
		}
	}
	var now *corev1.Service
	if at := serviceNamed(w, w.Key.Name); at >= 0 {
		now = w.Services[at]
	}
	front := entry(components, now)
	if front == nil || front.foreign || front.Replica == nil {
		return out, true
	}
	ports := front.servicePorts(w)
	if len(ports) == 0 {
		return out, true
	}
	return append(out, wantedService{name: w.Key.Name, c: front, ports: ports}), unsure
}

// entry is the component that the front Service selects: the router where one is
// declared, else the engine. The one that is selected now stays as long as it
// serves and its successor does not.
func entry(components []*component, front *corev1.Service) *component {
	var next, now *component
	for _, c := range components {
		if !c.Declared {
			continue
		}
		if c.Type == v1beta1.RouterComponent || (c.Type == v1beta1.EngineComponent && next == nil) {
			next = c
		}
		if front != nil && front.Spec.Selector[v1beta1.ComponentLabel] == string(c.Type) {
			now = c
		}
	}
	if now != nil && next != nil && now.result.Serving > 0 && next.result.Serving == 0 {
		return now
	}
	return next
}

// servicePorts are the template's; while it can't be rendered, those of the
// component's Service as it stands.
func (c *component) servicePorts(w *World) []corev1.ServicePort {
	if c.Template != nil {
		return c.Template.ServicePorts
	}
	for _, s := range w.Services {
		if s.Name == v1beta1.ReplicaName(w.Key.Name, c.Type) {
			return s.Spec.Ports
		}
	}
	return nil
}

// build makes the whole object.
func (s *wantedService) build(w *World) *corev1.Service {
	out := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Key.Namespace, Name: s.name, Labels: selector(w.Key.Name, s.c.Type),
			OwnerReferences: []metav1.OwnerReference{*ownerReference(w.Service, "InferenceService")},
		},
		Spec: corev1.ServiceSpec{
			Selector: selector(w.Key.Name, s.c.Type), Ports: slices.Clone(s.ports), PublishNotReadyAddresses: s.unready,
		},
	}
	if s.hash != "" {
		out.Labels[v1beta1.RevisionHashLabel] = s.hash
		out.Spec.Selector[v1beta1.RevisionHashLabel] = s.hash
	}
	if s.token != "" {
		out.Labels[v1beta1.PairingProtocolLabel] = s.token
	}
	if s.headless {
		out.Spec.ClusterIP = corev1.ClusterIPNone
	}
	return out
}

// served compares only what is ours: the API server fills in the rest. It says what
// comparing with the built object would say, without building it.
func (s *wantedService) served(got *corev1.Service, w *World) bool {
	size := 3
	if s.hash != "" {
		size++
	}
	return len(got.Spec.Selector) == size && s.marks(got.Spec.Selector, w) && s.marks(got.Labels, w) &&
		(s.token == "" || got.Labels[v1beta1.PairingProtocolLabel] == s.token) &&
		got.Spec.PublishNotReadyAddresses == s.unready && samePorts(got.Spec.Ports, s.ports)
}

// marks is true when m holds all that the selector holds.
func (s *wantedService) marks(m map[string]string, w *World) bool {
	return m[v1beta1.InferenceServiceLabel] == w.Key.Name && m[v1beta1.ComponentLabel] == string(s.c.Type) &&
		m[v1beta1.ManagedByLabel] == v1beta1.ManagedByOMENative && (s.hash == "" || m[v1beta1.RevisionHashLabel] == s.hash)
}

// samePorts is true when the wanted ports laid over the stored ones change nothing.
func samePorts(got, want []corev1.ServicePort) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		a, b := mergePort(want[i], got), got[i]
		if !samePointee(a.AppProtocol, b.AppProtocol) {
			return false
		}
		a.AppProtocol, b.AppProtocol = nil, nil
		if a != b {
			return false
		}
	}
	return true
}

// mergePorts lays the wanted ports over the stored ones, keeping what the API
// server chose for fields that are left open.
func mergePorts(got, want []corev1.ServicePort) []corev1.ServicePort {
	out := slices.Clone(want)
	for i := range out {
		out[i] = mergePort(out[i], got)
	}
	return out
}

func mergePort(p corev1.ServicePort, got []corev1.ServicePort) corev1.ServicePort {
	if p.Protocol == "" {
		p.Protocol = corev1.ProtocolTCP
	}
	for j := range got {
		if got[j].Name != p.Name {
			continue
		}
		if t := p.TargetPort; t.Type == intstr.Int && t.IntVal == 0 || t.Type == intstr.String && t.StrVal == "0" {
			p.TargetPort = got[j].TargetPort
		}
		p.NodePort = got[j].NodePort
		if p.AppProtocol == nil {
			p.AppProtocol = got[j].AppProtocol
		}
	}
	return p
}
