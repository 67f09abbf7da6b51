package install

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ome.io/ome/lab/internal/metricsapi"
)

// MetricsAPI registers the lab's metrics API with the API server. A Service with an external name is
// what it can reach without a network for Services.
func MetricsAPI(port int, ca []byte) []*unstructured.Unstructured {
	labelled := func(name string) map[string]any {
		return map[string]any{"name": name, "labels": map[string]any{
			"rbac.authorization.k8s.io/aggregate-to-view": "true", "rbac.authorization.k8s.io/aggregate-to-edit": "true",
			"rbac.authorization.k8s.io/aggregate-to-admin": "true",
		}}
	}
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"namespace": metricsapi.Namespace, "name": metricsapi.Service},
			"spec":     map[string]any{"type": "ExternalName", "externalName": "localhost"},
		}},
		{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{"name": metricsapi.Version + "." + metricsapi.Group},
			"spec": map[string]any{
				"group": metricsapi.Group, "version": metricsapi.Version, "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
				"caBundle": base64.StdEncoding.EncodeToString(ca),
				"service":  map[string]any{"namespace": metricsapi.Namespace, "name": metricsapi.Service, "port": int64(port)},
			},
		}},
		{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": labelled("system:aggregated-metrics-reader"),
			"rules": []any{map[string]any{"apiGroups": []any{metricsapi.Group}, "resources": []any{"pods", "nodes"}, "verbs": []any{"get", "list", "watch"}}},
		}},
	}
}
