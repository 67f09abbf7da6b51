package guarded

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/json"

	"ome.io/ome/api/v1beta1"
)

// Connection is a resolved kubeconfig: where to go and what it is called.
type Connection struct {
	Context, Namespace string
	Config             *rest.Config
}

// Runner carries what an action needs from the world.
type Runner struct {
	Streams Streams
	Clock   clock.PassiveClock
	// Budget bounds the whole action, the prompt included.
	Budget time.Duration
	// Connect resolves namespace and context. It makes no request.
	Connect func() (*Connection, error)
}

// Run takes an action through the sequence. Its error is an *Error; PrintError
// prints it and gives the exit code.
func (r *Runner) Run(ctx context.Context, a *Action, name string, opts Options) error {
	if err := ValidateName(name); err != nil {
		return a.Words.setup(err)
	}
	if a.Demand != nil {
		if e := a.Demand(opts); e != nil {
			return e
		}
	}
	conn, err := r.Connect()
	if err != nil {
		return a.Words.setup(err)
	}
	if err := ValidateNamespace(conn.Namespace); err != nil {
		return a.Words.setup(err)
	}
	if err := ValidateContext(conn.Context); err != nil {
		return a.Words.setup(err)
	}
	client, err := NewClient(conn.Config, v1beta1.GroupVersion, DefaultRequestTimeout)
	if err != nil {
		return Refuse(MsgReadFailed, Clean(err.Error()))
	}
	ctx, cancel := context.WithTimeout(ctx, r.Budget)
	defer cancel()
	run := &run{Runner: r, action: a, opts: opts, client: client, conn: conn, name: name}
	return run.do(ctx)
}

// run is one action under way.
type run struct {
	*Runner
	action *Action
	opts   Options
	client *Client
	conn   *Connection
	name   string
}

func (r *run) do(ctx context.Context) error {
	ev, err := r.gather(ctx)
	if err != nil {
		return err
	}
	if e := r.check(ev); e != nil {
		return e
	}
	rows, notes := r.action.Preview(ev)
	if err := writePreview(r.Streams.Err, r.action.Title, rows, notes); err != nil {
		return Refuse(r.action.Words.PreviewFailed, Clean(err.Error()))
	}
	if !r.opts.Yes {
		if err := confirm(ctx, r.Streams); err != nil {
			return err
		}
	}
	if ev, err = r.readAgain(ctx, ev, rows); err != nil {
		return err
	}
	if r.opts.DryRun != DryRunClient {
		if err := r.patch(ctx, ev); err != nil {
			return err
		}
	}
	return r.print(ev)
}

func (r *run) gather(ctx context.Context) (*Evidence, error) {
	ev := &Evidence{
		Name: r.name, Context: r.conn.Context, Namespace: r.conn.Namespace,
		OMENamespace: r.opts.OMENamespace, DryRun: r.opts.DryRun, Now: r.Clock.Now(),
	}
	rd := &reader{client: r.client, ev: ev}
	return ev, rd.gather(ctx, r.action.Reads)
}

// subject is the object that the patch is for.
func (r *run) subject(ev *Evidence) Subject {
	if r.action.Subject == nil {
		return serviceSubject(ev)
	}
	return r.action.Subject(ev)
}

// check runs every refusal in order.
func (r *run) check(ev *Evidence) *Error {
	e := checkTarget(ev)
	for _, refuse := range r.action.Early {
		if e == nil {
			e = refuse(ev)
		}
	}
	if e == nil && r.action.Reads.Runtime {
		e = ev.runtimeProblem
	}
	for _, refuse := range r.action.Refusals {
		if e == nil {
			e = refuse(ev)
		}
	}
	if e != nil && e.Message == MsgBounds {
		if command := r.byHand(ev); command != "" {
			e = Refuse(e.Message, append(slices.Clone(e.Details), "to do it without these checks: "+command)...)
		}
	}
	return e
}

// byHand is the same change as a plain kubectl command, when it can be told.
func (r *run) byHand(ev *Evidence) string {
	s := r.subject(ev)
	if s.Target.Name == "" {
		return ""
	}
	return ev.byHand(s, r.action.Change(ev))
}

