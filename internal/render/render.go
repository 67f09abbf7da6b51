package render

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
)

// Input is everything the result depends on. Nothing in it is written to.
type Input struct {
	Service   *v1beta1.InferenceService
	Component v1beta1.ComponentType

	// Runtime is nil when the service describes the component in full.
	Runtime     *v1beta1.ServingRuntimeSpec
	RuntimeName string
	// RuntimeKind is the kind of the runtime that was found.
	RuntimeKind string

	// Model is nil when the service names none.
	Model     *v1beta1.BaseModelSpec
	ModelName string

	Settings config.Settings
}

// Result is what a component's InferenceReplica, Services and scaler are made from. It shares no
// memory with the input.
type Result struct {
	// Runners is the single runner "default".
	Runners []v1beta1.Runner
	// Lifecycle has every field in force filled in. MinReadySeconds is the field below.
	Lifecycle       v1beta1.LifecycleSpec
	MinReadySeconds int32
	// MinReplicas and MaxReplicas are the bounds in force: 1 <= MinReplicas <= MaxReplicas.
	MinReplicas, MaxReplicas int32
	// Autoscaler is never nil; AutoscalerSource says which layer it came from.
	Autoscaler       *v1beta1.ComponentAutoscaler
	AutoscalerSource string
	// ExcludedAnnotationKeys are the template's annotations that stay out of the revision, sorted.
	ExcludedAnnotationKeys []string
	// PairingProtocol is set on engine and decoder only.
	PairingProtocol string

	TopologyKey       string
	TopologySpread    v1beta1.TopologySpreadMode
	TopologySpreadKey string
	// ServicePorts are what the component's Services publish.
	ServicePorts []corev1.ServicePort
}

// Render builds the result for one component of a service that declares it. The error is an
// *Error, whose reason belongs in a condition.
func Render(in Input) (Result, error) {
	own := servicePiece(in.Service, in.Component)
	if own == nil {
		return Result{}, fail(v1beta1.ReasonRenderFailed, "InferenceService %s/%s has no spec.%s",
			in.Service.Namespace, in.Service.Name, in.Component)
	}
	base := runtimePiece(in.Runtime, in.Component)
	if err := refuseMultiPod(in, own, base); err != nil {
		return Result{}, err
	}

	spec, labels, annotations, err := podSpec(in, own, base.orEmpty())
	if err != nil {
		return Result{}, err
	}
	main := mainContainer(spec, mainName(own, base.orEmpty()))
	addEnv(in, spec, main, own, base.orEmpty())
	if in.Component != v1beta1.RouterComponent {
		if err := addModel(in, spec, main); err != nil {
			return Result{}, err
		}
	}
	for i := range spec.Containers {
		if spec.Containers[i].Image == "" {
			return Result{}, fail(v1beta1.ReasonRenderFailed, "%s: container %q has no image; set it in %s or in spec.%s.runner.image",
				in.subject(), spec.Containers[i].Name, in.runtimeField(), in.Component)
		}
	}

	meta, excluded := metadata(in, spec, labels, annotations)
	policies, window := lifecycle(own.Lifecycle, base.orEmpty().Lifecycle, in.Settings, in.Component)
	least, most := bounds(own, base.orEmpty(), in.Settings.Deploy, in.Component)
	scaler, source := autoscaler(own, base.orEmpty())
	out := Result{
		Runners: []v1beta1.Runner{{
			Name:     v1beta1.RunnerDefault,
			Size:     1,
			Template: corev1.PodTemplateSpec{ObjectMeta: meta, Spec: *spec},
		}},
		Lifecycle:              policies,
		MinReadySeconds:        window,
		MinReplicas:            least,
		MaxReplicas:            most,
		Autoscaler:             scaler,
		AutoscalerSource:       source,
		ExcludedAnnotationKeys: excluded,
		TopologyKey:            first(own.TopologyKey, base.orEmpty().TopologyKey),
		TopologySpread:         first(own.TopologySpread, base.orEmpty().TopologySpread),
		ServicePorts:           servicePorts(spec, merged(base.orEmpty().ServicePortAppProtocols, own.ServicePortAppProtocols)),
	}
	out.TopologySpreadKey = first(own.TopologySpreadKey, base.orEmpty().TopologySpreadKey, out.TopologyKey)
	if in.Component != v1beta1.RouterComponent && in.Service.Spec.Rollout != nil {
		out.PairingProtocol = in.Service.Spec.Rollout.PairingProtocol
	}
	return out, nil
}

func (in Input) subject() string {
	return fmt.Sprintf("InferenceService %s/%s, component %s", in.Service.Namespace, in.Service.Name, in.Component)
}

