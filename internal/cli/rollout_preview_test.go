package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/preview"
	"ome.io/ome/internal/render"
	"ome.io/ome/internal/sim"
	"ome.io/ome/internal/testenv"
)

func sampleFile(name string) string { return filepath.Join(testenv.Root(), "config", "samples", name) }

// fromSample reads a sample, changed as text first: pairs of what is and what shall be.
func fromSample[T any](t *testing.T, name string, changes ...string) *T {
	t.Helper()
	raw, err := os.ReadFile(sampleFile(name))
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(strings.NewReplacer(changes...).Replace(string(raw))), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// written is a changed sample as a file of its own.
func written(t *testing.T, name string, changes ...string) string {
	t.Helper()
	raw, err := os.ReadFile(sampleFile(name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.NewReplacer(changes...).Replace(string(raw))), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fourAndTwo makes the sample four engines and two decoders.
var fourAndTwo = []string{"engine:\n    minReplicas: 1\n    maxReplicas: 1", "engine:\n    minReplicas: 4\n    maxReplicas: 4",
	"decoder:\n    minReplicas: 1\n    maxReplicas: 1", "decoder:\n    minReplicas: 2\n    maxReplicas: 2"}

// TestRolloutPreviewOffline: from files alone, so no request is sent.
func TestRolloutPreviewOffline(t *testing.T) {
	old, next := written(t, "mistral-pd.yaml", fourAndTwo...), written(t, "mistral-pd-v2.yaml", fourAndTwo...)
	with := " -f " + sampleFile("runtime.yaml") + " -f " + sampleFile("model.yaml")
	recreate := written(t, "mistral-pd-v2.yaml", append([]string{"decoder:v2", "decoder:v2\n    lifecycle: {updateStrategy: {type: RecreatePod, rollingUpdate: {maxUnavailable: 0}}}"}, fourAndTwo...)...)
	refused := written(t, "mistral-pd-v2.yaml", "components: [engine, decoder]", "components: [engine, engine]")
	misspelt := written(t, "mistral-pd-v2.yaml", "rollout:", "rolout:")
	broken := written(t, "mistral-pd-v2.yaml", "minReplicas: 1", "minReplicas: many")
	byPolicy := written(t, "mistral-pd-v2.yaml", append([]string{"components: [engine, decoder]", "components: [engine, decoder]\n        policyRef: {name: quick, progression: rollingUpdate}"}, fourAndTwo...)...)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("apiVersion: ome.io/v1beta1\nkind: RolloutPolicy\nmetadata: {name: quick}\nspec: {rollingUpdate: {maxSurge: 100%, maxUnavailable: 0}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, words   string
		terminal      bool
		code          int
		message, says string
	}{
		{"blue-green", "-f " + next + " --from " + old + with, false, 0, "", ""},
		{"blue-green wide", "-f " + next + " --from " + old + with + " -o wide", false, 0, "", ""},
		{"blue-green json", "-f " + next + " --from " + old + with + " -o json", false, 0, "", ""},
		{"blue-green on a terminal", "-f " + next + " --from " + old + with, true, 0, "", ""},
		{"slow pods", "-f " + next + " --from " + old + with + " --start-up 20m --shut-down 1m", false, 0, "", ""},
		{"without the old spec", "-f " + next + with, false, 0, "", ""},
		{"the same spec", "-f " + old + " --from " + old + with, false, 0, "", ""},
		{"stall", "-f " + recreate + " --from " + old + with, false, 2, "the change would stall", "maxUnavailable: 0 the strategy RecreatePod can move nothing"},
		{"stall json", "-f " + recreate + " --from " + old + with + " -o json", false, 2, "the change would stall", ""},
		{"refused", "-f " + refused + " --from " + old + with, false, 1, "admission would refuse the change", "DuplicateComponent"},
		{"misspelt field", "-f " + misspelt + with, false, 1, "admission would refuse the change", "correct the spelling"},
		{"wrong type", "-f " + broken + with, false, 1, "file can't be previewed", "want a whole number"},
		{"policy", "-f " + byPolicy + " -f " + policy + " --from " + old + with, false, 0, "", ""},
		{"policy missing", "-f " + byPolicy + " --from " + old + with, false, 2, "the change would stall", "PolicyNotFound"},
		{"no runtime", "-f " + next, false, 1, "the pods of engine can't be rendered", "add -f RUNTIME.yaml"},
		{"no service", with, false, 1, "file has no InferenceService that can be read", ""},
		{"two services", "-f " + next + " -f " + old + with, false, 1, "file can't be previewed", "a second InferenceService"},
		{"no file", "", false, 1, "a file with the changed service is required", ""},
		{"a service too", "-f " + next + " --service ns/x", false, 1, "service and offline can't be used together", ""},
		{"an argument", "chat -f " + next, false, 1, "rollout preview takes no argument", ""},
		{"bad time", "-f " + next + " --start-up 25h", false, 1, "start-up and shut-down must be between 0s and 24h", ""},
		{"bad output", "-f " + next + " -o name", false, 1, "output must be table, wide, json or yaml", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := readRun{user: "nobody-listens", terminal: c.terminal}.do(t.Context(), append([]string{"rollout", "preview", "--offline"}, strings.Fields(c.words)...)...)
			if r.code != c.code || errorLine(r.stderr) != c.message || !strings.Contains(r.stderr, c.says) {
				t.Errorf("exit %d, want %d; error %q, want %q; stderr lacks %q:\n%s", r.code, c.code, errorLine(r.stderr), c.message, c.says, r.stderr)
			}
			if c.code == 1 && r.stdout != "" || len(r.requests) > 0 {
				t.Errorf("stdout %q, requests %q", r.stdout, r.requests)
			}
			for _, path := range []string{old, next, recreate, refused, misspelt, broken, byPolicy} {
				r.stderr = strings.ReplaceAll(r.stderr, path, "<file>")
			}
			r.stderr = strings.ReplaceAll(r.stderr, testenv.Root(), "<root>")
			(&scene{namespace: "<ns>"}).golden(t, "preview", "offline "+c.name, r)
		})
	}
	r := readRun{out: brokenWriter{}}.do(t.Context(), append([]string{"rollout", "preview", "--offline"}, strings.Fields("-f "+next+with)...)...)
	if r.code != 1 || errorLine(r.stderr) != "write rollout preview report failed" {
		t.Errorf("broken stdout: exit %d, %s", r.code, r.stderr)
	}
}

// typed is the admin's client for our kinds.
func typed(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.admin, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// liveSample stores the sample service at rest, with its replicas, revisions and pods, as
// the manager leaves them.
func liveSample(t *testing.T) (*scene, *v1beta1.InferenceService) {
	t.Helper()
	s := &scene{namespace: newNamespace(t)}
	cluster := typed(t)
	put := func(o client.Object) {
		if err := cluster.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	from := render.Sources{ClusterRuntime: fromSample[v1beta1.ClusterServingRuntime](t, "runtime.yaml"), ClusterModel: fromSample[v1beta1.ClusterBaseModel](t, "model.yaml")}
	put(from.ClusterRuntime)
	put(from.ClusterModel)
	service := fromSample[v1beta1.InferenceService](t, "mistral-pd.yaml", fourAndTwo...)
	service.Namespace = s.namespace
	put(service)
	s.names = append(s.names, string(service.UID), "<service>")
	stored := &v1beta1.ClusterServingRuntime{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Name: from.ClusterRuntime.Name}, stored); err != nil {
		t.Fatal(err)
	}
	from.ClusterRuntime = stored

	templates := map[v1beta1.ComponentType]*core.Template{}
	for kind, r := range render.Components(service, from, config.Default()) {
		templates[kind] = r.Template
	}
	c := sim.NewPreview(service, templates, config.Default(), now)
	for range 40 {
		if err := c.Round(); err != nil {
			t.Fatal(err)
		}
	}
	uids := map[types.UID]types.UID{service.UID: service.UID}
	adopt := func(o metav1.Object) {
		refs := o.GetOwnerReferences()
		for i := range refs {
			refs[i].UID = uids[refs[i].UID]
		}
		o.SetOwnerReferences(refs)
		o.SetUID("")
		o.SetResourceVersion("")
	}
	for _, kind := range v1beta1.Components() {
		replica := c.Replica(kind).DeepCopy()
		old, status := replica.UID, replica.Status
		adopt(replica)
		put(replica)
		uids[old] = replica.UID
		replica.Status = status
		if err := cluster.Status().Update(t.Context(), replica); err != nil {
			t.Fatal(err)
		}
	}
	for _, cr := range c.Revisions() {
		cr = cr.DeepCopy()
		adopt(cr)
		put(cr)
	}
	for _, p := range c.Pods() {
		p = p.DeepCopy()
		status := p.Status
		adopt(p)
		put(p)
		p.Status = status
		// As a container runtime spells it.
		p.Status.ContainerStatuses[0].Image = "docker.io/" + p.Spec.Containers[0].Image
		if err := cluster.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	service.Status = c.Service().Status
	if err := cluster.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	return s, service
}

// TestRolloutPreview: from a live service, under the reader role.
func TestRolloutPreview(t *testing.T) {
	s, service := liveSample(t)
	cluster := typed(t)
	here := append([]string{"namespace: mistral-demo", "namespace: " + s.namespace}, fourAndTwo...)
	same, next := written(t, "mistral-pd.yaml", here...), written(t, "mistral-pd-v2.yaml", here...)
	elsewhere := written(t, "mistral-pd-v2.yaml", fourAndTwo...)
	for _, c := range []struct {
		name, user, words string
		code              int
		message           string
	}{
		{"live", "", "-f " + next, 0, ""},
		{"live json", "", "-f " + next + " -o json", 0, ""},
		{"live and the same spec", "", "-f " + same, 0, ""},
		{"live by name", "", "-f " + elsewhere + " --service " + s.namespace + "/mistral-pd", 0, ""},
		{"live by name in the namespace", "", "-f " + elsewhere + " --service mistral-pd -n " + s.namespace, 0, ""},
		{"live not found", "", "-f " + elsewhere + " --service " + s.namespace + "/nope", 1, `get InferenceService: inferenceservices.ome.io "nope" not found`},
		{"live bad name", "", "-f " + next + " --service " + s.namespace + "/Nope", 1, "invalid inference service name"},
		{"live forbidden", "modelless", "-f " + next, 1, `list inferencereplicas: inferencereplicas.ome.io is forbidden: User "modelless" cannot list resource "inferencereplicas" in API group "ome.io" in the namespace "` + s.namespace + `"`},
		{"live from a file", "", "-f " + next + " --from " + same, 1, "from needs offline"},
	} {
		t.Run(c.name, func(t *testing.T) { s.preview(t, c.name, c.user, c.words, c.code, c.message, same, next, elsewhere) })
	}

	service.Annotations = map[string]string{v1beta1.RolloutPausedAnnotation: "true"}
	if err := cluster.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	s.preview(t, "live and paused", "", "-f "+next, 2, "the change would stall", next)
	service.Annotations = nil
	if err := cluster.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}

	// A pod that is not up yet is taken to come up, and one that nobody owns is nobody's.
	var pods corev1.PodList
	if err := cluster.List(t.Context(), &pods, client.InNamespace(s.namespace), client.MatchingLabels{v1beta1.ComponentLabel: "decoder"}); err != nil {
		t.Fatal(err)
	}
	sick := &pods.Items[0]
	sick.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	for i := range sick.Status.Conditions {
		if k := sick.Status.Conditions[i].Type; k == corev1.PodReady || k == corev1.ContainersReady {
			sick.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	if err := cluster.Status().Update(t.Context(), sick); err != nil {
		t.Fatal(err)
	}
	stray := pods.Items[1].DeepCopy()
	stray.ObjectMeta = metav1.ObjectMeta{Namespace: s.namespace, Name: "stray", Labels: stray.Labels}
	if err := cluster.Create(t.Context(), stray); err != nil {
		t.Fatal(err)
	}
	s.preview(t, "live with a sick pod", "", "-f "+next, 0, "", next)
}

func (s *scene) preview(t *testing.T, name, user, words string, code int, message string, files ...string) {
	t.Helper()
	r := readRun{user: user}.do(t.Context(), append([]string{"rollout", "preview"}, strings.Fields(words)...)...)
	if r.code != code || errorLine(r.stderr) != message {
		t.Errorf("exit %d, want %d; error %q, want %q\n%s", r.code, code, errorLine(r.stderr), message, r.stderr)
	}
	for _, q := range r.requests {
		if !strings.HasPrefix(q, "GET ") {
			t.Errorf("sent %s", q)
		}
	}
	for _, path := range files {
		r.stderr = strings.ReplaceAll(r.stderr, path, "<file>")
	}
	s.golden(t, "preview", name, r)
}

// TestDefaultsOfAPreviewAreTheSchemas: what a preview fills in is what the API server fills in
// when it stores a service.
func TestDefaultsOfAPreviewAreTheSchemas(t *testing.T) {
	cluster := typed(t)
	text := `
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata: {name: chat}
spec:
  deploymentMode: OMENative
  model: {name: m1}
  runtime: {name: rt1}
  engine:
    runner:
      name: ome-container
      ports: [{containerPort: 8080}, {containerPort: 9090, protocol: UDP}]
      readinessProbe: {grpc: {port: 8080}}
    initContainers: [{name: first, ports: [{containerPort: 1}], startupProbe: {grpc: {port: 1, service: up}}}]
  decoder:
    containers: [{name: side, ports: [{containerPort: 2}], livenessProbe: {grpc: {port: 2}}}]
  router:
    runner: {name: r, ports: [{containerPort: 3}]}
`
	filled := new(v1beta1.InferenceService)
	if err := yaml.UnmarshalStrict([]byte(text), filled); err != nil {
		t.Fatal(err)
	}
	filled.Namespace = newNamespace(t)
	stored := filled.DeepCopy()
	if err := cluster.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	preview.Default(filled)
	for _, c := range v1beta1.Components() {
		wantPod, wantRunner := templateOf(stored, c)
		gotPod, gotRunner := templateOf(filled, c)
		if diff := cmp.Diff(wantPod, gotPod) + cmp.Diff(wantRunner, gotRunner); diff != "" {
			t.Errorf("%s (-stored +filled):\n%s", c, diff)
		}
	}
}

func templateOf(s *v1beta1.InferenceService, c v1beta1.ComponentType) (corev1.PodSpec, *v1beta1.RunnerSpec) {
	switch c {
	case v1beta1.EngineComponent:
		return s.Spec.Engine.PodSpec, s.Spec.Engine.Runner
	case v1beta1.DecoderComponent:
		return s.Spec.Decoder.PodSpec, s.Spec.Decoder.Runner
	}
	return s.Spec.Router.PodSpec, s.Spec.Router.Runner
}
