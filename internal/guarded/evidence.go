package guarded

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/json"

	"ome.io/ome/api/v1beta1"
)

// Reads says what an action looks at besides the service it names.
type Reads struct {
	// Runtime reads the model and the named runtime and resolves which
	// components are OMENative.
	Runtime bool
	// Replicas reads the service's InferenceReplicas and decodes their rows.
	Replicas bool
	// Component is the one that the action is about, if it is about one. Its
	// replica is read by itself too: that read has to agree with the list.
	Component v1beta1.ComponentType
	// Scale reads the scale subresource in place of that replica.
	Scale bool
}

// Evidence is everything an action decides from, as read. Actions never write
// to it.
type Evidence struct {
	// Name is the service that was asked for; Context, Namespace and
	// OMENamespace say where.
	Name, Context, Namespace, OMENamespace string
	DryRun                                 DryRun
	Now                                    time.Time
	// ServerNow is the API server's time; Now when it didn't say.
	ServerNow time.Time

	Service *v1beta1.InferenceService
	// Runtime is the runtime in force; nil when there is none.
	Runtime *v1beta1.ServingRuntimeSpec
	// Native are the components that run as InferenceReplicas.
	Native []v1beta1.ComponentType
	// Replicas are the replicas that claim the service, in component order. Empty
	// unless the action reads them.
	Replicas []Replica
	// Selected is the replica of Reads.Component, or its scale, read by itself.
	Selected *Selected

	// stored is every object that was read, as stored.
	stored []stored
	// runtimeProblem says why no runtime is in force.
	runtimeProblem *Error
	// listProblem says why the list of replicas can't be used at all.
	listProblem *Error
}

// Selected is an object that was read by itself after the list it is in.
type Selected struct {
	UID, ResourceVersion string
	Replicas             *int32
}

// stored is an object as the API server returned it.
type stored struct {
	ref Ref
	raw []byte
}

// Identity is an object that was looked at.
type Identity struct {
	Kind            string `json:"kind"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	Generation      int64  `json:"generation,omitempty"`
}

// String is Kind/namespace/name; a cluster object has no namespace.
func (i Identity) String() string { return i.Kind + "/" + i.Namespace + "/" + i.Name }

// Annotation is the value of an annotation of the service, and whether it is there.
func (ev *Evidence) Annotation(key string) (string, bool) {
	v, ok := ev.Service.Annotations[key]
	return v, ok
}

// Command is a kubectl ome command about the same service, ready to paste. Flags
// that narrow what the command is about come first.
func (ev *Evidence) Command(verb string, flags ...string) string {
	return ev.command(verb, nil, flags)
}

func (ev *Evidence) command(verb string, about, flags []string) string {
	words := append([]string{"kubectl ome", verb, ShellQuote(ev.Name)}, about...)
	words = append(words, "-n", ShellQuote(ev.Namespace), "--context="+ShellQuote(ev.Context))
	return strings.Join(append(words, flags...), " ")
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

func (ev *Evidence) replicaRef(name string) Ref {
	return Ref{v1beta1.InferenceReplicaKind, v1beta1.InferenceReplicaResource, ev.Namespace, name}
}

// serviceSubject is what an action on the service patches.
func serviceSubject(ev *Evidence) Subject {
	return Subject{Ref: ev.serviceRef(), Target: ev.target(), Annotations: ev.Service.Annotations}
}

// replicaSubject is what an action on a component's replica patches. It has no
// name when there is no such replica.
func replicaSubject(c v1beta1.ComponentType, subresource string) func(*Evidence) Subject {
	return func(ev *Evidence) Subject {
		r := ev.replica(c)
		if r == nil {
			return Subject{Ref: ev.replicaRef("")}
		}
		m := &r.Object.ObjectMeta
		return Subject{
			Ref: ev.replicaRef(m.Name), Subresource: subresource, Annotations: m.Annotations,
			Target: Target{v1beta1.InferenceReplicaKind, m.Namespace, m.Name, string(m.UID), m.ResourceVersion},
		}
	}
}

// dependencies are the objects that were read besides the service, the selected
// component's own last read left out.
func (ev *Evidence) dependencies(c v1beta1.ComponentType) []Identity {
	var out []Identity
	for _, s := range ev.stored {
		if s.ref.Kind == v1beta1.InferenceServiceKind || s.ref.Kind == kindScale ||
			s.ref.Kind == v1beta1.InferenceReplicaKind && s.ref.Name == v1beta1.ReplicaName(ev.Name, c) {
			continue
		}
		out = append(out, s.identity())
	}
	return out
}

func (s stored) identity() Identity {
	var o struct {
		Metadata struct {
			UID             string `json:"uid"`
			ResourceVersion string `json:"resourceVersion"`
			Generation      int64  `json:"generation"`
		} `json:"metadata"`
	}
	// What can't be decoded was refused when it was read.
	_ = json.UnmarshalCaseSensitivePreserveInts(s.raw, &o)
	return Identity{s.ref.Kind, s.ref.Namespace, s.ref.Name, o.Metadata.UID, o.Metadata.ResourceVersion, o.Metadata.Generation}
}

// movedSince names the first object that isn't stored as it was; empty when all are.
func (ev *Evidence) movedSince(before *Evidence) string {
	was := make(map[Ref][]byte, len(before.stored))
	for _, s := range before.stored {
		was[s.ref] = s.raw
	}
	for _, s := range ev.stored {
		raw, ok := was[s.ref]
		if !ok {
			return s.ref.String() + ", which wasn't there,"
		}
		if !bytes.Equal(raw, s.raw) {
			return s.ref.String()
		}
		delete(was, s.ref)
	}
	for _, s := range before.stored {
		if _, ok := was[s.ref]; ok {
			return s.ref.String() + ", which is gone,"
		}
	}
	return ""
}

func itoa(n int32) string { return strconv.FormatInt(int64(n), 10) }

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
	ev.Service = &v1beta1.InferenceService{}
	if err := r.get(ctx, ev.serviceRef(), ev.Service); err != nil {
		return err
	}
	if reads.Runtime {
		if err := r.runtime(ctx); err != nil {
			return err
		}
	}
	if reads.Replicas {
		if err := r.replicas(ctx); err != nil {
			return err
		}
	}
	if reads.Component != "" {
		if err := r.selected(ctx, reads); err != nil {
			return err
		}
	}
	if ev.ServerNow = r.client.serverTime; ev.ServerNow.IsZero() {
		ev.ServerNow = ev.Now
	}
	return nil
}

// get reads one object into a value and keeps its bytes.
func (r *reader) get(ctx context.Context, ref Ref, into any) error {
	raw, err := r.client.Get(ctx, ref)
	if err == nil {
		return r.keep(raw, ref, into)
	}
	if errors.Is(err, errTooLarge) {
		return tooLarge(ref)
	}
	return readError(err, ref, r.ev)
}

func (r *reader) keep(raw []byte, ref Ref, into any) error {
	if err := decode(raw, into); err != nil {
		return r.undecodable(err, ref)
	}
	r.ev.stored = append(r.ev.stored, stored{ref, raw})
	return nil
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
