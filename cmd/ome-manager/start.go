package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/controller"
	omewebhook "ome.io/ome/internal/webhook"
)

// start runs the manager until ctx ends.
func start(ctx context.Context, o *options, stderr io.Writer) error {
	log := newLogger(o, stderr)
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	cfg, err := restConfig(o)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1beta1.AddToScheme(scheme))

	// The server is ours from the start, so that asking whether it runs does not start it.
	hooks := webhook.NewServer(webhook.Options{Host: o.webhookHost, Port: o.webhookPort, CertDir: o.webhookCertDir})
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        log,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.probeAddress,
		WebhookServer:                 hooks,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              o.leaderID,
		LeaderElectionNamespace:       o.leaderNamespace,
		LeaderElectionReleaseOnCancel: true, // the process ends right after
		LeaseDuration:                 &o.lease,
		RenewDeadline:                 &o.renewDeadline,
		RetryPeriod:                   &o.renewAt,
	})
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}

	policies, err := controller.PoliciesServed(ctx, mgr.GetRESTMapper(), log)
	if err != nil {
		return nil // told to stop
	}
	settings := controller.Options{PoliciesServed: policies, Namespace: o.namespace, Workers: o.workers, SkipDrain: o.skipDrain, SkipPairing: o.skipPairing}
	if o.crash != nil {
		settings.Wrap = o.crash.Wrap
	}
	c, err := controller.Setup(mgr, settings)
	if err != nil {
		return err
	}
	if err := addWebhooks(ctx, mgr, o, policies); err != nil {
		return err
	}
	if err := addProbes(mgr, o, hooks, c); err != nil {
		return err
	}
	if o.skipDrain {
		log.Error(nil, "--lab-skip-drain: old pods are deleted in rotation and requests WILL be lost; this is for tests of the lab alone")
	}
	if o.skipPairing {
		log.Error(nil, "--lab-skip-pairing: a pairing change holds no drain and engines WILL meet decoders that do not understand them; this is for tests of the lab alone")
	}
	log.Info("starting", "version", buildVersion(), "namespace", o.namespace, "workers", o.workers)
	return mgr.Start(ctx)
}

func addWebhooks(ctx context.Context, mgr ctrl.Manager, o *options, policies bool) error {
	if o.webhookPort == 0 {
		return nil
	}
	stored, err := controller.StoredSettings(ctx, mgr.GetAPIReader(), o.namespace, mgr.GetLogger())
	if err != nil {
		return nil // told to stop
	}
	options := omewebhook.Options{ManagerUser: o.managerUser, KEDAServed: controller.KEDAServed(mgr.GetRESTMapper()),
		PoliciesServed: policies, MaxPlanBytes: stored.Rollout.MaxPinnedPlanBytes}
	if options.ManagerUser == "" {
		options.ManagerUser = omewebhook.ManagerUser(o.namespace)
	}
	if o.webhookRotate {
		options.Certs = &omewebhook.CertOptions{Namespace: o.namespace, Dir: o.webhookCertDir, ExtraDNSNames: o.webhookNames}
	}
	if err := omewebhook.SetupWithManager(mgr, options); err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	return nil
}

// addProbes: alive while the process answers; ready once admission is answered
// and, on the leader, the caches are filled.
func addProbes(mgr ctrl.Manager, o *options, hooks webhook.Server, c *controller.Controller) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if o.webhookPort != 0 {
		if err := mgr.AddReadyzCheck("webhooks", hooks.StartedChecker()); err != nil {
			return err
		}
	}
	return mgr.AddReadyzCheck("caches", func(*http.Request) error { return c.Ready() })
}

func restConfig(o *options) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no way to reach a cluster: %w", err)
	}
	cfg.QPS, cfg.Burst = o.qps, o.burst
	cfg.UserAgent = "ome-manager/" + buildVersion()
	return cfg, nil
}

func newLogger(o *options, w io.Writer) logr.Logger {
	options := &slog.HandlerOptions{Level: o.level}
	if o.logFormat == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(w, options))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(w, options))
}
