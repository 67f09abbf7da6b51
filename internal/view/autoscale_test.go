package view

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
)

// TestAutoscaleGolden draws each service of testdata, with and without live checks.
func TestAutoscaleGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/autoscale/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c struct {
				Service  v1beta1.InferenceService
				Replicas []v1beta1.InferenceReplica
				HPAs     []autoscalingv2.HorizontalPodAutoscaler
			}
			if err := yaml.UnmarshalStrict(raw, &c); err != nil {
				t.Fatal(err)
			}
			live := &AutoscaleLive{Scale: map[v1beta1.ComponentType]*LiveScale{}, Scaler: map[v1beta1.ComponentType]*LiveScaler{}}
			for _, component := range v1beta1.Components() {
				name, state := ScaleTarget(&c.Service, component)
				live.Scale[component] = NoLiveScale(state)
				if state == "" {
					live.Scale[component] = NoLiveScale(LiveNotFound)
				}
				for i := range c.Replicas {
					if r := &c.Replicas[i]; state == "" && r.Name == name {
						live.Scale[component] = BuildLiveScale(&c.Service, component, r, scaleOfReplica(r))
					}
				}
				kind, name, state := ScalerRef(&c.Service, component)
				live.Scaler[component] = NoLiveScaler(state)
				if state == "" {
					live.Scaler[component] = NoLiveScaler(LiveNotFound)
				}
				for i := range c.HPAs {
					if h := &c.HPAs[i]; kind == KindHPA && h.Name == name {
						live.Scaler[component] = BuildLiveHPA(&c.Service, component, h)
					}
				}
			}
			var b strings.Builder
			plain := BuildAutoscaleStatus(&c.Service, &AutoscaleLive{}, now, now)
			draw(t, &b, "table", AutoscaleStatusTable(plain), 0)
			draw(t, &b, "wide", AutoscaleStatusWide(plain), 0)
			drawJSON(t, &b, plain)
			r := BuildAutoscaleStatus(&c.Service, live, now, now)
			draw(t, &b, "live", AutoscaleStatusTable(r), 0)
			draw(t, &b, "live, wide", AutoscaleStatusWide(r), 0)
			drawJSON(t, &b, r)
			compareFile(t, strings.TrimSuffix(file, ".yaml")+".txt", b.String())
		})
	}
}

func scaleOfReplica(r *v1beta1.InferenceReplica) *Scale {
	s := &Scale{}
	s.Metadata.Name, s.Metadata.UID, s.Metadata.ResourceVersion = r.Name, string(r.UID), r.ResourceVersion
	if r.Spec.Replicas != nil {
		s.Spec.Replicas = *r.Spec.Replicas
	}
	s.Status.Replicas = r.Status.Replicas
	return s
}

// scaled is a service whose engine has an HPA with nothing wrong.
func scaled() *v1beta1.InferenceService {
	s := ownService()
	s.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{"engine": {
		ScaleTargetRef: &v1beta1.ScaleTargetRef{APIVersion: "ome.io/v1beta1", Kind: "InferenceReplica", Name: "chat-engine"},
		Autoscaler: &v1beta1.ComponentAutoscalerStatus{Class: v1beta1.AutoscalerHPA, ManagedBy: "ome", SpecSource: "isvc", CurrentReplicas: 1, DesiredReplicas: 2,
			Conditions: []metav1.Condition{{Type: "AbleToScale", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)}}},
	}}
	return s
}