// readAgain looks once more after the confirmation, when the action or the person
// asked for it, and stops what is no longer as it was shown.
func (r *run) readAgain(ctx context.Context, before *Evidence, shown []Row) (*Evidence, error) {
	second := r.action.SecondRead
	if second == nil && !r.opts.RetryOnStatusChange {
		return before, nil
	}
	after, err := r.gather(ctx)
	switch {
	case err != nil && second == nil:
		return nil, err
	case err != nil:
		return nil, r.secondReadFailed(ctx, before, err)
	case r.opts.RetryOnStatusChange:
		return r.refresh(before, after, shown)
	}
	if what := after.movedSince(before); what != "" {
		return nil, &Error{Message: second.Changed, Code: second.ChangedCode, Details: []string{
			"Changed: " + what + " is no longer as it was shown; nothing was sent",
			"if only a status moves, --retry-on-status-change accepts that",
			"to see it now: " + r.action.Words.FollowUp(before)}}
	}
	return before, nil
}

// secondReadFailed is the error of a second read that gave no evidence. When time
// or patience ran out, that is the cause and not the read.
func (r *run) secondReadFailed(ctx context.Context, ev *Evidence, err error) *Error {
	if ctx.Err() != nil {
		e := contextError(ctx.Err())
		e.Details = []string{"while reading again after the confirmation; nothing was sent"}
		return e
	}
	details := []string{Clean(err.Error())}
	var read *Error
	if errors.As(err, &read) {
		details = append(details, read.Details...)
	}
	return &Error{Message: r.action.SecondRead.Changed, Code: r.action.SecondRead.FailedCode,
		Details: append(details, "to see it now: "+r.action.Words.FollowUp(ev))}
}

// refresh accepts newer objects only when everything that was checked and shown is
// as before.
func (r *run) refresh(before, after *Evidence, shown []Row) (*Evidence, error) {
	old, fresh := r.subject(before), r.subject(after)
	if r.action.SecondRead == nil && old.Target == fresh.Target {
		return before, nil
	}
	if after.movedSince(before) == "" {
		return before, nil
	}
	if e := r.check(after); e != nil {
		return nil, r.notAsShown(before, "Conflict: after the confirmation it would be refused: "+e.Message)
	}
	if what := r.changed(before, after, shown); what != "" {
		return nil, r.notAsShown(before, "Conflict: "+what+" changed between the preview and the patch; nothing was sent")
	}
	what := "the service"
	if r.action.Subject != nil {
		what = fresh.Ref.String()
	}
	if old.Target.ResourceVersion == fresh.Target.ResourceVersion {
		fmt.Fprintln(r.Streams.Err, "Note: a status that was read has moved; nothing that was checked or shown differs.")
	} else {
		fmt.Fprintf(r.Streams.Err, "Note: %s moved from resourceVersion %s to %s by status alone; the patch tests the newer one.\n",
			what, old.Target.ResourceVersion, fresh.Target.ResourceVersion)
	}
	return after, nil
}

// notAsShown is the conflict of a target that changed before anything was sent.
func (r *run) notAsShown(ev *Evidence, details ...string) *Error {
	e := r.conflict(ev, details...)
	if second := r.action.SecondRead; second != nil {
		e.Message = second.Changed
	}
	return e
}

// changed names what a person confirmed and is no longer so; empty when nothing.
func (r *run) changed(before, after *Evidence, shown []Row) string {
	if what := changedObject(before.stored[0], after.stored[0]); what != "" {
		return what
	}
	if r.action.SecondRead != nil {
		was := map[Ref]stored{}
		for _, s := range before.stored[1:] {
			was[s.ref] = s
		}
		for _, s := range after.stored[1:] {
			if _, ok := was[s.ref]; !ok {
				return s.ref.String()
			}
			if what := changedObject(was[s.ref], s); what != "" {
				return what + " of " + s.ref.String()
			}
			delete(was, s.ref)
		}
		for ref := range was {
			return ref.String()
		}
	}
	rows, _ := r.action.Preview(after)
	if len(rows) != len(shown) {
		return "the preview"
	}
	for i := range rows {
		if rows[i] != shown[i] && rows[i].Label != rowResourceVersion && rows[i].Label != rowReplicaVersion {
			return "preview row " + rows[i].Label
		}
	}
	return ""
}

