package v1beta1

// Components lists every component word in the order components are reconciled.
func Components() []ComponentType {
	return []ComponentType{EngineComponent, DecoderComponent, RouterComponent}
}

// IsComponent reports whether c is one of the three component words.
func IsComponent(c ComponentType) bool {
	return c == EngineComponent || c == DecoderComponent || c == RouterComponent
}

// IsvcComponents lists the components that the service declares, in reconcile order.
func IsvcComponents(isvc *InferenceService) []ComponentType {
	var declared []ComponentType
	for _, c := range Components() {
		if isvc.Spec.Extension(c) != nil {
			declared = append(declared, c)
		}
	}
	return declared
}

// Extension returns the shared settings of a component, nil when the service doesn't declare it.
func (s *InferenceServiceSpec) Extension(c ComponentType) *ComponentExtensionSpec {
	switch {
	case c == EngineComponent && s.Engine != nil:
		return &s.Engine.ComponentExtensionSpec
	case c == DecoderComponent && s.Decoder != nil:
		return &s.Decoder.ComponentExtensionSpec
	case c == RouterComponent && s.Router != nil:
		return &s.Router.ComponentExtensionSpec
	}
	return nil
}

// DeclaredMode is the mode that the service itself declares for a component: the component's
// annotation, else spec.deploymentMode, else empty. What a runtime says isn't a declaration.
func (s *InferenceServiceSpec) DeclaredMode(c ComponentType) DeploymentMode {
	if ext := s.Extension(c); ext != nil {
		if mode := ext.Annotations[DeploymentModeAnnotation]; mode != "" {
			return DeploymentMode(mode)
		}
	}
	return s.DeploymentMode
}

// ReplicaName is the name of the InferenceReplica, and of the component Service, that a service
// gets for a component. Names are built, never parsed.
func ReplicaName(service string, c ComponentType) string {
	return service + "-" + string(c)
}

// RevisionServiceName is the Service that selects one revision of a component.
func RevisionServiceName(service string, c ComponentType, hash string) string {
	return ReplicaName(service, c) + "-rev-" + hash
}
