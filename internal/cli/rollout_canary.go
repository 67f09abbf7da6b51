package cli

import (
	"github.com/spf13/cobra"

	"ome.io/ome/internal/guarded"
)

// rolloutCanaries are the actions on a canary.
func (a *App) rolloutCanaries() []*cobra.Command {
	return []*cobra.Command{a.rolloutPromote(), a.rolloutRollback(), a.rolloutRetry()}
}

func (a *App) rolloutPromote() *cobra.Command {
	var override, release bool
	var group int
	cmd := &cobra.Command{
		Use:   "promote INFERENCESERVICE",
		Short: "Let a canary past the gate that waits for you (alpha)",
		Long: `Let a canary past the gate that waits for you. ALPHA: flags and behavior can change.

Sets the annotation ome.io/rollout-promote to the revision hash of the canary. One
promote passes one step: a step with a manual gate, or with --override-analysis one
that waits for its analysis. A timed gate opens by itself and can't be shortened. With
--release-hold it passes no gate but releases the hold that a repin has put before the
weight of a step. You see the exact change and confirm it first.`,
		Example: "  kubectl ome rollout promote chat -n prod\n  kubectl ome rollout promote chat -n prod --override-analysis --yes",
	}
	a.guarded(cmd, func() (*guarded.Action, error) {
		at, err := groupOf(cmd, group)
		return guarded.Promote(guarded.Promotion{Group: at, Override: override, ReleaseHold: release}), err
	})
	cmd.Flags().BoolVar(&override, "override-analysis", false, "Pass an analysis gate without its checks, warm-up and bake; requires --yes")
	cmd.Flags().BoolVar(&release, "release-hold", false, "Release the hold before the weight of a step; passes no gate; requires --yes")
	addGroup(cmd, &group)
	return cmd
}

func (a *App) rolloutRollback() *cobra.Command {
	var group int
	cmd := &cobra.Command{
		Use:   "rollback INFERENCESERVICE",
		Short: "Return a canary to its stable revision (alpha)",
		Long: `Return a canary to its stable revision. ALPHA: flags and behavior can change.

Sets the annotation ome.io/rollout-rollback to true. Every component of the canary goes
back to its own stable revision, from any step and also when the canary has failed. The
spec isn't touched: it still asks for the rejected revision, which stays away until
another target comes or "rollout retry" asks for it. You see the exact change and
confirm it first.`,
		Example: "  kubectl ome rollout rollback chat -n prod\n  kubectl ome rollout rollback chat -n prod --dry-run=server --yes",
	}
	a.guarded(cmd, func() (*guarded.Action, error) {
		at, err := groupOf(cmd, group)
		return guarded.Rollback(at), err
	})
	addGroup(cmd, &group)
	return cmd
}

func (a *App) rolloutRetry() *cobra.Command {
	var group int
	cmd := &cobra.Command{
		Use:   "retry INFERENCESERVICE",
		Short: "Try the revision of a failed or rolled-back canary again (alpha)",
		Long: `Try the revision of a failed or rolled-back canary again. ALPHA: flags and behavior can
change.

Sets the annotation ome.io/rollout-resume to the hash of that revision. The canary starts
again at its first step, with fresh clocks and counters, without a change of the spec.

It has nothing to do with "rollout resume", which lifts a pause and tries nothing again,
nor with "instance release-held", which is about a revision whose Instances can't start.
You see the exact change and confirm it first.`,
		Example: "  kubectl ome rollout retry chat -n prod\n  kubectl ome rollout retry chat -n prod --dry-run=server --yes",
	}
	a.guarded(cmd, func() (*guarded.Action, error) {
		at, err := groupOf(cmd, group)
		return guarded.Retry(at), err
	})
	addGroup(cmd, &group)
	return cmd
}

func addGroup(cmd *cobra.Command, group *int) {
	cmd.Flags().IntVar(group, "group", 0, "Index of the canary group in the plan; needed when there are several")
	fixed(cmd, "group", "0", "1", "2")
}

// groupOf is the group that was asked for, if one was.
func groupOf(cmd *cobra.Command, group int) (int, error) {
	if !cmd.Flags().Changed("group") {
		return guarded.AnyGroup, nil
	}
	return group, guarded.CheckGroup(group)
}
