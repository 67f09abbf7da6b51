package cluster

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

var errLocked = errors.New("locked")

// takeLock takes the directory for one supervisor. The kernel lets go of it when the process ends, however it ends.
func (l Layout) takeLock() (*os.File, error) {
	f, err := os.OpenFile(l.lock(), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the lab's directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("lock the lab's directory: %w", err)
	}
	return f, nil
}

// locked reports whether a supervisor holds the directory.
func (l Layout) locked() bool {
	f, err := os.OpenFile(l.lock(), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

func (l Layout) inUse() error {
	s, err := l.Load()
	if err != nil {
		return fmt.Errorf("%s is in use by a lab that is starting or stopping: wait, or choose another --dir", l.Dir)
	}
	return fmt.Errorf("%s is in use by a running lab (process %d): run `ome-lab down --dir %s` first, or choose another --dir",
		l.Dir, s.Supervisor.PID, l.Dir)
}
