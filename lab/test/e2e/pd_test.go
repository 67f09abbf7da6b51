package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	pdName = "mistral-pd"
	pdRate = 25
	// untold is a tag word for a server that listens once somebody has it listen.
	untold = "-start30m"
)

// pd is the sample service of a router, engines and decoders, alone in its namespace.
type pd struct {
	*lab
	ns      string
	counts  map[string]int32
	tags    map[string]string // of the images of engine and decoder
	rollout string            // in JSON
	more    map[string]any    // of engine and decoder
	// keep leaves the service up at the end.
	keep bool
}

// roll applies the service with other image tags for engine and decoder.
func (p *pd) roll(ctx context.Context, t *testing.T, engine, decoder string) {
	t.Helper()
	p.tags = map[string]string{"engine": engine, "decoder": decoder}
	u := sampleService(t, p.ns, pdName, "", p.counts)
	spec := u.Object["spec"].(map[string]any)
	for comp, tag := range p.tags {
		c := spec[comp].(map[string]any)
		maps.Copy(c, p.more)
		c["runner"] = map[string]any{"name": "ome-container", "image": "lab.ome.io/" + comp + ":" + tag}
	}
	var rollout map[string]any
	if err := json.Unmarshal([]byte(p.rollout), &rollout); err != nil {
		t.Fatal(err)
	}
	spec["rollout"] = rollout
	p.apply(ctx, t, u)
}

// up makes the service and waits for it.
func (p *pd) up(ctx context.Context, t *testing.T, engine, decoder string) {
	t.Helper()
	p.apply(ctx, t, namespace(p.ns))
	p.roll(ctx, t, engine, decoder)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.tell(context.WithoutCancel(ctx)))
		}
		if p.keep {
			return
		}
		// Its pods are in the way of the next test.
		if err := p.dynamic.Resource(services).Namespace(p.ns).Delete(context.WithoutCancel(ctx), pdName, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	p.settle(ctx, t)
	// The router learns of its first engine and decoder as late as of any other.
	p.until(ctx, t, "answers", func(*snapshot) []string {
		r, err := load.Run(ctx, load.Config{Client: p.kube, Service: p.name(), Rate: pdRate, Duration: 500 * time.Millisecond})
		if err != nil || r.Failed > 0 || r.Sent == 0 {
			return []string{fmt.Sprintf("%v, %+v", err, r)}
		}
		return nil
	})
}

func (p *pd) name() types.NamespacedName { return types.NamespacedName{Namespace: p.ns, Name: pdName} }

func (p *pd) look(ctx context.Context, t *testing.T) *snapshot {
	t.Helper()
	s, err := p.snapshot(ctx, p.ns, pdName)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// until waits for what a look has no complaints about.
func (p *pd) until(ctx context.Context, t *testing.T, what string, f func(*snapshot) []string) {
	t.Helper()
	until(ctx, t, p.ns+": "+what, patience, func() []string {
		s, err := p.snapshot(ctx, p.ns, pdName)
		if err != nil {
			return []string{err.Error()}
		}
		return f(s)
	})
}

// settle waits until nothing is left to do on the way to the images.
func (p *pd) settle(ctx context.Context, t *testing.T) {
	t.Helper()
	p.until(ctx, t, "rest", p.unrest)
}

func (p *pd) unrest(s *snapshot) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if s.service.Status.ObservedGeneration != s.service.Metadata.Generation || s.service.Status.Rollout.ActiveRun != nil || !s.service.ready() {
		say("generation %d of %d, run %v, conditions %v", s.service.Status.ObservedGeneration, s.service.Metadata.Generation, s.service.Status.Rollout.ActiveRun, s.service.Status.Conditions)
	}
	pods := 0
	for comp, n := range p.counts {
		pods += int(n)
		r, ok := s.replicas[comp]
		st := r.Status
		if !ok || st.ObservedGeneration != r.Metadata.Generation || st.CurrentRevision != st.UpdateRevision || st.RolloutHold != nil || st.ServingReplicas != int64(n) {
			say("%s: %s of %s serves on %d, hold %+v", comp, st.CurrentRevision, st.UpdateRevision, st.ServingReplicas, st.RolloutHold)
		}
		if image := "lab.ome.io/" + comp + ":" + p.tags[comp]; comp != "router" && wantImage(r.Spec) != image {
			say("%s wants %s, not %s", comp, wantImage(r.Spec), image)
		}
		rows, err := r.rows()
		if err != nil || len(rows) != int(n) {
			say("%s has %d rows, %v", comp, len(rows), err)
		}
		for _, row := range rows {
			if row.Phase != "Ready" || row.Operation != nil || row.RunningRevision != st.UpdateRevision {
				say("%s row %+v", comp, row)
			}
		}
	}
	if len(s.pods) != pods {
		say("%d pods, want %d", len(s.pods), pods)
	}
	return out
}

