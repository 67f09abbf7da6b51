// Command contract checks docs/contract.yaml: that each statement in it is held by a test
// which exists, passes, and fails once the rule is switched off.
//
//	contract             check everything
//	contract -quick      the same without the tests that start a server
//	contract -only a,b   look at these rules alone
//	contract -write      write docs/contract.md
//
// The tree is never written to, but for docs/contract.md by -write: an edit reaches the
// compiler as an overlay, or a test through a copy of the tree.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	source = "docs/contract.yaml"
	output = "docs/contract.md"
)

func main() {
	quick := flag.Bool("quick", false, "leave out the tests that start a server")
	only := flag.String("only", "", "look only at these rules, separated by commas")
	write := flag.Bool("write", false, "write "+output)
	parallel := flag.Int("parallel", 2, "packages, and rules of one, at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *quick, *only, *write, max(1, *parallel)); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, quick bool, only string, write bool, parallel int) error {
	top, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("git rev-parse: %w", err)
	}
	root := strings.TrimSpace(string(top))
	c, err := load(root)
	if err != nil {
		return err
	}
	if write {
		return os.WriteFile(filepath.Join(root, output), []byte(c.page()), 0o644)
	}
	rules, err := chosen(c.rules(), only)
	if err != nil {
		return err
	}
	if quick {
		rules = slices.DeleteFunc(slices.Clone(rules), func(r *rule) bool { return r.Needs == needsServer })
	}
	var problems []string
	if page, err := os.ReadFile(filepath.Join(root, output)); err != nil || !bytes.Equal(page, []byte(c.page())) {
		problems = append(problems, output+" is not what "+source+" makes: run go run ./hack/contract -write")
	}
	problems = append(problems, c.problems(root, rules)...)
	for _, p := range problems {
		fmt.Println("PROBLEM", p)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d problems", len(problems))
	}
	scratch, err := os.MkdirTemp("", "contract-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	began := time.Now()
	found := check(ctx, &runner{root: root, scratch: scratch}, rules, parallel)
	if err := ctx.Err(); err != nil {
		return err
	}
	fmt.Printf("%d rules, %d problems (%.0fs)\n", len(rules), found, time.Since(began).Seconds())
	if found > 0 {
		return fmt.Errorf("%d problems", found)
	}
	return nil
}

// check tries every rule, tells of each, and counts what is wrong.
func check(ctx context.Context, r *runner, rules []*rule, parallel int) (problems int) {
	packages := map[string][]*rule{}
	var dirs []string
	for _, rule := range rules {
		if packages[rule.dir()] == nil {
			dirs = append(dirs, rule.dir())
		}
		packages[rule.dir()] = append(packages[rule.dir()], rule)
	}
	var mu sync.Mutex
	tell := func(what, problem string) {
		if ctx.Err() != nil {
			return // nothing that was cut off says anything
		}
		mu.Lock()
		defer mu.Unlock()
		if problem != "" {
			problems++
			fmt.Printf("PROBLEM %s: %s\n", what, problem)
			return
		}
		fmt.Println("held    " + what)
	}
	// Packages in turn: while one compiles, the rules of the one before run.
	slots := make(chan struct{}, parallel)
	each(ctx, parallel, dirs, func(dir string) {
		b, err := r.set(ctx, dir, packages[dir])
		if err != nil {
			tell(dir, err.Error())
			return
		}
		defer os.RemoveAll(filepath.Dir(b.binary))
		each(ctx, parallel, b.rules, func(rule *rule) {
			slots <- struct{}{}
			defer func() { <-slots }()
			problem := b.asIs(ctx, rule)
			if problem == "" {
				problem = b.off(ctx, rule)
			}
			tell(rule.ID, problem)
		})
	})
	return problems
}

// chosen narrows the rules to those that are named.
func chosen(rules []*rule, only string) ([]*rule, error) {
	if only == "" {
		return rules, nil
	}
	var out []*rule
	for _, id := range strings.Split(only, ",") {
		i := slices.IndexFunc(rules, func(r *rule) bool { return r.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("-only: there is no rule %q in %s", id, source)
		}
		out = append(out, rules[i])
	}
	return out, nil
}

// each calls f for every item, a few at a time, in order.
func each[T any](ctx context.Context, parallel int, items []T, f func(T)) {
	next := make(chan T)
	var wait sync.WaitGroup
	for range parallel {
		wait.Go(func() {
			for item := range next {
				f(item)
			}
		})
	}
	for _, item := range items {
		if ctx.Err() != nil {
			break
		}
		next <- item
	}
	close(next)
	wait.Wait()
}
