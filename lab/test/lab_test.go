package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	_ "ome.io/ome/lab/internal/cluster"
	_ "ome.io/ome/lab/internal/node"
)

// built is where program puts its result; TestMain removes it.
var built string

// program is ome-lab: that of $OME_BIN, else a fresh build.
var program = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("OME_BIN"); dir != "" {
		return filepath.Abs(filepath.Join(dir, "ome-lab"))
	}
	dir, err := os.MkdirTemp("", "ome-lab-test-")
	if err != nil {
		return "", err
	}
	built = dir
	// The go command reruns a test when a file that it read or a package that it imports has changed; what the program
	// built here is made of would escape it.
	files, err := filepath.Glob("../cmd/ome-lab/*.go")
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if _, err := os.ReadFile(f); err != nil {
			return "", err
		}
	}
	bin := filepath.Join(dir, "ome-lab")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "../cmd/ome-lab").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ome-lab: %w\n%s", err, out)
	}
	return bin, nil
})

// lab is one lab directory and the command line that works on it.
type lab struct {
	t   *testing.T
	dir string
}

// in is the same lab for a subtest.
func (l *lab) in(t *testing.T) *lab { return &lab{t: t, dir: l.dir} }

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, dir: filepath.Join(t.TempDir(), "lab")}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(l.dir, "logs", "supervisor.log"))
			t.Logf("supervisor log of %s:\n%s", l.dir, log)
		}
		if out, err := l.run("down"); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
		l.nothingRuns()
	})
	return l
}

func (l *lab) command(args ...string) *exec.Cmd {
	l.t.Helper()
	bin, err := program()
	if err != nil {
		l.t.Fatal(err)
	}
	cmd := exec.Command(bin, append([]string{args[0], "--dir", l.dir}, args[1:]...)...)
	if args[0] == "manager" || args[0] == "component" {
		cmd = exec.Command(bin, append([]string{"--dir", l.dir}, args...)...)
	}
	cmd.Env = append(os.Environ(), managerEnv+"=1")
	return cmd
}

func (l *lab) run(args ...string) (string, error) {
	l.t.Helper()
	out, err := l.command(args...).CombinedOutput()
	return string(out), err
}

func (l *lab) must(args ...string) string {
	l.t.Helper()
	out, err := l.run(args...)
	if err != nil {
		l.t.Fatalf("ome-lab %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (l *lab) up(args ...string) (string, error) {
	l.t.Helper()
	return l.run(append([]string{"up", "--config-dir", "testdata/config"}, args...)...)
}

func (l *lab) client(kubeconfig string) *kubernetes.Clientset {
	l.t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	if err != nil {
		l.t.Fatal(err)
	}
	cs, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	return cs
}

func (l *lab) admin() *kubernetes.Clientset {
	l.t.Helper()
	raw, err := os.ReadFile(filepath.Join(l.dir, "kubeconfig"))
	if err != nil {
		l.t.Fatal(err)
	}
	return l.client(string(raw))
}

type state struct {
	Supervisor struct{ PID int }
	Components []struct {
		Name     string
		PID      int
		Restarts int
	}
}

func (l *lab) state() state {
	l.t.Helper()
	raw, err := os.ReadFile(filepath.Join(l.dir, "state.json"))
	if err != nil {
		l.t.Fatal(err)
	}
	var s state
	if err := json.Unmarshal(raw, &s); err != nil {
		l.t.Fatal(err)
	}
	return s
}

func (s state) pid(name string) int {
	for _, c := range s.Components {
		if c.Name == name {
			return c.PID
		}
	}
	return 0
}

// nothingRuns looks through all processes for one that has the lab's directory on its command line or works in it.
func (l *lab) nothingRuns() {
	l.t.Helper()
	var left []string
	entries, err := os.ReadDir("/proc")
	if err != nil {
		l.t.Fatalf("read the process table: %v", err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue
		}
		wd, _ := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if bytes.Contains(raw, []byte(l.dir)) || strings.HasPrefix(wd, l.dir) {
			left = append(left, e.Name()+" "+string(bytes.ReplaceAll(raw, []byte{0}, []byte{' '})))
		}
	}
	if len(left) > 0 {
		l.t.Errorf("still running:\n%s", strings.Join(left, "\n"))
	}
}

func eventually(t *testing.T, what string, within time.Duration, f func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, within, err)
		}
		time.Sleep(100 * time.Millisecond) // between two looks
	}
}