// hashOf is the revision that a component is on its way to.
func (s *snapshot) hashOf(comp string) string {
	return strings.TrimPrefix(s.replicas[comp].Status.UpdateRevision, pdName+"-"+comp+"-")
}

// podsOf are the pods of one revision of a component.
func (s *snapshot) podsOf(comp, hash string) (out []*corev1.Pod) {
	for i := range s.pods {
		if p := &s.pods[i]; p.Labels[labelComponent] == comp && p.Labels[labelRevision] == hash {
			out = append(out, p)
		}
	}
	return out
}

// held waits until a component's update is held with exactly these words.
func (p *pd) held(ctx context.Context, t *testing.T, comp, gate, reason string) {
	t.Helper()
	p.until(ctx, t, comp+" waits: "+gate, func(s *snapshot) []string {
		h := s.replicas[comp].Status.RolloutHold
		if h == nil || h.Gate != gate || h.Reason != reason {
			return []string{fmt.Sprintf("hold %+v", h)}
		}
		return nil
	})
}

// listen has the servers of a component that take long to start get ready.
func (p *pd) listen(ctx context.Context, t *testing.T, comp string) {
	t.Helper()
	list, err := p.kube.CoreV1().Pods(p.ns).List(ctx, metav1.ListOptions{LabelSelector: labelComponent + "=" + comp})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:"start0s"}}}`, pod.UID, stub.AnnotationBehaviour)
		if _, err := p.kube.CoreV1().Pods(p.ns).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// starting waits until a component has so many pods of its target that are not ready.
func (p *pd) starting(ctx context.Context, t *testing.T, comp string, n int) {
	t.Helper()
	p.until(ctx, t, fmt.Sprintf("%d new pods of %s", n, comp), func(s *snapshot) []string {
		found := s.podsOf(comp, s.hashOf(comp))
		found = slices.DeleteFunc(found, func(p *corev1.Pod) bool { return podReady(p) || p.Status.Phase != corev1.PodRunning })
		if st := s.replicas[comp].Status; len(found) != n || st.CurrentRevision == st.UpdateRevision {
			return []string{fmt.Sprintf("%d pods, revision %s of %s", len(found), st.CurrentRevision, st.UpdateRevision)}
		}
		return nil
	})
}

// ome runs kubectl-ome about the service and returns what it printed and its exit code.
func (p *pd) ome(ctx context.Context, t *testing.T, args ...string) (string, int) {
	t.Helper()
	return p.run(ctx, t, "kubectl-ome", append(args, pdName, "-n", p.ns)...)
}

func (p *pd) load(ctx context.Context, t *testing.T) *traffic {
	t.Helper()
	return p.send(ctx, t, p.name(), pdRate)
}

// tell is what a person would look at first.
func (p *pd) tell(ctx context.Context) string {
	var b strings.Builder
	u, err := p.dynamic.Resource(services).Namespace(p.ns).Get(ctx, pdName, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	delete(status, "components")
	raw, _ := json.Marshal(status)
	fmt.Fprintf(&b, "%s: %s\n", p.ns, raw)
	s, err := p.snapshot(ctx, p.ns, pdName)
	if err != nil {
		return b.String() + err.Error()
	}
	for comp, r := range s.replicas {
		rows, err := r.rows()
		fmt.Fprintf(&b, "  %s: %s of %s, hold %+v, rows %+v %v\n", comp, r.Status.CurrentRevision, r.Status.UpdateRevision, r.Status.RolloutHold, rows, err)
	}
	for i := range s.pods {
		pod := &s.pods[i]
		fmt.Fprintf(&b, "  pod %s, deleted %v, revision %s, token %q, ready %v\n", pod.Name, pod.DeletionTimestamp, pod.Labels[labelRevision], pod.Labels[labelToken], podReady(pod))
	}
	for _, reason := range []string{"RolloutRunOpened", "RolloutRunClosed", "RolloutPlanRepinned", "RolloutRepinRejected", "CoordinationGroupFailed"} {
		list, err := p.kube.CoreV1().Events(p.ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err != nil {
			return b.String() + err.Error()
		}
		for _, e := range list.Items {
			fmt.Fprintf(&b, "  event %s: %s\n", e.Reason, e.Message)
		}
	}
	return b.String()
}
