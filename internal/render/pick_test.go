package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

func TestPickRuntime(t *testing.T) {
	cluster := &v1beta1.ClusterServingRuntime{ObjectMeta: metav1.ObjectMeta{Name: "rt"}}
	local := &v1beta1.ServingRuntime{ObjectMeta: metav1.ObjectMeta{Name: "rt", Namespace: "demo"}}
	disabled := &v1beta1.ClusterServingRuntime{ObjectMeta: metav1.ObjectMeta{Name: "rt"}, Spec: v1beta1.ServingRuntimeSpec{Disabled: ptr.To(true)}}
	child := &v1beta1.ClusterServingRuntime{ObjectMeta: metav1.ObjectMeta{Name: "rt", Annotations: map[string]string{v1beta1.InheritFromAnnotation: "base"}}}
	flat := &v1beta1.ServingRuntime{ObjectMeta: metav1.ObjectMeta{Name: "rt"}, Spec: v1beta1.ServingRuntimeSpec{Containers: []corev1.Container{{Name: "c"}}}}
	clusterRef := &v1beta1.ServingRuntimeRef{Name: "rt"}
	localRef := &v1beta1.ServingRuntimeRef{Name: "rt", Kind: ptr.To(v1beta1.ServingRuntimeKind)}
	tests := map[string]struct {
		ref     *v1beta1.ServingRuntimeRef
		cluster *v1beta1.ClusterServingRuntime
		local   *v1beta1.ServingRuntime
		kind    string
		reason  string
		message string
	}{
		"cluster first":                {ref: clusterRef, cluster: cluster, local: local, kind: v1beta1.ClusterServingRuntimeKind},
		"then the namespace":           {ref: clusterRef, local: local, kind: v1beta1.ServingRuntimeKind},
		"namespace only when named":    {ref: localRef, cluster: cluster, local: local, kind: v1beta1.ServingRuntimeKind},
		"no fallback to cluster":       {ref: localRef, cluster: cluster, reason: v1beta1.ReasonRuntimeNotFound, message: `spec.runtime.name: no ServingRuntime "rt" in the namespace; create it, name another, or set spec.runtime.kind to ClusterServingRuntime`},
		"neither":                      {ref: clusterRef, reason: v1beta1.ReasonRuntimeNotFound, message: `spec.runtime.name: no ClusterServingRuntime "rt", nor a ServingRuntime of that name in the namespace; create it or name another`},
		"no reference":                 {cluster: cluster, reason: v1beta1.ReasonRuntimeSelectionFailed, message: "choosing a runtime by the model is not supported yet; set spec.runtime.name"},
		"unknown kind":                 {ref: &v1beta1.ServingRuntimeRef{Name: "rt", Kind: ptr.To("Deployment")}, cluster: cluster, reason: v1beta1.ReasonRuntimeSelectionFailed, message: `spec.runtime.kind: "Deployment" is not ClusterServingRuntime or ServingRuntime`},
		"disabled":                     {ref: clusterRef, cluster: disabled, reason: v1beta1.ReasonRuntimeDisabled, message: `ClusterServingRuntime "rt" is disabled; enable it or name another in spec.runtime.name`},
		"disabled hides the local one": {ref: clusterRef, cluster: disabled, local: local, reason: v1beta1.ReasonRuntimeDisabled, message: `ClusterServingRuntime "rt" is disabled; enable it or name another in spec.runtime.name`},
		"inherits":                     {ref: clusterRef, cluster: child, reason: v1beta1.ReasonRuntimeSelectionFailed, message: `ClusterServingRuntime "rt" inherits from "base" (annotation ome.io/inherit-from), which is not supported yet; name a runtime that stands alone`},
		"flat template":                {ref: localRef, local: flat, reason: v1beta1.ReasonRuntimeSelectionFailed, message: `ServingRuntime "rt" has a flat template (spec.containers), which is not supported; move it to spec.engineConfig`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := PickRuntime(tc.ref, tc.cluster, tc.local)
			var reason, message string
			if err != nil {
				reason, message = err.(*Error).Reason, err.(*Error).Message
			}
			if diff := cmp.Diff([]string{tc.kind, tc.reason, tc.message}, []string{got.Kind, reason, message}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPickModel(t *testing.T) {
	cluster := &v1beta1.ClusterBaseModel{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	local := &v1beta1.BaseModel{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1beta1.BaseModelSpec{Disabled: ptr.To(true)}}
	tests := map[string]struct {
		ref     *v1beta1.ModelRef
		cluster *v1beta1.ClusterBaseModel
		local   *v1beta1.BaseModel
		found   bool
		message string
	}{
		"none":              {},
		"cluster":           {ref: &v1beta1.ModelRef{Name: "m"}, cluster: cluster, local: local, found: true},
		"no fallback":       {ref: &v1beta1.ModelRef{Name: "m"}, local: local, message: `spec.model.name: no ClusterBaseModel "m"; create it or name another`},
		"disabled in place": {ref: &v1beta1.ModelRef{Name: "m", Kind: ptr.To(v1beta1.BaseModelKind)}, local: local, message: `BaseModel "m" is disabled; enable it or name another in spec.model.name`},
		"unknown kind":      {ref: &v1beta1.ModelRef{Name: "m", Kind: ptr.To("Model")}, message: `spec.model.kind: "Model" is not ClusterBaseModel or BaseModel`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := PickModel(tc.ref, tc.cluster, tc.local)
			var message string
			if err != nil {
				message = err.Error()
			}
			if message != tc.message || (got.Spec != nil) != tc.found {
				t.Errorf("got %v, %q; want found %v, %q", got.Spec, message, tc.found, tc.message)
			}
		})
	}
}

func TestMode(t *testing.T) {
	annotated := func(mode string) map[string]string { return map[string]string{v1beta1.DeploymentModeAnnotation: mode} }
	withMode := func(mode string) *v1beta1.EngineSpec {
		return engine(func(e *v1beta1.EngineSpec) { e.Annotations = annotated(mode) })
	}
	gang := engine(func(e *v1beta1.EngineSpec) { e.Leader, e.Worker = &v1beta1.LeaderSpec{}, &v1beta1.WorkerSpec{} })
	empty := &v1beta1.EngineSpec{}
	tests := map[string]struct {
		service *v1beta1.InferenceService
		runtime *v1beta1.ServingRuntimeSpec
		c       v1beta1.ComponentType
		mode    v1beta1.DeploymentMode
		source  ModeSource
	}{
		"default":              {service: &v1beta1.InferenceService{Spec: v1beta1.InferenceServiceSpec{Engine: empty}}, mode: v1beta1.RawDeploymentMode, source: FromDefault},
		"spec":                 {service: &v1beta1.InferenceService{Spec: v1beta1.InferenceServiceSpec{DeploymentMode: "OMENative", Engine: empty}}, mode: v1beta1.OMENativeMode, source: FromServiceSpec},
		"component over spec":  {service: &v1beta1.InferenceService{Spec: v1beta1.InferenceServiceSpec{DeploymentMode: "OMENative", Engine: withMode("RawDeployment")}}, mode: v1beta1.RawDeploymentMode, source: FromComponentAnnotation},
		"runtime over spec":    {service: &v1beta1.InferenceService{Spec: v1beta1.InferenceServiceSpec{DeploymentMode: "RawDeployment", Engine: empty}}, runtime: &v1beta1.ServingRuntimeSpec{EngineConfig: withMode("OMENative")}, mode: v1beta1.OMENativeMode, source: FromRuntimeAnnotation},
		"other words skipped":  {service: &v1beta1.InferenceService{Spec: v1beta1.InferenceServiceSpec{DeploymentMode: "OMENative", Engine: withMode("Serverless")}}, mode: v1beta1.OMENativeMode, source: FromServiceSpec},
		"MultiNode":            {service: &v1beta1.InferenceService{Spec: v1beta1.InferenceServiceSpec{Engine: withMode("MultiNode")}}, mode: v1beta1.MultiNodeMode, source: FromComponentAnnotation},
		"MultiNode, no router": {service: &v1beta1.InferenceService{Spec: v1beta1.InferenceServiceSpec{Router: &v1beta1.RouterSpec{ComponentExtensionSpec: v1beta1.ComponentExtensionSpec{Annotations: annotated("MultiNode")}}}}, c: v1beta1.RouterComponent, mode: v1beta1.RawDeploymentMode, source: FromDefault},
		"shape":                {service: &v1beta1.InferenceService{Spec: v1beta1.InferenceServiceSpec{Engine: gang}}, mode: v1beta1.OMENativeMode, source: FromLeaderWorkerShape},
		"shape of the runtime": {service: &v1beta1.InferenceService{Spec: v1beta1.InferenceServiceSpec{Engine: empty}}, runtime: &v1beta1.ServingRuntimeSpec{EngineConfig: gang}, mode: v1beta1.OMENativeMode, source: FromLeaderWorkerShape},
		"spec over shape":      {service: &v1beta1.InferenceService{Spec: v1beta1.InferenceServiceSpec{DeploymentMode: "RawDeployment", Engine: gang}}, mode: v1beta1.RawDeploymentMode, source: FromServiceSpec},
		"whole service":        {service: &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Annotations: annotated("VirtualDeployment")}, Spec: v1beta1.InferenceServiceSpec{DeploymentMode: "OMENative", Engine: empty}}, mode: v1beta1.VirtualDeploymentMode, source: FromServiceAnnotation},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := tc.c
			if c == "" {
				c = v1beta1.EngineComponent
			}
			mode, source := Mode(tc.service, tc.runtime, c)
			if mode != tc.mode || source != tc.source {
				t.Errorf("got %s from %s, want %s from %s", mode, source, tc.mode, tc.source)
			}
		})
	}
}
