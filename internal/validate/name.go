package validate

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"ome.io/ome/api/v1beta1"
)

// maxServiceName leaves room for the longest name made from a service's: that of the headless
// Service of a decoder's revision.
const maxServiceName = 33

// checkName runs on create and when a service becomes OMENative. A stored name can't be changed, so
// that of a service that is OMENative already is left in peace.
func checkName(r *Result, s *v1beta1.InferenceService) {
	name := s.Name
	if name == "" || !hasOMENative(s) {
		return
	}
	if errs := validation.IsDNS1035Label(name); len(errs) > 0 && len(name) <= validation.DNS1035LabelMaxLength {
		r.refuse("metadata.name", "", "%q can't begin the name of a Service; use lower case letters, digits and '-', and start with a letter", name)
		return
	}
	if len(name) > maxServiceName {
		longest := v1beta1.ReplicaName(name, v1beta1.DecoderComponent) + "-rev-00000000-headless"
		r.refuse("metadata.name", "", "%q has %d characters, and an OMENative service may have %d: the longest name made from it, %s, has %d, and a Service may have %d; choose a shorter name",
			name, len(name), maxServiceName, longest, len(longest), validation.DNS1035LabelMaxLength)
	}
}
