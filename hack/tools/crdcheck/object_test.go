package crdcheck

import (
	"strings"
	"testing"
)

// service wraps lines of a spec, indented by two, in an InferenceService.
func service(spec string) string {
	return "apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata: {name: s, namespace: n}\nspec:\n" + spec
}

func replica(spec, status string) string {
	return "apiVersion: ome.io/v1beta1\nkind: InferenceReplica\nmetadata: {name: s-engine, namespace: n}\nspec:\n" + spec + status
}

func group(lines string) string {
	return service("  rollout:\n    groups:\n    - components: [engine, decoder]\n" + lines)
}

func policy(spec string) string {
	return "apiVersion: ome.io/v1beta1\nkind: RolloutPolicy\nmetadata: {name: p, namespace: n}\nspec: " + spec + "\n"
}

func TestObjects(t *testing.T) {
	const revision = "s-engine-0a1b2c3d"
	tests := []struct {
		name, plural, manifest, old string
		// want is a part of the only expected refusal; empty accepts.
		want string
	}{
		{name: "empty components", plural: "inferenceservices", manifest: service("  engine: {}\n  decoder: {}\n  router: {}\n")},
		{name: "patch of the main container without a name", plural: "inferenceservices", manifest: service("  engine:\n    runner: {image: 'a:2', env: [{name: A, value: b}]}\n")},
		{name: "worker's main container without a name", plural: "inferenceservices", manifest: service("  engine:\n    leader: {}\n    worker: {size: 2, runner: {image: 'a:2'}}\n"), want: "spec.engine.worker.runner.name"},
		{name: "service autoscaler without a class is for the webhook", plural: "inferenceservices", manifest: service("  engine: {autoscaler: {}}\n")},
		{name: "unknown field of a component", plural: "inferenceservices", manifest: service("  engine: {minReplica: 1}\n"), want: "unknown field"},
		{name: "unknown field of a container", plural: "inferenceservices", manifest: service("  engine:\n    runner: {imagee: a}\n"), want: "unknown field"},
		{name: "unknown field of a worker's container", plural: "inferenceservices", manifest: service("  engine:\n    leader: {}\n    worker: {containers: [{name: a, imagee: a}]}\n"), want: "unknown field"},
		{name: "ephemeral containers", plural: "inferenceservices", manifest: service("  engine: {ephemeralContainers: []}\n"), want: "unknown field"},
		{name: "containers null, as typed clients write it", plural: "inferenceservices", manifest: service("  engine: {containers: null}\n")},
		{name: "same variable twice", plural: "inferenceservices", manifest: service("  engine:\n    runner: {env: [{name: A}, {name: A}]}\n"), want: "Duplicate value"},
		{name: "same volume twice", plural: "inferenceservices", manifest: service("  engine:\n    volumes: [{name: v, emptyDir: {}}, {name: v, hostPath: {path: /x}}]\n"), want: "Duplicate value"},
		{name: "deployment mode", plural: "inferenceservices", manifest: service("  deploymentMode: Serverless\n"), want: "spec.deploymentMode"},
		{name: "bad quantity", plural: "inferenceservices", manifest: service("  engine:\n    runner: {resources: {limits: {cpu: 1 core}}}\n"), want: "spec.engine.runner.resources.limits.cpu"},
		{name: "quantities", plural: "inferenceservices", manifest: service("  engine:\n    runner: {resources: {limits: {cpu: 500m, memory: 1.5Gi, nvidia.com/gpu: 8, a.b/c: '1e3', a.b/d: '.5'}}}\n")},
		{name: "bad duration", plural: "inferenceservices", manifest: service("  engine: {lifecycle: {instanceReadyTimeout: soon}}\n"), want: "spec.engine.lifecycle.instanceReadyTimeout"},
		{name: "durations", plural: "inferenceservices", manifest: service("  engine: {lifecycle: {instanceReadyTimeout: 1h30m0.5s}}\n  decoder: {lifecycle: {instanceReadyTimeout: -5m}}\n  router: {lifecycle: {instanceReadyTimeout: 0s}}\n")},
		{name: "status keeps a newer writer's fields", plural: "inferenceservices", manifest: service("  engine: {}\n") + "status: {novel: {a: 1}, components: {engine: {novel: 2, lifecycle: {novel: 3}}}, rollout: {activeRun: {runID: a, openedAt: '2026-09-28T14:00:00Z', pinnedAt: '2026-09-28T14:00:00Z', novel: 4, plan: {groups: [{source: Inline, novel: 5, group: {components: [engine]}}]}}}}\n"},

		{name: "blue-green group", plural: "inferenceservices", manifest: group("      blueGreen: {}\n")},
		{name: "two progressions", plural: "inferenceservices", manifest: group("      blueGreen: {}\n      rollingUpdate: {maxSurge: 1}\n"), want: "at most one of canary, blueGreen and rollingUpdate"},
		{name: "progression beside a policy", plural: "inferenceservices", manifest: group("      blueGreen: {}\n      policyRef: {name: p, progression: canary}\n")},
		{name: "order outside the group", plural: "inferenceservices", manifest: group("      order: [router]\n"), want: "order may only name components of the group"},
		{name: "order inside the group is for the webhook", plural: "inferenceservices", manifest: group("      order: [decoder]\n")},
		{name: "unknown component is for the webhook", plural: "inferenceservices", manifest: service("  rollout: {groups: [{components: [turbine]}]}\n")},
		{name: "empty canary is for the webhook", plural: "inferenceservices", manifest: group("      canary: {}\n")},
		{name: "bad budget is for the webhook", plural: "inferenceservices", manifest: group("      rollingUpdate: {maxSurge: -1, maxUnavailable: lots}\n")},
		{name: "no components", plural: "inferenceservices", manifest: service("  rollout: {groups: [{components: []}]}\n"), want: "spec.rollout.groups[0].components"},
		{name: "four groups", plural: "inferenceservices", manifest: service("  rollout: {groups: [{components: [a]}, {components: [b]}, {components: [c]}, {components: [d]}]}\n"), want: "spec.rollout.groups"},
		{name: "traffic above 100", plural: "inferenceservices", manifest: group("      canary: {steps: [{capacity: 50%, traffic: 101}]}\n"), want: "steps[0].traffic"},
		{name: "tolerance above 100", plural: "inferenceservices", manifest: group("      maintainRatio: {tolerance: 101}\n"), want: "maintainRatio.tolerance"},
		{name: "provider and address", plural: "inferenceservices", manifest: group("      canary: {prometheus: {providerRef: {name: p}, serverAddress: 'http://p'}}\n"), want: "at most one of providerRef and serverAddress may be set"},
		{name: "same metric twice", plural: "inferenceservices", manifest: group("      canary: {steps: [{capacity: 1, traffic: 1, analysis: {interval: 1m, failureLimit: 1, metrics: [{name: a, query: q, operator: LT, threshold: '1'}, {name: a, query: q, operator: LT, threshold: '1'}]}}]}\n"), want: "Duplicate value"},
		{name: "pairing token", plural: "inferenceservices", manifest: service("  rollout: {pairingProtocol: -kv}\n"), want: "spec.rollout.pairingProtocol"},
		{name: "traffic routing", plural: "inferenceservices", manifest: service("  rollout: {trafficRouting: Istio}\n"), want: "spec.rollout.trafficRouting"},

		{name: "cluster affinity dropped", plural: "inferenceservices", old: service("  placement: {policy: ClusterAffinity, mode: Single}\n"), manifest: service("  model: {name: m}\n"), want: "can't be dropped or changed"},
		{name: "cluster affinity kept", plural: "inferenceservices", old: service("  placement: {policy: ClusterAffinity, mode: Single}\n"), manifest: service("  placement: {policy: ClusterAffinity, mode: All}\n")},
		{name: "capacity factors twice", plural: "inferenceservices", manifest: service("  placement: {capacityFactors: {a: 1}}\n  routing: {capacityFactors: {a: 1}}\n"), want: "not both"},
		{name: "empty affinity term", plural: "inferenceservices", manifest: service("  placement: {clusterAffinity: [{weight: 1}]}\n"), want: "at least one requirement"},
		{name: "replacement timeout of zero", plural: "inferenceservices", manifest: service("  placement: {policy: ClusterAffinity, mode: Single, replacementTimeout: 0s}\n"), want: "must be above zero"},
		{name: "disabled probe with a path", plural: "inferenceservices", manifest: service("  routing: {probe: {disabled: true, path: /}}\n"), want: "a disabled probe has no other field"},
		{name: "whole probe", plural: "inferenceservices", manifest: service("  routing: {probe: {path: /h, method: GET, acceptStatuses: [200], gateStatuses: [500], period: 10s, timeout: 2s, failureThreshold: 1, successThreshold: 1, allFailedPolicy: Drain}}\n")},
		{name: "probe slower than its period", plural: "inferenceservices", manifest: service("  routing: {probe: {path: /h, method: GET, acceptStatuses: [200], gateStatuses: [500], period: 1s, timeout: 2s, failureThreshold: 1, successThreshold: 1, allFailedPolicy: Drain}}\n"), want: "timeout must be below period"},
		{name: "gate on 429", plural: "inferenceservices", manifest: service("  routing: {probe: {path: /h, method: GET, acceptStatuses: [200], gateStatuses: [429], period: 10s, timeout: 2s, failureThreshold: 1, successThreshold: 1, allFailedPolicy: Drain}}\n"), want: "can't gate"},
		{name: "quorum above samples", plural: "inferenceservices", manifest: service("  routing: {capacity: {path: /c, method: GET, format: f, period: 10s, timeout: 2s, maxAge: 20s, samples: 1, quorum: 2}}\n"), want: "quorum must be at most samples"},
		{name: "long publisher key", plural: "inferenceservices", manifest: service("  routing: {publisher: {options: {'" + strings.Repeat("k", 129) + "': v}}}\n"), want: "a key has 1 to 128"},

		{name: "list rows", plural: "inferencereplicas", manifest: replica("  component: engine\n", "status: {instanceStatuses: [{index: 0, phase: Ready}, {index: 3, phase: Failed}]}\n")},
		{name: "same index twice", plural: "inferencereplicas", manifest: replica("  component: engine\n", "status: {instanceStatuses: [{index: 0, phase: Ready}, {index: 0, phase: Failed}]}\n"), want: "Duplicate value"},
		{name: "unknown component word is for the webhook", plural: "inferencereplicas", manifest: replica("  component: turbine\n", "")},
		{name: "no component", plural: "inferencereplicas", manifest: replica("  replicas: 1\n", ""), want: "spec.component"},
		{name: "autoscaler without a class", plural: "inferencereplicas", manifest: replica("  component: engine\n  autoscaler: {}\n", ""), want: "spec.autoscaler.class"},
		{name: "negative replicas", plural: "inferencereplicas", manifest: replica("  component: engine\n  replicas: -1\n", ""), want: "spec.replicas"},
		{name: "template with a probe of the wrong shape", plural: "inferencereplicas", manifest: replica("  component: engine\n  runners: [{name: default, size: 1, template: {spec: {containers: [{name: a, livenessProbe: {httpGet: {port: []}}}]}}}]\n", ""), want: "livenessProbe.httpGet.port"},
		{name: "template without containers", plural: "inferencereplicas", manifest: replica("  component: engine\n  runners: [{name: default, size: 1, template: {spec: {}}}]\n", ""), want: "spec.containers"},
		{name: "template metadata", plural: "inferencereplicas", manifest: replica("  component: engine\n  runners: [{name: default, size: 1, template: {metadata: {labels: {a: b}, annotations: {c: d}}, spec: {containers: [{name: a}]}}}]\n", "")},
		{name: "columns", plural: "inferencereplicas", manifest: replica("  component: engine\n", "status:\n  instanceStatusEncoding: ColumnarV2\n  instanceStatusColumns:\n    members: '0-2,4'\n    phases: [{value: Ready, indexes: '0-2'}, {value: Updating, indexes: '4'}]\n    runningRevisions: [{value: "+revision+", indexes: '0-2,4'}]\n    incarnations: [{value: 1, indexes: '0-2,4'}]\n    podCounts: [{value: 1, indexes: '0-2'}, {value: 2, indexes: '4'}]\n    entries:\n    - index: 4\n      operation: {id: op-7, type: Update, step: Surge, startedAt: '2026-09-28T14:00:00Z', lastProgressAt: '2026-09-28T14:00:05Z', strategy: SurgeThenDrain}\n")},
		{name: "columns without the marker", plural: "inferencereplicas", manifest: replica("  component: engine\n", "status: {instanceStatusColumns: {members: '0', phases: [{value: Ready, indexes: '0'}]}}\n"), want: "instanceStatusColumns needs instanceStatusEncoding"},
		{name: "marker without columns", plural: "inferencereplicas", manifest: replica("  component: engine\n", "status: {instanceStatusEncoding: ColumnarV2}\n"), want: "needs instanceStatusColumns and excludes"},
		{name: "marker with list and columns", plural: "inferencereplicas", manifest: replica("  component: engine\n", "status: {instanceStatusEncoding: ColumnarV2, instanceStatuses: [{index: 0, phase: Ready}], instanceStatusColumns: {members: '0', phases: [{value: Ready, indexes: '0'}]}}\n"), want: "needs instanceStatusColumns and excludes"},
		{name: "other marker", plural: "inferencereplicas", manifest: replica("  component: engine\n", "status: {instanceStatusEncoding: DenseV1, instanceStatusColumns: {members: '0', phases: [{value: Ready, indexes: '0'}]}}\n"), want: "status.instanceStatusEncoding"},
		{name: "incarnation group of zero", plural: "inferencereplicas", manifest: replica("  component: engine\n", "status: {instanceStatusEncoding: ColumnarV2, instanceStatusColumns: {members: '0', phases: [{value: Ready, indexes: '0'}], incarnations: [{value: 0, indexes: '0'}]}}\n"), want: "0 is the default"},
		{name: "empty entry", plural: "inferencereplicas", manifest: replica("  component: engine\n", "status: {instanceStatusEncoding: ColumnarV2, instanceStatusColumns: {members: '0', phases: [{value: Ready, indexes: '0'}], entries: [{index: 0}]}}\n"), want: "at least one record"},
		{name: "index set with a space", plural: "inferencereplicas", manifest: replica("  component: engine\n", "status: {instanceStatusEncoding: ColumnarV2, instanceStatusColumns: {members: '0, 1', phases: [{value: Ready, indexes: '0'}]}}\n"), want: "instanceStatusColumns.members"},
		{name: "operation with a parked clock", plural: "inferencereplicas", manifest: replica("  component: engine\n", "status: {instanceStatuses: [{index: 0, phase: Creating, operation: {id: a, type: Create, step: CreatePods, startedAt: '2026-09-28T14:00:00Z', lastProgressAt: '2026-09-28T14:00:00Z', deadline: null}}]}\n")},

		{name: "blue-green policy", plural: "rolloutpolicies", manifest: policy("{blueGreen: {}}")},
		{name: "canary policy", plural: "rolloutpolicies", manifest: policy("{canary: {steps: [{capacity: 25%, traffic: 25, pause: {}}, {capacity: 100%, traffic: 100}]}}")},
		{name: "policy without a progression", plural: "rolloutpolicies", manifest: policy("{}"), want: "exactly one of canary, blueGreen, or rollingUpdate must be set"},
		{name: "policy without a spec", plural: "rolloutpolicies", manifest: "apiVersion: ome.io/v1beta1\nkind: RolloutPolicy\nmetadata: {name: p, namespace: n}\n", want: "spec"},
		{name: "policy of two progressions", plural: "rolloutpolicies", manifest: policy("{blueGreen: {}, rollingUpdate: {}}"), want: "exactly one of canary, blueGreen, or rollingUpdate must be set"},
		{name: "policy of three progressions", plural: "rolloutpolicies", manifest: policy("{blueGreen: {}, rollingUpdate: {}, canary: {}}"), want: "exactly one of canary, blueGreen, or rollingUpdate must be set"},
		{name: "policy edited to another progression is for the webhook", plural: "rolloutpolicies", old: policy("{rollingUpdate: {}}"), manifest: policy("{blueGreen: {}}")},
		{name: "components in a policy", plural: "rolloutpolicies", manifest: policy("{blueGreen: {}, components: [engine]}"), want: "unknown field"},
		{name: "count for a capacity in a policy is for the webhook", plural: "rolloutpolicies", manifest: policy("{canary: {steps: [{capacity: 1, traffic: 100}]}}")},
		{name: "policy status", plural: "rolloutpolicies", manifest: policy("{blueGreen: {}}") + "status: {observedGeneration: 1, portableDigest: 'rp1:cca45ec1fb0f', attachedGroups: 0, conditions: [{type: Ready, status: 'True', reason: BodyValid, message: '', lastTransitionTime: '2026-09-28T14:00:00Z'}]}\n"},

		{name: "runtime", plural: "clusterservingruntimes", manifest: "apiVersion: ome.io/v1beta1\nkind: ClusterServingRuntime\nmetadata: {name: r}\nspec:\n  supportedModelFormats: [{modelFormat: {name: safetensors}, modelFramework: {name: transformers}}]\n  engineConfig: {runner: {name: ome-container, image: a}}\n"},
		{name: "runtime's runner without a name", plural: "clusterservingruntimes", manifest: "spec: {engineConfig: {runner: {image: a}}}\n", want: "spec.engineConfig.runner.name"},
		{name: "runtime's autoscaler without a class", plural: "servingruntimes", manifest: "spec: {engineConfig: {autoscaler: {}}}\n", want: "spec.engineConfig.autoscaler.class"},
		{name: "runtime's scaler reference without a name", plural: "servingruntimes", manifest: "spec: {engineConfig: {autoscalerPolicyRef: {}}}\n", want: "spec.engineConfig.autoscalerPolicyRef.name"},
		{name: "removed field of a runtime", plural: "servingruntimes", manifest: "spec: {workers: []}\n", want: "unknown field"},
		{name: "model", plural: "basemodels", manifest: "spec: {storage: {storageUri: 'hf://a/b'}, modelConfiguration: {any: {thing: 1}}}\n"},
		{name: "model without storage", plural: "clusterbasemodels", manifest: "spec: {vendor: v}\n", want: "spec.storage"},
	}
	kinds := map[string]*kind{}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			k, ok := kinds[tc.plural]
			if !ok {
				k = load(t, tc.plural)
				kinds[tc.plural] = k
			}
			var old map[string]any
			if tc.old != "" {
				old = object(t, tc.old)
			}
			errs := k.check(object(t, tc.manifest), old)
			switch {
			case tc.want == "" && len(errs) > 0:
				t.Errorf("refused: %v\n%s", errs.ToAggregate(), tc.manifest)
			case tc.want != "" && len(errs) != 1:
				t.Errorf("want one refusal with %q, got %v\n%s", tc.want, errs.ToAggregate(), tc.manifest)
			case tc.want != "" && !strings.Contains(errs[0].Error(), tc.want):
				t.Errorf("got %q, want %q in it\n%s", errs[0].Error(), tc.want, tc.manifest)
			}
		})
	}
}
