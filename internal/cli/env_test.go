package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"ome.io/ome/internal/testenv"
)

const contextName = "prod-cluster"

// server is the one API server of this test binary.
var server struct {
	admin *rest.Config
	// cluster is the admin's client, for fixtures.
	cluster client.Client
	// shared are the models and runtimes of the fixtures, as stored.
	shared []*unstructured.Unstructured
	// users maps a user to their kubeconfig file.
	users map[string]string
}

func TestMain(m *testing.M) {
	code, err := runWithServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithServer(m *testing.M) (code int, err error) {
	env, err := testenv.Environment()
	if err != nil {
		return 1, err
	}
	if server.admin, err = env.Start(); err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := env.Stop(); err == nil {
			err = stopErr
		}
	}()
	if server.cluster, err = client.New(server.admin, client.Options{}); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "kubectl-ome")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	webhooks, configurations := denyingWebhooks()
	defer webhooks.Close()
	if err := setUp(env, dir, configurations); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// setUp installs the shipped roles, the people who hold them, and the runtimes
// and models of the fixtures.
func setUp(env *envtest.Environment, dir string, extra []*unstructured.Unstructured) error {
	ctx := context.Background()
	var objects []*unstructured.Unstructured
	for _, name := range []string{"kubectl-ome-reader.yaml", "kubectl-ome-actions.yaml"} {
		raw, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "rbac", name))
		if err != nil {
			return err
		}
		objects = append(objects, fromYAML(string(raw)))
	}
	// oncall may read and act, reader may only read, and stranger holds nothing.
	// modelless lacks one read rule, so that a later read is the one that fails.
	objects = append(objects, binding("kubectl-ome-reader", "oncall", "reader"), binding("kubectl-ome-actions", "oncall"),
		fromYAML(role("services-only", "inferenceservices")), binding("services-only", "modelless"),
		fromYAML(role("no-replicas", "inferenceservices,clusterbasemodels,clusterservingruntimes")), binding("no-replicas", "replicaless"),
		fromYAML(role("no-scale", "inferenceservices,inferencereplicas,clusterbasemodels,clusterservingruntimes")), binding("no-scale", "scaleless"))
	server.shared = sharedFixtures()
	objects = append(append(objects, server.shared...), extra...)
	for _, o := range objects {
		if err := server.cluster.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	server.users = map[string]string{"nobody-listens": filepath.Join(dir, "nobody-listens"), "unsafe-context": filepath.Join(dir, "unsafe-context")}
	if err := writeKubeconfig(server.users["nobody-listens"], contextName, &rest.Config{Host: "https://127.0.0.1:1"}); err != nil {
		return err
	}
	if err := writeKubeconfig(server.users["unsafe-context"], "prod\u202e", &rest.Config{Host: "https://127.0.0.1:1"}); err != nil {
		return err
	}
	server.users["odd-namespace"] = filepath.Join(dir, "odd-namespace")
	if err := writeKubeconfigIn(server.users["odd-namespace"], contextName, "Prod", &rest.Config{Host: "https://127.0.0.1:1"}); err != nil {
		return err
	}
	for _, name := range []string{"oncall", "reader", "stranger", "modelless", "replicaless", "scaleless"} {
		user, err := env.AddUser(envtest.User{Name: name}, nil)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		if err := writeKubeconfig(path, contextName, user.Config()); err != nil {
			return err
		}
		server.users[name] = path
	}
	return nil
}

func writeKubeconfig(path, contextName string, c *rest.Config) error {
	return writeKubeconfigIn(path, contextName, "", c)
}

func writeKubeconfigIn(path, contextName, namespace string, c *rest.Config) error {
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	k.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	k.Contexts[contextName] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	k.CurrentContext = contextName
	return clientcmd.WriteToFile(*k, path)
}

func fromYAML(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return u
}

func role(name, resources string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules:
- {apiGroups: [ome.io], resources: [%s], verbs: [get, list]}`, name, strings.ReplaceAll(resources, ",", ", "))
}

func binding(role string, users ...string) *unstructured.Unstructured {
	subjects := ""
	for _, u := range users {
		subjects += "\n- {kind: User, apiGroup: rbac.authorization.k8s.io, name: " + u + "}"
	}
	return fromYAML(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}
subjects:%s`, role, role, subjects))
}

// transport lets a case look at, change or answer requests on their way.
type transport struct {
	next http.RoundTripper
	hook func(next http.RoundTripper, req *http.Request) (*http.Response, error)
	log  *[]string
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	*t.log = append(*t.log, req.Method+" "+req.URL.RequestURI())
	if t.hook != nil {
		return t.hook(t.next, req)
	}
	return t.next.RoundTrip(req)
}

func newNamespace(t *testing.T) string {
	t.Helper()
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"generateName": "case-"}}}
	if err := server.cluster.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.GetName()
}

func object(kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("ome.io/v1beta1")
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
