package testenv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Version is the Kubernetes version whose binaries are used.
const Version = "v1.37.2"

const patience = 2 * time.Minute

// Assets finds the directory that holds etcd and kube-apiserver:
// $KUBEBUILDER_ASSETS, else the lab's cache.
func Assets() (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if cache == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", err
			}
			cache = filepath.Join(home, ".cache")
		}
		dir = filepath.Join(cache, "ome-lab", Version)
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("no %s in %s: run make lab-binaries, or set KUBEBUILDER_ASSETS", name, dir)
		}
	}
	return dir, nil
}

// Root is the root of the product's tree.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Environment is an envtest environment on the lab's binaries with the CRDs of
// config/crd installed at start. Callers may change it before they start it.
func Environment() (*envtest.Environment, error) {
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	dirs, err := crdDirs(filepath.Join(Root(), "config", "crd"))
	if err != nil {
		return nil, err
	}
	logf.SetLogger(logr.Discard())
	return &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     dirs,
		ErrorIfCRDPathMissing: true,
		// Generous: tests of several packages start their servers at once.
		ControlPlaneStartTimeout: patience,
		ControlPlaneStopTimeout:  patience,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: patience},
	}, nil
}

// crdDirs lists the directories under root that hold manifests.
func crdDirs(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") || d.Name() == "kustomization.yaml" {
			return err
		}
		if dir := filepath.Dir(path); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		return nil
	})
	if err == nil && len(dirs) == 0 {
		err = errors.New("no CRDs under " + root + ": run make generate")
	}
	return dirs, err
}
