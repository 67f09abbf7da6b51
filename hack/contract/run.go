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

// module is the directory of the module that a package belongs to.
func module(dir string) string {
	for _, m := range []string{"hack/tools", "lab"} {
		if dir == m || strings.HasPrefix(dir, m+"/") {
			return m
		}
	}
	return "."
}

// bench is what one package's rules are tried with.
type bench struct {
	*runner
	dir string
	// binary has the package's tests, with the edits of all rules but alone woven in.
	binary string
	rules  []*rule
	alone  []*rule
}

// set builds the bench of a package. When the woven files don't compile, every rule has
// to be built by itself, and the one to blame says so then.
func (r *runner) set(ctx context.Context, dir string, rules []*rule) (*bench, error) {
	scratch, err := os.MkdirTemp(r.scratch, "bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{runner: r, dir: dir, binary: filepath.Join(scratch, "test"), rules: rules}
	var files map[string][]byte
	if files, b.alone, err = weave(r.root, rules); err != nil {
		return nil, err
	}
	overlay, err := overlay(scratch, r.root, files)
	if err != nil {
		return nil, err
	}
	if _, err := compile(ctx, r.root, dir, overlay, b.binary); err == nil {
		return b, nil
	}
	b.alone = rules
	if out, err := compile(ctx, r.root, dir, "", b.binary); err != nil {
		return nil, fmt.Errorf("%s does not compile: %w\n%s", dir, err, tail(out))
	}
	return b, nil
}

// asIs runs a rule's test on the code as it stands.
func (b *bench) asIs(ctx context.Context, rule *rule) (problem string) {
	switch v := b.run(ctx, b.root, rule, b.binary, ""); {
	case !v.ran:
		return fmt.Sprintf("there is no test %s in %s", rule.name(), rule.dir())
	case !v.passed:
		return fmt.Sprintf("%s %s fails as the code stands:\n%s", rule.dir(), rule.name(), tail(v.output))
	}
	return ""
}

// off runs a rule's test with the rule switched off. A problem is anything but a test
// that ran and failed.
func (b *bench) off(ctx context.Context, rule *rule) (problem string) {
	edited, err := rule.Off.apply(b.root)
	if err != nil {
		return err.Error()
	}
	root, binary, variable := b.root, b.binary, rule.ID
	if slices.Contains(b.alone, rule) {
		dir, err := os.MkdirTemp(b.scratch, rule.ID+"-")
		if err != nil {
			return err.Error()
		}
		defer os.RemoveAll(dir)
		if root, binary, err = b.apart(ctx, dir, rule, edited); err != nil {
			return err.Error()
		}
		variable = ""
	}
	switch v := b.run(ctx, root, rule, binary, variable); {
	case v.passed:
		return "SURVIVES: the test passes with the rule switched off"
	case !v.ran:
		return "with the rule switched off the test does not even report:\n" + tail(v.output)
	case strings.Contains(v.output, "\npanic: "):
		return "with the rule switched off the test breaks instead of failing, so the edit did more than that:\n" + tail(v.output)
	}
	return ""
}

// apart makes a tree and a binary for one rule alone. A file that a test reads when it
// runs needs a tree of its own, and no other binary unless that knows where it was built.
func (b *bench) apart(ctx context.Context, dir string, rule *rule, edited []byte) (root, binary string, err error) {
	root, binary = b.root, b.binary
	path := ""
	if strings.HasSuffix(rule.Off.File, ".go") {
		path, err = overlay(dir, b.root, map[string][]byte{rule.Off.File: edited})
	} else {
		root = filepath.Join(dir, "tree")
		err = b.copyTree(ctx, root, rule.Off.File, edited)
	}
	if err != nil || path == "" && rule.Needs != needsServer {
		return root, binary, err
	}
	binary = filepath.Join(dir, "test")
	if out, err := compile(ctx, root, rule.dir(), path, binary); err != nil {
		return "", "", fmt.Errorf("the edit does not compile: %w\n%s", err, tail(out))
	}
	return root, binary, nil
}

// compile builds the test binary of a package in the tree at root. overlay may be empty.
func compile(ctx context.Context, root, dir, overlay, binary string) (output string, err error) {
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", binary}
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

// overlay writes files for go build -overlay to take in place of those in the tree.
func overlay(dir, root string, files map[string][]byte) (string, error) {
	replace := map[string]string{}
	for name, content := range files {
		at := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(at, content, 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(root, name)] = at
	}
	raw, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, raw, 0o644)
}

// verdict is what a test said.
type verdict struct {
	ran, passed bool
	output      string
}

var outcome = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)`)

// run runs one rule's test from a compiled binary, in the package's directory under root.
func (r *runner) run(ctx context.Context, root string, rule *rule, binary, off string) verdict {
	limit := 2 * time.Minute
	if rule.Needs == needsServer {
		limit = 10 * time.Minute
	}
	args := append([]string{"-test.v", "-test.count=1", "-test.timeout=" + limit.String(), "-test.run=" + rule.pattern()}, r.flags(rule.dir())...)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = filepath.Join(root, rule.dir())
	cmd.Env = append(os.Environ(), ruleVariable+"="+off)
	raw, err := cmd.CombinedOutput()
	v := verdict{output: string(raw)}
	for _, m := range outcome.FindAllStringSubmatch(v.output, -1) {
		if m[2] == rule.shown() {
			v.ran = m[1] != "SKIP"
			v.passed = m[1] == "PASS" && err == nil
		}
	}
	return v
}

// flags keeps a failing property from leaving its case in the tree.
func (r *runner) flags(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(r.root, dir, "*_test.go"))
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && strings.Contains(string(raw), `"pgregory.net/rapid"`) {
			return []string{"-rapid.nofailfile"}
		}
	}
	return nil
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
