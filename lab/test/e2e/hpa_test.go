package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"ome.io/ome/lab/internal/load"
)

const (
	hpaUser = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
	// One request takes 3 ms of a core, a pod asks for a tenth of one, and 80% of that is the target: one pod carries
	// 26 requests a second, and 100 want four.
	hpaQuiet, hpaBusy = 20, 80
)

// TestScaledWhileItRolls: an autoscaler takes a service from one Instance to four and back by the load that it gets, each
// time while an image rolls. The counts are the autoscaler's alone, and no request is lost.
func TestScaledWhileItRolls(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	l := startLab(ctx, t, "--nodes=3")
	l.apply(ctx, t, append(samples(t), chatRuntime(t), namespace("hpa"))...)
	s := &scaled{chat: &chat{lab: l, ns: "hpa", n: 1}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.tell(context.WithoutCancel(ctx)))
			t.Logf("counts: %v", s.changes())
		}
	})
	s.image(ctx, t, "v1-cost3ms", nil)
	s.settle(ctx, t, "v1-cost3ms")
	s.watch(ctx, t)
	s.until(ctx, t, "the autoscaler's first measurement", func(*look) []string { return s.unmeasured(ctx) })
	if out, code := s.run(ctx, t, "ome-lab", "kubectl", "top", "pods", "-n", s.ns); code != 0 || !strings.Contains(out, chatEngine+"-0-default-0") {
		t.Errorf("kubectl top pods: exit %d\n%s", code, out)
	}
	first := s.mustLook(ctx, t).replica.Status.UpdateRevision

	quiet := s.flow(ctx, t, hpaQuiet)
	busy := s.flow(ctx, t, hpaBusy)
	s.image(ctx, t, "v2-cost3ms-start8s", nil)
	s.until(ctx, t, "four Instances of v2", func(l *look) []string { return l.unrest(4, "lab.ome.io/engine:v2-cost3ms-start8s") })
	second := s.mustLook(ctx, t).replica.Status.UpdateRevision
	s.image(ctx, t, "v3-cost3ms-start8s", nil)
	s.until(ctx, t, "the roll to v3 to begin", func(l *look) []string {
		if !slices.ContainsFunc(l.rows, func(r row) bool { return r.Operation != nil }) {
			return []string{"no row has an operation"}
		}
		return nil
	})
	lost := []*load.Result{busy()}
	s.until(ctx, t, "one Instance of v3", func(l *look) []string { return l.unrest(1, "lab.ome.io/engine:v3-cost3ms-start8s") })
	third := s.mustLook(ctx, t).replica.Status.UpdateRevision
	lost = append(lost, quiet())

	sent := 0
	for _, r := range lost {
		sent += r.Sent
		if r.Failed != 0 {
			t.Errorf("%d of %d requests failed: %v", r.Failed, r.Sent, r.Errors)
		}
	}
	servedBy(t, lost[1], hash(first), hash(second), hash(third))
	changes := s.changes()
	s.judge(t, changes)
	s.audited(t, len(changes))
	fmt.Printf("%d requests at %d to %d a second: counts %v\n", sent, hpaQuiet, hpaQuiet+hpaBusy, changes)

	// The class goes to somebody else: the autoscaler goes, the count stays, and who asks for another gets it.
	s.image(ctx, t, "v3-cost3ms-start8s", map[string]any{"class": "External"})
	s.until(ctx, t, "the end of the autoscaler", func(*look) []string {
		_, err := s.kube.AutoscalingV2().HorizontalPodAutoscalers(s.ns).Get(ctx, chatEngine, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return []string{fmt.Sprintf("the HPA: %v", err)}
		}
		return nil
	})
	before := len(s.changes())
	if out, code := s.run(ctx, t, "ome-lab", "kubectl", "scale", "inferencereplica", chatEngine, "-n", s.ns, "--replicas=2"); code != 0 {
		t.Fatalf("kubectl scale: exit %d\n%s", code, out)
	}
	s.until(ctx, t, "two Instances by hand", func(l *look) []string { return l.unrest(2, "lab.ome.io/engine:v3-cost3ms-start8s") })
	if got := s.changes()[before:]; len(got) != 1 || got[0].to != 2 {
		t.Errorf("after one kubectl scale the count went %v", got)
	}
}

// scaled is a service whose count an autoscaler moves.
type scaled struct {
	*chat
	mu   sync.Mutex
	last int64
	all  []countChange
}

// countChange is one move of spec.replicas.
type countChange struct {
	from, to int64
	// rolling is whether a revision was on its way then; by is who the API server says owns the field.
	rolling bool
	by      string
}

func (c countChange) String() string {
	return fmt.Sprintf("%d->%d by %s (rolling %t)", c.from, c.to, c.by, c.rolling)
}

// image applies the service; the autoscaler's block is absent unless a test says otherwise.
func (s *scaled) image(ctx context.Context, t *testing.T, tag string, autoscaler map[string]any) {
	t.Helper()
	engine := map[string]any{
		"minReplicas": int64(1), "maxReplicas": int64(4),
		"runner":    map[string]any{"name": "ome-container", "image": "lab.ome.io/engine:" + tag},
		"lifecycle": strategy("SurgeThenDrain", "maxSurge", 1),
	}
	if autoscaler != nil {
		engine["autoscaler"] = autoscaler
	}
	s.apply(ctx, t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ome.io/v1beta1", "kind": "InferenceService",
		"metadata": map[string]any{"namespace": s.ns, "name": chatName},
		"spec": map[string]any{
			"deploymentMode": "OMENative",
			"model":          map[string]any{"name": "mistral-7b-instruct-v0-2"},
			"runtime":        map[string]any{"name": "chat"},
			"engine":         engine,
		},
	}})
}

