package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/controller"
)

// scaledObjectCRD is as much of KEDA as an API server needs to serve its kind.
func scaledObjectCRD() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "scaledobjects.keda.sh"},
		"spec": map[string]any{
			"group": "keda.sh", "scope": "Namespaced",
			"names": map[string]any{"kind": "ScaledObject", "listKind": "ScaledObjectList", "plural": "scaledobjects", "singular": "scaledobject"},
			"versions": []any{map[string]any{
				"name": "v1alpha1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

func scaledObject(t *testing.T, c client.Client, key client.ObjectKey) (*unstructured.Unstructured, error) {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("keda.sh/v1alpha1")
	o.SetKind("ScaledObject")
	err := c.Get(t.Context(), key, o)
	return o, err
}

// TestScalers takes a component through the classes on a real API server: what it fills in is not fought over, KEDA's
// objects are written and read as they are, and what is somebody else's is never touched.
func TestScalers(t *testing.T) {
	c := newClient(t)
	create(t, c, scaledObjectCRD())
	key := client.ObjectKey{Namespace: "scalers", Name: "mistral-pd"}
	until(t, "the CRD", func() (bool, string) {
		_, err := scaledObject(t, c, client.ObjectKey{Namespace: "default", Name: "none"})
		return apierrors.IsNotFound(err), err.Error()
	})
	seen, _ := startManager(t, controller.Options{})
	theirs := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "scalers", Name: "mistral-pd-decoder"},
		Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 7, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "x"}},
	}
	create(t, c, namespaceNamed("scalers"), theirs)
	sampleService(t, c, "scalers")

	edit := func(what string, change func(*v1beta1.ComponentExtensionSpec)) {
		t.Helper()
		until(t, what, func() (bool, string) {
			isvc := &v1beta1.InferenceService{}
			if err := c.Get(t.Context(), key, isvc); err != nil {
				return false, err.Error()
			}
			before := isvc.DeepCopy()
			change(isvc.Spec.Extension(v1beta1.EngineComponent))
			err := c.Patch(t.Context(), isvc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
			return err == nil, "it was not stored"
		})
	}
	engine := client.ObjectKey{Namespace: "scalers", Name: "mistral-pd-engine"}
	object := client.ObjectKey{Namespace: "scalers", Name: "scaledobject-mistral-pd-engine"}
	hpa := func() (*autoscalingv2.HorizontalPodAutoscaler, error) {
		o := &autoscalingv2.HorizontalPodAutoscaler{}
		err := c.Get(t.Context(), engine, o)
		return o, err
	}
	until(t, "the default HPA", func() (bool, string) {
		o, err := hpa()
		return err == nil && *o.Spec.Metrics[0].Resource.Target.AverageUtilization == 80, "none"
	})

	edit("bounds and half a behaviour", func(e *v1beta1.ComponentExtensionSpec) {
		e.MinReplicas, e.MaxReplicas = new(2), new(6)
		e.Autoscaler = &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerHPA, HPA: &v1beta1.HPASpec{Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0))},
		}}}
	})
	until(t, "the edit on the HPA", func() (bool, string) {
		o, err := hpa()
		return err == nil && *o.Spec.MinReplicas == 2 && o.Spec.MaxReplicas == 6 && o.Spec.Behavior != nil && *o.Spec.Behavior.ScaleDown.StabilizationWindowSeconds == 0, "not there"
	})
	filled, err := hpa()
	if err != nil || filled.Spec.Behavior.ScaleUp == nil {
		t.Fatalf("the API server filled in nothing, so this proves nothing: %+v, %v", filled.Spec.Behavior, err)
	}

	// A replica of the service is left behind its scaler: its count is not the manager's any more.
	replica := &v1beta1.InferenceReplica{}
	if err := c.Get(t.Context(), engine, replica); err != nil || *replica.Spec.Replicas != 1 {
		t.Errorf("the manager moved the count to %v, %v", replica.Spec.Replicas, err)
	}

	triggers := []v1beta1.KEDATrigger{{Type: "cron", Metadata: map[string]string{"timezone": "UTC"}}}
	edit("class KEDA", func(e *v1beta1.ComponentExtensionSpec) {
		e.Autoscaler = &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerKEDA, KEDA: &v1beta1.KEDASpec{Triggers: triggers, PollingInterval: new(int32(9))}}
	})
	until(t, "the ScaledObject", func() (bool, string) {
		_, err := scaledObject(t, c, object)
		return err == nil, "none"
	})
	got, err := scaledObject(t, c, object)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"scaleTargetRef":  map[string]any{"apiVersion": "ome.io/v1beta1", "kind": "InferenceReplica", "name": "mistral-pd-engine"},
		"minReplicaCount": int64(2), "maxReplicaCount": int64(6), "pollingInterval": int64(9),
		"triggers": []any{map[string]any{"type": "cron", "metadata": map[string]any{"timezone": "UTC"}}},
	}
	if diff := cmp.Diff(want, got.Object["spec"]); diff != "" {
		t.Errorf("ScaledObject (-want +got):\n%s", diff)
	}
	if _, err := hpa(); !apierrors.IsNotFound(err) {
		t.Errorf("KEDA's object is there beside the HPA: %v", err)
	}
	// KEDA writes into what is ours; what we don't know stays.
	got.Object["spec"].(map[string]any)["maxReplicaCount"] = int64(50)
	got.Object["spec"].(map[string]any)["ours"] = "unknown to the manager"
	if err := c.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	until(t, "the ScaledObject put right", func() (bool, string) {
		o, err := scaledObject(t, c, object)
		if err != nil {
			return false, err.Error()
		}
		spec := o.Object["spec"].(map[string]any)
		if spec["ours"] != "unknown to the manager" {
			t.Fatal("a field that the manager doesn't know was lost")
		}
		return spec["maxReplicaCount"] == int64(6), "not yet"
	})

	edit("class HPA again", func(e *v1beta1.ComponentExtensionSpec) {
		e.Autoscaler = &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerHPA}
	})
	until(t, "the HPA alone", func() (bool, string) {
		_, hpaErr := hpa()
		_, objectErr := scaledObject(t, c, object)
		return hpaErr == nil && apierrors.IsNotFound(objectErr), "not yet"
	})
	edit("class External", func(e *v1beta1.ComponentExtensionSpec) {
		e.Autoscaler = &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerExternal}
	})
	until(t, "no scaler", func() (bool, string) {
		_, err := hpa()
		return apierrors.IsNotFound(err), "an HPA"
	})

	// The decoder's name was taken before the service came.
	until(t, "word of the foreign HPA", func() (bool, string) {
		isvc := &v1beta1.InferenceService{}
		if err := c.Get(t.Context(), key, isvc); err != nil {
			return false, err.Error()
		}
		a := isvc.Status.Components[v1beta1.DecoderComponent].Autoscaler
		return a != nil && slices.ContainsFunc(a.Conditions, func(x metav1.Condition) bool {
			return x.Status == metav1.ConditionFalse && strings.Contains(x.Message, "is not controlled by expected owner")
		}), "nothing in status"
	})
	after := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(theirs), after); err != nil || after.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("somebody else's HPA was touched: %v", err)
	}
	if err := c.Delete(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	until(t, "the decoder's own HPA", func() (bool, string) {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(theirs), after)
		return err == nil && metav1.GetControllerOf(after) != nil, "none"
	})

	// At rest nothing is written to scalers, whatever the API server filled in.
	quiet, still := seen.count(), time.Now()
	until(t, "two seconds without a write of a scaler", func() (bool, string) {
		for _, r := range seen.since(quiet) {
			if strings.Contains(r, "horizontalpodautoscalers") || strings.Contains(r, "scaledobjects") {
				quiet, still = seen.count(), time.Now()
				return false, r
			}
		}
		return time.Since(still) > 2*time.Second, "not long enough"
	})
}
