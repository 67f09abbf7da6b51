package guarded

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/render"
)

// runtime reads model and runtime and resolves the native components.
func (r *reader) runtime(ctx context.Context) error {
	ev := r.ev
	spec := &ev.Service.Spec
	if err := r.model(ctx, spec.Model); err != nil {
		return err
	}
	ref := spec.Runtime
	switch {
	case spec.ReplicaRefs != nil:
		ev.runtimeProblem = Refuse(MsgRuntime,
			"the service fronts standalone replicas (spec.replicaRefs) and owns none",
			"act on a replica itself: "+ev.kubectl("get inferencereplicas."+v1beta1.Group))
		return nil
	case ref == nil || ref.Name == "":
		ev.runtimeProblem = Refuse(MsgRuntime,
			"no runtime is named (spec.runtime.name); this version resolves named runtimes only",
			"name the runtime in the service, or set the annotation yourself with kubectl annotate")
		return nil
	case ref.Revision != "" || (ref.AutoSync != nil && !*ref.AutoSync) || ev.Service.Status.PinnedRevisionName != "":
		ev.runtimeProblem = Refuse(MsgRuntime,
			"the runtime is or was pinned to a stored revision (spec.runtime.autoSync, spec.runtime.revision, status.pinnedRevisionName); this version resolves unpinned runtimes only",
			"set the annotation yourself with kubectl annotate")
		return nil
	}
	found, err := r.namedRuntime(ctx, ref)
	if err != nil {
		return err
	}
	if found == nil {
		return nil
	}
	ev.Runtime = found
	for _, c := range v1beta1.IsvcComponents(ev.Service) {
		if mode, _ := render.Mode(ev.Service, found, c); mode == v1beta1.OMENativeMode {
			ev.Native = append(ev.Native, c)
		}
	}
	if len(ev.Native) == 0 {
		ev.runtimeProblem = Refuse(MsgRuntime, "no component of the service is OMENative, so there is no rollout to act on",
			"opt in with spec.deploymentMode: OMENative")
		return nil
	}
	for _, c := range ev.Service.Status.Conditions {
		if c.Type == v1beta1.ConditionRuntimeReady && c.Status == "False" {
			ev.runtimeProblem = Refuse(MsgRuntime,
				"the controller reports RuntimeReady False ("+Clean(c.Reason)+"): "+Clean(c.Message),
				"to see it: "+ev.Command("rollout status"))
		}
	}
	return nil
}

func (r *reader) model(ctx context.Context, ref *v1beta1.ModelRef) error {
	if ref == nil {
		return nil
	}
	if ref.Kind != nil && *ref.Kind == v1beta1.BaseModelKind {
		return r.get(ctx, Ref{v1beta1.BaseModelKind, v1beta1.BaseModelResource, r.ev.Namespace, ref.Name}, &v1beta1.BaseModel{})
	}
	return r.get(ctx, Ref{v1beta1.ClusterBaseModelKind, v1beta1.ClusterBaseModelResource, "", ref.Name}, &v1beta1.ClusterBaseModel{})
}

// namedRuntime reads the runtime where the controller looks for it. A nil spec
// without an error means runtimeProblem is set.
func (r *reader) namedRuntime(ctx context.Context, ref *v1beta1.ServingRuntimeRef) (*v1beta1.ServingRuntimeSpec, error) {
	var cluster *v1beta1.ClusterServingRuntime
	var local *v1beta1.ServingRuntime
	if ref.Kind == nil || *ref.Kind != v1beta1.ServingRuntimeKind {
		at := Ref{v1beta1.ClusterServingRuntimeKind, v1beta1.ClusterServingRuntimeResource, "", ref.Name}
		raw, err := r.client.Get(ctx, at)
		switch {
		case apierrors.IsNotFound(err):
		case errors.Is(err, errTooLarge):
			return nil, tooLarge(at)
		case err != nil:
			return nil, readError(err, at, r.ev)
		default:
			cluster = &v1beta1.ClusterServingRuntime{}
			if err := r.keep(raw, at, cluster); err != nil {
				return nil, err
			}
		}
	}
	if cluster == nil {
		local = &v1beta1.ServingRuntime{}
		at := Ref{v1beta1.ServingRuntimeKind, v1beta1.ServingRuntimeResource, r.ev.Namespace, ref.Name}
		if err := r.get(ctx, at, local); err != nil {
			return nil, err
		}
	}
	found, err := render.PickRuntime(ref, cluster, local)
	if err != nil {
		r.ev.runtimeProblem = Refuse(MsgRuntime, Clean(err.Error()))
		return nil, nil
	}
	return found.Spec, nil
}

// runtimeExtension is a component's shared settings in the runtime; nil when it
// has none.
func (ev *Evidence) runtimeExtension(c v1beta1.ComponentType) *v1beta1.ComponentExtensionSpec {
	rt := ev.Runtime
	switch {
	case rt == nil:
	case c == v1beta1.EngineComponent && rt.EngineConfig != nil:
		return &rt.EngineConfig.ComponentExtensionSpec
	case c == v1beta1.DecoderComponent && rt.DecoderConfig != nil:
		return &rt.DecoderConfig.ComponentExtensionSpec
	case c == v1beta1.RouterComponent && rt.RouterConfig != nil:
		return &rt.RouterConfig.ComponentExtensionSpec
	}
	return nil
}
