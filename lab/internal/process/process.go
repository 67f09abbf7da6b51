package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Spec says what to run and where its output goes.
type Spec struct {
	Name string
	Path string
	Args []string
	// Env is added to the environment of the supervisor.
	Env []string
	Dir string
	// LogFile takes stdout and stderr, appended.
	LogFile string
}

// Process is a running child.
type Process struct {
	Identity
	Name    string
	LogFile string
	// LogStart is the size of the log before this run wrote to it.
	LogStart int64

	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	err  error
}

// spawner runs functions on one OS thread that never ends. The parent-death signal follows the thread that started
// the child, not the process: without this a child could be killed because an idle Go thread went away.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// StartTied starts cmd so that it dies with this process.
func StartTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttr()
	res := make(chan error, 1)
	spawner() <- func() { res <- cmd.Start() }
	return <-res
}

// Start runs spec.
func Start(spec Spec) (*Process, error) {
	if err := os.MkdirAll(filepath.Dir(spec.LogFile), 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer log.Close()
	size, _ := log.Seek(0, io.SeekEnd)
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Dir = spec.Dir
	cmd.Stdout, cmd.Stderr = log, log
	if err := StartTied(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{Name: spec.Name, LogFile: spec.LogFile, LogStart: size, cmd: cmd, done: make(chan struct{})}
	// The child can end before its start time is read; Wait below tells, and the pid can't be reused until then.
	p.Identity = Identity{PID: cmd.Process.Pid}
	if id, err := Identify(cmd.Process.Pid); err == nil {
		p.Identity = id
	}
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited reports whether the process has ended, and how.
func (p *Process) Exited() (bool, error) {
	select {
	case <-p.done:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.err == nil {
			return true, errors.New("exit status 0")
		}
		return true, p.err
	default:
		return false, nil
	}
}

// Signal sends sig to the child; a child that has ended is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to %s (process %d): %w", sig, p.Name, p.PID, err)
	}
	return nil
}

// Stop asks the child to end, and kills it after grace.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.done:
		return nil
	case <-t.C:
	}
	return p.Kill()
}

// Kill ends the child at once and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}
