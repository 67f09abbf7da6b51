package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/view"
)

// rolloutReads are the reads of a rollout beside `rollout status`.
func (a *App) rolloutReads() []*cobra.Command {
	return []*cobra.Command{a.rolloutExplain(), a.rolloutHistory(), a.rolloutPreview(), a.rolloutValidate()}
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
	report := view.BuildRolloutExplain(service, a.Clock.Now())
	text := view.RolloutExplainText(report, r.ages(), a.Streams.Width)
	return showBelow(a, text, "rollout explain", report, format, view.RolloutExplainTable, view.RolloutExplainWide)
}

// ages is the time that ages are held against: that of the API server, by whose clock
// the controller's stamps are judged everywhere.
func (r *reads) ages() time.Time {
	if t := r.serverTime(); !t.IsZero() {
		return t
	}
	return r.app.Clock.Now()
}

// showBelow prints a report, and on a terminal the text for people above its table.
func showBelow[T any](a *App, text, what string, report *view.Report[T], format guarded.Output, table, wide func(*view.Report[T]) *view.Table) error {
	if format == guarded.OutputTable && a.Streams.OutIsTerminal {
		if _, err := io.WriteString(a.Streams.Out, text+"\n"); err != nil {
			return guarded.Usage("write "+what+" report failed", guarded.Clean(err.Error()))
		}
	}
	return show(a, what, report, format, table, wide)
}

func (a *App) rolloutHistory() *cobra.Command {
	var output formats
	cmd := &cobra.Command{
		Use:   "history INFERENCESERVICE",
		Short: "Show the runs that the status of a service keeps",
		Long: `Show the runs that the status of a service keeps: the open one, the one closed last
and a few before it, where their plans came from, and the revisions of each component.

It is bounded by what the status keeps, and no audit trail. The command only reads.`,
		Example:           "  kubectl ome rollout history chat -n prod\n  kubectl ome rollout history chat -n prod -o wide",
		Args:              oneService,
		ValidArgsFunction: a.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := output.parse()
			if err != nil {
				return err
			}
			return a.showRolloutHistory(cmd.Context(), args[0], format)
		},
	}
	output.add(cmd, true)
	return cmd
}

func (a *App) showRolloutHistory(ctx context.Context, name string, format guarded.Output) error {
	r, err := a.openReads(name)
	if err != nil {
		return err
	}
	service, err := r.service(ctx, name)
	if err != nil {
		return err
	}
	report := view.BuildRolloutHistory(service, a.Clock.Now())
	text := view.RolloutHistorySentence(service, report, r.ages()) + "\n"
	return showBelow(a, text, "rollout history", report, format, view.RolloutHistoryTable, view.RolloutHistoryWide)
}
