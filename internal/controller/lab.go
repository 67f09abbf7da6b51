package controller

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Crash makes the process kill itself at one write, as if it had lost power
// there. Only the lab uses it.
type Crash struct {
	// After is whether the write is sent first.
	After bool
	Kind  WriteKind
	// N counts the writes of the kind from 1.
	N int64
}

// ParseCrash reads before:KIND:N or after:KIND:N.
func ParseCrash(text string) (*Crash, error) {
	parts := strings.Split(text, ":")
	bad := func(why string) (*Crash, error) {
		return nil, fmt.Errorf("%q: %s; write before:KIND:N or after:KIND:N with KIND one of %v", text, why, WriteKinds())
	}
	if len(parts) != 3 {
		return bad("needs three parts")
	}
	if parts[0] != "before" && parts[0] != "after" {
		return bad("starts with neither before nor after")
	}
	k := WriteKind(parts[1])
	if !slices.Contains(WriteKinds(), k) {
		return bad("unknown kind of write")
	}
	n, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || n < 1 {
		return bad("N must be a number above 0")
	}
	return &Crash{After: parts[0] == "after", Kind: k, N: n}, nil
}

type crashWriter struct {
	next  Writer
	crash Crash
	count atomic.Int64
	kill  func()
}

// Wrap returns a writer that crashes.
func (c Crash) Wrap(next Writer) Writer {
	return &crashWriter{next: next, crash: c, kill: killSelf}
}

func (c *crashWriter) Write(ctx context.Context, w *Write) error {
	if w.Kind != c.crash.Kind || c.count.Add(1) != c.crash.N {
		return c.next.Write(ctx, w)
	}
	if !c.crash.After {
		c.kill()
	}
	err := c.next.Write(ctx, w)
	c.kill()
	return err
}

func killSelf() {
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {} // the signal is on its way; nothing else may run here
}
