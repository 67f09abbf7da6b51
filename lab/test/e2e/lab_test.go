package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"ome.io/ome/lab/internal/cluster"
	"ome.io/ome/lab/internal/install"
)

var (
	services  = schema.GroupVersionResource{Group: "ome.io", Version: "v1beta1", Resource: "inferenceservices"}
	replicas  = schema.GroupVersionResource{Group: "ome.io", Version: "v1beta1", Resource: "inferencereplicas"}
	fieldUser = metav1.ApplyOptions{FieldManager: "e2e", Force: true}
)

// lab is a running lab with a manager whose flags can be changed for one start.
type lab struct {
	cluster.Layout
	once string

	kube    kubernetes.Interface
	dynamic dynamic.Interface
	install *install.Client
}

// deadline ends a test early enough to take its lab down in an orderly way.
func deadline(t *testing.T) context.Context {
	ctx, cancel := t.Context(), context.CancelFunc(func() {})
	if d, ok := t.Deadline(); ok {
		ctx, cancel = context.WithDeadline(ctx, d.Add(-75*time.Second))
	}
	t.Cleanup(cancel)
	return ctx
}

func startLab(ctx context.Context, t *testing.T, args ...string) *lab {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case labs <- struct{}{}:
	case <-ctx.Done():
		t.Fatal("no time left when the labs before this one were down")
	}
	t.Cleanup(func() { <-labs })
	tmp := t.TempDir()
	l := &lab{Layout: cluster.Layout{Dir: filepath.Join(tmp, "lab")}, once: filepath.Join(tmp, "once")}
	program := filepath.Join(bin, "ome-lab")
	l.reap(t, program)

	cmd := exec.CommandContext(ctx, program, append([]string{"up", "--dir", l.Dir, "--audit", "--node-grace=20s", "--manager-bin", l.wrapper(t, tmp, filepath.Join(bin, "ome-manager"))}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ome-lab up: %v\n%s", err, out)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	if l.kube, err = kubernetes.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if l.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if l.install, err = install.NewClient(cfg); err != nil {
		t.Fatal(err)
	}
	return l
}

// wrapper is a program that starts the manager with the flags in a file, once.
func (l *lab) wrapper(t *testing.T, dir, manager string) string {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\nextra=\nif mv %[1]q %[1]q.used 2>/dev/null; then extra=$(cat %[1]q.used); fi\nexec %[2]q \"$@\" $extra\n", l.once, manager)
	path := filepath.Join(dir, "manager")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// reap takes the lab down when the test ends, and also when this process dies in whatever way: it is another process
// that does it, when the pipe between the two closes.
func (l *lab) reap(t *testing.T, program string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `cat >/dev/null; exec "$0" down --purge --dir "$1"`, program, l.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		st, loadErr := l.Load()
		if t.Failed() {
			l.keepLogs(t)
		}
		pipe.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("ome-lab down: %v\n%s", err, out.Bytes())
		}
		if loadErr != nil {
			return
		}
		for _, c := range append(st.Components, cluster.Component{Name: "supervisor", Identity: st.Supervisor}) {
			if c.Alive() {
				t.Errorf("%s (process %d) runs after down", c.Name, c.PID)
			}
		}
	})
}

// keepLogs saves the logs of a failed test from the removal of its directory.
func (l *lab) keepLogs(t *testing.T) {
	to, err := os.MkdirTemp("", "ome-e2e-logs-")
	if err == nil {
		err = os.CopyFS(to, os.DirFS(l.Logs()))
	}
	t.Logf("the logs of this test's lab are in %s (%v)", to, err)
	for _, name := range []string{"supervisor", cluster.ManagerName} {
		t.Logf("the end of %s.log:\n%s", name, tail(l.Log(name), 8<<10))
	}
}

func tail(path string, n int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return []byte(err.Error())
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > n {
		_, _ = f.Seek(-n, io.SeekEnd)
	}
	raw, _ := io.ReadAll(f)
	return raw
}

// manager is the record of the manager that runs, or ran last.
func (l *lab) manager(t *testing.T) cluster.Component {
	t.Helper()
	st, err := l.LoadRunning()
	if err != nil {
		t.Fatal(err)
	}
	c, ok := st.Component(cluster.ManagerName)
	if !ok {
		t.Fatal("the lab has no manager")
	}
	return c
}

// restartManager stops the manager and starts it with more flags; they hold for this one start.
func (l *lab) restartManager(ctx context.Context, t *testing.T, flags string) cluster.Component {
	t.Helper()
	if err := l.Order(ctx, cluster.ManagerName, "stop"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.once, []byte(flags), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Order(ctx, cluster.ManagerName, "start"); err != nil {
		t.Fatal(err)
	}
	c := l.manager(t)
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c.PID))
	if err != nil || !strings.Contains(string(line), flags) {
		t.Fatalf("the manager did not start with %s: %q, %v", flags, line, err)
	}
	return c
}

// apply writes objects as a person would.
func (l *lab) apply(ctx context.Context, t *testing.T, objs ...*unstructured.Unstructured) {
	t.Helper()
	if err := l.install.Apply(ctx, objs); err != nil {
		t.Fatal(err)
	}
}

// samples returns the shipped sample objects except the services.
func samples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	all, err := install.Load(filepath.Join(checkout, "config", "samples"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for _, u := range all {
		if u.GetKind() == "ClusterServingRuntime" || u.GetKind() == "ClusterBaseModel" {
			out = append(out, u)
		}
	}
	if len(out) != 2 {
		t.Fatalf("the samples hold %d runtimes and models, want one of each", len(out))
	}
	return out
}

// hasty are the samples with pods that stop sooner, but still later than the load learns of it.
func hasty(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objs := samples(t)
	for _, u := range objs {
		for _, config := range []string{"routerConfig", "engineConfig", "decoderConfig"} {
			runner, found, _ := unstructured.NestedMap(u.Object, "spec", config, "runner")
			if !found {
				continue
			}
			runner["lifecycle"] = preStop
			if err := unstructured.SetNestedMap(u.Object, runner, "spec", config, "runner"); err != nil {
				t.Fatal(err)
			}
		}
	}
	return objs
}

// preStop is longer than the load's view of the endpoints is late.
var preStop = map[string]any{"preStop": map[string]any{"sleep": map[string]any{"seconds": int64(3)}}}

func namespace(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind("Namespace")
	u.SetName(name)
	return u
}

// sampleService is the shipped service with other counts and, unless image is empty, images of its engine and decoder.
func sampleService(t *testing.T, ns, name, image string, counts map[string]int32) *unstructured.Unstructured {
	t.Helper()
	all, err := install.Load(filepath.Join(checkout, "config", "samples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		if u.GetKind() != "InferenceService" {
			continue
		}
		u.SetNamespace(ns)
		u.SetName(name)
		spec := u.Object["spec"].(map[string]any)
		for comp, n := range counts {
			c := spec[comp].(map[string]any)
			c["minReplicas"], c["maxReplicas"] = int64(n), int64(n)
			if comp == "router" {
				continue
			}
			delete(c, "runner")
			if image != "" {
				c["runner"] = map[string]any{"name": "ome-container", "image": "lab.ome.io/" + comp + ":" + image}
			}
		}
		return u
	}
	t.Fatal("the samples hold no InferenceService")
	return nil
}

// until waits for what returns no complaints, and fails the test with the last ones.
func until(ctx context.Context, t *testing.T, what string, patience time.Duration, f func() []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for {
		complaints := f()
		if len(complaints) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not after %s:\n  %s", what, time.Since(began).Round(time.Second), strings.Join(complaints, "\n  "))
		case <-tick.C:
		}
	}
}
