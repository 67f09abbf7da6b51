package demo

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

const (
	statusCommand = "kubectl ome rollout status " + service + " -n " + namespace
	pauseCommand  = "kubectl ome rollout pause " + service + " -n " + namespace + " --yes"
	resumeCommand = "kubectl ome rollout resume " + service + " -n " + namespace + " --yes"
)

func (r *run) deploy(ctx context.Context) error {
	return r.bring(ctx, "namespace", "model", "runtime", "mistral-pd")
}

// bring applies samples and returns when the service in them answers.
func (r *run) bring(ctx context.Context, samples ...string) error {
	for _, f := range samples {
		if _, err := r.show(ctx, "kubectl apply --server-side -f config/samples/"+f+".yaml"); err != nil {
			return err
		}
	}
	if err := r.watch.start(ctx); err != nil {
		return err
	}
	// Ready speaks of the engine; the two others have conditions of their own.
	for _, condition := range []string{"Ready", "DecoderReady", "RouterReady"} {
		_, err := r.show(ctx, fmt.Sprintf("kubectl wait isvc %s -n %s \\\n    --for=condition=%s --timeout=%.0fs", service, namespace, condition, patience.Seconds()))
		if err != nil {
			return fmt.Errorf("the service is not %s: %w", condition, err)
		}
	}
	if _, err := r.show(ctx, "kubectl get isvc,irep -n "+namespace); err != nil {
		return err
	}
	warm, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.load.warmUp(warm); err != nil {
		return fmt.Errorf("the service is Ready and does not answer: %w", err)
	}
	return nil
}

func (r *run) startLoad(ctx context.Context) error {
	r.say.printf("%g requests a second, on a schedule that waits for no answer. Clients learn of a\nchange of endpoints up to 2 s late, as on real nodes; nothing is sent twice.\n\n", r.cfg.Rate)
	if err := r.load.start(ctx, r.cfg.Rate); err != nil {
		return err
	}
	r.report.LoadStarted = time.Now()
	r.report.oldRevisions = map[string]string{}
	for _, p := range r.watch.view().pods {
		r.report.oldRevisions[p.component] = p.revision
	}
	r.watch.markOld()
	return r.follow(ctx, "good answers from the old revisions", func(view) bool { return r.load.sofar().OK >= int(2*r.cfg.Rate) })
}

func (r *run) roll(ctx context.Context) error {
	if v := r.watch.view(); !v.status.ready() || len(v.of("engine", true)) != 1 || len(v.of("decoder", true)) != 1 {
		return fmt.Errorf("the service was Ready and is not any more, before anything was changed: %s", strings.Join(r.rows(v), "; "))
	}
	r.report.Applied = time.Now()
	r.say.printf("The same service with new images, whose servers take %.0f s to start.\n\n", r.cfg.StartUp.Seconds())
	_, err := r.show(ctx, fmt.Sprintf("sed 's/:v2$/:v2-start%.0fs/' config/samples/mistral-pd-v2.yaml \\\n    | kubectl apply --server-side -f -", r.cfg.StartUp.Seconds()))
	if err != nil {
		return err
	}
	return r.follow(ctx, "engine and decoder start new pods", func(v view) bool {
		return v.status.Status.Rollout.ActiveRun != nil && v.everyNew(func(p pod) bool { return !p.running.IsZero() })
	})
}

// tries of an action that finds its evidence moving. The moment is chosen so that one is enough.
const tries = 3

// guarded runs a guarded action. One that is refused because something moved meanwhile changed nothing, and is repeated.
func (r *run) guarded(ctx context.Context, command string) error {
	for try := 1; ; try++ {
		out, err := r.show(ctx, command)
		if err == nil || try == tries || ctx.Err() != nil || !moving.MatchString(out) {
			return err
		}
		r.say.printf("Something moved meanwhile, so nothing was sent. Once more.\n\n")
		if err := r.load.steady(ctx, time.Second); err != nil {
			return err
		}
	}
}

// moving are the refusals that go away by themselves.
var moving = regexp.MustCompile(`Conflict|stale or inconsistent|nothing was sent`)

