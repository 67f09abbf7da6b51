// Command ome-manager runs the controllers and the admission webhooks of OME.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// The second signal ends the process at once: a write that hangs must not keep it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case err == errHelp:
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "ome-manager:", err)
		return 2
	case o.version:
		fmt.Fprintln(stdout, "ome-manager", buildVersion())
		return 0
	}
	if err := start(ctx, o, stderr); err != nil {
		fmt.Fprintln(stderr, "ome-manager:", err)
		return 1
	}
	return 0
}
