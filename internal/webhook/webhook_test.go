package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/testenv"
)

const namespace = "mistral-demo"

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// cluster is an API server with the shipped CRDs, webhook configuration, manager and rights.
type cluster struct {
	env    *envtest.Environment
	config *rest.Config
	scheme *runtime.Scheme
	admin  client.Client
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	env, err := testenv.Environment()
	if err != nil {
		t.Fatal(err)
	}
	env.WebhookInstallOptions.Paths = []string{filepath.Join(testenv.Root(), "config", "webhook")}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{env: env, config: config, scheme: newScheme(t)}
	c.admin, err = client.New(config, client.Options{Scheme: c.scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"config/manager/manager.yaml", "config/rbac/manager.yaml", "config/samples/namespace.yaml"} {
		for _, obj := range manifests(t, path) {
			if err := c.admin.Create(t.Context(), obj); err != nil {
				t.Fatalf("%s: %s %s: %v", path, obj.GetKind(), obj.GetName(), err)
			}
		}
	}
	return c
}

func manifests(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testenv.Root(), path))
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	docs := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := docs.Decode(obj)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
}

// as returns a config that acts as the manager's ServiceAccount.
func (c *cluster) asManager() *rest.Config {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: ManagerUser("ome"),
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:ome", "system:authenticated"},
	}
	return config
}

// serve runs a manager's webhooks until stop is called.
func (c *cluster) serve(t *testing.T) (stop func()) {
	t.Helper()
	return c.serveAs(t, c.config, Options{ManagerUser: ManagerUser("ome")})
}

func (c *cluster) serveAs(t *testing.T, config *rest.Config, opts Options) (stop func()) {
	t.Helper()
	install := c.env.WebhookInstallOptions
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  c.scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: ctrlwebhook.NewServer(ctrlwebhook.Options{
			Host: install.LocalServingHost, Port: install.LocalServingPort, CertDir: install.LocalServingCertDir,
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := SetupWithManager(mgr, opts); err != nil {
		t.Fatal(err)
	}
	stop = run(t, mgr)
	address := net.JoinHostPort(install.LocalServingHost, strconv.Itoa(install.LocalServingPort))
	eventually(t, "the webhook server answers", func() error {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // only asks whether it listens
		if err != nil {
			return err
		}
		return conn.Close()
	})
	return stop
}

func run(t *testing.T, mgr ctrl.Manager) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond) // between two looks at a condition
	}
}

