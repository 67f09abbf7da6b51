package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/lab/internal/load"
	"ome.io/ome/lab/internal/stub"
)

const (
	chatName, chatEngine = "chat", "chat-engine"
	chatRate             = 20
	// patience is far above what any one step takes.
	patience = 3 * time.Minute
)

// settings make the waits of a real installation short.
func settings(lifecycle string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "ome", "name": "inferenceservice-config"},
		"data":     map[string]any{"lifecycle": lifecycle},
	}}
}

// chatRuntime serves with engines alone: the shipped runtime without its other components and its GPUs.
func chatRuntime(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	for _, u := range samples(t) {
		if u.GetKind() != "ClusterServingRuntime" {
			continue
		}
		u.SetName("chat")
		spec := u.Object["spec"].(map[string]any)
		delete(spec, "routerConfig")
		delete(spec, "decoderConfig")
		engine := spec["engineConfig"].(map[string]any)
		engine["terminationGracePeriodSeconds"] = int64(20)
		runner := engine["runner"].(map[string]any)
		delete(runner, "args")
		runner["resources"] = map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "64Mi"}}
		runner["lifecycle"] = preStop
		return u
	}
	t.Fatal("the samples hold no runtime")
	return nil
}

// chat is a service of engines, alone in its namespace.
type chat struct {
	*lab
	ns   string
	n    int64
	more map[string]any // of the engine: its lifecycle and what else a test wants
}

// strategy is a lifecycle with one budget.
func strategy(kind, budget string, n int64) map[string]any {
	return map[string]any{"updateStrategy": map[string]any{"type": kind, "rollingUpdate": map[string]any{budget: n}}}
}

// image applies the service with an image tag.
func (c *chat) image(ctx context.Context, t *testing.T, tag string) {
	t.Helper()
	engine := maps.Clone(c.more)
	engine["minReplicas"], engine["maxReplicas"] = c.n, c.n
	runner, _ := engine["runner"].(map[string]any)
	runner = maps.Clone(runner)
	if runner == nil {
		runner = map[string]any{}
	}
	runner["name"], runner["image"] = "ome-container", "lab.ome.io/engine:"+tag
	engine["runner"] = runner
	c.apply(ctx, t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ome.io/v1beta1", "kind": "InferenceService",
		"metadata": map[string]any{"namespace": c.ns, "name": chatName},
		"spec": map[string]any{
			"deploymentMode": "OMENative",
			"model":          map[string]any{"name": "mistral-7b-instruct-v0-2"},
			"runtime":        map[string]any{"name": "chat"},
			"engine":         engine,
		},
	}})
}

// up makes the service and waits for it.
func (c *chat) up(ctx context.Context, t *testing.T) {
	t.Helper()
	c.apply(ctx, t, namespace(c.ns))
	c.image(ctx, t, "v1")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.tell(context.WithoutCancel(ctx)))
		}
		// Its pods are in the way of the next test.
		if err := c.dynamic.Resource(services).Namespace(c.ns).Delete(context.WithoutCancel(ctx), chatName, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	c.settle(ctx, t, "v1")
}

// look is the replica with its rows and pods.
type look struct {
	replica replica
	rows    []row
	pods    []corev1.Pod
	service service
}

// hash is the hash in a revision's name.
func hash(revision string) string { return strings.TrimPrefix(revision, chatEngine+"-") }

func (c *chat) look(ctx context.Context) (*look, error) {
	s, err := c.snapshot(ctx, c.ns, chatName)
	if err != nil {
		return nil, err
	}
	r, ok := s.replicas["engine"]
	if !ok {
		return nil, fmt.Errorf("%s has no InferenceReplica yet", c.ns)
	}
	rows, err := r.rows()
	return &look{replica: r, rows: rows, pods: s.pods, service: s.service}, err
}

