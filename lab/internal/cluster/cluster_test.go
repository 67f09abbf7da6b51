package cluster

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ome.io/ome/lab/internal/process"
)

func testLayout(t *testing.T) Layout {
	t.Helper()
	l := Layout{Dir: filepath.Join(t.TempDir(), "lab")}
	if err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestStateIsReadBack(t *testing.T) {
	l := testLayout(t)
	if _, err := l.Load(); !errors.Is(err, ErrNoLab) || !strings.Contains(err.Error(), "ome-lab up") {
		t.Errorf("no state: err = %v, want ErrNoLab with a way out", err)
	}
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	want := &State{Supervisor: self, Phase: Ready, Server: "https://127.0.0.1:1", Nodes: 3, Version: "v1", Control: "http://c", Token: "t",
		Components: []Component{{Name: "etcd", Identity: process.Identity{PID: 7, Start: "9"}, Ports: map[string]int{"client": 1}, Restarts: 2, Stopped: true}}}
	if err := l.save(want); err != nil {
		t.Fatal(err)
	}
	got, err := l.LoadRunning()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	info, err := os.Stat(l.state())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("state.json holds a token and has mode %o", info.Mode().Perm())
	}

	want.Supervisor.Start = "0"
	if err := l.save(want); err != nil {
		t.Fatal(err)
	}
	if _, err := l.LoadRunning(); !errors.Is(err, ErrNoLab) || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("another process has the supervisor's pid: err = %v", err)
	}
}

func TestOneSupervisorPerDirectory(t *testing.T) {
	l := testLayout(t)
	if l.locked() {
		t.Error("locked before anybody took the lock")
	}
	f, err := l.takeLock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.takeLock(); !errors.Is(err, errLocked) {
		t.Errorf("second lock: err = %v", err)
	}
	if !l.locked() {
		t.Error("not locked while the lock is held")
	}
	if err := l.inUse(); !strings.Contains(err.Error(), "starting or stopping") {
		t.Errorf("in use without a state: %v", err)
	}
	f.Close()
	if l.locked() {
		t.Error("locked after its holder let go")
	}
}

func TestPrepareRefusesOtherPeoplesDirectories(t *testing.T) {
	l := Layout{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(l.Dir, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.prepare(); err == nil || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("err = %v", err)
	}
}

func TestCleanKeepsLogsAndStrangers(t *testing.T) {
	l := testLayout(t)
	f, err := l.takeLock()
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := writeFiles(l.pki(), map[string][]byte{"ca.key": nil}); err != nil {
		t.Fatal(err)
	}
	if err := writeFiles(l.Dir, map[string][]byte{"notes": nil, "kubeconfig": nil, "logs/etcd.log": nil}); err != nil {
		t.Fatal(err)
	}
	list := func() []string {
		var names []string
		entries, _ := os.ReadDir(l.Dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if err := l.clean(false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{".gitignore", "logs", "notes", "ome-lab.lock"}, list()); diff != "" {
		t.Errorf("clean (-want +got):\n%s", diff)
	}
	if err := l.purge(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"notes"}, list()); diff != "" {
		t.Errorf("purge (-want +got):\n%s", diff)
	}
}

func TestResolveDir(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, flag, env, want string }{
		{name: "default", want: filepath.Join(wd, ".lab")},
		{name: "environment", env: "/x/y", want: "/x/y"},
		{name: "flag wins", flag: "z", env: "/x/y", want: filepath.Join(wd, "z")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("OME_LAB_DIR", tt.env)
			l, err := ResolveDir(tt.flag)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, l.Dir); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptionsSayWhatIsMissing(t *testing.T) {
	o := Options{Nodes: 0, Config: "/"}
	if err := o.Complete(); err == nil || !strings.Contains(err.Error(), "--nodes=0") {
		t.Errorf("no nodes: err = %v", err)
	}
	o = Options{Nodes: 1, NodeGrace: 5 * time.Second, Config: t.TempDir(), Manager: "/bin/true"}
	if err := o.Complete(); err == nil || !strings.Contains(err.Error(), "--config-dir") {
		t.Errorf("no manifests: err = %v", err)
	}
	if _, err := FindManager(filepath.Join(t.TempDir(), "nothing")); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("no manager: err = %v", err)
	}
}

func TestReportTable(t *testing.T) {
	r := Report{Dir: "/lab", Phase: Ready, Server: "https://127.0.0.1:1", Rows: []Row{
		{Component: "etcd", PID: 12, Ports: map[string]int{"peer": 4, "client": 3}, Health: "ok", OK: true},
		{Component: "ome-manager", Restarts: 1, Health: "stopped"},
	}}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	want := `lab in /lab is ready at https://127.0.0.1:1
COMPONENT     PID   PORTS             RESTARTS   HEALTH
etcd          12    client=3,peer=4   0          ok
ome-manager   -     -                 1          stopped
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Healthy() {
		t.Error("healthy with a stopped component")
	}
}
