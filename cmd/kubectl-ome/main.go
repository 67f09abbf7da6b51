// Command kubectl-ome is the kubectl plugin: reports that explain a rollout, and
// guarded actions that change it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"ome.io/ome/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default returns: a second one kills at once.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.New().Run(ctx, os.Args[1:]))
}
