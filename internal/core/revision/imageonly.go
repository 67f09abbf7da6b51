package revision

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

// ImageOnly says whether a pod of template from becomes one of template to by new
// images of regular containers alone, and gives the images that change, by
// container. Everything else that enters the hash must be the same, with the same
// containers in the same order. Like the hash it passes over the queue label, the
// excluded annotations, and the difference between nothing and an empty value, so
// a template that was stored compares with one just rendered.
func ImageOnly(from, to *corev1.PodTemplateSpec, excludedAnnotations ...string) (images map[string]string, ok bool) {
	if from == nil || to == nil || len(from.Spec.Containers) != len(to.Spec.Containers) {
		return nil, false
	}
	images = map[string]string{}
	for i := range to.Spec.Containers {
		a, b := &from.Spec.Containers[i], &to.Spec.Containers[i]
		if a.Name != b.Name {
			return nil, false
		}
		if a.Image != b.Image {
			images[b.Name] = b.Image
		}
		if b.Image == "" {
			return nil, false // a pod can't be told to run no image
		}
	}
	if len(images) == 0 {
		return nil, false
	}
	x, err := withoutImages(from, excludedAnnotations)
	if err != nil {
		return nil, false // what can't be written can't be compared
	}
	y, err := withoutImages(to, excludedAnnotations)
	if err != nil || !bytes.Equal(x, y) {
		return nil, false
	}
	return images, true
}

// withoutImages is the canonical text of a template less its containers' images.
func withoutImages(t *corev1.PodTemplateSpec, excluded []string) ([]byte, error) {
	bare := *t // shallow: only what is replaced is copied
	bare.Labels = without(bare.Labels, v1beta1.QueueNameLabel)
	bare.Annotations = without(bare.Annotations, excluded...)
	bare.Spec.Containers = slices.Clone(bare.Spec.Containers)
	for i := range bare.Spec.Containers {
		bare.Spec.Containers[i].Image = ""
	}
	return canonical(&bare)
}
