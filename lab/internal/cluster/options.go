package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"ome.io/ome/lab/internal/binaries"
	"ome.io/ome/lab/internal/install"
	"ome.io/ome/lab/internal/metricsapi"
)

// Options of `up`. They go to the supervisor as JSON.
type Options struct {
	Dir   string `json:"dir"`
	Nodes int    `json:"nodes"`
	// Manager is the path of ome-manager; empty leaves it, and its webhooks, out.
	Manager      string   `json:"manager,omitempty"`
	ManagerFlags []string `json:"managerFlags,omitempty"`
	// Config holds the product's crd, rbac and webhook directories.
	Config string `json:"config"`
	// Components are added to the default installation, by the names of their folders in Config/components.
	Components []string `json:"components,omitempty"`
	// NodeGrace is how long a silent node counts as ready.
	NodeGrace time.Duration `json:"nodeGrace"`
	// ControllersOff are controllers of the controller manager that don't run.
	ControllersOff []string `json:"controllersOff,omitempty"`
	// Audit writes logs/audit.log, one line for each request.
	Audit bool `json:"audit,omitempty"`
	// Prometheus is the path of the program that scrapes the pods; empty leaves it out.
	Prometheus string `json:"prometheus,omitempty"`
	// Binaries of the control plane, by name.
	Binaries map[string]string `json:"binaries"`
	Version  string            `json:"version"`
}

// NodeConfig is what a node simulator gets.
type NodeConfig struct {
	// REST authenticates as the user that all simulated kubelets share.
	REST      *rest.Config
	Serving   tls.Certificate
	ClientCAs *x509.CertPool
	Nodes     int
	Dir       string
	// Metrics is told what the nodes' pods use.
	Metrics *metricsapi.Server
	Log     *slog.Logger
}

// Simulator runs the simulated nodes until ctx is done.
type Simulator func(ctx context.Context, cfg NodeConfig) error

// Complete checks what a person may have got wrong, before anything is built or started.
func (o *Options) Complete() error {
	if o.Nodes < 1 || o.Nodes > 5000 {
		return fmt.Errorf("--nodes=%d: want 1 to 5000", o.Nodes)
	}
	if o.NodeGrace < 3*time.Second {
		return fmt.Errorf("--node-grace=%s: want at least 3s, a heartbeat comes every 2s", o.NodeGrace)
	}
	if o.Config == "" {
		source, err := binaries.FindSource()
		if err != nil {
			return err
		}
		o.Config = filepath.Join(source, "config")
	}
	for _, sub := range []string{"crd", "rbac"} {
		if _, err := os.Stat(filepath.Join(o.Config, sub)); err != nil && o.Manager != "" {
			return fmt.Errorf("no manifests in %s: %w; run `make generate`, or point --config-dir at the product's config directory", o.Config, err)
		}
	}
	if len(o.Components) > 0 && o.Manager == "" {
		return fmt.Errorf("--components=%s: the manager answers for components; leave out --no-manager", strings.Join(o.Components, ","))
	}
	return install.CheckComponents(o.Config, o.Components)
}

// FindManager returns the path of ome-manager: what was asked for, else the one beside this executable, in the
// checkout's bin directory or on PATH.
func FindManager(asked string) (string, error) {
	if asked != "" {
		path, err := filepath.Abs(asked)
		if err != nil {
			return "", fmt.Errorf("--manager-bin=%s: %w", asked, err)
		}
		if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode().Perm()&0o111 == 0 {
			return "", fmt.Errorf("--manager-bin=%s is not a program: build it with `make build`", asked)
		}
		return path, nil
	}
	var tried []string
	if exe, err := os.Executable(); err == nil {
		tried = append(tried, filepath.Join(filepath.Dir(exe), "ome-manager"))
	}
	if source, err := binaries.FindSource(); err == nil {
		tried = append(tried, filepath.Join(source, "bin", "ome-manager"))
	}
	for _, path := range tried {
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode().Perm()&0o111 != 0 {
			return path, nil
		}
	}
	if path, err := exec.LookPath("ome-manager"); err == nil {
		return filepath.Abs(path)
	}
	return "", fmt.Errorf("ome-manager was not found (looked for %v and on PATH): build it with `make build`, point --manager-bin at it, or leave it out with --no-manager", tried)
}
