package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ome.io/ome/lab/internal/demo"
)

func newDemo(g *globals) *cobra.Command {
	var cfg demo.Config
	var canary bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a prefill/decode service roll as one, under load, with a pause; then clean up",
		Long: `Show the main job on a lab of its own, then clean up.

A prefill/decode service comes up; its engine and decoder roll to a new image together while requests
flow; the roll is paused, seen to hold, and resumed. Exits 1 when any of it did not happen, and names
what. The lab is in a new temporary directory unless --dir names one.

With --canary it is another story: an image that fails a fifth of its requests goes to one engine and
one decoder, a Prometheus sees the errors, and the canary rolls itself back; the fixed image goes out.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			info, err := os.Stdout.Stat()
			cfg.TTY = err == nil && info.Mode()&os.ModeCharDevice != 0
			cfg.Out = cmd.OutOrStdout()
			show := demo.Run
			if canary {
				show = demo.RunCanary
			}
			_, err = show(cmd.Context(), cfg)
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&canary, "canary", false, "the second act: a bad canary rolls itself back")
	f.BoolVar(&cfg.SkipDrain, "skip-drain", false, "negative control: turn the drain off and insist on lost requests")
	f.Float64Var(&cfg.Rate, "rate", 75, "requests a second, 50 or more")
	f.BoolVar(&cfg.Keep, "keep", false, "leave the lab up at the end")
	f.StringVar(&cfg.Bin, "bin-dir", "", "directory with kubectl-ome and ome-manager (default: that of this program)")
	f.StringVar(&cfg.Manager, "manager-bin", "", "path of ome-manager (default: in --bin-dir)")
	return cmd
}
