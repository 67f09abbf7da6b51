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
	// NeedsYes names the flag because of which this request is never prompted
	// for; empty means the prompt applies.
	NeedsYes string
	// Refusals run in order after the checks that every action shares.
	Refusals []Refusal
	// Change is what the patch sets and removes.
	Change func(*Evidence) []Annotation
	// Preview adds the action's own rows and notes to the shared ones.
	Preview func(*Evidence) (rows []Row, notes []string)
	// SecondRead makes the action read everything again after the confirmation
	// and stop when any of it differs. Pause and resume leave it nil; it is for
	// actions whose inputs lie outside the target.
	SecondRead *SecondRead
	Words      Words
}

// SecondRead says how an action that reads twice ends when it must.
type SecondRead struct {
	Changed     string
	ChangedCode int
}

// Words are the fixed strings of an action.
type Words struct {
	// Accepted is the message of a stored patch.
	Accepted string
	// Conflict, Unbound and WriteFailed are errors.
	Conflict, Unbound, WriteFailed string
	// FollowUp is the verb of the read-only command to run next.
	FollowUp string
}

// rolloutWords are shared by the actions that set or remove a rollout mailbox.
var rolloutWords = Words{
	Accepted:    "API accepted annotation request; convergence not observed.",
	Conflict:    "guarded annotation patch rejected; refresh rollout status and retry explicitly",
	Unbound:     "API response is not bound to the request; outcome unknown, check rollout status",
	WriteFailed: "write rollout action result failed; check rollout status",
	FollowUp:    "rollout status",
}

const titleAlpha = "ALPHA guarded action preview (not controller convergence)"

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

// mailboxes are the requests that a pause and a resume don't pass over silently.
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
