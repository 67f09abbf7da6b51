package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// runner compiles and runs tests. It writes to scratch only.
type runner struct {
	root, scratch string
}

// verdict is what a test said.
type verdict struct {
	ran, passed bool
	// built is false when the package did not compile; output then says why.
	built  bool
	output string
}

// module is the directory of the module that a package belongs to.
func module(dir string) string {
	for _, m := range []string{"hack/tools", "lab"} {
		if dir == m || strings.HasPrefix(dir, m+"/") {
			return m
		}
	}
	return "."
}

// compile builds the test binary of a package in the tree at root. overlay may be empty.
func (r *runner) compile(ctx context.Context, root, dir, overlay, binary string) (output string, err error) {
	args := []string{"test", "-c", "-p", "2", "-ldflags=-s -w", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	rel, err := filepath.Rel(module(dir), dir)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+rel)...)
	cmd.Dir = filepath.Join(root, module(dir))
	raw, err := cmd.CombinedOutput()
	if _, statErr := os.Stat(binary); err == nil && statErr != nil {
		err = errors.New("the package has no tests")
	}
	return string(raw), err
}

// flags keeps a failing property from leaving its case in the tree.
func (r *runner) flags(dir string) []string {
	for _, file := range mustGlob(filepath.Join(r.root, dir, "*_test.go")) {
		if raw, err := os.ReadFile(file); err == nil && strings.Contains(string(raw), `"pgregory.net/rapid"`) {
			return []string{"-rapid.nofailfile"}
		}
	}
	return nil
}

func mustGlob(pattern string) []string {
	files, err := filepath.Glob(pattern)
	if err != nil {
		panic(err)
	}
	return files
}

var outcome = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)`)

// run runs one rule's test from a compiled binary, in the package's directory under root.
func (r *runner) run(ctx context.Context, root string, rule *rule, binary string) verdict {
	limit := 2 * time.Minute
	if rule.Needs == needsServer {
		limit = 10 * time.Minute
	}
	args := append([]string{"-test.v", "-test.count=1", "-test.timeout=" + limit.String(), "-test.run=" + rule.pattern()}, r.flags(rule.dir())...)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = filepath.Join(root, rule.dir())
	raw, err := cmd.CombinedOutput()
	v := verdict{built: true, output: string(raw)}
	for _, m := range outcome.FindAllStringSubmatch(v.output, -1) {
		if m[2] == rule.shown() {
			v.ran = m[1] != "SKIP"
			v.passed = m[1] == "PASS" && err == nil
		}
	}
	return v
}

// asIs runs the listed tests of one package on the code as it stands.
func (r *runner) asIs(ctx context.Context, dir string, rules []*rule) (problems []string) {
	binary := filepath.Join(r.scratch, "asis-"+strings.ReplaceAll(dir, "/", "-"))
	defer os.Remove(binary)
	if out, err := r.compile(ctx, r.root, dir, "", binary); err != nil {
		return []string{fmt.Sprintf("%s does not compile: %v\n%s", dir, err, tail(out))}
	}
	for _, rule := range rules {
		switch v := r.run(ctx, r.root, rule, binary); {
		case !v.ran:
			problems = append(problems, fmt.Sprintf("%s: there is no test %s in %s", rule.ID, rule.name(), dir))
		case !v.passed:
			problems = append(problems, fmt.Sprintf("%s: %s %s fails as the code stands:\n%s", rule.ID, dir, rule.name(), tail(v.output)))
		}
	}
	return problems
}

// mutated runs a rule's test with the rule switched off. A problem is anything but a
// test that ran and failed.
func (r *runner) mutated(ctx context.Context, rule *rule) (problem string) {
	dir, err := os.MkdirTemp(r.scratch, rule.ID+"-")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	edited, err := rule.Off.apply(r.root)
	if err != nil {
		return err.Error()
	}
	root, overlay := r.root, ""
	if strings.HasSuffix(rule.Off.File, ".go") {
		overlay, err = r.overlay(dir, rule.Off.File, edited)
	} else { // a test reads it when it runs, so it needs a tree of its own
		root = filepath.Join(dir, "tree")
		err = r.copyTree(ctx, root, rule.Off.File, edited)
	}
	if err != nil {
		return err.Error()
	}
	binary := filepath.Join(dir, "test")
	if out, err := r.compile(ctx, root, rule.dir(), overlay, binary); err != nil {
		return fmt.Sprintf("the edit does not compile: %v\n%s", err, tail(out))
	}
	switch v := r.run(ctx, root, rule, binary); {
	case v.passed:
		return "SURVIVES: the test passes with the rule switched off"
	case !v.ran:
		return "with the rule switched off the test does not even report:\n" + tail(v.output)
	}
	return ""
}

func (r *runner) overlay(dir, file string, edited []byte) (string, error) {
	replacement := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(replacement, edited, 0o644); err != nil {
		return "", err
	}
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(r.root, file): replacement}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, raw, 0o644)
}

// copyTree copies what git knows, and what it would, with one file replaced.
func (r *runner) copyTree(ctx context.Context, to, file string, edited []byte) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "-co", "--exclude-standard")
	cmd.Dir = r.root
	raw, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	names := strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		content := edited
		if name != file {
			if content, err = os.ReadFile(filepath.Join(r.root, name)); errors.Is(err, os.ErrNotExist) {
				continue // deleted and not committed yet
			} else if err != nil {
				return err
			}
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// tail keeps the end of an output, where the reason is.
func tail(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > 25 {
		lines = lines[len(lines)-25:]
	}
	return "    " + strings.Join(lines, "\n    ")
}
