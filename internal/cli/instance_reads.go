package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/render"
	"ome.io/ome/internal/view"
)

// Bounds of the lists about one Instance.
const (
	maxInstancePods  = 256
	maxObjectEvents  = 25
	maxEventRequests = 17
)

// addInstanceReads adds the commands that only look.
func (a *App) addInstanceReads(parent *cobra.Command) {
	parent.AddCommand(a.instanceList(), a.instanceStatus(), a.instanceRetryBlocks())
}

func (a *App) instanceList() *cobra.Command {
	var output formats
	cmd := &cobra.Command{
		Use:   "list INFERENCESERVICE",
		Short: "List the Instances of a service",
		Long: `List the Instances of a service, one row each: engine, decoder, router, by index.

PODS is serving/available/total. REVS is the revision that runs, and the one aimed
at after ">". AOF is A for admitted past the quota gate, O for work in flight, F for
a failure on record. EVIDENCE says what the row is worth: OK and SPARSE (an index
below is free) are current; STALE is about an older spec; BAD can't be right.`,
		Example:           "  kubectl ome instance list chat -n prod\n  kubectl ome instance list chat -n prod -o json",
		Args:              oneService,
		ValidArgsFunction: a.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := output.parse()
			if err != nil {
				return err
			}
			service, replicas, _, err := a.serviceAndReplicas(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			report := view.BuildInstanceList(service, &replicas, a.Clock.Now())
			return show(a, "instance list", report, format, view.InstanceListTable, nil)
		},
	}
	output.add(cmd, false)
	return cmd
}

func (a *App) serviceAndReplicas(ctx context.Context, name string) (*v1beta1.InferenceService, view.ReplicaReads, *reads, error) {
	r, err := a.openReads(name)
	if err != nil {
		return nil, view.ReplicaReads{}, nil, err
	}
	service, err := r.service(ctx, name)
	if err != nil {
		return nil, view.ReplicaReads{}, nil, err
	}
	replicas, err := r.replicas(ctx, name)
	if err == nil && view.Overtaken(service, &replicas) {
		service, err = r.service(ctx, name)
	}
	return service, replicas, r, err
}

func (a *App) instanceRetryBlocks() *cobra.Command {
	var output formats
	var component string
	cmd := &cobra.Command{
		Use:   "retry-blocks INFERENCESERVICE --component COMPONENT",
		Short: "Show which failed revisions of a component may be tried again",
		Long: `Show which failed revisions of a component may be tried again, and when.

BACKOFF waits for NEXT, RUNNING is being tried, HELD has used up its attempts and
waits for a new revision or for "kubectl ome instance release-held". REL is YES when
a release would be accepted. A target is shortened to its first characters and a
digest of the whole name; -o json has the name.`,
		Example:           "  kubectl ome instance retry-blocks chat -n prod --component engine",
		Args:              oneService,
		ValidArgsFunction: a.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := output.parse()
			if err != nil {
				return err
			}
			c, err := parseComponent(component)
			if err != nil {
				return err
			}
			service, replicas, r, err := a.serviceAndReplicas(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r.noteSkew()
			report := view.BuildRetryBlocks(service, c, &replicas, r.reference(), a.Clock.Now())
			return show(a, "retry blocks", report, format, view.InstanceRetryBlocksTable, nil)
		},
	}
	componentFlag(cmd, &component, "Component: engine, decoder or router (required)")
	output.add(cmd, false)
	return cmd
}

func (a *App) instanceStatus() *cobra.Command {
	var output formats
	var component, omeNamespace string
	cmd := &cobra.Command{
		Use:   "status INFERENCESERVICE INDEX --component COMPONENT",
		Short: "Explain one Instance: its row, its pods and their warnings",
		Long: `Explain one Instance: the row that the controller keeps about it, what it waits for,
its live pods with the worst first, and the Warning events about them.

The command only reads. What can't be read is named in an issue line and leaves the
rest of the report as it is.`,
		Example: "  kubectl ome instance status chat 3 -n prod --component engine\n  kubectl ome instance status chat 3 -n prod --component engine -o wide",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return guarded.Usage("an inference service and an Instance index are required")
			}
			return nil
		},
		ValidArgsFunction: a.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := output.parse()
			if err != nil {
				return err
			}
			in := &view.InstanceReads{}
			if in.Component, err = parseComponent(component); err != nil {
				return err
			}
			if in.Index, err = view.ParseIndex(args[1]); err != nil {
				return guarded.Usage("invalid Instance index", err.Error(), "got "+guarded.Quote(guarded.Clean(args[1])))
			}
			return a.showInstance(cmd.Context(), args[0], in, format)
		},
	}
	componentFlag(cmd, &component, "Component: engine, decoder or router (required)")
	cmd.Flags().StringVar(&omeNamespace, "ome-namespace", DefaultOMENamespace, "Namespace of the OME manager; stored runtime revisions would be read there")
	output.add(cmd, true)
	return cmd
}

