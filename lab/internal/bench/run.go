package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"ome.io/ome/lab/internal/binaries"
	"ome.io/ome/lab/internal/cluster"
)

// Config of one run.
type Config struct {
	// Executable is ome-lab, which also runs as the supervisor.
	Executable string
	// Bin holds ome-manager and kubectl-ome.
	Bin string
	// Finder looks up or builds the control plane's programs.
	Finder binaries.Finder
	// Dir of the lab; a new temporary one when empty.
	Dir string
	// Keep leaves the lab up at the end.
	Keep bool
	// Instances is how many pods roll; Rounds how often each contestant rolls them.
	Instances, Rounds int
	// Services is how many Services select each Deployment's pods.
	Services int
	// Strategies rolls our pods by each update strategy in turn, each beside the
	// Deployment that is allowed the same.
	Strategies bool
	// NoEndpoints turns off the controller that writes the older Endpoints objects.
	NoEndpoints bool
	// Nodes of the lab; 0 for as many as the pods need.
	Nodes int
	// Runs is how often each command is timed; 0 leaves the commands out.
	Runs int
	// Patience with any one thing that has to happen.
	Patience time.Duration
	// Out takes the progress.
	Out io.Writer
}

func (c *Config) complete() error {
	switch {
	case c.Instances < 4 || c.Instances > 1500:
		return fmt.Errorf("--instances=%d: want 4 to 1500; the lab has addresses for three times as many pods and their surge", c.Instances)
	case c.Rounds < 1:
		return fmt.Errorf("--rounds=%d: want at least 1", c.Rounds)
	case c.Services < 0 || c.Services > 20:
		return fmt.Errorf("--services=%d: want 0 to 20", c.Services)
	case c.Runs < 0:
		return fmt.Errorf("--runs=%d: want 0 or more", c.Runs)
	}
	sets := 3
	if c.Strategies {
		sets = 4
		if c.Instances > 1000 {
			return fmt.Errorf("--instances=%d: want 1000 at most with --strategies, which runs four sets of pods", c.Instances)
		}
	}
	if c.Nodes == 0 {
		// All sets of pods, a quarter of one set as surge, as many again on their way out; 250 fit on a node.
		c.Nodes = max(3, (sets*c.Instances+c.Instances/2)/250+2)
	}
	if c.Patience == 0 {
		c.Patience = 10*time.Minute + time.Duration(c.Instances)*time.Second
	}
	return nil
}

// run is one benchmark under way.
type run struct {
	cfg         Config
	layout      cluster.Layout
	client      kubernetes.Interface
	objects     dynamic.Interface
	contestants []*contestant
	// rolled counts the rolls of each set of pods: every one is to another image.
	rolled map[*observer]int
	report *Report
}

func (r *run) say(format string, args ...any) { fmt.Fprintf(r.cfg.Out, format, args...) }

