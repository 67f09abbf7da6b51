package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"ome.io/ome/lab/internal/install"
	"ome.io/ome/lab/internal/metricsapi"
)

// serveMetrics registers metrics.k8s.io and returns when the API server passes requests on to it.
// It needs the nodes: a metrics API that has no source is not available.
func (s *supervisor) serveMetrics(ctx context.Context) error {
	pair, err := s.ca.Server("metrics-server", metricsapi.Host, "localhost", "127.0.0.1")
	if err != nil {
		return err
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return fmt.Errorf("load the metrics API's certificate: %w", err)
	}
	port, stop, err := s.metrics.Listen(cert, s.ca.Pool())
	if err != nil {
		return err
	}
	context.AfterFunc(s.nodesCtx, stop)
	setup, err := install.NewClient(s.adminKubeconfig().REST())
	if err != nil {
		return err
	}
	if err := setup.Apply(ctx, install.MetricsAPI(port, s.ca.Cert)); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(s.adminKubeconfig().REST())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	for {
		err := client.Discovery().RESTClient().Get().AbsPath("/apis/" + metricsapi.Group + "/" + metricsapi.Version + "/nodes").Do(ctx).Error()
		if err == nil {
			return nil
		}
		if refused := new(apierrors.StatusError); errors.As(err, &refused) && refused.ErrStatus.Code == 401 {
			return fmt.Errorf("metrics.k8s.io: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("metrics.k8s.io does not answer through the API server within %s: %w; see %s", bootTimeout, err, s.l.Log("kube-apiserver"))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
