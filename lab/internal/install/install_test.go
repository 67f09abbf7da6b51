package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func write(t *testing.T, dir, name, body string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "b.yaml", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: second\n---\n# a comment only\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: third\n  namespace: x\n")
	write(t, dir, "a.yml", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: first\n")
	write(t, dir, "kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yml]\n")
	write(t, dir, "notes.txt", "not yaml: [")
	objs, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range objs {
		got = append(got, u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName())
	}
	if diff := cmp.Diff([]string{"Namespace /first", "Namespace /second", "ServiceAccount x/third"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	if objs, err := Load(filepath.Join(dir, "missing")); err != nil || len(objs) != 0 {
		t.Errorf("a missing directory: %v, %v", objs, err)
	}
	write(t, dir, "c.yaml", "kind: Namespace\n")
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "c.yaml") {
		t.Errorf("an object without a name: err = %v, want one that names the file", err)
	}
}

const hook = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: v
webhooks:
- name: a.example.com
  failurePolicy: Fail
  clientConfig:
    service: {name: s, namespace: ome, path: /validate}
  timeoutSeconds: 10
`

func TestPointWebhooksKeepsAllButTheAddress(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "v.yaml", hook)
	objs, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	urls, err := PointWebhooks(objs, "https://localhost:1234", []byte("ca"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"https://localhost:1234/validate"}, urls); diff != "" {
		t.Errorf("urls (-want +got):\n%s", diff)
	}
	got, _, _ := unstructured.NestedSlice(objs[0].Object, "webhooks")
	want := []any{map[string]any{
		"name": "a.example.com", "failurePolicy": "Fail", "timeoutSeconds": int64(5),
		"clientConfig": map[string]any{"url": "https://localhost:1234/validate", "caBundle": "Y2E="},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	write(t, dir, "v.yaml", strings.Replace(hook, "path: /validate", "port: 443", 1))
	objs, err = Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := PointWebhooks(objs, "https://localhost:1234", nil); err == nil || !strings.Contains(err.Error(), "webhooks[0]") {
		t.Errorf("no path: err = %v", err)
	}
}

func TestComponents(t *testing.T) {
	config := t.TempDir()
	if all, err := Components(config); err != nil || len(all) != 0 {
		t.Errorf("no folder: %v, %v", all, err)
	}
	dir := filepath.Join(config, "components", "extra")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: first\n")
	write(t, dir, "b.yaml", hook)
	write(t, dir, "embed.go", "package extra\n")
	all, err := Components(config)
	if err != nil || len(all) != 1 || all[0].Name != "extra" || len(all[0].Objects) != 1 || len(all[0].Webhooks) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if err := CheckComponents(config, []string{"extra"}); err != nil {
		t.Error(err)
	}
	if err := CheckComponents(config, []string{"extra", "extras"}); err == nil || !strings.Contains(err.Error(), "--components=extras: there is no such component") || !strings.HasSuffix(err.Error(), "use one of: extra") {
		t.Errorf("an unknown one: %v", err)
	}
}

func TestExtraManagerFlagsComeLast(t *testing.T) {
	args := ManagerArgs(ManagerConfig{Kubeconfig: "/k", Extra: []string{"--leader-elect=false"}})
	if got := args[len(args)-1]; got != "--leader-elect=false" {
		t.Errorf("last flag %s", got)
	}
	if got := args[0]; got != "--kubeconfig=/k" {
		t.Errorf("first flag %s", got)
	}
}