func sample[T any](t *testing.T, name string) *T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testenv.Root(), "config/samples", name))
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := yaml.UnmarshalStrict(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func strategy(kind v1beta1.UpdateStrategyType, partition int32, restart v1beta1.InstanceRestartPolicy) v1beta1.LifecycleSpec {
	return v1beta1.LifecycleSpec{RestartPolicy: restart, UpdateStrategy: &v1beta1.UpdateStrategy{
		Type: kind, RollingUpdate: &v1beta1.InstanceRollingUpdate{Partition: ptr.To(partition)},
	}}
}

func TestWebhooks(t *testing.T) {
	c := startCluster(t)
	stop := c.serve(t)
	ctx := t.Context()

	t.Run("samples are admitted", func(t *testing.T) {
		for _, path := range []string{"model.yaml", "runtime.yaml", "mistral-pd.yaml"} {
			for _, obj := range manifests(t, "config/samples/"+path) {
				if err := c.admin.Create(ctx, obj); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
			}
		}
		v2 := manifests(t, "config/samples/mistral-pd-v2.yaml")[0]
		if err := c.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(v2), client.FieldOwner("test"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("strategies", func(t *testing.T) {
		for name, tc := range map[string]struct {
			lifecycle v1beta1.LifecycleSpec
			refusal   string
		}{
			"surge":     {strategy("SurgeThenDrain", 0, v1beta1.RestartNone), ""},
			"recreate":  {strategy("RecreatePod", 1, v1beta1.RestartRecreateInstance), ""},
			"in-place":  {strategy("InPlaceOnly", 0, ""), ""},
			"possible":  {strategy("InPlaceIfPossible", 7, ""), ""},
			"unknown":   {strategy("Rolling", 0, ""), `Unsupported value: "Rolling"`},
			"partition": {strategy("RecreatePod", -1, ""), "should be greater than or equal to 0"},
			"restart":   {strategy("RecreatePod", 0, "Always"), `Unsupported value: "Always"`},
		} {
			s := sample[v1beta1.InferenceService](t, "mistral-pd.yaml")
			s.Name = name
			s.Spec.Engine.Lifecycle = &tc.lifecycle
			err := c.admin.Create(ctx, s)
			if (err == nil) != (tc.refusal == "") || err != nil && !strings.Contains(err.Error(), tc.refusal) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})

	t.Run("denials", func(t *testing.T) {
		const prefix = `admission webhook "inferenceservice.ome-webhook-server.validator" denied the request: `
		for code, change := range map[string]func(*v1beta1.InferenceService){
			"CoordinationRequiresOMENative": func(s *v1beta1.InferenceService) { s.Spec.DeploymentMode = "" },
			"OrphanCoordinationGroup":       func(s *v1beta1.InferenceService) { s.Spec.Decoder = nil },
			"InvalidComponentInCoordinationGroup": func(s *v1beta1.InferenceService) {
				s.Spec.Rollout.Groups[0].Components = []v1beta1.ComponentType{"engine", "encoder"}
			},
			"DuplicateComponentInCoordinationGroups": func(s *v1beta1.InferenceService) {
				s.Spec.Rollout.Groups[0].Components = []v1beta1.ComponentType{"engine", "engine"}
			},
		} {
			s := sample[v1beta1.InferenceService](t, "mistral-pd.yaml")
			s.Name = "denied"
			change(s)
			err := c.admin.Create(ctx, s)
			if err == nil || !strings.HasPrefix(err.Error(), prefix) || !strings.HasSuffix(err.Error(), "("+code+")") {
				t.Errorf("%s: %v", code, err)
			}
		}
	})

	t.Run("runtimes", func(t *testing.T) {
		for kind, obj := range map[string]client.Object{
			"servingruntime": &v1beta1.ServingRuntime{ObjectMeta: metav1.ObjectMeta{
				Name: "child", Namespace: namespace, Annotations: map[string]string{v1beta1.InheritFromAnnotation: "base"},
			}},
			"clusterservingruntime": &v1beta1.ClusterServingRuntime{ObjectMeta: metav1.ObjectMeta{
				Name: "child", Annotations: map[string]string{v1beta1.InheritFromAnnotation: "base"},
			}},
		} {
			want := `admission webhook "` + kind + `.ome-webhook-server.validator" denied the request: metadata.annotations[ome.io/inherit-from]: not supported yet`
			if err := c.admin.Create(ctx, obj); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v", kind, err)
			}
			obj.SetAnnotations(nil)
			if err := c.admin.Create(ctx, obj); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	})

	t.Run("mistakes that the schema doesn't see", func(t *testing.T) { testMistakes(t, c) })

	t.Run("replicas", func(t *testing.T) {
		service := &v1beta1.InferenceService{}
		if err := c.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "mistral-pd"}, service); err != nil {
			t.Fatal(err)
		}
		manager, err := client.New(c.asManager(), client.Options{Scheme: c.scheme})
		if err != nil {
			t.Fatal(err)
		}
		replica := &v1beta1.InferenceReplica{
			ObjectMeta: metav1.ObjectMeta{
				Name: "mistral-pd-engine", Namespace: namespace,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, v1beta1.GroupVersion.WithKind("InferenceService"))},
			},
			Spec: v1beta1.InferenceReplicaSpec{
				Component: v1beta1.EngineComponent,
				ParentRef: &v1beta1.ParentRef{Name: "mistral-pd"},
				Replicas:  ptr.To[int32](1),
				Runners: []v1beta1.Runner{{Name: v1beta1.RunnerDefault, Size: 1, Template: corev1.PodTemplateSpec{
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				}}},
			},
		}
		err = c.admin.Create(ctx, replica.DeepCopy())
		if err == nil || !strings.HasPrefix(err.Error(), `admission webhook "inferencereplica.ome-webhook-server.validator" denied the request: `) ||
			!strings.HasSuffix(err.Error(), "edit the InferenceService instead") {
			t.Errorf("create by somebody: %v", err)
		}
		if err := manager.Create(ctx, replica); err != nil {
			t.Fatalf("create by the manager: %v", err)
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`))
		if err := c.admin.Patch(ctx, replica.DeepCopy(), patch); err == nil {
			t.Error("somebody wrote the spec")
		}
		if err := manager.Patch(ctx, replica.DeepCopy(), patch); err != nil {
			t.Errorf("spec by the manager: %v", err)
		}
		request := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"ome.io/release-held-revision":"x"}}}`))
		if err := c.admin.Patch(ctx, replica.DeepCopy(), request); err != nil {
			t.Errorf("request by somebody: %v", err)
		}
		for text, refusal := range map[string]string{
			`{"metadata":{"annotations":{"ome.io/reset-instances":"0,3"}}}`:                       "",
			`{"metadata":{"annotations":{"ome.io/reset-instance":"all"}}}`:                        "did you mean ome.io/reset-instances?",
			`{"metadata":{"annotations":{"ome.io/release-held-revisions":"0a1b2c3d"}}}`:           "did you mean ome.io/release-held-revision?",
			`{"metadata":{"annotations":{"ome.io/reset-instances":"0"}},"spec":{"paused":false}}`: "only the manager writes its spec",
		} {
			err := c.admin.Patch(ctx, replica.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)))
			if (err == nil) != (refusal == "") || err != nil && !strings.Contains(err.Error(), refusal) {
				t.Errorf("%s: %v", text, err)
			}
		}
		answered := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/metadata/annotations/ome.io~1reset-instances","value":"0,3"},{"op":"remove","path":"/metadata/annotations/ome.io~1reset-instances"}]`))
		if err := manager.Patch(ctx, replica.DeepCopy(), answered); err != nil {
			t.Errorf("removal of a request by the manager: %v", err)
		}
		scale := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))
		if err := c.admin.SubResource("scale").Patch(ctx, replica.DeepCopy(), scale); err != nil {
			t.Errorf("scale by somebody: %v", err)
		}
	})

	// The rest of the test has no manager to ask.
	stop()
	t.Run("with every manager down", func(t *testing.T) { testManagerDown(t, c) })
	t.Run("rights", func(t *testing.T) { testRights(t, c) })
	t.Run("policies", func(t *testing.T) { testPolicies(t, c) })
	t.Run("certificates", func(t *testing.T) { testCertificates(t, c) })
}