func (c *chat) mustLook(ctx context.Context, t *testing.T) *look {
	t.Helper()
	l, err := c.look(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// until waits for what a look has no complaints about.
func (c *chat) until(ctx context.Context, t *testing.T, what string, f func(*look) []string) {
	t.Helper()
	until(ctx, t, c.ns+": "+what, patience, func() []string {
		l, err := c.look(ctx)
		if err != nil {
			return []string{err.Error()}
		}
		return f(l)
	})
}

// settle waits until nothing is left to do on the way to an image.
func (c *chat) settle(ctx context.Context, t *testing.T, tag string) {
	t.Helper()
	c.until(ctx, t, "rest on "+tag, func(l *look) []string { return l.unrest(c.n, "lab.ome.io/engine:"+tag) })
}

// unrest says what is not as it will be when nothing is left to do.
func (l *look) unrest(n int64, image string) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	r, st := &l.replica, &l.replica.Status
	if l.service.Status.ObservedGeneration != l.service.Metadata.Generation || st.ObservedGeneration != r.Metadata.Generation {
		say("an edit is not observed")
	}
	if got := wantImage(r.Spec); got != image {
		say("the replica wants image %s", got)
	}
	if st.CurrentRevision != st.UpdateRevision {
		say("%s serves, %s is rolled out", st.CurrentRevision, st.UpdateRevision)
	}
	if st.RolloutHold != nil || len(st.RetryBlocks) > 0 {
		say("hold %+v, retry blocks %+v", st.RolloutHold, st.RetryBlocks)
	}
	if l.service.Status.Rollout.ActiveRun != nil {
		say("a run is open")
	}
	if int64(len(l.rows)) != n || int64(len(l.pods)) != n {
		say("%d rows, %d pods, want %d", len(l.rows), len(l.pods), n)
	}
	for _, row := range l.rows {
		if row.Phase != "Ready" || row.Operation != nil || row.RunningRevision != st.UpdateRevision || row.ServingPodCount != 1 {
			say("row %+v", row)
		}
	}
	for i := range l.pods {
		p := &l.pods[i]
		if p.DeletionTimestamp != nil || !podReady(p) || p.Labels[labelRevision] != hash(st.UpdateRevision) || running(p) != image {
			say("pod %s of %s, deleted %v, ready %v, runs %q", p.Name, p.Labels[labelRevision], p.DeletionTimestamp != nil, podReady(p), running(p))
		}
	}
	return out
}

// running is the image that the kubelet says the only container runs.
func running(p *corev1.Pod) string {
	if s := p.Status.ContainerStatuses; len(s) == 1 && s[0].State.Running != nil {
		return s[0].Image
	}
	return ""
}

func (l *look) pod(index int64) *corev1.Pod {
	for i := range l.pods {
		if p := &l.pods[i]; p.Labels[labelIndex] == fmt.Sprint(index) && p.DeletionTimestamp == nil {
			return p
		}
	}
	return nil
}

// newestPod is when the youngest pod was created.
func (l *look) newestPod() time.Time {
	var newest time.Time
	for _, p := range l.pods {
		if p.CreationTimestamp.After(newest) {
			newest = p.CreationTimestamp.Time
		}
	}
	return newest
}

func (l *look) row(index int64) row {
	i := slices.IndexFunc(l.rows, func(r row) bool { return r.Index == index })
	if i < 0 {
		return row{Index: -1}
	}
	return l.rows[i]
}

// ask has one running pod misbehave.
func (c *chat) ask(ctx context.Context, t *testing.T, p *corev1.Pod, behaviour string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, p.UID, stub.AnnotationBehaviour, behaviour)
	if _, err := c.kube.CoreV1().Pods(c.ns).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// events returns the messages of one reason, in no order.
func (c *chat) events(ctx context.Context, t *testing.T, reason string) (out []string) {
	t.Helper()
	return c.lab.events(ctx, t, c.ns, reason)
}

func (l *lab) events(ctx context.Context, t *testing.T, ns, reason string) (out []string) {
	t.Helper()
	list, err := l.kube.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		out = append(out, e.Message)
	}
	return out
}

