package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"ome.io/ome/lab/internal/load"
	"ome.io/ome/lab/internal/node"
)

func newLoad(g *globals) *cobra.Command {
	var (
		service, kubeconfig, output, untilFile string
		lag                                    time.Duration
		cfg                                    load.Config
		progress                               bool
	)
	cmd := &cobra.Command{
		Use:   "load --service NAMESPACE/NAME --rate R",
		Short: "Send requests to a service on a fixed schedule and count what became of them",
		Long: `Send requests to a service on a fixed schedule, and count what became of them.

The schedule doesn't wait for answers, and latency counts from the scheduled time. Each of the
clients learns of a change of endpoints after a random lag, keeps its connections, and sends no
request twice. Ends after --duration, when --until-file appears, or at Ctrl-C; prints the result
in each case. Exits 1 when a request failed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "json" && output != "table" {
				return fmt.Errorf("--output %q: want table or json", output)
			}
			namespace, name, ok := strings.Cut(service, "/")
			if !ok {
				return fmt.Errorf("--service %q: want NAMESPACE/NAME", service)
			}
			cfg.Service = types.NamespacedName{Namespace: namespace, Name: name}
			if cfg.Lag = lag; lag == 0 {
				cfg.Lag = -1
			}
			client, err := g.client(kubeconfig)
			if err != nil {
				return err
			}
			cfg.Client = client
			if progress {
				cfg.OnSecond = func(c load.Counts) {
					fmt.Fprintf(cmd.ErrOrStderr(), "sent %d, ok %d, failed %d, mismatched %d\n", c.Sent, c.OK, c.Failed, c.Mismatched)
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if untilFile != "" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				defer cancel()
				go awaitFile(ctx, untilFile, cancel)
			}
			result, err := load.Run(ctx, cfg)
			if err != nil {
				return err
			}
			if output == "json" {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				err = enc.Encode(result)
			} else {
				err = result.Table(cmd.OutOrStdout())
			}
			if err == nil && result.Failed > 0 {
				err = fmt.Errorf("%d of %d requests failed, %d of them mismatched", result.Failed, result.Sent, result.Mismatched)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&service, "service", "", "NAMESPACE/NAME of an InferenceService, or of a plain Service")
	f.Float64Var(&cfg.Rate, "rate", 50, "requests a second")
	f.DurationVar(&cfg.Duration, "duration", 30*time.Second, "how long to send; 0 for until told to stop")
	f.DurationVar(&lag, "lag", 2*time.Second, "the longest a change of endpoints takes to reach a client")
	f.IntVar(&cfg.Clients, "clients", 4, "how many client nodes send, each with its own lag")
	f.DurationVar(&cfg.Timeout, "timeout", 10*time.Second, "the longest a request may take")
	f.DurationVar(&cfg.Wait, "wait", time.Minute, "how long to wait for a first ready endpoint")
	f.StringVar(&untilFile, "until-file", "", "stop when this file appears")
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig to use (default the lab's)")
	f.StringVarP(&output, "output", "o", "table", "table or json")
	f.BoolVar(&progress, "progress", false, "print the counts so far to stderr each second")
	cmd.MarkFlagRequired("service")
	return cmd
}

// client is a Kubernetes client from a kubeconfig, by default the lab's own.
func (g *globals) client(kubeconfig string) (kubernetes.Interface, error) {
	if kubeconfig == "" {
		l, err := g.layout()
		if err != nil {
			return nil, err
		}
		kubeconfig = l.Kubeconfig()
		if _, err := os.Stat(kubeconfig); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no lab is up in %s; start one with: ome-lab up, or name another --dir or --kubeconfig", l.Dir)
		}
	}
	rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	rc.UserAgent = "ome-lab-load"
	return kubernetes.NewForConfig(rc)
}

func awaitFile(ctx context.Context, path string, found func()) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := os.Stat(path); err == nil {
				found()
				return
			}
		}
	}
}

func newNode(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "List the simulated nodes; let one die or come back"}
	control := func() (*node.Control, error) {
		l, err := g.layout()
		if err != nil {
			return nil, err
		}
		return node.NewControl(l.Nodes()), nil
	}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the nodes and whether they are alive", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := control()
			if err != nil {
				return err
			}
			list, err := c.Nodes(cmd.Context())
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintln(w, "NAME\tALIVE")
			for _, n := range list {
				fmt.Fprintf(w, "%s\t%t\n", n.Name, n.Alive)
			}
			return w.Flush()
		},
	})
	for _, verb := range []struct {
		name, short string
		do          func(*node.Control, context.Context, string) error
	}{
		{"stop", "Let a node die: no heartbeat, no status, its pods' sockets closed", (*node.Control).StopNode},
		{"start", "Bring a node back; its pods' containers start anew", (*node.Control).StartNode},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: verb.name + " NAME", Short: verb.short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				c, err := control()
				if err != nil {
					return err
				}
				return verb.do(c, cmd.Context(), args[0])
			},
		})
	}
	return cmd
}
