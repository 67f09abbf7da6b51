package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/internal/guarded"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// now is the time of every case.
var now = time.Date(2026, 9, 28, 14, 5, 0, 0, time.UTC)

// actionCase is one fork of the contract.
type actionCase struct {
	name string
	// verb is the action; fixture, if set, is stored first.
	verb    string
	fixture *fixture
	// flags replaces the default --yes. line replaces the whole command line
	// after the verb.
	flags []string
	line  []string
	// labels are set on the case's namespace; webhooks select by them.
	labels map[string]string
	user   string
	// kubeconfig replaces the user's.
	kubeconfig string
	// terminal makes stdin one; stdin is what is typed, nothing when hangs.
	terminal bool
	stdin    string
	hangs    bool
	// hook sees every request; atPrompt runs when the prompt is shown.
	hook     func(r *running) hook
	atPrompt func(r *running)
	budget   time.Duration
	// serverNow is the time that the API server's answers carry, that of the case
	// when zero.
	serverNow time.Time
	// bare leaves out the flags that the verb can't do without.
	bare bool
	// brokenOut and brokenErr are streams that can't be written.
	brokenOut, brokenErr bool

	// code, message and patches are what the contract says: the exit code, the
	// text after "error: " (empty for success), and how many patches were sent.
	code    int
	message string
	patches int
	// says is a text that the error's details must have, where one message has
	// several causes.
	says string
}

type hook func(next http.RoundTripper, req *http.Request) (*http.Response, error)

// running is a case under way.
type running struct {
	t         *testing.T
	namespace string
	// verb is the action that runs; nil for commands that only look.
	verb *verb
	// uids and versions are those of the objects before the action, with the names
	// that transcripts give them.
	uids, versions map[string]string
	cancel         context.CancelFunc
}

func (c *actionCase) run(t *testing.T) {
	r := &running{t: t, namespace: newNamespace(t), verb: verbNamed(c.verb)}
	if c.labels != nil {
		r.label(c.labels)
	}
	if c.fixture != nil {
		c.fixture.store(t, r.namespace)
	}
	r.name(c.fixture)
	for mode := range c.labels {
		r.waitForWebhook(c.labels[mode])
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.cancel = cancel

	var requests []string
	var patch []byte
	var out, errOut bytes.Buffer
	app := &App{Clock: fixedClock(), Budget: c.budget}
	if app.Budget == 0 {
		app.Budget = time.Minute
	}
	in := c.input()
	if c.terminal {
		// A terminal shows what is typed.
		in = io.TeeReader(in, &errOut)
	}
	app.Streams = guarded.Streams{In: in, Out: &out, Err: &promptWatch{w: &errOut, onPrompt: func() {
		if c.atPrompt != nil {
			c.atPrompt(r)
		}
	}}, InIsTerminal: c.terminal}
	if c.brokenOut {
		app.Streams.Out = brokenWriter{}
	}
	if c.brokenErr {
		app.Streams.Err = &brokenOnce{w: &errOut}
	}
	app.WrapConfig = func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			var h hook
			if c.hook != nil {
				h = c.hook(r)
			}
			return &transport{next: next, hook: func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
				if req.Method == http.MethodPatch {
					patch, _ = io.ReadAll(req.Body)
					req.Body = io.NopCloser(bytes.NewReader(patch))
				}
				if h == nil {
					h = forward
				}
				resp, err := h(next, req)
				if err == nil {
					at := c.serverNow
					if at.IsZero() {
						at = now
					}
					resp.Header.Set("Date", at.Format(http.TimeFormat))
				}
				return resp, err
			}, log: &requests}
		})
	}
	code := app.Run(ctx, c.commandLine(r))

	patches := 0
	for _, req := range requests {
		if strings.HasPrefix(req, http.MethodPatch) {
			patches++
		}
	}
	if code != c.code {
		t.Errorf("exit code %d, want %d", code, c.code)
	}
	if patches != c.patches {
		t.Errorf("%d patches sent, want %d", patches, c.patches)
	}
	if got := errorLine(errOut.String()); got != c.message {
		t.Errorf("error line:\n got %q\nwant %q", got, c.message)
	}
	if !strings.Contains(errOut.String(), c.says) {
		t.Errorf("the error doesn't say %q:\n%s", c.says, errOut.String())
	}
	if c.code != 0 && out.Len() != 0 {
		t.Errorf("stdout must stay empty after an error, got:\n%s", out.String())
	}
	var b strings.Builder
	section := func(name, text string) {
		fmt.Fprintf(&b, "-- %s --\n%s", name, text)
		if text != "" && !strings.HasSuffix(text, "\n") {
			b.WriteString("\n")
		}
	}
	section("requests", strings.Join(requests, "\n"))
	section("patch", string(patch))
	section("stdout", out.String())
	section("stderr", errOut.String())
	section("exit", fmt.Sprint(code))
	section("annotations", r.annotations())
	if r.verb.replicaVerb() {
		section("replica", r.replica())
	}
	r.golden(c.verb, c.name, b.String())
}

