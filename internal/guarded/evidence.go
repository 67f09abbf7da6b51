package guarded

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/json"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/render"
)

// Reads says what an action looks at besides the service it names.
type Reads struct {
	// Runtime reads the model and the named runtime and resolves which
	// components are OMENative.
	Runtime bool
	// Replicas reads the service's InferenceReplicas and decodes their rows.
	Replicas bool
}

// Evidence is everything an action decides from, as read. Actions never write
// to it.
type Evidence struct {
	// Name is the service that was asked for; Context, Namespace and
	// OMENamespace say where.
	Name, Context, Namespace, OMENamespace string
	DryRun                                 DryRun
	Now                                    time.Time

	Service *v1beta1.InferenceService
	// Native are the components that run as InferenceReplicas.
	Native []v1beta1.ComponentType
	// Replicas are the service's replicas, one for each native component, in
	// component order. Empty unless the action reads them.
	Replicas []Replica

	raw []byte
	// replicaRaw is the list of replicas as stored.
	replicaRaw []byte
	// runtimeProblem says why no runtime is in force.
	runtimeProblem *Error
	// replicaProblem says why the replicas can't be trusted.
	replicaProblem *Error
}

// Replica is an owned InferenceReplica with its rows decoded.
type Replica struct {
	Object *v1beta1.InferenceReplica
	Rows   []v1beta1.InstanceStatus
}

// Annotation is the value of an annotation of the service, and whether it is there.
func (ev *Evidence) Annotation(key string) (string, bool) {
	v, ok := ev.Service.Annotations[key]
	return v, ok
}

// Command is a kubectl ome command about the same service, ready to paste.
func (ev *Evidence) Command(verb string, flags ...string) string {
	words := append([]string{"kubectl ome", verb, ShellQuote(ev.Name), "-n", ShellQuote(ev.Namespace),
		"--context=" + ShellQuote(ev.Context)}, flags...)
	return strings.Join(words, " ")
}

// kubectl is a plain kubectl command against the same cluster and namespace.
func (ev *Evidence) kubectl(args string) string {
	return "kubectl " + args + " -n " + ShellQuote(ev.Namespace) + " --context=" + ShellQuote(ev.Context)
}

// locate is the tail of a kubectl command for a reference.
func (ev *Evidence) locate(ref Ref) string {
	s := " --context=" + ShellQuote(ev.Context)
	if ref.Namespace != "" {
		s = " -n " + ShellQuote(ref.Namespace) + s
	}
	return s
}

// target is the service as a patch target.
func (ev *Evidence) target() Target {
	m := &ev.Service.ObjectMeta
	return Target{v1beta1.InferenceServiceKind, m.Namespace, m.Name, string(m.UID), m.ResourceVersion}
}

func (ev *Evidence) serviceRef() Ref {
	return Ref{v1beta1.InferenceServiceKind, v1beta1.InferenceServiceResource, ev.Namespace, ev.Name}
}

// decode reads an API object. Keys match exactly, as they do in the API server.
func decode(raw []byte, into any) error {
	if tooDeep(raw) {
		return errTooLarge
	}
	return json.UnmarshalCaseSensitivePreserveInts(raw, into)
}

// reader gathers evidence.
type reader struct {
	client *Client
	ev     *Evidence
}

// gather reads everything an action needs. Any failed read ends the action:
// a decision from half the evidence is no decision.
func (r *reader) gather(ctx context.Context, reads Reads) error {
	ev := r.ev
	raw, err := r.get(ctx, ev.serviceRef(), nil)
	if err != nil {
		return err
	}
	ev.raw = raw
	ev.Service = &v1beta1.InferenceService{}
	if err := decode(raw, ev.Service); err != nil {
		return r.undecodable(err, ev.serviceRef())
	}
	if reads.Runtime {
		if err := r.runtime(ctx); err != nil {
			return err
		}
	}
	if reads.Replicas {
		return r.replicas(ctx)
	}
	return nil
}

// get reads one object into a value, or only its bytes when into is nil.
func (r *reader) get(ctx context.Context, ref Ref, into any) ([]byte, error) {
	raw, err := r.client.Get(ctx, ref)
	if err != nil {
		if errors.Is(err, errTooLarge) {
			return nil, tooLarge(ref)
		}
		return nil, readError(err, ref, r.ev)
	}
	if into != nil {
		if err := decode(raw, into); err != nil {
			return nil, r.undecodable(err, ref)
		}
	}
	return raw, nil
}

func (r *reader) undecodable(err error, ref Ref) error {
	if errors.Is(err, errTooLarge) {
		return tooLarge(ref)
	}
	return Refuse(MsgReadFailed, "Unreadable: "+ref.String(), Clean(err.Error()), "nothing was changed")
}

