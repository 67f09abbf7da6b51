package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"ome.io/ome/lab/internal/binaries"
	"ome.io/ome/lab/internal/cluster"
)

// The service of the samples.
const (
	namespace = "mistral-demo"
	service   = "mistral-pd"
)

// Config of one run.
type Config struct {
	// Executable is ome-lab, which also runs as the supervisor.
	Executable string
	// Bin holds kubectl-ome, and ome-manager unless Manager says otherwise.
	Bin string
	// Manager is the path of ome-manager.
	Manager string
	// Finder looks up or builds the control plane's programs.
	Finder binaries.Finder
	// Dir of the lab; a new temporary one when empty.
	Dir string
	// Keep leaves the lab up at the end.
	Keep bool
	// SkipDrain is the negative control: the manager kills old pods in rotation, and requests must get lost.
	SkipDrain bool
	// Prometheus is the path of the program, for a lab that has one.
	Prometheus string
	// Rate of requests a second.
	Rate float64
	// StartUp is how long a new server takes to start: longer than a person, or kubectl on a busy machine, takes to
	// pause the roll. 10 s when zero.
	StartUp time.Duration
	// Out takes the narration. TTY redraws the status in place.
	Out io.Writer
	TTY bool
}

// What the run insists on.
const (
	minRate     = 50
	minRequests = 3000
	// hold is how long the pause is watched once the new pods are up.
	hold = 8 * time.Second
	// tail is how long requests go on after the last pod of the roll has gone.
	tail = 5 * time.Second
	// patience with any one thing that has to happen.
	patience = 3 * time.Minute
)

// run is one demo under way.
type run struct {
	cfg    Config
	say    *narrator
	layout cluster.Layout
	shell  *shell
	watch  *observer
	load   *traffic
	report *Report

	shown    map[string]bool // rows of the status that were printed last
	headed   bool
	lastLine time.Time
}

// Run shows everything and returns what it saw. The error names each check that failed. The lab is down and its
// directory gone when it returns, whatever happened, unless Keep is set.
func Run(ctx context.Context, cfg Config) (report *Report, err error) {
	if cfg.Rate < minRate {
		return nil, fmt.Errorf("--rate=%g: want at least %d requests a second, or a lost one may go unseen", cfg.Rate, minRate)
	}
	if cfg.StartUp == 0 {
		cfg.StartUp = 10 * time.Second
	}
	r, remove, err := begin(cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r.intro()
	err = r.acts(ctx, []act{
		{"A Kubernetes of its own", r.up},
		{"The service comes up", r.deploy},
		{"Requests start", r.startLoad},
		{"A new image for engine and decoder", r.roll},
		{"Pause", r.pause},
		{"Resume", r.resume},
		{"Requests go on", r.finishLoad},
	})
	if err == nil {
		r.report.judge()
		r.summary()
		err = r.report.Err()
	}
	return r.report, r.finish(ctx, err)
}

func newRun(cfg Config) *run {
	return &run{
		cfg: cfg, layout: cluster.Layout{Dir: cfg.Dir}, say: newNarrator(cfg.Out, cfg.TTY),
		report: &Report{Control: cfg.SkipDrain, Began: time.Now()},
	}
}

// act is a part of the story.
type act struct {
	title string
	do    func(context.Context) error
}

// acts shows them one after another, up to the first that fails.
func (r *run) acts(ctx context.Context, acts []act) error {
	for i, act := range acts {
		began := time.Now()
		r.say.act(i+1, act.title)
		r.headed = false
		if err := act.do(ctx); err != nil {
			if r.load != nil {
				r.load.stop()
			}
			return err
		}
		r.say.took(time.Since(began))
	}
	return nil
}

// finish takes the lab down and returns what went wrong, here and before.
func (r *run) finish(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		r.managerErrors()
	}
	if failed := r.down(); failed != nil {
		// After Ctrl-C nobody prints the error.
		r.say.printf("%v\n", failed)
		err = errors.Join(err, failed)
	}
	return err
}

func (r *run) intro() {
	what := "A prefill/decode service rolls to a new image: engine and decoder together,\nunder load, with a pause in the middle."
	if r.cfg.SkipDrain {
		what = "Negative control: the same run with the drain turned off. Old pods are killed\nwhile requests still go to them, so that requests must get lost."
	}
	r.say.printf("%s\n", what)
}

func (r *run) up(ctx context.Context) error {
	o := cluster.Options{Dir: r.cfg.Dir, Nodes: 3, NodeGrace: 20 * time.Second, Prometheus: r.cfg.Prometheus}
	if r.cfg.SkipDrain {
		o.ManagerFlags = []string{"--lab-skip-drain"}
	}
	manager := r.cfg.Manager
	if beside := filepath.Join(r.cfg.Bin, "ome-manager"); manager == "" {
		if _, err := os.Stat(beside); err == nil {
			manager = beside
		}
	}
	var err error
	if o.Manager, err = cluster.FindManager(manager); err != nil {
		return err
	}
	if err := o.Complete(); err != nil {
		return err
	}
	r.say.printf("etcd, API server, scheduler and controller manager are the real ones; nodes and\npods are simulated, with stub servers that answer HTTP.\n\n")
	set, err := r.cfg.Finder.Ensure(ctx)
	if err != nil {
		return err
	}
	o.Version, o.Binaries = set.Version, map[string]string{}
	for _, name := range binaries.ControlPlane {
		o.Binaries[name] = set.Path(name)
	}
	if r.shell, err = newShell(ctx, r.cfg, r.layout.Kubeconfig()); err != nil {
		return err
	}
	if err := cluster.Up(ctx, r.cfg.Executable, o, r.say); err != nil {
		return err
	}
	rest, err := clientcmd.BuildConfigFromFlags("", r.layout.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read the lab's kubeconfig: %w", err)
	}
	rest.UserAgent = "ome-lab-demo"
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(rest)
	if err != nil {
		return err
	}
	r.watch, r.load = newObserver(client, objects), newTraffic(client)
	return nil
}

func (r *run) down() error {
	if r.watch != nil {
		r.watch.stop()
	}
	if r.shell != nil {
		defer r.shell.remove()
	}
	if r.cfg.Keep {
		r.say.printf("\nThe lab stays up. To look at it and to end it:\n  export KUBECONFIG=%s\n  %s down --purge --dir %s\n",
			r.layout.Kubeconfig(), r.cfg.Executable, r.cfg.Dir)
		return nil
	}
	began := time.Now()
	r.say.printf("\n")
	if err := r.layout.Down(true, r.say); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	if _, err := os.Stat(r.layout.Kubeconfig()); err == nil {
		return fmt.Errorf("clean up: %s is still there", r.layout.Kubeconfig())
	}
	r.say.took(time.Since(began))
	r.say.printf("All of it took %.0f s.\n", time.Since(r.report.Began).Seconds())
	return nil
}
