package main

import (
	"github.com/spf13/cobra"

	"ome.io/ome/lab/internal/cluster"
)

func simulator() cluster.Simulator { return nil }

func addExtra(*cobra.Command, *globals) {}
