package cluster

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"ome.io/ome/lab/internal/process"
)

// supervisorGrace is more than an orderly shutdown of every component takes.
const supervisorGrace = 60 * time.Second

// Down stops the lab in l and removes its data; purge removes the logs too. Nothing to stop is no error.
func (l Layout) Down(purge bool, out io.Writer) error {
	st, err := l.Load()
	switch {
	case errors.Is(err, ErrNoLab):
		if l.locked() {
			return l.inUse()
		}
		fmt.Fprintf(out, "no lab is up in %s\n", l.Dir)
	case err != nil:
		return err
	default:
		if err := endSupervisor(st.Supervisor, l); err != nil {
			return err
		}
		fmt.Fprintf(out, "lab in %s is down\n", l.Dir)
	}
	if _, err := os.Stat(l.lock()); err != nil {
		return nil // no lab was ever here: nothing in this directory is ours
	}
	if purge {
		return l.purge()
	}
	return l.clean(false)
}

// endSupervisor stops a supervisor and makes sure of its children, whom it may have lost the chance to stop.
func endSupervisor(id process.Identity, l Layout) error {
	if err := id.End(supervisorGrace); err != nil {
		return fmt.Errorf("stop the lab's supervisor: %w", err)
	}
	st, err := l.Load()
	if err != nil {
		return nil // it had started nothing yet
	}
	return endComponents(st, slog.New(slog.DiscardHandler))
}

func endComponents(st *State, log *slog.Logger) error {
	var errs []error
	for i := len(st.Components) - 1; i >= 0; i-- {
		c := st.Components[i]
		if !c.Alive() {
			continue
		}
		log.Warn("ending a process that a dead supervisor left", "component", c.Name, "pid", c.PID)
		if err := c.End(stopGrace); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", c.Name, err))
		}
	}
	return errors.Join(errs...)
}
