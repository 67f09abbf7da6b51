package binaries

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func writeProgram(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestGivenProgramsWinOnlyWhenComplete(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", "") // no go command: a build can't start
	for _, name := range ControlPlane[1:] {
		writeProgram(t, filepath.Join(dir, name))
	}
	var out bytes.Buffer
	if _, err := (Finder{Out: &out}).Ensure(context.Background()); err == nil || !strings.Contains(err.Error(), "no go command on PATH") {
		t.Fatalf("incomplete directory: err = %v, want one about the go command", err)
	}
	if !strings.Contains(out.String(), "does not hold all of") {
		t.Errorf("the incomplete directory is not mentioned: %q", out.String())
	}
	writeProgram(t, filepath.Join(dir, ControlPlane[0]))
	set, err := Finder{Out: &out}.Ensure(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(filepath.Join(dir, Etcd), set.Path(Etcd)); diff != "" {
		t.Errorf("etcd (-want +got):\n%s", diff)
	}
}

func TestMissingFollowsTheRecipe(t *testing.T) {
	b := builder{dir: t.TempDir(), version: "v1.2.3"}
	names := []string{Etcd, Scheduler, Prometheus}
	if diff := cmp.Diff(names, b.missing(names)); diff != "" {
		t.Errorf("empty cache (-want +got):\n%s", diff)
	}
	for _, name := range names {
		writeProgram(t, filepath.Join(b.dir, name))
	}
	if diff := cmp.Diff(names, b.missing(names)); diff != "" {
		t.Errorf("programs of unknown make (-want +got):\n%s", diff)
	}
	for _, name := range names {
		if err := b.record(name); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.missing(names); got != nil {
		t.Errorf("complete cache: missing %v", got)
	}
	for _, name := range []string{Etcd, Prometheus} {
		b.own = map[string]string{name: "v3.9.0"}
		if diff := cmp.Diff([]string{name}, b.missing(names)); diff != "" {
			t.Errorf("another %s (-want +got):\n%s", name, diff)
		}
	}
	b.own, b.version = nil, "v1.2.4"
	if diff := cmp.Diff([]string{Scheduler}, b.missing(names)); diff != "" {
		t.Errorf("another version stamp (-want +got):\n%s", diff)
	}
}

func TestOneBuildAtATime(t *testing.T) {
	var out bytes.Buffer
	b := builder{Finder: Finder{Out: &out}, dir: t.TempDir()}
	unlock, err := b.lock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("second lock: err = %v, want a deadline", err)
	}
	if !strings.Contains(out.String(), "another ome-lab is building") {
		t.Errorf("the one who waits is not told: %q", out.String())
	}
	unlock()
	unlock, err = b.lock(context.Background())
	if err != nil {
		t.Fatalf("after the first let go: %v", err)
	}
	unlock()
}

func TestProgressLines(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		name string
		tty  bool
		end  string
		last bool
		feed string
		want string
	}{
		{name: "plain", end: "building", feed: "k8s.io/api/core/v1\nk8s.io/client-go/rest\n",
			want: "  2 of 4: kube-apiserver  building, 2 packages compiled, 3m20s in all\n"},
		{name: "modules", end: "building", feed: "go: downloading k8s.io/api v0.37.2\nk8s.io/api/core/v1\n",
			want: "  2 of 4: kube-apiserver  building, 1 modules fetched, 1 packages compiled, 3m20s in all\n"},
		{name: "terminal redraws", tty: true, end: "building", want: "\r\033[K  2 of 4: kube-apiserver  building, 0 packages compiled, 3m20s in all"},
		{name: "terminal ends the line", tty: true, end: "done", last: true, want: "\r\033[K  2 of 4: kube-apiserver  done, 0 packages compiled, 3m20s in all\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			p := newProgress(&out, tt.tty, "2 of 4: kube-apiserver", start)
			p.now = func() time.Time { return start.Add(200 * time.Second) }
			var l buildLog
			l.read(strings.NewReader(tt.feed), p)
			if l.errors() != "" {
				t.Errorf("kept as an error: %q", l.errors())
			}
			p.print(tt.end, tt.last)
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// lineWriter hands each write on.
type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) { w <- string(p); return len(p), nil }

func TestHeartbeatWithoutATerminal(t *testing.T) {
	out := make(lineWriter)
	p := newProgress(out, false, "1 of 1: etcd", time.Now())
	if p.every != 15*time.Second {
		t.Errorf("a heartbeat every %s, want 15s", p.every)
	}
	p.every = time.Millisecond
	stopped := make(chan struct{})
	var stop func()
	go func() {
		stop = p.run()
		close(stopped)
	}()
	for _, want := range []string{"started", "building", "building"} {
		if got := <-out; !strings.Contains(got, "1 of 1: etcd  "+want) {
			t.Errorf("line %q, want it to say %s", got, want)
		}
	}
	<-stopped
	go func() {
		stop()
		close(out)
	}()
	last := ""
	for line := range out {
		last = line
	}
	if !strings.Contains(last, "done") {
		t.Errorf("last line %q", last)
	}
}

func TestBuildErrorsSayTheWayOut(t *testing.T) {
	tests := map[string]string{
		"write /tmp/x: no space left on device":       "free some space",
		"go: x@v1: Get: dial tcp: lookup x: no route": "check the network and GOPROXY",
		"go: go.mod requires go >= 1.27":              "too old",
		"compile: signal: killed":                     "lack of memory",
	}
	for said, want := range tests {
		if err := buildError("etcd", errors.New("exit status 1"), said); !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), said) {
			t.Errorf("%q: %v does not say %q", said, err, want)
		}
	}
}

func TestSourceIsFoundFromBelowIt(t *testing.T) {
	source, err := FindSource()
	if err != nil {
		t.Fatal(err)
	}
	for module, of := range map[string]string{"": "k8s.io/kubernetes", modules[Prometheus]: prometheusModule} {
		if version, err := pinned(filepath.Join(source, "lab", module), of); err != nil || !strings.HasPrefix(version, "v") {
			t.Errorf("%s: version %q, err %v", of, version, err)
		}
	}
	t.Setenv("OME_LAB_SOURCE", t.TempDir())
	if _, err := FindSource(); err == nil || !strings.Contains(err.Error(), "OME_LAB_SOURCE") {
		t.Errorf("a wrong OME_LAB_SOURCE: err = %v", err)
	}
}
