package guarded

import (
	"slices"

	"ome.io/ome/api/v1beta1"
)

// placementKeys mark a service that placement reads or has made. As label or
// annotation, either is enough.
var placementKeys = []string{
	v1beta1.AcceleratorRequirementsAnnotation,
	v1beta1.ClusterSelectorAnnotation,
	v1beta1.PlacementOriginLabel,
	v1beta1.PlacementOriginUIDAnnotation,
	"ome.io/placement-control-plane",
}

const placementFinalizer = "ome.io/placement"

// checkTarget refuses a service that no guarded action may touch.
func checkTarget(ev *Evidence) *Error {
	s := ev.Service
	switch {
	case s.Name != ev.Name || s.Namespace != ev.Namespace || s.Kind != v1beta1.InferenceServiceKind:
		return Refuse(MsgIdentity, "the answer is about another object than "+ev.serviceRef().String())
	case s.UID == "" || s.ResourceVersion == "" || s.Generation < 1,
		Unsafe(string(s.UID)), Unsafe(s.ResourceVersion):
		return Refuse(MsgIdentity, "metadata.uid, metadata.resourceVersion or metadata.generation of "+ev.serviceRef().String()+" is missing or can't be shown")
	case s.DeletionTimestamp != nil:
		return Refuse(MsgDeleting, ev.serviceRef().String()+" has been deleted at "+s.DeletionTimestamp.UTC().Format("2006-01-02T15:04:05Z")+" and waits for its finalizers")
	}
	if what := overBounds(s); what != "" {
		return Refuse(MsgBounds, what, "read it with: "+ev.kubectl("get inferenceservice "+ShellQuote(ev.Name)+" -o yaml"))
	}
	if signal := placementSignal(s); signal != "" {
		return Refuse(MsgPlacement, "found "+signal, "act on the service in the cluster that placement chose for it")
	}
	return nil
}

func placementSignal(s *v1beta1.InferenceService) string {
	switch {
	case s.Spec.Placement != nil:
		return "spec.placement"
	case s.Status.Placement != nil:
		return "status.placement"
	case slices.Contains(s.Finalizers, placementFinalizer):
		return "finalizer " + placementFinalizer
	}
	for _, key := range placementKeys {
		if _, ok := s.Annotations[key]; ok {
			return "annotation " + key
		}
		if _, ok := s.Labels[key]; ok {
			return "label " + key
		}
	}
	return ""
}
