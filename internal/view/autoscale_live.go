package view

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// LiveScale is the count that the target's scale subresource has now.
type LiveScale struct {
	// State is a live evidence word; Count compares the two numbers.
	State           string `json:"state"`
	Kind            string `json:"kind,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	SpecReplicas    *int32 `json:"specReplicas,omitempty"`
	CurrentReplicas *int32 `json:"currentReplicas,omitempty"`
	Count           string `json:"count"`
}

// LiveScaler is the scaler object that OME made.
type LiveScaler struct {
	State           string               `json:"state"`
	Kind            string               `json:"kind,omitempty"`
	Name            string               `json:"name,omitempty"`
	UID             string               `json:"uid,omitempty"`
	Generation      string               `json:"generation,omitempty"`
	CurrentReplicas *int32               `json:"currentReplicas,omitempty"`
	DesiredReplicas *int32               `json:"desiredReplicas,omitempty"`
	Conditions      []AutoscaleCondition `json:"conditions"`
}

// Live evidence words beside those of the report.
const (
	LiveNotSelected = "NotSelected"
	LiveUnsupported = "Unsupported"
	LiveChanged     = "Changed"
	LiveDeleting    = "Deleting"
	LiveForbidden   = "Forbidden"
	LiveNotFound    = "NotFound"

	countEqual   = "Equal"
	countDrift   = "Drift"
	countUnknown = "Unknown"

	// KindHPA is the scaler object of class HPA.
	KindHPA          = "HorizontalPodAutoscaler"
	kindScaledObject = "ScaledObject"
)

// LiveFailure is the live evidence word for a class of failed read.
func LiveFailure(class string) string {
	switch class {
	case "Forbidden", "Unauthorized":
		return LiveForbidden
	case "NotFound":
		return LiveNotFound
	}
	return stateUnavailable
}

// ScaleTarget is the replica whose scale a component's status names; the state is
// the live evidence word when there is none to read.
func ScaleTarget(s *v1beta1.InferenceService, c v1beta1.ComponentType) (name, state string) {
	st, ok := s.Status.Components[c]
	t := st.ScaleTargetRef
	switch {
	case !ok || t == nil:
		return "", LiveNotSelected
	case t.Kind == kindDeployment && t.APIVersion == "apps/v1":
		return "", LiveUnsupported
	case t.APIVersion != v1beta1.GroupVersion.String() || t.Kind != v1beta1.InferenceReplicaKind || t.Name != v1beta1.ReplicaName(s.Name, c):
		return "", stateInvalid
	}
	return t.Name, ""
}

// Scale is the scale subresource of a replica, as far as it matters here.
type Scale struct {
	Metadata struct {
		Name            string `json:"name"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Replicas int32 `json:"replicas"`
	} `json:"status"`
}

// BuildLiveScale compares the wanted and the present count of a replica. The
// replica is read before its scale; both must be the same version of one object.
func BuildLiveScale(s *v1beta1.InferenceService, c v1beta1.ComponentType, replica *v1beta1.InferenceReplica, scale *Scale) *LiveScale {
	out := &LiveScale{State: EvidenceReported, Kind: "IR", Name: safe(replica.Name), UID: safe(string(replica.UID)), Count: countUnknown}
	problem := standing(s, replica)
	switch {
	case foreign(s, replica) != "" || replica.Spec.Component != c:
		out.State = stateInvalid
	case scale.Metadata.UID != string(replica.UID) || scale.Metadata.ResourceVersion != replica.ResourceVersion:
		out.State = LiveChanged
	case scale.Spec.Replicas < 0 || scale.Status.Replicas < 0, problem == IssueObservedGenerationBad, problem == IssueParentBad, problem == IssueParentAhead:
		out.State = stateInvalid
	case replica.DeletionTimestamp != nil:
		out.State = LiveDeleting
	case problem != "":
		out.State = EvidenceStale
	}
	if out.State == LiveChanged || out.State == stateInvalid {
		return out
	}
	out.SpecReplicas, out.CurrentReplicas = &scale.Spec.Replicas, &scale.Status.Replicas
	if out.State == EvidenceReported {
		out.Count = countDrift
		if scale.Spec.Replicas == scale.Status.Replicas {
			out.Count = countEqual
		}
	}
	return out
}

