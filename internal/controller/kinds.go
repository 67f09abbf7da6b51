package controller

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/keda"
	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// kind is a watched kind.
type kind string

const (
	kindService        kind = "InferenceService"
	kindReplica        kind = "InferenceReplica"
	kindPod            kind = "Pod"
	kindRevision       kind = "ControllerRevision"
	kindCoreService    kind = "Service"
	kindSlice          kind = "EndpointSlice"
	kindScaler         kind = "HorizontalPodAutoscaler"
	kindRuntime        kind = "ServingRuntime"
	kindClusterRuntime kind = "ClusterServingRuntime"
	kindModel          kind = "BaseModel"
	kindClusterModel   kind = "ClusterBaseModel"
	kindConfigMap      kind = "ConfigMap"
	// kindScaledObject is watched only where the cluster serves it.
	kindScaledObject kind = keda.ScaledObjectKind
	// kindPolicy is watched only where the manager found it when it started.
	kindPolicy kind = "RolloutPolicy"
)

// kinds are the kinds that every cluster serves, in the order their caches are waited for.
var kinds = []kind{
	kindService, kindReplica, kindPod, kindRevision, kindCoreService, kindSlice, kindScaler,
	kindRuntime, kindClusterRuntime, kindModel, kindClusterModel, kindConfigMap,
}

// newObject returns an empty object of a kind.
func newObject(k kind) client.Object {
	switch k {
	case kindService:
		return &v1beta1.InferenceService{}
	case kindReplica:
		return &v1beta1.InferenceReplica{}
	case kindPod:
		return &corev1.Pod{}
	case kindRevision:
		return &appsv1.ControllerRevision{}
	case kindCoreService:
		return &corev1.Service{}
	case kindSlice:
		return &discoveryv1.EndpointSlice{}
	case kindScaler:
		return &autoscalingv2.HorizontalPodAutoscaler{}
	case kindScaledObject:
		return &keda.ScaledObject{}
	case kindPolicy:
		return &v1beta1.RolloutPolicy{}
	case kindRuntime:
		return &v1beta1.ServingRuntime{}
	case kindClusterRuntime:
		return &v1beta1.ClusterServingRuntime{}
	case kindModel:
		return &v1beta1.BaseModel{}
	case kindClusterModel:
		return &v1beta1.ClusterBaseModel{}
	case kindConfigMap:
		return &corev1.ConfigMap{}
	}
	panic(fmt.Sprintf("controller: unknown kind %q", string(k)))
}

// kindOf is the inverse of newObject.
func kindOf(obj client.Object) kind {
	switch obj.(type) {
	case *v1beta1.InferenceService:
		return kindService
	case *v1beta1.InferenceReplica:
		return kindReplica
	case *corev1.Pod:
		return kindPod
	case *appsv1.ControllerRevision:
		return kindRevision
	case *corev1.Service:
		return kindCoreService
	case *discoveryv1.EndpointSlice:
		return kindSlice
	case *autoscalingv2.HorizontalPodAutoscaler:
		return kindScaler
	case *keda.ScaledObject:
		return kindScaledObject
	case *v1beta1.RolloutPolicy:
		return kindPolicy
	case *v1beta1.ServingRuntime:
		return kindRuntime
	case *v1beta1.ClusterServingRuntime:
		return kindClusterRuntime
	case *v1beta1.BaseModel:
		return kindModel
	case *v1beta1.ClusterBaseModel:
		return kindClusterModel
	case *corev1.ConfigMap:
		return kindConfigMap
	}
	panic(fmt.Sprintf("controller: %T is not a watched kind", obj))
}

// labelled selects what belongs to some service. Only that is watched of the
// kinds that everybody uses, so that the manager costs what its services cost
// and not what the cluster holds.
func labelled() labels.Selector {
	s, err := labels.Parse(v1beta1.InferenceServiceLabel)
	if err != nil {
		panic(err) // a constant
	}
	return s
}

// Indexes of the caches.
const (
	byService = "byService"
	byRuntime = "byRuntime"
	byModel   = "byModel"
	byPolicy  = "byPolicy"
)

// serviceLabelIndex finds objects by the service that their label names.
func serviceLabelIndex(obj any) ([]string, error) {
	o, ok := obj.(metav1.Object)
	if !ok {
		return nil, nil
	}
	name := o.GetLabels()[v1beta1.InferenceServiceLabel]
	if name == "" {
		return nil, nil
	}
	return []string{o.GetNamespace() + "/" + name}, nil
}

// parentIndex finds the replicas that a service projects. A standalone replica
// has no parent and belongs to no service.
func parentIndex(obj any) ([]string, error) {
	r, ok := obj.(*v1beta1.InferenceReplica)
	if !ok || r.Spec.ParentRef == nil {
		return nil, nil
	}
	return []string{r.Namespace + "/" + r.Spec.ParentRef.Name}, nil
}

// A cluster-scoped object and one of the service's namespace have different
// index keys: a service may refer to either by the same name.
func clusterRef(name string) string          { return "cluster/" + name }
func localRef(namespace, name string) string { return "local/" + namespace + "/" + name }

// runtimeIndex finds services by the runtimes that their reference may lead to.
func runtimeIndex(obj any) ([]string, error) {
	s, ok := obj.(*v1beta1.InferenceService)
	if !ok || s.Spec.Runtime == nil {
		return nil, nil
	}
	ref := s.Spec.Runtime
	return []string{clusterRef(ref.Name), localRef(s.Namespace, ref.Name)}, nil
}

// modelIndex finds services by their model.
func modelIndex(obj any) ([]string, error) {
	s, ok := obj.(*v1beta1.InferenceService)
	if !ok || s.Spec.Model == nil {
		return nil, nil
	}
	ref := s.Spec.Model
	return []string{clusterRef(ref.Name), localRef(s.Namespace, ref.Name)}, nil
}

// policyIndex finds services by the policies that their groups refer to.
func policyIndex(obj any) ([]string, error) {
	s, ok := obj.(*v1beta1.InferenceService)
	if !ok {
		return nil, nil
	}
	var refs []string
	for _, name := range plan.PolicyNames(s.Spec.Rollout) {
		if ref := localRef(s.Namespace, name); !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

func indexersOf(k kind) toolscache.Indexers {
	switch k {
	case kindService:
		return toolscache.Indexers{byRuntime: runtimeIndex, byModel: modelIndex, byPolicy: policyIndex}
	case kindReplica:
		return toolscache.Indexers{byService: parentIndex}
	case kindPod, kindRevision, kindCoreService, kindSlice, kindScaler, kindScaledObject:
		return toolscache.Indexers{byService: serviceLabelIndex}
	}
	return nil
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
