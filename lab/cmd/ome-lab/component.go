package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"ome.io/ome/lab/internal/cluster"
)

var orders = map[string]string{
	"stop":  "Ask it to end and keep it down",
	"kill":  "End it with SIGKILL and keep it down",
	"start": "Start it on the ports it had and wait until it is ready",
}

func newManager(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "manager", Short: "Stop, kill or start the lab's manager"}
	for _, verb := range []string{"stop", "kill", "start"} {
		cmd.AddCommand(&cobra.Command{
			Use: verb, Short: orders[verb], Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return g.order(cmd, cluster.ManagerName, verb) },
		})
	}
	return cmd
}

func newComponent(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "component NAME stop|kill|start", Short: "Stop, kill or start one program of the lab", Args: cobra.ExactArgs(2), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, ok := orders[args[1]]; !ok {
				return fmt.Errorf("unknown order %q: want stop, kill or start", args[1])
			}
			return g.order(cmd, args[0], args[1])
		},
	}
}

func (g *globals) order(cmd *cobra.Command, name, verb string) error {
	l, err := g.layout()
	if err != nil {
		return err
	}
	return l.Order(cmd.Context(), name, verb)
}
