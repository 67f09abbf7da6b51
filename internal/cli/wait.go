package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/view"
)

const (
	pollInterval   = 5 * time.Second
	defaultTimeout = time.Minute
	maxWaitTimeout = 24 * time.Hour
	// maxWatchEvents is more than two status writes a second for a day.
	maxWatchEvents = 200_000
	// maxEventBytes is above what the API server stores in one object.
	maxEventBytes = 4 << 20

	// exitUnmet is the exit code of a wait that ended without a match.
	exitUnmet = 2
)

func (a *App) wait() *cobra.Command {
	var flags waitFlags
	cmd := &cobra.Command{
		Use:   "wait INFERENCESERVICE --for=PREDICATE",
		Short: "Wait until a service is in a state",
		Long: `Wait until a service is in a state. The first check runs at once.

Predicates:
  condition=Ready[=True|False|Unknown]      the Ready condition
  rollout=stable|failed|rolled-back|paused  what "rollout status" reports; paused is a
                                            canary that waits at a gate, or a pause
  replicas=ready     --component --replicas ready Instances of a component
  replicas=current   --component --replicas wanted and present Instances
  held-revision=unheld  --component --revision --ir-name --ir-uid
  migration=terminal --request-id           a migration ended, well or not
  runtime-sync=acknowledged --request-id    the manager took up a sync request

Exit 0 means that it matched, 2 that it didn't: the time was up, or the service is
gone or another one. The report is printed in both cases. A status that is proved to
be about an older spec never matches. The first two predicates watch the service
where the right to watch is given, and else poll every 5 seconds like the others.`,
		Example: "  kubectl ome wait chat -n prod --for=condition=Ready --timeout=10m\n" +
			"  kubectl ome wait chat -n prod --for=replicas=ready --component engine --replicas 4",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return guarded.Usage("accepts 1 arg(s), received " + itoa(len(args)))
			}
			return nil
		},
		ValidArgsFunction: a.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runWait(cmd.Context(), args[0], &flags)
		},
	}
	flags.add(cmd)
	return cmd
}

func (a *App) runWait(ctx context.Context, name string, flags *waitFlags) error {
	if err := guarded.ValidateName(name); err != nil {
		return guarded.Usage("InvalidInferenceServiceName", "a name has lowercase letters, digits, '-' and '.', and starts and ends with a letter or digit")
	}
	predicate, format, err := flags.parse(name)
	if err != nil {
		return err
	}
	conn, err := a.connect()
	if err != nil {
		return reworded("WaitConfigurationUnavailable", err)
	}
	if err := guarded.ValidateNamespace(conn.Namespace); err != nil {
		return reworded("InvalidNamespace", err)
	}
	w := &waiting{
		reads: newReads(a, conn), name: name, predicate: predicate, waiter: view.NewWaiter(predicate),
		started: a.Clock.Now(), timeout: flags.timeout, method: view.MethodInitialGET,
	}
	outcome, err := w.run(ctx)
	if err != nil {
		return err
	}
	now := a.Clock.Now()
	report := w.waiter.Report(conn.Namespace, name, outcome, now.Sub(w.started), w.counts, w.method, w.fallback, now)
	if err := show(a, "wait", report, format, view.WaitTable, view.WaitWide); err != nil {
		return reworded("WaitOutputFailed", err)
	}
	if outcome != view.OutcomeMatched {
		return &guarded.Error{Message: "RequestedConditionUnmet", Code: exitUnmet}
	}
	return nil
}

// reworded puts a code of this command before what another layer said.
func reworded(code string, err error) error {
	var e *guarded.Error
	if errors.As(err, &e) {
		return guarded.Usage(code, append([]string{e.Message}, e.Details...)...)
	}
	return guarded.Usage(code, guarded.Clean(err.Error()))
}

// errTimeUp is the cause of a context that the timeout ended.
var errTimeUp = errors.New("time is up")

// waiting is one wait under way.
type waiting struct {
	*reads
	name      string
	predicate *view.WaitPredicate
	waiter    *view.Waiter
	started   time.Time
	timeout   time.Duration
	counts    view.WaitCounts
	// method is how the last check was made; fallback is set once a watch failed.
	method   string
	fallback bool
	// seen is set by the first check: only after it are failed reads tried again.
	seen bool
	// version is the resourceVersion to watch from.
	version string
	// ahead is how far the API server's clock is ahead of the local one.
	ahead time.Duration
}