// TestAutoscaleIssues: each code has a status that earns it, and makes of its
// component and of the service what the rule says.
func TestAutoscaleIssues(t *testing.T) {
	later := metav1.NewTime(now.Add(time.Hour))
	covered := map[string]bool{}
	for _, c := range []struct {
		code, service string
		edit          func(*v1beta1.InferenceService, *v1beta1.ComponentStatus)
	}{
		{"", EvidenceReported, func(*v1beta1.InferenceService, *v1beta1.ComponentStatus) {}},
		{issueUnknownComponent, stateInvalid, func(s *v1beta1.InferenceService, _ *v1beta1.ComponentStatus) {
			s.Status.Components["sidecar\x1b"] = v1beta1.ComponentStatus{}
		}},
		{issueNoAutoscaler, stateUnavailable, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) { c.Autoscaler = nil }},
		{issueNoTarget, statePartial, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) { c.ScaleTargetRef = nil }},
		{issueClass, stateInvalid, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) { c.Autoscaler.Class = "VPA" }},
		{issueManagedBy, stateInvalid, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) { c.Autoscaler.ManagedBy = "" }},
		{issueOwnership, stateInvalid, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) {
			c.Autoscaler.Class = v1beta1.AutoscalerNone
		}},
		{issueSpecSource, stateInvalid, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) { c.Autoscaler.SpecSource = "moon" }},
		{issueUnexpectedScaler, stateInvalid, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) {
			c.Autoscaler.Class, c.Autoscaler.ManagedBy = v1beta1.AutoscalerExternal, "external"
		}},
		{issueReplicasAmbiguous, statePartial, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) { c.Autoscaler.CurrentReplicas = 0 }},
		{issueReplicasInvalid, stateInvalid, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) { c.Autoscaler.DesiredReplicas = -1 }},
		{issueReplicasInvalid, stateInvalid, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) { c.Autoscaler.LastScaleTime = &later }},
		{issueTarget, stateInvalid, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) { c.ScaleTargetRef.Name = "other-engine" }},
		{issueTarget, stateInvalid, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) { c.ScaleTargetRef.APIVersion = "v1" }},
		{issueCondition, statePartial, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) {
			c.Autoscaler.Conditions[0].Status = "Yes"
		}},
		{issueCondition, statePartial, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) {
			c.Autoscaler.Conditions[0].LastTransitionTime = later
		}},
		{issueConditionConflict, statePartial, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) {
			c.Autoscaler.Conditions = append(c.Autoscaler.Conditions, c.Autoscaler.Conditions[0])
		}},
		{issuePolicy, stateInvalid, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) { c.Autoscaler.SpecSource = specPolicy }},
		{issuePolicy, stateInvalid, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) {
			c.Autoscaler.Policy = &v1beta1.AutoscalerPolicyStatusRef{Name: "p"}
		}},
		{issuePolicyConflict, stateInvalid, func(_ *v1beta1.InferenceService, c *v1beta1.ComponentStatus) {
			c.Autoscaler.SpecSource, c.Autoscaler.Policy = specPolicy, &v1beta1.AutoscalerPolicyStatusRef{Name: "p"}
			c.Autoscaler.ShadowedPolicyRef = &v1beta1.ShadowedAutoscalerPolicy{Name: "p"}
		}},
	} {
		s := scaled()
		engine := s.Status.Components["engine"]
		c.edit(s, &engine)
		s.Status.Components["engine"] = engine
		r := BuildAutoscaleStatus(s, &AutoscaleLive{}, now, now)
		var codes []string
		for _, i := range r.Content.Issues {
			codes = append(codes, i.Code)
		}
		covered[c.code] = true
		want := []string{c.code}
		if c.code == "" {
			want = nil
		}
		if diff := cmp.Diff(want, codes); diff != "" || r.Content.Summary.State != c.service {
			t.Errorf("%s: service %s, want %s; issues (-want +got):\n%s", c.code, r.Content.Summary.State, c.service, diff)
		}
		if rule, ok := autoscaleRules[c.code]; ok && c.code != issueUnknownComponent && r.Content.Components[0].State != rule.state {
			t.Errorf("%s: component %s, want %s", c.code, r.Content.Components[0].State, rule.state)
		}
		if partial := len(r.Warnings) > 0; partial != (c.service != EvidenceReported) {
			t.Errorf("%s: warnings %v", c.code, r.Warnings)
		}
	}
	for code := range autoscaleRules {
		if !covered[code] {
			t.Errorf("no case earns %s", code)
		}
	}
}

