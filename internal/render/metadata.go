package render

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"ome.io/ome/api/v1beta1"
)

const lastAppliedKey = "kubectl.kubernetes.io/last-applied-configuration"

// accelerators are the resources whose pods a queue manager admits.
var accelerators = []corev1.ResourceName{"nvidia.com/gpu", "google.com/tpu"}

// staysOnService reports the service annotations that no generated object inherits. Requests and
// switches are addressed to the controller: copying one would rewrite every template each time
// somebody pauses, promotes or migrates.
func staysOnService(key string) bool {
	if key == lastAppliedKey || key == v1beta1.InPlaceImageTransitionAnnotation || key == v1beta1.DeploymentModeAnnotation {
		return true
	}
	own, ok := strings.CutPrefix(key, v1beta1.AnnotationPrefix)
	if !ok {
		return false
	}
	for _, prefix := range []string{"rollout-", "migration-", "runtime-sync", "traffic-drain", "revision-history-limit", "placement-", "managed-by-conflict-acked"} {
		if strings.HasPrefix(own, prefix) {
			return true
		}
	}
	return false
}

// metadata builds the template's labels and annotations. labels and declared are what the component
// sets itself, through the service or the runtime; they win. The second result lists the
// annotations that came from the service alone.
func metadata(in Input, spec *corev1.PodSpec, labels, declared map[string]string) (metav1.ObjectMeta, []string) {
	outLabels := map[string]string{}
	describe := func(key, value string) {
		if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			outLabels[key] = value
		}
	}
	describe(v1beta1.ServingRuntimeLabel, in.RuntimeName)
	if in.Model != nil {
		describe(v1beta1.BaseModelNameLabel, in.ModelName)
		describe(v1beta1.BaseModelSizeLabel, in.Model.ModelParameterSize)
		describe(v1beta1.BaseModelTypeLabel, in.Model.ModelType)
		describe(v1beta1.BaseModelVendorLabel, ptr.Deref(in.Model.Vendor, ""))
	}
	if queue := in.Service.Labels[v1beta1.QueueNameLabel]; queue != "" && usesAccelerator(spec) {
		outLabels[v1beta1.QueueNameLabel] = queue
	}
	maps.Copy(outLabels, labels)

	annotations := map[string]string{}
	var excluded []string
	for _, key := range slices.Sorted(maps.Keys(in.Service.Annotations)) {
		if _, own := declared[key]; own || staysOnService(key) {
			continue
		}
		annotations[key] = in.Service.Annotations[key]
		excluded = append(excluded, key)
	}
	maps.Copy(annotations, declared)
	delete(annotations, v1beta1.InPlaceImageTransitionAnnotation)

	meta := metav1.ObjectMeta{}
	if len(outLabels) > 0 {
		meta.Labels = outLabels
	}
	if len(annotations) > 0 {
		meta.Annotations = annotations
	}
	return meta, excluded
}

func usesAccelerator(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(accelerators, func(r corev1.ResourceName) bool {
			_, requested := c.Resources.Requests[r]
			_, limited := c.Resources.Limits[r]
			return requested || limited
		})
	})
}
