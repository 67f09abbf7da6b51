package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// viewLag is the longest that the load's clients take to learn of an endpoint's end, and a second for a busy machine.
const viewLag = 3 * time.Second

// deadNode: requests fail at the Instances of a node that dies, until their endpoints leave, and nowhere else. The
// Instances come up on other nodes by themselves.
func deadNode(ctx context.Context, t *testing.T, l *lab) {
	soon := func(taint string) map[string]any {
		return map[string]any{"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(2)}
	}
	c := &chat{lab: l, ns: "dead-node", n: 3, more: map[string]any{
		"lifecycle":                     strategy("SurgeThenDrain", "maxSurge", 1),
		"terminationGracePeriodSeconds": int64(5),
		"nodeSelector":                  map[string]any{mortal: ""},
		"tolerations": []any{soon("node.kubernetes.io/unreachable"), soon("node.kubernetes.io/not-ready"),
			map[string]any{"key": mortal, "operator": "Exists", "effect": "NoSchedule"}},
		"topologySpreadConstraints": []any{map[string]any{
			"maxSkew": int64(1), "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
			"labelSelector": map[string]any{"matchLabels": map[string]any{labelService: chatName}},
		}},
	}}
	c.up(ctx, t)
	before := c.mustLook(ctx, t)
	node := before.pod(0).Spec.NodeName
	victims := map[string]bool{}
	for _, p := range before.pods {
		if p.Spec.NodeName == node {
			victims[p.Name] = true
		}
	}
	if len(victims) == len(before.pods) {
		t.Fatalf("all pods are on %s: nothing would show that only its Instances suffer", node)
	}
	traffic := c.send(ctx, t)
	// Endpoints trail the pods, and what never was there can't be seen to leave.
	until(ctx, t, "endpoints for every Instance", patience, func() []string {
		ready, err := c.readyEndpoints(ctx)
		if err != nil || len(ready) < len(before.pods) {
			return []string{fmt.Sprintf("%d endpoints, %v", len(ready), err)}
		}
		return nil
	})
	died := time.Now()
	if out, code := l.run(ctx, t, "ome-lab", "node", "stop", node); code != 0 {
		t.Fatalf("node stop ended with %d: %s", code, out)
	}
	until(ctx, t, "the endpoints of "+node+" to leave", patience, func() (out []string) {
		ready, err := c.readyEndpoints(ctx)
		if err != nil {
			return []string{err.Error()}
		}
		for _, p := range ready {
			if victims[p] {
				out = append(out, p)
			}
		}
		return out
	})
	left := time.Now()
	c.until(ctx, t, "all Instances on other nodes", func(l *look) (out []string) {
		up := 0
		for i := range l.pods {
			if p := &l.pods[i]; p.DeletionTimestamp == nil && podReady(p) && p.Spec.NodeName != node {
				up++
			}
		}
		if up != 3 {
			out = append(out, fmt.Sprintf("%d pods serve elsewhere", up))
		}
		return out
	})
	moved := time.Now()
	after := c.mustLook(ctx, t)

	// The next roll needs the names that the dead pods hold. Nobody on the node will ever confirm their end.
	c.image(ctx, t, "v2")
	c.settle(ctx, t, "v2")
	result := traffic.end(t)

	t.Logf("endpoints left after %.1fs, Instances were up elsewhere after %.1fs, %d of %d requests failed", left.Sub(died).Seconds(),
		moved.Sub(died).Seconds(), result.Failed, result.Sent)
	if result.Failed == 0 {
		t.Error("no request failed: the node did not die under load")
	}
	for _, f := range traffic.failures {
		if pod, _, _ := strings.Cut(f.Detail, ":"); !victims[pod] || f.Time.After(left.Add(viewLag)) {
			t.Errorf("a request failed that was for no Instance of %s, or %.1fs after their endpoints had left: %+v", node, f.Time.Sub(left).Seconds(), f)
		}
	}
	for _, row := range after.rows {
		if was, is := before.pod(row.Index), after.pod(row.Index); (was.UID != is.UID) != victims[was.Name] {
			t.Errorf("Instance %d, on the dead node: %v, has another pod: %v", row.Index, victims[was.Name], was.UID != is.UID)
		}
	}

	if forced := c.events(ctx, t, "PodForceDeleted"); len(forced) != len(victims) || !strings.Contains(strings.Join(forced, " "), node) {
		t.Errorf("PodForceDeleted events %q, want one for each of %v", forced, victims)
	}
	after = c.mustLook(ctx, t)
	for i := range after.pods {
		if p := &after.pods[i]; p.Spec.NodeName == node {
			t.Errorf("pod %s is on %s, which is dead", p.Name, node)
		}
	}

	if out, code := l.run(ctx, t, "ome-lab", "node", "start", node); code != 0 {
		t.Fatalf("node start ended with %d: %s", code, out)
	}
	until(ctx, t, node+" to be ready", patience, func() []string {
		n, err := l.kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return []string{err.Error()}
		}
		if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			return []string{fmt.Sprint(n.Status.Conditions)}
		}
		return nil
	})
	c.settle(ctx, t, "v2")
	for i, p := range c.mustLook(ctx, t).pods {
		if p.UID != after.pods[i].UID {
			t.Errorf("the return of %s cost pod %s", node, p.Name)
		}
	}
}

// readyEndpoints are the pods that the service's EndpointSlices offer.
func (c *chat) readyEndpoints(ctx context.Context) (out []string, err error) {
	list, err := c.kube.DiscoveryV1().EndpointSlices(c.ns).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + chatEngine})
	if err != nil {
		return nil, err
	}
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if e.TargetRef != nil && e.Conditions.Ready != nil && *e.Conditions.Ready {
				out = append(out, e.TargetRef.Name)
			}
		}
	}
	return out, nil
}
