package cli

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/preview"
	"ome.io/ome/internal/settings"
	"ome.io/ome/internal/view"
)

// Bounds of the lists that a preview starts from. It refuses to start from half of one.
const (
	maxPreviewPods      = 5000
	maxPreviewRevisions = 500
)

// previewLive starts from the live service.
func (a *App) previewLive(ctx context.Context, c *previewCase, f *previewFlags, files *previewFiles) error {
	file := files.service.Object
	namespace, name := splitService(f.service)
	if name == "" {
		namespace, name = file.Namespace, file.Name
	}
	r, err := a.openReads(name)
	if err != nil {
		return err
	}
	if namespace != "" {
		if err := guarded.ValidateNamespace(namespace); err != nil {
			return err
		}
		r.conn.Namespace = namespace
	}
	live, err := r.service(ctx, name)
	if err != nil {
		return err
	}
	if c.in.Live, err = r.previewWorld(ctx, live); err != nil {
		return err
	}
	if c.in.Settings, err = r.previewSettings(ctx, c, f.omeNamespace); err != nil {
		return err
	}
	next := live.DeepCopy()
	next.Spec = file.Spec
	next.Labels, next.Annotations = over(live.Labels, file.Labels), over(live.Annotations, file.Annotations)
	c.old, c.in.Old.Service, c.in.New.Service = live, live, next
	if at := r.serverTime(); !at.IsZero() {
		c.in.Now = at // what is stored was stamped by that clock
	}
	c.subject.Basis = view.BasisLive
	c.subject.Sources = append(c.subject.Sources, view.Source{Kind: v1beta1.InferenceServiceKind, Namespace: live.Namespace, Name: live.Name,
		UID: string(live.UID), Generation: live.Generation, Evidence: view.EvidenceObserved, CollectedAt: c.in.Now.UTC().Format("2006-01-02T15:04:05Z")})
	if c.in.Policies, err = r.previewPolicies(ctx, c, files); err != nil {
		return err
	}
	return r.previewSources(ctx, c, files)
}

// previewPolicies reads the RolloutPolicies that the new spec refers to; nil where the
// cluster has no such kind.
func (r *reads) previewPolicies(ctx context.Context, c *previewCase, files *previewFiles) (map[string]plan.Policy, error) {
	names := plan.PolicyNames(c.in.New.Service.Spec.Rollout)
	if len(names) == 0 {
		return nil, nil
	}
	ref := r.ref(v1beta1.RolloutPolicyKind, v1beta1.RolloutPolicyResource, "")
	var all v1beta1.RolloutPolicyList
	if err := r.get(ctx, v1beta1.GroupVersion, ref, guarded.Query{Limit: 1}, &all); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, asError("list rolloutpolicies: "+guarded.ServerText(err), err, r.explain(err, ref)...)
	}
	out := map[string]plan.Policy{}
	for _, name := range names {
		if p := files.policies[name]; p != nil {
			out[name] = judged(p, c.in.Settings)
			continue
		}
		p, err := previewGet(ctx, r, v1beta1.RolloutPolicyKind, v1beta1.RolloutPolicyResource, r.conn.Namespace, name, &v1beta1.RolloutPolicy{})
		if err != nil {
			return nil, err
		}
		if p != nil {
			out[name] = judged(p, c.in.Settings)
		}
	}
	return out, nil
}

// previewWorld reads what the service runs.
func (r *reads) previewWorld(ctx context.Context, s *v1beta1.InferenceService) (*preview.Live, error) {
	selector := v1beta1.InferenceServiceLabel + "=" + s.Name
	out := &preview.Live{}
	var replicas v1beta1.InferenceReplicaList
	if err := r.previewList(ctx, v1beta1.GroupVersion, v1beta1.InferenceReplicaKind, v1beta1.InferenceReplicaResource, selector, maxServiceReplicas, &replicas); err != nil {
		return nil, err
	}
	for i := range replicas.Items {
		if p := &replicas.Items[i]; p.Name == v1beta1.ReplicaName(s.Name, p.Spec.Component) {
			out.Replicas = append(out.Replicas, p)
		}
	}
	var revisions appsv1.ControllerRevisionList
	if err := r.previewList(ctx, appsv1.SchemeGroupVersion, "ControllerRevision", "controllerrevisions", selector, maxPreviewRevisions, &revisions); err != nil {
		return nil, err
	}
	for i := range revisions.Items {
		out.Revisions = append(out.Revisions, &revisions.Items[i])
	}
	var pods corev1.PodList
	if err := r.previewList(ctx, corev1.SchemeGroupVersion, "Pod", "pods", selector, maxPreviewPods, &pods); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		out.Pods = append(out.Pods, &pods.Items[i])
	}
	return out, nil
}