func (a *App) showInstance(ctx context.Context, name string, in *view.InstanceReads, format guarded.Output) error {
	service, replicas, r, err := a.serviceAndReplicas(ctx, name)
	if err != nil {
		return err
	}
	in.Replicas = replicas
	if in.Runtime, err = r.runtime(ctx, service); err != nil {
		return err
	}
	if in.Pods, err = r.instancePods(ctx, service, in); err != nil {
		return err
	}
	if in.Events, err = r.instanceEvents(ctx, view.EventTargets(service, in)); err != nil {
		return err
	}
	r.noteSkew()
	report := view.BuildInstanceStatus(service, in, r.reference(), a.Clock.Now())
	return show(a, "instance status", report, format, view.InstanceStatusTable, view.InstanceStatusWide)
}

// runtime reads the runtime that the service names, where the controller looks for it.
func (r *reads) runtime(ctx context.Context, s *v1beta1.InferenceService) (view.RuntimeRead, error) {
	ref := s.Spec.Runtime
	if ref == nil || ref.Name == "" {
		return view.RuntimeRead{Failed: "NotNamed"}, nil
	}
	var cluster *v1beta1.ClusterServingRuntime
	var local *v1beta1.ServingRuntime
	if ref.Kind == nil || *ref.Kind != v1beta1.ServingRuntimeKind {
		found := &v1beta1.ClusterServingRuntime{}
		err := r.get(ctx, v1beta1.GroupVersion, guarded.Ref{Kind: v1beta1.ClusterServingRuntimeKind, Resource: v1beta1.ClusterServingRuntimeResource, Name: ref.Name}, guarded.Query{}, found)
		switch {
		case err == nil:
			cluster = found
		case !apierrors.IsNotFound(err):
			failed, fatal := failure(ctx, err)
			return view.RuntimeRead{Failed: failed}, fatal
		}
	}
	if cluster == nil {
		found := &v1beta1.ServingRuntime{}
		err := r.get(ctx, v1beta1.GroupVersion, r.ref(v1beta1.ServingRuntimeKind, v1beta1.ServingRuntimeResource, ref.Name), guarded.Query{}, found)
		if err != nil {
			failed, fatal := failure(ctx, err)
			return view.RuntimeRead{Failed: failed}, fatal
		}
		local = found
	}
	picked, err := render.PickRuntime(ref, cluster, local)
	if err != nil {
		return view.RuntimeRead{Failed: err.Error()}, nil
	}
	return view.RuntimeRead{Runtime: picked}, nil
}

func (r *reads) instancePods(ctx context.Context, s *v1beta1.InferenceService, in *view.InstanceReads) (view.PodReads, error) {
	selector := labels.Set{v1beta1.InferenceServiceLabel: s.Name, v1beta1.ComponentLabel: string(in.Component),
		v1beta1.InstanceIndexLabel: strconv.Itoa(int(in.Index))}.String()
	var list corev1.PodList
	err := r.get(ctx, corev1.SchemeGroupVersion, r.ref("Pod", "pods", ""), guarded.Query{LabelSelector: selector, Limit: maxInstancePods}, &list)
	failed, fatal := failure(ctx, err)
	return view.PodReads{Items: list.Items, Truncated: list.Continue != "", Failed: failed}, fatal
}

// instanceEvents reads the Warning events about each object by itself: a busy
// namespace holds too many to look through.
func (r *reads) instanceEvents(ctx context.Context, targets []string) (view.EventReads, error) {
	var out view.EventReads
	for _, uid := range targets[:min(len(targets), maxEventRequests)] {
		selector := "involvedObject.uid=" + fields.EscapeValue(uid) + ",type=" + corev1.EventTypeWarning
		var list corev1.EventList
		err := r.get(ctx, corev1.SchemeGroupVersion, r.ref("Event", "events", ""), guarded.Query{FieldSelector: selector, Limit: maxObjectEvents}, &list)
		if failed, fatal := failure(ctx, err); failed != "" || fatal != nil {
			return view.EventReads{Failed: failed}, fatal
		}
		out.Items = append(out.Items, list.Items...)
		out.Truncated = out.Truncated || list.Continue != ""
	}
	return out, nil
}
