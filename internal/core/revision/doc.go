// Package revision turns the pod templates of one component into a revision:
// a canonical text, its hash, a ControllerRevision that carries the text, and
// the choice between an existing revision and a new one.
//
// Equal templates give equal text on every release of this program and of the
// Kubernetes libraries, because a hash that moves restarts every pod of every
// service. So the text is written from the Go values by this package, not by
// their JSON marshallers: keys are sorted, and a value that says nothing (a nil
// pointer, a zero scalar, an empty list or map, a struct of such values) is
// left out. A new optional field of a later library is such a value. A pointer
// that is set is kept even when it points at zero, since false, 0 and {} behind
// a pointer mean something else than absence (automountServiceAccountToken,
// tolerationSeconds, labelSelector).
package revision
