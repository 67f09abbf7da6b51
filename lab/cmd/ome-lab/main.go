// Command ome-lab runs a whole Kubernetes on one machine: the real control plane, simulated nodes, stub engines and
// the manager of this project.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// A closed terminal counts as Ctrl-C: neither may leave half a lab behind.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := newRoot().ExecuteContext(ctx)
	if err == nil {
		return
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		os.Exit(130)
	}
	var silent exitCode
	if errors.As(err, &silent) {
		os.Exit(int(silent))
	}
	fmt.Fprintln(os.Stderr, "ome-lab:", err)
	os.Exit(1)
}

// exitCode ends the program without another message.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }
