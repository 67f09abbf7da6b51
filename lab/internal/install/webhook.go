package install

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const webhookTimeoutSeconds = int64(5)

// PointWebhooks makes the shipped webhook configurations call base instead of a Service, which no lab network routes,
// and returns the URLs they call. Everything else in them stays as shipped.
func PointWebhooks(objs []*unstructured.Unstructured, base string, ca []byte) ([]string, error) {
	var urls []string
	for _, u := range objs {
		if !isWebhook(u) {
			continue
		}
		hooks, found, err := unstructured.NestedSlice(u.Object, "webhooks")
		if err != nil || !found {
			return nil, fmt.Errorf("%s %s has no webhooks", u.GetKind(), u.GetName())
		}
		for i, raw := range hooks {
			hook, ok := raw.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%s %s: webhooks[%d] is not an object", u.GetKind(), u.GetName(), i)
			}
			path, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path")
			if path == "" {
				return nil, fmt.Errorf("%s %s: webhooks[%d].clientConfig.service.path is missing", u.GetKind(), u.GetName(), i)
			}
			url := base + path
			hook["clientConfig"] = map[string]any{"url": url, "caBundle": base64.StdEncoding.EncodeToString(ca)}
			hook["timeoutSeconds"] = webhookTimeoutSeconds
			urls = append(urls, url)
		}
		if err := unstructured.SetNestedSlice(u.Object, hooks, "webhooks"); err != nil {
			return nil, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return urls, nil
}

func isWebhook(u *unstructured.Unstructured) bool {
	return u.GetKind() == "ValidatingWebhookConfiguration" || u.GetKind() == "MutatingWebhookConfiguration"
}