// run checks until there is an outcome. The timeout ends reads that hang, too.
func (w *waiting) run(parent context.Context) (outcome string, err error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	timer := w.app.Clock.NewTimer(w.timeout)
	defer timer.Stop()
	go func() {
		select {
		case <-timer.C():
			cancel(errTimeUp)
		case <-ctx.Done():
		}
	}()
	outcome, err = w.look(ctx, view.MethodInitialGET)
	for outcome == "" && err == nil {
		if w.predicate.Watches() && !w.fallback {
			outcome, err = w.follow(ctx)
			continue
		}
		if !w.rest(ctx) {
			break
		}
		w.counts.Polls++
		outcome, err = w.look(ctx, view.MethodPoll)
	}
	switch {
	case outcome != "" && err == nil:
		return outcome, nil
	case parent.Err() != nil:
		return "", guarded.Usage("Canceled", "interrupted before the condition was met")
	case ctx.Err() != nil || err == nil:
		return view.OutcomeTimedOut, nil
	}
	return "", err
}

// rest waits for the next poll; false when the time is up.
func (w *waiting) rest(ctx context.Context) bool {
	timer := w.app.Clock.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-timer.C():
		return ctx.Err() == nil && w.app.Clock.Since(w.started) < w.timeout
	case <-ctx.Done():
		return false
	}
}

// look reads what the predicate is about and checks it.
func (w *waiting) look(ctx context.Context, method string) (outcome string, err error) {
	in := &view.WaitInput{}
	s := &v1beta1.InferenceService{}
	w.counts.Gets++
	ref := w.ref(v1beta1.InferenceServiceKind, v1beta1.InferenceServiceResource, w.name)
	err = w.get(ctx, v1beta1.GroupVersion, ref, guarded.Query{}, s)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return "", w.acquisition(ctx, err, ref)
	case s.Name != w.name || s.Namespace != w.conn.Namespace || s.UID == "":
		return "", guarded.Usage("InvalidIdentity", "the answer is about another object than "+ref.String())
	default:
		in.Service, w.version = s, s.ResourceVersion
	}
	if in.Service != nil && w.predicate.NeedsReplicas() {
		w.counts.Gets++
		replicas, err := w.listReplicas(ctx, w.name)
		if err != nil {
			return "", w.acquisition(ctx, err, w.ref(v1beta1.InferenceReplicaKind, v1beta1.InferenceReplicaResource, ""))
		}
		in.Replicas = &replicas
	}
	if t := w.serverTime(); !t.IsZero() {
		w.ahead = t.Sub(w.app.Clock.Now())
	}
	w.method = method
	return w.check(in)
}

func (w *waiting) check(in *view.WaitInput) (string, error) {
	w.seen = true
	w.counts.Observations++
	outcome, failed := w.waiter.Check(in, w.app.Clock.Now().Add(w.ahead+slack))
	if failed != "" {
		return "", guarded.Usage(failed, "the status of the service has more entries than a check looks through")
	}
	return outcome, nil
}

// acquisition is the error of a failed read. After the first check a failure that
// may pass is left to the next poll; the timeout bounds how often.
func (w *waiting) acquisition(ctx context.Context, err error, ref guarded.Ref) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case guarded.TooLarge(err):
		return guarded.Usage("AcquisitionBudgetExceeded", "TooLarge: "+ref.String())
	case w.seen && passing(err):
		return nil
	}
	return guarded.Usage("AcquisitionFailed", append(w.explain(err, ref), guarded.ServerText(err))...)
}

// passing is true for a failure that the next try may not have.
func passing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return guarded.ClassOf(err) == "Network" || errors.Is(err, context.DeadlineExceeded)
	}
	code := status.Status().Code
	return code == 429 || code >= 500
}

