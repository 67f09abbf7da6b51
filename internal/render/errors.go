package render

import "fmt"

// Error says why there is no template, and what to do about it.
type Error struct {
	// Reason is the reason of the condition that reports it.
	Reason string
	// Message names the object, the field and the way out.
	Message string
}

func (e *Error) Error() string { return e.Message }

func fail(reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
