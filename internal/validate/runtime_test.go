package validate

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
)

func runtimeOf(t *testing.T, manifest string) *v1beta1.ServingRuntime {
	t.Helper()
	rt := &v1beta1.ServingRuntime{}
	if err := yaml.UnmarshalStrict([]byte(manifest), rt); err != nil {
		t.Fatal(err)
	}
	return rt
}

// runtimeVerdict is that of both kinds, which must be the same.
func runtimeVerdict(t *testing.T, rt, old *v1beta1.ServingRuntime) Result {
	t.Helper()
	as := func(rt *v1beta1.ServingRuntime) *v1beta1.ClusterServingRuntime {
		if rt == nil {
			return nil
		}
		return &v1beta1.ClusterServingRuntime{ObjectMeta: rt.ObjectMeta, Spec: rt.Spec}
	}
	got, cluster := ServingRuntime(rt, old, Options{}), ClusterServingRuntime(as(rt), as(old), Options{})
	if diff := cmp.Diff(got, cluster); diff != "" {
		t.Errorf("-ServingRuntime +ClusterServingRuntime:\n%s", diff)
	}
	return got
}

func TestRuntime(t *testing.T) {
	const flat = "a flat pod template is not supported; move it into spec.engineConfig"
	for name, tc := range map[string]struct{ manifest, denial, warnings string }{
		"empty":       {manifest: "spec: {}"},
		"single pods": {manifest: "spec: {engineConfig: {minReplicas: 1, maxReplicas: 1, runner: {name: c, image: i}}}"},
		"disabled":    {manifest: "spec: {disabled: true}"},
		"inherits": {
			manifest: "metadata: {annotations: {ome.io/inherit-from: base}}",
			denial:   "metadata.annotations[ome.io/inherit-from]: not supported yet; write the parent's templates into this runtime and remove the annotation",
		},
		"inherits from nothing": {manifest: `metadata: {annotations: {ome.io/inherit-from: ""}}`},
		"profile": {
			manifest: `metadata: {annotations: {ome.io/runtime-profile: "true"}}`,
			denial:   "metadata.annotations[ome.io/runtime-profile]: a profile is not served itself; set spec.disabled: true, or remove the annotation",
		},
		"disabled profile": {manifest: `{metadata: {annotations: {ome.io/runtime-profile: "true"}}, spec: {disabled: true}}`},
		"misspelt annotation": {
			manifest: "metadata: {annotations: {ome.io/inherits-from: base}}",
			denial:   "metadata.annotations[ome.io/inherits-from]: no such annotation; did you mean ome.io/inherit-from?",
		},
		"flat template": {
			manifest: "spec: {containers: [{name: c, image: i}], hostNetwork: true, dnsPolicy: Default}",
			denial:   "spec.containers: " + flat + "; spec.dnsPolicy: " + flat + "; spec.hostNetwork: " + flat,
		},
		"the rest of a flat template": {
			manifest: "spec: {volumes: [{name: v}], imagePullSecrets: [{name: s}], nodeSelector: {a: b}, labels: {a: b}, annotations: {a: b}, " +
				"affinity: {}, tolerations: [{key: k}], schedulerName: s, hostIPC: true}",
			denial: "spec.volumes: " + flat + "; spec.imagePullSecrets: " + flat + "; spec.nodeSelector: " + flat + "; spec.labels: " + flat +
				"; spec.annotations: " + flat + "; spec.affinity: " + flat + "; spec.tolerations: " + flat + "; spec.schedulerName: " + flat + "; spec.hostIPC: " + flat,
		},
		"accelerators": {
			manifest: "spec: {acceleratorRequirements: {acceleratorClasses: [a100]}}",
			denial:   "spec.acceleratorRequirements: not supported yet; request the resource in the runner, and choose nodes with nodeSelector or affinity of the component",
		},
		"scaling policy": {
			manifest: "spec: {scalingPolicy: {mode: Proportional}}",
			denial:   "spec.scalingPolicy.mode: not implemented; use Independent (ScalingModeNotImplemented)",
		},
		"leader without worker": {
			manifest: "spec: {engineConfig: {leader: {}}}",
			denial: "spec.engineConfig.leader: set without worker; set spec.engineConfig.worker too, or remove leader (InvalidLeaderWorkerPairing); " +
				"spec.engineConfig.leader: not supported yet; multi-pod Instances aren't there yet: use one pod per Instance",
		},
		"budget": {
			manifest: `spec: {decoderConfig: {lifecycle: {updateStrategy: {rollingUpdate: {maxSurge: "120%"}}}}}`,
			denial:   `spec.decoderConfig.lifecycle.updateStrategy.rollingUpdate.maxSurge: "120%" is not a percentage from "0%" to "100%"; a count is written without quotes (InvalidRollingUpdatePercent)`,
		},
		"bounds": {
			manifest: "spec: {routerConfig: {minReplicas: 3, maxReplicas: 2}}",
			denial:   "spec.routerConfig.minReplicas: 3 must be <= maxReplicas (2)",
		},
		"strategy": {
			manifest: "spec: {engineConfig: {lifecycle: {restartPolicy: RecreateInstanceOnPodRestart, updateStrategy: {type: InPlaceIfPossible}}}}",
		},
		"budgets": {
			manifest: "spec: {decoderConfig: {lifecycle: {updateStrategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}}}}",
			denial:   "spec.decoderConfig.lifecycle.updateStrategy.rollingUpdate: maxSurge 0 and maxUnavailable 0 are both zero, so no Instance could ever move; set one of them above zero (ZeroBudgetPacingUnstartable)",
		},
		"annotation of a component": {
			manifest: "spec: {engineConfig: {annotations: {ome.io/deploymentMod: OMENative}}}",
			denial:   "spec.engineConfig.annotations[ome.io/deploymentMod]: no such annotation; did you mean ome.io/deploymentMode?",
		},
		"selection": {
			manifest: "spec: {supportedModelFormats: [{modelFormat: {name: a}, modelFramework: {name: b}, autoSelect: true, acceleratorConfig: {a100: {}}}]}",
			warnings: "spec.supportedModelFormats[].acceleratorConfig: has no effect yet: no accelerator class is chosen, so set arguments and environment in the runner\n" +
				"spec.supportedModelFormats[].autoSelect: has no effect yet: a service names its runtime in spec.runtime.name",
		},
		"timeout": {
			manifest: "spec: {engineConfig: {timeoutSeconds: 5}}",
			warnings: "spec.engineConfig.timeoutSeconds: has no effect yet: no route is made that could apply it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rt := runtimeOf(t, tc.manifest)
			got := runtimeVerdict(t, rt, nil)
			if diff := cmp.Diff(tc.denial, got.Denial()); diff != "" {
				t.Errorf("denial, -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.warnings, strings.Join(got.WarningTexts(), "\n")); diff != "" {
				t.Errorf("warnings, -want +got:\n%s", diff)
			}
			// What is stored already takes any other edit, in silence.
			edited := rt.DeepCopy()
			edited.Labels = map[string]string{"team": "a"}
			edited.Spec.ProtocolVersions = []string{"openAI"}
			if again := runtimeVerdict(t, edited, rt); !again.OK() || len(again.Warnings) > 0 {
				t.Errorf("another edit of the stored object: %+v", again)
			}
			// And it can always go.
			edited.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
			if going := runtimeVerdict(t, edited, nil); !going.OK() {
				t.Errorf("while it is deleted: %s", going.Denial())
			}
		})
	}
}

func TestSampleRuntime(t *testing.T) {
	raw, err := os.ReadFile("../../config/samples/runtime.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := runtimeVerdict(t, runtimeOf(t, string(raw)), nil); !got.OK() || len(got.Warnings) > 0 {
		t.Errorf("got %+v", got)
	}
}

// A rule on a runtime follows the change of what it reads.
func TestRuntimeEdits(t *testing.T) {
	const old = "{metadata: {annotations: {ome.io/inherit-from: a}}, spec: {engineConfig: {minReplicas: 3, maxReplicas: 2}}}"
	got := runtimeVerdict(t, runtimeOf(t, strings.NewReplacer("inherit-from: a", "inherit-from: b", "maxReplicas: 2", "maxReplicas: 1").Replace(old)), runtimeOf(t, old))
	const want = "metadata.annotations[ome.io/inherit-from]: not supported yet; write the parent's templates into this runtime and remove the annotation; " +
		"spec.engineConfig.minReplicas: 3 must be <= maxReplicas (1)"
	if diff := cmp.Diff(want, got.Denial()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := runtimeVerdict(t, runtimeOf(t, "{}"), runtimeOf(t, old)); !got.OK() {
		t.Errorf("removing all of it: %s", got.Denial())
	}
}
