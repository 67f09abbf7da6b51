package cli

import (
	"github.com/spf13/cobra"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/guarded"
)

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
	cmd.AddCommand(a.instanceReleaseHeld())
	return cmd
}

func (a *App) instanceReleaseHeld() *cobra.Command {
	var component, name string
	cmd := a.guarded(&cobra.Command{
		Use:   "release-held INFERENCESERVICE --component COMPONENT --revision REVISION",
		Short: "Ask for a held revision to be tried again (alpha)",
		Long: `Ask for a held revision to be tried again. ALPHA: flags and behavior can change.

A revision whose attempts are used up is Held: nothing starts at it any more. This
sets the annotation ome.io/release-held-revision of the component's InferenceReplica;
the controller answers by removing the retry block, and the revision is tried again
from its first attempt. Whatever made it fail is still there unless you changed it.
You see the exact change and confirm it first.`,
		Example: "  kubectl ome instance release-held chat -n prod --component=engine --revision=8be0917f\n" +
			"  kubectl ome instance release-held chat -n prod --component=engine --revision=chat-engine-8be0917f --dry-run=server --yes",
	}, func() (*guarded.Action, error) {
		req := guarded.Release{Component: v1beta1.ComponentType(component), Revision: name}
		if err := req.Check(); err != nil {
			return nil, err
		}
		return guarded.ReleaseHeld(req), nil
	})
	componentFlag(cmd, &component, "Component: engine, decoder or router (required)")
	cmd.Flags().StringVar(&name, "revision", "", "Held revision: its full name, or the eight characters of its hash (required)")
	return cmd
}
