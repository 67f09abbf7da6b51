package render

import "ome.io/ome/api/v1beta1"

// piece is one component's block, of a service or of a runtime, in the shape all three share.
type piece struct {
	*v1beta1.EngineSpec
	// config is the router's environment.
	config map[string]string
}

func servicePiece(service *v1beta1.InferenceService, c v1beta1.ComponentType) *piece {
	return newPiece(c, service.Spec.Engine, service.Spec.Decoder, service.Spec.Router)
}

func runtimePiece(runtime *v1beta1.ServingRuntimeSpec, c v1beta1.ComponentType) *piece {
	if runtime == nil {
		return nil
	}
	return newPiece(c, runtime.EngineConfig, runtime.DecoderConfig, runtime.RouterConfig)
}

// newPiece shares memory with its input; nothing may be written through it.
func newPiece(c v1beta1.ComponentType, engine *v1beta1.EngineSpec, decoder *v1beta1.DecoderSpec, router *v1beta1.RouterSpec) *piece {
	switch {
	case c == v1beta1.EngineComponent && engine != nil:
		return &piece{EngineSpec: engine}
	case c == v1beta1.DecoderComponent && decoder != nil:
		same := v1beta1.EngineSpec(*decoder)
		return &piece{EngineSpec: &same}
	case c == v1beta1.RouterComponent && router != nil:
		return &piece{
			EngineSpec: &v1beta1.EngineSpec{
				PodSpec:                router.PodSpec,
				ComponentExtensionSpec: router.ComponentExtensionSpec,
				Runner:                 router.Runner,
			},
			config: router.Config,
		}
	}
	return nil
}

// orEmpty lets callers read fields of a piece that isn't there.
func (p *piece) orEmpty() *piece {
	if p == nil {
		return &piece{EngineSpec: &v1beta1.EngineSpec{}}
	}
	return p
}
