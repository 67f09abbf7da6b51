package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"ome.io/ome/internal/guarded"
)

// DefaultOMENamespace is where the manager runs unless a flag says otherwise.
const DefaultOMENamespace = "ome"

// App is the plugin with its world injected.
type App struct {
	Streams guarded.Streams
	Clock   clock.Clock
	// Budget bounds a guarded action.
	Budget time.Duration
	// WrapConfig, if set, changes the connection before it is used.
	WrapConfig func(*rest.Config)

	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	userExtra  []string
}

// New is an App on the process's own streams and clock.
func New() *App {
	app := &App{
		Streams: guarded.Streams{
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
			InIsTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
			OutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		},
		Clock:  clock.RealClock{},
		Budget: guarded.DefaultBudget,
	}
	if app.Streams.OutIsTerminal {
		app.Streams.Width, _, _ = term.GetSize(int(os.Stdout.Fd()))
	}
	return app
}

// Run runs one command line and returns the exit code.
func (a *App) Run(ctx context.Context, args []string) int {
	root := a.Command()
	root.SetArgs(args)
	root.SetIn(a.Streams.In)
	root.SetOut(a.Streams.Out)
	root.SetErr(a.Streams.Err)
	return guarded.PrintError(a.Streams.Err, root.ExecuteContext(ctx))
}

// Command is the root command.
func (a *App) Command() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-ome",
		Short:         "Roll out LLM inference services and see what they wait for",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl ome"},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return guarded.Usage(err.Error(), "see: "+cmd.CommandPath()+" --help")
	})
	a.addConnectionFlags(root)
	root.AddCommand(
		a.rollout(),
		a.instance(),
		a.scale(),
		a.autoscale(),
		a.wait(),
		a.version(),
	)
	return root
}

// addConnectionFlags binds the standard kubeconfig flags. They come from
// clientcmd itself: cli-runtime's set brings discovery and every API group into
// the start-up of each command.
func (a *App) addConnectionFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.kubeconfig, clientcmd.RecommendedConfigPathFlag, "", "Path to the kubeconfig file to use")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&a.overrides, f, names)
	f.StringArrayVar(&a.userExtra, "as-user-extra", nil, "Extra key=value of the user to impersonate; this flag can be repeated")
	f.String("cache-dir", "", "Accepted and not used: nothing is cached")
	_ = f.MarkHidden("cache-dir")
}

// connect resolves the kubeconfig. It makes no request.
func (a *App) connect() (*guarded.Connection, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	for _, pair := range a.userExtra {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, guarded.Usage("as-user-extra must be key=value", "got "+guarded.Quote(pair))
		}
		if a.overrides.AuthInfo.ImpersonateUserExtra == nil {
			a.overrides.AuthInfo.ImpersonateUserExtra = map[string][]string{}
		}
		extra := a.overrides.AuthInfo.ImpersonateUserExtra
		extra[key] = append(extra[key], value)
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &a.overrides)
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, &guarded.Error{Message: guarded.MsgNamespaceUnresolved, Code: guarded.ExitFailed, Cause: err,
			Details: []string{guarded.Clean(err.Error()), "check the kubeconfig: kubectl config view --minify"}}
	}
	name := a.overrides.CurrentContext
	if raw, err := loader.RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, guarded.Usage(guarded.MsgContext, guarded.Clean(err.Error()), "choose one with: kubectl config use-context NAME")
	}
	config.UserAgent = "kubectl-ome/" + Version
	if a.WrapConfig != nil {
		a.WrapConfig(config)
	}
	return &guarded.Connection{Context: name, Namespace: namespace, Config: config}, nil
}

// oneService checks the argument that every verb about a service takes.
func oneService(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return guarded.Usage(guarded.MsgOneService)
	}
	return nil
}

// asError keeps an *Error as it is and words an ended context as itself.
func asError(message string, err error, details ...string) error {
	for _, ended := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, ended) {
			return guarded.Usage(ended.Error(), details...)
		}
	}
	return guarded.Usage(message, details...)
}