// ScalerRef is the scaler object to read for a component; the state is the live
// evidence word when there is none.
func ScalerRef(s *v1beta1.InferenceService, c v1beta1.ComponentType) (kind, name, state string) {
	a := s.Status.Components[c].Autoscaler
	t := s.Status.Components[c].ScaleTargetRef
	switch {
	case a == nil || t == nil:
		return "", "", LiveNotSelected
	case !objectName(t.Name):
		return "", "", stateInvalid
	case a.Class == v1beta1.AutoscalerHPA && a.ManagedBy == v1beta1.AutoscalerManagedByOME:
		return KindHPA, t.Name, ""
	case a.Class == v1beta1.AutoscalerKEDA && a.ManagedBy == v1beta1.AutoscalerManagedByOME:
		return kindScaledObject, "scaledobject-" + t.Name, ""
	}
	return "", "", LiveNotSelected
}

// BuildLiveHPA reports on the HorizontalPodAutoscaler of a component.
func BuildLiveHPA(s *v1beta1.InferenceService, c v1beta1.ComponentType, h *autoscalingv2.HorizontalPodAutoscaler) *LiveScaler {
	t := s.Status.Components[c].ScaleTargetRef
	out := &LiveScaler{State: EvidenceReported, Kind: "HPA", Name: safe(h.Name), UID: safe(string(h.UID)), Generation: "Unproven", Conditions: []AutoscaleCondition{}}
	ref := h.Spec.ScaleTargetRef
	switch {
	case h.UID == "" || t == nil || ref.Kind != t.Kind || ref.Name != t.Name || ref.APIVersion != t.APIVersion, h.Status.CurrentReplicas < 0, h.Status.DesiredReplicas < 0:
		out.State = stateInvalid
		return out
	case h.DeletionTimestamp != nil:
		out.State = LiveDeleting
	}
	if o := h.Status.ObservedGeneration; o != nil {
		switch {
		case *o == h.Generation:
			out.Generation = "Matched"
		case *o < h.Generation && out.State == EvidenceReported:
			out.State = EvidenceStale
		}
	}
	out.CurrentReplicas, out.DesiredReplicas = &h.Status.CurrentReplicas, &h.Status.DesiredReplicas
	for _, cond := range h.Status.Conditions[:min(len(h.Status.Conditions), maxScalerConditions)] {
		out.Conditions = append(out.Conditions, AutoscaleCondition{safe(string(cond.Type)), liveStatus(cond.Status), timePtr(&cond.LastTransitionTime)})
	}
	return out
}

// ScaledObject is a KEDA ScaledObject, as far as it matters here.
type ScaledObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Name       string `json:"name"`
		} `json:"scaleTargetRef"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string                 `json:"type"`
			Status corev1.ConditionStatus `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// BuildLiveScaledObject reports on the ScaledObject of a component. Its status
// carries no generation, so nothing proves how fresh it is.
func BuildLiveScaledObject(s *v1beta1.InferenceService, c v1beta1.ComponentType, o *ScaledObject) *LiveScaler {
	t := s.Status.Components[c].ScaleTargetRef
	out := &LiveScaler{State: EvidenceReported, Kind: kindScaledObject, Name: safe(o.Name), UID: safe(string(o.UID)), Generation: "Unproven", Conditions: []AutoscaleCondition{}}
	ref := o.Spec.ScaleTargetRef
	switch {
	case o.UID == "" || t == nil || ref.Kind != t.Kind || ref.Name != t.Name || ref.APIVersion != t.APIVersion:
		out.State = stateInvalid
		return out
	case o.DeletionTimestamp != nil:
		out.State = LiveDeleting
	}
	for _, cond := range o.Status.Conditions[:min(len(o.Status.Conditions), maxScalerConditions)] {
		out.Conditions = append(out.Conditions, AutoscaleCondition{safe(cond.Type), liveStatus(cond.Status), ""})
	}
	return out
}

func liveStatus(s corev1.ConditionStatus) string {
	if conditionStatus(metav1.ConditionStatus(s)) {
		return string(s)
	}
	return stateInvalid
}

// NoLiveScale stands for a check without numbers.
func NoLiveScale(state string) *LiveScale { return &LiveScale{State: state, Count: countUnknown} }

// NoLiveScaler stands for a check that read no scaler.
func NoLiveScaler(state string) *LiveScaler {
	return &LiveScaler{State: state, Conditions: []AutoscaleCondition{}}
}

// LiveSource is an object that a live check read, or tried to.
func LiveSource(kind, namespace, name, uid string, generation int64, evidence string, now time.Time) Source {
	return Source{kind, namespace, safe(name), safe(uid), generation, evidence, stamp(now)}
}
