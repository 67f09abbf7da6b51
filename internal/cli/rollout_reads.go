package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/view"
)

// rolloutReads are the reads of a rollout beside `rollout status`.
func (a *App) rolloutReads() []*cobra.Command {
	return []*cobra.Command{a.rolloutExplain()}
}

func (a *App) rolloutExplain() *cobra.Command {
	var output formats
	cmd := &cobra.Command{
		Use:   "explain INFERENCESERVICE",
		Short: "Explain which plan a rollout follows and what it waits for",
		Long: `Explain which plan a rollout follows and what it waits for.

On a terminal the answer comes first, in plain words, then each hold with its way
out. The table has three views: Declared, the groups of the spec; Live, what a run
that opens now would pin; and Effective, what moves the Instances: the pinned plan
during a run, else the live one. The command only reads.`,
		Example:           "  kubectl ome rollout explain chat -n prod\n  kubectl ome rollout explain chat -n prod -o json",
		Args:              oneService,
		ValidArgsFunction: a.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := output.parse()
			if err != nil {
				return err
			}
			return a.showRolloutExplain(cmd.Context(), args[0], format)
		},
	}
	output.add(cmd, true)
	return cmd
}

func (a *App) showRolloutExplain(ctx context.Context, name string, format guarded.Output) error {
	r, err := a.openReads(name)
	if err != nil {
		return err
	}
	service, err := r.service(ctx, name)
	if err != nil {
		return err
	}
	// Ages are held against the API server's clock, which stamped what they count from.
	now := a.Clock.Now()
	reference := r.serverTime()
	if reference.IsZero() {
		reference = now
	}
	report := view.BuildRolloutExplain(service, now)
	if format == guarded.OutputTable && a.Streams.OutIsTerminal {
		text := view.RolloutExplainText(report, reference, a.Streams.Width) + "\n"
		if _, err := io.WriteString(a.Streams.Out, text); err != nil {
			return guarded.Usage("write rollout explain report failed", guarded.Clean(err.Error()))
		}
	}
	return show(a, "rollout explain", report, format, view.RolloutExplainTable, view.RolloutExplainWide)
}
