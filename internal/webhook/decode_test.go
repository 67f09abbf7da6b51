package webhook

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
)

const way = ": correct the spelling or remove it; if a newer release has the field, upgrade the manager of this cluster first"

// mistakes are those in the leaves that the CRDs leave open. Each is one component block.
var mistakes = map[string]struct{ block, want string }{
	"field of a probe": {
		`{runner: {name: c, readinessProbe: {httpGett: {path: /, port: 1}}}}`,
		`unknown field "$.runner.readinessProbe.httpGett"` + way,
	},
	"two fields": {
		`{volumes: [{name: a, configMap: {nam: a}}], affinity: {podAntiAfinity: {}}}`,
		`unknown field "$.affinity.podAntiAfinity", unknown field "$.volumes[0].configMap.nam"` + way,
	},
	"type of a probe's field": {
		`{runner: {name: c, readinessProbe: {periodSeconds: "1"}}}`,
		`$.runner.readinessProbe.periodSeconds: "1": want a whole number of at most 32 bits`,
	},
	"a list for an object": {
		`{runner: {name: c, livenessProbe: [{httpGet: {path: /, port: 1}}]}}`,
		// The schema knows as much as that it is an object.
		`$.runner.livenessProbe: [{"httpGet":{"path":"/","port":1}}]: want an object`,
	},
	"quantity": {
		`{volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {sizeLimit: 5 GiB}}]}`,
		`$.volumes[1].emptyDir.sizeLimit: "5 GiB": quantities must match the regular expression`,
	},
	"variable's source": {
		`{runner: {name: c, env: [{name: A, value: a}, {name: B, valueFrom: {secretKeyReff: {name: s, key: k}}}]}}`,
		`unknown field "$.runner.env[1].valueFrom.secretKeyReff"` + way,
	},
	"security context": {
		`{runner: {name: c, securityContext: {runAsUser: root}}}`,
		`$.runner.securityContext.runAsUser: "root": want a whole number of at most 64 bits`,
	},
	"preStop": {
		`{runner: {name: c, lifecycle: {preStop: {sleep: {seconds: 5s}}}}}`,
		`$.runner.lifecycle.preStop.sleep.seconds: "5s": want a whole number of at most 64 bits`,
	},
}

