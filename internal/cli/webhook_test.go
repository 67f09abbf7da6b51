package cli

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const webhookName = "inferenceservice.ome-webhook-server.validator"

// denyingWebhooks serves real admission webhooks that deny every update with a
// code of their own, and registers one that can't be reached. Each looks only at
// namespaces labelled for it.
func denyingWebhooks() (*httptest.Server, []*unstructured.Unstructured) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review map[string]any
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		code := 0
		_, _ = fmt.Sscanf(strings.TrimPrefix(req.URL.Path, "/"), "%d", &code)
		uid := review["request"].(map[string]any)["uid"]
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
			"response": map[string]any{"uid": uid, "allowed": false,
				"status": map[string]any{"code": code, "message": "change window is closed\x1b[2J (ChangeWindow)"}},
		})
	}))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	var out []*unstructured.Unstructured
	for _, mode := range []string{"403", "409", "422", "down"} {
		url := srv.URL + "/" + mode
		if mode == "down" {
			url = "https://127.0.0.1:1/"
		}
		u := fromYAML(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: deny-%[1]s}
webhooks:
- name: %[2]s
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 5
  namespaceSelector: {matchLabels: {deny: "%[1]s"}}
  rules: [{apiGroups: [ome.io], apiVersions: [v1beta1], resources: [inferenceservices, inferencereplicas, inferencereplicas/scale], operations: [UPDATE]}]
  clientConfig: {url: "%[3]s"}`, mode, webhookName, url))
		hooks := u.Object["webhooks"].([]any)
		hooks[0].(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = ca
		set(u, hooksWithBundle(hooks), "webhooks")
		out = append(out, u)
	}
	return srv, out
}

// hooksWithBundle encodes the bundle as the API does.
func hooksWithBundle(hooks []any) []any {
	b, err := json.Marshal(hooks)
	if err != nil {
		panic(err)
	}
	var out []any
	if err := json.Unmarshal(b, &out); err != nil {
		panic(err)
	}
	return out
}
