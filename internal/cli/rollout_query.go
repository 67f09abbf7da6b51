package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/prom"
	"ome.io/ome/internal/settings"
	"ome.io/ome/internal/view"
)

// withQuery adds the mode of `rollout validate` that asks each analysis query once.
func (a *App) withQuery(cmd *cobra.Command) *cobra.Command {
	var query bool
	var omeNamespace string
	f := cmd.Flags()
	f.BoolVar(&query, "query", false, "Ask each analysis query of the canary groups once, from this computer, and judge the answers")
	f.StringVar(&omeNamespace, "ome-namespace", DefaultOMENamespace, "Namespace of the OME manager, whose settings name metrics servers; for --query")
	validate := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !query {
			return validate(cmd, args)
		}
		if len(args) == 0 {
			return guarded.Usage("--query needs a stored inference service", "pass a name and no file")
		}
		format, err := guarded.ParseOutput(cmd.Flag("output").Value.String())
		if err != nil {
			return err
		}
		return a.queryService(cmd.Context(), args[0], omeNamespace, format)
	}
	return cmd
}

func (a *App) queryService(ctx context.Context, name, omeNamespace string, format guarded.Output) error {
	r, err := a.openReads(name)
	if err != nil {
		return err
	}
	service, err := r.service(ctx, name)
	if err != nil {
		return err
	}
	tune, err := r.settings(ctx, omeNamespace)
	if err != nil {
		return err
	}
	var tried []view.Tried
	groups := queryGroups(service)
	for i := range groups {
		g := &groups[i]
		if g.Canary == nil || len(g.Components) == 0 {
			continue
		}
		primary := plan.CanaryPrimary(g.Components)
		for _, step := range prom.Try(ctx, tune, r.token, types.NamespacedName{Namespace: service.Namespace, Name: service.Name}, int32(i), g.Canary, queryVariables(service, primary), a.Clock.Now) {
			tried = append(tried, view.Tried{Group: i, Step: int(step.Step) + 1, Metrics: step.Metrics})
		}
	}
	if len(tried) == 0 {
		return guarded.Usage("the service has no analysis to query", "no step of a canary group, pinned or in the spec, has one")
	}
	report := view.BuildRolloutQuery(service, tried, a.Clock.Now())
	fmt.Fprintln(a.Streams.Err, "Note: asked from this computer; the manager asks from inside the cluster, where other addresses can be reached.")
	if err := show(a, "rollout query", report, format, view.RolloutQueryTable, view.RolloutQueryWide); err != nil {
		return err
	}
	if !report.Content.Usable {
		return &guarded.Error{Message: "some analysis queries gave no value to judge", Code: exitUnmet,
			Details: []string{"such a sample is inconclusive: it opens no gate and counts as no failure"}}
	}
	return nil
}

// queryGroups are those of the pinned plan, else of the spec.
func queryGroups(s *v1beta1.InferenceService) []v1beta1.RolloutGroup {
	switch ro := s.Status.Rollout; {
	case ro != nil && ro.ActiveRun != nil:
		return plan.GroupsOf(ro.ActiveRun.Plan)
	case s.Spec.Rollout != nil:
		return s.Spec.Rollout.Groups
	}
	return nil
}

// settings are the manager's, as far as they may be read.
func (r *reads) settings(ctx context.Context, namespace string) (config.Settings, error) {
	ref := guarded.Ref{Kind: "ConfigMap", Resource: "configmaps", Namespace: namespace, Name: settings.ConfigMapName}
	var stored corev1.ConfigMap
	err := r.get(ctx, corev1.SchemeGroupVersion, ref, guarded.Query{}, &stored)
	switch {
	case err == nil:
		tune, _ := settings.Parse(stored.Data, nil)
		return tune, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		fmt.Fprintf(r.app.Streams.Err, "Note: the manager's settings can't be read (%s: %s), so the built-in ones count; bound metrics servers are unknown.\n", guarded.ClassOf(err), ref)
		return config.Default(), nil
	}
	return config.Settings{}, asError("get ConfigMap: "+guarded.ServerText(err), err, r.explain(err, ref)...)
}

// token reads one value of a Secret, with the rights of the person who asks.
func (r *reads) token(ctx context.Context, namespace, name, key string) (string, error) {
	ref := guarded.Ref{Kind: "Secret", Resource: "secrets", Namespace: namespace, Name: name}
	var secret corev1.Secret
	if err := r.get(ctx, corev1.SchemeGroupVersion, ref, guarded.Query{}, &secret); err != nil {
		return "", fmt.Errorf("%s: %s", guarded.ClassOf(err), ref)
	}
	value, ok := secret.Data[key]
	if !ok {
		return "", fmt.Errorf("%s has no key %q", ref, key)
	}
	return string(value), nil
}

// queryVariables fill in the queries: by the canary's record, else with the revision that
// runs on both sides.
func queryVariables(s *v1beta1.InferenceService, primary v1beta1.ComponentType) analysis.Variables {
	st := s.Status.Components[primary]
	var fresh, stable string
	if st.Canary != nil {
		fresh, stable = st.Canary.CanaryRevisionHash, st.Canary.StableRevisionHash
	}
	if st.Lifecycle != nil {
		current := strings.TrimPrefix(st.Lifecycle.CurrentRevision, v1beta1.ReplicaName(s.Name, primary)+"-")
		fresh, stable = cmp.Or(fresh, current), cmp.Or(stable, current)
	}
	return analysis.Variables{Namespace: s.Namespace, ISVCName: s.Name, Component: string(primary), CanaryRevision: fresh, StableRevision: stable,
		CanaryService: v1beta1.RevisionServiceName(s.Name, primary, fresh), StableService: v1beta1.RevisionServiceName(s.Name, primary, stable)}
}
