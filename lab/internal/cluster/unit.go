package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"ome.io/ome/lab/internal/process"
)

const (
	portAttempts = 5
	bootTimeout  = 240 * time.Second
	stopGrace    = 10 * time.Second
)

// unit is one program of the lab with the ports it was given. A unit that dies unasked is started again, as whatever
// runs the control plane of a real cluster would do.
type unit struct {
	name      string
	portNames []string
	spec      func(ports map[string]int) (process.Spec, error)
	health    func(ports map[string]int) string
	// prepare runs before each start with new ports; ready, if set, must hold in addition to the health URL.
	prepare func(ctx context.Context, ports map[string]int) error
	ready   func(ctx context.Context, ports map[string]int) error

	// ops orders starts and stops; mu guards the fields below it.
	ops      sync.Mutex
	mu       sync.Mutex
	ports    map[string]int
	proc     *process.Process
	wanted   bool
	restarts int
}

func (u *unit) port(name string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ports[name]
}

func (u *unit) record() Component {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := Component{Name: u.name, Ports: u.ports, Restarts: u.restarts, Stopped: !u.wanted}
	if u.proc != nil {
		c.Identity = u.proc.Identity
	}
	if u.ports != nil {
		c.Health = u.health(u.ports)
	}
	return c
}

// boot gives the unit ports, starts it and waits until it works. A port that somebody else took in between is
// replaced; every other failure is final and carries the end of the log.
func (s *supervisor) boot(ctx context.Context, u *unit) error {
	u.ops.Lock()
	defer u.ops.Unlock()
	var err error
	for range portAttempts {
		var list []int
		if list, err = process.FreePorts(len(u.portNames)); err != nil {
			return err
		}
		ports := map[string]int{}
		for i, name := range u.portNames {
			ports[name] = list[i]
		}
		u.mu.Lock()
		u.ports = ports
		u.mu.Unlock()
		if err = s.launch(ctx, u); err == nil {
			go s.watch(u)
			return nil
		}
		var ended *endedError
		if !errors.As(err, &ended) || !process.PortTaken(ended.log) {
			return err
		}
		s.log.Info("a port was taken meanwhile; trying others", "component", u.name, "ports", ports)
	}
	return fmt.Errorf("%w; gave up after %d sets of ports", err, portAttempts)
}

// endedError is a program that ended before it worked.
type endedError struct {
	name, path, log string
	err             error
}

func (e *endedError) Error() string {
	return fmt.Sprintf("%s ended before it was ready (%v); the end of %s:\n%s", e.name, e.err, e.path, lastLines(e.log, 8))
}

// launch starts the unit on the ports it has and waits until it works. The caller holds u.ops.
func (s *supervisor) launch(ctx context.Context, u *unit) error {
	u.mu.Lock()
	ports := u.ports
	u.mu.Unlock()
	if u.prepare != nil {
		if err := u.prepare(ctx, ports); err != nil {
			return err
		}
	}
	spec, err := u.spec(ports)
	if err != nil {
		return err
	}
	proc, err := process.Start(spec)
	if err != nil {
		return err
	}
	u.mu.Lock()
	u.proc, u.wanted = proc, true
	u.mu.Unlock()
	s.publish()
	s.log.Info("started", "component", u.name, "pid", proc.PID, "ports", ports)

	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	var last error
	for {
		if last = s.probe(ctx, u.health(ports)); last == nil && u.ready != nil {
			last = u.ready(ctx, ports)
		}
		if last == nil {
			return nil
		}
		select {
		case <-proc.Done():
			_, how := proc.Exited()
			return &endedError{name: u.name, path: spec.LogFile, log: process.ReadFrom(spec.LogFile, proc.LogStart), err: how}
		case <-ctx.Done():
			_ = proc.Kill()
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%s is not ready after %s: %w; see %s", u.name, bootTimeout, last, spec.LogFile)
			}
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// watch starts the unit again when it ends unasked.
func (s *supervisor) watch(u *unit) {
	wait := time.Second
	for {
		u.mu.Lock()
		proc := u.proc
		u.mu.Unlock()
		began := time.Now()
		select {
		case <-s.ctx.Done():
			return
		case <-proc.Done():
		}
		if !s.revive(u, proc, &wait, began) {
			return
		}
	}
}

func (s *supervisor) revive(u *unit, proc *process.Process, wait *time.Duration, began time.Time) bool {
	u.mu.Lock()
	wanted := u.wanted && u.proc == proc
	u.mu.Unlock()
	if !wanted {
		return false // stopped on request; the next start brings a watch of its own
	}
	_, how := proc.Exited()
	if time.Since(began) > 30*time.Second {
		*wait = time.Second
	}
	s.log.Warn("ended unasked; starting it again", "component", u.name, "pid", proc.PID, "how", how.Error(), "in", *wait)
	select {
	case <-s.ctx.Done():
		return false
	case <-time.After(*wait):
	}
	*wait = min(2**wait, 10*time.Second)
	u.ops.Lock()
	defer u.ops.Unlock()
	u.mu.Lock()
	wanted = u.wanted && u.proc == proc
	if wanted {
		u.restarts++
	}
	u.mu.Unlock()
	if !wanted {
		return false
	}
	if err := s.launch(s.ctx, u); err != nil {
		s.log.Error("start it again", "component", u.name, "err", err)
	}
	return s.ctx.Err() == nil
}

// stop ends the unit and keeps it down. With kill it gets no chance to clean up.
func (s *supervisor) stop(u *unit, kill bool) error {
	// A start that waits for readiness holds ops until its process ends, so the first end comes before the lock; the
	// second catches a process that was started in between.
	err := s.end(u, kill)
	u.ops.Lock()
	defer u.ops.Unlock()
	err = errors.Join(err, s.end(u, kill))
	s.publish()
	return err
}

func (s *supervisor) end(u *unit, kill bool) error {
	u.mu.Lock()
	proc := u.proc
	u.wanted = false
	u.mu.Unlock()
	if proc == nil {
		return nil
	}
	if gone, _ := proc.Exited(); gone {
		return nil
	}
	defer s.log.Info("stopped", "component", u.name, "pid", proc.PID, "kill", kill)
	if kill {
		return proc.Kill()
	}
	return proc.Stop(stopGrace)
}

// start brings a stopped unit back on the ports it had.
func (s *supervisor) start(ctx context.Context, u *unit) error {
	u.ops.Lock()
	defer u.ops.Unlock()
	u.mu.Lock()
	proc, wanted := u.proc, u.wanted
	u.mu.Unlock()
	if wanted && proc != nil {
		if gone, _ := proc.Exited(); !gone {
			return nil
		}
	}
	if err := s.launch(ctx, u); err != nil {
		_ = s.end(u, true)
		return err
	}
	go s.watch(u)
	return nil
}

func (s *supervisor) probe(ctx context.Context, url string) error { return probe(ctx, s.http, url) }

func probe(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, res.Status, lastLines(string(body), 3))
	}
	return nil
}
