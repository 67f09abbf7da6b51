package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ome.io/ome/lab/internal/binaries"
	"ome.io/ome/lab/internal/demo"
)

// product is the directory of the manager and the kubectl plugin: $OME_BIN, else a fresh build beside what program built.
var product = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("OME_BIN"); dir != "" {
		return filepath.Abs(dir)
	}
	bin, err := program()
	if err != nil {
		return "", err
	}
	// As in program: a change of these files is a reason to run again.
	for _, sub := range []string{"api", "cmd", "internal", "config"} {
		err := filepath.WalkDir(filepath.Join("../..", sub), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			_, err = os.ReadFile(path)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	dir := filepath.Join(filepath.Dir(bin), "product")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", dir+"/", "./cmd/...")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the product: %w\n%s", err, out)
	}
	return dir, nil
})

func productBin(t *testing.T) string {
	t.Helper()
	dir, err := product()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// showDemo runs the demo as a library and returns its report and what it printed.
func showDemo(t *testing.T, skipDrain bool) (*demo.Report, string) {
	t.Helper()
	exe, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "lab")
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	report, err := demo.Run(ctx, demo.Config{
		Executable: exe, Bin: productBin(t), Finder: binaries.Finder{Out: io.Discard}, Dir: dir,
		Rate: 75, StartUp: 20 * time.Second, SkipDrain: skipDrain, Out: &out,
	})
	t.Logf("what it showed:\n%s", out.String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	return report, out.String()
}

// A group rolls as one under load, holds when paused, goes on when resumed, and loses nothing; with the drain turned off the
// same run loses requests, so that a run that loses none means something.
func TestGroupRollsUnderLoad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		skipDrain bool
		last      string // check that only this mode makes
	}{
		{"with the drain", false, "no request was mismatched"},
		{"negative control", true, "requests were lost without the drain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			report, out := showDemo(t, c.skipDrain)
			if n := len(report.Checks); n < 11 || report.Checks[n-1].Name != c.last {
				t.Errorf("checks: got %+v, want at least 11 and the last to be %q", report.Checks, c.last)
			}
			for _, check := range report.Checks {
				if !check.OK {
					t.Errorf("%s: %s", check.Name, check.Saw)
				}
			}
			l := report.Load
			if l.Sent < 3000 || l.Rate < 50 {
				t.Errorf("load: %d requests at %g/s; want 3000 at 50/s or more", l.Sent, l.Rate)
			}
			if c.skipDrain != (l.Failed > 0) {
				t.Errorf("%d of %d requests failed with skipDrain=%t: %v", l.Failed, l.Sent, c.skipDrain, l.Errors)
			}
			for _, command := range []string{"$ kubectl ome rollout pause mistral-pd -n mistral-demo --yes\n", "$ kubectl ome rollout resume mistral-pd -n mistral-demo --yes\n"} {
				if strings.Count(out, command) < 1 {
					t.Errorf("the output doesn't show %q", command)
				}
			}
		})
	}
}

// Ctrl-C in the middle leaves no lab, no directory and no process.
func TestInterruptedDemo(t *testing.T) {
	t.Parallel()
	l := &lab{t: t, dir: filepath.Join(t.TempDir(), "lab")}
	cmd := l.command("demo", "--bin-dir", productBin(t))
	out := &lookout{find: "$ kubectl apply", found: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	limit := time.After(10 * time.Minute)
	select {
	case <-out.found:
	case err := <-ended:
		t.Fatalf("ended early: %v\n%s", err, out)
	case <-limit:
		_ = cmd.Process.Kill()
		t.Fatalf("no service was applied in time\n%s", out)
	}
	procs := l.state()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 130 {
			t.Errorf("interrupted: got %v, want exit code 130\n%s", err, out)
		}
	case <-limit:
		_ = cmd.Process.Kill()
		t.Fatalf("didn't end after an interrupt\n%s", out)
	}
	if _, err := os.Stat(l.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", l.dir, err)
	}
	for _, c := range procs.Components {
		if err := syscall.Kill(c.PID, 0); err == nil {
			t.Errorf("%s still runs as pid %d", c.Name, c.PID)
		}
	}
}

// lookout collects output and tells when a text has appeared.
type lookout struct {
	find  string
	found chan struct{}

	mu   sync.Mutex
	buf  bytes.Buffer
	once sync.Once
}

func (o *lookout) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.buf.Write(p)
	if strings.Contains(o.buf.String(), o.find) {
		o.once.Do(func() { close(o.found) })
	}
	return n, err
}

func (o *lookout) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
