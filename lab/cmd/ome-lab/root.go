package main

import (
	"os"

	"github.com/spf13/cobra"

	"ome.io/ome/lab/internal/binaries"
	"ome.io/ome/lab/internal/cluster"
)

// globals are the flags that every command takes.
type globals struct {
	dirFlag string
}

func (g *globals) layout() (cluster.Layout, error) { return cluster.ResolveDir(g.dirFlag) }

// dir is the lab's directory, absolute.
func (g *globals) dir() (string, error) {
	l, err := g.layout()
	return l.Dir, err
}

func newRoot() *cobra.Command {
	g := &globals{}
	root := &cobra.Command{
		Use:           "ome-lab",
		Short:         "A whole Kubernetes on one machine, for demos, tests and benchmarks",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().StringVar(&g.dirFlag, "dir", "", "the lab's directory (default $OME_LAB_DIR, else .lab)")
	root.AddCommand(
		newUp(g), newDown(g), newStatus(g), newKubeconfig(g), newKubectl(g), newBuild(),
		newManager(g), newComponent(g), newRun(),
	)
	addExtra(root, g)
	return root
}

// finder prints the progress of builds to stderr, where it doesn't mix with what a command answers.
func finder() binaries.Finder {
	info, err := os.Stderr.Stat()
	return binaries.Finder{Out: os.Stderr, TTY: err == nil && info.Mode()&os.ModeCharDevice != 0}
}
