package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"ome.io/ome/lab/internal/cluster"
)

// progressFD is the pipe that `up` reads; see cluster.Up.
const progressFD = 3

// newRun is the supervisor: `up` starts it in a session of its own.
func newRun() *cobra.Command {
	return &cobra.Command{
		Use: "run", Short: "Supervise a lab whose options come on stdin", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			raw, err := io.ReadAll(os.Stdin)
			if err != nil {
				return fmt.Errorf("read the options: %w", err)
			}
			var o cluster.Options
			if err := json.Unmarshal(raw, &o); err != nil {
				return fmt.Errorf("read the options: %w", err)
			}
			progress := os.NewFile(progressFD, "progress")
			if progress == nil {
				return errors.New("no progress pipe: `run` is started by `up`")
			}
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			return cluster.Supervise(cmd.Context(), o, simulator(), progress, log)
		},
	}
}
