package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"ome.io/ome/lab/internal/binaries"
	"ome.io/ome/lab/internal/cluster"
)

func newUp(g *globals) *cobra.Command {
	var o cluster.Options
	var noManager, withPrometheus bool
	var managerBin string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a lab and return when everything in it is ready",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := g.layout()
			if err != nil {
				return err
			}
			o.Dir = l.Dir
			if !noManager {
				if o.Manager, err = cluster.FindManager(managerBin); err != nil {
					return err
				}
			}
			if err := o.Complete(); err != nil {
				return err
			}
			set, err := finder().Ensure(cmd.Context())
			if err != nil {
				return err
			}
			o.Version, o.Binaries = set.Version, map[string]string{}
			for _, name := range binaries.ControlPlane {
				o.Binaries[name] = set.Path(name)
			}
			if withPrometheus {
				if o.Prometheus, err = finder().EnsurePrometheus(cmd.Context()); err != nil {
					return err
				}
			}
			exe, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			out := cmd.OutOrStdout()
			if err := cluster.Up(cmd.Context(), exe, o, out); err != nil {
				return err
			}
			fmt.Fprintf(out, "  export KUBECONFIG=%s\n", l.Kubeconfig())
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Nodes, "nodes", 3, "number of simulated nodes")
	f.BoolVar(&noManager, "no-manager", false, "leave out the manager and its webhooks")
	f.StringVar(&managerBin, "manager-bin", "", "path of ome-manager (default: beside this program)")
	f.StringArrayVar(&o.ManagerFlags, "manager-flag", nil, "a flag for ome-manager, such as --manager-flag=--v=4; may be repeated")
	f.StringVar(&o.Config, "config-dir", "", "directory with the product's crd, rbac and webhook manifests (default: config of the checkout)")
	f.StringSliceVar(&o.Components, "components", nil, "what to add to the default installation, such as rolloutpolicy: folders of components in the config directory")
	f.BoolVar(&withPrometheus, "prometheus", false, "a Prometheus that scrapes the pods, named to the manager for the analysis of canaries; built the first time")
	f.DurationVar(&o.NodeGrace, "node-grace", 5*time.Second, "how long a silent node counts as ready; longer on a busy machine")
	f.BoolVar(&o.Audit, "audit", false, "write logs/audit.log, one JSON line for each request the API server answered")
	return cmd
}

func newDown(g *globals) *cobra.Command {
	var purge bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a lab and remove its data; its logs stay",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := g.layout()
			if err != nil {
				return err
			}
			return l.Down(purge, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "remove the logs and the directory too")
	return cmd
}

func newBuild() *cobra.Command {
	var kubectl, withPrometheus bool
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Find or build the control plane's programs and print their directory",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := finder().Ensure(cmd.Context())
			if err != nil {
				return err
			}
			if kubectl {
				if _, err := finder().EnsureKubectl(cmd.Context()); err != nil {
					return err
				}
			}
			if withPrometheus {
				if _, err := finder().EnsurePrometheus(cmd.Context()); err != nil {
					return err
				}
			}
			fmt.Fprintln(cmd.OutOrStdout(), set.Dir)
			return nil
		},
	}
	cmd.Flags().BoolVar(&withPrometheus, "prometheus", false, "Prometheus too")
	cmd.Flags().BoolVar(&kubectl, "kubectl", false, "kubectl too, when none is on PATH")
	return cmd
}
