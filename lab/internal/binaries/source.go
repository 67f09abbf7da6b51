package binaries

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// ErrNoSource means that the module to build from is nowhere to be seen.
var ErrNoSource = errors.New("the source tree of ome-lab was not found: run ome-lab from a checkout, or set OME_LAB_SOURCE to one")

var labModule = regexp.MustCompile(`(?m)^module ome\.io/ome/lab$`)

// FindSource returns the root of the checkout: the directory that holds lab/go.mod. It looks at $OME_LAB_SOURCE, above
// the executable and above the working directory.
func FindSource() (string, error) {
	if dir := os.Getenv("OME_LAB_SOURCE"); dir != "" {
		if !isSource(dir) {
			return "", fmt.Errorf("OME_LAB_SOURCE=%s holds no lab/go.mod of module ome.io/ome/lab", dir)
		}
		return filepath.Abs(dir)
	}
	var starts []string
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		starts = append(starts, filepath.Dir(exe))
	}
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	for _, dir := range starts {
		for {
			if isSource(dir) {
				return dir, nil
			}
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return "", ErrNoSource
}

func isSource(dir string) bool {
	raw, err := os.ReadFile(filepath.Join(dir, "lab", "go.mod"))
	return err == nil && labModule.Match(raw)
}

// pinned is the version that the go.mod in dir requires of a module.
func pinned(dir, module string) (string, error) {
	path := filepath.Join(dir, "go.mod")
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the version of %s: %w", module, err)
	}
	m := regexp.MustCompile(`(?m)^\s*(?:require\s+)?` + regexp.QuoteMeta(module) + `\s+(v\S+)`).FindSubmatch(raw)
	if m == nil {
		return "", fmt.Errorf("%s requires no %s, so there is nothing to build from", path, module)
	}
	return string(m[1]), nil
}
