package crdcheck

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

var config = filepath.Join("..", "..", "..", "config")

// kind is one CRD, ready to judge objects as the API server does.
type kind struct {
	crd    *apiextensions.CustomResourceDefinition
	schema *structural.Structural
	values validation.SchemaValidator
	rules  *cel.Validator
}

func load(t *testing.T, plural string) *kind {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(config, "*", "ome.io_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		// What can be added to an installation has a folder of its own.
		found, _ = filepath.Glob(filepath.Join(config, "components", "*", "ome.io_"+plural+".yaml"))
	}
	if len(found) != 1 {
		t.Fatalf("CRD files of %s: %v, want one", plural, found)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &v1); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
	var crd apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &crd, nil); err != nil {
		t.Fatal(err)
	}
	crd.Status.StoredVersions = []string{"v1beta1"}

	// The internal form keeps a schema that all versions share at the top.
	props := crd.Spec.Validation
	if props == nil {
		props = crd.Spec.Versions[0].Schema
	}
	schema, err := structural.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	values, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return &kind{
		crd: &crd, schema: schema, values: values,
		rules: cel.NewValidator(schema, true, celconfig.PerCallLimit),
	}
}

// check judges an object the way a create does, or an update when old is given. Fields that the
// schema doesn't know are reported as errors, as strict field validation does.
func (k *kind) check(obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	unknown := pruning.PruneWithOptions(obj, k.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		errs = append(errs, field.Invalid(field.NewPath(path), nil, "unknown field"))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, k.schema)
	defaulting.Default(obj, k.schema)
	errs = append(errs, validation.ValidateCustomResource(nil, obj, k.values)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.schema, obj)...)
	var oldAny any
	if old != nil {
		oldAny = old
	}
	celErrs, _ := k.rules.Validate(context.Background(), nil, k.schema, obj, oldAny, celconfig.RuntimeCELCostBudget)
	return append(errs, celErrs...)
}

func object(t *testing.T, manifest string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(manifest))
	if err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	var obj map[string]any
	if err := json.Unmarshal(data, &obj); err != nil { // keeps integers, as the API server does
		t.Fatalf("%v\n%s", err, manifest)
	}
	return obj
}

var plurals = []string{
	"inferenceservices", "inferencereplicas", "servingruntimes", "clusterservingruntimes",
	"basemodels", "clusterbasemodels", "rolloutpolicies",
}

func TestServerAcceptsCRDs(t *testing.T) {
	var files []string
	for _, dir := range []string{"crd", filepath.Join("components", "*")} {
		found, err := filepath.Glob(filepath.Join(config, dir, "ome.io_*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) != len(plurals) {
		t.Errorf("%d CRD files, want one for each of %s", len(files), strings.Join(plurals, ", "))
	}
	for _, plural := range plurals {
		t.Run(plural, func(t *testing.T) {
			k := load(t, plural)
			for _, err := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), k.crd) {
				t.Error(err)
			}
		})
	}
}