// request is an admission request. old is empty on create.
func request(t *testing.T, obj, old string) admission.Request {
	t.Helper()
	raw := func(manifest string) []byte {
		data, err := yaml.YAMLToJSON([]byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var req admission.Request
	req.Operation = admissionv1.Create
	req.Object.Raw = raw(obj)
	if old != "" {
		req.Operation = admissionv1.Update
		req.OldObject.Raw = raw(old)
	}
	return req
}

func service(engine string) string {
	return "apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata: {name: s, namespace: " + namespace + "}\n" +
		"spec:\n  deploymentMode: OMENative\n  runtime: {name: r}\n  engine: " + engine + "\n"
}

func servingRuntime(kind, engine string) string {
	meta := "{name: r, namespace: " + namespace + "}"
	if kind == v1beta1.ClusterServingRuntimeKind {
		meta = "{name: r}"
	}
	return "apiVersion: ome.io/v1beta1\nkind: " + kind + "\nmetadata: " + meta + "\nspec:\n  engineConfig: " + engine + "\n"
}

func TestMistakesAreNamed(t *testing.T) {
	for name, tc := range mistakes {
		t.Run(name, func(t *testing.T) {
			for handler, where := range map[admission.Handler]struct{ manifest, field string }{
				NewServiceHandler(Options{}):        {service(tc.block), "spec.engine"},
				NewRuntimeHandler(Options{}):        {servingRuntime("ServingRuntime", tc.block), "spec.engineConfig"},
				NewClusterRuntimeHandler(Options{}): {servingRuntime("ClusterServingRuntime", tc.block), "spec.engineConfig"},
			} {
				want := strings.ReplaceAll(tc.want, "$", where.field)
				got := handler.Handle(context.Background(), request(t, where.manifest, ""))
				if got.Allowed || !strings.HasPrefix(got.Result.Message, want) || got.Result.Code != 400 {
					t.Errorf("got  %v\nwant %s", got.Result, want)
				}
			}
		})
	}
}

// A mistake that is stored already, by a newer manager or without one, is no reason to refuse the next edit.
func TestStoredMistakesStay(t *testing.T) {
	const (
		typo   = `{minReplicas: 1, runner: {readinessProbe: {later: 1}}}`
		second = `{minReplicas: 1, runner: {readinessProbe: {later: 1, stilLater: 1}}}`
		scaled = `{minReplicas: 2, maxReplicas: 2, runner: {readinessProbe: {later: 1}}}`
		broken = `{minReplicas: 1, runner: {readinessProbe: {periodSeconds: often}}}`
		fixed  = `{minReplicas: 1, runner: {readinessProbe: {periodSeconds: 5}}}`
	)
	labelled := func(manifest string) string {
		return strings.Replace(manifest, "{name: s,", "{annotations: {team: a}, name: s,", 1)
	}
	for name, tc := range map[string]struct{ old, new, want, warning string }{
		"typo stays":                      {old: service(typo), new: service(scaled)},
		"another comes":                   {old: service(typo), new: service(second), want: `unknown field "spec.engine.runner.readinessProbe.stilLater"`},
		"annotation of one of them":       {old: service(typo), new: labelled(service(typo))},
		"unreadable and the same":         {old: service(broken), new: labelled(service(broken)), warning: `spec.engine.runner.readinessProbe.periodSeconds: "often"`},
		"unreadable and another edit":     {old: service(broken), new: strings.Replace(service(broken), "minReplicas: 1", "minReplicas: 2", 1), want: "spec.engine.runner.readinessProbe.periodSeconds"},
		"unreadable is made right":        {old: service(broken), new: service(fixed)},
		"becomes unreadable":              {old: service(fixed), new: service(broken), want: "spec.engine.runner.readinessProbe.periodSeconds"},
		"unknown in status of a newer":    {old: service(fixed), new: service(fixed) + "status: {later: {a: 1}}\n"},
		"wrong type in status":            {old: service(fixed), new: service(fixed) + "status: {conditions: 5}\n"},
		"no field of the whole object":    {old: service(fixed), new: service(fixed) + "sepc: {}\n", want: `unknown field "sepc"`},
		"the rules are still asked":       {old: service(typo), new: strings.Replace(service(typo), "minReplicas: 1", "minReplicas: -1", 1), want: "spec.engine.minReplicas: -1 is negative"},
		"and asked after a repair, whole": {old: service(broken), new: strings.Replace(service(fixed), "minReplicas: 1", "minReplicas: -1", 1), want: "spec.engine.minReplicas: -1 is negative"},
	} {
		t.Run(name, func(t *testing.T) {
			got := NewServiceHandler(Options{}).Handle(context.Background(), request(t, tc.new, tc.old))
			switch {
			case tc.want == "" && !got.Allowed:
				t.Errorf("refused: %v", got.Result)
			case tc.want != "" && (got.Allowed || !strings.HasPrefix(got.Result.Message, tc.want)):
				t.Errorf("got %v, want %s", got.Result, tc.want)
			}
			if warnings := strings.Join(got.Warnings, "\n"); !strings.Contains(warnings, tc.warning) || tc.warning == "" && warnings != "" {
				t.Errorf("warnings %q, want %q", warnings, tc.warning)
			}
		})
	}
}

// testMistakes sends them through the API server, in which the schema comes first.
func testMistakes(t *testing.T, c *cluster) {
	for name, tc := range mistakes {
		for kind, manifest := range map[string]string{
			"inferenceservice":      service(tc.block),
			"servingruntime":        servingRuntime("ServingRuntime", tc.block),
			"clusterservingruntime": servingRuntime("ClusterServingRuntime", tc.block),
		} {
			obj := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
				t.Fatal(err)
			}
			field := "spec.engineConfig"
			if kind == "inferenceservice" {
				field = "spec.engine"
			}
			want := `admission webhook "` + kind + `.ome-webhook-server.validator" denied the request: ` + strings.ReplaceAll(tc.want, "$", field)
			if name == "a list for an object" {
				want = ""
			}
			err := c.admin.Create(t.Context(), obj, client.DryRunAll)
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s, %s:\ngot  %v\nwant %s", kind, name, err, want)
			}
		}
	}
}

func TestUnreadableBody(t *testing.T) {
	var req admission.Request
	req.Operation = admissionv1.Create
	req.Object.Raw = []byte(`[]`)
	if got := NewServiceHandler(Options{}).Handle(context.Background(), req); got.Allowed || got.Result.Code != 400 {
		t.Errorf("got %v", got)
	}
}
