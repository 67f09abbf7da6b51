package node

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	// leaseSeconds is what a lease says of itself. The node monitor goes by its own grace period.
	leaseSeconds = 40
	// statusEvery is how often node conditions are refreshed when nothing changed.
	statusEvery = 5 * time.Minute
)

// nodes registers the nodes and keeps them alive.
type nodes struct {
	client kubernetes.Interface
	writer *writer
	cfg    Config
	port   int32

	mu    sync.Mutex
	names []string
	down  map[string]bool
}

// Name is the name of the ith node.
func Name(i int) string { return fmt.Sprintf("lab-%02d", i) }

// zones are dealt out in turn.
var zones = []string{"lab-a", "lab-b", "lab-c"}

func newNodes(client kubernetes.Interface, w *writer, cfg Config, port int32) *nodes {
	n := &nodes{client: client, writer: w, cfg: cfg, port: port, down: map[string]bool{}}
	for i := range cfg.Nodes {
		n.names = append(n.names, Name(i))
	}
	return n
}

func (n *nodes) object(i int) *corev1.Node {
	name := n.names[i]
	capacity := n.cfg.capacity()
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:           name,
				corev1.LabelTopologyZone:       zones[i%len(zones)],
				corev1.LabelTopologyRegion:     "lab",
				corev1.LabelInstanceTypeStable: "lab.gpu",
				corev1.LabelOSStable:           "linux",
				corev1.LabelArchStable:         "amd64",
			},
		},
		Status: corev1.NodeStatus{
			Capacity:        capacity,
			Allocatable:     capacity,
			Conditions:      nodeConditions(time.Now()),
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: hostIP}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: n.port}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: name, SystemUUID: name, BootID: name,
				KernelVersion: "lab", OSImage: "OME lab", OperatingSystem: "linux", Architecture: "amd64",
				ContainerRuntimeVersion: "lab://1", KubeletVersion: "v1.37.2",
			},
		},
	}
}

func nodeConditions(now time.Time) []corev1.NodeCondition {
	at := stamp(now)
	make := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: t, Status: s, Reason: reason, LastHeartbeatTime: at, LastTransitionTime: at}
	}
	return []corev1.NodeCondition{
		make(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		make(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		make(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
		make(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
	}
}

// register creates the nodes, or takes over the ones an earlier run left, and gives each a lease.
func (n *nodes) register(ctx context.Context) error {
	errs := make(chan error, len(n.names))
	for i := range n.names {
		n.writer.do(func() { errs <- n.registerOne(ctx, i) })
	}
	for range n.names {
		select {
		case err := <-errs:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (n *nodes) registerOne(ctx context.Context, i int) error {
	node := n.object(i)
	created, err := n.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"labels": node.Labels}})
		created, err = n.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if err == nil {
			err = n.writeStatus(ctx, node.Name, node.Status)
		}
	}
	if err != nil {
		return fmt.Errorf("register node %q: %w", node.Name, err)
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: corev1.NamespaceNodeLease, Name: node.Name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: created.Name, UID: created.UID}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To(node.Name),
			LeaseDurationSeconds: ptr.To[int32](leaseSeconds),
			RenewTime:            ptr.To(metav1.NowMicro()),
		},
	}
	for {
		_, err = n.client.CoordinationV1().Leases(lease.Namespace).Create(ctx, lease, metav1.CreateOptions{})
		if !apierrors.IsNotFound(err) {
			break
		}
		// The API server makes the namespace for leases shortly after it starts.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create lease of node %q: %w", node.Name, err)
	}
	return nil
}

func (n *nodes) writeStatus(ctx context.Context, name string, status any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = n.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// heartbeat renews the leases of all live nodes until ctx ends, spread evenly over each interval.
func (n *nodes) heartbeat(ctx context.Context) {
	if len(n.names) == 0 {
		return
	}
	ticker := time.NewTicker(max(n.cfg.LeaseEvery/time.Duration(len(n.names)), time.Millisecond))
	defer ticker.Stop()
	refreshed := time.Now()
	for i := 0; ; i = (i + 1) % len(n.names) {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		name := n.names[i]
		if n.isDown(name) {
			continue
		}
		// Not through the pool: a burst of pod writes must not cost a node its lease.
		go n.renew(ctx, name)
		if i == 0 && time.Since(refreshed) > statusEvery {
			refreshed = time.Now()
			for _, name := range n.names {
				if !n.isDown(name) {
					n.writer.do(func() { n.refresh(ctx, name) })
				}
			}
		}
	}
}

func (n *nodes) isDown(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.down[name]
}

func (n *nodes) renew(ctx context.Context, name string) {
	patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	ctx, cancel := context.WithTimeout(ctx, max(n.cfg.LeaseEvery*2, 2*time.Second))
	defer cancel()
	_, err := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && ctx.Err() == nil {
		n.cfg.Log.Warn("renewing a node lease failed", "node", name, "err", err)
	}
}

// refresh writes a node's conditions as a healthy kubelet does.
func (n *nodes) refresh(ctx context.Context, name string) {
	node, err := n.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		n.cfg.Log.Warn("reading a node failed", "node", name, "err", err)
		return
	}
	conditions := nodeConditions(time.Now())
	for i := range conditions {
		for _, old := range node.Status.Conditions {
			if old.Type == conditions[i].Type && old.Status == conditions[i].Status {
				conditions[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	if err := n.writeStatus(ctx, name, map[string]any{"conditions": conditions}); err != nil && ctx.Err() == nil {
		n.cfg.Log.Warn("writing a node's conditions failed", "node", name, "err", err)
	}
}

// setDown marks a node as dead or alive. A node that comes back says so at once.
func (n *nodes) setDown(ctx context.Context, name string, down bool) error {
	n.mu.Lock()
	known := false
	for _, have := range n.names {
		known = known || have == name
	}
	if known {
		n.down[name] = down
	}
	n.mu.Unlock()
	if !known {
		return fmt.Errorf("node %q is not one of the lab's %d nodes, %s to %s", name, len(n.names), Name(0), Name(len(n.names)-1))
	}
	if !down {
		n.renew(ctx, name)
		n.refresh(ctx, name)
	}
	return nil
}

// list returns the nodes and whether each is alive.
func (n *nodes) list() []NodeState {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []NodeState
	for _, name := range n.names {
		out = append(out, NodeState{Name: name, Alive: !n.down[name]})
	}
	return out
}
