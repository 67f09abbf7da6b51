package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ome.io/ome/lab/internal/binaries"
)

// shell runs the commands that a person would type, from the root of the checkout.
type shell struct {
	dir, cache string
	env        []string
}

func newShell(ctx context.Context, cfg Config, kubeconfig string) (*shell, error) {
	source, err := binaries.FindSource()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(cfg.Bin, "kubectl-ome")); err != nil {
		return nil, fmt.Errorf("kubectl-ome is not in %s: build it with `make build`", cfg.Bin)
	}
	kubectl, err := cfg.Finder.EnsureKubectl(ctx)
	if err != nil {
		return nil, err
	}
	// kubectl keeps what it discovered; nothing of a lab that is gone should stay in a home directory.
	cache, err := os.MkdirTemp("", "ome-demo-kubectl-")
	if err != nil {
		return nil, fmt.Errorf("make a cache directory for kubectl: %w", err)
	}
	path := strings.Join([]string{cfg.Bin, filepath.Dir(kubectl), os.Getenv("PATH")}, string(os.PathListSeparator))
	return &shell{dir: source, cache: cache, env: append(os.Environ(), "PATH="+path, "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+cache)}, nil
}

func (s *shell) remove() { _ = os.RemoveAll(s.cache) }

// result of one command.
type result struct {
	out string // both streams, as a terminal shows them
	err error
}

func (s *shell) run(ctx context.Context, command string) result {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, &out, &out
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	} else if err != nil {
		err = fmt.Errorf("%s: %w", strings.ReplaceAll(command, " \\\n    ", " "), err)
	}
	return result{out: out.String(), err: err}
}

// show prints a command, runs it and prints what it said.
func (r *run) show(ctx context.Context, command string) (string, error) {
	r.say.printf("$ %s\n", command)
	res := r.shell.run(ctx, command)
	r.say.printf("%s\n", res.out)
	return res.out, res.err
}
