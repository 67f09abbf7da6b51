package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// contract is docs/contract.yaml.
type contract struct {
	Topics []topic `json:"topics"`
	// NotYet are statements that nothing in the product keeps yet.
	NotYet []gap `json:"notYet"`
}

type topic struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type gap struct {
	Name       string   `json:"name"`
	Why        string   `json:"why"`
	Statements []string `json:"statements"`
}

// rule is one statement, the test that holds it and the edit that switches it off.
type rule struct {
	ID   string `json:"id"`
	Says string `json:"says"`
	// Test is a directory and a test, such as "internal/core/plan TestKind/the default".
	Test string `json:"test"`
	// Needs is "apiserver" for a test that starts one. It runs in full runs only.
	Needs string   `json:"needs,omitempty"`
	Off   mutation `json:"edit"`
}

type mutation struct {
	File    string `json:"file"`
	Find    string `json:"find"`
	Replace string `json:"replace"`
}

const needsServer = "apiserver"

func (r *rule) dir() string  { dir, _, _ := strings.Cut(r.Test, " "); return dir }
func (r *rule) name() string { _, name, _ := strings.Cut(r.Test, " "); return name }

// shown is the name as the testing package prints it.
func (r *rule) shown() string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) {
			return '_'
		}
		return c
	}, r.name())
}

// pattern selects the test for -run. What the matcher would read as syntax stands for
// any character; that just this test ran is checked afterwards.
func (r *rule) pattern() string {
	parts := strings.Split(r.shown(), "/")
	for i, p := range parts {
		parts[i] = "^" + special.ReplaceAllString(p, ".") + "$"
	}
	return strings.Join(parts, "/")
}

var (
	special = regexp.MustCompile(`[^A-Za-z0-9_\- ]`)
	idForm  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
)

// apply returns the file with the rule switched off.
func (m *mutation) apply(root string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, err
	}
	switch n := strings.Count(string(raw), m.Find); {
	case m.Find == "" || m.Find == m.Replace:
		return nil, fmt.Errorf("%s: the edit changes nothing", m.File)
	case n != 1:
		return nil, fmt.Errorf("%s: the text to find is there %d times and has to be there once:\n%s", m.File, n, m.Find)
	}
	return []byte(strings.Replace(string(raw), m.Find, m.Replace, 1)), nil
}

func load(root string) (*contract, error) {
	raw, err := os.ReadFile(filepath.Join(root, source))
	if err != nil {
		return nil, err
	}
	c := new(contract)
	if err := yaml.UnmarshalStrict(raw, c); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return c, nil
}

func (c *contract) rules() (out []*rule) {
	for i := range c.Topics {
		for j := range c.Topics[i].Rules {
			out = append(out, &c.Topics[i].Rules[j])
		}
	}
	return out
}

// problems are what can be seen of some rules without running anything.
func (c *contract) problems(root string, rules []*rule) (out []string) {
	seen, edits := map[string]bool{}, map[string]string{}
	for _, r := range rules {
		say := func(format string, args ...any) { out = append(out, r.ID+": "+fmt.Sprintf(format, args...)) }
		switch {
		case !idForm.MatchString(r.ID):
			say("an id is words in lower case with dashes between them")
		case seen[r.ID]:
			say("is there twice")
		}
		seen[r.ID] = true
		if r.Says == "" || r.name() == "" {
			say("needs a statement and a test")
		}
		if r.Needs != "" && r.Needs != needsServer {
			say("needs %q, which this program can't give", r.Needs)
		}
		if _, err := r.Off.apply(root); err != nil {
			say("%v", err)
		}
		key := fmt.Sprint(r.Test, r.Off)
		if other := edits[key]; other != "" {
			say("has the test and the edit of %s: it would prove nothing more", other)
		}
		edits[key] = r.ID
	}
	for _, g := range c.NotYet {
		if g.Name == "" || g.Why == "" || len(g.Statements) == 0 {
			out = append(out, fmt.Sprintf("notYet %q needs a reason and statements", g.Name))
		}
	}
	return out
}
