package bench

// What the InferenceService under test is made of. No GPU is asked for: nodes have few, and how pods are packed is not
// what is measured. The servers stop at once, so that no roll waits for a grace period.

const modelYAML = `{
  "apiVersion": "ome.io/v1beta1", "kind": "ClusterBaseModel", "metadata": {"name": "bench"},
  "spec": {
    "modelFormat": {"name": "safetensors", "version": "1"}, "modelFramework": {"name": "transformers", "version": "4.36.0"}, "modelParameterSize": "7B",
    "storage": {"storageUri": "hf://bench/model", "path": "/mnt/models/bench"}
  }
}`

const runtimeYAML = `{
  "apiVersion": "ome.io/v1beta1", "kind": "ClusterServingRuntime", "metadata": {"name": "bench"},
  "spec": {
    "supportedModelFormats": [{"modelFormat": {"name": "safetensors", "version": "1"}, "modelFramework": {"name": "transformers", "version": "4.36.0"}, "autoSelect": false, "priority": 1}],
    "protocolVersions": ["openAI"],
    "engineConfig": {
      "terminationGracePeriodSeconds": 5,
      "runner": {
        "name": "ome-container", "image": %q,
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
      }
    }
  }
}`

const serviceYAML = `{
  "apiVersion": "ome.io/v1beta1", "kind": "InferenceService", "metadata": {"name": "bench", "namespace": %q},
  "spec": {
    "deploymentMode": "OMENative", "model": {"name": "bench"}, "runtime": {"name": "bench"},
    "engine": {
      "minReplicas": %d, "maxReplicas": %d, "autoscaler": {"class": "None"},
      "runner": {"name": "ome-container", "image": %q},
      "lifecycle": {"updateStrategy": {"type": "SurgeThenDrain", "rollingUpdate": {"maxSurge": "25%%"}}}
    }
  }
}`