func TestTwoLabsSideBySide(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a, b := newLab(t), newLab(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if out, err := a.up("--nodes", "3", "--manager-bin", self, "--audit", "--components", "gadgets"); err != nil {
			t.Errorf("up: %v\n%s", err, out)
		}
	})
	wg.Go(func() {
		if out, err := b.up("--nodes", "2", "--no-manager"); err != nil {
			t.Errorf("up: %v\n%s", err, out)
		}
	})
	wg.Wait()
	if t.Failed() {
		return
	}

	t.Run("status", func(t *testing.T) {
		a, b := a.in(t), b.in(t)
		for _, l := range []*lab{a, b} {
			if out := l.must("status"); !strings.Contains(out, "is ready at https://127.0.0.1:") {
				t.Errorf("status:\n%s", out)
			}
		}
	})
	t.Run("components", func(t *testing.T) { componentsOfLab(ctx, t, a.in(t)) })
	t.Run("a directory in use is refused", func(t *testing.T) {
		a := a.in(t)
		out, err := a.up("--no-manager")
		if err == nil || !strings.Contains(out, "is in use by a running lab") || !strings.Contains(out, "ome-lab down --dir") {
			t.Errorf("err %v, output %s", err, out)
		}
	})
	t.Run("pods get ready", func(t *testing.T) {
		a, b := a.in(t), b.in(t)
		for _, l := range []*lab{a, b} {
			deploy(ctx, t, l.admin(), 6)
		}
	})
	t.Run("users and groups", func(t *testing.T) {
		a := a.in(t)
		cs := a.client(a.must("kubeconfig", "--user", "alice", "--group", "devs", "--group", "oncall"))
		me, err := cs.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := append([]string{me.Status.UserInfo.Username}, me.Status.UserInfo.Groups...)
		if diff := cmp.Diff([]string{"alice", "devs", "oncall", "system:authenticated"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if _, err := cs.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); err == nil {
			t.Error("a user without a role may list pods")
		}
	})
	t.Run("kubectl", func(t *testing.T) {
		a := a.in(t)
		if out := a.must("kubectl", "version", "-o", "json"); !strings.Contains(out, `"gitVersion": "v1.`) {
			t.Errorf("kubectl version:\n%s", out)
		}
	})
	t.Run("manager", func(t *testing.T) { managerOfLab(ctx, t, a.in(t)) })
	t.Run("a program that dies comes back", func(t *testing.T) {
		a := a.in(t)
		pid := a.state().pid("kube-scheduler")
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the scheduler is back", 30*time.Second, func() error {
			now := a.state().pid("kube-scheduler")
			if now == pid {
				return errors.New("same process")
			}
			out, err := a.run("status")
			if err != nil {
				return fmt.Errorf("%w\n%s", err, out)
			}
			return nil
		})
	})
	t.Run("a killed supervisor takes all down", func(t *testing.T) {
		b := b.in(t)
		if err := syscall.Kill(b.state().Supervisor.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the children are gone", 10*time.Second, func() error {
			for _, c := range b.state().Components {
				if syscall.Kill(c.PID, 0) == nil {
					return fmt.Errorf("%s (process %d) is alive", c.Name, c.PID)
				}
			}
			return nil
		})
		if out, err := b.run("status"); err == nil || !strings.Contains(out, "is gone") {
			t.Errorf("status: err %v\n%s", err, out)
		}
	})
	t.Run("a failed start leaves nothing", func(t *testing.T) {
		b := b.in(t)
		out, err := b.up("--manager-bin", self, "--manager-flag=--fail=on-purpose")
		for _, want := range []string{
			"the old lab in " + b.dir + " is gone",
			"ome-manager ended before it was ready",
			"stand-in told to fail: on-purpose",
		} {
			if err == nil || !strings.Contains(out, want) {
				t.Errorf("err %v, output without %q:\n%s", err, want, out)
			}
		}
		b.nothingRuns()
		if _, err := os.Stat(filepath.Join(b.dir, "state.json")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("state.json is left: %v", err)
		}
	})
	t.Run("down keeps logs and nothing else", func(t *testing.T) {
		a := a.in(t)
		a.must("down")
		a.nothingRuns()
		var left []string
		entries, err := os.ReadDir(a.dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if diff := cmp.Diff([]string{".gitignore", "logs", "ome-lab.lock"}, left); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		a.must("down", "--purge")
		if _, err := os.Stat(a.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory after --purge: %v", err)
		}
	})
}