func (r *run) pause(ctx context.Context) error {
	r.say.printf("The new servers are still starting. Somebody wants a closer look first.\n\n")
	if err := r.guarded(ctx, pauseCommand); err != nil {
		return err
	}
	err := r.follow(ctx, "the pause takes effect", func(v view) bool {
		return v.status.Status.Rollout.ObservedPause == "true" && v.status.groupPhase() == "Paused"
	})
	if err != nil {
		return err
	}
	r.report.Paused = time.Now()
	r.say.printf("\nThe manager has seen it. The new pods may come up, but nothing moves on.\n\n")
	err = r.follow(ctx, "the new pods come up while paused", func(v view) bool {
		return v.everyNew(func(p pod) bool { return !p.up.IsZero() })
	})
	if err != nil {
		return err
	}
	bothUp := time.Now()
	r.say.printf("\nBoth revisions run. Without the pause the old pods would be drained now;\nwatching for %.0f s that they are not.\n\n", hold.Seconds())
	err = r.follow(ctx, "the pause holds", func(v view) bool { return time.Since(bothUp) >= hold || r.leftSince(v, r.report.Paused) != "" })
	if err != nil {
		return err
	}
	r.say.printf("\n")
	out, err := r.show(ctx, statusCommand)
	if err != nil {
		return err
	}
	r.report.statusSaidPaused = stateRow.MatchString(out)
	v := r.watch.view()
	r.report.HeldUp = time.Since(bothUp)
	r.report.leftWhilePaused = r.leftSince(v, r.report.Paused)
	r.report.pausedToTheEnd = v.status.Status.Rollout.ObservedPause == "true" && v.status.groupPhase() == "Paused"
	if r.report.leftWhilePaused == "" {
		r.say.printf("Paused for %.0f s, %.0f s of it with the new pods up: no old pod was drained.\n", time.Since(r.report.Paused).Seconds(), r.report.HeldUp.Seconds())
	}
	return nil
}

var stateRow = regexp.MustCompile(`(?m)^STATE\s+Paused\s`)

// leftSince names an old pod that was taken out of rotation, or told to go, since a moment.
func (r *run) leftSince(v view, since time.Time) string {
	for _, p := range v.oldOf() {
		if !p.left.IsZero() && p.left.After(since) {
			return p.name
		}
	}
	return ""
}

func (r *run) resume(ctx context.Context) error {
	r.report.Resumed = time.Now()
	if err := r.guarded(ctx, resumeCommand); err != nil {
		return err
	}
	err := r.follow(ctx, "the roll goes on and its run closes", func(v view) bool {
		s := v.status.Status
		return s.Rollout.ObservedPause == "" && s.Rollout.ActiveRun == nil && s.Rollout.LastRun != nil && v.status.ready()
	})
	if err != nil {
		return err
	}
	err = r.follow(ctx, "the old pods go", func(v view) bool {
		for _, p := range v.oldOf() {
			if p.gone.IsZero() {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	r.report.Settled = time.Now()
	v := r.watch.view()
	r.report.final, r.report.pods = v.status, v.pods
	r.say.printf("\n")
	_, err = r.show(ctx, statusCommand)
	return err
}

func (r *run) finishLoad(ctx context.Context) error {
	r.say.printf("Until %s requests were sent and %.0f s have passed since the last pod went.\n\n", thousands(minRequests), tail.Seconds())
	err := r.follow(ctx, thousands(minRequests)+" requests", func(view) bool {
		return r.load.sofar().Sent >= minRequests && time.Since(r.report.Settled) >= tail
	})
	if err != nil {
		return err
	}
	res, err := r.load.stop()
	if err != nil {
		return err
	}
	r.report.Load = res
	return nil
}

// managerErrors shows why a run may have failed: its log is about to go.
func (r *run) managerErrors() {
	raw, err := os.ReadFile(r.layout.Log("ome-manager"))
	if err != nil {
		return
	}
	var found []string
	for l := range strings.Lines(string(raw)) {
		if strings.Contains(l, `"level":"ERROR"`) && !strings.Contains(l, `"logger":"admission"`) {
			found = append(found, strings.TrimSpace(l))
		}
	}
	if len(found) > 0 {
		r.say.printf("\nThe manager's log has %d errors; the last:\n%s\n", len(found), found[len(found)-1])
	}
}