// testManagerDown finds out which requests need a manager, by having none.
func testManagerDown(t *testing.T, c *cluster) {
	const migration = "ome.io/migration-request-v1-0f8fad5b-d9cb-469f-a165-70867728950e"
	annotations := func(pairs string) string { return `{"metadata":{"annotations":{` + pairs + `}}}` }
	cases := []struct {
		name   string
		before string
		patch  string
		stored bool
	}{
		{"pause", "", annotations(`"ome.io/rollout-paused":"true"`), true},
		{"freeze", "", annotations(`"ome.io/rollout-paused":"freeze"`), true},
		{"pause becomes freeze", annotations(`"ome.io/rollout-paused":"true"`), annotations(`"ome.io/rollout-paused":"freeze"`), true},
		{"resume", annotations(`"ome.io/rollout-paused":"true"`), annotations(`"ome.io/rollout-paused":null`), true},
		{"resume of a paused service with other annotations", annotations(`"ome.io/rollout-paused":"true","team":"a"`), annotations(`"ome.io/rollout-paused":null`), true},
		{"promote removed", annotations(`"ome.io/rollout-promote":"abcdef"`), annotations(`"ome.io/rollout-promote":null`), true},
		{"rollback removed", annotations(`"ome.io/rollout-rollback":"true"`), annotations(`"ome.io/rollout-rollback":null`), true},
		{"repin removed", annotations(`"ome.io/rollout-repin":"now"`), annotations(`"ome.io/rollout-repin":null`), true},
		{"retry removed", annotations(`"ome.io/rollout-resume":"abcdef"`), annotations(`"ome.io/rollout-resume":null`), true},
		{"migration removed", annotations(`"` + migration + `":"{}"`), annotations(`"` + migration + `":null`), true},
		{"nothing", "", `{}`, true},
		{"status field in the main resource", "", `{"status":{"url":"http://x"}}`, true},

		{"pause of another spelling", "", annotations(`"ome.io/rollout-paused":"True"`), false},
		{"pause that is none", "", annotations(`"ome.io/rollout-paused":"false"`), false},
		{"misspelt pause", "", annotations(`"ome.io/rollout-pause":"true"`), false},
		{"pause and another annotation", "", annotations(`"ome.io/rollout-paused":"true","team":"a"`), false},
		{"pause and a label", "", `{"metadata":{"annotations":{"ome.io/rollout-paused":"true"},"labels":{"team":"a"}}}`, false},
		{"pause and a spec edit", "", `{"metadata":{"annotations":{"ome.io/rollout-paused":"true"}},"spec":{"engine":{"maxReplicas":2}}}`, false},
		{"promote set", "", annotations(`"ome.io/rollout-promote":"abcdef"`), false},
		{"state removed", annotations(`"ome.io/runtime-sync":"t"`), annotations(`"ome.io/runtime-sync":null`), false},
		{"another annotation removed", annotations(`"team":"a"`), annotations(`"team":null`), false},
		{"spec edit", "", `{"spec":{"engine":{"maxReplicas":2}}}`, false},
	}
	ctx := t.Context()
	runtime := &v1beta1.ClusterServingRuntime{ObjectMeta: metav1.ObjectMeta{Name: "srt-mistral-7b-instruct-pd"}}
	patch := func(text string) error {
		return c.admin.Patch(ctx, runtime.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)))
	}
	if err := patch(`{"metadata":{"labels":{"team":"a"},"finalizers":["example.com/f"]}}`); err != nil {
		t.Errorf("a label and a finalizer of a runtime: %v", err)
	}
	if err := patch(`{"metadata":{"finalizers":null}}`); err != nil {
		t.Errorf("a runtime's finalizer removed: %v", err)
	}
	for _, text := range []string{`{"spec":{"disabled":true}}`, annotations(`"ome.io/inherit-from":"x"`)} {
		if err := patch(text); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			t.Errorf("%s on a runtime: %v", text, err)
		}
	}
	replica := &v1beta1.InferenceReplica{ObjectMeta: metav1.ObjectMeta{Name: "mistral-pd-engine", Namespace: namespace}}
	request := func(value string) error {
		return c.admin.Patch(ctx, replica.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(annotations(`"ome.io/release-held-revision":`+value))))
	}
	if err := request(`"y"`); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("a request to a replica: %v", err)
	}
	if err := request("null"); err != nil {
		t.Errorf("a request to a replica taken back: %v", err)
	}
	services := make([]*v1beta1.InferenceService, len(cases))
	c.withoutWebhooks(t, func() {
		for i, tc := range cases {
			s := sample[v1beta1.InferenceService](t, "mistral-pd.yaml")
			s.Name = fmt.Sprintf("down-%d", i)
			if err := c.admin.Create(ctx, s); err != nil {
				t.Fatal(err)
			}
			if tc.before != "" {
				if err := c.admin.Patch(ctx, s, client.RawPatch(types.MergePatchType, []byte(tc.before))); err != nil {
					t.Fatal(err)
				}
			}
			services[i] = s
		}
	})
	for i, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := services[i]
			err := c.admin.Patch(ctx, s, client.RawPatch(types.MergePatchType, []byte(tc.patch)))
			switch {
			case tc.stored && err != nil:
				t.Errorf("not stored: %v", err)
			case !tc.stored && err == nil:
				t.Error("stored without asking")
			case !tc.stored && !strings.Contains(err.Error(), "failed calling webhook"):
				t.Errorf("another error: %v", err)
			}
		})
	}
}

