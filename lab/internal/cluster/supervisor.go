package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ome.io/ome/lab/internal/metricsapi"
	"ome.io/ome/lab/internal/pki"
	"ome.io/ome/lab/internal/process"
)

// Progress is one line from the supervisor to the `up` that started it.
type Progress struct {
	Step  string        `json:"step,omitempty"`
	Took  time.Duration `json:"took,omitempty"`
	Note  string        `json:"note,omitempty"`
	Ready bool          `json:"ready,omitempty"`
	Error string        `json:"error,omitempty"`
}

const settleTimeout = 20 * time.Second

type supervisor struct {
	l   Layout
	o   Options
	sim Simulator
	log *slog.Logger

	ctx      context.Context
	fail     context.CancelCauseFunc
	nodesCtx context.Context
	progress *json.Encoder

	ca      *pki.CA
	admin   pki.Pair
	metrics *metricsapi.Server
	http    *http.Client
	server  string
	units   map[string]*unit
	order   []*unit

	nodesDone chan struct{}
	// failed means that the lab never got ready: nothing of it is worth keeping but the logs.
	failed bool

	mu      sync.Mutex
	phase   Phase
	self    process.Identity
	control string
	token   string
}

// Supervise runs a lab until ctx is done. It reports to progress until the lab is ready or has failed.
func Supervise(ctx context.Context, o Options, sim Simulator, progress io.Writer, log *slog.Logger) error {
	s := &supervisor{l: Layout{Dir: o.Dir}, o: o, sim: sim, log: log, progress: json.NewEncoder(progress), phase: Starting, units: map[string]*unit{}, metrics: &metricsapi.Server{}}
	err := s.run(ctx)
	if err != nil {
		_ = s.progress.Encode(Progress{Error: err.Error()})
	}
	return err
}

func (s *supervisor) run(parent context.Context) error {
	ctx, fail := context.WithCancelCause(parent)
	defer fail(nil)
	s.ctx, s.fail = ctx, fail
	lock, err := s.l.takeLock()
	if errors.Is(err, errLocked) {
		return s.l.inUse()
	} else if err != nil {
		return err
	}
	defer lock.Close()
	if err := s.startClean(); err != nil {
		return err
	}
	defer s.shutdown()
	nodesCtx, stopNodes := context.WithCancel(context.Background())
	s.nodesCtx = nodesCtx
	defer func() {
		// Nodes first: a kubelet that outlives its API server only fills the log.
		stopNodes()
		if s.nodesDone != nil {
			select {
			case <-s.nodesDone:
			case <-time.After(stopGrace):
				s.log.Warn("the simulated nodes did not stop in time", "after", stopGrace)
			}
		}
	}()
	if err := s.bringUp(ctx); err != nil {
		s.failed = true
		s.log.Error("bring up", "err", err)
		if cause := context.Cause(ctx); cause != nil && parent.Err() == nil {
			return cause
		}
		return err
	}
	s.setPhase(Ready)
	if err := s.progress.Encode(Progress{Ready: true}); err != nil {
		return fmt.Errorf("the command that started this lab went away: %w", err)
	}
	s.log.Info("ready")
	<-ctx.Done()
	if parent.Err() != nil {
		s.log.Info("asked to stop")
		return nil
	}
	s.log.Error("failed", "err", context.Cause(ctx))
	return context.Cause(ctx)
}

// startClean ends what a killed supervisor may have left and removes its data.
func (s *supervisor) startClean() error {
	if old, err := s.l.Load(); err == nil {
		note := fmt.Sprintf("the old lab in %s is gone (its supervisor, process %d, ended without `down`); starting clean", s.l.Dir, old.Supervisor.PID)
		if err := s.note(note); err != nil {
			return err
		}
		endComponents(old, s.log)
	}
	if err := s.l.clean(false); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.l.Logs())
	if err != nil {
		return fmt.Errorf("open the log directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() == "supervisor.log" {
			// Open already, for appending.
			if err := os.Truncate(s.l.Log("supervisor"), 0); err != nil {
				return fmt.Errorf("empty the old log: %w", err)
			}
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.l.Logs(), e.Name())); err != nil {
			return fmt.Errorf("remove the old logs: %w", err)
		}
	}
	self, err := process.Self()
	if err != nil {
		return err
	}
	s.self = self
	s.publish()
	return nil
}

func (s *supervisor) note(text string) error { return s.tell(Progress{Note: text}) }