// watchEvent is one document of a watch.
type watchEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// follow watches the service until there is an outcome or the watch ends. A watch
// that can't be opened, or ends without a word, is replaced by polling.
func (w *waiting) follow(ctx context.Context) (outcome string, err error) {
	c, err := w.client(v1beta1.GroupVersion)
	if err != nil {
		return "", guarded.Usage("AcquisitionFailed", guarded.Clean(err.Error()))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.counts.Watches++
	body, err := c.Watch(ctx, w.ref(v1beta1.InferenceServiceKind, v1beta1.InferenceServiceResource, w.name), w.version)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		w.fallback = true
		return "", nil
	}
	events := make(chan watchEvent)
	broken := make(chan error, 1)
	go func() { broken <- readWatch(ctx, body, events) }()
	before := w.counts.Events
	for outcome == "" && err == nil {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case e := <-events:
			if w.counts.Events++; w.counts.Events > maxWatchEvents {
				return "", guarded.Usage("EventBudgetExceeded", "the service changed "+itoa(maxWatchEvents)+" times")
			}
			var again bool
			if outcome, again, err = w.event(&e); again {
				return w.look(ctx, view.MethodRefreshGET)
			}
		case err := <-broken:
			switch {
			case ctx.Err() != nil:
				return "", ctx.Err()
			case errors.Is(err, bufio.ErrTooLong):
				return "", guarded.Usage("AcquisitionBudgetExceeded", "an event of the watch is over 4 MiB")
			case w.counts.Events == before:
				w.fallback = true
				return "", nil
			}
			return w.look(ctx, view.MethodRefreshGET)
		}
	}
	return outcome, err
}

// readWatch hands out the documents of a watch, one a line.
func readWatch(ctx context.Context, body io.ReadCloser, events chan<- watchEvent) error {
	defer func() { _ = body.Close() }()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEventBytes)
	for lines.Scan() {
		var e watchEvent
		if err := guarded.Decode(lines.Bytes(), &e); err != nil {
			return err
		}
		select {
		case events <- e:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return lines.Err()
}

// event checks one event; again asks for a fresh read instead.
func (w *waiting) event(e *watchEvent) (outcome string, again bool, err error) {
	switch e.Type {
	case "BOOKMARK":
		return "", false, nil
	case "ADDED", "MODIFIED", "DELETED":
	default: // ERROR, such as a version too old to go on from
		return "", true, nil
	}
	s := &v1beta1.InferenceService{}
	if err := guarded.Decode(e.Object, s); err != nil || s.Name != w.name || s.Namespace != w.conn.Namespace || s.UID == "" {
		return "", false, guarded.Usage("InvalidIdentity", "an event of the watch is about another object")
	}
	w.method, w.version = view.MethodWatch, s.ResourceVersion
	in := &view.WaitInput{Service: s}
	if e.Type == "DELETED" {
		in.Service = nil
	}
	outcome, err = w.check(in)
	return outcome, false, err
}

// waitFlags are the flags as given.
type waitFlags struct {
	predicate, component, replicas, irName, irUID, revision, requestID, output string
	timeout                                                                    time.Duration
	cmd                                                                        *cobra.Command
}

func (f *waitFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if strings.Contains(err.Error(), "--timeout") {
			return guarded.Usage(msgWaitTimeout, guarded.Clean(err.Error()))
		}
		return guarded.Usage("InvalidWaitFlags", guarded.Clean(err.Error()), "see: "+cmd.CommandPath()+" --help")
	})
	fs := cmd.Flags()
	fs.StringVar(&f.predicate, "for", "", "What to wait for (required)")
	fs.DurationVar(&f.timeout, "timeout", defaultTimeout, "How long to wait; at most 24h")
	componentFlag(cmd, &f.component, "Component: engine, decoder or router; for replicas and held-revision")
	fs.StringVar(&f.replicas, "replicas", "", "Number of Instances; for replicas")
	fs.StringVar(&f.irName, "ir-name", "", "Name of the InferenceReplica; for replicas=current and held-revision")
	fs.StringVar(&f.irUID, "ir-uid", "", "UID of the InferenceReplica; for replicas=current and held-revision")
	fs.StringVar(&f.revision, "revision", "", "Full name of the revision; for held-revision")
	fs.StringVar(&f.requestID, "request-id", "", "ID of the request; for migration and runtime-sync")
	fs.StringVarP(&f.output, "output", "o", string(guarded.OutputTable), "Output: table, wide, json or yaml")
	fixed(cmd, "output", "table", "wide", "json", "yaml")
	fixed(cmd, "for", "condition=Ready", "rollout=stable", "rollout=failed", "rollout=rolled-back", "rollout=paused", "replicas=ready", "replicas=current",
		"held-revision=unheld", "migration=terminal", "runtime-sync=acknowledged")
}
