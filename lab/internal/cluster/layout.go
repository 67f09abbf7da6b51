package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Layout names what is in a lab's directory.
type Layout struct{ Dir string }

// Paths in the directory.
func (l Layout) Kubeconfig() string     { return filepath.Join(l.Dir, "kubeconfig") }
func (l Layout) Logs() string           { return filepath.Join(l.Dir, "logs") }
func (l Layout) Log(name string) string { return filepath.Join(l.Dir, "logs", name+".log") }
func (l Layout) state() string          { return filepath.Join(l.Dir, "state.json") }
func (l Layout) lock() string           { return filepath.Join(l.Dir, "ome-lab.lock") }
func (l Layout) pki() string            { return filepath.Join(l.Dir, "pki") }
func (l Layout) etcd() string           { return filepath.Join(l.Dir, "etcd") }
func (l Layout) conf() string           { return filepath.Join(l.Dir, "conf") }
func (l Layout) nodes() string          { return filepath.Join(l.Dir, "nodes") }
func (l Layout) manager() string        { return filepath.Join(l.Dir, "manager") }
func (l Layout) prometheus() string     { return filepath.Join(l.Dir, "prometheus") }

// Nodes is where the simulated nodes take commands.
func (l Layout) Nodes() string { return l.nodes() }

// runtimeData is what one run of a lab leaves behind, apart from its logs.
func (l Layout) runtimeData() []string {
	return []string{l.Kubeconfig(), l.state(), l.pki(), l.etcd(), l.conf(), l.nodes(), l.manager(), l.prometheus()}
}

// ResolveDir makes the lab's directory absolute: the flag, else $OME_LAB_DIR, else .lab here.
func ResolveDir(flag string) (Layout, error) {
	dir := flag
	if dir == "" {
		dir = os.Getenv("OME_LAB_DIR")
	}
	if dir == "" {
		dir = ".lab"
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Layout{}, fmt.Errorf("resolve the lab's directory %s: %w", dir, err)
	}
	return Layout{Dir: abs}, nil
}

// prepare makes the directory, and refuses one that holds something else: `down` removes files by name in it.
func (l Layout) prepare() error {
	entries, err := os.ReadDir(l.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open the lab's directory: %w", err)
	}
	if len(entries) > 0 {
		if _, err := os.Stat(l.lock()); err != nil {
			return fmt.Errorf("%s is not empty and is no lab's directory: choose another with --dir", l.Dir)
		}
	}
	if err := os.MkdirAll(l.Logs(), 0o755); err != nil {
		return fmt.Errorf("make the lab's directory: %w", err)
	}
	// The directory may well be inside a checkout.
	if err := os.WriteFile(filepath.Join(l.Dir, ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return fmt.Errorf("make the lab's directory: %w", err)
	}
	return nil
}

// clean removes the data of the previous run, and its logs if asked.
func (l Layout) clean(logs bool) error {
	paths := l.runtimeData()
	if logs {
		paths = append(paths, l.Logs())
	}
	for _, p := range paths {
		if err := os.RemoveAll(p); err != nil {
			return fmt.Errorf("remove the lab's data: %w", err)
		}
	}
	return nil
}

// purge removes all that a lab made, and the directory if nothing else is in it.
func (l Layout) purge() error {
	if err := l.clean(true); err != nil {
		return err
	}
	for _, p := range []string{filepath.Join(l.Dir, ".gitignore"), l.lock(), l.Dir} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			if p == l.Dir {
				return nil // somebody keeps files of their own here
			}
			return fmt.Errorf("remove the lab's directory: %w", err)
		}
	}
	return nil
}