func deploy(ctx context.Context, t *testing.T, cs *kubernetes.Clientset, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	_, err := cs.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "ome.io/lab/stub:v1"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deployment is ready", 60*time.Second, func() error {
		d, err := cs.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.ReadyReplicas != replicas {
			return fmt.Errorf("%d of %d replicas are ready", d.Status.ReadyReplicas, replicas)
		}
		return nil
	})
}

func widget(name, labels string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"lab.example.com/v1","kind":"Widget","metadata":{"name":%q,"labels":{%s}}}`, name, labels)
}

func managerOfLab(ctx context.Context, t *testing.T, l *lab) {
	const user = "system:serviceaccount:ome:ome-controller-manager"
	log, err := os.ReadFile(filepath.Join(l.dir, "logs", "ome-manager.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "I am "+user) {
		t.Errorf("the manager's log:\n%s", log)
	}
	audit, err := os.ReadFile(filepath.Join(l.dir, "logs", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(audit), `"username":"`+user+`"`) {
		t.Error("the audit log has no request of the manager")
	}

	cs := l.admin()
	create := func(name, labels string) error {
		return cs.RESTClient().Post().AbsPath("/apis/lab.example.com/v1/namespaces/default/widgets").
			SetHeader("Content-Type", "application/json").Body(widget(name, labels)).Do(ctx).Error()
	}
	if err := create("good", ""); err != nil {
		t.Errorf("a widget that the webhook lets in: %v", err)
	}
	if err := create("bad", `"refuse":"yes"`); err == nil || !strings.Contains(err.Error(), "denied the request") {
		t.Errorf("a widget that the webhook refuses: err = %v", err)
	}
	l.must("manager", "kill")
	if err := create("none", ""); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("with the manager dead: err = %v", err)
	}
	if out, err := l.run("status"); err == nil || !strings.Contains(out, "stopped") {
		t.Errorf("status with the manager dead: err %v\n%s", err, out)
	}
	l.must("manager", "start")
	if err := create("again", ""); err != nil {
		t.Errorf("after the manager came back: %v", err)
	}
}

// componentsOfLab: one is there from the start, another is added as in a real cluster. The manager answers for both.
func componentsOfLab(ctx context.Context, t *testing.T, l *lab) {
	cs := l.admin()
	create := func(kind, name, labels string) error {
		body := strings.Replace(string(widget(name, labels)), "Widget", kind, 1)
		return cs.RESTClient().Post().AbsPath("/apis/lab.example.com/v1/namespaces/default/"+strings.ToLower(kind)+"s").
			SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error()
	}
	answered := func(kind string) {
		t.Helper()
		if err := create(kind, "good", ""); err != nil {
			t.Errorf("a %s that the webhook lets in: %v", kind, err)
		}
		if err := create(kind, "bad", `"refuse":"yes"`); err == nil || !strings.Contains(err.Error(), "denied the request") {
			t.Errorf("a %s that the webhook refuses: err = %v", kind, err)
		}
	}
	answered("Gadget")
	if err := create("Gizmo", "early", ""); !apierrors.IsNotFound(err) {
		t.Errorf("a component that nobody asked for: err = %v", err)
	}
	l.must("kubectl", "apply", "--server-side", "-f", "testdata/config/components/gizmos")
	l.must("kubectl", "wait", "--for=condition=Established", "crd/gizmos.lab.example.com")
	if err := create("Gizmo", "early", ""); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("before the manager was restarted: err = %v", err)
	}
	for range 2 { // the second start finds the address that the first one wrote
		l.must("manager", "stop")
		l.must("manager", "start")
	}
	answered("Gizmo")
	if err := create("Gadget", "again", ""); err != nil {
		t.Errorf("a Gadget after the restart: %v", err)
	}
}

func TestInterruptDuringUp(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cmd := l.command("up", "--config-dir", "testdata/config", "--no-manager")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 256)
	if n, err := out.Read(buf); err != nil || !strings.Contains(string(buf[:n]), "etcd") {
		t.Errorf("first line %q, err %v", buf[:n], err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d (%v), want 130", code, err)
	}
	l.nothingRuns()
}

func TestSomebodyElsesDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, dir: dir}
	if out, err := l.up("--no-manager"); err == nil || !strings.Contains(out, "is no lab's directory") {
		t.Errorf("up: err %v\n%s", err, out)
	}
	l.must("down", "--purge")
	if raw, err := os.ReadFile(filepath.Join(dir, "kubeconfig")); err != nil || string(raw) != "mine" {
		t.Errorf("down touched a file that is not a lab's: %q, %v", raw, err)
	}
}
