package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/view"
)

// Bounds of what a read asks for.
const (
	maxServiceReplicas = 32
	// maxReplicaBytes is above what the API server stores in one object.
	maxReplicaBytes = 4 << 20
)

// reads is the connection of a read command. Its errors name what was read and
// the way out.
type reads struct {
	app     *App
	conn    *guarded.Connection
	clients map[schema.GroupVersion]*guarded.Client
}

// openReads checks the service's name and resolves the connection.
func (a *App) openReads(name string) (*reads, error) {
	if err := guarded.ValidateName(name); err != nil {
		return nil, err
	}
	conn, err := a.connect()
	if err != nil {
		return nil, err
	}
	if err := guarded.ValidateNamespace(conn.Namespace); err != nil {
		return nil, err
	}
	return newReads(a, conn), nil
}

func newReads(a *App, conn *guarded.Connection) *reads {
	return &reads{app: a, conn: conn, clients: map[schema.GroupVersion]*guarded.Client{}}
}

func (r *reads) client(gv schema.GroupVersion) (*guarded.Client, error) {
	if c := r.clients[gv]; c != nil {
		return c, nil
	}
	c, err := guarded.NewClient(r.conn.Config, gv, 0)
	if err != nil {
		return nil, err
	}
	r.clients[gv] = c
	return c, nil
}

// get reads one object or collection into a value.
func (r *reads) get(ctx context.Context, gv schema.GroupVersion, ref guarded.Ref, q guarded.Query, into any) error {
	c, err := r.client(gv)
	if err != nil {
		return err
	}
	raw, err := c.Read(ctx, ref, q)
	if err != nil {
		return err
	}
	return guarded.Decode(raw, into)
}

// serverTime is the time of the newest answer; zero before there is one.
func (r *reads) serverTime() time.Time {
	var newest time.Time
	for _, c := range r.clients {
		if t := c.ServerTime(); t.After(newest) {
			newest = t
		}
	}
	return newest
}

// slack covers that answers carry whole seconds and that the clocks of several
// API servers differ a little.
const slack = 2 * time.Second

// reference is the time after which a recorded time lies in the future: that of
// the API server, since the local clock may be wrong.
func (r *reads) reference() time.Time {
	if t := r.serverTime(); !t.IsZero() {
		return t.Add(slack)
	}
	return r.app.Clock.Now().Add(slack)
}

func (r *reads) ref(kind, resource, name string) guarded.Ref {
	return guarded.Ref{Kind: kind, Resource: resource, Namespace: r.conn.Namespace, Name: name}
}

// service reads the service that a command is about: the one read that no report
// goes without.
func (r *reads) service(ctx context.Context, name string) (*v1beta1.InferenceService, error) {
	ref := r.ref(v1beta1.InferenceServiceKind, v1beta1.InferenceServiceResource, name)
	s := &v1beta1.InferenceService{}
	if err := r.get(ctx, v1beta1.GroupVersion, ref, guarded.Query{}, s); err != nil {
		return nil, asError("get InferenceService: "+guarded.ServerText(err), err, r.explain(err, ref)...)
	}
	if s.Name != name || s.Namespace != r.conn.Namespace || s.UID == "" {
		return nil, guarded.Usage("get InferenceService: the answer is about another object", "asked for "+ref.String())
	}
	return s, nil
}

// explain says what kind of failure it was and what to do.
func (r *reads) explain(err error, ref guarded.Ref) []string {
	details := []string{guarded.ClassOf(err) + ": " + ref.String()}
	where := " -n " + guarded.ShellQuote(r.conn.Namespace)
	if r.conn.Context != "" {
		where += " --context=" + guarded.ShellQuote(r.conn.Context)
	}
	full, verb := ref.Resource+"."+v1beta1.Group, "get"
	if ref.Name == "" {
		verb = "list"
	}
	switch {
	case apierrors.IsNotFound(err):
		details = append(details, "to see what is there: kubectl get "+full+where)
	case apierrors.IsForbidden(err):
		details = append(details, "to check your rights: kubectl auth can-i "+verb+" "+full+where)
	}
	return details
}

