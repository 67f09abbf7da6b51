package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/lab/internal/load"
)

// noErrors is a step's analysis: of the requests to the new revision, at most 2% of the last six seconds may fail. A
// revision with 20% errors has ten times as many.
func noErrors(policy string) string {
	const of = `{namespace=\"{{.Namespace}}\",inferenceservice=\"{{.ISVCName}}\",component=\"{{.Component}}\",revision_hash=\"{{.CanaryRevision}}\"}[6s]`
	return `{"interval":"1s","failureLimit":2,"onInconclusive":"` + policy + `","metrics":[{"name":"errors","operator":"LT","threshold":"0.02",
		"query":"sum(rate(ome_lab_errors_total` + of + `)) / sum(rate(ome_lab_requests_total` + of + `))"}]}`
}

// canaryRecord is what is read of a canary in a service's status.
type canaryRecord struct {
	RolloutPhase string `json:"rolloutPhase"`
	Canary       struct {
		CanaryRevisionHash     string       `json:"canaryRevisionHash"`
		StableRevisionHash     string       `json:"stableRevisionHash"`
		RolledBackRevisionHash string       `json:"rolledBackRevisionHash"`
		CurrentStep            int          `json:"currentStep"`
		StepEnteredTime        *metav1.Time `json:"stepEnteredTime"`
		ObservedTrafficWeight  int          `json:"observedTrafficWeight"`
		Failed                 *struct {
			Reason string `json:"reason"`
		} `json:"failed"`
		MetricResults []metricResult `json:"metricResults"`
		LastRequest   *struct {
			Key     string `json:"key"`
			Outcome string `json:"outcome"`
		} `json:"lastRequest"`
	} `json:"canary"`
}

type metricResult struct {
	Name      string       `json:"name"`
	Query     string       `json:"query"`
	Value     string       `json:"value"`
	Threshold string       `json:"threshold"`
	Passed    bool         `json:"passed"`
	Message   string       `json:"message"`
	Time      *metav1.Time `json:"time"`
}

func (l *lab) canary(ctx context.Context, ns, name string) (canaryRecord, error) {
	var out canaryRecord
	u, err := l.dynamic.Resource(services).Namespace(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return out, err
	}
	found, _, err := unstructured.NestedMap(u.Object, "status", "components", "engine")
	if err != nil {
		return out, err
	}
	raw, err := json.Marshal(found)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(raw, &out)
}

// canaryIs waits until the record is as f wants it.
func (l *lab) canaryIs(ctx context.Context, t *testing.T, ns, name, what string, f func(canaryRecord) bool) canaryRecord {
	t.Helper()
	var last canaryRecord
	until(ctx, t, ns+": "+what, patience, func() []string {
		r, err := l.canary(ctx, ns, name)
		if err != nil {
			return []string{err.Error()}
		}
		if last = r; f(r) {
			return nil
		}
		raw, _ := json.Marshal(r)
		return []string{string(raw)}
	})
	return last
}

// at is true at a step whose capacity is ready and whose gate is closed. Steps count from zero.
func at(step int) func(canaryRecord) bool {
	return func(r canaryRecord) bool {
		return r.Canary.CurrentStep == step && r.Canary.StepEnteredTime != nil && (r.RolloutPhase == "Paused" || r.RolloutPhase == "Promoting")
	}
}

func phase(want string) func(canaryRecord) bool {
	return func(r canaryRecord) bool { return r.RolloutPhase == want }
}

// taster is a service of engines that rolls out by a canary.
type taster struct {
	*chat
	canary      string // in JSON
	annotations map[string]any
}

func tasterOf(l *lab, ns string, n int64, canary string) taster {
	return taster{chat: &chat{lab: l, ns: ns, n: n, more: map[string]any{"lifecycle": strategy("SurgeThenDrain", "maxSurge", n)}}, canary: canary}
}

// taste applies another image, to be rolled out by the canary.
func (c *taster) taste(ctx context.Context, t *testing.T, tag string) {
	t.Helper()
	var canary map[string]any
	if err := json.Unmarshal([]byte(c.canary), &canary); err != nil {
		t.Fatalf("%v: %s", err, c.canary)
	}
	engine := maps.Clone(c.more)
	engine["minReplicas"], engine["maxReplicas"] = c.n, c.n
	engine["runner"] = map[string]any{"name": "ome-container", "image": "lab.ome.io/engine:" + tag}
	c.apply(ctx, t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ome.io/v1beta1", "kind": "InferenceService",
		"metadata": map[string]any{"namespace": c.ns, "name": chatName, "annotations": c.annotations},
		"spec": map[string]any{
			"deploymentMode": "OMENative",
			"model":          map[string]any{"name": "mistral-7b-instruct-v0-2"},
			"runtime":        map[string]any{"name": "chat"},
			"engine":         engine,
			"rollout":        map[string]any{"groups": []any{map[string]any{"components": []any{"engine"}, "canary": canary}}},
		},
	}})
}

func (c *taster) is(ctx context.Context, t *testing.T, what string, f func(canaryRecord) bool) canaryRecord {
	t.Helper()
	return c.canaryIs(ctx, t, c.ns, chatName, what, f)
}

