package guarded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rows"
)

// Replica is an InferenceReplica that claims the service, with its rows decoded.
type Replica struct {
	Object *v1beta1.InferenceReplica
	Rows   []v1beta1.InstanceStatus
	// foreign says why it isn't provably the service's own at its generation,
	// undecodable why its rows can't be seen in full.
	foreign, undecodable *Error
}

// problem is the first reason not to trust the replica.
func (r *Replica) problem() *Error {
	if r.foreign != nil {
		return r.foreign
	}
	return r.undecodable
}

// replicas reads the service's replicas and judges each. A replica that fails is
// recorded and not an error: the action's earlier refusals still come first.
func (r *reader) replicas(ctx context.Context) error {
	ev := r.ev
	at := ev.replicaRef("")
	raw, err := r.client.List(ctx, at, v1beta1.InferenceServiceLabel+"="+ev.Name, maxReplicas+1)
	if errors.Is(err, errTooLarge) {
		return Refuse(MsgBounds, "TooLarge: the InferenceReplicas of the service are over 32 MiB together")
	}
	if err != nil {
		return readError(err, at, ev)
	}
	var list struct {
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := decode(raw, &list); err != nil {
		return r.undecodable(err, at)
	}
	if len(list.Items) > maxReplicas || list.Metadata.Continue != "" {
		ev.listProblem = Refuse(MsgBounds, fmt.Sprintf("more than %d InferenceReplicas carry the label %s=%s", maxReplicas, v1beta1.InferenceServiceLabel, ev.Name))
		return nil
	}
	// Every replica that claims the service is judged, also one of a component
	// that left the spec: its work would be part of what the action does.
	for _, item := range list.Items {
		replica := Replica{Object: &v1beta1.InferenceReplica{}}
		if err := decode(item, replica.Object); err != nil {
			return r.undecodable(err, at)
		}
		ev.stored = append(ev.stored, stored{ev.replicaRef(replica.Object.Name), item})
		replica.foreign = ev.checkOwned(replica.Object)
		replica.Rows, replica.undecodable = ev.decodeRows(replica.Object)
		ev.Replicas = append(ev.Replicas, replica)
	}
	order := v1beta1.Components()
	slices.SortStableFunc(ev.Replicas, func(a, b Replica) int {
		return slices.Index(order, a.Object.Spec.Component) - slices.Index(order, b.Object.Spec.Component)
	})
	return nil
}

// selected reads the component's replica, or its scale, by itself.
func (r *reader) selected(ctx context.Context, reads Reads) error {
	ev := r.ev
	found := ev.replica(reads.Component)
	// The API server can't serve a scale without a count.
	if found == nil || reads.Scale && found.Object.Spec.Replicas == nil {
		return nil
	}
	ref := ev.replicaRef(found.Object.Name)
	get := r.client.Get
	if reads.Scale {
		ref.Kind, get = kindScale, r.client.GetScale
	}
	raw, err := get(ctx, ref)
	if errors.Is(err, errTooLarge) {
		return tooLarge(ref)
	}
	if err != nil {
		return readError(err, ref, ev)
	}
	var o struct {
		Metadata struct {
			UID             string `json:"uid"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Spec struct {
			Replicas *int32 `json:"replicas"`
		} `json:"spec"`
	}
	if err := decode(raw, &o); err != nil {
		return r.undecodable(err, ref)
	}
	if reads.Scale {
		ev.stored = append(ev.stored, stored{ref, raw})
	}
	ev.Selected = &Selected{o.Metadata.UID, o.Metadata.ResourceVersion, o.Spec.Replicas}
	return nil
}

// replicasProblem is the first reason not to trust the replicas as a whole.
func (ev *Evidence) replicasProblem() *Error {
	if ev.listProblem != nil {
		return ev.listProblem
	}
	for i := range ev.Replicas {
		if e := ev.Replicas[i].problem(); e != nil {
			return e
		}
	}
	for _, c := range ev.Native {
		if ev.replica(c) == nil {
			return Refuse(MsgStale, "Missing: InferenceReplica "+Quote(v1beta1.ReplicaName(ev.Name, c))+" of component "+string(c)+" isn't there yet",
				ev.waitForController())
		}
	}
	return nil
}

// replica is the first replica that claims a component.
func (ev *Evidence) replica(c v1beta1.ComponentType) *Replica {
	for i := range ev.Replicas {
		if ev.Replicas[i].Object.Spec.Component == c {
			return &ev.Replicas[i]
		}
	}
	return nil
}

// claims counts the replicas that claim a component.
func (ev *Evidence) claims(c v1beta1.ComponentType) int {
	n := 0
	for i := range ev.Replicas {
		if ev.Replicas[i].Object.Spec.Component == c {
			n++
		}
	}
	return n
}

// lag says why a replica doesn't show what the controller last decided; nil when
// it does.
func (ev *Evidence) lag(r *Replica) *Error {
	o := r.Object
	if o.Status.ObservedGeneration != o.Generation {
		return Refuse(MsgStale, fmt.Sprintf("InferenceReplica %s: status.observedGeneration is %d and the replica is at generation %d",
			Quote(o.Name), o.Status.ObservedGeneration, o.Generation), ev.waitForController())
	}
	return nil
}

func (ev *Evidence) waitForController() string {
	return "wait until the controller has caught up, then: " + ev.Command("rollout status")
}

// checkOwned proves that a replica is projected by exactly this service at its
// current generation.
func (ev *Evidence) checkOwned(r *v1beta1.InferenceReplica) *Error {
	s := ev.Service
	stale := func(format string, args ...any) *Error {
		return Refuse(MsgStale, "InferenceReplica "+Quote(r.Name)+": "+fmt.Sprintf(format, args...))
	}
	if !v1beta1.IsComponent(r.Spec.Component) || r.Name != v1beta1.ReplicaName(s.Name, r.Spec.Component) {
		return stale("spec.component %s doesn't go with the name", Quote(string(r.Spec.Component)))
	}
	if r.Spec.ParentRef == nil || r.Spec.ParentRef.Name != s.Name {
		return stale("spec.parentRef doesn't name the service %s", Quote(s.Name))
	}
	if !controlledBy(r.OwnerReferences, s) {
		return stale("its one controller owner isn't the service %s with UID %s", Quote(s.Name), s.UID)
	}
	if got, want := r.Annotations[v1beta1.ParentGenerationAnnotation], strconv.FormatInt(s.Generation, 10); got != want {
		e := stale("annotation %s is %s and the service is at generation %s", v1beta1.ParentGenerationAnnotation, Quote(Clean(got)), want)
		e.Details = append(e.Details, ev.waitForController())
		return e
	}
	return nil
}

// controlledBy reports whether the service is the one controller owner.
func controlledBy(refs []metav1.OwnerReference, s *v1beta1.InferenceService) bool {
	found := false
	for _, ref := range refs {
		if ref.Controller == nil || !*ref.Controller {
			continue
		}
		if found || ref.APIVersion != v1beta1.GroupVersion.String() || ref.Kind != v1beta1.InferenceServiceKind ||
			ref.Name != s.Name || ref.UID != s.UID {
			return false
		}
		found = true
	}
	return found
}

// decodeRows decodes a private copy, whichever way the rows are stored.
func (ev *Evidence) decodeRows(r *v1beta1.InferenceReplica) ([]v1beta1.InstanceStatus, *Error) {
	if n := len(r.Status.Migrations); n > maxMigrations {
		return nil, Refuse(MsgBounds, fmt.Sprintf("InferenceReplica %s: %d status.migrations, at most %d are inspected", Quote(r.Name), n, maxMigrations))
	}
	decoded, err := rows.Decode(&r.Status, maxRows)
	if err == nil && len(decoded) <= maxRows {
		return decoded, nil
	}
	var de *rows.DecodeError
	if err == nil || errors.As(err, &de) && de.Reason == rows.CardinalityLimit {
		return nil, Refuse(MsgBounds, fmt.Sprintf("InferenceReplica %s has more than %d Instance rows", Quote(r.Name), maxRows))
	}
	return nil, Refuse(MsgStale, "InferenceReplica "+Quote(r.Name)+": "+Clean(err.Error()), ev.waitForController())
}

// active reports whether an Instance has lifecycle work.
func active(row *v1beta1.InstanceStatus) bool {
	if row.Operation != nil {
		return true
	}
	switch row.Phase {
	case v1beta1.InstancePending, v1beta1.InstanceCreating, v1beta1.InstanceUpdating,
		v1beta1.InstanceRestarting, v1beta1.InstanceMigrating, v1beta1.InstanceDeleting:
		return true
	}
	return false
}

// terminal reports whether a migration is over.
func terminal(p v1beta1.MigrationPhase) bool {
	return p == v1beta1.MigrationCompleted || p == v1beta1.MigrationFailed || p == v1beta1.MigrationRelocated
}

// records counts open operations and migrations over all replicas.
func (ev *Evidence) records() (operations, migrations int) {
	for _, r := range ev.Replicas {
		for i := range r.Rows {
			if r.Rows[i].Operation != nil {
				operations++
			}
		}
		for _, m := range r.Object.Status.Migrations {
			if !terminal(m.Phase) {
				migrations++
			}
		}
	}
	return operations, migrations
}
