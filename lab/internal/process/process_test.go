package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for a supervisor: it starts a child tied to itself, prints its pid and waits.
func TestMain(m *testing.M) {
	if os.Getenv("PROCESS_TEST_PARENT") != "" {
		p, err := Start(Spec{Name: "child", Path: "/bin/sleep", Args: []string{"600"}, LogFile: os.Getenv("PROCESS_TEST_PARENT")})
		if err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString(strconv.Itoa(p.PID) + "\n")
		select {}
	}
	os.Exit(m.Run())
}

func startSleep(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(Spec{Name: "sh", Path: "/bin/sh", Args: []string{"-c", script}, LogFile: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func TestIdentityTellsAProcessFromAnotherWithItsPID(t *testing.T) {
	p := startSleep(t, "exec sleep 600")
	if !p.Alive() {
		t.Fatal("a running child is not alive")
	}
	other := Identity{PID: p.PID, Start: "1"}
	if other.Alive() {
		t.Error("another start time on the same pid counts as alive")
	}
	if err := other.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if !p.Alive() {
		t.Fatal("a signal for a process that is gone hit the one that has its pid now")
	}
	if err := p.Identity.End(time.Second); err != nil {
		t.Fatal(err)
	}
	if p.Alive() {
		t.Error("alive after End")
	}
}

func TestStopKillsWhatIgnoresTERM(t *testing.T) {
	p := startSleep(t, "trap '' TERM; echo ready; while :; do sleep 0.05; done")
	deadline := time.Now().Add(5 * time.Second)
	for !strings.Contains(ReadFrom(p.LogFile, 0), "ready") {
		if time.Now().After(deadline) {
			t.Fatal("the child never started")
		}
		time.Sleep(5 * time.Millisecond) // between two looks at a real process
	}
	if err := p.Stop(50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if gone, _ := p.Exited(); !gone {
		t.Error("still running after Stop")
	}
}

func TestChildrenDieWithTheirParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "PROCESS_TEST_PARENT="+filepath.Join(t.TempDir(), "log"))
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 32)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		t.Fatal(err)
	}
	child, err := Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if !child.WaitGone(5 * time.Second) {
		_ = child.Signal(syscall.SIGKILL)
		t.Fatal("the child outlived a parent that was killed")
	}
}

func TestFreePortsAreDifferentAndFree(t *testing.T) {
	ports, err := FreePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p] {
			t.Errorf("port %d twice", p)
		}
		seen[p] = true
	}
	if !PortFree(ports[0]) {
		t.Errorf("port %d is not free", ports[0])
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := Tail(path, 2), "two\nthree"; got != want {
		t.Errorf("Tail = %q, want %q", got, want)
	}
	if got, want := ReadFrom(path, 4), "two\nthree\n"; got != want {
		t.Errorf("ReadFrom = %q, want %q", got, want)
	}
}
