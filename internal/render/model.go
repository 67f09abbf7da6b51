package render

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

// defaultModelDir is where a model's weights are when the model doesn't say.
const defaultModelDir = "/mnt/models/"

// modelVolume is the volume that holds the weights.
const modelVolume = "model"

// addModel mounts the weights and says where they are. The variables come first, so that other
// variables and the arguments can refer to them.
func addModel(in Input, spec *corev1.PodSpec, main *corev1.Container) error {
	var vars []corev1.EnvVar
	if in.Model != nil {
		storage := &in.Model.Storage
		switch {
		case in.Model.Distribution == v1beta1.DistributionSharded:
			return fail(v1beta1.ReasonRenderFailed, "%s: model %s has distribution Sharded, which can't be served; use one with PerNode",
				in.subject(), in.ModelName)
		case strings.HasPrefix(storage.StorageURI, "pvc://"):
			return fail(v1beta1.ReasonRenderFailed, "%s: not supported yet: storageUri %q of model %s; keep the weights in a directory of the nodes and set spec.storage.path",
				in.subject(), storage.StorageURI, in.ModelName)
		}
		path := defaultModelDir + in.ModelName
		if p := storage.Path; p != nil && *p != "" {
			path = *p
		}
		vars = append(vars, corev1.EnvVar{Name: v1beta1.EnvModelPath, Value: path})
		mountModel(spec, main, path)
		spec.NodeSelector = merged(storage.NodeSelector, spec.NodeSelector)
		requireNodes(spec, storage.NodeAffinity)
	}
	if n := gpus(spec); n > 0 {
		vars = append(vars, corev1.EnvVar{Name: v1beta1.EnvParallelismSize, Value: strconv.FormatInt(n, 10)})
	}
	rest := slices.DeleteFunc(main.Env, func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(vars, func(v corev1.EnvVar) bool { return v.Name == e.Name })
	})
	main.Env = append(vars, rest...)
	return nil
}

// mountModel mounts the node's copy of the weights, unless the pod mounts something there already.
func mountModel(spec *corev1.PodSpec, main *corev1.Container, path string) {
	if slices.ContainsFunc(main.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path }) {
		return
	}
	if !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == modelVolume }) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{
			Name:         modelVolume,
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}},
		})
	}
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: modelVolume, MountPath: path, ReadOnly: true})
}

// requireNodes keeps the pod on the nodes that hold the model, beside what the pod asks for itself.
func requireNodes(spec *corev1.PodSpec, model *corev1.NodeAffinity) {
	if model == nil {
		return
	}
	model = model.DeepCopy()
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = model
		return
	}
	own := spec.Affinity.NodeAffinity
	own.PreferredDuringSchedulingIgnoredDuringExecution = append(
		own.PreferredDuringSchedulingIgnoredDuringExecution, model.PreferredDuringSchedulingIgnoredDuringExecution...)
	with := model.RequiredDuringSchedulingIgnoredDuringExecution
	if with == nil {
		return
	}
	if own.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		own.RequiredDuringSchedulingIgnoredDuringExecution = with
		return
	}
	// Terms are alternatives, so "both" is every pair of them.
	var both []corev1.NodeSelectorTerm
	for _, a := range own.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, b := range with.NodeSelectorTerms {
			both = append(both, corev1.NodeSelectorTerm{
				MatchExpressions: slices.Concat(a.MatchExpressions, b.MatchExpressions),
				MatchFields:      slices.Concat(a.MatchFields, b.MatchFields),
			})
		}
	}
	own.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = both
}

// gpus counts the GPUs of one pod. Vendors name the resource <domain>/gpu.
func gpus(spec *corev1.PodSpec) int64 {
	var n int64
	for i := range spec.Containers {
		want := corev1.ResourceList{}
		maps.Copy(want, spec.Containers[i].Resources.Requests)
		maps.Copy(want, spec.Containers[i].Resources.Limits)
		for name, quantity := range want {
			if strings.HasSuffix(string(name), "/gpu") {
				n += quantity.Value()
			}
		}
	}
	return n
}