// withoutWebhooks does something that the webhooks, being down, would stop. It narrows them to
// objects with a label, and waits until the API server follows, both ways.
func (c *cluster) withoutWebhooks(t *testing.T, do func()) {
	t.Helper()
	set := func(selector *metav1.LabelSelector, works bool) {
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := c.admin.Get(t.Context(), client.ObjectKey{Name: ConfigurationName}, config); err != nil {
			t.Fatal(err)
		}
		for i := range config.Webhooks {
			config.Webhooks[i].ObjectSelector = selector
		}
		if err := c.admin.Update(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the API server reads the configuration", func() error {
			probe := sample[v1beta1.InferenceService](t, "mistral-pd.yaml")
			probe.Name = "probe"
			err := c.admin.Create(t.Context(), probe, client.DryRunAll)
			if (err == nil) != works {
				return fmt.Errorf("works without the webhooks: %v: %w", works, err)
			}
			return nil
		})
	}
	set(&metav1.LabelSelector{MatchLabels: map[string]string{"judge": "me"}}, true)
	do()
	set(nil, false)
}

// testRights asks what the manager's account may do, and what it may not.
func testRights(t *testing.T, c *cluster) {
	type ask struct{ group, resource, subresource, verb, namespace, name string }
	allowed := []ask{
		{"ome.io", "inferenceservices", "", "watch", "", ""},
		{"ome.io", "inferenceservices", "", "patch", namespace, "mistral-pd"},
		{"ome.io", "inferenceservices", "status", "patch", namespace, "mistral-pd"},
		{"ome.io", "inferenceservices", "finalizers", "update", namespace, "mistral-pd"},
		{"ome.io", "inferencereplicas", "", "create", namespace, ""},
		{"ome.io", "inferencereplicas", "", "delete", namespace, "x"},
		{"ome.io", "inferencereplicas", "status", "patch", namespace, "x"},
		{"ome.io", "inferencereplicas", "finalizers", "update", namespace, "x"},
		{"ome.io", "clusterservingruntimes", "", "watch", "", ""},
		{"", "pods", "", "create", namespace, ""},
		{"", "pods", "", "delete", namespace, "x"},
		{"", "pods", "status", "patch", namespace, "x"},
		{"", "pods", "", "patch", namespace, "x"},
		{"", "nodes", "", "get", "", "x"},
		{"", "services", "", "create", namespace, ""},
		{"apps", "controllerrevisions", "", "create", namespace, ""},
		{"discovery.k8s.io", "endpointslices", "", "watch", "", ""},
		{"events.k8s.io", "events", "", "create", namespace, ""},
		{"", "events", "", "create", "ome", ""},
		{"", "configmaps", "", "watch", "ome", ""},
		{"", "configmaps", "", "patch", "ome", "inferenceservice-config"},
		{"coordination.k8s.io", "leases", "", "create", "ome", ""},
		{"coordination.k8s.io", "leases", "", "update", "ome", "ome-manager"},
		{"", "secrets", "", "update", "ome", CertSecretName},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "update", "", ConfigurationName},
	}
	refused := []ask{
		{"ome.io", "inferenceservices", "", "create", namespace, ""},
		{"ome.io", "inferenceservices", "", "delete", namespace, "mistral-pd"},
		{"ome.io", "clusterservingruntimes", "", "update", "", "x"},
		{"ome.io", "clusterservingruntimes", "status", "patch", "", "x"},
		{"", "pods", "", "update", namespace, "x"},
		{"apps", "controllerrevisions", "", "patch", namespace, "x"},
		{"ome.io", "clusterservingruntimes", "", "get", "", "x"},
		{"discovery.k8s.io", "endpointslices", "", "get", namespace, "x"},
		{"", "events", "", "create", namespace, ""},
		{"", "secrets", "", "get", "ome", CertSecretName},
		{"coordination.k8s.io", "leases", "", "patch", "ome", "ome-manager"},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "patch", "", ConfigurationName},
		{"", "pods", "exec", "create", namespace, "x"},
		{"", "pods", "eviction", "create", namespace, "x"},
		{"", "secrets", "", "get", "ome", "another"},
		{"", "secrets", "", "list", namespace, ""},
		{"", "configmaps", "", "get", namespace, "x"},
		{"", "configmaps", "", "patch", "ome", "another"},
		{"coordination.k8s.io", "leases", "", "create", namespace, ""},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "update", "", "another"},
		{"", "nodes", "", "patch", "", "x"},
		{"", "nodes", "", "list", "", ""},
		{"", "nodes", "", "watch", "", ""},
		{"ome.io", "rolloutpolicies", "", "list", "", ""},
		{"", "namespaces", "", "get", "", namespace},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "update", "", PolicyConfigurationName},
	}
	check := func(a ask, want bool) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: ManagerUser("ome"), Groups: []string{"system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: a.group, Resource: a.resource, Subresource: a.subresource, Verb: a.verb, Namespace: a.namespace, Name: a.name,
			},
		}}
		if err := c.admin.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != want {
			t.Errorf("%+v: allowed %v, want %v", a, review.Status.Allowed, want)
		}
	}
	for _, a := range allowed {
		check(a, true)
	}
	for _, a := range refused {
		check(a, false)
	}
	roles := &rbacv1.ClusterRoleList{}
	if err := c.admin.List(t.Context(), roles); err != nil {
		t.Fatal(err)
	}
	for _, role := range roles.Items {
		for _, rule := range role.Rules {
			if role.Name == "ome-manager" && strings.Contains(strings.Join(append(append(rule.Verbs, rule.Resources...), rule.APIGroups...), " "), "*") {
				t.Errorf("the manager's role has a wildcard: %v", rule)
			}
		}
	}
}

