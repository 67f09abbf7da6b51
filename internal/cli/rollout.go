package cli

import (
	"bytes"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/view"
)

func (a *App) rollout() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "See, hold and release the rollout of a service",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.rolloutStatus(), a.rolloutPause(), a.rolloutResume(), a.rolloutRepin())
	cmd.AddCommand(a.rolloutCanaries()...)
	reads := a.rolloutReads()
	for _, read := range reads {
		if read.Name() == "validate" {
			a.withQuery(read)
		}
	}
	cmd.AddCommand(reads...)
	return cmd
}

func (a *App) rolloutStatus() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status INFERENCESERVICE",
		Short: "Show where a rollout is, per component",
		Long: `Show where a rollout is, per component: group, phase, canary step and revisions.

STATE is REPORTED when the controller has stamped its status with the generation
of the newest spec, and Unknown when it hasn't. The command only reads, and exits
0 whatever the rollout's health is.`,
		Example:           "  kubectl ome rollout status chat -n prod\n  kubectl ome rollout status chat -n prod -o json",
		Args:              oneService,
		ValidArgsFunction: a.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := guarded.ParseOutput(output)
			if err != nil {
				return err
			}
			return a.showRolloutStatus(cmd, args[0], format)
		},
	}
	addOutput(cmd, &output)
	return cmd
}

func (a *App) showRolloutStatus(cmd *cobra.Command, name string, format guarded.Output) error {
	if err := guarded.ValidateName(name); err != nil {
		return err
	}
	conn, err := a.connect()
	if err != nil {
		return err
	}
	service, err := newReads(a, conn).service(cmd.Context(), name)
	if err != nil {
		return err
	}
	now := a.Clock.Now()
	report := view.BuildRolloutStatus(service, now)
	var buf bytes.Buffer
	switch format {
	case guarded.OutputTable:
		if a.Streams.OutIsTerminal {
			buf.WriteString(view.RolloutStatusSentence(service, report, now) + "\n\n")
		}
		err = view.RolloutStatusTable(report).Write(&buf, a.Streams.Width)
	case guarded.OutputWide:
		err = view.RolloutStatusWide(report).Write(&buf, a.Streams.Width)
	default:
		err = encode(&buf, report, format)
	}
	if err == nil {
		_, err = a.Streams.Out.Write(buf.Bytes())
	}
	if err != nil {
		return guarded.Usage("write rollout status report failed", guarded.Clean(err.Error()))
	}
	return nil
}

func encode(w io.Writer, v any, format guarded.Output) error {
	if format == guarded.OutputJSON {
		return guarded.EncodeJSON(w, v)
	}
	b, err := yaml.Marshal(v)
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

func (a *App) rolloutPause() *cobra.Command {
	return a.guarded(&cobra.Command{
		Use:   "pause INFERENCESERVICE",
		Short: "Hold the rollout and lifecycle work of a service (alpha)",
		Long: `Hold the rollout and lifecycle work of a service. ALPHA: flags and behavior can change.

Sets the annotation ome.io/rollout-paused to true. Pods keep running and serving;
no update, create or migration starts, and lost pods are still replaced. It never lowers
a freeze. You see the exact change and confirm it first.`,
		Example: "  kubectl ome rollout pause chat -n prod\n  kubectl ome rollout pause chat -n prod --dry-run=server --yes",
	}, func() (*guarded.Action, error) { return guarded.Pause(), nil })
}

func (a *App) rolloutResume() *cobra.Command {
	var discard bool
	cmd := a.guarded(&cobra.Command{
		Use:   "resume INFERENCESERVICE",
		Short: "Let a paused service go on (alpha)",
		Long: `Let a paused service go on. ALPHA: flags and behavior can change.

Removes the annotation ome.io/rollout-paused at either depth, true or freeze. It
doesn't retry a failed or rejected revision. You see the exact change and confirm
it first.`,
		Example: "  kubectl ome rollout resume chat -n prod\n  kubectl ome rollout resume chat -n prod --discard-pending-actions --yes",
	}, func() (*guarded.Action, error) { return guarded.Resume(discard), nil })
	cmd.Flags().BoolVar(&discard, "discard-pending-actions", false,
		"Also remove pending promote and rollback requests; requires --yes")
	return cmd
}

func (a *App) rolloutRepin() *cobra.Command {
	return a.guardedBy(&cobra.Command{
		Use:   "repin INFERENCESERVICE",
		Short: "Take an edited rollout plan into the run that is open (alpha)",
		Long: `Take an edited rollout plan into the run that is open. ALPHA: flags and behavior can
change.

A run goes by the plan that it pinned when it opened, and an edit of spec.rollout waits
for the next run. This sets the annotation ome.io/rollout-repin to the digest of the
plan as it is now, and the controller puts that plan in place of the pinned one if it
still has the digest. It changes settings of a progression, such as maxSurge; other
components, another kind, order, soak or ratio wait for the next run. You see the exact
change and confirm it first.`,
		Example: "  kubectl ome rollout repin chat -n prod\n  kubectl ome rollout repin chat -n prod --dry-run=server --yes",
	}, guardedCommand{serviceOnly: true, action: func() (*guarded.Action, error) { return guarded.Repin(), nil }})
}
