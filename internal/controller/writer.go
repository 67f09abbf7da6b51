package controller

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/metrics"
)

// WriteKind says what a write is for.
type WriteKind string

// The kinds of writes, in the order of a pass.
const (
	WriteRevision      WriteKind = "revision"
	WriteServiceStatus WriteKind = "service-status"
	WriteReplica       WriteKind = "replica"
	WriteReplicaStatus WriteKind = "replica-status"
	WritePodCreate     WriteKind = "pod-create"
	WritePodGate       WriteKind = "pod-gate"
	// WritePodUpdate changes images, labels and annotations of a pod in place.
	WritePodUpdate WriteKind = "pod-update"
	WritePodDelete WriteKind = "pod-delete"
	// WritePodForceDelete removes a pod's object without waiting for its node.
	WritePodForceDelete WriteKind = "pod-force-delete"
	WriteService        WriteKind = "service"
	// WriteScaler is of a HorizontalPodAutoscaler or a ScaledObject.
	WriteScaler WriteKind = "scaler"
	// WriteReplicaAnnotation and WriteAnnotation remove an answered request of a
	// replica and of the service.
	WriteReplicaAnnotation WriteKind = "replica-annotation"
	WriteAnnotation        WriteKind = "annotation"
	WriteSettings          WriteKind = "settings"
	// WritePolicyStatus is of a RolloutPolicy, and no part of a pass over a service.
	WritePolicyStatus WriteKind = "policy-status"
)

// WriteKinds lists the kinds of writes in the order of a pass.
func WriteKinds() []WriteKind {
	return []WriteKind{
		WriteRevision, WriteServiceStatus, WriteReplica, WriteReplicaStatus,
		WritePodCreate, WritePodGate, WritePodUpdate, WritePodDelete, WritePodForceDelete,
		WriteService, WriteScaler, WriteReplicaAnnotation, WriteAnnotation, WriteSettings,
		WritePolicyStatus,
	}
}

// Verb is how an object is written.
type Verb string

// The verbs of writes. There is no update: a whole object would erase what a
// newer writer put there.
const (
	VerbCreate Verb = "create"
	VerbPatch  Verb = "patch"
	VerbDelete Verb = "delete"
)

// Write is one write. After a create or patch succeeded, Object is the server's answer.
type Write struct {
	Kind   WriteKind
	Verb   Verb
	Object client.Object
	// Component is the one the write belongs to, empty for the service's own.
	Component v1beta1.ComponentType
	// Subresource is status, or empty.
	Subresource string
	// PatchType and Patch are a patch's.
	PatchType types.PatchType
	Patch     []byte
	// UID is a delete's precondition.
	UID types.UID
	// GracePeriod is a delete's; nil is the object's own.
	GracePeriod *int64
}

// Writer sends writes. Every write of a pass goes through one, so that tests
// and the lab can lose, delay or watch any of them.
type Writer interface {
	Write(ctx context.Context, w *Write) error
}

// clientWriter sends writes to the API server.
type clientWriter struct{ client client.Client }

func (c clientWriter) Write(ctx context.Context, w *Write) error {
	switch w.Verb {
	case VerbCreate:
		return c.client.Create(ctx, w.Object)
	case VerbPatch:
		patch := client.RawPatch(w.PatchType, w.Patch)
		if w.Subresource != "" {
			return c.client.SubResource(w.Subresource).Patch(ctx, w.Object, patch)
		}
		return c.client.Patch(ctx, w.Object, patch)
	case VerbDelete:
		opts := client.DeleteOptions{GracePeriodSeconds: w.GracePeriod}
		if w.UID != "" {
			opts.Preconditions = &metav1.Preconditions{UID: &w.UID}
		}
		return c.client.Delete(ctx, w.Object, &opts)
	}
	return errors.New("unknown verb " + string(w.Verb))
}

// outcome is what a write's answer means.
type outcome int

const (
	written outcome = iota
	// conflicted: the object is not what the decision was made from.
	conflicted
	// refused: the API server said no, and will again until something changes.
	refused
	// doubtful: the write may have happened.
	doubtful
	// failed: the write did not happen; it may next time.
	failed
)

func (o outcome) result() string {
	switch o {
	case written:
		return metrics.ResultOK
	case conflicted:
		return metrics.ResultConflict
	case refused:
		return metrics.ResultRefused
	case doubtful:
		return metrics.ResultUnknown
	}
	return metrics.ResultError
}

// classify reads an answer.
func classify(w *Write, err error) outcome {
	if err == nil {
		return written
	}
	if w.Verb == VerbDelete && apierrors.IsNotFound(err) {
		return written
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		// No answer: the connection broke, or time ran out.
		return doubtful
	}
	s := status.Status()
	switch {
	case tooLarge(err):
		return refused
	case s.Reason == metav1.StatusReasonConflict, s.Reason == metav1.StatusReasonAlreadyExists:
		return conflicted
	case s.Reason == metav1.StatusReasonNotFound && w.Verb == VerbPatch:
		return conflicted
	case w.PatchType == types.JSONPatchType && isFailedTest(s):
		return conflicted
	case s.Code == 429:
		return failed
	case s.Code >= 500, s.Reason == metav1.StatusReasonTimeout:
		return doubtful
	}
	return refused
}

// tooLarge recognises an object that can't be stored for its size. The API server
// has a word for a request that is too long, but passes the refusals of the store
// on as errors of its own; nothing was written in either case.
func tooLarge(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	text := status.Status().Message
	return apierrors.IsRequestEntityTooLargeError(err) ||
		strings.Contains(text, "etcdserver: request is too large") ||
		strings.Contains(text, "trying to send message larger than max")
}

// isFailedTest recognises a JSON patch whose test did not hold: no details, and
// no webhook's message.
func isFailedTest(s metav1.Status) bool {
	return s.Reason == metav1.StatusReasonInvalid && (s.Details == nil || len(s.Details.Causes) == 0) &&
		!strings.HasPrefix(s.Message, "admission webhook")
}
