package cli

import (
	"context"

	"github.com/spf13/cobra"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/view"
)

func (a *App) autoscale() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "autoscale",
		Short: "See what sets the Instance counts of a service",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.autoscaleStatus())
	return cmd
}

func (a *App) autoscaleStatus() *cobra.Command {
	var output formats
	var scale, scaler bool
	cmd := &cobra.Command{
		Use:   "status INFERENCESERVICE",
		Short: "Show what sets the Instance count of each component",
		Long: `Show what sets the Instance count of each component, as its status reports it.

--live-scale also reads the wanted and the present count of each InferenceReplica.
--live-scaler also reads the HorizontalPodAutoscaler, or the KEDA ScaledObject, of
the components whose scaler OME made. Live rows never change STATE.`,
		Example:           "  kubectl ome autoscale status chat -n prod\n  kubectl ome autoscale status chat -n prod --live-scale",
		Args:              oneService,
		ValidArgsFunction: a.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := output.parse()
			if err != nil {
				return err
			}
			return a.showAutoscale(cmd.Context(), args[0], scale, scaler, format)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&scale, "live-scale", false, "Also read the scale subresource of each InferenceReplica")
	f.BoolVar(&scaler, "live-scaler", false, "Also read the scaler object that OME made for a component")
	output.add(cmd, true)
	return cmd
}

func (a *App) showAutoscale(ctx context.Context, name string, scale, scaler bool, format guarded.Output) error {
	r, err := a.openReads(name)
	if err != nil {
		return err
	}
	service, err := r.service(ctx, name)
	if err != nil {
		return err
	}
	live := &liveReads{reads: r, service: service, out: &view.AutoscaleLive{}}
	if scale {
		live.out.Scale = map[v1beta1.ComponentType]*view.LiveScale{}
	}
	if scaler {
		live.out.Scaler = map[v1beta1.ComponentType]*view.LiveScaler{}
	}
	for _, c := range v1beta1.Components() {
		if _, reported := service.Status.Components[c]; !reported && service.Spec.Extension(c) == nil {
			continue
		}
		if scale {
			if err := live.scale(ctx, c); err != nil {
				return err
			}
		}
		if scaler {
			if err := live.scaler(ctx, c); err != nil {
				return err
			}
		}
	}
	report := view.BuildAutoscaleStatus(service, live.out, r.reference(), a.Clock.Now())
	return show(a, "autoscale status", report, format, view.AutoscaleStatusTable, view.AutoscaleStatusWide)
}

// liveReads gathers what the live checks find. A failed check is a finding.
type liveReads struct {
	*reads
	service *v1beta1.InferenceService
	out     *view.AutoscaleLive
}

// source records what was read, or tried.
func (l *liveReads) source(kind, name, uid string, generation int64) {
	evidence := view.EvidenceObserved
	if uid == "" {
		evidence = view.EvidenceUnavailable
	}
	l.out.Sources = append(l.out.Sources, view.LiveSource(kind, l.service.Namespace, name, uid, generation, evidence, l.app.Clock.Now()))
}

// scale reads a replica and then its scale. Any write between the two makes them
// differ, so a change is looked at once more before it is reported.
func (l *liveReads) scale(ctx context.Context, c v1beta1.ComponentType) error {
	name, state := view.ScaleTarget(l.service, c)
	if state != "" {
		l.out.Scale[c] = view.NoLiveScale(state)
		return nil
	}
	ref := l.ref(v1beta1.InferenceReplicaKind, v1beta1.InferenceReplicaResource, name)
	var found *view.LiveScale
	var replica *v1beta1.InferenceReplica
	for range 2 {
		replica = &v1beta1.InferenceReplica{}
		var scale view.Scale
		err := l.get(ctx, v1beta1.GroupVersion, ref, guarded.Query{MaxBytes: maxReplicaBytes}, replica)
		if err == nil {
			err = l.get(ctx, v1beta1.GroupVersion, ref, guarded.Query{Subresource: "scale"}, &scale)
		}
		failed, fatal := failure(ctx, err)
		if fatal != nil {
			return fatal
		}
		if failed != "" {
			l.out.Scale[c] = view.NoLiveScale(view.LiveFailure(failed))
			l.source(v1beta1.InferenceReplicaKind, name, "", 0)
			return nil
		}
		if found = view.BuildLiveScale(l.service, c, replica, &scale); found.State != view.LiveChanged {
			break
		}
	}
	l.out.Scale[c] = found
	l.source(v1beta1.InferenceReplicaKind, name, string(replica.UID), replica.Generation)
	return nil
}

// kedaGroup is where ScaledObjects live.
var kedaGroup = schema.GroupVersion{Group: "keda.sh", Version: "v1alpha1"}

func (l *liveReads) scaler(ctx context.Context, c v1beta1.ComponentType) error {
	kind, name, state := view.ScalerRef(l.service, c)
	if state != "" {
		l.out.Scaler[c] = view.NoLiveScaler(state)
		return nil
	}
	var err error
	var uid string
	var generation int64
	if kind == view.KindHPA {
		var h autoscalingv2.HorizontalPodAutoscaler
		if err = l.get(ctx, autoscalingv2.SchemeGroupVersion, l.ref(kind, "horizontalpodautoscalers", name), guarded.Query{}, &h); err == nil {
			l.out.Scaler[c], uid, generation = view.BuildLiveHPA(l.service, c, &h), string(h.UID), h.Generation
		}
	} else {
		var o view.ScaledObject
		if err = l.get(ctx, kedaGroup, l.ref(kind, "scaledobjects", name), guarded.Query{}, &o); err == nil {
			l.out.Scaler[c], uid, generation = view.BuildLiveScaledObject(l.service, c, &o), string(o.UID), o.Generation
		}
	}
	failed, fatal := failure(ctx, err)
	if failed != "" {
		l.out.Scaler[c] = view.NoLiveScaler(view.LiveFailure(failed))
	}
	l.source(kind, name, uid, generation)
	return fatal
}