// changedObject names what differs between two reads of an object apart from its
// status; empty when nothing does. It compares what is stored, with every field,
// known here or not.
func changedObject(before, after stored) string {
	type object struct {
		Metadata struct {
			UID         string            `json:"uid"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec any `json:"spec"`
	}
	var old, fresh object
	if json.UnmarshalCaseSensitivePreserveInts(before.raw, &old) != nil || json.UnmarshalCaseSensitivePreserveInts(after.raw, &fresh) != nil {
		return "the object itself"
	}
	switch {
	case old.Metadata.UID != fresh.Metadata.UID:
		return "the object itself"
	case !reflect.DeepEqual(old.Metadata.Annotations, fresh.Metadata.Annotations):
		return "an annotation"
	case !reflect.DeepEqual(old.Spec, fresh.Spec):
		return "the spec"
	}
	return ""
}

// conflict is the error of a target that is no longer the one that was read.
func (r *run) conflict(ev *Evidence, details ...string) *Error {
	details = append(details, "to see it now: "+r.action.Words.FollowUp(ev))
	return &Error{Message: r.action.Words.Conflict, Code: ExitConflict, Details: details}
}

// patch sends the change and reads the answer.
func (r *run) patch(ctx context.Context, ev *Evidence) error {
	subject, change := r.subject(ev), r.action.Change(ev)
	body, err := encodePatch(patchOps(subject, change))
	if err != nil {
		return Refuse(MsgReadFailed, "the patch could not be encoded: "+Clean(err.Error()), "nothing was sent")
	}
	r.client.warnings = nil
	raw, err := r.client.Patch(ctx, subject.Ref, subject.Subresource, body, r.opts.DryRun == DryRunServer)
	switch {
	case errors.Is(err, errTooLarge):
		return r.unbound(ev, "the answer is over 1 MiB")
	case err != nil:
		return r.patchError(err, ev, subject)
	}
	if what := unbound(raw, subject, change); what != "" {
		return r.unbound(ev, what)
	}
	for _, w := range r.client.warnings {
		fmt.Fprintln(r.Streams.Err, "Warning: "+w)
	}
	return nil
}

func (r *run) unbound(ev *Evidence, what string) *Error {
	return Refuse(r.action.Words.Unbound, what, "to check: "+r.action.Words.FollowUp(ev))
}

// patchError turns a failed patch into what a person should know: whether
// something may have been stored comes first.
func (r *run) patchError(err error, ev *Evidence, s Subject) *Error {
	check := "the outcome is unknown; to check: " + r.action.Words.FollowUp(ev)
	if r.opts.DryRun == DryRunServer {
		check = "it was a server dry run, so nothing was stored"
	}
	message := r.action.Words.Unknown
	if e := contextError(err); e != nil {
		e.Details = []string{"while patching " + s.String(), check}
		if message != "" {
			e.Message, e.Details[0] = message, e.Message+" "+e.Details[0]
		}
		return e
	}
	if message == "" {
		message = MsgReadFailed
	}
	head := classOf(err) + ": patch of " + s.String()
	switch classify(err) {
	case outcomeConflict:
		return r.conflict(ev, "Conflict: "+s.Ref.String()+" is no longer at resourceVersion "+s.Target.ResourceVersion+"; nothing was stored",
			"if only its status moves, --retry-on-status-change accepts that")
	case outcomeUnknown:
		return Refuse(message, head, serverText(err), check)
	}
	if r.action.Words.Rejected != "" {
		message = r.action.Words.Rejected
	}
	details := []string{head, serverText(err), "nothing was stored"}
	if classOf(err) == "Forbidden" {
		can := "auth can-i patch " + s.Ref.Resource + "." + v1beta1.Group
		if s.Subresource != "" {
			can += " --subresource=" + s.Subresource
		}
		details = append(details, "to check your rights: "+ev.kubectl(can))
	}
	return Refuse(message, details...)
}

// String names the subject with its subresource.
func (s Subject) String() string {
	if s.Subresource == "" {
		return s.Ref.String()
	}
	return "the " + s.Subresource + " of " + s.Ref.String()
}

func (r *run) print(ev *Evidence) error {
	words := &r.action.Words
	res := &ActionResult{
		APIVersion:  ResultAPIVersion,
		Kind:        "ActionResult",
		CollectedAt: r.Clock.Now().UTC().Format(time.RFC3339),
		Action:      r.action.Name,
		Target:      r.subject(ev).Target,
		DryRun:      r.opts.DryRun,
		Message:     msgValidated,
		FollowUp:    words.FollowUp(ev),
	}
	switch r.opts.DryRun {
	case DryRunServer:
		res.Accepted, res.Message = true, msgDryRun
	case DryRunNone:
		res.Accepted, res.Applied, res.Message = true, true, words.Accepted
	default:
		if words.Validated != "" {
			res.Message = words.Validated
		}
	}
	if r.action.Result != nil {
		r.action.Result(ev, res)
	}
	if err := PrintResult(r.Streams.Out, res, r.opts.Output); err != nil {
		state := "nothing was sent"
		switch r.opts.DryRun {
		case DryRunServer:
			state = "it was a server dry run, so nothing was stored"
		case DryRunNone:
			state = "the API server stored the change"
		}
		return Refuse(words.WriteFailed, Clean(err.Error())+"; "+state, "to check: "+res.FollowUp)
	}
	return nil
}
