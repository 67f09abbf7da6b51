package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Component is something that an administrator can add to a default installation.
type Component struct {
	Name string
	// Objects are all but the webhooks, which need to know where the manager listens.
	Objects, Webhooks []*unstructured.Unstructured
}

// Components reads the components that come with the product, by name.
func Components(config string) ([]Component, error) {
	dir := filepath.Join(config, "components")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read components: %w", err)
	}
	var out []Component
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		objs, err := Load(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		c := Component{Name: e.Name()}
		for _, u := range objs {
			if isWebhook(u) {
				c.Webhooks = append(c.Webhooks, u)
			} else {
				c.Objects = append(c.Objects, u)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// CheckComponents fails for names that config has no component of.
func CheckComponents(config string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	all, err := Components(config)
	if err != nil {
		return err
	}
	var known []string
	for _, c := range all {
		known = append(known, c.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--components=%s: there is no such component in %s; use one of: %s", name, filepath.Join(config, "components"), strings.Join(known, ", "))
		}
	}
	return nil
}

// SetWebhooks stores a webhook configuration whose address was changed. One that is there, because somebody applied it
// as shipped, is changed in place: applying another address beside the shipped one would leave it with both. One that
// isn't there is created if it is wanted; stored tells whether it is there in the end.
func (c *Client) SetWebhooks(ctx context.Context, u *unstructured.Unstructured, wanted bool) (stored bool, err error) {
	res, err := c.resource(u)
	if err != nil {
		return false, err
	}
	live, err := res.Get(ctx, u.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !wanted:
		return false, nil
	case apierrors.IsNotFound(err):
		return true, c.Apply(ctx, []*unstructured.Unstructured{u})
	case err != nil:
		return false, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	live.Object["webhooks"] = u.Object["webhooks"]
	if _, err := res.Update(ctx, live, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return false, fmt.Errorf("point %s %s at the manager: %w", u.GetKind(), u.GetName(), err)
	}
	return true, nil
}
