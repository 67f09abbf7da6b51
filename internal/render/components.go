package render

import (
	"errors"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/config"
)

// Rendered is one component's template, or why there is none.
type Rendered struct {
	Template *core.Template
	Err      *core.TemplateError
	// Unsure is set when only the runtime could say how the component is run, and
	// it can't be read. What runs by a replica stays by it until then.
	Unsure bool
}

// Sources are the objects that a service names; each may be nil.
type Sources struct {
	ClusterRuntime *v1beta1.ClusterServingRuntime
	Runtime        *v1beta1.ServingRuntime
	ClusterModel   *v1beta1.ClusterBaseModel
	Model          *v1beta1.BaseModel
}

// Components renders the components that the service runs in OMENative mode, and
// those that it may run so.
func Components(isvc *v1beta1.InferenceService, from Sources, set config.Settings) map[v1beta1.ComponentType]Rendered {
	picked, runtimeErr := PickRuntime(isvc.Spec.Runtime, from.ClusterRuntime, from.Runtime)
	weights, modelErr := PickModel(isvc.Spec.Model, from.ClusterModel, from.Model)
	result := map[v1beta1.ComponentType]Rendered{}
	for _, c := range v1beta1.IsvcComponents(isvc) {
		mode, source := Mode(isvc, picked.Spec, c)
		unsure := mode != v1beta1.OMENativeMode && runtimeErr != nil && !source.BeforeRuntime()
		if mode != v1beta1.OMENativeMode && !unsure {
			continue
		}
		if err := errors.Join(runtimeErr, modelErr); err != nil {
			result[c] = Rendered{Err: templateError(err), Unsure: unsure}
			continue
		}
		out, err := Render(Input{
			Service: isvc, Component: c,
			Runtime: picked.Spec, RuntimeName: picked.Name, RuntimeKind: picked.Kind,
			Model: weights.Spec, ModelName: weights.Name,
			Settings: set,
		})
		if err != nil {
			result[c] = Rendered{Err: templateError(err)}
			continue
		}
		result[c] = Rendered{Template: template(out)}
	}
	return result
}

func template(r Result) *core.Template {
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
	var known *Error
	if errors.As(err, &known) {
		out.Reason = known.Reason
	}
	return out
}
