package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/lab/internal/metricsapi"
)

const (
	// usageWindow is what usage is averaged over. A real metrics server takes 15 s or more.
	usageWindow = 2 * time.Second
	// usedBytes is the memory of every container: nothing here depends on it.
	usedBytes = 64 << 20
)

// meter measures one run of a container.
type meter struct {
	id       string // of the run
	at       time.Time
	requests int64
	milli    int64
	whole    bool // a whole window has passed
}

// sample ends a window of every container and begins the next.
func (k *kubelet) sample() {
	now := k.env.now()
	for _, e := range k.pods {
		if len(e.meters) != len(e.containers) {
			e.meters = make([]meter, len(e.containers))
		}
		for i, c := range e.containers {
			m := &e.meters[i]
			if k.down[e.node] || !c.isRunning() {
				*m = meter{}
				continue
			}
			requests := m.requests
			if s, ok := c.proc.(interface{ Requests() int64 }); ok {
				requests = s.Requests()
			}
			if m.id != c.id || requests < m.requests {
				*m = meter{id: c.id, at: now, requests: requests}
				continue
			}
			m.milli, m.whole = c.usedMilli(e.spec(c.name), requests-m.requests, now.Sub(m.at)), true
			m.at, m.requests = now, requests
		}
	}
}

// usedMilli is what a container used while it answered so many requests, at most its limit.
func (c *container) usedMilli(spec *corev1.Container, requests int64, over time.Duration) int64 {
	milli := c.behaviour.CPU
	if over > 0 {
		milli += int64(float64(requests) * float64(c.behaviour.Cost) * 1000 / float64(over))
	}
	if spec != nil {
		if limit, ok := spec.Resources.Limits[corev1.ResourceCPU]; ok {
			milli = min(milli, limit.MilliValue())
		}
	}
	return milli
}

// used is what the pods of live nodes used over the last window, and the nodes.
func (k *kubelet) used(nodes []NodeState) ([]metricsapi.Pod, []metricsapi.Node) {
	now := k.env.now()
	sums := map[string]*metricsapi.Usage{}
	for _, n := range nodes {
		if n.Alive {
			sums[n.Name] = &metricsapi.Usage{At: now, Window: usageWindow}
		}
	}
	var out []metricsapi.Pod
	for _, e := range k.pods {
		sum := sums[e.node]
		if sum == nil || len(e.meters) == 0 || len(e.meters) != len(e.containers) {
			continue
		}
		pod := metricsapi.Pod{Namespace: e.key.Namespace, Name: e.key.Name, Node: e.node, Labels: e.pod.Labels}
		pod.Usage = metricsapi.Usage{Window: usageWindow}
		whole := true
		for i, c := range e.containers {
			m := &e.meters[i]
			whole = whole && m.whole
			pod.At = m.at
			pod.Milli += m.milli
			pod.Bytes += usedBytes
			pod.Containers = append(pod.Containers, metricsapi.Container{Name: c.name, Milli: m.milli, Bytes: usedBytes})
		}
		if !whole {
			continue
		}
		sum.Milli += pod.Milli
		sum.Bytes += pod.Bytes
		out = append(out, pod)
	}
	var list []metricsapi.Node
	for _, n := range nodes {
		if sum := sums[n.Name]; sum != nil {
			list = append(list, metricsapi.Node{Name: n.Name, Usage: *sum})
		}
	}
	return out, list
}

// usage answers the metrics API.
type usage struct {
	nodes   *nodes
	kubelet *kubelet
}

func (u usage) Usage(ctx context.Context) (pods []metricsapi.Pod, list []metricsapi.Node, err error) {
	done := make(chan struct{})
	u.kubelet.post(func() {
		defer close(done)
		pods, list = u.kubelet.used(u.nodes.list())
	})
	select {
	case <-done:
		return pods, list, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-u.kubelet.ctx.Done():
		return nil, nil, u.kubelet.ctx.Err()
	}
}

// measure samples until ctx ends.
func (k *kubelet) measure(ctx context.Context) {
	ticker := time.NewTicker(usageWindow)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.post(k.sample)
		}
	}
}
