package install

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// KubeletsUser is the one user that all simulated kubelets share. The Node authorizer knows one node per user, and a
// watch and a connection for each of hundreds of nodes would be the lab's main load.
const KubeletsUser = "ome-lab-kubelets"

// KubeletsRole lets that user do what kubelets do, on every node.
func KubeletsRole() []*unstructured.Unstructured {
	rule := func(group string, resources []any, verbs ...any) any {
		return map[string]any{"apiGroups": []any{group}, "resources": resources, "verbs": verbs}
	}
	meta := map[string]any{"name": KubeletsUser}
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta,
			"rules": []any{
				rule("", []any{"nodes"}, "get", "list", "watch", "create", "update", "patch", "delete"),
				rule("", []any{"pods"}, "get", "list", "watch", "patch", "delete"),
				rule("", []any{"nodes/status", "pods/status"}, "get", "update", "patch"),
				rule("", []any{"services", "configmaps"}, "get", "list", "watch"),
				rule("", []any{"events"}, "create", "patch", "update"),
				rule("coordination.k8s.io", []any{"leases"}, "get", "list", "watch", "create", "update", "patch", "delete"),
				rule("discovery.k8s.io", []any{"endpointslices"}, "get", "list", "watch"),
			},
		}},
		{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": meta,
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": KubeletsUser},
			"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": KubeletsUser}},
		}},
	}
}
