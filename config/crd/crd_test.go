package crd_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"ome.io/ome/config/components/rolloutpolicy"
	"ome.io/ome/config/crd"
)

// files are the CRDs of the default install and of what can be added to it, by file name.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, from := range []fs.FS{crd.FS, rolloutpolicy.FS} {
		names, err := fs.Glob(from, "ome.io_*.yaml")
		if err != nil || len(names) == 0 {
			t.Fatalf("no CRD files: %v", err)
		}
		for _, name := range names {
			data, err := fs.ReadFile(from, name)
			if err != nil {
				t.Fatal(err)
			}
			if all[name] != nil {
				t.Fatalf("%s is in two folders", name)
			}
			all[name] = data
		}
	}
	return all
}

func load(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for file, data := range files(t) {
		var c apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		crds[c.Spec.Names.Kind] = &c
	}
	return crds
}

// A kind that is off by default must not come with the others.
func TestPoliciesAreNoPartOfTheDefaultInstall(t *testing.T) {
	names, err := fs.Glob(crd.FS, "*policies*")
	if err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
}

// kubectl apply stores the whole object in an annotation, and the annotations of an object may
// hold 256 KiB together. Some room is left for what people add.
func TestPlainApplyFits(t *testing.T) {
	const limit, room = 256 << 10, 8 << 10
	for file, data := range files(t) {
		compact, err := yaml.YAMLToJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		if len(compact) > limit-room {
			t.Errorf("%s: %d bytes of JSON, want at most %d; drop depth in hack/crdgen", file, len(compact), limit-room)
		}
	}
}

// A list without a list type is merged as one value by accident. Each says what it is, and a list
// of objects with a key is a map unless its order or its size makes it one value.
func TestListTypes(t *testing.T) {
	for kind, c := range load(t) {
		for _, v := range c.Spec.Versions {
			walk(v.Schema.OpenAPIV3Schema, "", func(path string, s *apiextensionsv1.JSONSchemaProps) {
				if s.Type != "array" {
					return
				}
				if s.XListType == nil {
					t.Errorf("%s%s: no list type", kind, path)
					return
				}
				if *s.XListType == "map" && len(s.XListMapKeys) == 0 {
					t.Errorf("%s%s: a map list without keys", kind, path)
				}
			})
		}
	}
}

// People read these descriptions in kubectl explain.
func TestOwnFieldsAreDescribed(t *testing.T) {
	for kind, c := range load(t) {
		spec := c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		for name, field := range spec.Properties {
			if field.Description == "" {
				t.Errorf("%s.spec.%s: no description", kind, name)
			}
		}
	}
}

// A marker such as Enum=true without quotes makes a boolean, which no value of a string field equals.
func TestEnumsHaveTheTypeOfTheirField(t *testing.T) {
	for name, crd := range load(t) {
		walk(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, name, func(path string, s *apiextensionsv1.JSONSchemaProps) {
			for _, v := range s.Enum {
				if s.Type == "string" && !strings.HasPrefix(string(v.Raw), `"`) {
					t.Errorf("%s: enum value %s of a string is none: quote it in the marker", path, v.Raw)
				}
			}
		})
	}
}

