package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/preview"
	"ome.io/ome/internal/render"
	"ome.io/ome/internal/validate"
	"ome.io/ome/internal/view"
)

// previewFlags are the flags of `rollout preview`.
type previewFlags struct {
	output            formats
	files, from       []string
	service           string
	offline           bool
	startUp, shutDown time.Duration
	omeNamespace      string
}

func (a *App) rolloutPreview() *cobra.Command {
	f := &previewFlags{}
	cmd := &cobra.Command{
		Use:   "preview -f FILE",
		Short: "Show the moves that a changed service would make",
		Long: `Show the moves that a changed service would make, before it is applied.

The manager's own decisions are run in a simulated cluster: it starts where the live
service stands, takes the spec of the file, and runs until nothing is left to happen.
There is a line for each batch of moves, with what serves after it; then the least that
served and the most pods there were. Nothing is changed.

With --offline no cluster is read: the service starts on the spec of --from, or on
another image of the same spec without it, with every Instance Ready. The runtime and
the model are then taken from the files.

Pods take the same time each and none fails; what was assumed is printed. It exits 0
when the change completes, 2 when it would stall, naming what holds it, and 1 when
admission would refuse it or it couldn't be looked at.`,
		Example: "  kubectl ome rollout preview -f chat.yaml\n  kubectl ome rollout preview -f new.yaml --offline --from old.yaml -f runtime.yaml -f model.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return guarded.Usage("rollout preview takes no argument", "pass the changed service with -f FILE")
			}
			return f.check()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, err := f.output.parse()
			if err != nil {
				return err
			}
			return a.showRolloutPreview(cmd.Context(), f, format)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "File with the changed service, and runtimes and models that change with it; can be repeated; - for standard input")
	flags.StringArrayVar(&f.from, "from", nil, "File with the service before the change, for --offline; can be repeated")
	flags.StringVar(&f.service, "service", "", "Live service to start from, as NAMESPACE/NAME; the one that the file names if not set")
	flags.BoolVar(&f.offline, "offline", false, "Read no cluster")
	flags.DurationVar(&f.startUp, "start-up", 90*time.Second, "Time from a pod's creation until its containers are ready")
	flags.DurationVar(&f.shutDown, "shut-down", 10*time.Second, "Time from a pod's deletion until it is gone")
	flags.StringVar(&f.omeNamespace, "ome-namespace", DefaultOMENamespace, "Namespace of the OME manager, whose settings are read")
	for _, name := range []string{"filename", "from"} {
		_ = cmd.MarkFlagFilename(name, "yaml", "yml", "json")
	}
	f.output.add(cmd, true)
	return cmd
}

// maxPodTime bounds the times of a pod.
const maxPodTime = 24 * time.Hour

func (f *previewFlags) check() error {
	switch {
	case len(f.files) == 0:
		return guarded.Usage("a file with the changed service is required", "pass -f FILE")
	case f.offline && f.service != "":
		return guarded.Usage("service and offline can't be used together", "with --offline the old service comes from --from")
	case !f.offline && len(f.from) > 0:
		return guarded.Usage("from needs offline", "without --offline the change starts from the live service")
	case f.startUp < 0 || f.startUp > maxPodTime || f.shutDown < 0 || f.shutDown > maxPodTime:
		return guarded.Usage("start-up and shut-down must be between 0s and 24h", fmt.Sprintf("got %s and %s", f.startUp, f.shutDown))
	}
	return nil
}

// previewCase is a preview on its way.
type previewCase struct {
	in      preview.Input
	subject view.PreviewSubject
	// typos are fields of the file that the API doesn't have.
	typos []string
	// old is what admission compares with, nil for a service that is new to it.
	old *v1beta1.InferenceService
	// newFrom is what the new spec is rendered from; lost says where a missing object
	// may come from.
	newFrom render.Sources
	lost    string
}

func (a *App) showRolloutPreview(ctx context.Context, f *previewFlags, format guarded.Output) error {
	files, err := a.previewFiles(f.files)
	if err != nil {
		return err
	}
	if files.others > 0 {
		fmt.Fprintf(a.Streams.Err, "Note: %d objects of other kinds are not looked at.\n", files.others)
	}
	c := &previewCase{typos: files.service.Typos}
	c.in.Now, c.in.Timing = a.Clock.Now(), preview.Timing{StartUp: f.startUp, ShutDown: f.shutDown}
	c.subject.Timing = c.in.Timing
	if f.offline {
		err = a.previewOffline(c, f, files)
	} else {
		err = a.previewLive(ctx, c, f, files)
	}
	if err != nil {
		return err
	}
	if err := c.admit(); err != nil {
		return err
	}
	if c.in.New.Templates, err = c.render(c.in.New.Service, c.newFrom); err != nil {
		return err
	}
	if c.subject.Basis == view.BasisAssumed {
		c.in.Old.Templates = map[v1beta1.ComponentType]*core.Template{}
		for kind, t := range c.in.New.Templates {
			c.in.Old.Templates[kind] = preview.Previous(t)
		}
	}
	return a.showPreview(c, format)
}

