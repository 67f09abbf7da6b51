package render

import "ome.io/ome/api/v1beta1"

// ModeSource says what decided a component's mode.
type ModeSource string

// The places a mode can come from, strongest first.
const (
	FromServiceAnnotation   ModeSource = "ServiceAnnotation"
	FromComponentAnnotation ModeSource = "ComponentAnnotation"
	FromRuntimeAnnotation   ModeSource = "RuntimeAnnotation"
	FromServiceSpec         ModeSource = "ServiceSpec"
	FromLeaderWorkerShape   ModeSource = "LeaderWorkerShape"
	FromDefault             ModeSource = "Default"
)

// BeforeRuntime is true for a source that no runtime can overrule.
func (s ModeSource) BeforeRuntime() bool {
	return s == FromServiceAnnotation || s == FromComponentAnnotation
}

// Mode resolves how a component is run and says what decided it. The runtime may be nil. The
// result can be a mode that nothing here runs; the caller reports that.
func Mode(service *v1beta1.InferenceService, runtime *v1beta1.ServingRuntimeSpec, c v1beta1.ComponentType) (v1beta1.DeploymentMode, ModeSource) {
	if service.Annotations[v1beta1.DeploymentModeAnnotation] == string(v1beta1.VirtualDeploymentMode) {
		return v1beta1.VirtualDeploymentMode, FromServiceAnnotation
	}
	own, base := servicePiece(service, c), runtimePiece(runtime, c)
	for _, from := range []struct {
		*piece
		source ModeSource
	}{{own, FromComponentAnnotation}, {base, FromRuntimeAnnotation}} {
		if from.piece == nil {
			continue
		}
		switch mode := v1beta1.DeploymentMode(from.Annotations[v1beta1.DeploymentModeAnnotation]); mode {
		case v1beta1.OMENativeMode, v1beta1.RawDeploymentMode, v1beta1.VirtualDeploymentMode:
			return mode, from.source
		case v1beta1.MultiNodeMode:
			if c != v1beta1.RouterComponent {
				return mode, from.source
			}
		}
	}
	switch mode := service.Spec.DeploymentMode; mode {
	case v1beta1.OMENativeMode, v1beta1.RawDeploymentMode:
		return mode, FromServiceSpec
	}
	for _, p := range []*piece{own, base} {
		if p != nil && c != v1beta1.RouterComponent && (p.Leader != nil || p.Worker != nil) {
			return v1beta1.OMENativeMode, FromLeaderWorkerShape
		}
	}
	return v1beta1.RawDeploymentMode, FromDefault
}
