package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ome.io/ome/lab/internal/bench"
)

func newBench(g *globals) *cobra.Command {
	var cfg bench.Config
	var output, goBench, save string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Roll many Instances beside Deployments of the same pods; count requests and compare times",
		Long: `Roll many Instances beside Deployments of the same pods, on a lab of its own.

An InferenceService, a Deployment whose pods wait for the same readiness gate, and a plain Deployment
roll to a new image in turn, each with maxSurge 25%. With --strategies the InferenceService rolls by
SurgeThenDrain, RecreatePod and InPlaceIfPossible, each beside a Deployment that may surge or lack as
many pods and is behind as many Services, and one of the Deployments has a single Service. Prints times, ratios, requests by client and
verb from the API server's audit log, CPU and memory, and which budgets were met. Exits 1 only when
something could not be measured.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output %q: want table or json", output)
			}
			exe, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			cfg.Executable, cfg.Finder = exe, finder()
			if cfg.Bin == "" {
				cfg.Bin = filepath.Dir(exe)
			}
			if g.dirFlag != "" {
				if cfg.Dir, err = g.dir(); err != nil {
					return err
				}
			}
			if cfg.Strategies {
				cfg.Services = 0 // each Deployment has its own
			}
			// What is measured goes to stdout, how it goes on to stderr.
			cfg.Out = cmd.ErrOrStderr()
			var benchmarks []bench.GoBench
			if goBench != "" {
				f, err := os.Open(goBench)
				if err != nil {
					return fmt.Errorf("--go-bench: %w", err)
				}
				defer f.Close()
				if benchmarks, err = bench.ParseGoBench(f); err != nil {
					return fmt.Errorf("--go-bench %s: %w", goBench, err)
				}
			}
			report, err := bench.Run(cmd.Context(), cfg)
			if report == nil {
				return err
			}
			report.GoBench = benchmarks
			report.Finish()
			raw, failed := json.MarshalIndent(report, "", "  ")
			if failed != nil {
				return failed
			}
			raw = append(raw, '\n')
			if save != "" {
				if failed := os.WriteFile(save, raw, 0o644); failed != nil {
					err = errors.Join(err, fmt.Errorf("--save: %w", failed))
				}
			}
			if output == "json" {
				_, failed = cmd.OutOrStdout().Write(raw)
			} else {
				report.Print(cmd.OutOrStdout())
			}
			return errors.Join(err, failed)
		},
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Instances, "instances", 500, "how many Instances and pods roll")
	f.IntVar(&cfg.Rounds, "rounds", 2, "how often each rolls; every other round in the opposite order")
	f.IntVar(&cfg.Services, "services", 1, "Services that select each Deployment's pods; an InferenceService has several")
	f.BoolVar(&cfg.Strategies, "strategies", false, "roll by each update strategy, beside the Deployment that is allowed the same")
	f.BoolVar(&cfg.NoEndpoints, "no-endpoints", false, "turn off the controller that writes the older Endpoints objects, to see what they cost")
	f.IntVar(&cfg.Nodes, "nodes", 0, "nodes of the lab (default: as many as the pods need)")
	f.IntVar(&cfg.Runs, "runs", 20, "how often each command is timed; 0 for none")
	f.DurationVar(&cfg.Patience, "patience", 0, "the longest any one thing may take (default: by the number of Instances)")
	f.StringVar(&cfg.Bin, "bin-dir", "", "directory with ome-manager and kubectl-ome (default: that of this program)")
	f.StringVar(&goBench, "go-bench", "", "a file with the output of go test -bench, to be judged in the same report")
	f.StringVar(&save, "save", "", "write the report as JSON to this file too")
	f.BoolVar(&cfg.Keep, "keep", false, "leave the lab up at the end")
	f.StringVarP(&output, "output", "o", "table", "table or json")
	cmd.MarkFlagsMutuallyExclusive("services", "strategies")
	return cmd
}
