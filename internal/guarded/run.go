package guarded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
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
		return err
	}
	if a.NeedsYes != "" && !opts.Yes {
		return usage(a.NeedsYes+" requires --yes", "this request is never prompted for; check it first with --dry-run=server --yes")
	}
	conn, err := r.Connect()
	if err != nil {
		return err
	}
	if err := ValidateNamespace(conn.Namespace); err != nil {
		return err
	}
	if err := ValidateContext(conn.Context); err != nil {
		return err
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
	rows, notes := r.preview(ev)
	if err := writePreview(r.Streams.Err, r.action.Title, rows, notes); err != nil {
		return Refuse("write action preview failed; no request submitted", Clean(err.Error()))
	}
	if !r.opts.Yes {
		if err := confirm(ctx, r.Streams); err != nil {
			return err
		}
	}
	if r.action.SecondRead != nil {
		if err := r.secondRead(ctx, ev); err != nil {
			return err
		}
	}
	if r.opts.RetryOnStatusChange {
		if ev, err = r.refresh(ctx, ev, rows); err != nil {
			return err
		}
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

// check runs every refusal in order.
func (r *run) check(ev *Evidence) *Error {
	e := checkTarget(ev)
	if e == nil && r.action.Reads.Runtime {
		e = ev.runtimeProblem
	}
	for _, refuse := range r.action.Refusals {
		if e != nil {
			break
		}
		e = refuse(ev)
	}
	if e != nil && e.Message == MsgBounds {
		e = Refuse(e.Message, append(e.Details, "to do it without these checks: "+r.byHand(ev))...)
	}
	return e
}

// byHand is the same change as a plain kubectl command under the same guard.
func (r *run) byHand(ev *Evidence) string {
	var words []string
	overwrite := ""
	for _, c := range r.action.Change(ev) {
		_, present := ev.Annotation(c.Key)
		switch {
		case c.Value != nil:
			words = append(words, c.Key+"="+ShellQuote(*c.Value))
			if present {
				overwrite = " --overwrite"
			}
		case present:
			words = append(words, c.Key+"-")
		}
	}
	return ev.kubectl("annotate inferenceservices." + v1beta1.Group + " " + ShellQuote(ev.Name) + " " + strings.Join(words, " ") +
		overwrite + " --resource-version=" + ShellQuote(ev.Service.ResourceVersion))
}

// preview is the shared rows with the action's own under them.
func (r *run) preview(ev *Evidence) ([]Row, []string) {
	t := ev.target()
	rows := []Row{
		{"Action", r.action.Name},
		{"Context", ev.Context},
		{"Workload NS", ev.Namespace},
	}
	if r.action.Reads.Runtime {
		rows = append(rows, Row{"OME NS", ev.OMENamespace})
	}
	rows = append(rows,
		Row{"Target", t.Kind + "/" + t.Name},
		Row{"UID", t.UID},
		Row{rowResourceVersion, t.ResourceVersion},
		Row{"Dry-run", string(ev.DryRun)},
	)
	if r.action.Reads.Runtime {
		var names []string
		for _, c := range ev.Native {
			names = append(names, string(c))
		}
		rows = append(rows, Row{"Affected", strings.Join(names, ",")})
	}
	own, notes := r.action.Preview(ev)
	return append(rows, own...), notes
}

// secondRead stops an action whose inputs, as stored, are no longer what was shown.
func (r *run) secondRead(ctx context.Context, before *Evidence) error {
	after, err := r.gather(ctx)
	if err != nil {
		return err
	}
	if !bytes.Equal(before.raw, after.raw) || !bytes.Equal(before.replicaRaw, after.replicaRaw) {
		return &Error{Message: r.action.SecondRead.Changed, Code: r.action.SecondRead.ChangedCode,
			Details: []string{"an input changed between the preview and the second read; nothing was sent"}}
	}
	return nil
}

// refresh reads again after the confirmation. It accepts a newer object only
// when everything that was checked and shown is as before.
func (r *run) refresh(ctx context.Context, before *Evidence, shown []Row) (*Evidence, error) {
	after, err := r.gather(ctx)
	if err != nil {
		return nil, err
	}
	if after.Service.ResourceVersion == before.Service.ResourceVersion {
		return before, nil
	}
	if e := r.check(after); e != nil {
		return nil, r.conflict(before, "Conflict: after the confirmation it would be refused: "+e.Message)
	}
	if what := changed(before, after, shown, r); what != "" {
		return nil, r.conflict(before, "Conflict: "+what+" changed between the preview and the patch; nothing was sent")
	}
	fmt.Fprintf(r.Streams.Err, "Note: the service moved from resourceVersion %s to %s by status alone; the patch tests the newer one.\n",
		before.Service.ResourceVersion, after.Service.ResourceVersion)
	return after, nil
}

// changed names what a person confirmed and is no longer so; empty when nothing.
func changed(before, after *Evidence, shown []Row, r *run) string {
	if before.Service.UID != after.Service.UID {
		return "the object itself"
	}
	if !reflect.DeepEqual(before.Service.Annotations, after.Service.Annotations) {
		return "an annotation"
	}
	if !reflect.DeepEqual(specOf(before.raw), specOf(after.raw)) {
		return "the spec"
	}
	rows, _ := r.preview(after)
	if len(rows) != len(shown) {
		return "the preview"
	}
	for i := range rows {
		if rows[i] != shown[i] && rows[i].Label != rowResourceVersion {
			return "preview row " + rows[i].Label
		}
	}
	return ""
}

// specOf is the stored spec with every field, known here or not.
func specOf(raw []byte) any {
	var o struct {
		Spec any `json:"spec"`
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &o); err != nil {
		return err
	}
	return o.Spec
}

// conflict is the error of a target that is no longer the one that was read.
func (r *run) conflict(ev *Evidence, details ...string) *Error {
	details = append(details, "to see it now: "+ev.Command(r.action.Words.FollowUp))
	return &Error{Message: r.action.Words.Conflict, Code: ExitConflict, Details: details}
}

// patch sends the change and reads the answer.
func (r *run) patch(ctx context.Context, ev *Evidence) error {
	change := r.action.Change(ev)
	body, err := encodePatch(append(guardOps(ev.target()), annotationOps(ev.Service.Annotations, change)...))
	if err != nil {
		return Refuse(MsgReadFailed, "the patch could not be encoded: "+Clean(err.Error()), "nothing was sent")
	}
	r.client.warnings = nil
	raw, err := r.client.Patch(ctx, ev.serviceRef(), "", body, r.opts.DryRun == DryRunServer)
	switch {
	case errors.Is(err, errTooLarge):
		return r.unbound(ev, "the answer is over 1 MiB")
	case err != nil:
		return r.patchError(err, ev)
	}
	if what := unbound(raw, ev, change); what != "" {
		return r.unbound(ev, what)
	}
	for _, w := range r.client.warnings {
		fmt.Fprintln(r.Streams.Err, "Warning: "+w)
	}
	return nil
}

func (r *run) unbound(ev *Evidence, what string) *Error {
	return Refuse(r.action.Words.Unbound, what, "to check: "+ev.Command(r.action.Words.FollowUp))
}

// unbound says why an answer isn't about this request; empty when it is.
func unbound(raw []byte, ev *Evidence, change []Annotation) string {
	var s v1beta1.InferenceService
	if err := decode(raw, &s); err != nil {
		return "the answer is no InferenceService: " + Clean(err.Error())
	}
	if s.Kind != v1beta1.InferenceServiceKind || s.APIVersion != v1beta1.GroupVersion.String() ||
		s.Namespace != ev.Namespace || s.Name != ev.Name || s.UID != ev.Service.UID {
		return "the answer is about another object than " + ev.serviceRef().String()
	}
	for _, c := range change {
		got, ok := s.Annotations[c.Key]
		if ok != (c.Value != nil) || (ok && got != *c.Value) {
			return "the answer doesn't show the requested annotation " + c.Key
		}
	}
	return ""
}

// patchError turns a failed patch into what a person should know: whether
// something may have been stored comes first.
func (r *run) patchError(err error, ev *Evidence) *Error {
	check := "the outcome is unknown; to check: " + ev.Command(r.action.Words.FollowUp)
	if r.opts.DryRun == DryRunServer {
		check = "it was a server dry run, so nothing was stored"
	}
	if e := contextError(err); e != nil {
		e.Details = []string{"while patching " + ev.serviceRef().String(), check}
		return e
	}
	head := classOf(err) + ": patch of " + ev.serviceRef().String()
	switch classify(err) {
	case outcomeConflict:
		return r.conflict(ev, "Conflict: "+ev.serviceRef().String()+" is no longer at resourceVersion "+ev.Service.ResourceVersion+"; nothing was stored",
			"if only its status moves, --retry-on-status-change accepts that")
	case outcomeUnknown:
		return Refuse(MsgReadFailed, head, serverText(err), check)
	}
	details := []string{head, serverText(err), "nothing was stored"}
	if classOf(err) == "Forbidden" {
		details = append(details, "to check your rights: "+ev.kubectl("auth can-i patch inferenceservices."+v1beta1.Group))
	}
	return Refuse(MsgReadFailed, details...)
}

func (r *run) print(ev *Evidence) error {
	res := &ActionResult{
		APIVersion:  ResultAPIVersion,
		Kind:        "ActionResult",
		CollectedAt: r.Clock.Now().UTC().Format(time.RFC3339),
		Action:      r.action.Name,
		Target:      ev.target(),
		DryRun:      r.opts.DryRun,
		Message:     msgValidated,
		FollowUp:    ev.Command(r.action.Words.FollowUp),
	}
	switch r.opts.DryRun {
	case DryRunServer:
		res.Accepted, res.Message = true, msgDryRun
	case DryRunNone:
		res.Accepted, res.Applied, res.Message = true, true, r.action.Words.Accepted
	}
	if err := PrintResult(r.Streams.Out, res, r.opts.Output); err != nil {
		state := "nothing was sent"
		switch r.opts.DryRun {
		case DryRunServer:
			state = "it was a server dry run, so nothing was stored"
		case DryRunNone:
			state = "the API server stored the change"
		}
		return Refuse(r.action.Words.WriteFailed, Clean(err.Error())+"; "+state, "to check: "+res.FollowUp)
	}
	return nil
}
