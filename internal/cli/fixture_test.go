package cli

import (
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sharedFixtures are the cluster-scoped models and runtimes that services name.
func sharedFixtures() []*unstructured.Unstructured {
	out := []*unstructured.Unstructured{fromYAML(`
apiVersion: ome.io/v1beta1
kind: ClusterBaseModel
metadata: {name: m1}
spec: {storage: {storageUri: "hf://m/1"}}`)}
	for _, extra := range []struct{ name, annotations, spec, engine string }{
		{"rt1", "", "", ""},
		{"disabled", "", "disabled: true", ""},
		{"child", "annotations: {ome.io/inherit-from: rt1}", "", ""},
		{"bounded", "", "", ", minReplicas: 2, maxReplicas: 6, autoscaler: {class: External}"},
		{"staged", "", "", ", lifecycle: {updateStrategy: {rollingUpdate: {partition: 3}}}"},
	} {
		out = append(out, fromYAML(fmt.Sprintf(`
apiVersion: ome.io/v1beta1
kind: ClusterServingRuntime
metadata:
  name: %s
  %s
spec:
  %s
  engineConfig: {runner: {name: ome-container, image: e:v1}%s}
  decoderConfig: {runner: {name: ome-container, image: d:v1}}
  routerConfig: {runner: {name: ome-container, image: r:v1}}`, extra.name, extra.annotations, extra.spec, extra.engine)))
	}
	return out
}

// fixture is a service in the middle of a roll, and its replicas. Cases change it
// before it is stored.
type fixture struct {
	service *unstructured.Unstructured
	// replicas by component.
	replicas map[string]*unstructured.Unstructured
	// owned stamps owner references and parent generation when it is stored.
	owned bool
}

func rolling() *fixture {
	f := &fixture{owned: true, replicas: map[string]*unstructured.Unstructured{}}
	f.service = fromYAML(`
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata:
  name: chat
  annotations: {team: ml}
spec:
  deploymentMode: OMENative
  model: {name: m1}
  runtime: {name: rt1}
  engine: {minReplicas: 2, maxReplicas: 2}
  decoder: {minReplicas: 1, maxReplicas: 1}
  rollout: {groups: [{components: [engine, decoder]}]}
status:
  observedGeneration: 1
  rollout:
    observedGeneration: 1
    activeRun:
      runID: chat-9c1e44ab07d2
      openedAt: "2026-09-28T14:00:00Z"
      pinnedAt: "2026-09-28T14:00:00Z"
      targetRevisions:
      - {component: engine, revision: bbbbbbbb, stableRevision: aaaaaaaa}
      - {component: decoder, revision: dddddddd, stableRevision: cccccccc}
      plan: {groups: [{source: Inline, portableDigest: "rp1:cca45ec1fb0f", group: {components: [engine, decoder], blueGreen: {}}}]}
  rolloutCoordination:
    groups: [{name: "0", components: [engine, decoder], policy: BlueGreen, phase: Surging}]`)
	for _, c := range []string{"engine", "decoder"} {
		f.replicas[c] = replica(c)
	}
	return f
}

// settled is the same service with nothing left to do.
func settled() *fixture {
	f := rolling()
	f.set("status", map[string]any{"observedGeneration": int64(1), "rollout": map[string]any{"observedGeneration": int64(1)}})
	for c, r := range f.replicas {
		set(r, "chat-"+c+"-aaaaaaaa", "status", "updateRevision")
		set(r, []any{map[string]any{"index": int64(0), "phase": "Ready"}}, "status", "instanceStatuses")
	}
	return f
}

// paused is the service under a pause of a depth.
func paused(depth string) *fixture {
	f := rolling()
	f.annotate("ome.io/rollout-paused", depth)
	for _, r := range f.replicas {
		set(r, true, "spec", "paused")
	}
	return f
}

func replica(component string) *unstructured.Unstructured {
	return fromYAML(fmt.Sprintf(`
apiVersion: ome.io/v1beta1
kind: InferenceReplica
metadata:
  name: chat-%[1]s
  labels: {ome.io/inferenceservice: chat}
  annotations: {}
spec:
  component: %[1]s
  parentRef: {name: chat}
  replicas: 1
  runners:
  - name: default
    size: 1
    template: {spec: {containers: [{name: ome-container, image: "e:v1"}]}}
status:
  observedGeneration: 1
  replicas: 1
  readyReplicas: 1
  servingReplicas: 1
  availableReplicas: 1
  updatedReplicas: 0
  updatedReadyReplicas: 0
  currentRevision: chat-%[1]s-aaaaaaaa
  updateRevision: chat-%[1]s-bbbbbbbb
  instanceStatuses:
  - index: 0
    phase: Updating
    operation: {id: op1, type: Update, step: Surge, startedAt: "2026-09-28T14:00:00Z", lastProgressAt: "2026-09-28T14:00:00Z"}`, component))
}

func set(u *unstructured.Unstructured, v any, path ...string) {
	if err := unstructured.SetNestedField(u.Object, v, path...); err != nil {
		panic(err)
	}
}

func (f *fixture) set(path string, v any) { set(f.service, v, path) }

func (f *fixture) annotate(key, value string) *fixture {
	a := f.service.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[key] = value
	f.service.SetAnnotations(a)
	return f
}

// with applies changes; it lets a case be one expression.
func (f *fixture) with(change func(*fixture)) *fixture {
	change(f)
	return f
}

// store creates the objects with their statuses in a namespace.
func (f *fixture) store(t *testing.T, namespace string) {
	t.Helper()
	create(t, f.service, namespace)
	for _, r := range f.replicas {
		if f.owned {
			if r.GetOwnerReferences() == nil {
				set(r, []any{map[string]any{
					"apiVersion": "ome.io/v1beta1", "kind": "InferenceService", "name": "chat",
					"uid": string(f.service.GetUID()), "controller": true,
				}}, "metadata", "ownerReferences")
			}
			a := r.GetAnnotations()
			if a == nil {
				a = map[string]string{}
			}
			if _, ok := a["ome.io/parent-generation"]; !ok {
				a["ome.io/parent-generation"] = strconv.FormatInt(f.service.GetGeneration(), 10)
			}
			if _, ok := a["ome.io/controller-write"]; !ok {
				a["ome.io/controller-write"] = "true"
			}
			r.SetAnnotations(a)
		}
		create(t, r, namespace)
	}
}

// create stores one object and then its status.
func create(t *testing.T, u *unstructured.Unstructured, namespace string) {
	t.Helper()
	u.SetNamespace(namespace)
	status, has := u.Object["status"]
	if err := server.cluster.Create(t.Context(), u); err != nil {
		t.Fatalf("create %s: %v", u.GetName(), err)
	}
	if !has {
		return
	}
	u.Object["status"] = status
	if err := server.cluster.Status().Update(t.Context(), u); err != nil {
		t.Fatalf("status of %s: %v", u.GetName(), err)
	}
}