func (c *actionCase) commandLine(r *running) []string {
	user := c.user
	if user == "" {
		user = "oncall"
	}
	kubeconfig := c.kubeconfig
	if kubeconfig == "" {
		kubeconfig = server.users[user]
	}
	args := slices.Concat(r.verb.path, c.line)
	if c.line == nil {
		args = slices.Concat(r.verb.path, []string{"chat", "-n", r.namespace}, c.words())
	}
	if !c.bare {
		args = append(args, r.verb.base...)
	}
	return append(args, "--kubeconfig", kubeconfig)
}

func (c *actionCase) input() io.Reader {
	if c.hangs {
		r, _ := io.Pipe()
		return r
	}
	return strings.NewReader(c.stdin)
}

// errorLine is the text of the line that starts with "error: ".
func errorLine(s string) string {
	for line := range strings.SplitSeq(s, "\n") {
		if text, ok := strings.CutPrefix(line, "error: "); ok {
			return text
		}
	}
	return ""
}

// versions finds resourceVersions wherever a transcript has one.
var (
	versions  = regexp.MustCompile(`((?i:resource-?version|IR RV)(?:"|,|:|=| |value)*| to )(\d+)`)
	deletedAt = regexp.MustCompile(`deleted at \S+`)
)

// golden compares with a stored transcript in which what differs from run to run
// has a name.
func (r *running) golden(verb, name, got string) {
	r.t.Helper()
	got = strings.NewReplacer(r.namespace, "<ns>", server.admin.Host, "<server>").Replace(got)
	for uid, name := range r.uids {
		got = strings.ReplaceAll(got, uid, "<uid"+name+">")
	}
	got = versions.ReplaceAllStringFunc(got, func(m string) string {
		part := versions.FindStringSubmatch(m)
		if name, ok := r.versions[part[2]]; ok {
			return part[1] + "<rv" + name + ">"
		}
		return part[1] + "<newer rv>"
	})
	got = deletedAt.ReplaceAllString(got, "deleted at <time>")
	compareGolden(r.t, filepath.Join("testdata", verb, strings.ReplaceAll(name, " ", "-")+".txt"), got)
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make it with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// name remembers the objects of the case by their UIDs and versions. The service's
// have no name of their own.
func (r *running) name(f *fixture) {
	r.uids, r.versions = map[string]string{}, map[string]string{}
	add := func(u *unstructured.Unstructured, name string) {
		r.uids[string(u.GetUID())], r.versions[u.GetResourceVersion()] = name, name
	}
	if f != nil {
		add(r.service(), "")
		for _, replica := range f.replicas {
			u := object("InferenceReplica", r.namespace, replica.GetName())
			if err := server.cluster.Get(r.t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
				r.t.Fatal(err)
			}
			add(u, " of "+u.GetName())
		}
	}
	for _, shared := range server.shared {
		add(shared, " of "+shared.GetName())
	}
}

// replica is what an action can change in the engine's replica.
func (r *running) replica() string {
	u := r.object("InferenceReplica", "chat-engine")
	if u == nil {
		return ""
	}
	a := u.GetAnnotations()
	for k := range a {
		if !strings.HasPrefix(k, "ome.io/") {
			delete(a, k)
		}
	}
	spec, _, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "replicas")
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"annotations": a, "replicas": spec})
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// annotations are the stored rollout annotations after the action.
func (r *running) annotations() string {
	s := r.service()
	if s == nil {
		return ""
	}
	kept := map[string]string{}
	for k, v := range s.GetAnnotations() {
		if len(v) < 200 && !strings.HasPrefix(k, "filler") {
			kept[k] = v
		}
	}
	b, err := json.Marshal(kept)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// service is the stored service; nil when it is gone.
func (r *running) service() *unstructured.Unstructured { return r.object("InferenceService", "chat") }

// object is a stored object; nil when it is gone.
func (r *running) object(kind, name string) *unstructured.Unstructured {
	u := object(kind, r.namespace, name)
	err := server.cluster.Get(context.Background(), client.ObjectKeyFromObject(u), u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return u
}

// change edits the stored service.
func (r *running) change(edit func(*unstructured.Unstructured)) {
	r.changeObject("InferenceService", "chat", edit)
}

// changeObject edits a stored object.
func (r *running) changeObject(kind, name string, edit func(*unstructured.Unstructured)) {
	u := r.object(kind, name)
	edit(u)
	if err := server.cluster.Update(context.Background(), u); err != nil {
		r.t.Fatal(err)
	}
}

// touchStatus writes the stored service's status, as a controller does.
func (r *running) touchStatus() { r.touch("InferenceService", "chat", "http://chat.example") }

// changeStatus edits the status of a stored object.
func (r *running) changeStatus(kind, name string, edit func(*unstructured.Unstructured)) {
	u := r.object(kind, name)
	edit(u)
	if err := server.cluster.Status().Update(context.Background(), u); err != nil {
		r.t.Fatal(err)
	}
}

// touch writes a harmless field of an object's status.
func (r *running) touch(kind, name, value string) {
	field := "url"
	if kind == "InferenceReplica" {
		field = "labelSelector"
	}
	r.changeStatus(kind, name, func(u *unstructured.Unstructured) { set(u, value, "status", field) })
}

func (r *running) remove() { r.removeObject("InferenceService", "chat") }

func (r *running) removeObject(kind, name string) {
	if err := server.cluster.Delete(context.Background(), object(kind, r.namespace, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) label(labels map[string]string) {
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	if err := server.cluster.Get(r.t.Context(), client.ObjectKey{Name: r.namespace}, ns); err != nil {
		r.t.Fatal(err)
	}
	all := ns.GetLabels()
	for k, v := range labels {
		all[k] = v
	}
	ns.SetLabels(all)
	if err := server.cluster.Update(r.t.Context(), ns); err != nil {
		r.t.Fatal(err)
	}
}

// waitForWebhook polls until the API server has the case's webhook in force.
func (r *running) waitForWebhook(mode string) {
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		u := r.service()
		a := u.GetAnnotations()
		a["probe"] = "1"
		u.SetAnnotations(a)
		err := server.cluster.Update(r.t.Context(), u, client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "webhook") {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	r.t.Fatalf("the webhook for %s never came into force", mode)
}

// promptWatch tells when the prompt is written.
type promptWatch struct {
	w        io.Writer
	onPrompt func()
}

func (p *promptWatch) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if bytes.Contains(b, []byte("[y/N]")) {
		p.onPrompt()
	}
	return n, err
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// brokenOnce fails the first write, the preview, and then works for the error.
type brokenOnce struct {
	w      io.Writer
	failed bool
}

func (b *brokenOnce) Write(p []byte) (int, error) {
	if !b.failed {
		b.failed = true
		return 0, errors.New("no space left on device")
	}
	return b.w.Write(p)
}

// Hooks.

// forward changes nothing.
func forward(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	return next.RoundTrip(req)
}

// on runs a hook for one method and path fragment and forwards everything else.
func on(method, fragment string, h hook) func(*running) hook {
	return func(*running) hook { return matching(method, fragment, h) }
}

func matching(method, fragment string, h hook) hook {
	return func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		if req.Method == method && strings.Contains(req.URL.Path, fragment) {
			return h(next, req)
		}
		return next.RoundTrip(req)
	}
}

// beforePatch runs once before a patch is forwarded.
func beforePatch(do func(r *running)) func(*running) hook {
	return func(r *running) hook {
		return matching(http.MethodPatch, "", func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
			do(r)
			return next.RoundTrip(req)
		})
	}
}

// beforeSecondRead runs once before the service is read a second time.
func beforeSecondRead(do func(r *running)) func(*running) hook {
	return onRead(2, func(r *running, next http.RoundTripper, req *http.Request) (*http.Response, error) {
		do(r)
		return next.RoundTrip(req)
	})
}

// onRead runs a hook for the n-th read of the service.
func onRead(n int, h func(*running, http.RoundTripper, *http.Request) (*http.Response, error)) func(*running) hook {
	return onNth(n, http.MethodGet, "/inferenceservices/chat", h)
}

// onNth runs a hook for the n-th request of a kind.
func onNth(n int, method, fragment string, h func(*running, http.RoundTripper, *http.Request) (*http.Response, error)) func(*running) hook {
	return func(r *running) hook {
		seen := 0
		return matching(method, fragment, func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
			if seen++; seen != n {
				return next.RoundTrip(req)
			}
			return h(r, next, req)
		})
	}
}

// lose forwards a request and loses the answer.
func lose(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return nil, errors.New("connection reset by peer")
}

// stall answers nothing until the request is given up.
func stall(_ http.RoundTripper, req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// rewrite changes the object in an answer.
func rewrite(edit func(map[string]any)) hook {
	return func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			return resp, err
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		_ = resp.Body.Close()
		var object map[string]any
		if err := json.Unmarshal(body, &object); err != nil {
			return nil, err
		}
		edit(object)
		if body, err = json.Marshal(object); err != nil {
			return nil, err
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		resp.Header.Del("Content-Length")
		return resp, nil
	}
}

// answer replies without asking the server.
func answer(code int, reason metav1.StatusReason, message string) hook {
	return func(_ http.RoundTripper, req *http.Request) (*http.Response, error) {
		body, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: reason, Message: message,
		})
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code), Request: req,
			Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}},
			Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}, err
	}
}

func metadata(o map[string]any) map[string]any { return o["metadata"].(map[string]any) }

func fixedClock() clock.Clock { return clocktesting.NewFakeClock(now) }