// Run measures everything on a lab of its own. The error is about what could not be measured; a budget that was missed
// is in the report.
func Run(ctx context.Context, cfg Config) (report *Report, err error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if cfg.Dir == "" {
		if cfg.Dir, err = os.MkdirTemp("", "ome-bench-"); err != nil {
			return nil, fmt.Errorf("make a directory for the lab: %w", err)
		}
		defer func() {
			if !cfg.Keep {
				err = errors.Join(err, os.RemoveAll(cfg.Dir))
			}
		}()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{cfg: cfg, layout: cluster.Layout{Dir: cfg.Dir}, rolled: map[*observer]int{}, report: &Report{
		Began: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(), Go: runtime.Version(), LoadBefore: loadAverage(),
		Instances: cfg.Instances, Rounds: cfg.Rounds, Services: cfg.Services, NoEndpoints: cfg.NoEndpoints,
	}}
	err = r.measure(ctx)
	cancel() // the watches end before the API server does
	if cfg.Keep {
		r.say("the lab stays up; to end it: %s down --purge --dir %s\n", cfg.Executable, cfg.Dir)
		return r.report, err
	}
	if failed := r.layout.Down(true, io.Discard); failed != nil {
		err = errors.Join(err, fmt.Errorf("clean up: %w", failed))
	}
	return r.report, err
}

func (r *run) measure(ctx context.Context) error {
	if err := r.up(ctx); err != nil {
		return err
	}
	if err := r.deploy(ctx); err != nil {
		return err
	}
	for round := 1; round <= r.cfg.Rounds; round++ {
		for _, c := range inTurn(r.contestants, round) {
			r.say("round %d, %-38s ", round, c.name)
			roll, err := r.rollOnce(ctx, c, round)
			if err != nil {
				r.say("failed\n")
				return err
			}
			r.say("%6.1f s\n", roll.Seconds)
			r.report.Rolls = append(r.report.Rolls, roll)
		}
	}
	if r.cfg.Runs > 0 {
		r.say("commands\n")
		if err := r.commands(ctx); err != nil {
			return err
		}
	}
	return nil
}

// inTurn turns the order around in every other round, so that a machine that slows down favours nobody.
func inTurn(all []*contestant, round int) []*contestant {
	out := make([]*contestant, len(all))
	for i, c := range all {
		if round%2 == 0 {
			i = len(all) - 1 - i
		}
		out[i] = c
	}
	return out
}

func (r *run) up(ctx context.Context) error {
	// The grace of nodes is long: on a busy machine a late heartbeat must not spoil a roll.
	o := cluster.Options{Dir: r.cfg.Dir, Nodes: r.cfg.Nodes, NodeGrace: 2 * time.Minute, Audit: true,
		// Nor a late lease renewal: the lab's own times are for quick take-overs.
		ManagerFlags: []string{"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=45s", "--leader-elect-retry-period=5s"},
	}
	if r.cfg.NoEndpoints {
		o.ControllersOff = []string{"endpoints-controller"}
	}
	var err error
	if o.Manager, err = cluster.FindManager(filepath.Join(r.cfg.Bin, managerClient)); err != nil {
		return err
	}
	if err := o.Complete(); err != nil {
		return err
	}
	set, err := r.cfg.Finder.Ensure(ctx)
	if err != nil {
		return err
	}
	o.Version, o.Binaries = set.Version, map[string]string{}
	for _, name := range binaries.ControlPlane {
		o.Binaries[name] = set.Path(name)
	}
	r.report.Kubernetes = set.Version
	if err := cluster.Up(ctx, r.cfg.Executable, o, r.cfg.Out); err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", r.layout.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read the lab's kubeconfig: %w", err)
	}
	if r.client, err = kubernetes.NewForConfig(unlimited(cfg)); err != nil {
		return err
	}
	r.objects, err = dynamic.NewForConfig(unlimited(cfg))
	return err
}

func unlimited(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.UserAgent = -1, "ome-lab-bench"
	return cfg
}

// set is one set of pods of a Deployment.
type set struct {
	name, namespace string
	services        []serviceKind
	gated           bool
}

// sets are the Deployments that run beside ours.
func (c *Config) sets() []set {
	if c.Strategies {
		return []set{{GatedLike, "bench-gated", likeOurs, true}, {GatedOne, "bench-gated-one", likeOurs[:1], true}, {Plain, "bench-plain", likeOurs[:1], false}}
	}
	services := make([]serviceKind, c.Services)
	return []set{{Gated, "bench-gated", services, true}, {Plain, "bench-plain", services, false}}
}

