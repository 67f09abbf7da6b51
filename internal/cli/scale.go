package cli

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/view"
)

func (a *App) scale() *cobra.Command {
	var component, replicas string
	var override bool
	cmd := a.guardedBy(&cobra.Command{
		Use:   "scale INFERENCESERVICE --component COMPONENT --replicas N --override-autoscaler --yes",
		Short: "Set the Instance count of a component until its owner sets it again (alpha)",
		Long: `Set the Instance count of a component until its owner sets it again. ALPHA: flags and
behavior can change.

Replaces spec.replicas through the scale subresource of the component's
InferenceReplica, and changes nothing in the InferenceService. An autoscaler may set the
count back at its next decision; with class None the manager does so within moments. To
change the count for good, edit minReplicas and maxReplicas of the service.

It never prompts: --override-autoscaler and --yes are both required. The count has to be
within minReplicas and maxReplicas, and nothing may be moving in the component.`,
		Example: "  kubectl ome scale chat -n prod --component=engine --replicas=4 --override-autoscaler --yes --dry-run=server\n" +
			"  kubectl ome scale chat -n prod --component=engine --replicas=4 --override-autoscaler --yes",
	}, guardedCommand{
		arguments: guarded.MsgScaleArguments,
		connect:   a.connectForScale,
		action: func() (*guarded.Action, error) {
			if err := a.checkConnectionFlags(); err != nil {
				return nil, err
			}
			if !v1beta1.IsComponent(v1beta1.ComponentType(component)) {
				return nil, guarded.Usage(guarded.MsgComponent, "got "+guarded.Quote(guarded.Clean(component))+"; pass --component")
			}
			n, err := parseReplicas(replicas)
			if err != nil {
				return nil, err
			}
			return guarded.ScaleCount(guarded.Scale{
				Component: v1beta1.ComponentType(component), Replicas: n, Override: override, Rollout: rolloutView,
			}), nil
		},
	})
	componentFlag(cmd, &component, "Component: engine, decoder or router (required)")
	cmd.Flags().StringVar(&replicas, "replicas", "", "Number of Instances, from 1 (required)")
	cmd.Flags().BoolVar(&override, "override-autoscaler", false, "Acknowledge that the owner of the count may set it back; requires --yes")
	return cmd
}

// parseReplicas takes plain decimal digits: no sign, no leading zero.
func parseReplicas(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != s {
		return 0, guarded.Usage("replicas must be a plain decimal number from 1 through 2147483647", "got "+guarded.Quote(guarded.Clean(s))+"; pass --replicas")
	}
	return int32(n), nil
}

// checkConnectionFlags judges what was typed, so that a kubeconfig isn't blamed for it.
func (a *App) checkConnectionFlags() error {
	o := &a.overrides
	if ns := o.Context.Namespace; ns != "" {
		if err := guarded.ValidateNamespace(ns); err != nil {
			return err
		}
	}
	if name := o.CurrentContext; name != "" {
		if err := guarded.ValidateContext(name); err != nil {
			return err
		}
	}
	if o.Timeout != "" {
		if _, err := clientcmd.ParseTimeout(o.Timeout); err != nil {
			return guarded.Usage("request-timeout must be a duration such as 10s", "got "+guarded.Quote(guarded.Clean(o.Timeout)))
		}
	}
	return nil
}

// connectForScale tells a context that isn't there from a kubeconfig that can't be read.
func (a *App) connectForScale() (*guarded.Connection, error) {
	conn, err := a.connect()
	var e *guarded.Error
	if errors.As(err, &e) && clientcmd.IsContextNotFound(e.Cause) {
		return nil, guarded.Usage(guarded.MsgContext, e.Details...)
	}
	return conn, err
}

// rolloutView is the part of rollout status that decides about a component.
func rolloutView(s *v1beta1.InferenceService, component v1beta1.ComponentType) guarded.RolloutView {
	report := view.BuildRolloutStatus(s, s.CreationTimestamp.Time)
	var out guarded.RolloutView
	for _, c := range report.Content.Components {
		if c.Type == string(component) {
			out.Phase, out.GroupPhase = c.Phase, c.GroupPhase
		}
	}
	for _, i := range report.Content.Issues {
		// Neither says that anything is wrong with the evidence a count rests on.
		if i.Code != view.IssueEpochUnverifiable && i.Code != "AnalysisInconclusive" {
			out.Issues = append(out.Issues, i.String())
		}
	}
	return out
}
