package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const fieldManager = "ome-lab"

// Load reads every object from the YAML files in dir, by file name. A directory that is missing holds no objects.
func Load(dir string) ([]*unstructured.Unstructured, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var objs []*unstructured.Unstructured
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		found, err := decode(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("read manifest %s: %w", path, err)
		}
		objs = append(objs, found...)
	}
	return objs, nil
}

func decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	var objs []*unstructured.Unstructured
	dec := yaml.NewYAMLOrJSONDecoder(r, 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := dec.Decode(&u.Object); errors.Is(err, io.EOF) {
			return objs, nil
		} else if err != nil {
			return nil, err
		}
		switch {
		case len(u.Object) == 0, u.GetKind() == "Kustomization":
		case u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "":
			return nil, fmt.Errorf("document %d has no apiVersion, kind or name", len(objs)+1)
		default:
			objs = append(objs, u)
		}
	}
}

// rank orders kinds so that what others refer to is there first.
func rank(u *unstructured.Unstructured) int {
	switch u.GetKind() {
	case "CustomResourceDefinition":
		return 0
	case "Namespace":
		return 1
	case "ServiceAccount", "ClusterRole", "Role":
		return 2
	default:
		return 3
	}
}

// Client applies objects.
type Client struct {
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

// NewClient makes one from the set-up user's configuration.
func NewClient(cfg *rest.Config) (*Client, error) {
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make the install client: %w", err)
	}
	disc, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make the install client: %w", err)
	}
	return &Client{dynamic: dyn, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disc))}, nil
}

// Apply applies the objects server-side in an order that works, and returns when their CRDs are established.
func (c *Client) Apply(ctx context.Context, objs []*unstructured.Unstructured) error {
	return c.ApplyAs(ctx, fieldManager, objs)
}

// ApplyAs is Apply under a name of its own, so that what others apply of the same object stays.
func (c *Client) ApplyAs(ctx context.Context, manager string, objs []*unstructured.Unstructured) error {
	objs = append([]*unstructured.Unstructured(nil), objs...)
	sort.SliceStable(objs, func(i, j int) bool { return rank(objs[i]) < rank(objs[j]) })
	var crds []string
	for _, u := range objs {
		res, err := c.resource(u)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		if _, err := res.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
			return fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		if u.GetKind() == "CustomResourceDefinition" {
			crds = append(crds, u.GetName())
		}
	}
	for _, name := range crds {
		if err := c.established(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) resource(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := u.GroupVersionKind()
	m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset()
		m, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, err
	}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return c.dynamic.Resource(m.Resource), nil
	}
	ns := u.GetNamespace()
	if ns == "" {
		ns = metav1.NamespaceDefault
	}
	return c.dynamic.Resource(m.Resource).Namespace(ns), nil
}

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func (c *Client) established(ctx context.Context, name string) error {
	for {
		u, err := c.dynamic.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("wait for CustomResourceDefinition %s: %w", name, err)
		}
		met, bad := conditions(u)
		if bad != "" {
			return fmt.Errorf("CustomResourceDefinition %s is not accepted: %s", name, bad)
		}
		if met {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for CustomResourceDefinition %s to be established: %w", name, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func conditions(u *unstructured.Unstructured) (established bool, bad string) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var problems []string
	for _, raw := range list {
		cond, ok := raw.(map[string]any)
		if !ok {
			continue
		}
		switch {
		case cond["type"] == "Established" && cond["status"] == "True":
			established = true
		case cond["type"] == "NamesAccepted" && cond["status"] == "False",
			cond["type"] == "NonStructuralSchema" && cond["status"] == "True":
			problems = append(problems, fmt.Sprint(cond["message"]))
		}
	}
	return established, strings.Join(problems, "; ")
}
