package guarded

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outcome is what an answer to a patch means.
type outcome int

const (
	// outcomeConflict: the target isn't what was read; nothing was stored.
	outcomeConflict outcome = iota
	// outcomeRejected: the API server refused the patch; nothing was stored.
	outcomeRejected
	// outcomeUnknown: the patch may or may not be stored.
	outcomeUnknown
)

// patchTestFailed is the message the API server gives to a JSON Patch whose test
// fails. It has no details and no object in it.
const patchTestFailed = "the server rejected our request due to an error in our request"

const webhookPrefix = "admission webhook "

// classify reads the error of a patch.
func classify(err error) outcome {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return outcomeUnknown
	}
	s := status.Status()
	switch {
	case s.Code >= 500 || s.Code < 400:
		return outcomeUnknown
	case isWebhookDenial(err):
		// A webhook may deny with any code, 409 and 422 among them.
		return outcomeRejected
	case s.Code == http.StatusConflict:
		return outcomeConflict
	case isFailedTest(s):
		return outcomeConflict
	}
	return outcomeRejected
}

// isFailedTest tells a failed test from a validation error, which has the same
// code and reason but says which object and field it is about.
func isFailedTest(s metav1.Status) bool {
	if s.Code != http.StatusUnprocessableEntity || s.Reason != metav1.StatusReasonInvalid || s.Message != patchTestFailed {
		return false
	}
	d := s.Details
	return d == nil || (d.Name == "" && d.Group == "" && d.Kind == "" && d.UID == "" && len(d.Causes) == 0)
}

func isWebhookDenial(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && strings.HasPrefix(status.Status().Message, webhookPrefix)
}
