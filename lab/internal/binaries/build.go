package binaries

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"ome.io/ome/lab/internal/process"
)

// minFree is what a cold build of the control plane needs for modules, compiled packages and link steps.
const minFree = 6 << 30

type builder struct {
	Finder
	module  string
	dir     string
	version string
	// own are the versions of programs that don't share that of Kubernetes.
	own map[string]string
}

// recipe says how a program is built; a cached program made from another recipe is linked again. Without a version
// stamp the programs call themselves v0.0.0 and clients warn about the skew.
func (b builder) recipe(name string) (pkg, ldflags, tags string) {
	ldflags = "-s -w"
	switch {
	case name == Prometheus:
		// A lab's server reads its targets from a file; without the clients of twenty clouds there is half as much to
		// compile. The web page needs npm and is left out.
		tags = "remove_all_sd,netgo"
	case name != Etcd:
		major, minor, _ := strings.Cut(strings.TrimPrefix(b.version, "v"), ".")
		minor, _, _ = strings.Cut(minor, ".")
		for _, v := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
			ldflags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
				v, b.version, major, minor)
		}
	}
	return packages[name], ldflags, tags
}

// stamp identifies a build. The cache directory is per Kubernetes version; some programs have one of their own.
func (b builder) stamp(name string) string {
	pkg, ldflags, tags := b.recipe(name)
	if v := b.own[name]; v != "" {
		pkg += "@" + v
	}
	stamp := pkg + " " + ldflags
	if tags != "" {
		stamp += " -tags " + tags
	}
	return stamp
}

func (b builder) manifestFile() string { return filepath.Join(b.dir, "built.json") }

func (b builder) manifest() map[string]string {
	m := map[string]string{}
	if raw, err := os.ReadFile(b.manifestFile()); err == nil {
		_ = json.Unmarshal(raw, &m) // a broken file means that nothing is known, so everything is linked again
	}
	return m
}

func (b builder) missing(names []string) []string {
	built := b.manifest()
	var out []string
	for _, name := range names {
		if built[name] != b.stamp(name) || !executable(filepath.Join(b.dir, name)) {
			out = append(out, name)
		}
	}
	return out
}

func (b builder) build(ctx context.Context, names []string) error {
	gobin, err := exec.LookPath("go")
	if err != nil {
		return errors.New(strings.Join(names, ", ") + " must be built and there is no go command on PATH: install Go 1.26; for a control plane KUBEBUILDER_ASSETS may name a directory of one instead")
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return fmt.Errorf("make the cache directory: %w", err)
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	names = b.missing(names) // another lab may have built them while this one waited
	if len(names) == 0 {
		return nil
	}
	if err := b.checkDisk(ctx, gobin); err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "building %s%s\n", strings.Join(names, ", "), b.origin(names))
	start := time.Now()
	for i, name := range names {
		if err := b.one(ctx, gobin, name, i+1, len(names), start); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.Out, "built %d programs in %s\n", len(names), time.Since(start).Round(time.Second))
	return nil
}

// origin says what is built and what it costs.
func (b builder) origin(names []string) string {
	if len(names) == 1 && names[0] == Prometheus {
		return fmt.Sprintf(" (%s) into %s; a few minutes the first time on two cores, kept for later", b.own[Prometheus], b.dir)
	}
	return fmt.Sprintf(" (Kubernetes %s) into %s; about 10 minutes the first time on two cores, kept for later", b.version, b.dir)
}

