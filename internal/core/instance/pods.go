package instance

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// runnerDefault is the only runner of a single-pod Instance.
const runnerDefault = "default"

// PodName is the deterministic name of an Instance's pod in a slot.
func PodName(prefix string, component v1beta1.ComponentType, index, ordinal int32) string {
	return prefix + "-" + string(component) + "-" + strconv.Itoa(int(index)) + "-" + runnerDefault + "-" + strconv.Itoa(int(ordinal))
}

// build makes the pod of a slot: the revision's template, then what is stamped at
// creation and is no part of the revision. Stamped labels win over the template's.
func build(in *Input, rev Revision, template *corev1.PodTemplateSpec, row *v1beta1.InstanceStatus, ordinal int32, operation string, off []string) *corev1.Pod {
	spec := template.Spec.DeepCopy()
	meta := metav1.ObjectMeta{
		Namespace:       in.Namespace,
		Name:            PodName(in.Prefix, in.Component, row.Index, ordinal),
		OwnerReferences: []metav1.OwnerReference{in.Owner},
		Labels:          make(map[string]string, len(template.Labels)+len(in.Labels)+9),
		Annotations:     make(map[string]string, len(template.Annotations)+1),
	}
	maps.Copy(meta.Labels, template.Labels)
	maps.Copy(meta.Labels, in.Labels)
	meta.Labels[v1beta1.InferenceServiceLabel] = in.Prefix
	meta.Labels[v1beta1.ComponentLabel] = string(in.Component)
	meta.Labels[v1beta1.ManagedByLabel] = v1beta1.ManagedByOMENative
	meta.Labels[v1beta1.InstanceIndexLabel] = strconv.Itoa(int(row.Index))
	meta.Labels[v1beta1.InstanceIncarnationLabel] = strconv.FormatInt(row.Incarnation, 10)
	meta.Labels[v1beta1.RunnerLabel] = runnerDefault
	meta.Labels[v1beta1.PodOrdinalLabel] = strconv.Itoa(int(ordinal))
	meta.Labels[v1beta1.RevisionHashLabel] = rev.Hash
	delete(meta.Labels, v1beta1.PairingProtocolLabel)
	if rev.Token != "" && in.Component != v1beta1.RouterComponent {
		meta.Labels[v1beta1.PairingProtocolLabel] = rev.Token
	}
	maps.Copy(meta.Annotations, template.Annotations)
	meta.Annotations[v1beta1.OperationIDAnnotation] = operation
	delete(meta.Annotations, v1beta1.InPlaceImageTransitionAnnotation)

	// The gate must be there from the start: Kubernetes does not let it be added later.
	gated := false
	for _, g := range spec.ReadinessGates {
		gated = gated || g.ConditionType == v1beta1.ServingReadinessGate
	}
	if !gated {
		spec.ReadinessGates = append(spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: v1beta1.ServingReadinessGate})
	}
	if spec.TerminationGracePeriodSeconds == nil && in.GraceSeconds > 0 {
		spec.TerminationGracePeriodSeconds = new(in.GraceSeconds)
	}
	// An Instance that left every node of a small cluster must still come up somewhere.
	keepOff(spec, off, in.UnschedulableGrace > 0 && (row.LastFailure == nil || row.LastFailure.Reason != reasonUnschedulable))
	env := append(instanceEnv(in, row), in.Env...)
	for i := range spec.Containers {
		spec.Containers[i].Env = overrideEnv(spec.Containers[i].Env, env)
	}
	return &corev1.Pod{ObjectMeta: meta, Spec: *spec}
}

func instanceEnv(in *Input, row *v1beta1.InstanceStatus) []corev1.EnvVar {
	index := strconv.Itoa(int(row.Index))
	return []corev1.EnvVar{
		{Name: v1beta1.EnvInferenceServiceName, Value: in.Prefix},
		{Name: v1beta1.EnvComponent, Value: string(in.Component)},
		{Name: v1beta1.EnvComponentReplicas, Value: strconv.Itoa(int(in.Desired))},
		{Name: v1beta1.EnvInstanceIndex, Value: index},
		{Name: v1beta1.EnvInstanceSubdomain, Value: in.Prefix + "-" + string(in.Component) + "-" + index},
		{Name: v1beta1.EnvRunner, Value: runnerDefault},
		{Name: v1beta1.EnvRunnerSize, Value: "1"},
		{Name: v1beta1.EnvRunnerIndex, Value: "0"},
	}
}

// overrideEnv replaces variables of the same name where they stand, since a later
// variable may refer to an earlier one, and appends the others.
func overrideEnv(env, stamp []corev1.EnvVar) []corev1.EnvVar {
	at := make(map[string]int, len(env))
	for i := range env {
		at[env[i].Name] = i
	}
	for _, v := range stamp {
		if i, ok := at[v.Name]; ok {
			env[i] = v
			continue
		}
		env = append(env, v)
	}
	return env
}
