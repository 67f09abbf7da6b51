package v1beta1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"ome.io/ome/api/v1beta1"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1beta1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func codec(t *testing.T) runtime.Codec {
	t.Helper()
	return serializer.NewCodecFactory(newScheme(t)).LegacyCodec(v1beta1.GroupVersion)
}

func TestSchemeKnowsEveryKind(t *testing.T) {
	s := newScheme(t)
	for _, kind := range []string{
		v1beta1.InferenceServiceKind, v1beta1.InferenceReplicaKind, v1beta1.ServingRuntimeKind,
		v1beta1.ClusterServingRuntimeKind, v1beta1.BaseModelKind, v1beta1.ClusterBaseModelKind, v1beta1.RolloutPolicyKind,
	} {
		for _, name := range []string{kind, kind + "List"} {
			if !s.Recognizes(v1beta1.GroupVersion.WithKind(name)) {
				t.Errorf("%s isn't in the scheme", name)
			}
		}
	}
	if got := v1beta1.Resource(v1beta1.InferenceReplicaResource).String(); got != "inferencereplicas.ome.io" {
		t.Errorf("resource %q", got)
	}
}

// Every key has the prefix that the typing check looks at, and is listed once.
func TestKnownAnnotationKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range v1beta1.KnownAnnotationKeys() {
		if !strings.HasPrefix(key, v1beta1.AnnotationPrefix) {
			t.Errorf("%s: want prefix %s", key, v1beta1.AnnotationPrefix)
		}
		if seen[key] {
			t.Errorf("%s is listed twice", key)
		}
		seen[key] = true
	}
}
