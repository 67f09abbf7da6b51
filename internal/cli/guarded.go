package cli

import (
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/guarded"
)

// guarded gives a command the flags and the sequence that every action has.
func (a *App) guarded(cmd *cobra.Command, action func() (*guarded.Action, error)) *cobra.Command {
	return a.guardedBy(cmd, guardedCommand{action: action})
}

// guardedCommand is what differs between the commands of actions.
type guardedCommand struct {
	// action makes the action from its flags.
	action func() (*guarded.Action, error)
	// connect resolves the kubeconfig; nil takes the usual way.
	connect func() (*guarded.Connection, error)
	// arguments is the first line of everything that is wrong with the command
	// line; empty leaves each mistake its own.
	arguments string
	// serviceOnly is set for an action that looks at nothing but the service, and so
	// not for the manager either.
	serviceOnly bool
}

func (g *guardedCommand) usage(err error) error {
	if err == nil || g.arguments == "" {
		return err
	}
	details := []string{guarded.Clean(err.Error())}
	var e *guarded.Error
	if errors.As(err, &e) {
		details = append(details, e.Details...)
	}
	return guarded.Usage(g.arguments, details...)
}

func (a *App) guardedBy(cmd *cobra.Command, g guardedCommand) *cobra.Command {
	var dryRun, output string
	opts := guarded.Options{}
	if g.connect == nil {
		g.connect = a.connect
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error { return g.usage(oneService(cmd, args)) }
	cmd.ValidArgsFunction = a.completeServices
	if g.arguments != "" {
		cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
			return g.usage(guarded.Usage(err.Error(), "see: "+cmd.CommandPath()+" --help"))
		})
	}
	f := cmd.Flags()
	f.StringVar(&dryRun, "dry-run", string(guarded.DryRunNone), "Dry-run mode: none, client or server")
	f.BoolVar(&opts.Yes, "yes", false, "Confirm the exact preview without an interactive prompt")
	if !g.serviceOnly {
		f.StringVar(&opts.OMENamespace, "ome-namespace", DefaultOMENamespace, "Namespace of the OME manager")
	}
	f.BoolVar(&opts.RetryOnStatusChange, "retry-on-status-change", false,
		"After the confirmation read again, and go on when only the status moved and nothing that was checked or shown differs")
	addOutput(cmd, &output)
	fixed(cmd, "dry-run", "none", "client", "server")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if opts.Output, err = guarded.ParseOutput(output); err != nil {
			return g.usage(err)
		}
		if opts.DryRun, err = guarded.ParseDryRun(dryRun); err != nil {
			return g.usage(err)
		}
		action, err := g.action()
		if err != nil {
			return g.usage(err)
		}
		runner := &guarded.Runner{Streams: a.Streams, Clock: a.Clock, Budget: a.Budget, Connect: g.connect}
		return runner.Run(cmd.Context(), action, args[0], opts)
	}
	return cmd
}

func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", string(guarded.OutputTable), "Output: table, wide (bounded), json or yaml")
	fixed(cmd, "output", "table", "wide", "json", "yaml")
}

// fixed completes a flag from a list.
func fixed(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeServices completes the names of services. It stays silent on errors: a
// shell has no place to show them.
func (a *App) completeServices(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const quiet = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, quiet
	}
	conn, err := a.connect()
	if err != nil {
		return nil, quiet
	}
	client, err := guarded.NewClient(conn.Config, v1beta1.GroupVersion, guarded.DefaultRequestTimeout)
	if err != nil {
		return nil, quiet
	}
	raw, err := client.ListMetadata(cmd.Context(), guarded.Ref{Resource: v1beta1.InferenceServiceResource, Namespace: conn.Namespace}, 500)
	if err != nil {
		return nil, quiet
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil, quiet
	}
	var names []string
	for _, i := range list.Items {
		names = append(names, i.Metadata.Name)
	}
	return names, quiet
}