// runtimeField names the block of the runtime that feeds the component.
func (in Input) runtimeField() string {
	if in.RuntimeName == "" {
		return "a runtime"
	}
	return fmt.Sprintf("spec.%sConfig of %s %s", in.Component, in.RuntimeKind, in.RuntimeName)
}

func refuseMultiPod(in Input, own, base *piece) error {
	for _, from := range []struct {
		p     *piece
		field string
	}{{own, "spec." + string(in.Component)}, {base, in.runtimeField()}} {
		if from.p != nil && (from.p.Leader != nil || from.p.Worker != nil) {
			return fail(v1beta1.ReasonRenderFailed, "%s: not supported yet: leader and worker (multi-pod Instances) in %s; use a runtime with a single runner",
				in.subject(), from.field)
		}
	}
	return nil
}

// podSpec lays the service's block over the runtime's. The labels and annotations are those that
// the component declares itself.
func podSpec(in Input, own, base *piece) (*corev1.PodSpec, map[string]string, map[string]string, error) {
	name := mainName(own, base)
	under, err := toSpec(base, name)
	if err != nil {
		return nil, nil, nil, fail(v1beta1.ReasonRenderFailed, "%s: %s: %v", in.subject(), in.runtimeField(), err)
	}
	declared := object{"labels": toAny(base.Labels), "annotations": toAny(base.Annotations), "config": toAny(base.config)}
	missing := append(substitute(under, in.Service), substitute(declared, in.Service)...)
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, nil, nil, fail(v1beta1.ReasonRenderFailed, "%s: %s uses {{.%s}}, which the service's metadata does not have; add it",
			in.subject(), in.runtimeField(), missing[0])
	}
	over, err := toSpec(own, name)
	if err != nil {
		return nil, nil, nil, fail(v1beta1.ReasonRenderFailed, "%s: %v", in.subject(), err)
	}
	spec := new(corev1.PodSpec)
	if err := fromObject(merge(under, over), spec); err != nil {
		return nil, nil, nil, fail(v1beta1.ReasonRenderFailed, "%s: %v", in.subject(), err)
	}
	if len(spec.Containers) == 0 {
		return nil, nil, nil, fail(v1beta1.ReasonRuntimePieceMissing, "%s: no containers: %s has none for it; name a runtime that has, or set spec.%s.runner",
			in.subject(), in.runtimeField(), in.Component)
	}
	labels := merged(toStrings(declared["labels"]), own.Labels)
	annotations := merged(toStrings(declared["annotations"]), own.Annotations)
	return spec, labels, annotations, nil
}

// mainName is the name of the container that the runner blocks describe.
func mainName(own, base *piece) string {
	for _, p := range []*piece{own, base} {
		if p.Runner != nil && p.Runner.Name != "" {
			return p.Runner.Name
		}
	}
	return v1beta1.MainContainerName
}

// toSpec is a block's pod spec with its runner as the main container.
func toSpec(p *piece, name string) (object, error) {
	spec, err := toObject(p.PodSpec)
	if err != nil {
		return nil, err
	}
	if p.Runner == nil {
		return spec, nil
	}
	runner, err := toObject(p.Runner.Container)
	if err != nil {
		return nil, err
	}
	withContainer(spec, runner, name)
	return spec, nil
}

// mainContainer puts the main container first, where tools look for it, and returns it.
func mainContainer(spec *corev1.PodSpec, name string) *corev1.Container {
	at := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if at > 0 {
		main := spec.Containers[at]
		spec.Containers = slices.Insert(slices.Delete(spec.Containers, at, at+1), 0, main)
	}
	return &spec.Containers[0]
}

// addEnv adds a router's config. A variable that the container sets itself wins.
func addEnv(in Input, spec *corev1.PodSpec, main *corev1.Container, own, base *piece) {
	if in.Component != v1beta1.RouterComponent {
		return
	}
	settings := object{"config": toAny(base.config)}
	substitute(settings, in.Service)
	config := merged(toStrings(settings["config"]), own.config)
	for _, name := range slices.Sorted(maps.Keys(config)) {
		if !slices.ContainsFunc(main.Env, func(e corev1.EnvVar) bool { return e.Name == name }) {
			main.Env = append(main.Env, corev1.EnvVar{Name: name, Value: config[name]})
		}
	}
}

func duration(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// merged copies base and lays over on top; nil when both are empty.
func merged(base, over map[string]string) map[string]string {
	if len(base)+len(over) == 0 {
		return nil
	}
	out := make(map[string]string, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

func toAny(in map[string]string) object {
	out := make(object, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

func toStrings(v any) map[string]string {
	in, _ := v.(object)
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k], _ = v.(string)
	}
	return out
}