// lock makes a second lab wait for the first one's build rather than compile the same packages beside it.
func (b builder) lock(ctx context.Context) (func(), error) {
	f, err := os.OpenFile(filepath.Join(b.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the cache directory: %w", err)
	}
	told := false
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		if !told {
			fmt.Fprintf(b.Out, "another ome-lab is building into %s; waiting for it\n", b.dir)
			told = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (b builder) checkDisk(ctx context.Context, gobin string) error {
	dirs := []string{b.dir}
	cmd := exec.CommandContext(ctx, gobin, "env", "GOCACHE", "GOMODCACHE")
	cmd.Dir = b.module
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("run %s env: %w", gobin, err)
	}
	dirs = append(dirs, strings.Fields(string(out))...)
	for _, dir := range dirs {
		free, err := FreeBytes(dir)
		if err != nil {
			return err
		}
		if free < minFree {
			return fmt.Errorf("building the control plane needs %d GiB of disk and %s has %.1f GiB free: free some, or point XDG_CACHE_HOME, GOCACHE and GOMODCACHE elsewhere",
				minFree>>30, dir, float64(free)/(1<<30))
		}
	}
	return nil
}

// FreeBytes asks the file system that dir is on, or will be on once it is made.
func FreeBytes(dir string) (uint64, error) {
	for {
		var st syscall.Statfs_t
		err := syscall.Statfs(dir, &st)
		if err == nil {
			return uint64(st.Bavail) * uint64(st.Bsize), nil
		}
		up := filepath.Dir(dir)
		if !errors.Is(err, syscall.ENOENT) || up == dir {
			return 0, fmt.Errorf("read the free space of %s: %w", dir, err)
		}
		dir = up
	}
}

func (b builder) one(ctx context.Context, gobin, name string, n, of int, start time.Time) error {
	pkg, ldflags, tags := b.recipe(name)
	tmp, err := os.MkdirTemp(b.dir, ".build-")
	if err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	defer os.RemoveAll(tmp)
	bin := filepath.Join(tmp, name)

	cmd := exec.Command(gobin, "build", "-v", "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", ldflags, "-o", bin, pkg)
	cmd.Dir = filepath.Join(b.module, modules[name])
	cmd.Env = append(os.Environ(), "GOWORK=off")
	stderr, pipe, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	defer stderr.Close()
	cmd.Stderr = pipe
	if err := process.StartTied(cmd); err != nil {
		pipe.Close()
		return fmt.Errorf("build %s: start %s: %w", name, gobin, err)
	}
	pipe.Close()

	p := newProgress(b.Out, b.TTY, fmt.Sprintf("%d of %d: %s", n, of, name), start)
	var lines buildLog
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines.read(stderr, p)
	}()
	stopProgress := p.run()
	// An interrupt lets the go command remove its work directory; the group gets the compilers too.
	stopWatch := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) })
	err = cmd.Wait()
	stopWatch()
	<-read
	stopProgress()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return buildError(name, err, lines.errors())
	}
	if err := os.Rename(bin, filepath.Join(b.dir, name)); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	return b.record(name)
}

func (b builder) record(name string) error {
	m := b.manifest()
	m[name] = b.stamp(name)
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	tmp := b.manifestFile() + ".tmp"
	if err := os.WriteFile(tmp, append(raw, '\n'), 0o644); err != nil {
		return fmt.Errorf("record the build of %s: %w", name, err)
	}
	if err := os.Rename(tmp, b.manifestFile()); err != nil {
		return fmt.Errorf("record the build of %s: %w", name, err)
	}
	return nil
}

// buildError turns the go command's last words into one line with a way out.
func buildError(name string, err error, said string) error {
	out := ""
	switch {
	case strings.Contains(said, "no space left on device"):
		out = "; the disk filled up: free some space and run it again, what was compiled is kept"
	case strings.Contains(said, "dial tcp") || strings.Contains(said, "no such host") || strings.Contains(said, "connection refused") || strings.Contains(said, "GOPROXY"):
		out = "; a module could not be fetched: check the network and GOPROXY, or set KUBEBUILDER_ASSETS to programs you have"
	case strings.Contains(said, "requires go >="):
		out = "; the go command is too old: install the version named above"
	case strings.Contains(said, "signal: killed"):
		out = "; the compiler was killed, most likely for lack of memory: close something, or set GOFLAGS=-p=1"
	}
	if said == "" {
		said = err.Error()
	}
	return fmt.Errorf("build %s: %s%s", name, said, out)
}

// buildLog sorts the go command's output: compiled packages and fetched modules feed the progress line, the rest is
// kept for an error.
type buildLog struct {
	mu   sync.Mutex
	rest []string
}

func (l *buildLog) read(r io.Reader, p *progress) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := string(bytes.TrimSpace(sc.Bytes()))
		switch {
		case line == "":
		case strings.HasPrefix(line, "go: downloading "):
			p.fetched()
		case !strings.ContainsAny(line, " \t:"):
			p.compiled()
		default:
			l.mu.Lock()
			if l.rest = append(l.rest, line); len(l.rest) > 20 {
				l.rest = l.rest[1:]
			}
			l.mu.Unlock()
		}
	}
}

func (l *buildLog) errors() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.rest, "\n")
}