// unmeasured complains until the HPA has a metric and the service's status says so.
func (s *scaled) unmeasured(ctx context.Context) []string {
	u, err := s.dynamic.Resource(services).Namespace(s.ns).Get(ctx, chatName, metav1.GetOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	st, _, _ := unstructured.NestedMap(u.Object, "status", "components", "engine", "autoscaler")
	if st["class"] != "HPA" || st["managedBy"] != "ome" || st["specSource"] != "default" || st["desiredReplicas"] != int64(1) {
		return []string{fmt.Sprintf("status.components.engine.autoscaler: %v", st)}
	}
	conditions, _ := st["conditions"].([]any)
	for _, c := range conditions {
		if m, _ := c.(map[string]any); m["type"] == string(autoscalingv2.ScalingActive) && m["status"] == "True" {
			return nil
		}
	}
	return []string{fmt.Sprintf("conditions: %v", conditions)}
}

// watch records every move of the count.
func (s *scaled) watch(ctx context.Context, t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.dynamic, 0, s.ns, nil)
	see := func(o any) {
		u := o.(*unstructured.Unstructured)
		var r replica
		if err := read(u, &r); err != nil {
			t.Error(err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := r.desired(); s.last != 0 && n != s.last {
			s.all = append(s.all, countChange{from: s.last, to: n, rolling: r.Status.CurrentRevision != r.Status.UpdateRevision, by: countOwner(u)})
		}
		s.last = r.desired()
	}
	handler, err := factory.ForResource(replicas).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) }})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		t.Fatal("the watch of the replica did not start")
	}
}

func (s *scaled) changes() []countChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// countOwner is who wrote spec.replicas last.
func countOwner(u *unstructured.Unstructured) string {
	for _, m := range u.GetManagedFields() {
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.Raw, &fields) != nil {
			continue
		}
		if _, ok := fields.Spec["f:replicas"]; ok {
			return strings.TrimSuffix(m.Manager+"/"+m.Subresource, "/")
		}
	}
	return "nobody"
}

// judge wants one rise to four and a fall to one, both while a revision was on its way, by the autoscaler.
func (s *scaled) judge(t *testing.T, changes []countChange) {
	t.Helper()
	most, rose, fell := int64(1), false, false
	for _, c := range changes {
		most = max(most, c.to)
		rose = rose || c.to > c.from && c.rolling
		fell = fell || c.to < c.from && c.rolling
		if c.by != "kube-controller-manager/scale" {
			t.Errorf("the count moved by somebody else: %v", c)
		}
	}
	if most != 4 || !rose || !fell || len(changes) < 2 || changes[len(changes)-1].to != 1 {
		t.Errorf("the count went %v; want from 1 to 4 and back to 1, up and down while a revision rolled", changes)
	}
}

// audited asks the API server's log who asked for a count.
func (s *scaled) audited(t *testing.T, changes int) {
	t.Helper()
	log := &auditLog{path: s.Log("audit")}
	requests, err := log.next()
	if err != nil {
		t.Fatal(err)
	}
	byUser := map[string]int{}
	patches := 0
	for _, r := range requests {
		if r.Object.Resource != "inferencereplicas" || r.Object.Namespace != s.ns || r.Response.Code >= 300 || r.Verb != "patch" && r.Verb != "update" {
			continue
		}
		if r.Object.Subresource == "scale" {
			byUser[r.User.Name]++
			continue
		}
		if r.Object.Subresource != "" {
			continue
		}
		var body struct {
			Spec map[string]json.RawMessage `json:"spec"`
		}
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatalf("%s: %v: %s", r, err, r.Body)
		}
		if r.User.Name == managerUser {
			patches++
		}
		if n, ok := body.Spec["replicas"]; ok {
			t.Errorf("%s of %s asks for %s replicas", r, r.User.Name, n)
		}
	}
	if diff := gocmp.Diff(map[string]int{hpaUser: changes}, byUser); diff != "" {
		t.Errorf("writes of the scale by user (-want +got):\n%s", diff)
	}
	// Two images were rolled out, so a log without the manager's patches would prove nothing.
	if patches < 2 {
		t.Errorf("%d patches of the replica by the manager in the log, want two or more", patches)
	}
}

// flow sends requests until the returned function is called.
func (s *scaled) flow(ctx context.Context, t *testing.T, rate float64) func() *load.Result {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var result *load.Result
	var err error
	started, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		result, err = load.Run(ctx, load.Config{Client: s.kube, Service: types.NamespacedName{Namespace: s.ns, Name: chatName}, Rate: rate, OnStart: func() { close(started) }})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if t.Failed() && result != nil {
			var b strings.Builder
			_ = result.Table(&b)
			t.Logf("the load of %g a second up to the failure:\n%s", rate, &b)
		}
	})
	select {
	case <-started:
	case <-done:
		t.Fatal(err)
	}
	return func() *load.Result {
		cancel()
		<-done
		if err != nil {
			t.Fatal(err)
		}
		if result.Sent < int(rate) {
			t.Errorf("%d requests at %g a second are no load", result.Sent, rate)
		}
		return result
	}
}
