package v1beta1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
)

const mistralPD = `
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata:
  name: mistral-pd
  namespace: mistral-demo
spec:
  deploymentMode: OMENative
  model:
    name: mistral-7b-instruct-v0-2
  runtime:
    name: srt-mistral-7b-instruct-pd
  engine:
    minReplicas: 1
    maxReplicas: 1
  decoder:
    minReplicas: 1
    maxReplicas: 1
  router:
    minReplicas: 1
    maxReplicas: 1
  rollout:
    groups:
      - components: [engine, decoder]
`

func decode(t *testing.T, manifest string, into any) error {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return v1beta1.DecodeStrict(data, into)
}

func TestDecodeSample(t *testing.T) {
	var got v1beta1.InferenceService
	if err := decode(t, mistralPD, &got); err != nil {
		t.Fatal(err)
	}
	one := func() v1beta1.ComponentExtensionSpec {
		return v1beta1.ComponentExtensionSpec{MinReplicas: new(1), MaxReplicas: new(1)}
	}
	want := v1beta1.InferenceService{
		TypeMeta:   metav1.TypeMeta{APIVersion: "ome.io/v1beta1", Kind: "InferenceService"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "mistral-demo", Name: "mistral-pd"},
		Spec: v1beta1.InferenceServiceSpec{
			DeploymentMode: v1beta1.OMENativeMode,
			Model:          &v1beta1.ModelRef{Name: "mistral-7b-instruct-v0-2"},
			Runtime:        &v1beta1.ServingRuntimeRef{Name: "srt-mistral-7b-instruct-pd"},
			Engine:         &v1beta1.EngineSpec{ComponentExtensionSpec: one()},
			Decoder:        &v1beta1.DecoderSpec{ComponentExtensionSpec: one()},
			Router:         &v1beta1.RouterSpec{ComponentExtensionSpec: one()},
			Rollout: &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{
				{Components: []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent}},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	data, err := runtime.Encode(codec(t), &got)
	if err != nil {
		t.Fatal(err)
	}
	var again v1beta1.InferenceService
	if err := v1beta1.DecodeStrict(data, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("round trip, -first +second:\n%s", diff)
	}
	order := v1beta1.IsvcComponents(&got)
	if diff := cmp.Diff([]v1beta1.ComponentType{"engine", "decoder", "router"}, order); diff != "" {
		t.Errorf("components, -want +got:\n%s", diff)
	}
	got.Spec.Decoder.Annotations = map[string]string{v1beta1.DeploymentModeAnnotation: "RawDeployment"}
	if mode := got.Spec.DeclaredMode(v1beta1.DecoderComponent); mode != v1beta1.RawDeploymentMode {
		t.Errorf("decoder declares %q, want its annotation to win", mode)
	}
	if mode := got.Spec.DeclaredMode(v1beta1.EngineComponent); mode != v1beta1.OMENativeMode {
		t.Errorf("engine declares %q, want spec.deploymentMode", mode)
	}
}

func TestDecodeStrict(t *testing.T) {
	const head = "apiVersion: ome.io/v1beta1\nkind: InferenceService\nspec:\n"
	tests := map[string]struct{ manifest, want string }{
		"field of a probe":       {head + "  engine: {runner: {readinessProbe: {httpGett: {port: 1}}}}\n", `"spec.engine.runner.readinessProbe.httpGett"`},
		"field of a volume":      {head + "  router: {volumes: [{name: v, configMap: {nam: a}}]}\n", `"spec.router.volumes[0].configMap.nam"`},
		"field of a worker":      {head + "  engine: {worker: {sise: 2}}\n", `"spec.engine.worker.sise"`},
		"wrong type in a probe":  {head + "  engine: {runner: {readinessProbe: {httpGet: {port: []}}}}\n", "httpGet.port"},
		"field of the component": {head + "  engine: {minReplica: 2}\n", `"spec.engine.minReplica"`},
		"wrong case of a field":  {head + "  engine: {minreplicas: 2}\n", `"spec.engine.minreplicas"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := decode(t, tc.manifest, &v1beta1.InferenceService{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s in it", err, tc.want)
			}
		})
	}
	if err := v1beta1.DecodeStrict([]byte(`{"spec":{"engine":{},"engine":{}}}`), &v1beta1.InferenceService{}); err == nil {
		t.Error("a repeated field was accepted")
	}
}

// One component's fields are the other's: the manager converts between them.
func TestDecoderIsAnEngine(t *testing.T) {
	decoder := v1beta1.DecoderSpec{TopologyKey: "k"}
	if engine := v1beta1.EngineSpec(decoder); engine.TopologyKey != "k" {
		t.Errorf("got %+v", engine)
	}
}
