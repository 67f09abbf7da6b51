package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ome.io/ome/internal/controller"
)

// version is set by the linker for releases.
var version string

func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	out := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(out, s.Value[:min(12, len(s.Value))]) {
			out += " " + s.Value
		}
	}
	return out
}

var errHelp = errors.New("help was asked for")

type options struct {
	kubeconfig string
	namespace  string
	workers    int
	qps        float32
	burst      int

	metricsAddress, probeAddress string

	leaderElect                   bool
	leaderID, leaderNamespace     string
	lease, renewDeadline, renewAt time.Duration

	webhookHost    string
	webhookPort    int
	webhookCertDir string
	webhookRotate  bool
	webhookNames   []string
	managerUser    string

	logLevel, logFormat string
	level               slog.Level
	version             bool

	// The lab's negative controls.
	skipDrain, skipPairing bool

	crashText string
	crash     *controller.Crash
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	f := pflag.NewFlagSet("ome-manager", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprintf(stderr, "ome-manager rolls out changes to inference services.\n\nUsage:\n  ome-manager [flags]\n\nFlags:\n%s", f.FlagUsages())
	}
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty uses $KUBECONFIG, then the pod's service account")
	f.StringVar(&o.namespace, "ome-namespace", namespaceFromEnv(), "namespace of the manager, its settings ConfigMap and its lease (default from $POD_NAMESPACE)")
	f.IntVar(&o.workers, "workers", 8, "services worked on at one time")
	f.Float32Var(&o.qps, "kube-api-qps", -1, "requests per second to the API server; -1 leaves it to the API server's own fairness")
	f.IntVar(&o.burst, "kube-api-burst", 0, "requests above kube-api-qps for a moment; needed with kube-api-qps")

	f.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0 turns it off")
	f.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 turns it off")

	f.BoolVar(&o.leaderElect, "leader-elect", true, "run the controllers in one replica at a time; every replica serves webhooks")
	f.StringVar(&o.leaderID, "leader-elect-id", "ome-manager", "name of the lease")
	f.StringVar(&o.leaderNamespace, "leader-elect-namespace", "", "namespace of the lease (default: ome-namespace)")
	f.DurationVar(&o.lease, "leader-elect-lease-duration", 15*time.Second, "how long others wait for a leader that went silent")
	f.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long the leader tries to renew before it gives up")
	f.DurationVar(&o.renewAt, "leader-elect-retry-period", 2*time.Second, "time between two tries")

	f.StringVar(&o.webhookHost, "webhook-bind-host", "", "address the webhooks listen on; empty means all")
	f.IntVar(&o.webhookPort, "webhook-port", 9443, "port of the webhooks; 0 turns them off")
	f.StringVar(&o.webhookCertDir, "webhook-cert-dir", filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs"), "directory with tls.crt and tls.key")
	f.BoolVar(&o.webhookRotate, "webhook-cert-rotation", true, "make and renew the certificate; false uses what webhook-cert-dir holds")
	f.StringSliceVar(&o.webhookNames, "webhook-cert-dns-name", nil, "further DNS names of the certificate")
	f.StringVar(&o.managerUser, "manager-user", "", "user name the manager's requests come under (default: its service account in ome-namespace)")

	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "json", "json or text")
	f.BoolVar(&o.version, "version", false, "print the version and exit")

	// For the lab's experiments: what happens without the drain, without the pairing hold, and after a crash anywhere.
	// They are flags and no settings, so that nobody who may edit the settings can turn the promises off.
	f.BoolVar(&o.skipDrain, "lab-skip-drain", false, "")
	f.BoolVar(&o.skipPairing, "lab-skip-pairing", false, "")
	f.StringVar(&o.crashText, "lab-crash", "", "")
	for _, hidden := range []string{"lab-skip-drain", "lab-skip-pairing", "lab-crash"} {
		if err := f.MarkHidden(hidden); err != nil {
			return nil, err
		}
	}

	if err := f.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil, errHelp
		}
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: ome-manager takes flags only", f.Arg(0))
	}
	return o, o.complete()
}

func namespaceFromEnv() string {
	if ns := os.Getenv("POD_NAMESPACE"); ns != "" {
		return ns
	}
	return "ome"
}

func (o *options) complete() error {
	if o.leaderNamespace == "" {
		o.leaderNamespace = o.namespace
	}
	switch {
	case o.namespace == "":
		return errors.New("--ome-namespace is empty; name the namespace of the manager")
	case o.workers < 1:
		return fmt.Errorf("--workers=%d: must be at least 1", o.workers)
	case o.qps > 0 && o.burst < 1:
		return fmt.Errorf("--kube-api-qps=%v needs --kube-api-burst of at least 1", o.qps)
	case o.qps == 0:
		return errors.New("--kube-api-qps=0 would send nothing; use -1 for no limit")
	case o.leaderElect && (o.lease <= o.renewDeadline || float64(o.renewDeadline) <= 1.2*float64(o.renewAt)):
		return fmt.Errorf("--leader-elect-lease-duration=%v must be above --leader-elect-renew-deadline=%v, and that above 1.2 times --leader-elect-retry-period=%v",
			o.lease, o.renewDeadline, o.renewAt)
	case o.logFormat != "json" && o.logFormat != "text":
		return fmt.Errorf("--log-format=%q: must be json or text", o.logFormat)
	}
	if err := o.level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return fmt.Errorf("--log-level=%q: must be debug, info, warn or error", o.logLevel)
	}
	if o.crashText != "" {
		crash, err := controller.ParseCrash(o.crashText)
		if err != nil {
			return fmt.Errorf("--lab-crash: %w", err)
		}
		o.crash = crash
	}
	return nil
}
