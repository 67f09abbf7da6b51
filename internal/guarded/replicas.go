package guarded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rows"
)

// replicas reads the service's replicas and proves that they are its own and
// up to date. A replica that fails is recorded as the evidence's problem: the
// action's earlier refusals still come first.
func (r *reader) replicas(ctx context.Context) error {
	ev := r.ev
	at := Ref{v1beta1.InferenceReplicaKind, v1beta1.InferenceReplicaResource, ev.Namespace, ""}
	raw, err := r.client.List(ctx, at, v1beta1.InferenceServiceLabel+"="+ev.Name, maxReplicas+1)
	if errors.Is(err, errTooLarge) {
		return Refuse(MsgBounds, "TooLarge: the InferenceReplicas of the service are over 32 MiB together")
	}
	if err != nil {
		return readError(err, at, ev)
	}
	ev.replicaRaw = raw
	var list v1beta1.InferenceReplicaList
	if err := decode(raw, &list); err != nil {
		return r.undecodable(err, at)
	}
	if len(list.Items) > maxReplicas || list.Continue != "" {
		ev.replicaProblem = Refuse(MsgBounds, fmt.Sprintf("more than %d InferenceReplicas carry the label %s=%s", maxReplicas, v1beta1.InferenceServiceLabel, ev.Name))
		return nil
	}
	// Every replica that claims the service is checked, also one of a component
	// that left the spec: its work would be part of what the action does.
	for i := range list.Items {
		replica := &list.Items[i]
		if e := ev.checkOwned(replica); e != nil {
			ev.replicaProblem = e
			return nil
		}
		decoded, e := ev.decodeRows(replica)
		if e != nil {
			ev.replicaProblem = e
			return nil
		}
		ev.Replicas = append(ev.Replicas, Replica{Object: replica, Rows: decoded})
	}
	order := v1beta1.Components()
	slices.SortStableFunc(ev.Replicas, func(a, b Replica) int {
		return slices.Index(order, a.Object.Spec.Component) - slices.Index(order, b.Object.Spec.Component)
	})
	for _, c := range ev.Native {
		if ev.replica(c) == nil {
			ev.replicaProblem = Refuse(MsgStale, "Missing: InferenceReplica "+Quote(v1beta1.ReplicaName(ev.Name, c))+" of component "+string(c)+" isn't there yet",
				ev.waitForController())
			return nil
		}
	}
	return nil
}

func (ev *Evidence) replica(c v1beta1.ComponentType) *Replica {
	for i := range ev.Replicas {
		if ev.Replicas[i].Object.Spec.Component == c {
			return &ev.Replicas[i]
		}
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
