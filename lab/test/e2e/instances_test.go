package e2e

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const transition = "internal.ome.io/in-place-image-transition"

// TestInstances takes Instances through every way they are updated, fail and come back, each case under load of its own.
func TestInstances(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	l := startLab(ctx, t, "--nodes=6")
	l.apply(ctx, t, append(samples(t), chatRuntime(t), settings(`{
		"stuckPodGracePeriod": "3s", "unschedulableGracePeriod": "10s",
		"updateRetry": {"maxAttempts": 3, "initialBackoff": "2s", "backoffFactor": 2, "maxBackoff": "3s"},
		"forceDelete": {"overdueSlack": "2s", "nodeUnreachableThreshold": "4s"}}`))...)
	// One case's node dies; the others must not have their pods on it.
	for i := range 3 {
		l.taint(ctx, t, fmt.Sprintf("lab-%02d", 3+i), mortal)
	}
	for name, test := range map[string]func(context.Context, *testing.T, *lab){
		"image in place":     imageInPlace,
		"unpullable image":   unpullableImage,
		"crash loop":         crashLoop,
		"no spare GPU":       noSpareGPU,
		"recreate":           recreate,
		"restart on restart": restartOnRestart,
		"dead node":          deadNode,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(ctx, t, l)
		})
	}
}

// mortal is a taint, and a label, of nodes that may die.
const mortal = "e2e.ome.io/mortal"

