package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Identity names one process for good: a pid alone is reused by the kernel, a pid with its start time is not.
type Identity struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

// Self returns the identity of the calling process.
func Self() (Identity, error) { return Identify(os.Getpid()) }

// Identify reads the start time of pid.
func Identify(pid int) (Identity, error) {
	start, err := startTime(pid)
	if err != nil {
		return Identity{}, fmt.Errorf("read the start time of process %d: %w", pid, err)
	}
	return Identity{PID: pid, Start: start}, nil
}

// Alive reports whether the process still runs and is the one that was identified.
func (i Identity) Alive() bool {
	if i.PID <= 0 || i.Start == "" {
		return false
	}
	if err := syscall.Kill(i.PID, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	start, err := startTime(i.PID)
	return err == nil && start == i.Start
}

// Signal sends sig only if the process is still the one identified; a process that is gone is no error.
func (i Identity) Signal(sig syscall.Signal) error {
	if !i.Alive() {
		return nil
	}
	if err := syscall.Kill(i.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %v to process %d: %w", sig, i.PID, err)
	}
	return nil
}

// WaitGone waits until the process has ended, for at most d.
func (i Identity) WaitGone(d time.Duration) bool {
	deadline := time.Now().Add(d)
	for i.Alive() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond) // not our child, so there is nothing to wait on
	}
	return true
}

// End asks the process to stop, waits for grace and then kills it.
func (i Identity) End(grace time.Duration) error {
	if err := i.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if i.WaitGone(grace) {
		return nil
	}
	if err := i.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !i.WaitGone(5 * time.Second) {
		return fmt.Errorf("process %d is still there 5s after SIGKILL", i.PID)
	}
	return nil
}