// deploy brings up all sets of pods, so that they roll in the same cluster.
func (r *run) deploy(ctx context.Context) error {
	began := time.Now()
	if err := r.namespace(ctx, "bench-ours"); err != nil {
		return err
	}
	mine, err := ours(ctx, r.objects, r.cfg.Instances)
	if err != nil {
		return err
	}
	if err := r.settle(ctx, mine, r.statusOfOurs); err != nil {
		return err
	}
	r.say("%d Instances up after %.1f s\n", r.cfg.Instances, time.Since(began).Seconds())
	like, err := r.anyPod(ctx, mine.namespace)
	if err != nil {
		return err
	}
	r.contestants = []*contestant{mine}
	for _, s := range r.cfg.sets() {
		if err := r.namespace(ctx, s.namespace); err != nil {
			return err
		}
		c, err := deployment(ctx, r.client, s.name, s.namespace, like, r.cfg.Instances, s.services, s.gated)
		if err != nil {
			return err
		}
		if s.gated {
			if err := r.setGates(ctx, c); err != nil {
				return err
			}
		}
		if err := r.settle(ctx, c, r.statusOfDeployment); err != nil {
			return err
		}
		r.contestants = append(r.contestants, c)
	}
	if r.cfg.Strategies {
		r.contestants = r.byStrategy(mine, r.contestants[1], like.Spec.Containers[0].Name, r.contestants[2:])
	}
	r.say("all up after %.1f s\n", time.Since(began).Seconds())
	return nil
}

// byStrategy turns the sets of pods into one contestant for each way to roll them.
func (r *run) byStrategy(mine, gated *contestant, container string, others []*contestant) []*contestant {
	strategy := func(name, kind, surge, unavailable string) *contestant {
		return mine.by(name, rollOurs(r.objects, mine.namespace,
			fmt.Sprintf(`{"type":%q,"rollingUpdate":{"maxSurge":%s,"maxUnavailable":%s}}`, kind, surge, unavailable)))
	}
	all := []*contestant{strategy(OursSurge, "SurgeThenDrain", `"25%"`, "null"), gated}
	all = append(all, others...)
	return append(all,
		strategy(OursRecreate, "RecreatePod", "null", `"25%"`),
		strategy(OursInPlace, "InPlaceIfPossible", "null", `"25%"`),
		gated.by(GatedNoSurge, rollDeployment(r.client, gated.namespace, container, "0", "25%")))
}

func (r *run) namespace(ctx context.Context, name string) error {
	if _, err := r.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return r.defaultAccount(ctx, name)
}

// settle waits until a contestant's first pods run.
func (r *run) settle(ctx context.Context, c *contestant, status func(context.Context, *contestant) error) error {
	c.pods.expect(image(1), r.cfg.Instances)
	if err := c.pods.start(ctx, r.client, c.namespace); err != nil {
		return err
	}
	if err := status(ctx, c); err != nil {
		return err
	}
	if _, err := c.pods.wait(ctx, r.cfg.Patience, func(t rollTimes) bool { return !t.serving.IsZero() && !t.complete.IsZero() }); err != nil {
		return fmt.Errorf("%s does not come up: %w", c.name, err)
	}
	return nil
}

// setGates starts the setter, under a user of its own so that its requests can be told apart.
func (r *run) setGates(ctx context.Context, c *contestant) error {
	if err := setterRights(ctx, r.client, c.namespace); err != nil {
		return err
	}
	raw, err := r.layout.UserKubeconfig(setterUser, nil)
	if err != nil {
		return err
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return fmt.Errorf("kubeconfig of the gate setter: %w", err)
	}
	client, err := kubernetes.NewForConfig(unlimited(cfg))
	if err != nil {
		return err
	}
	s := newSetter(client, servingGate)
	s.run(ctx)
	c.pods.onPod = s.see
	return nil
}

func (r *run) anyPod(ctx context.Context, namespace string) (*corev1.Pod, error) {
	list, err := r.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("read a pod of ours: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("namespace %s has no pod to copy", namespace)
	}
	return &list.Items[0], nil
}

// defaultAccount waits for what pods need to be let in.
func (r *run) defaultAccount(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := r.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("ServiceAccount %s/default: %w", namespace, err)
		}
	}
}

func loadAverage() float64 {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(raw), " ")
	var v float64
	_, _ = fmt.Sscan(first, &v)
	return v
}
