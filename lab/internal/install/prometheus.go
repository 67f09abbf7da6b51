package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// PrometheusSettings name a server to the analysis of canaries, and let a canary name an address on this machine itself:
// there is no other in a lab.
func PrometheusSettings(address string) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": Namespace, "name": "inferenceservice-config"},
		"data": map[string]any{
			"canaryAnalysis": fmt.Sprintf(`{"bundledPrometheusAddress": %q, "allowedServerAddresses": ["127.0.0.0/8"]}`, address),
		},
	}}}
}
