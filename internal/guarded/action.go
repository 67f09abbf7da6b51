package guarded

import "ome.io/ome/api/v1beta1"

// Refusal is one reason not to act; nil when it doesn't apply.
type Refusal func(*Evidence) *Error

// Action is a guarded command as a value. Run gives it the sequence.
type Action struct {
	// Name is the command, such as "rollout pause".
	Name string
	// Title heads the preview.
	Title string
	Reads Reads
	// Demand checks flags against each other before anything is resolved.
	Demand func(Options) *Error
	// Subject is the object that the patch is for; nil means the service.
	Subject func(*Evidence) Subject
	// Refusals run in order after the checks that every action shares. Early
	// ones come before the runtime is judged.
	Early, Refusals []Refusal
	// Change is what the patch does to the subject.
	Change func(*Evidence) Change
	// Preview is what a person confirms.
	Preview func(*Evidence) (rows []Row, notes []string)
	// SecondRead makes the action read everything again after the confirmation
	// and stop when any of it differs. It is for actions whose inputs lie
	// outside the target.
	SecondRead *SecondRead
	// Result, if set, adds the action's own fields to the result.
	Result func(*Evidence, *ActionResult)
	Words  Words
}

// SecondRead says how an action that reads twice ends when it must.
type SecondRead struct {
	// Changed is said when an input differs or can't be read again.
	Changed                 string
	ChangedCode, FailedCode int
}

// Subject is the object that a patch is for.
type Subject struct {
	Ref         Ref
	Subresource string
	Target      Target
	Annotations map[string]string
}

// Change is what a patch does: to annotations, or to the count of a scale subresource.
type Change struct {
	Annotations []Annotation
	Scale       *Count
}

// Count replaces a number of replicas.
type Count struct {
	From, To int32
}

// Words are the fixed strings of an action.
type Words struct {
	// Accepted is the message of a stored patch, Validated that of a client dry
	// run when it isn't the usual one.
	Accepted, Validated string
	// Conflict, Unbound, WriteFailed and PreviewFailed are errors.
	Conflict, Unbound, WriteFailed, PreviewFailed string
	// Unknown, if set, is the error of every failed patch that is no conflict;
	// Rejected, if set, that of one the API server turned down.
	Unknown, Rejected string
	// Setup words anew what goes wrong before the first read.
	Setup map[string]string
	// FollowUp is the read-only command to run next.
	FollowUp func(*Evidence) string
}

// setup gives an error of the command line or the kubeconfig the action's words.
func (w *Words) setup(err error) error {
	e, ok := err.(*Error)
	if !ok || w.Setup[e.Message] == "" {
		return err
	}
	return &Error{Message: w.Setup[e.Message], Code: e.Code, Details: append([]string{e.Message}, e.Details...)}
}

// needsYes demands --yes for a request that is never prompted for.
func needsYes(flag string) func(Options) *Error {
	return func(opts Options) *Error {
		if opts.Yes {
			return nil
		}
		return Refuse(flag+" requires --yes", "this request is never prompted for; check it first with --dry-run=server --yes")
	}
}

// rolloutWords are shared by the actions that set or remove a rollout mailbox.
var rolloutWords = Words{
	Accepted:      "API accepted annotation request; convergence not observed.",
	Conflict:      "guarded annotation patch rejected; refresh rollout status and retry explicitly",
	Unbound:       "API response is not bound to the request; outcome unknown, check rollout status",
	WriteFailed:   "write rollout action result failed; check rollout status",
	PreviewFailed: msgPreviewFailed,
	FollowUp:      func(ev *Evidence) string { return ev.Command("rollout status") },
}

const (
	titleAlpha       = "ALPHA guarded action preview (not controller convergence)"
	msgPreviewFailed = "write action preview failed; no request submitted"
)

// refuseMailbox refuses while a promote or rollback request is pending.
func refuseMailbox(wayOut func(*Evidence) string) Refusal {
	return func(ev *Evidence) *Error {
		for _, key := range mailboxes {
			if v, ok := ev.Annotation(key); ok {
				details := []string{"annotation " + key + " is " + Quote(Clean(v))}
				if wayOut != nil {
					details = append(details, wayOut(ev))
				}
				return Refuse(MsgMailbox, details...)
			}
		}
		return nil
	}
}

// letItBeConsumed is the way out of a request that waits for the controller.
func letItBeConsumed(ev *Evidence) string {
	return "let the controller consume it: " + ev.Command("rollout status")
}

// mailboxes are the requests that an action doesn't pass over silently.
var mailboxes = []string{v1beta1.RolloutPromoteAnnotation, v1beta1.RolloutRollbackAnnotation}

// refuseUnsafe refuses when a value that the action replaces or removes can't be
// shown: nobody can confirm what nobody can see.
func refuseUnsafe(keys ...string) Refusal {
	return func(ev *Evidence) *Error {
		for _, key := range keys {
			if v, ok := ev.Annotation(key); ok && Unsafe(v) {
				return Refuse(MsgUnsafeValue,
					"annotation "+key+" has control or invisible characters, is over 768 characters, or looks like a secret",
					"to see the bytes: "+ev.kubectl("get inferenceservice "+ShellQuote(ev.Name)+" -o json"))
			}
		}
		return nil
	}
}
