package cli

import "github.com/spf13/cobra"

// instance groups what is done with single Instances and with the revisions that
// they failed at.
func (a *App) instance() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "instance",
		Short: "See the Instances of a service, and try held revisions again",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.addInstanceReads(cmd)
	return cmd
}
