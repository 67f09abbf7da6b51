package core

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	return v1beta1.ReplicaName(service, c) + "-rev-" + hash
}

// services compares the Services that should exist with those that do.
func services(w *World, components []*component, out *Decision) {
	if w.Service == nil || w.Service.DeletionTimestamp != nil {
		return // they go with their owner
	}
	have := make(map[string]*corev1.Service, len(w.Services))
	for _, s := range w.Services {
		have[s.Name] = s
	}
	wanted, unsure := desiredServices(w, components, have)
	keep := map[string]bool{}
	for _, want := range wanted {
		keep[want.Name] = true
		got := have[want.Name]
		switch {
		case got == nil:
			out.CreateServices = append(out.CreateServices, want)
		case !metav1.IsControlledBy(got, w.Service) && anyForeign(components):
			// It belongs to the earlier service of this name and goes with it.
		case !metav1.IsControlledBy(got, w.Service) && metav1.GetControllerOf(got) != nil:
			out.Events = append(out.Events, Event{Warning: true, Reason: "ServiceNotOurs",
				Message: "Service " + got.Name + " is not controlled by this InferenceService; delete or rename it"})
		case !serves(got, want):
			next := got.DeepCopy()
			next.Labels = withAll(next.Labels, want.Labels)
			next.Annotations = withAll(next.Annotations, want.Annotations)
			next.Spec.Selector, next.Spec.PublishNotReadyAddresses = want.Spec.Selector, want.Spec.PublishNotReadyAddresses
			next.Spec.Ports = mergePorts(got.Spec.Ports, want.Spec.Ports)
			out.UpdateServices = append(out.UpdateServices, next)
		}
	}
	if unsure {
		return // what is in use can't be known, so nothing goes
	}
	for _, s := range w.Services {
		if !keep[s.Name] && metav1.IsControlledBy(s, w.Service) && s.DeletionTimestamp == nil {
			out.DeleteServices = append(out.DeleteServices, s)
		}
	}
}

func anyForeign(components []*component) bool {
	return slices.ContainsFunc(components, func(c *component) bool { return c.foreign })
}

// desiredServices also says when it can't know all of them: a component whose rows,
// replica or ports are not there yet may need more.
func desiredServices(w *World, components []*component, have map[string]*corev1.Service) (out []*corev1.Service, unsure bool) {
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
			out = append(out, service(w, c, v1beta1.ReplicaName(w.Key.Name, c.Type), ports, "", false, false))
			out = append(out, service(w, c, v1beta1.ReplicaName(w.Key.Name, c.Type)+headlessSuffix, ports, "", true, true))
		}
		for _, name := range slices.Sorted(maps.Keys(c.liveRevisions())) {
			rev, ok := c.known[name]
			if !ok || rev.Hash == "" {
				continue
			}
			base := RevisionServiceName(w.Key.Name, c.Type, rev.Hash)
			for _, s := range []*corev1.Service{
				service(w, c, base, ports, rev.Hash, false, false),
				service(w, c, base+headlessSuffix, ports, rev.Hash, true, false),
			} {
				if rev.Token != "" && c.Type != v1beta1.RouterComponent {
					s.Labels[v1beta1.PairingProtocolLabel] = rev.Token
				}
				out = append(out, s)
			}
		}
	}
	front := entry(components, have[w.Key.Name])
	if front == nil || front.foreign || front.Replica == nil || len(front.servicePorts(w)) == 0 {
		return out, true
	}
	return append(out, service(w, front, w.Key.Name, front.servicePorts(w), "", false, false)), unsure
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

func service(w *World, c *component, name string, ports []corev1.ServicePort, hash string, headless, unready bool) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Key.Namespace, Name: name, Labels: selector(w.Key.Name, c.Type),
			OwnerReferences: []metav1.OwnerReference{*ownerReference(w.Service, "InferenceService")},
		},
		Spec: corev1.ServiceSpec{
			Selector: selector(w.Key.Name, c.Type), Ports: slices.Clone(ports), PublishNotReadyAddresses: unready,
		},
	}
	if hash != "" {
		s.Labels[v1beta1.RevisionHashLabel] = hash
		s.Spec.Selector[v1beta1.RevisionHashLabel] = hash
	}
	if headless {
		s.Spec.ClusterIP = corev1.ClusterIPNone
	}
	return s
}

// serves compares only what is ours: the API server fills in the rest.
func serves(got, want *corev1.Service) bool {
	for k, v := range want.Labels {
		if got.Labels[k] != v {
			return false
		}
	}
	for k, v := range want.Annotations {
		if got.Annotations[k] != v {
			return false
		}
	}
	return maps.Equal(got.Spec.Selector, want.Spec.Selector) && got.Spec.PublishNotReadyAddresses == want.Spec.PublishNotReadyAddresses &&
		apiequality.Semantic.DeepEqual(mergePorts(got.Spec.Ports, want.Spec.Ports), got.Spec.Ports)
}

// mergePorts lays the wanted ports over the stored ones, keeping what the API
// server chose for fields that are left open.
func mergePorts(got, want []corev1.ServicePort) []corev1.ServicePort {
	out := slices.Clone(want)
	for i := range out {
		p := &out[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		for j := range got {
			if got[j].Name != p.Name {
				continue
			}
			if p.TargetPort.String() == "0" {
				p.TargetPort = got[j].TargetPort
			}
			p.NodePort = got[j].NodePort
			if p.AppProtocol == nil {
				p.AppProtocol = got[j].AppProtocol
			}
		}
	}
	return out
}