func walk(s *apiextensionsv1.JSONSchemaProps, path string, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	visit(path, s)
	for name, child := range s.Properties {
		walk(&child, path+"."+name, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(s.Items.Schema, path+"[]", visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(s.AdditionalProperties.Schema, path+"{}", visit)
	}
}

// surface is what kubectl shows of a kind.
type surface struct {
	Names, Scope, Subresources string
	Columns                    []string
}

func TestSurface(t *testing.T) {
	runtime := []string{
		"Disabled=.spec.disabled (boolean)",
		"ModelFormat=.spec.supportedModelFormats[*].modelFormat.name (string)",
		"ModelFramework=.spec.supportedModelFormats[*].modelFramework.name (string)",
		"ModelFrameworkVersion=.spec.supportedModelFormats[*].modelFramework.version (string)",
		"ModelArchitecture=.spec.supportedModelFormats[*].modelArchitecture (string)",
		"ModelSizeMin=.spec.modelSizeRange.min (string)",
		"ModelSizeMax=.spec.modelSizeRange.max (string)",
		"Images=.spec.containers[*].image (string)",
		"Age=.metadata.creationTimestamp (date)",
	}
	model := []string{
		"Disabled=.spec.disabled (boolean)",
		"Version=.spec.version (string)",
		"Vendor=.spec.vendor (string)",
		"Framework=.spec.modelFramework.name (string)",
		"FrameworkVersion=.spec.modelFramework.version (string)",
		"ModelFormat=.spec.modelFormat.name (string)",
		"Architecture=.spec.modelArchitecture (string)",
		"Capabilities=.spec.modelCapabilities[*] (string)",
		"Size=.spec.modelParameterSize (string)",
		"CompartmentID=.spec.compartmentID (string)",
		"Ready=.status.state (string)",
		"Age=.metadata.creationTimestamp (date)",
	}
	want := map[string]surface{
		"InferenceService": {
			Names: "inferenceservices inferenceservice [isvc] InferenceServiceList", Scope: "Namespaced", Subresources: "status",
			Columns: []string{
				"URL=.status.url (string)",
				"Ready=.status.conditions[?(@.type=='Ready')].status (string)",
				"BaseModel=.spec.model.name (string)",
				"Runtime=.spec.runtime.name (string)",
				"Placement=.status.placement.phase (string) wide",
				"Plan-Source=.status.rollout.activeRun.plan.groups[0].source (string) wide",
				"Plan-Drift=.status.conditions[?(@.type=='RolloutPlanDrift')].status (string) wide",
				"Age=.metadata.creationTimestamp (date)",
			},
		},
		"InferenceReplica": {
			Names: "inferencereplicas inferencereplica [irep] InferenceReplicaList", Scope: "Namespaced",
			Subresources: "status scale(.spec.replicas,.status.replicas,.status.labelSelector)",
			Columns: []string{
				"Component=.spec.component (string)",
				"Desired=.spec.replicas (integer)",
				"Current=.status.replicas (integer)",
				"Ready=.status.readyReplicas (integer)",
				"Available=.status.availableReplicas (integer)",
				"Updated=.status.updatedReplicas (integer) wide", "Revision=.status.updateRevision (string) wide", "Paused=.spec.paused (boolean) wide",
				"Age=.metadata.creationTimestamp (date)",
			},
		},
		"ServingRuntime":        {Names: "servingruntimes servingruntime [] ServingRuntimeList", Scope: "Namespaced", Subresources: "status", Columns: runtime},
		"ClusterServingRuntime": {Names: "clusterservingruntimes clusterservingruntime [] ClusterServingRuntimeList", Scope: "Cluster", Subresources: "status", Columns: runtime},
		"BaseModel":             {Names: "basemodels basemodel [] BaseModelList", Scope: "Namespaced", Subresources: "status", Columns: model},
		"RolloutPolicy": {Names: "rolloutpolicies rolloutpolicy [] RolloutPolicyList", Scope: "Namespaced", Subresources: "status", Columns: []string{
			"Ready=.status.conditions[?(@.type=='Ready')].status (string)",
			"Digest=.status.portableDigest (string)",
			"Refs=.status.attachedGroups (integer)",
			"Age=.metadata.creationTimestamp (date)",
		}},
		"ClusterBaseModel": {Names: "clusterbasemodels clusterbasemodel [] ClusterBaseModelList", Scope: "Cluster", Subresources: "status", Columns: model},
	}
	got := map[string]surface{}
	for kind, c := range load(t) {
		if len(c.Spec.Versions) != 1 {
			t.Errorf("%s: %d versions, want one", kind, len(c.Spec.Versions))
			continue
		}
		v, names := c.Spec.Versions[0], c.Spec.Names
		if v.Name != "v1beta1" || !v.Served || !v.Storage {
			t.Errorf("%s: version %s served=%v storage=%v, want v1beta1 served and stored", kind, v.Name, v.Served, v.Storage)
		}
		s := surface{
			Names: fmt.Sprintf("%s %s %v %s", names.Plural, names.Singular, names.ShortNames, names.ListKind),
			Scope: string(c.Spec.Scope),
		}
		if v.Subresources != nil && v.Subresources.Status != nil {
			s.Subresources = "status"
		}
		if v.Subresources != nil && v.Subresources.Scale != nil {
			scale := v.Subresources.Scale
			s.Subresources += fmt.Sprintf(" scale(%s,%s,%s)", scale.SpecReplicasPath, scale.StatusReplicasPath, *scale.LabelSelectorPath)
		}
		for _, col := range v.AdditionalPrinterColumns {
			text := fmt.Sprintf("%s=%s (%s)", col.Name, col.JSONPath, col.Type)
			if col.Priority > 0 {
				text += " wide"
			}
			s.Columns = append(s.Columns, text)
		}
		got[kind] = s
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A rule with a reason code belongs to the webhook; here it would be checked first and hide the
// code.
func TestCodedRulesAreNotInTheSchema(t *testing.T) {
	spec := load(t)["InferenceService"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	group := spec.Properties["rollout"].Properties["groups"].Items.Schema
	canary := group.Properties["canary"]
	step := canary.Properties["steps"].Items.Schema
	for name, s := range map[string]apiextensionsv1.JSONSchemaProps{
		"group component": *group.Properties["components"].Items.Schema,
		"step capacity":   step.Properties["capacity"],
		"max surge":       group.Properties["rollingUpdate"].Properties["maxSurge"],
		"policy kind":     group.Properties["policyRef"].Properties["kind"],
		"metric name":     step.Properties["analysis"].Properties["metrics"].Items.Schema.Properties["name"],
	} {
		s.Description, s.Default = "", nil
		bare := apiextensionsv1.JSONSchemaProps{Type: s.Type, XIntOrString: s.XIntOrString}
		if diff := cmp.Diff(jsonOf(t, bare), jsonOf(t, s)); diff != "" {
			t.Errorf("%s has a rule of its own: %s", name, diff)
		}
	}
	if canary.Properties["steps"].MinItems != nil {
		t.Error("canary.steps has minItems; an empty canary is CanaryInvalid")
	}
}

// A policy's progression and an inline one are one type, so that one digest can name both.
func TestAPolicyIsAsStrictAsItsGroup(t *testing.T) {
	crds := load(t)
	spec := func(kind string) apiextensionsv1.JSONSchemaProps {
		return crds[kind].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	}
	group, policy := spec("InferenceService").Properties["rollout"].Properties["groups"].Items.Schema.Properties, spec("RolloutPolicy").Properties
	if len(policy) != 3 {
		t.Errorf("a policy has %d fields, want its three progressions", len(policy))
	}
	for name := range policy {
		if diff := cmp.Diff(jsonOf(t, group[name]), jsonOf(t, policy[name])); diff != "" {
			t.Errorf("%s (-group +policy): %s", name, diff)
		}
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