// replicas reads the InferenceReplicas that carry the service's label. A failure
// is part of the answer: reports go on without them.
func (r *reads) replicas(ctx context.Context, name string) (view.ReplicaReads, error) {
	read, err := r.listReplicas(ctx, name)
	failed, fatal := failure(ctx, err)
	read.Failed = failed
	return read, fatal
}

func (r *reads) listReplicas(ctx context.Context, name string) (view.ReplicaReads, error) {
	var list v1beta1.InferenceReplicaList
	err := r.get(ctx, v1beta1.GroupVersion, r.ref(v1beta1.InferenceReplicaKind, v1beta1.InferenceReplicaResource, ""),
		guarded.Query{LabelSelector: v1beta1.InferenceServiceLabel + "=" + name, Limit: maxServiceReplicas}, &list)
	if err != nil {
		return view.ReplicaReads{}, err
	}
	return view.ReplicaReads{Items: list.Items, Truncated: list.Continue != ""}, nil
}

// failure is the class of a failed read; an ended context is fatal instead.
func failure(ctx context.Context, err error) (string, error) {
	if err == nil {
		return "", nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return "", asError(ctxErr.Error(), ctxErr)
	}
	return guarded.ClassOf(err), nil
}

// noteSkew tells a person that the local clock is wrong enough to matter.
func (r *reads) noteSkew() {
	server := r.serverTime()
	if d := r.app.Clock.Now().Sub(server).Round(time.Second); !server.IsZero() && d.Abs() > time.Minute {
		fmt.Fprintf(r.app.Streams.Err, "Note: the local clock differs from the API server's by %s; recorded times are held against the server's.\n", d)
	}
}

// formats are the output formats of a command.
type formats struct {
	value string
	wide  bool
}

// add binds -o. A command without a wide form says so.
func (f *formats) add(cmd *cobra.Command, wide bool) {
	f.wide = wide
	if wide {
		addOutput(cmd, &f.value)
		cmd.Flags().Lookup("output").Usage = "Output: table, wide, json or yaml"
		return
	}
	cmd.Flags().StringVarP(&f.value, "output", "o", string(guarded.OutputTable), "Output: table, json or yaml")
	fixed(cmd, "output", "table", "json", "yaml")
}

func (f *formats) parse() (guarded.Output, error) {
	o, err := guarded.ParseOutput(f.value)
	if !f.wide && (err != nil || o == guarded.OutputWide) {
		return "", guarded.Usage("output must be table, json or yaml", "got "+guarded.Quote(f.value))
	}
	return o, err
}

// show prints a report. Nothing is written before all of it is drawn.
func show[T any](a *App, what string, report *view.Report[T], format guarded.Output, table, wide func(*view.Report[T]) *view.Table) error {
	var buf bytes.Buffer
	var err error
	switch format {
	case guarded.OutputTable:
		err = table(report).Write(&buf, a.Streams.Width)
	case guarded.OutputWide:
		err = wide(report).Write(&buf, a.Streams.Width)
	default:
		err = encode(&buf, report, format)
	}
	if err == nil {
		_, err = io.Copy(a.Streams.Out, &buf)
	}
	if err != nil {
		return guarded.Usage("write "+what+" report failed", guarded.Clean(err.Error()))
	}
	return nil
}

// componentFlag is the one component that a command is about.
func componentFlag(cmd *cobra.Command, component *string, usage string) {
	cmd.Flags().StringVar(component, "component", "", usage)
	var words []string
	for _, c := range v1beta1.Components() {
		words = append(words, string(c))
	}
	fixed(cmd, "component", words...)
}

func parseComponent(s string) (v1beta1.ComponentType, error) {
	if c := v1beta1.ComponentType(s); slices.Contains(v1beta1.Components(), c) {
		return c, nil
	}
	return "", guarded.Usage("component must be engine, decoder or router", "got "+guarded.Quote(s)+"; pass --component")
}