func tooLarge(ref Ref) *Error {
	return Refuse(MsgBounds, "TooLarge: "+ref.String()+" is over 1 MiB or nests too deeply",
		"edit it directly with kubectl annotate --resource-version")
}

// runtime reads model and runtime and resolves the native components.
func (r *reader) runtime(ctx context.Context) error {
	ev := r.ev
	spec := &ev.Service.Spec
	if err := r.model(ctx, spec.Model); err != nil {
		return err
	}
	ref := spec.Runtime
	switch {
	case spec.ReplicaRefs != nil:
		ev.runtimeProblem = Refuse(MsgRuntime,
			"the service fronts standalone replicas (spec.replicaRefs) and owns none",
			"act on a replica itself: "+ev.kubectl("get inferencereplicas."+v1beta1.Group))
		return nil
	case ref == nil || ref.Name == "":
		ev.runtimeProblem = Refuse(MsgRuntime,
			"no runtime is named (spec.runtime.name); this version resolves named runtimes only",
			"name the runtime in the service, or set the annotation yourself with kubectl annotate")
		return nil
	case ref.Revision != "" || (ref.AutoSync != nil && !*ref.AutoSync) || ev.Service.Status.PinnedRevisionName != "":
		ev.runtimeProblem = Refuse(MsgRuntime,
			"the runtime is or was pinned to a stored revision (spec.runtime.autoSync, spec.runtime.revision, status.pinnedRevisionName); this version resolves unpinned runtimes only",
			"set the annotation yourself with kubectl annotate")
		return nil
	}
	found, err := r.namedRuntime(ctx, ref)
	if err != nil {
		return err
	}
	if found == nil {
		return nil
	}
	for _, c := range v1beta1.IsvcComponents(ev.Service) {
		if mode, _ := render.Mode(ev.Service, found, c); mode == v1beta1.OMENativeMode {
			ev.Native = append(ev.Native, c)
		}
	}
	if len(ev.Native) == 0 {
		ev.runtimeProblem = Refuse(MsgRuntime, "no component of the service is OMENative, so there is no rollout to act on",
			"opt in with spec.deploymentMode: OMENative")
		return nil
	}
	for _, c := range ev.Service.Status.Conditions {
		if c.Type == v1beta1.ConditionRuntimeReady && c.Status == "False" {
			ev.runtimeProblem = Refuse(MsgRuntime,
				"the controller reports RuntimeReady False ("+Clean(c.Reason)+"): "+Clean(c.Message),
				"to see it: "+ev.Command("rollout status"))
		}
	}
	return nil
}

func (r *reader) model(ctx context.Context, ref *v1beta1.ModelRef) error {
	if ref == nil {
		return nil
	}
	if ref.Kind != nil && *ref.Kind == v1beta1.BaseModelKind {
		_, err := r.get(ctx, Ref{v1beta1.BaseModelKind, v1beta1.BaseModelResource, r.ev.Namespace, ref.Name}, nil)
		return err
	}
	_, err := r.get(ctx, Ref{v1beta1.ClusterBaseModelKind, v1beta1.ClusterBaseModelResource, "", ref.Name}, nil)
	return err
}

// namedRuntime reads the runtime where the controller looks for it. A nil spec
// without an error means runtimeProblem is set.
func (r *reader) namedRuntime(ctx context.Context, ref *v1beta1.ServingRuntimeRef) (*v1beta1.ServingRuntimeSpec, error) {
	var cluster *v1beta1.ClusterServingRuntime
	var local *v1beta1.ServingRuntime
	if ref.Kind == nil || *ref.Kind != v1beta1.ServingRuntimeKind {
		at := Ref{v1beta1.ClusterServingRuntimeKind, v1beta1.ClusterServingRuntimeResource, "", ref.Name}
		raw, err := r.client.Get(ctx, at)
		switch {
		case apierrors.IsNotFound(err):
		case errors.Is(err, errTooLarge):
			return nil, tooLarge(at)
		case err != nil:
			return nil, readError(err, at, r.ev)
		default:
			cluster = &v1beta1.ClusterServingRuntime{}
			if err := decode(raw, cluster); err != nil {
				return nil, r.undecodable(err, at)
			}
		}
	}
	if cluster == nil {
		local = &v1beta1.ServingRuntime{}
		at := Ref{v1beta1.ServingRuntimeKind, v1beta1.ServingRuntimeResource, r.ev.Namespace, ref.Name}
		if _, err := r.get(ctx, at, local); err != nil {
			return nil, err
		}
	}
	found, err := render.PickRuntime(ref, cluster, local)
	if err != nil {
		r.ev.runtimeProblem = Refuse(MsgRuntime, Clean(err.Error()))
		return nil, nil
	}
	return found.Spec, nil
}
