package controller

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/config"
)

// snapshot assembles the World of one service from the caches. It copies no
// object: core only reads them.
func snapshot(s stores, key types.NamespacedName, set config.Settings, templates *templateCache, now time.Time) core.World {
	at := key.String()
	w := core.World{Key: key, Now: now, Settings: set}
	if isvc, ok := getAs[*v1beta1.InferenceService](s[kindService], at); ok {
		w.Service = isvc
	}
	w.Services = sorted(listOf[*corev1.Service](s[kindCoreService].Index(byService, at)))
	scalersOf(s, at, &w)

	replicas := map[v1beta1.ComponentType]*v1beta1.InferenceReplica{}
	for _, r := range listOf[*v1beta1.InferenceReplica](s[kindReplica].Index(byService, at)) {
		// A replica under another name isn't one that a service projects.
		if r.Name == v1beta1.ReplicaName(key.Name, r.Spec.Component) {
			replicas[r.Spec.Component] = r
		}
	}
	pods := group(sorted(listOf[*corev1.Pod](s[kindPod].Index(byService, at))))
	revisions := group(sorted(listOf[*appsv1.ControllerRevision](s[kindRevision].Index(byService, at))))
	routed := routedPods(listOf[*discoveryv1.EndpointSlice](s[kindSlice].Index(byService, at)), w.Services)

	rendered := templates.render(s, w.Service, set)
	for _, c := range v1beta1.Components() {
		r, hasReplica := replicas[c]
		t, declared := rendered[c]
		declared = declared && (!t.Unsure || hasReplica)
		if !declared && !hasReplica {
			continue
		}
		component := core.Component{
			Type: c, Declared: declared, Template: t.Template, TemplateError: t.Err,
			Replica: r, Pods: pods[c], Routed: routed,
		}
		if r != nil {
			component.Revisions = ownedBy(revisions[c], r.UID)
		}
		w.Components = append(w.Components, component)
	}
	return w
}

// sorted puts objects into an order that doesn't depend on the cache's.
func sorted[T metav1.Object](objs []T) []T {
	slices.SortFunc(objs, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return objs
}

func group[T metav1.Object](objs []T) map[v1beta1.ComponentType][]T {
	out := map[v1beta1.ComponentType][]T{}
	for _, o := range objs {
		c := v1beta1.ComponentType(o.GetLabels()[v1beta1.ComponentLabel])
		out[c] = append(out[c], o)
	}
	return out
}

// ownedBy leaves out revisions of an earlier replica of the same name: the
// garbage collector is about to remove them.
func ownedBy(revisions []*appsv1.ControllerRevision, owner types.UID) []*appsv1.ControllerRevision {
	return slices.DeleteFunc(revisions, func(cr *appsv1.ControllerRevision) bool {
		ref := metav1.GetControllerOf(cr)
		return ref == nil || ref.UID != owner
	})
}

// routedPods are the pods that some EndpointSlice offers as ready. A Service
// that publishes unready pods offers a pod for as long as it exists, and nobody
// routes traffic by it; a slice whose Service is gone may still be in use.
func routedPods(endpointSlices []*discoveryv1.EndpointSlice, services []*corev1.Service) map[types.UID]bool {
	quiet := map[string]bool{}
	for _, svc := range services {
		if svc.Spec.PublishNotReadyAddresses {
			quiet[svc.Name] = true
		}
	}
	routed := map[types.UID]bool{}
	for _, slice := range endpointSlices {
		if quiet[slice.Labels[discoveryv1.LabelServiceName]] {
			continue
		}
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if e.TargetRef == nil || e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			routed[e.TargetRef.UID] = true
		}
	}
	return routed
}
