package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// Command is how long one command takes, from its start to its end.
type Command struct {
	Name   string  `json:"name"`
	Runs   int     `json:"runs"`
	Min    float64 `json:"minMillis"`
	Median float64 `json:"medianMillis"`
	Max    float64 `json:"maxMillis"`
}

// The commands that are timed, as the report names them.
const (
	pluginStart  = "kubectl-ome --help"
	kubectlStart = "kubectl version --client"
	pluginOnce   = "kubectl-ome version"
	rolloutTable = "kubectl-ome rollout status"
	rawGet       = "kubectl get --raw"
)

// commands times the plugin beside kubectl. The runs take turns, so that a busy moment hits all of them.
func (r *run) commands(ctx context.Context) error {
	plugin := filepath.Join(r.cfg.Bin, "kubectl-ome")
	if _, err := os.Stat(plugin); err != nil {
		return fmt.Errorf("kubectl-ome is not in %s: build it with `make build`", r.cfg.Bin)
	}
	kubectl, err := r.cfg.Finder.EnsureKubectl(ctx)
	if err != nil {
		return err
	}
	cache, err := os.MkdirTemp("", "ome-bench-kubectl-")
	if err != nil {
		return fmt.Errorf("make a cache directory for kubectl: %w", err)
	}
	defer os.RemoveAll(cache)
	env := append(os.Environ(), "KUBECONFIG="+r.layout.Kubeconfig(), "KUBECACHEDIR="+cache)
	path := fmt.Sprintf("/apis/ome.io/v1beta1/namespaces/bench-ours/inferenceservices/%s", objectName)
	all := []struct {
		name string
		argv []string
	}{
		{pluginStart, []string{plugin, "--help"}},
		{kubectlStart, []string{kubectl, "version", "--client"}},
		{pluginOnce, []string{plugin, "version"}},
		{rolloutTable, []string{plugin, "rollout", "status", objectName, "-n", "bench-ours"}},
		{rawGet, []string{kubectl, "get", "--raw", path}},
	}
	took := make([][]float64, len(all))
	for i := range r.cfg.Runs + 1 {
		for j, c := range all {
			ms, err := timed(ctx, env, c.argv)
			if err != nil {
				return err
			}
			if i > 0 { // the first brings the program into the page cache
				took[j] = append(took[j], ms)
			}
		}
	}
	for j, c := range all {
		slices.Sort(took[j])
		r.report.Commands = append(r.report.Commands, Command{
			Name: c.name, Runs: len(took[j]), Min: took[j][0], Median: median(took[j]), Max: took[j][len(took[j])-1],
		})
	}
	return nil
}

func timed(ctx context.Context, env, argv []string) (float64, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &errs
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("%v: %w: %s", argv, err, errs.String())
	}
	if out.Len() == 0 {
		return 0, errors.New(fmt.Sprint(argv, " printed nothing"))
	}
	return float64(took.Microseconds()) / 1000, nil
}

// median of sorted values.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
