package controller

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ome.io/ome/internal/core"
	"ome.io/ome/internal/metrics"
)

const (
	// nodeReads bounds the reads of one pass.
	nodeReads = 16
	// nodeFresh is how long what was read is good for. Whether a node is dead is a
	// matter of minutes.
	nodeFresh = 5 * time.Second
	// nodeAgain is when overdue pods are looked at again.
	nodeAgain = 15 * time.Second
	// nodeKept is how long it is remembered when a node was read, to take turns.
	nodeKept = 5 * time.Minute
	// nodeTimeout bounds one read.
	nodeTimeout = 5 * time.Second
)

// nodes reads the nodes of pods that are overdue. That is rare, and a cache of all
// nodes of a cluster would cost more than all else that the manager holds.
type nodes struct {
	mu    sync.Mutex
	known map[string]knownNode
}

// knownNode is one answer; node is nil when there is none by the name.
type knownNode struct {
	node *corev1.Node
	at   time.Time
	// failed is set when the last read had no answer.
	failed bool
}

// look puts the nodes of overdue pods into the world, if force deletion is
// configured, and returns when to look again: no event tells of a node.
func (n *nodes) look(ctx context.Context, live client.Reader, w *core.World) time.Time {
	names := overdueNodes(w)
	if len(names) == 0 {
		return time.Time{}
	}
	reading := n.due(names, w.Now)
	missed := len(reading) > nodeReads
	if missed {
		reading = reading[:nodeReads]
	}
	var wg sync.WaitGroup
	for _, name := range reading {
		wg.Go(func() { n.read(ctx, live, name, w.Now) })
	}
	wg.Wait()

	w.Nodes = map[string]*corev1.Node{}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range names {
		if k, ok := n.known[name]; ok && !k.failed && w.Now.Sub(k.at) < nodeFresh {
			w.Nodes[name] = k.node
		}
		missed = missed || n.known[name].failed
	}
	if missed {
		return w.Now.Add(nodeFresh)
	}
	return w.Now.Add(nodeAgain)
}

// due returns the nodes that must be read, the one that was read longest ago first,
// and forgets those that nobody asked for in a long time.
func (n *nodes) due(names []string, now time.Time) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, k := range n.known {
		if now.Sub(k.at) >= nodeKept {
			delete(n.known, name)
		}
	}
	out := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		k, ok := n.known[name]
		return ok && now.Sub(k.at) < nodeFresh
	})
	slices.SortStableFunc(out, func(a, b string) int { return n.known[a].at.Compare(n.known[b].at) })
	return out
}

func (n *nodes) read(ctx context.Context, live client.Reader, name string, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	k := knownNode{node: &corev1.Node{}, at: now}
	switch err := live.Get(ctx, types.NamespacedName{Name: name}, k.node); {
	case err == nil:
		metrics.NodeRead(metrics.NodeFound)
		k.node.ManagedFields, k.node.Status.Images = nil, nil
	case apierrors.IsNotFound(err):
		metrics.NodeRead(metrics.NodeGone)
		k.node = nil
	default:
		metrics.NodeRead(metrics.NodeError)
		k.node, k.failed = nil, true
		log.FromContext(ctx).Info("the node of an overdue pod can't be read, so its pods are not force deleted", "node", name, "error", err.Error())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[string]knownNode{}
	}
	n.known[name] = k
}

// overdueNodes lists the nodes of our pods that should have been gone for long.
func overdueNodes(w *core.World) []string {
	force := w.Settings.Lifecycle.ForceDelete
	if !force.Enabled() {
		return nil
	}
	var names []string
	for i := range w.Components {
		c := &w.Components[i]
		if c.Replica == nil {
			continue
		}
		for _, pod := range c.Pods {
			if pod.DeletionTimestamp == nil || pod.Spec.NodeName == "" || !metav1.IsControlledBy(pod, c.Replica) {
				continue
			}
			if !pod.DeletionTimestamp.Add(force.OverdueSlack).After(w.Now) {
				names = append(names, pod.Spec.NodeName)
			}
		}
	}
	slices.SortFunc(names, cmp.Compare[string])
	return slices.Compact(names)
}