// The manager makes its own certificate, under its own rights. The test plays the kubelet, which
// carries the Secret into the pod.
func testCertificates(t *testing.T, c *cluster) {
	dir := t.TempDir()
	install := c.env.WebhookInstallOptions
	mgr, err := ctrl.NewManager(c.asManager(), ctrl.Options{
		Scheme:        c.scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: ctrlwebhook.NewServer(ctrlwebhook.Options{Host: install.LocalServingHost, Port: install.LocalServingPort, CertDir: dir}),
	})
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{ManagerUser: ManagerUser("ome"), PoliciesServed: true, Certs: &CertOptions{Namespace: "ome", Dir: dir}}
	if err := SetupWithManager(mgr, opts); err != nil {
		t.Fatal(err)
	}
	run(t, mgr)

	secret := &corev1.Secret{}
	eventually(t, "the Secret holds a certificate", func() error {
		if err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: "ome", Name: CertSecretName}, secret); err != nil {
			return err
		}
		if len(secret.Data["tls.crt"]) == 0 {
			return errors.New("no tls.crt yet")
		}
		return nil
	})
	for name, data := range secret.Data {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	address := net.JoinHostPort(install.LocalServingHost, strconv.Itoa(install.LocalServingPort))
	eventually(t, "the webhook serves the certificate", func() error {
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: ServiceName + ".ome.svc"})
		if err != nil {
			return err
		}
		return conn.Close()
	})
	eventually(t, "the configurations hold the authority", func() error {
		for _, name := range []string{ConfigurationName, PolicyConfigurationName} {
			config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if err := c.admin.Get(t.Context(), client.ObjectKey{Name: name}, config); err != nil {
				return err
			}
			for _, w := range config.Webhooks {
				if !bytes.Equal(w.ClientConfig.CABundle, secret.Data["ca.crt"]) {
					return fmt.Errorf("%s has another authority", w.Name)
				}
			}
		}
		return nil
	})
	if apierrors.IsNotFound(c.admin.Get(t.Context(), client.ObjectKey{Namespace: "ome", Name: ServiceName}, &corev1.Service{})) {
		t.Errorf("the certificate is for %s, which is no Service", ServiceName)
	}
}