// previewOffline takes all from files.
func (a *App) previewOffline(c *previewCase, f *previewFlags, files *previewFiles) error {
	c.in.Settings = config.Default()
	s := files.service.Object
	if s.Namespace == "" {
		s.Namespace = "default"
	}
	c.in.New.Service = s
	c.in.Policies = map[string]plan.Policy{}
	for name, p := range files.policies {
		c.in.Policies[name] = judged(p, c.in.Settings)
	}
	c.newFrom, c.lost = files.sources(s), "offline the runtime and the model are read from files: add -f RUNTIME.yaml and -f MODEL.yaml"
	c.subject.Assumed = append(c.subject.Assumed, "the operator's settings are the defaults")
	c.subject.Sources = append(c.subject.Sources, declared(s, c.in.Now))
	if len(f.from) == 0 {
		c.subject.Basis = view.BasisAssumed
		c.in.Old.Service = s
		return nil
	}
	from, err := a.previewFiles(f.from)
	if err != nil {
		return err
	}
	old := from.service.Object
	old.Name, old.Namespace = s.Name, s.Namespace
	c.subject.Basis, c.old, c.in.Old.Service = view.BasisFile, old, old
	c.subject.Sources = append(c.subject.Sources, declared(old, c.in.Now))
	c.newFrom = files.sources(s, from)
	c.in.Old.Templates, err = c.render(old, from.sources(old, files))
	return err
}

func declared(s *v1beta1.InferenceService, now time.Time) view.Source {
	return view.Source{Kind: v1beta1.InferenceServiceKind, Namespace: guarded.Clean(s.Namespace), Name: guarded.Clean(s.Name),
		Evidence: view.EvidenceDeclared, CollectedAt: now.UTC().Format(time.RFC3339)}
}

// admit judges the new spec as the webhook would.
func (c *previewCase) admit() error {
	const refused = "admission would refuse the change"
	if len(c.typos) > 0 {
		return guarded.Usage(refused, guarded.Clean(validate.UnknownFields(c.typos)))
	}
	r := validate.InferenceService(c.in.New.Service, c.old, validate.Options{KEDAServed: true, PoliciesServed: c.in.Policies != nil})
	c.subject.Advice = r.WarningTexts()
	if r.OK() {
		return nil
	}
	var details []string
	for _, p := range r.Errors {
		details = append(details, guarded.Clean(p.String()))
	}
	return guarded.Usage(refused, details...)
}

// render makes the templates of a service. What the manager doesn't run by itself is left out
// and said.
func (c *previewCase) render(s *v1beta1.InferenceService, from render.Sources) (map[v1beta1.ComponentType]*core.Template, error) {
	out := map[v1beta1.ComponentType]*core.Template{}
	rendered := render.Components(s, from, c.in.Settings)
	for _, kind := range v1beta1.IsvcComponents(s) {
		r, ok := rendered[kind]
		switch {
		case !ok:
			if note := fmt.Sprintf("%s is not run by the manager's own engine, and left out", kind); s == c.in.New.Service && !slices.Contains(c.subject.Assumed, note) {
				c.subject.Assumed = append(c.subject.Assumed, note)
			}
		case r.Err != nil:
			var details []string
			for line := range strings.Lines(r.Err.Message) {
				details = append(details, guarded.Clean(strings.TrimSpace(line)))
			}
			if c.lost != "" && (r.Err.Reason == v1beta1.ReasonRuntimeNotFound || r.Err.Reason == v1beta1.ReasonModelNotFound) {
				details = append(details, c.lost)
			}
			return nil, guarded.Usage("the pods of "+string(kind)+" can't be rendered", details...)
		default:
			out[kind] = r.Template
		}
	}
	return out, nil
}

// showPreview plays it and prints the outcome.
func (a *App) showPreview(c *previewCase, format guarded.Output) error {
	res := preview.Preview(c.in)
	c.subject.Service = c.in.New.Service
	if res.Outcome == preview.Endless {
		return guarded.Usage("the preview comes to no end", "this is a bug: please report it with the file")
	}
	report := view.BuildRolloutPreview(&res, c.subject, c.in.Now)
	var head, foot string
	if format == guarded.OutputTable || format == guarded.OutputWide {
		head, foot = view.RolloutPreviewHead(report, a.Streams.Width), view.RolloutPreviewFoot(report, a.Streams.Width)
	}
	if err := a.around(head, foot, report, format); err != nil {
		return err
	}
	for _, w := range report.Content.Advice {
		fmt.Fprintf(a.Streams.Err, "Warning: %s\n", w)
	}
	if res.Outcome == preview.Stalls {
		return &guarded.Error{Message: "the change would stall", Details: view.RolloutPreviewCauses(report), Code: exitUnmet}
	}
	return nil
}

// around prints a report between its texts.
func (a *App) around(head, foot string, report *view.RolloutPreviewReport, format guarded.Output) error {
	const what = "rollout preview"
	failed := func(err error) error {
		return guarded.Usage("write "+what+" report failed", guarded.Clean(err.Error()))
	}
	if _, err := io.WriteString(a.Streams.Out, head); err != nil {
		return failed(err)
	}
	if err := show(a, what, report, format, view.RolloutPreviewTable, view.RolloutPreviewWide); err != nil {
		return err
	}
	if _, err := io.WriteString(a.Streams.Out, foot); err != nil {
		return failed(err)
	}
	return nil
}

// over lays the labels or annotations of a file over stored ones, as an apply does.
func over(stored, file map[string]string) map[string]string {
	if len(stored)+len(file) == 0 {
		return nil
	}
	out := maps.Clone(stored)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, file)
	return out
}

// splitService reads NAMESPACE/NAME or NAME.
func splitService(text string) (namespace, name string) {
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		return namespace, name
	}
	return "", text
}
