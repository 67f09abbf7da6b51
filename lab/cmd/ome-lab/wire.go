package main

import (
	"context"

	"github.com/spf13/cobra"

	"ome.io/ome/lab/internal/cluster"
	"ome.io/ome/lab/internal/node"
)

// simulator runs the lab's nodes inside the supervisor.
func simulator() cluster.Simulator {
	return func(ctx context.Context, cfg cluster.NodeConfig) error {
		return node.Run(ctx, node.Config{
			RESTConfig:  cfg.REST,
			Nodes:       cfg.Nodes,
			Dir:         cfg.Dir,
			Log:         cfg.Log,
			ServingCert: &cfg.Serving,
			ClientCAs:   cfg.ClientCAs,
			Metrics:     cfg.Metrics,
		})
	}
}

func addExtra(root *cobra.Command, g *globals) {
	root.AddCommand(newLoad(g), newNode(g), newDemo(g), newBench(g))
}