func (s *supervisor) tell(p Progress) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.progress.Encode(p); err != nil {
		return fmt.Errorf("the command that started this lab went away: %w", err)
	}
	return nil
}

func (s *supervisor) step(name string, f func() error) error {
	began := time.Now()
	if err := f(); err != nil {
		return err
	}
	return s.tell(Progress{Step: name, Took: time.Since(began)})
}

func (s *supervisor) add(u *unit) *unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units[u.name] = u
	s.order = append(s.order, u)
	return u
}

func (s *supervisor) bringUp(ctx context.Context) error {
	if err := s.files(); err != nil {
		return err
	}
	cert, err := tls.X509KeyPair(s.admin.Cert, s.admin.Key)
	if err != nil {
		return fmt.Errorf("load the admin certificate: %w", err)
	}
	s.http = healthClient(s.ca, cert)
	stopControl, err := s.serveControl()
	if err != nil {
		return err
	}
	context.AfterFunc(s.ctx, stopControl)

	etcd, api := s.add(s.etcdUnit()), s.add(s.apiserverUnit())
	if err := s.step(etcd.name, func() error { return s.boot(ctx, etcd) }); err != nil {
		return err
	}
	if err := s.step(api.name, func() error { return s.boot(ctx, api) }); err != nil {
		return err
	}
	s.mu.Lock()
	s.server = localURL("https", api.port("secure"))
	s.mu.Unlock()
	if err := s.kubeconfigs(); err != nil {
		return err
	}
	kcm, sched := s.add(s.controllerManagerUnit()), s.add(s.schedulerUnit())
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return s.step(kcm.name, func() error {
			if err := s.boot(gctx, kcm); err != nil {
				return err
			}
			return s.podsCanBeMade(gctx)
		})
	})
	g.Go(func() error {
		return s.step(sched.name, func() error { return s.boot(gctx, sched) })
	})
	if s.sim != nil {
		g.Go(func() error {
			if err := s.step(fmt.Sprintf("%d nodes", s.o.Nodes), func() error { return s.simulate(gctx) }); err != nil {
				return err
			}
			return s.step("metrics API", func() error { return s.serveMetrics(gctx) })
		})
	}
	g.Go(func() error {
		if err := s.step("CRDs and roles", func() error { return s.installProduct(gctx) }); err != nil {
			return err
		}
		if s.o.Prometheus != "" { // the manager reads its address when it starts
			if err := s.step(PrometheusName, func() error { return s.scrape(gctx) }); err != nil {
				return err
			}
		}
		if s.o.Manager == "" {
			return nil
		}
		manager := s.add(s.managerUnit())
		return s.step(manager.name, func() error { return s.boot(gctx, manager) })
	})
	if err := g.Wait(); err != nil {
		return err
	}
	return s.settle(ctx)
}

// settle asks everything once more: what was started first may have fallen over while the rest came up.
func (s *supervisor) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for _, u := range s.order {
		for {
			u.mu.Lock()
			url, proc := u.health(u.ports), u.proc
			u.mu.Unlock()
			err := s.probe(ctx, url)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s was ready and is no more: %w; the end of %s:\n%s", u.name, err, proc.LogFile, process.Tail(proc.LogFile, 8))
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	return nil
}

func healthClient(ca *pki.CA, cert tls.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{cert}},
		MaxIdleConnsPerHost: 1, IdleConnTimeout: 5 * time.Second,
	}}
}

// shutdown stops the units in the reverse order of their start, so that each can still reach what it depends on.
func (s *supervisor) shutdown() {
	s.fail(nil)
	s.setPhase(Stopping)
	for i := len(s.order) - 1; i >= 0; i-- {
		if err := s.stop(s.order[i], false); err != nil {
			s.log.Error("stop", "component", s.order[i].name, "err", err)
		}
	}
	s.log.Info("stopped everything")
	if s.failed {
		if err := s.l.clean(false); err != nil {
			s.log.Error("clean up", "err", err)
		}
	}
}

func (s *supervisor) setPhase(p Phase) {
	s.mu.Lock()
	s.phase = p
	s.mu.Unlock()
	s.publish()
}

// publish writes state.json.
func (s *supervisor) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &State{Supervisor: s.self, Phase: s.phase, Server: s.server, Nodes: s.o.Nodes, Version: s.o.Version, Control: s.control, Token: s.token}
	for _, u := range s.order {
		st.Components = append(st.Components, u.record())
	}
	if err := s.l.save(st); err != nil {
		s.log.Error("publish the state", "err", err)
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