// previewList reads a whole list.
func (r *reads) previewList(ctx context.Context, gv schema.GroupVersion, kind, resource, selector string, limit int, into interface{ GetContinue() string }) error {
	ref := r.ref(kind, resource, "")
	if err := r.get(ctx, gv, ref, guarded.Query{LabelSelector: selector, Limit: limit}, into); err != nil {
		details := []string{guarded.ClassOf(err) + ": " + ref.String()}
		if apierrors.IsForbidden(err) {
			details = append(details, "to read no cluster: --offline")
		}
		return asError("list "+resource+": "+guarded.ServerText(err), err, details...)
	}
	if into.GetContinue() != "" {
		return guarded.Usage(fmt.Sprintf("the service has more than %d %s", limit, resource), "to preview the change without them: --offline")
	}
	return nil
}

// previewSettings reads the operator's settings, and goes on by the defaults where it can't.
func (r *reads) previewSettings(ctx context.Context, c *previewCase, namespace string) (config.Settings, error) {
	if err := guarded.ValidateNamespace(namespace); err != nil {
		return config.Settings{}, err
	}
	var cm corev1.ConfigMap
	err := r.get(ctx, corev1.SchemeGroupVersion, guarded.Ref{Kind: "ConfigMap", Resource: "configmaps", Namespace: namespace, Name: settings.ConfigMapName}, guarded.Query{}, &cm)
	switch {
	case apierrors.IsNotFound(err):
		return config.Default(), nil
	case err != nil:
		failed, fatal := failure(ctx, err)
		c.subject.Assumed = append(c.subject.Assumed, fmt.Sprintf("the operator's settings are the defaults (reading ConfigMap %s/%s: %s)", namespace, settings.ConfigMapName, failed))
		return config.Default(), fatal
	}
	var lastGood *config.Settings
	if text := cm.Annotations[settings.LastGoodAnnotation]; text != "" {
		if known, err := settings.Decode(text); err == nil {
			lastGood = &known
		}
	}
	set, _ := settings.Parse(cm.Data, lastGood)
	return set, nil
}

// previewSources finds the runtime and the model of the new spec: in the files first, else
// in the cluster.
func (r *reads) previewSources(ctx context.Context, c *previewCase, files *previewFiles) error {
	s := c.in.New.Service
	c.newFrom = files.sources(s)
	from := &c.newFrom
	if ref := s.Spec.Runtime; ref != nil && ref.Name != "" && from.ClusterRuntime == nil && from.Runtime == nil {
		var err error
		if ref.Kind == nil || *ref.Kind != v1beta1.ServingRuntimeKind {
			if from.ClusterRuntime, err = previewGet(ctx, r, v1beta1.ClusterServingRuntimeKind, v1beta1.ClusterServingRuntimeResource, "", ref.Name, &v1beta1.ClusterServingRuntime{}); err != nil {
				return err
			}
		}
		if from.ClusterRuntime == nil {
			if from.Runtime, err = previewGet(ctx, r, v1beta1.ServingRuntimeKind, v1beta1.ServingRuntimeResource, r.conn.Namespace, ref.Name, &v1beta1.ServingRuntime{}); err != nil {
				return err
			}
		}
	}
	if ref := s.Spec.Model; ref != nil && ref.Name != "" && from.ClusterModel == nil && from.Model == nil {
		var err error
		if ref.Kind != nil && *ref.Kind == v1beta1.BaseModelKind {
			from.Model, err = previewGet(ctx, r, v1beta1.BaseModelKind, v1beta1.BaseModelResource, r.conn.Namespace, ref.Name, &v1beta1.BaseModel{})
		} else {
			from.ClusterModel, err = previewGet(ctx, r, v1beta1.ClusterBaseModelKind, v1beta1.ClusterBaseModelResource, "", ref.Name, &v1beta1.ClusterBaseModel{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// previewGet reads an object that the service names; nil when there is none.
func previewGet[T any](ctx context.Context, r *reads, kind, resource, namespace, name string, into *T) (*T, error) {
	ref := guarded.Ref{Kind: kind, Resource: resource, Namespace: namespace, Name: name}
	err := r.get(ctx, v1beta1.GroupVersion, ref, guarded.Query{}, into)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, asError("get "+kind+": "+guarded.ServerText(err), err, r.explain(err, ref)...)
	}
	return into, nil
}
