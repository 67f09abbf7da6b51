package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ome.io/ome/lab/internal/process"
)

func testSupervisor(t *testing.T) *supervisor {
	t.Helper()
	l := testLayout(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &supervisor{l: l, ctx: ctx, fail: cancel, log: slog.New(slog.NewTextHandler(io.Discard, nil)), http: http.DefaultClient, units: map[string]*unit{}}
	t.Cleanup(s.shutdown)
	return s
}

// scriptUnit runs a shell script; it is healthy once the script has made the file "healthy".
func scriptUnit(t *testing.T, s *supervisor, script string, got *[]map[string]int) *unit {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(filepath.Join(s.l.Dir, "healthy")); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(srv.Close)
	return s.add(&unit{
		name: "script", portNames: []string{"one"},
		spec: func(p map[string]int) (process.Spec, error) {
			*got = append(*got, p)
			return process.Spec{Name: "script", Path: "/bin/sh", Args: []string{"-c", script}, Dir: s.l.Dir, LogFile: s.l.Log("script")}, nil
		},
		health: func(map[string]int) string { return srv.URL },
	})
}

func TestBootTriesOtherPorts(t *testing.T) {
	s := testSupervisor(t)
	var ports []map[string]int
	u := scriptUnit(t, s, `if test -f first; then touch healthy; exec sleep 600; fi
touch first; echo "listen tcp 127.0.0.1:1: bind: address already in use" >&2; exit 1`, &ports)
	if err := s.boot(context.Background(), u); err != nil {
		t.Fatal(err)
	}
	if len(ports) != 2 {
		t.Fatalf("started %d times, want 2", len(ports))
	}
	st, err := s.l.Load()
	if err != nil {
		t.Fatal(err)
	}
	c, _ := st.Component("script")
	if diff := cmp.Diff(ports[1], c.Ports); diff != "" {
		t.Errorf("recorded ports (-want +got):\n%s", diff)
	}
	if !c.Alive() {
		t.Error("the recorded process is not alive")
	}
	if err := s.stop(u, false); err != nil {
		t.Fatal(err)
	}
	if c.Alive() {
		t.Error("alive after stop")
	}
	if err := s.start(context.Background(), u); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ports[1], ports[2]); diff != "" {
		t.Errorf("ports after a restart (-before +after):\n%s", diff)
	}
}

func TestBootFailsWithTheEndOfTheLog(t *testing.T) {
	s := testSupervisor(t)
	var ports []map[string]int
	u := scriptUnit(t, s, `echo "unknown flag --x" >&2; exit 2`, &ports)
	err := s.boot(context.Background(), u)
	if err == nil || !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(err.Error(), "unknown flag --x") {
		t.Errorf("err = %v", err)
	}
	if len(ports) != 1 {
		t.Errorf("started %d times, want 1: the port was not the trouble", len(ports))
	}
}

func TestAProgramThatDiesIsStartedAgain(t *testing.T) {
	s := testSupervisor(t)
	var ports []map[string]int
	u := scriptUnit(t, s, "touch healthy; exec sleep 600", &ports)
	if err := s.boot(context.Background(), u); err != nil {
		t.Fatal(err)
	}
	u.mu.Lock()
	first := u.proc
	u.mu.Unlock()
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for u.record().Restarts == 0 || !u.record().Alive() {
		if time.Now().After(deadline) {
			t.Fatalf("not started again: %+v", u.record())
		}
		time.Sleep(10 * time.Millisecond) // between two looks at a real process
	}
}

func TestStartCleanEndsWhatADeadSupervisorLeft(t *testing.T) {
	s := testSupervisor(t)
	s.progress = json.NewEncoder(io.Discard)
	left, err := process.Start(process.Spec{Name: "etcd", Path: "/bin/sleep", Args: []string{"600"}, LogFile: s.l.Log("etcd")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = left.Kill() })
	old := &State{Supervisor: process.Identity{PID: left.PID, Start: "0"}, Components: []Component{{Name: "etcd", Identity: left.Identity}}}
	if err := s.l.save(old); err != nil {
		t.Fatal(err)
	}
	if err := writeFiles(s.l.etcd(), map[string][]byte{"data": nil}); err != nil {
		t.Fatal(err)
	}
	if err := s.startClean(); err != nil {
		t.Fatal(err)
	}
	if left.Alive() {
		t.Error("the process that was left is alive")
	}
	for _, path := range []string{s.l.etcd(), s.l.Log("etcd")} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s of the old lab: %v", path, err)
		}
	}
	st, err := s.l.LoadRunning()
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Components) != 0 {
		t.Errorf("components of the old lab: %v", st.Components)
	}
}
