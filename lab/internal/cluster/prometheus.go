package cluster

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"

	"ome.io/ome/lab/internal/install"
	"ome.io/ome/lab/internal/process"
	"ome.io/ome/lab/internal/prometheus"
)

// PrometheusName is the component that scrapes the pods.
const PrometheusName = "prometheus"

// scrape starts a Prometheus that knows the pods, and names it to the manager in the operator's settings.
func (s *supervisor) scrape(ctx context.Context) error {
	if err := prometheus.Prepare(s.l.prometheus()); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(s.adminKubeconfig().REST())
	if err != nil {
		return fmt.Errorf("make the client of Prometheus' targets: %w", err)
	}
	if err := prometheus.Watch(s.nodesCtx, client, s.l.prometheus(), s.log.With("component", PrometheusName)); err != nil {
		return err
	}
	u := s.add(&unit{
		name: PrometheusName, portNames: []string{"http"},
		spec: func(p map[string]int) (process.Spec, error) {
			return process.Spec{Name: PrometheusName, Path: s.o.Prometheus, Args: prometheus.Args(s.l.prometheus(), p["http"]),
				Dir: s.l.Dir, LogFile: s.l.Log(PrometheusName)}, nil
		},
		health: func(p map[string]int) string { return localURL("http", p["http"]) + "/-/ready" },
	})
	if err := s.boot(ctx, u); err != nil {
		return err
	}
	setup, err := install.NewClient(s.adminKubeconfig().REST())
	if err != nil {
		return err
	}
	return setup.ApplyAs(ctx, PrometheusName, install.PrometheusSettings(localURL("http", u.port("http"))))
}
