// Command contract checks docs/contract.yaml: that each statement in it is held by a test
// which exists, passes, and fails once the rule is switched off.
//
//	contract             check everything, switch off every rule
//	contract -sample 6   check all but tests that need a server, switch off six rules
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
	"hash/fnv"
	"math/rand/v2"
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
	sample := flag.Int("sample", 0, "switch off only this many rules, drawn by -seed")
	seed := flag.String("seed", "", "draws the sample; default the commit")
	only := flag.String("only", "", "look only at these rules, separated by commas")
	write := flag.Bool("write", false, "write "+output)
	parallel := flag.Int("parallel", 2, "rules at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *sample, *seed, *only, *write, max(1, *parallel)); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, sample int, seed, only string, write bool, parallel int) error {
	root, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
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
	var problems []string
	report := func(found ...string) {
		for _, p := range found {
			fmt.Println("PROBLEM", p)
		}
		problems = append(problems, found...)
	}
	report(c.problems(root, rules)...)
	if page, err := os.ReadFile(filepath.Join(root, output)); err != nil || !bytes.Equal(page, []byte(c.page())) {
		report(output + " is not what " + source + " makes: run go run ./hack/contract -write")
	}
	if sample > 0 { // a quick look ends at once, a whole one says all it can
		if len(problems) > 0 {
			return fmt.Errorf("%d problems", len(problems))
		}
		rules = slices.DeleteFunc(rules, func(r *rule) bool { return r.Needs == needsServer })
	}
	scratch, err := os.MkdirTemp("", "contract-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r := &runner{root: root, scratch: scratch}

	began := time.Now()
	packages := map[string][]*rule{}
	var dirs []string
	for _, rule := range byPackage(rules) {
		if packages[rule.dir()] == nil {
			dirs = append(dirs, rule.dir())
		}
		packages[rule.dir()] = append(packages[rule.dir()], rule)
	}
	var mu sync.Mutex
	each(ctx, parallel, dirs, func(dir string) {
		found := r.asIs(ctx, dir, packages[dir])
		mu.Lock()
		defer mu.Unlock()
		report(found...)
	})
	fmt.Printf("%d listed tests ran in %d packages (%.0fs)\n", len(rules), len(dirs), time.Since(began).Seconds())
	if sample > 0 {
		if len(problems) > 0 {
			return fmt.Errorf("%d problems", len(problems))
		}
		if seed == "" {
			if seed, err = git(ctx, "rev-parse", "HEAD"); err != nil {
				return err
			}
		}
		rules = draw(rules, sample, seed)
	}
	// What is wrong already can't be caught.
	rules = slices.DeleteFunc(slices.Clone(rules), func(r *rule) bool {
		return slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, r.ID+": ") || strings.HasPrefix(p, r.dir()+" ") })
	})
	began = time.Now()
	survivors := 0
	each(ctx, parallel, byPackage(rules), func(rule *rule) {
		at := time.Now()
		problem := r.mutated(ctx, rule)
		if ctx.Err() != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if problem != "" {
			survivors++
			report(rule.ID + ": " + problem)
			return
		}
		fmt.Printf("caught  %-40s %4.1fs\n", rule.ID, time.Since(at).Seconds())
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	fmt.Printf("%d of %d rules were caught when switched off (%.0fs)\n", len(rules)-survivors, len(rules), time.Since(began).Seconds())
	if len(problems) > 0 {
		return fmt.Errorf("%d problems", len(problems))
	}
	return nil
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

// draw takes a sample that the seed decides.
func draw(rules []*rule, n int, seed string) []*rule {
	h := fnv.New64a()
	h.Write([]byte(seed))
	out := slices.Clone(rules)
	rand.New(rand.NewPCG(h.Sum64(), 0)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	out = out[:min(n, len(out))]
	var ids []string
	for _, r := range out {
		ids = append(ids, r.ID)
	}
	fmt.Printf("seed %s draws %s\n", seed, strings.Join(ids, ","))
	return out
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

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
