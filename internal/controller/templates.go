package controller

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/render"
)

// templateCache keeps the last rendering of one service. Pods come and go far
// more often than what they are made from.
type templateCache struct {
	from   inputs
	result map[v1beta1.ComponentType]render.Rendered
}

// inputs is all that a rendering depends on. Runtimes may refer to the
// service's labels and annotations, which don't move its generation.
type inputs struct {
	uid                 types.UID
	generation          int64
	labels, annotations map[string]string
	cluster             version
	local               version
	clusterModel        version
	model               version
	settings            config.Settings
}

type version struct {
	uid     types.UID
	version string
}

func (a inputs) same(b inputs) bool {
	return a.uid == b.uid && a.generation == b.generation &&
		a.cluster == b.cluster && a.local == b.local && a.clusterModel == b.clusterModel && a.model == b.model &&
		maps.Equal(a.labels, b.labels) && maps.Equal(a.annotations, b.annotations) &&
		reflect.DeepEqual(a.settings, b.settings)
}

// render returns the components that the service runs in OMENative mode, and
// those that it may run so.
func (t *templateCache) render(s stores, isvc *v1beta1.InferenceService, set config.Settings) map[v1beta1.ComponentType]render.Rendered {
	if isvc == nil {
		return nil
	}
	in := inputs{uid: isvc.UID, generation: isvc.Generation, labels: isvc.Labels, annotations: isvc.Annotations, settings: set}
	var from render.Sources
	if ref := isvc.Spec.Runtime; ref != nil {
		if o, ok := getAs[*v1beta1.ClusterServingRuntime](s[kindClusterRuntime], ref.Name); ok {
			from.ClusterRuntime, in.cluster = o, version{o.UID, o.ResourceVersion}
		}
		if o, ok := getAs[*v1beta1.ServingRuntime](s[kindRuntime], isvc.Namespace+"/"+ref.Name); ok {
			from.Runtime, in.local = o, version{o.UID, o.ResourceVersion}
		}
	}
	if ref := isvc.Spec.Model; ref != nil {
		if o, ok := getAs[*v1beta1.ClusterBaseModel](s[kindClusterModel], ref.Name); ok {
			from.ClusterModel, in.clusterModel = o, version{o.UID, o.ResourceVersion}
		}
		if o, ok := getAs[*v1beta1.BaseModel](s[kindModel], isvc.Namespace+"/"+ref.Name); ok {
			from.Model, in.model = o, version{o.UID, o.ResourceVersion}
		}
	}
	if t.result == nil || !t.from.same(in) {
		t.from, t.result = in, render.Components(isvc, from, set)
	}
	return t.result
}
