package golden

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ome.io/ome/lab/internal/binaries"
)

// patience with any one thing that has to happen. The machine may be busy with other tests.
const patience = 5 * time.Minute

// TestMain lets all cases wait at one time, whatever the number of cores: that is nearly all they do.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("16"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// lab is a running lab and the shell of a person who works on it, in the root of the checkout.
type lab struct {
	t    *testing.T
	root string
	env  []string
}

// programs returns the directory of ome-lab, ome-manager and kubectl-ome: $OME_BIN, else a fresh build.
func programs(t *testing.T, root string) string {
	t.Helper()
	if dir := os.Getenv("OME_BIN"); dir != "" {
		return dir
	}
	dir := t.TempDir()
	for module, pkg := range map[string]string{root: "./cmd/...", filepath.Join(root, "lab"): "./cmd/ome-lab"} {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", dir+string(filepath.Separator), pkg)
		cmd.Dir = module
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s in %s: %v\n%s", pkg, module, err, out)
		}
	}
	return dir
}

func newLab(t *testing.T) *lab {
	t.Helper()
	root, err := binaries.FindSource()
	if err != nil {
		t.Fatal(err)
	}
	bin := programs(t, root)
	kubectl, err := binaries.Finder{Out: os.Stderr}.EnsureKubectl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "lab")
	program := filepath.Join(bin, "ome-lab")
	l := &lab{t: t, root: root, env: append(os.Environ(),
		"PATH="+strings.Join([]string{bin, filepath.Dir(kubectl), os.Getenv("PATH")}, string(os.PathListSeparator)),
		"KUBECONFIG="+filepath.Join(dir, "kubeconfig"),
		// What kubectl discovers of a lab that is gone should stay in no home directory.
		"KUBECACHEDIR="+t.TempDir(),
	)}
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range []string{"supervisor", "ome-manager"} {
				log, _ := os.ReadFile(filepath.Join(dir, "logs", name+".log"))
				t.Logf("the end of %s.log:\n%s", name, log[max(0, len(log)-8<<10):])
			}
		}
		if out, err := exec.Command(program, "down", "--purge", "--dir", dir).CombinedOutput(); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	out, err := exec.CommandContext(t.Context(), program, "up", "--dir", dir, "--nodes", "3", "--node-grace", "60s",
		"--manager-bin", filepath.Join(bin, "ome-manager")).CombinedOutput()
	if err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	return l
}

// with is the same lab for a subtest.
func (l *lab) with(t *testing.T) *lab {
	c := *l
	c.t = t
	return &c
}

// run types a command and returns what the terminal shows.
func (l *lab) run(command string) (string, error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = l.root, l.env, &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (l *lab) must(command string) string {
	l.t.Helper()
	out, err := l.run(command)
	if err != nil {
		l.t.Fatalf("$ %s\n%s%v", command, out, err)
	}
	return out
}

// status commands exit with codes of their own; only the text counts here.
func (l *lab) text(command string) string {
	l.t.Helper()
	out, err := l.run(command)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		l.t.Fatalf("$ %s\n%s%v", command, out, err)
	}
	return out
}

// eventually looks until there is nothing to complain about.
func (l *lab) eventually(what string, look func() error) {
	l.t.Helper()
	l.every(200*time.Millisecond, what, look)
}

func (l *lab) every(interval time.Duration, what string, look func() error) {
	l.t.Helper()
	deadline := time.Now().Add(patience)
	var complaints []string
	for {
		err := look()
		if err == nil {
			return
		}
		if n := len(complaints); n == 0 || complaints[n-1] != err.Error() {
			complaints = append(complaints, err.Error())
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("%s: not within %s. One after the other:\n%s\n%s", what, patience, strings.Join(complaints, "\n"),
				l.text("kubectl get isvc,irep,pods -A; kubectl get events -A | tail -40"))
		}
		time.Sleep(interval) // between two looks
	}
}

// listen has the servers that take long to start get ready.
func (l *lab) listen(ns string) {
	l.t.Helper()
	l.must("kubectl annotate pods --all -n " + ns + " lab.ome.io/behaviour=start0s")
}

// read decodes what a kubectl command prints as JSON.
func read[T any](l *lab, command string) (T, error) {
	var out T
	text, err := l.run(command + " -o json")
	if err != nil {
		return out, fmt.Errorf("%s: %w", text, err)
	}
	return out, json.Unmarshal([]byte(text), &out)
}
