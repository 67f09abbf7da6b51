package controller

import (
	"errors"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/render"
)

// rendered is one component's template, or why there is none.
type rendered struct {
	template *core.Template
	err      *core.TemplateError
	// unsure is set when only the runtime could say how the component is run, and
	// it can't be read. What runs by a replica stays by it until then.
	unsure bool
}

// templateCache keeps the last rendering of one service. Pods come and go far
// more often than what they are made from.
type templateCache struct {
	from   inputs
	result map[v1beta1.ComponentType]rendered
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
func (t *templateCache) render(s stores, isvc *v1beta1.InferenceService, set config.Settings) map[v1beta1.ComponentType]rendered {
	if isvc == nil {
		return nil
	}
	in := inputs{uid: isvc.UID, generation: isvc.Generation, labels: isvc.Labels, annotations: isvc.Annotations, settings: set}
	var clusterRuntime *v1beta1.ClusterServingRuntime
	var runtime *v1beta1.ServingRuntime
	if ref := isvc.Spec.Runtime; ref != nil {
		if o, ok := getAs[*v1beta1.ClusterServingRuntime](s[kindClusterRuntime], ref.Name); ok {
			clusterRuntime, in.cluster = o, version{o.UID, o.ResourceVersion}
		}
		if o, ok := getAs[*v1beta1.ServingRuntime](s[kindRuntime], isvc.Namespace+"/"+ref.Name); ok {
			runtime, in.local = o, version{o.UID, o.ResourceVersion}
		}
	}
	var clusterModel *v1beta1.ClusterBaseModel
	var model *v1beta1.BaseModel
	if ref := isvc.Spec.Model; ref != nil {
		if o, ok := getAs[*v1beta1.ClusterBaseModel](s[kindClusterModel], ref.Name); ok {
			clusterModel, in.clusterModel = o, version{o.UID, o.ResourceVersion}
		}
		if o, ok := getAs[*v1beta1.BaseModel](s[kindModel], isvc.Namespace+"/"+ref.Name); ok {
			model, in.model = o, version{o.UID, o.ResourceVersion}
		}
	}
	if t.result != nil && t.from.same(in) {
		return t.result
	}

	picked, runtimeErr := render.PickRuntime(isvc.Spec.Runtime, clusterRuntime, runtime)
	weights, modelErr := render.PickModel(isvc.Spec.Model, clusterModel, model)
	result := map[v1beta1.ComponentType]rendered{}
	for _, c := range v1beta1.IsvcComponents(isvc) {
		mode, source := render.Mode(isvc, picked.Spec, c)
		unsure := mode != v1beta1.OMENativeMode && runtimeErr != nil && !source.BeforeRuntime()
		if mode != v1beta1.OMENativeMode && !unsure {
			continue
		}
		if err := errors.Join(runtimeErr, modelErr); err != nil {
			result[c] = rendered{err: templateError(err), unsure: unsure}
			continue
		}
		out, err := render.Render(render.Input{
			Service: isvc, Component: c,
			Runtime: picked.Spec, RuntimeName: picked.Name, RuntimeKind: picked.Kind,
			Model: weights.Spec, ModelName: weights.Name,
			Settings: set,
		})
		if err != nil {
			result[c] = rendered{err: templateError(err)}
			continue
		}
		result[c] = rendered{template: template(out)}
	}
	t.from, t.result = in, result
	return result
}

func template(r render.Result) *core.Template {
	t := &core.Template{
		Runners:                r.Runners,
		Lifecycle:              r.Lifecycle,
		MinReadySeconds:        r.MinReadySeconds,
		MinReplicas:            r.MinReplicas,
		MaxReplicas:            r.MaxReplicas,
		Autoscaler:             r.Autoscaler,
		AutoscalerSource:       r.AutoscalerSource,
		PairingProtocol:        r.PairingProtocol,
		TopologyKey:            r.TopologyKey,
		TopologySpread:         r.TopologySpread,
		TopologySpreadKey:      r.TopologySpreadKey,
		ServicePorts:           r.ServicePorts,
		ExcludedAnnotationKeys: r.ExcludedAnnotationKeys,
	}
	t.Seal()
	return t
}

func templateError(err error) *core.TemplateError {
	out := &core.TemplateError{Reason: v1beta1.ReasonRenderFailed, Message: err.Error()}
	var known *render.Error
	if errors.As(err, &known) {
		out.Reason = known.Reason
	}
	return out
}