// stable waits until every pod is one of the stable revision and serves.
func (c *taster) stable(ctx context.Context, t *testing.T, revision string) {
	t.Helper()
	c.until(ctx, t, "every Instance back on "+revision, func(l *look) []string { return allOn(l.pods, int(c.n), revision) })
}

func allOn(pods []corev1.Pod, n int, revision string) (out []string) {
	if len(pods) != n {
		out = append(out, fmt.Sprintf("%d pods, want %d", len(pods), n))
	}
	for i := range pods {
		if p := &pods[i]; p.DeletionTimestamp != nil || !podReady(p) || p.Labels[labelRevision] != revision {
			out = append(out, fmt.Sprintf("pod %s of %s, deleted %v, ready %v", p.Name, p.Labels[labelRevision], p.DeletionTimestamp != nil, podReady(p)))
		}
	}
	return out
}

// ome runs kubectl-ome about the service and fails the test unless it ends well.
func (c *taster) ome(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	out, code := c.run(ctx, t, "kubectl-ome", append(args, chatName, "-n", c.ns)...)
	if code != 0 {
		t.Fatalf("kubectl ome %s ended with %d:\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// crowd sends more requests a second than send, so that a revision with an eighth of them has errors to show.
func (c *taster) crowd(ctx context.Context, t *testing.T) *traffic {
	t.Helper()
	return c.lab.send(ctx, t, types.NamespacedName{Namespace: c.ns, Name: chatName}, 2*chatRate)
}

// lostOnlyOwn fails the test for each lost request that is no error of the bad revision itself.
func lostOnlyOwn(t *testing.T, r *load.Result) {
	t.Helper()
	for class, n := range r.Failures {
		if class != "injected" {
			t.Errorf("%d of %d requests were lost by %s: %v", n, r.Sent, class, r.Errors)
		}
	}
}

// share measures what part of the requests the engines of a revision answer, once the nodes have heard of the last
// change. In thousand requests of which a quarter goes there, five points are more than three and a half deviations.
func (l *lab) share(ctx context.Context, t *testing.T, ns, name, revision string) float64 {
	t.Helper()
	hear := time.NewTimer(2500 * time.Millisecond) // the lab's nodes hear of endpoints up to 2 s late
	defer hear.Stop()
	select {
	case <-hear.C:
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	r, err := load.Run(ctx, load.Config{Client: l.kube, Service: types.NamespacedName{Namespace: ns, Name: name}, Rate: 125, Duration: 8 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed != 0 {
		t.Errorf("%d of %d requests failed: %v", r.Failed, r.Sent, r.Errors)
	}
	n := 0
	for _, of := range r.ByRevision {
		if of.Engine == revision {
			n += of.OK
		}
	}
	return 100 * float64(n) / float64(max(r.OK, 1))
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	t.Logf("%s: %.1f%% of the requests, %.0f%% of the capacity", what, got, want)
	if math.Abs(got-want) > 5 {
		t.Errorf("%s: %.1f%% of the requests, want %.0f%% give or take 5", what, got, want)
	}
}

// abreast watches engines and decoders of a new revision, as pods.
type abreast struct {
	mu      sync.Mutex
	steps   []int             // how many of each a step lets in
	old     map[string]string // the revision before, by component
	step    int
	trouble []string
	counts  []string
}

func (a *abreast) see(pods []*corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	there, serve := map[string]int{}, map[string]int{}
	for _, p := range pods {
		if comp := p.Labels[labelComponent]; a.old[comp] != "" && a.old[comp] != p.Labels[labelRevision] && p.DeletionTimestamp == nil {
			there[comp]++
			if podReady(p) {
				serve[comp]++
			}
		}
	}
	for comp := range a.old {
		for a.step < len(a.steps)-1 && there[comp] > a.steps[a.step] {
			// Somebody goes beyond a step: both must have done it.
			for other := range a.old {
				if serve[other] < a.steps[a.step] {
					a.trouble = append(a.trouble, fmt.Sprintf("%d new pods of %s while %d of %s serve", there[comp], comp, serve[other], other))
				}
			}
			a.step++
		}
	}
	if now := fmt.Sprintf("%d/%d", serve["engine"], serve["decoder"]); len(a.counts) == 0 || a.counts[len(a.counts)-1] != now {
		a.counts = append(a.counts, now)
	}
}

// exactly fails the test unless so many of each serve, no more are there, and nobody has gone beyond the step.
func (a *abreast) exactly(t *testing.T, pods []corev1.Pod, step int) {
	t.Helper()
	for comp, old := range a.old {
		fresh, serve := 0, 0
		for i := range pods {
			if p := &pods[i]; p.Labels[labelComponent] == comp && p.Labels[labelRevision] != old {
				fresh++
				if podReady(p) && p.DeletionTimestamp == nil {
					serve++
				}
			}
		}
		if fresh != a.steps[step] || serve != a.steps[step] {
			t.Errorf("step %d: %d new pods of %s, %d of them serve; want %d", step+1, fresh, comp, serve, a.steps[step])
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.step != step {
		t.Errorf("step %d: the pods are at step %d", step+1, a.step+1)
	}
}
