package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

// TestUnreadableRuntimeKeepsItsComponents: a runtime that declares the mode is
// taken away while pods run by it. They stay, and the service says why.
func TestUnreadableRuntimeKeepsItsComponents(t *testing.T) {
	const native, raw = string(v1beta1.OMENativeMode), string(v1beta1.RawDeploymentMode)
	declaring := func(mode string) *v1beta1.ClusterServingRuntime {
		rt := testRuntime()
		rt.Spec.EngineConfig.Annotations = map[string]string{v1beta1.DeploymentModeAnnotation: mode}
		return rt
	}
	disabled := declaring(native)
	disabled.Spec.Disabled = ptr.To(true)
	inheriting := declaring(native)
	inheriting.Annotations = map[string]string{v1beta1.InheritFromAnnotation: "parent"}
	tests := map[string]struct {
		runtime *v1beta1.ClusterServingRuntime // nil: deleted
		change  func(*v1beta1.InferenceService)
		gone    bool
		reason  string
	}{
		"readable":               {runtime: declaring(native)},
		"readable, another mode": {runtime: declaring(raw), gone: true},
		"deleted":                {reason: v1beta1.ReasonRuntimeNotFound},
		"disabled":               {runtime: disabled, reason: v1beta1.ReasonRuntimeDisabled},
		"not understood":         {runtime: inheriting, reason: v1beta1.ReasonRuntimeSelectionFailed},
		"no longer named":        {runtime: declaring(native), change: func(s *v1beta1.InferenceService) { s.Spec.Runtime = nil }, reason: v1beta1.ReasonRuntimeSelectionFailed},
		"deleted, raw by spec":   {change: func(s *v1beta1.InferenceService) { s.Spec.DeploymentMode = v1beta1.RawDeploymentMode }, reason: v1beta1.ReasonRuntimeNotFound},
		"deleted, raw by component": {change: func(s *v1beta1.InferenceService) {
			s.Spec.Engine.Annotations = map[string]string{v1beta1.DeploymentModeAnnotation: raw}
		}, gone: true},
		"deleted, out of the spec": {change: func(s *v1beta1.InferenceService) { s.Spec.Engine = nil }, gone: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			isvc := testService()
			isvc.Spec = v1beta1.InferenceServiceSpec{Engine: &v1beta1.EngineSpec{}, Runtime: &v1beta1.ServingRuntimeRef{Name: "rt"}}
			if test.change != nil {
				test.change(isvc)
			}
			replica := testReplica(v1beta1.EngineComponent)
			replica.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(isvc, v1beta1.SchemeGroupVersion.WithKind("InferenceService"))}
			replica.Finalizers = []string{v1beta1.InferenceReplicaFinalizer}
			replica.Spec.Replicas = ptr.To[int32](1)
			b := newBench(t, isvc, replica)
			if test.runtime != nil {
				b.put(t, test.runtime)
			}
			var decision core.Decision
			b.decide = func(w core.World) core.Decision {
				b.world, decision = w, core.Decide(w)
				return decision
			}
			if _, err := b.pass(t); err != nil {
				t.Fatal(err)
			}
			if len(b.world.Components) != 1 || b.world.Components[0].Declared == test.gone || decision.Components[0].DeleteReplica != test.gone {
				t.Fatalf("components %+v, deleted %v", b.world.Components, decision.Components[0].DeleteReplica)
			}
			said := fmt.Sprint(decision.Status.Conditions)
			if test.reason != "" && !strings.Contains(said, test.reason) {
				t.Errorf("conditions don't say %s: %s", test.reason, said)
			}
		})
	}
}

// TestUnreadableRuntimeDeclaresNothing: without a replica there is nothing to keep.
func TestUnreadableRuntimeDeclaresNothing(t *testing.T) {
	isvc := testService()
	isvc.Spec = v1beta1.InferenceServiceSpec{Engine: &v1beta1.EngineSpec{}, Runtime: &v1beta1.ServingRuntimeRef{Name: "missing"}}
	b := newBench(t, isvc)
	if _, err := b.pass(t); err != nil || len(b.world.Components) > 0 {
		t.Fatalf("components %+v, %v", b.world.Components, err)
	}
	// The same rendering serves a pass in which the replica has come.
	b.put(t, testReplica(v1beta1.EngineComponent))
	b.clock.Step(time.Second)
	if _, err := b.pass(t); err != nil || len(b.world.Components) != 1 || !b.world.Components[0].Declared {
		t.Fatalf("components %+v, %v", b.world.Components, err)
	}
}
