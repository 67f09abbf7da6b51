package cluster

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
	"syscall"
	"time"

	"ome.io/ome/lab/internal/binaries"
	"ome.io/ome/lab/internal/process"
)

const minLabFree = 1 << 30

// Up starts a supervisor for o and returns when its lab is ready. Executable is this program, which runs the hidden
// `run` command. If ctx ends first, all that was started is stopped again.
func Up(ctx context.Context, executable string, o Options, out io.Writer) error {
	l := Layout{Dir: o.Dir}
	if l.locked() {
		return l.inUse()
	}
	if err := l.prepare(); err != nil {
		return err
	}
	if free, err := binaries.FreeBytes(l.Dir); err != nil {
		return err
	} else if free < minLabFree {
		return fmt.Errorf("a lab needs 1 GiB of disk and %s has %d MiB free: free some, or choose another --dir", l.Dir, free>>20)
	}
	began := time.Now()
	child, progress, err := startSupervisor(executable, o, l)
	if err != nil {
		return err
	}
	lines := make(chan Progress)
	go func() {
		defer close(lines)
		sc := bufio.NewScanner(progress)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			var p Progress
			if json.Unmarshal(sc.Bytes(), &p) == nil {
				lines <- p
			}
		}
	}()
	defer progress.Close()
	for {
		select {
		case <-ctx.Done():
			go func() {
				for range lines { // let the supervisor write while it stops
				}
			}()
			fmt.Fprintln(out, "interrupted; stopping what was started")
			if err := endSupervisor(child, l); err != nil {
				return err
			}
			return errors.Join(ctx.Err(), l.clean(false))
		case p, ok := <-lines:
			switch {
			case !ok:
				return fmt.Errorf("the supervisor ended before the lab was ready; the end of %s:\n%s", l.Log("supervisor"), process.Tail(l.Log("supervisor"), 15))
			case p.Error != "":
				child.WaitGone(2 * stopGrace)
				return errors.New(p.Error)
			case p.Note != "":
				fmt.Fprintln(out, p.Note)
			case p.Step != "":
				fmt.Fprintf(out, "  %-24s ready  %5.1fs\n", p.Step, p.Took.Seconds())
			case p.Ready:
				fmt.Fprintf(out, "lab is up after %.1fs in %s\n", time.Since(began).Seconds(), l.Dir)
				return nil
			}
		}
	}
}

func startSupervisor(executable string, o Options, l Layout) (process.Identity, *os.File, error) {
	fail := func(err error) (process.Identity, *os.File, error) {
		return process.Identity{}, nil, fmt.Errorf("start the supervisor: %w", err)
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return fail(err)
	}
	log, err := os.OpenFile(l.Log("supervisor"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fail(err)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer w.Close()
	// The options fit into a pipe's buffer, so that nobody has to stay to write them.
	optr, optw, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer optr.Close()
	if _, err := io.Copy(optw, bytes.NewReader(raw)); err != nil {
		return fail(err)
	}
	optw.Close()
	cmd := exec.Command(executable, "run")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = optr, log, log
	cmd.ExtraFiles = []*os.File{w}
	// A session of its own: it survives this command and its terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		r.Close()
		return fail(err)
	}
	id, err := process.Identify(cmd.Process.Pid)
	if err != nil {
		id = process.Identity{PID: cmd.Process.Pid}
	}
	go func() { _ = cmd.Wait() }()
	return id, r, nil
}
