package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"ome.io/ome/lab/internal/install"
	"ome.io/ome/lab/internal/pki"
)

// simulate starts the nodes and returns when all are ready. They run until the supervisor ends; their failure ends it.
func (s *supervisor) simulate(ctx context.Context) error {
	pair, err := pki.LoadPair(s.l.pki(), "kubelet")
	if err != nil {
		return err
	}
	serving, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return fmt.Errorf("load the kubelets' certificate: %w", err)
	}
	if err := os.MkdirAll(s.l.nodes(), 0o755); err != nil {
		return fmt.Errorf("make the nodes' directory: %w", err)
	}
	kubelets, err := s.ca.Client(install.KubeletsUser, "system:nodes")
	if err != nil {
		return err
	}
	setup, err := install.NewClient(s.adminKubeconfig().REST())
	if err != nil {
		return err
	}
	if err := setup.Apply(ctx, install.KubeletsRole()); err != nil {
		return err
	}
	cfg := NodeConfig{
		REST:      pki.Kubeconfig{Server: s.server, CA: s.ca.Cert, User: install.KubeletsUser, Pair: kubelets}.REST(),
		Serving:   serving,
		ClientCAs: s.ca.Pool(),
		Nodes:     s.o.Nodes,
		Dir:       s.l.nodes(),
		Metrics:   s.metrics,
		Log:       s.log.With("component", "nodes"),
	}
	failed := make(chan error, 1)
	s.nodesDone = make(chan struct{})
	go func() {
		defer close(s.nodesDone)
		err := s.sim(s.nodesCtx, cfg)
		if s.nodesCtx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("the simulator returned")
		}
		err = fmt.Errorf("simulated nodes: %w", err)
		failed <- err
		s.fail(err)
	}()
	client, err := kubernetes.NewForConfig(s.adminKubeconfig().REST())
	if err != nil {
		return fmt.Errorf("make the node client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	for {
		ready, total, err := readyNodes(ctx, client)
		if err == nil && ready >= s.o.Nodes {
			return nil
		}
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("wait for the nodes: %w", err)
			}
			return fmt.Errorf("%d of %d nodes are ready (%d registered) after %s; see %s", ready, s.o.Nodes, total, bootTimeout, s.l.Log("supervisor"))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func readyNodes(ctx context.Context, client kubernetes.Interface) (ready, total int, err error) {
	// From the watch cache: this is asked often.
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return 0, 0, fmt.Errorf("list nodes: %w", err)
	}
	for _, n := range list.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready, len(list.Items), nil
}

// podsCanBeMade waits for the default ServiceAccount, without which every pod is refused.
func (s *supervisor) podsCanBeMade(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.adminKubeconfig().REST())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	for {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) && ctx.Err() == nil {
			return fmt.Errorf("read ServiceAccount default/default: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kube-controller-manager made no ServiceAccount default/default within %s; see %s", bootTimeout, s.l.Log("kube-controller-manager"))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
