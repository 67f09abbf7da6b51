package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

const canaryFile = "config/samples/canary/mistral-pd.yaml"

// canaryLimit is how long a bad canary may take from its image to the last Instance back on the stable revision.
const canaryLimit = 2 * time.Minute

// canaryAct is one demo of a canary under way.
type canaryAct struct {
	*run
	stable, bad map[string]string // revisions by component
	back        time.Duration     // from the bad image to all on stable
	reason      string
	fixed       time.Duration
}

// RunCanary shows a bad canary that rolls itself back, and the fixed one that goes out. Its error names each check that
// failed. The lab is down and its directory gone when it returns, unless Keep is set.
func RunCanary(ctx context.Context, cfg Config) (report *Report, err error) {
	if cfg.Rate < minRate {
		return nil, fmt.Errorf("--rate=%g: want at least %d requests a second, or the new engine has too few to be judged by", cfg.Rate, minRate)
	}
	if cfg.Prometheus == "" {
		if cfg.Prometheus, err = cfg.Finder.EnsurePrometheus(ctx); err != nil {
			return nil, err
		}
	}
	r, remove, err := begin(cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	c := &canaryAct{run: r}
	r.say.printf("A new image fails a fifth of its requests. It gets a quarter of the Instances at first,\na Prometheus sees the errors, and the canary goes back. Nobody does anything.\n")
	err = r.acts(ctx, []act{
		{"A Kubernetes of its own, with a Prometheus", r.up},
		{"The service comes up, four engines and four decoders", c.deploy},
		{"Requests start", r.startLoad},
		{"A bad image", c.taste},
		{"Why did it go back?", c.why},
		{"The fixed image", c.fix},
	})
	if err == nil {
		c.judge()
		c.summary()
		err = r.report.Err()
	}
	return r.report, r.finish(ctx, err)
}

func (c *canaryAct) deploy(ctx context.Context) error {
	return c.bring(ctx, "namespace", "model", "runtime", "canary/mistral-pd")
}

// change applies the service with other images of engine and decoder.
func (c *canaryAct) change(ctx context.Context, tag string) error {
	_, err := c.show(ctx, fmt.Sprintf("sed 's/:v1$/:%s/' %s \\\n    | kubectl apply --server-side -f -", tag, canaryFile))
	return err
}

func (c *canaryAct) taste(ctx context.Context) error {
	began := time.Now()
	c.report.Applied = began
	if err := c.change(ctx, "v2-err20"); err != nil {
		return err
	}
	c.stable, c.bad = c.report.oldRevisions, map[string]string{}
	c.watch.keepOld(c.stable)
	err := c.follow(ctx, "the canary is rolled back", func(v view) bool {
		for _, comp := range grouped {
			for _, p := range v.of(comp, false) {
				c.bad[comp] = p.revision
			}
		}
		return v.status.Status.Components["engine"].RolloutPhase == "RolledBack" && c.settled(v, c.stable)
	})
	c.back = time.Since(began)
	return err
}

// settled is true when only pods of these revisions are left, and as many serve as there were.
func (c *canaryAct) settled(v view, want map[string]string) bool {
	for _, comp := range grouped {
		n := 0
		for _, p := range v.pods {
			if p.component != comp || !p.gone.IsZero() {
				continue
			}
			if p.revision != want[comp] || p.serving.IsZero() || !p.left.IsZero() {
				return false
			}
			n++
		}
		if n != 4 {
			return false
		}
	}
	return true
}

func (c *canaryAct) why(ctx context.Context) error {
	out, err := c.show(ctx, "kubectl describe isvc "+service+" -n "+namespace+" \\\n    | sed -n -e '/^    Metric Results:/,/^    Observed/p' -e '/CanaryRollbackStarted/p'")
	c.reason = out
	return err
}

func (c *canaryAct) fix(ctx context.Context) error {
	began := time.Now()
	if err := c.change(ctx, "v3"); err != nil {
		return err
	}
	err := c.follow(ctx, "the fixed image goes out", func(v view) bool {
		if v.status.Status.Rollout.ActiveRun != nil || v.status.Status.Components["engine"].RolloutPhase != "Stable" {
			return false
		}
		last := v.status.Status.Rollout.LastRun
		if last == nil || last.Outcome != "Completed" {
			return false
		}
		want := map[string]string{}
		for _, t := range last.TargetRevisions {
			want[t.Component] = t.Revision
		}
		return want["engine"] != c.stable["engine"] && want["engine"] != c.bad["engine"] && c.settled(v, want)
	})
	c.fixed = time.Since(began)
	if err != nil {
		return err
	}
	c.report.Load, err = c.load.stop()
	return err
}

func (c *canaryAct) judge() {
	r, l := c.report, c.report.Load
	r.check("the canary rolled itself back in under two minutes", c.back < canaryLimit, "%.0f s", c.back.Seconds())
	r.check("engine and decoder both had a new pod", c.bad["engine"] != "" && c.bad["decoder"] != "", "new revisions %v", c.bad)
	r.check("describe says why", strings.Contains(c.reason, "Value:") && strings.Contains(c.reason, "Query:") && strings.Contains(c.reason, "CanaryRollbackStarted"), "%s", c.reason)
	injected := l.Failures["injected"]
	detail := ""
	for _, e := range l.Errors {
		detail += fmt.Sprintf("\n  %s: %s", e.Class, e.Detail)
	}
	r.check("some requests met the bad revision", injected > 0, "%d failed", injected)
	r.check("no request failed but by the bad revision", l.Failed == injected && l.Mismatched == 0, "%v of %d%s", l.Failures, l.Sent, detail)
	r.check("the fixed image went out", c.fixed > 0, "in %.0f s", c.fixed.Seconds())
}

func (c *canaryAct) summary() {
	l := c.report.Load
	c.say.printf("\n%s\n\n", "What happened "+dashes(79-len("What happened ")))
	c.say.printf("  requests   %s sent, %s ok, %d failed by the bad image's own errors\n", thousands(l.Sent), thousands(l.OK), l.Failed)
	c.say.printf("  back       %.0f s after the bad image was applied, all Instances were on the stable revision\n", c.back.Seconds())
	c.say.printf("  fixed      out in %.0f s, with no step by hand\n\n", c.fixed.Seconds())
	c.checks()
}

// begin makes a run and, unless there is one, a directory for its lab; remove removes that.
func begin(cfg Config) (r *run, remove func() error, err error) {
	remove = func() error { return nil }
	if cfg.Dir == "" {
		if cfg.Dir, err = os.MkdirTemp("", "ome-demo-"); err != nil {
			return nil, nil, fmt.Errorf("make a directory for the lab: %w", err)
		}
		if !cfg.Keep {
			remove = func() error { return os.RemoveAll(cfg.Dir) }
		}
	}
	return newRun(cfg), remove, nil
}
