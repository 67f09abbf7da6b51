package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The programs of a control plane, by file name.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	// Prometheus is in no control plane; a lab has one when it is asked for.
	Prometheus = "prometheus"
)

// ControlPlane lists what `up` needs, in the order it is built.
var ControlPlane = []string{Etcd, APIServer, ControllerManager, Scheduler}

var packages = map[string]string{
	Etcd:              "go.etcd.io/etcd/server/v3",
	APIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
	ControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
	Scheduler:         "k8s.io/kubernetes/cmd/kube-scheduler",
	Kubectl:           "k8s.io/kubernetes/cmd/kubectl",
	Prometheus:        prometheusModule + "/cmd/prometheus",
}

const prometheusModule = "github.com/prometheus/prometheus"

// modules of their own, below the lab's, keep what only one program needs out of the lab's module.
var modules = map[string]string{Prometheus: "internal/prometheus/server"}

// Set maps a program to its path.
type Set struct {
	// Dir holds them all.
	Dir string
	// Version of Kubernetes, or "as found" for programs that were given and not built.
	Version string
	paths   map[string]string
}

// Path of one program.
func (s Set) Path(name string) string { return s.paths[name] }

// Finder looks programs up and builds the missing ones.
type Finder struct {
	// Out takes the progress of a build.
	Out io.Writer
	// TTY redraws one progress line in place.
	TTY bool
}

// Ensure returns the control plane's programs and builds what is missing.
func (f Finder) Ensure(ctx context.Context) (Set, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		if set, ok := given(dir, ControlPlane); ok {
			return set, nil
		}
		fmt.Fprintf(f.Out, "KUBEBUILDER_ASSETS=%s does not hold all of %s; using the lab's own build\n", dir, strings.Join(ControlPlane, ", "))
	}
	return f.cached(ctx, ControlPlane)
}

// EnsureKubectl returns the kubectl on PATH, else the lab's own build of it.
func (f Finder) EnsureKubectl(ctx context.Context) (string, error) {
	if path, err := exec.LookPath(Kubectl); err == nil {
		return path, nil
	}
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		if set, ok := given(dir, []string{Kubectl}); ok {
			return set.Path(Kubectl), nil
		}
	}
	set, err := f.cached(ctx, []string{Kubectl})
	if err != nil {
		return "", err
	}
	return set.Path(Kubectl), nil
}

// EnsurePrometheus returns the lab's own build of Prometheus.
func (f Finder) EnsurePrometheus(ctx context.Context) (string, error) {
	set, err := f.cached(ctx, []string{Prometheus})
	if err != nil {
		return "", err
	}
	return set.Path(Prometheus), nil
}

func given(dir string, names []string) (Set, bool) {
	set := Set{Dir: dir, Version: "as found", paths: map[string]string{}}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if !executable(path) {
			return Set{}, false
		}
		set.paths[name] = path
	}
	return set, true
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// CacheDir is where built programs are kept for one version of Kubernetes.
func CacheDir(version string) (string, error) {
	base := os.Getenv("XDG_CACHE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the cache directory: %w; set XDG_CACHE_HOME", err)
		}
		base = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(base) {
		return "", fmt.Errorf("XDG_CACHE_HOME=%s is not an absolute path", base)
	}
	return filepath.Join(base, "ome-lab", version), nil
}

func (f Finder) cached(ctx context.Context, names []string) (Set, error) {
	source, err := FindSource()
	if err != nil {
		return Set{}, err
	}
	module := filepath.Join(source, "lab")
	version, err := pinned(module, "k8s.io/kubernetes")
	if err != nil {
		return Set{}, err
	}
	own := map[string]string{}
	for name, in := range map[string]string{Etcd: packages[Etcd], Prometheus: prometheusModule} {
		if own[name], err = pinned(filepath.Join(module, modules[name]), in); err != nil {
			return Set{}, err
		}
	}
	dir, err := CacheDir(version)
	if err != nil {
		return Set{}, err
	}
	b := builder{Finder: f, module: module, dir: dir, version: version, own: own}
	set := Set{Dir: dir, Version: version, paths: map[string]string{}}
	for _, name := range names {
		set.paths[name] = filepath.Join(dir, name)
	}
	if len(b.missing(names)) == 0 {
		return set, nil
	}
	if err := b.build(ctx, names); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return Set{}, errors.New("build interrupted; what was compiled is kept, so the next one goes on from there")
		}
		return Set{}, err
	}
	return set, nil
}
