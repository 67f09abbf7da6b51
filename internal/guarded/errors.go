package guarded

import (
	"errors"
	"fmt"
	"io"
)

// Exit codes of an action.
const (
	ExitFailed   = 1
	ExitConflict = 3
)

// Messages that scripts and runbooks match. They never change; what is specific
// to a case goes into the details under them.
const (
	MsgReadFailed    = "required Kubernetes API request failed; check access and connectivity"
	MsgNotConfirmed  = "action not confirmed; noninteractive input requires --yes"
	MsgIdentity      = "action refused: target identity is missing or unsafe"
	MsgDeleting      = "action refused: target is being deleted"
	MsgBounds        = "action refused: safety inputs exceed inspection bounds"
	MsgPlacement     = "action refused: placement sources and derived services cannot be mutated"
	MsgRuntime       = "action refused: active runtime is unavailable, inconsistent or unbound"
	MsgStale         = "action refused: controller safety evidence is stale or inconsistent"
	MsgMailbox       = "action refused: a rollout promote or rollback mailbox is present"
	MsgAlreadyPaused = "action refused: service is already paused; freeze is preserved"
	MsgNotPaused     = "action refused: service has no recognized pause"
	MsgNothingActive = "action refused: no applicable active rollout or lifecycle work was observed"
	MsgUnsafeValue   = "action refused: a logical annotation value is unsafe to preview"
)

// Messages about the command line and the kubeconfig, before anything is read.
const (
	MsgOneService          = "exactly one inference service is required"
	MsgName                = "invalid inference service name"
	MsgNamespaceUnresolved = "resolve workload namespace failed"
	MsgNamespaceInvalid    = "resolved workload namespace is invalid"
	MsgContext             = "selected kubeconfig context is unavailable or unsafe"
)

// Error ends an action. Message is the fixed first line; Details are ours: the
// class, the object and the way out.
type Error struct {
	Message string
	Details []string
	Code    int
	// Cause is what a caller may ask about; it isn't printed.
	Cause error
}

func (e *Error) Error() string { return e.Message }

// Refuse is an error that changed nothing.
func Refuse(message string, details ...string) *Error {
	return &Error{Message: message, Details: details, Code: ExitFailed}
}

func usage(message string, details ...string) error {
	return Refuse(message, details...)
}

// Usage is an error in the command line.
func Usage(message string, details ...string) error { return usage(message, details...) }

// PrintError writes the first line as scripts expect it and the details under
// it, each indented by two spaces, and returns the exit code.
func PrintError(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	var e *Error
	if !errors.As(err, &e) {
		fmt.Fprintf(w, "error: %s\n", Clean(err.Error()))
		return ExitFailed
	}
	fmt.Fprintf(w, "error: %s\n", e.Message)
	for _, d := range e.Details {
		fmt.Fprintf(w, "  %s\n", d)
	}
	return e.Code
}