// TestLiveScale: each live word has a replica and a scale that earn it.
func TestLiveScale(t *testing.T) {
	for _, c := range []struct {
		state, count string
		edit         func(*v1beta1.InferenceReplica, *Scale)
	}{
		{EvidenceReported, countEqual, func(*v1beta1.InferenceReplica, *Scale) {}},
		{EvidenceReported, countDrift, func(_ *v1beta1.InferenceReplica, s *Scale) { s.Status.Replicas = 1 }},
		{EvidenceStale, countUnknown, func(r *v1beta1.InferenceReplica, _ *Scale) { r.Generation = 5 }},
		{EvidenceStale, countUnknown, func(r *v1beta1.InferenceReplica, _ *Scale) { r.Annotations[v1beta1.ParentGenerationAnnotation] = "6" }},
		{LiveChanged, countUnknown, func(_ *v1beta1.InferenceReplica, s *Scale) { s.Metadata.ResourceVersion = "10" }},
		{LiveChanged, countUnknown, func(_ *v1beta1.InferenceReplica, s *Scale) { s.Metadata.UID = "r-2" }},
		{LiveDeleting, countUnknown, func(r *v1beta1.InferenceReplica, _ *Scale) { r.DeletionTimestamp = &metav1.Time{Time: now} }},
		{stateInvalid, countUnknown, func(r *v1beta1.InferenceReplica, _ *Scale) { r.OwnerReferences = nil }},
		{stateInvalid, countUnknown, func(r *v1beta1.InferenceReplica, _ *Scale) { r.Status.ObservedGeneration = 9 }},
		{stateInvalid, countUnknown, func(_ *v1beta1.InferenceReplica, s *Scale) { s.Spec.Replicas = -1 }},
	} {
		r := ownReplica()
		s := scaleOfReplica(r)
		c.edit(r, s)
		if got := BuildLiveScale(ownService(), v1beta1.EngineComponent, r, s); got.State != c.state || got.Count != c.count {
			t.Errorf("%s/%s, want %s/%s", got.State, got.Count, c.state, c.count)
		}
	}
	for class, want := range map[string]string{"Forbidden": LiveForbidden, "Unauthorized": LiveForbidden, "NotFound": LiveNotFound, "Network": stateUnavailable} {
		if got := LiveFailure(class); got != want {
			t.Errorf("%s: %s, want %s", class, got, want)
		}
	}
}

// TestLiveScaler: a scaler of something else is not this component's.
func TestLiveScaler(t *testing.T) {
	hpa := func(edit func(*autoscalingv2.HorizontalPodAutoscaler)) *LiveScaler {
		h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "chat-engine", UID: "h-1", Generation: 2}}
		h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "ome.io/v1beta1", Kind: "InferenceReplica", Name: "chat-engine"}
		edit(h)
		return BuildLiveHPA(scaled(), v1beta1.EngineComponent, h)
	}
	one, two := int64(1), int64(2)
	for _, c := range []struct {
		state, generation string
		edit              func(*autoscalingv2.HorizontalPodAutoscaler)
	}{
		{EvidenceReported, "Unproven", func(*autoscalingv2.HorizontalPodAutoscaler) {}},
		{EvidenceReported, "Matched", func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Status.ObservedGeneration = &two }},
		{EvidenceStale, "Unproven", func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Status.ObservedGeneration = &one }},
		{stateInvalid, "Unproven", func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.ScaleTargetRef.Kind = "Deployment" }},
		{stateInvalid, "Unproven", func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Status.DesiredReplicas = -1 }},
		{LiveDeleting, "Unproven", func(h *autoscalingv2.HorizontalPodAutoscaler) { h.DeletionTimestamp = &metav1.Time{Time: now} }},
	} {
		if got := hpa(c.edit); got.State != c.state || got.Generation != c.generation {
			t.Errorf("%s/%s, want %s/%s", got.State, got.Generation, c.state, c.generation)
		}
	}
	object := func(edit func(*ScaledObject)) *LiveScaler {
		o := &ScaledObject{ObjectMeta: metav1.ObjectMeta{Name: "scaledobject-chat-engine", UID: "k-1"}}
		o.Spec.ScaleTargetRef.APIVersion, o.Spec.ScaleTargetRef.Kind, o.Spec.ScaleTargetRef.Name = "ome.io/v1beta1", "InferenceReplica", "chat-engine"
		edit(o)
		return BuildLiveScaledObject(scaled(), v1beta1.EngineComponent, o)
	}
	if got := object(func(*ScaledObject) {}); got.State != EvidenceReported || got.Generation != "Unproven" {
		t.Errorf("%+v", got)
	}
	if got := object(func(o *ScaledObject) { o.Spec.ScaleTargetRef.Name = "x" }); got.State != stateInvalid {
		t.Errorf("%+v", got)
	}
	s := scaled()
	keda := s.Status.Components["engine"]
	keda.Autoscaler.Class = v1beta1.AutoscalerKEDA
	if kind, name, state := ScalerRef(s, v1beta1.EngineComponent); kind != kindScaledObject || name != "scaledobject-chat-engine" || state != "" {
		t.Errorf("%s %s %s", kind, name, state)
	}
	if words := []string{LiveNotSelected, stateInvalid}; !slices.Contains(words, func() string { _, _, state := ScalerRef(ownService(), v1beta1.EngineComponent); return state }()) {
		t.Error("a component without status has no scaler")
	}
}
