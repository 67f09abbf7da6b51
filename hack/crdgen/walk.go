package main

import (
	"reflect"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
)

type schema = apiextensionsv1.JSONSchemaProps

var (
	podSpecType  = reflect.TypeFor[corev1.PodSpec]()
	leaderType   = reflect.TypeFor[v1beta1.LeaderSpec]()
	workerType   = reflect.TypeFor[v1beta1.WorkerSpec]()
	objectMeta   = reflect.TypeFor[metav1.ObjectMeta]()
	listMeta     = reflect.TypeFor[metav1.ListMeta]()
	durationType = reflect.TypeFor[metav1.Duration]()
	quantityType = reflect.TypeFor[resource.Quantity]()
	metricSpec   = reflect.TypeFor[autoscalingv2.MetricSpec]()
	intOrString  = reflect.TypeFor[intstr.IntOrString]()
)

// durationPattern admits what Go's parser reads, signed, in falling units and inside its range. A
// stored string that a Go client can't read would stop it from listing the kind at all.
const durationPattern = `^[-+]?([0-9]{1,6}(\.[0-9]{1,9})?h)?([0-9]{1,7}(\.[0-9]{1,9})?m)?([0-9]{1,9}(\.[0-9]{1,9})?s)?([0-9]{1,12}(\.[0-9]{1,9})?ms)?([0-9]{1,15}(\.[0-9]{1,9})?(u|µ|μ)s)?([0-9]{1,18}ns)?$`

// quantityPattern is the usual one in fewer characters.
const quantityPattern = `^[-+]?(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?(\d+\.?\d*|\.\d+))?$`

type walker struct {
	// patches is true for the kind whose components are patches over a runtime.
	patches bool
	// depth counts the structs above.
	depth int
	// inTemplate is true below a component's pod template.
	inTemplate bool
	// keep is true below a field that keeps unknown fields. The API server prunes again in every
	// object below that has properties, so each must say it for a newer writer's fields to survive.
	keep bool
}

// visit finishes the schema of a value of type t.
func (w walker) visit(t reflect.Type, s *schema) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case durationType:
		s.Pattern = durationPattern
		s.MinLength = new(int64(2))
		return
	case quantityType:
		s.AnyOf = nil
		s.Pattern = quantityPattern
		return
	case intOrString:
		s.AnyOf = nil
		return
	case objectMeta:
		// Only labels and annotations of an embedded object mean something. The API server knows
		// the metadata of the object itself.
		if w.depth > 1 {
			s.Properties = map[string]schema{"labels": stringMap(), "annotations": stringMap()}
		}
		return
	}
	if w.inTemplate && opaque(t) {
		*s = schema{Description: s.Description, Type: "object", XPreserveUnknownFields: new(true)}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		w.visitStruct(t, s)
	case reflect.Slice, reflect.Array:
		if s.Items == nil || s.Items.Schema == nil { // bytes
			return
		}
		if s.XListType == nil {
			s.XListType = new("atomic")
		}
		w.visitElement(t.Elem(), s.Items.Schema)
	case reflect.Map:
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			w.visitElement(t.Elem(), s.AdditionalProperties.Schema)
		}
	}
}

// visitElement finishes an element of a list or map. Its description is that of the type.
func (w walker) visitElement(t reflect.Type, s *schema) {
	if !ours(deref(t)) {
		s.Description = ""
	}
	w.visit(t, s)
}

func (w walker) visitStruct(t reflect.Type, s *schema) {
	w.depth++
	w.keep = w.keep || s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
	if w.keep && ours(t) {
		s.XPreserveUnknownFields = new(true)
	}
	isTemplate := ours(t) && embeds(t, podSpecType)
	if isTemplate {
		w.inTemplate = true
		w.trimTemplate(t, s)
	}
	for _, f := range fields(t) {
		child, ok := s.Properties[f.name]
		if !ok {
			continue
		}
		if !f.ours {
			child.Description = ""
		}
		w.visit(f.typ, &child)
		if w.patches && isTemplate && t != leaderType && t != workerType {
			w.relax(f.name, s, &child)
		}
		s.Properties[f.name] = child
	}
}

// relax drops what a component need not say, because the runtime it patches does.
func (w walker) relax(name string, parent, child *schema) {
	switch name {
	case "runner", "os", "autoscalerPolicyRef":
		child.Required = without(child.Required, "name")
	case "autoscaler":
		child.Required = without(child.Required, "class")
	}
}

// templateFields are the fields of a core pod spec that a component template has; the others are
// no part of the API.
var templateFields = map[string]bool{
	"volumes": true, "initContainers": true, "containers": true, "imagePullSecrets": true,
	"resourceClaims": true, "schedulingGates": true, "hostAliases": true,
	"topologySpreadConstraints": true, "tolerations": true, "readinessGates": true,
	"nodeSelector": true, "affinity": true, "securityContext": true, "dnsConfig": true, "os": true,
	"overhead": true, "restartPolicy": true, "dnsPolicy": true, "serviceAccountName": true,
	"serviceAccount": true, "nodeName": true, "hostname": true, "subdomain": true,
	"schedulerName": true, "priorityClassName": true, "runtimeClassName": true,
	"preemptionPolicy": true, "terminationGracePeriodSeconds": true, "activeDeadlineSeconds": true,
	"priority": true, "automountServiceAccountToken": true, "hostNetwork": true, "hostPID": true,
	"hostIPC": true, "hostUsers": true, "shareProcessNamespace": true, "enableServiceLinks": true,
	"setHostnameAsFQDN": true,
}

// trimTemplate makes an empty template valid and drops fields that no template has.
func (w walker) trimTemplate(t reflect.Type, s *schema) {
	s.Required = without(s.Required, "containers")
	for _, f := range fields(podSpecType) {
		if !templateFields[f.name] {
			delete(s.Properties, f.name)
		}
	}
}

// opaque says whether a type below a component template is accepted as any object. These are the
// deep leaves that make up most of the size. The webhook decodes strictly, so a mistake in them is
// still refused; the templates of an InferenceReplica keep their full depth.
func opaque(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[corev1.Affinity](),
		reflect.TypeFor[corev1.Probe](),
		reflect.TypeFor[corev1.Lifecycle](),
		reflect.TypeFor[corev1.EnvVarSource](),
		reflect.TypeFor[corev1.SecurityContext](),
		reflect.TypeFor[corev1.PodSecurityContext]():
		return true
	}
	switch t.PkgPath() {
	case podSpecType.PkgPath(): // SecretVolumeSource, NFSVolumeSource and so on, not their union
		return strings.HasSuffix(t.Name(), "VolumeSource") && t.Name() != "VolumeSource"
	case metricSpec.PkgPath(): // ResourceMetricSource, PodsMetricSource and so on
		return strings.HasSuffix(t.Name(), "MetricSource")
	}
	return false
}

// field is a JSON property of a struct, found through its inlined structs.
type field struct {
	name string
	typ  reflect.Type
	// ours is true when the struct that declares the field is.
	ours bool
}

func fields(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			all = append(all, fields(deref(f.Type))...)
		case name != "":
			all = append(all, field{name: name, typ: f.Type, ours: ours(t)})
		}
	}
	return all
}

func embeds(t, embedded reflect.Type) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && f.Type == embedded {
			return true
		}
	}
	return false
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func without(list []string, drop string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == drop })
}

func stringMap() schema {
	return schema{
		Type: "object",
		AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
			Allows: true,
			Schema: &schema{Type: "string"},
		},
	}
}