// taint keeps pods off a node that don't tolerate it.
func (l *lab) taint(ctx context.Context, t *testing.T, node, key string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:""}},"spec":{"taints":[{"key":%q,"effect":"NoSchedule"}]}}`, key, key)
	if _, err := l.kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// imageInPlace: an image alone changes inside the pods. The restart policy must not take that for a restart.
func imageInPlace(ctx context.Context, t *testing.T, l *lab) {
	lifecycle := strategy("InPlaceIfPossible", "maxUnavailable", 1)
	lifecycle["restartPolicy"] = "RecreateInstanceOnPodRestart"
	c := &chat{lab: l, ns: "in-place", n: 3, more: map[string]any{"lifecycle": lifecycle}}
	c.up(ctx, t)
	before := c.mustLook(ctx, t)
	var seen extremes
	c.watchPods(ctx, t, seen.see)
	traffic := c.send(ctx, t)
	c.image(ctx, t, "v2")
	c.settle(ctx, t, "v2")
	after := c.mustLook(ctx, t)
	result := traffic.endsClean(t)

	if before.replica.Status.UpdateRevision == after.replica.Status.UpdateRevision {
		t.Errorf("another image has the same revision %s", after.replica.Status.UpdateRevision)
	}
	servedBy(t, result, hash(before.replica.Status.UpdateRevision), hash(after.replica.Status.UpdateRevision))
	type place struct {
		UID      types.UID
		Node, IP string
		Restarts int32
	}
	where := func(l *look) map[string]place {
		out := map[string]place{}
		for _, p := range l.pods {
			out[p.Name] = place{p.UID, p.Spec.NodeName, p.Status.PodIP, p.Status.ContainerStatuses[0].RestartCount}
		}
		return out
	}
	want := where(before)
	for name, p := range want {
		p.Restarts++
		want[name] = p
	}
	if d := gocmp.Diff(want, where(after)); d != "" {
		t.Errorf("the pods' identities (-want +got):\n%s", d)
	}
	for i := range after.pods {
		was, is := before.pods[i].Status.ContainerStatuses[0], after.pods[i].Status.ContainerStatuses[0]
		if was.ContainerID == is.ContainerID || was.ImageID == is.ImageID {
			t.Errorf("pod %s runs container %s of %s as before", after.pods[i].Name, is.ContainerID, is.ImageID)
		}
		if text, there := after.pods[i].Annotations[transition]; there {
			t.Errorf("pod %s still has %s=%s", after.pods[i].Name, transition, text)
		}
	}
	for _, row := range after.rows {
		if row.Incarnation != 1 {
			t.Errorf("Instance %d is in incarnation %d", row.Index, row.Incarnation)
		}
	}
	if served, pods := seen.get(); served < 2 || pods > 3 {
		t.Errorf("at one time %d pods served, at another there were %d; want at least 2 and at most 3", served, pods)
	}
	if restarts := c.events(ctx, t, "RestartTriggered"); len(restarts) > 0 {
		t.Errorf("the update was taken for a restart: %q", restarts)
	}
}

// unpullableImage: three attempts, then the revision is held while the old one serves; a person releases it; another
// image ends it.
func unpullableImage(ctx context.Context, t *testing.T, l *lab) {
	c := &chat{lab: l, ns: "unpullable", n: 2, more: map[string]any{"lifecycle": strategy("SurgeThenDrain", "maxSurge", 1)}}
	c.up(ctx, t)
	good := c.mustLook(ctx, t).replica.Status.UpdateRevision
	var seen extremes
	c.watchPods(ctx, t, seen.see)
	traffic := c.send(ctx, t)
	c.image(ctx, t, "v2-unpullable")
	var bad string
	held := func(l *look) []string {
		st := l.replica.Status
		bad = st.UpdateRevision
		want := []retryBlock{{TargetRevision: bad, State: "Held", AttemptsStarted: 3}}
		got := slices.Clone(st.RetryBlocks)
		for i := range got {
			got[i].Reason = ""
		}
		d := gocmp.Diff(want, got)
		if st.RolloutHold == nil || st.RolloutHold.Gate != "Held" || st.RolloutHold.Target != bad || bad == good {
			d += fmt.Sprintf("\nhold %+v, revision %s", st.RolloutHold, bad)
		}
		if d != "" {
			return []string{d}
		}
		return nil
	}
	c.until(ctx, t, "hold after three attempts", held)
	at := c.mustLook(ctx, t)
	if block := at.replica.Status.RetryBlocks[0]; !strings.Contains(block.Reason, "ImagePull") {
		t.Errorf("the block's reason is %q", block.Reason)
	}
	if events := c.events(ctx, t, "RetryHeld"); len(events) != 1 {
		t.Errorf("RetryHeld events %q, want one", events)
	}

	// The service is at rest but for a person, so nothing comes between the guard's reads and its patch.
	out, code := l.run(ctx, t, "kubectl-ome", "instance", "release-held", chatName, "-n", c.ns, "--component=engine", "--revision="+hash(bad), "--yes")
	if code != 0 || !strings.Contains(out, bad) {
		t.Fatalf("release-held ended with %d:\n%s", code, out)
	}
	c.until(ctx, t, "another attempt", func(l *look) []string {
		tried := slices.ContainsFunc(l.pods, func(p corev1.Pod) bool {
			return p.Labels[labelRevision] == hash(bad) && p.CreationTimestamp.After(at.newestPod())
		})
		if !tried || slices.ContainsFunc(l.replica.Status.RetryBlocks, func(b retryBlock) bool { return b.AttemptsStarted > 1 }) {
			return []string{fmt.Sprintf("new pod %v, blocks %+v", tried, l.replica.Status.RetryBlocks)}
		}
		return nil
	})
	if events := c.events(ctx, t, "RetryBlockReleased"); len(events) != 1 {
		t.Errorf("RetryBlockReleased events %q, want one", events)
	}
	c.until(ctx, t, "hold after three more attempts", held)
	if _, there := c.mustLook(ctx, t).replica.Metadata.Annotations["ome.io/release-held-revision"]; there {
		t.Error("the request is still there")
	}

	c.image(ctx, t, "v3")
	c.settle(ctx, t, "v3")
	after := c.mustLook(ctx, t)
	servedBy(t, traffic.endsClean(t), hash(good), hash(after.replica.Status.UpdateRevision))
	if served, pods := seen.get(); served < 2 || pods > 3 {
		t.Errorf("at one time %d pods served, at another there were %d; want at least 2 and at most 3", served, pods)
	}
}

// crashLoop: pods of Ready Instances crash for good; each Instance is restarted as a whole, one at a time. One that
// crashes once is left to its kubelet.
func crashLoop(ctx context.Context, t *testing.T, l *lab) {
	c := &chat{lab: l, ns: "crash-loop", n: 4, more: map[string]any{"lifecycle": strategy("RecreatePod", "maxUnavailable", 1)}}
	c.up(ctx, t)
	before := c.mustLook(ctx, t)
	broken, once := []int64{0, 2}, int64(3)
	ours := map[string]bool{}
	for _, i := range append(slices.Clone(broken), once) {
		ours[before.pod(i).Name] = true
	}
	var mu sync.Mutex
	var underWay []string
	most := 0
	c.watchPods(ctx, t, func(pods []*corev1.Pod) {
		now := restarting(pods, 4)
		mu.Lock()
		defer mu.Unlock()
		if len(now) > most {
			most, underWay = len(now), now
		}
	})
	traffic := c.send(ctx, t)
	for _, i := range broken {
		c.ask(ctx, t, before.pod(i), "crash")
	}
	c.ask(ctx, t, before.pod(once), "crash-times1")
	c.until(ctx, t, "new incarnations", func(l *look) (out []string) {
		for _, i := range broken {
			if l.row(i).Incarnation != 2 {
				out = append(out, fmt.Sprintf("Instance %d: %+v", i, l.row(i)))
			}
		}
		return out
	})
	c.settle(ctx, t, "v1")
	after := c.mustLook(ctx, t)
	result := traffic.end(t)

	for _, f := range traffic.failures {
		if pod, _, _ := strings.Cut(f.Detail, ":"); !ours[pod] {
			t.Errorf("a request failed that was for no crashed pod: %+v", f)
		}
	}
	t.Logf("%d of %d requests failed at three pods that crashed", result.Failed, result.Sent)
	wantIncarnation := map[int64]int64{0: 2, 1: 1, 2: 2, 3: 1}
	for _, row := range after.rows {
		was, is := before.pod(row.Index), after.pod(row.Index)
		renewed := wantIncarnation[row.Index] == 2
		if row.Incarnation != wantIncarnation[row.Index] || (was.UID != is.UID) != renewed || is.Labels[labelLife] != fmt.Sprint(row.Incarnation) {
			t.Errorf("Instance %d: incarnation %d in status and %s on the pod, another pod: %v", row.Index, row.Incarnation, is.Labels[labelLife], was.UID != is.UID)
		}
		if row.RunningRevision != before.row(row.Index).RunningRevision {
			t.Errorf("Instance %d changed from %s to %s", row.Index, before.row(row.Index).RunningRevision, row.RunningRevision)
		}
	}
	if got := after.pod(once).Status.ContainerStatuses[0].RestartCount; got != 1 {
		t.Errorf("the container that crashed once has %d restarts", got)
	}
	mu.Lock()
	if most > 1 {
		t.Errorf("restarts under way at one time, with maxUnavailable 1: Instances %v", underWay)
	}
	mu.Unlock()
	for _, reason := range []string{"RestartTriggered", "RestartCompleted"} {
		if got := c.events(ctx, t, reason); len(got) != len(broken) {
			t.Errorf("%s events %q, want one for each of Instances %v", reason, got, broken)
		}
	}
}

// restarting names the Instances whose first pod is going or gone and whose next one is not ready.
func restarting(pods []*corev1.Pod, n int) (out []string) {
	up := map[string]bool{}
	for _, p := range pods {
		if p.DeletionTimestamp == nil && (p.Labels[labelLife] == "1" || podReady(p)) {
			up[p.Labels[labelIndex]] = true
		}
	}
	for i := range n {
		if !up[fmt.Sprint(i)] {
			out = append(out, fmt.Sprint(i))
		}
	}
	return out
}

// noSpareGPU: a surge that no node has room for is named, with the strategy that needs none.
func noSpareGPU(ctx context.Context, t *testing.T, l *lab) {
	whole := map[string]any{"nvidia.com/gpu": "8"}
	c := &chat{lab: l, ns: "no-spare-gpu", n: 3, more: map[string]any{
		"lifecycle": strategy("SurgeThenDrain", "maxSurge", 1),
		"runner":    map[string]any{"resources": map[string]any{"requests": whole, "limits": whole}},
	}}
	c.up(ctx, t)
	first := c.mustLook(ctx, t).replica.Status.UpdateRevision
	var seen extremes
	c.watchPods(ctx, t, seen.see)
	traffic := c.send(ctx, t)
	c.image(ctx, t, "v2")
	c.until(ctx, t, "word of the missing room", func(l *look) []string {
		h := l.replica.Status.RolloutHold
		if h == nil || !strings.Contains(h.Reason, "nvidia.com/gpu") || !strings.Contains(h.Reason, "RecreatePod") {
			return []string{fmt.Sprintf("hold %+v", h)}
		}
		return nil
	})
	t.Logf("the hold: %+v", *c.mustLook(ctx, t).replica.Status.RolloutHold)
	if served, _ := seen.get(); served < 3 {
		t.Errorf("%d pods served while there was no room, want all 3", served)
	}
	c.more = maps.Clone(c.more)
	c.more["lifecycle"] = strategy("RecreatePod", "maxUnavailable", 1)
	c.image(ctx, t, "v2")
	c.settle(ctx, t, "v2")
	after := c.mustLook(ctx, t)
	servedBy(t, traffic.endsClean(t), hash(first), hash(after.replica.Status.UpdateRevision))
	if served, _ := seen.get(); served < 2 {
		t.Errorf("%d pods served at one time, want at least 2", served)
	}
}

// recreate: with one out of three, two serve all the time.
func recreate(ctx context.Context, t *testing.T, l *lab) {
	c := &chat{lab: l, ns: "recreate", n: 3, more: map[string]any{"lifecycle": strategy("RecreatePod", "maxUnavailable", 1)}}
	c.up(ctx, t)
	before := c.mustLook(ctx, t)
	var seen extremes
	c.watchPods(ctx, t, seen.see)
	traffic := c.send(ctx, t)
	c.image(ctx, t, "v2")
	c.settle(ctx, t, "v2")
	after := c.mustLook(ctx, t)
	servedBy(t, traffic.endsClean(t), hash(before.replica.Status.UpdateRevision), hash(after.replica.Status.UpdateRevision))
	if served, pods := seen.get(); served != 2 || pods > 3 {
		t.Errorf("at one time %d pods served, at another there were %d; want 2 and at most 3", served, pods)
	}
	for _, row := range after.rows {
		was, is := before.pod(row.Index), after.pod(row.Index)
		if row.Incarnation != 2 || is.Labels[labelLife] != "2" || was.UID == is.UID || was.Name != is.Name {
			t.Errorf("Instance %d: incarnation %d in status and %s on pod %s, %s before", row.Index, row.Incarnation, is.Labels[labelLife], is.Name, was.Name)
		}
	}
}

// restartOnRestart: by policy a container's restart is the end of the whole Instance.
func restartOnRestart(ctx context.Context, t *testing.T, l *lab) {
	lifecycle := strategy("RecreatePod", "maxUnavailable", 1)
	lifecycle["restartPolicy"] = "RecreateInstanceOnPodRestart"
	c := &chat{lab: l, ns: "restart", n: 2, more: map[string]any{"lifecycle": lifecycle}}
	c.up(ctx, t)
	before := c.mustLook(ctx, t)
	traffic := c.send(ctx, t)
	victim := before.pod(1)
	c.ask(ctx, t, victim, "crash-times1")
	c.until(ctx, t, "another incarnation", func(l *look) []string {
		if l.row(1).Incarnation != 2 {
			return []string{fmt.Sprintf("%+v", l.row(1))}
		}
		return nil
	})
	c.settle(ctx, t, "v1")
	after := c.mustLook(ctx, t)
	traffic.end(t)
	for _, f := range traffic.failures {
		if pod, _, _ := strings.Cut(f.Detail, ":"); pod != victim.Name {
			t.Errorf("a request failed that was not for %s: %+v", victim.Name, f)
		}
	}
	if is := after.pod(1); is.UID == victim.UID || is.Labels[labelLife] != "2" || is.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod after the restart: UID %s (%s before), labels %v, %d restarts", is.UID, victim.UID, is.Labels, is.Status.ContainerStatuses[0].RestartCount)
	}
	if was, is := before.pod(0), after.pod(0); was.UID != is.UID || after.row(0).Incarnation != 1 {
		t.Errorf("the other Instance changed: %+v", after.row(0))
	}
	about := regexp.MustCompile(`\b1\b`)
	for _, reason := range []string{"RestartTriggered", "RestartCompleted"} {
		if got := c.events(ctx, t, reason); len(got) != 1 || !about.MatchString(got[0]) {
			t.Errorf("%s events %q, want one about Instance 1", reason, got)
		}
	}
}
