package preview_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/preview"
	"ome.io/ome/internal/render"
	"ome.io/ome/internal/testenv"
)

var now = time.Date(2026, 9, 28, 14, 5, 0, 0, time.UTC)

var usual = preview.Timing{StartUp: 90 * time.Second, ShutDown: 10 * time.Second}

func sample[T any](t testing.TB, name string) *T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "samples", name))
	if err != nil {
		t.Fatal(err)
	}
	return read[T](t, string(raw))
}

func read[T any](t testing.TB, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// serviceOf is a service of the sample runtime; an image is a version.
func serviceOf(t testing.TB, spec string) *v1beta1.InferenceService {
	t.Helper()
	s := read[v1beta1.InferenceService](t, "apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata: {name: mistral-pd, namespace: demo}\nspec:\n"+
		"  deploymentMode: OMENative\n  model: {name: mistral-7b-instruct-v0-2}\n  runtime: {name: srt-mistral-7b-instruct-pd}\n"+
		"  "+strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
	preview.Default(s)
	return s
}

func specOf(t testing.TB, s *v1beta1.InferenceService) preview.Spec {
	t.Helper()
	return rendered(t, s, sample[v1beta1.ClusterServingRuntime](t, "runtime.yaml"), sample[v1beta1.ClusterBaseModel](t, "model.yaml"))
}

func rendered(t testing.TB, s *v1beta1.InferenceService, runtime *v1beta1.ClusterServingRuntime, model *v1beta1.ClusterBaseModel) preview.Spec {
	t.Helper()
	preview.DefaultRuntime(&runtime.Spec)
	out := preview.Spec{Service: s, Templates: map[v1beta1.ComponentType]*core.Template{}}
	for kind, r := range render.Components(s, render.Sources{ClusterRuntime: runtime, ClusterModel: model}, config.Default()) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		out.Templates[kind] = r.Template
	}
	return out
}
