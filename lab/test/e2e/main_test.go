package e2e

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// checkout is the product's module, seen from this directory.
const checkout = "../../.."

// programs is the directory that holds ome-manager, kubectl-ome and ome-lab.
var programs = sync.OnceValues(func() (string, error) {
	dir := os.Getenv("OME_BIN")
	if dir == "" {
		if err := build(built); err != nil {
			return "", err
		}
		dir = built
	}
	for _, name := range []string{"ome-manager", "kubectl-ome", "ome-lab"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("$OME_BIN=%s has no %s: run `make build`, or leave OME_BIN unset to have the tests build it", dir, name)
		}
	}
	return filepath.Abs(dir)
})

// built is where the tests build what $OME_BIN doesn't give them.
var built string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// labs is how many labs run at one time. Two on two cores starve each other when all cases of both send load: requests
// then wait longer than pods drain.
var labs = make(chan struct{}, 1)

func run(m *testing.M) int {
	flag.Parse()
	// The cases of one lab wait even more, so what bounds them is labs; unless -parallel says otherwise.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("64"); err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "ome-e2e-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = dir
	return m.Run()
}

func build(dir string) error {
	// The go command reruns a test when a file that it looked at has changed; what the programs are made of would
	// escape it.
	err := filepath.WalkDir(checkout, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			_, err = os.Stat(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a lab or an editor at work in the checkout
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, what := range []struct{ dir, pkg string }{{checkout, "./cmd/..."}, {filepath.Join(checkout, "lab"), "./cmd/ome-lab"}} {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", dir+"/", what.pkg)
		cmd.Dir = what.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", what.pkg, err, out)
		}
	}
	return nil
}