// tell is what a person would look at first.
func (c *chat) tell(ctx context.Context) string {
	var b strings.Builder
	l, err := c.look(ctx)
	if err != nil {
		s, getErr := c.dynamic.Resource(services).Namespace(c.ns).Get(ctx, chatName, metav1.GetOptions{})
		if getErr != nil {
			return err.Error() + "; " + getErr.Error()
		}
		return fmt.Sprintf("%v; the service's status: %v", err, s.Object["status"])
	}
	st := l.replica.Status
	fmt.Fprintf(&b, "%s: current %s, update %s, hold %+v, retry blocks %+v\nservice conditions %+v\n", c.ns, st.CurrentRevision, st.UpdateRevision,
		st.RolloutHold, st.RetryBlocks, l.service.Status.Conditions)
	for _, r := range l.rows {
		fmt.Fprintf(&b, "  row %+v\n", r)
	}
	for i := range l.pods {
		p := &l.pods[i]
		fmt.Fprintf(&b, "  pod %s on %s, deleted %v, ordinal %s, incarnation %s, revision %s, ready %v, containers %+v\n", p.Name, p.Spec.NodeName, p.DeletionTimestamp,
			p.Labels[labelOrdinal], p.Labels[labelLife], p.Labels[labelRevision], podReady(p), p.Status.ContainerStatuses)
	}
	events, err := c.kube.CoreV1().Events(c.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return b.String() + err.Error()
	}
	slices.SortFunc(events.Items, func(a, b corev1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, e := range events.Items {
		fmt.Fprintf(&b, "  event %s %s/%s %s: %s\n", e.CreationTimestamp.Format("15:04:05"), e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	return b.String()
}

// traffic is a load with each of its failures.
type traffic struct {
	mu       sync.Mutex
	failures []load.ErrorSample
	cancel   func()
	done     chan struct{}
	result   *load.Result
	err      error
}

// send starts requests and returns once they flow.
func (c *chat) send(ctx context.Context, t *testing.T) *traffic {
	t.Helper()
	return c.lab.send(ctx, t, types.NamespacedName{Namespace: c.ns, Name: chatName}, chatRate)
}

func (on *lab) send(ctx context.Context, t *testing.T, service types.NamespacedName, rate float64) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	l := &traffic{cancel: cancel, done: make(chan struct{})}
	started := make(chan struct{})
	go func() {
		defer close(l.done)
		l.result, l.err = load.Run(ctx, load.Config{
			Client: on.kube, Service: service, Rate: rate,
			OnStart: func() { close(started) },
			OnFailure: func(f load.ErrorSample) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.failures = append(l.failures, f)
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-l.done
		if t.Failed() && l.result != nil {
			var b strings.Builder
			_ = l.result.Table(&b)
			t.Logf("%s: the load up to the failure:\n%s", service, &b)
		}
	})
	select {
	case <-started:
	case <-l.done:
		t.Fatal(l.err)
	}
	return l
}

// end stops the load.
func (l *traffic) end(t *testing.T) *load.Result {
	t.Helper()
	l.cancel()
	<-l.done
	if l.err != nil {
		t.Fatal(l.err)
	}
	if l.result.Sent < chatRate {
		t.Errorf("%d requests are no load", l.result.Sent)
	}
	return l.result
}

// endsClean stops a load that must have lost nothing.
func (l *traffic) endsClean(t *testing.T) *load.Result {
	t.Helper()
	r := l.end(t)
	if r.Failed != 0 {
		t.Errorf("%d of %d requests failed: %v", r.Failed, r.Sent, r.Errors)
	}
	return r
}

// servedBy fails the test unless each revision answered something: the load covered the roll.
func servedBy(t *testing.T, r *load.Result, hashes ...string) {
	t.Helper()
	for _, h := range hashes {
		if !slices.ContainsFunc(r.ByRevision, func(n load.RevisionCount) bool { return n.Engine == h && n.OK > 0 }) {
			t.Errorf("revision %s served no request: %+v", h, r.ByRevision)
		}
	}
}

// run executes one of the programs and returns what it printed and its exit code.
func (l *lab) run(ctx context.Context, t *testing.T, program string, args ...string) (string, int) {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, program), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig(), "OME_LAB_DIR="+l.Dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return out.String(), exit.ExitCode()
	} else if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, &out)
	}
	return out.String(), 0
}
