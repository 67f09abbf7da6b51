package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a module of one package with two tests, one of which notices nothing.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.test/double\n\ngo 1.24\n",
		"pkg/double.go": "package pkg\n\nfunc Double(n int) int { return 2 * n }\n",
		"pkg/limit.txt": "8\n",
		"pkg/double_test.go": `package pkg

import (
	"os"
	"strings"
	"testing"
)

func TestDouble(t *testing.T) {
	t.Run("of 2: (it's 4)", func(t *testing.T) {
		if got := Double(2); got != 4 {
			t.Error(got)
		}
	})
	t.Run("looks away", func(t *testing.T) { Double(2) })
	t.Run("fails", func(t *testing.T) { t.Error("always") })
	t.Run("skips", func(t *testing.T) { t.Skip() })
}

func TestLimit(t *testing.T) {
	raw, err := os.ReadFile("limit.txt")
	if err != nil || strings.TrimSpace(string(raw)) != "8" {
		t.Error(string(raw), err)
	}
}
`,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "-C", root, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return root
}

func double(test, find, replace string) *rule {
	return &rule{ID: "double", Says: "twice", Test: "pkg " + test, Off: mutation{File: "pkg/double.go", Find: find, Replace: replace}}
}

func TestRulesAreSwitchedOff(t *testing.T) {
	r := &runner{root: tree(t), scratch: t.TempDir()}
	for name, tc := range map[string]struct {
		rule *rule
		// want is what the problem says; empty when the test notices.
		want string
	}{
		"caught":                 {double("TestDouble/of 2: (it's 4)", "2 * n", "3 * n"), ""},
		"caught in a text file":  {&rule{ID: "limit", Test: "pkg TestLimit", Off: mutation{File: "pkg/limit.txt", Find: "8", Replace: "9"}}, ""},
		"survives":               {double("TestDouble/looks away", "2 * n", "3 * n"), "SURVIVES"},
		"no such test":           {double("TestTriple", "2 * n", "3 * n"), "does not even report"},
		"an edit of nothing":     {double("TestDouble/looks away", "2 * n", "2 * n"), "changes nothing"},
		"a text that is gone":    {double("TestDouble/looks away", "4 * n", "3 * n"), "is there 0 times"},
		"a text that is twice":   {double("TestDouble/looks away", "int", "uint"), "is there 2 times"},
		"an edit of no language": {double("TestDouble/looks away", "2 * n", "2 *"), "does not compile"},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.mutated(t.Context(), tc.rule)
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestListedTestsHaveToPass(t *testing.T) {
	r := &runner{root: tree(t), scratch: t.TempDir()}
	for test, want := range map[string]string{
		"TestDouble/of 2: (it's 4)": "",
		"TestDouble/of 2":           "there is no test",
		"TestDoubl":                 "there is no test",
		"TestDouble/skips":          "there is no test",
		"TestDouble/fails":          "fails as the code stands",
	} {
		got := strings.Join(r.asIs(t.Context(), "pkg", []*rule{double(test, "2 * n", "3 * n")}), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", test, got, want)
		}
	}
}

func TestProblems(t *testing.T) {
	root := tree(t)
	good := double("TestDouble/looks away", "2 * n", "3 * n")
	other := *good
	other.ID = "other"
	bad := *good
	bad.ID, bad.Needs, bad.Test = "Bad Name", "a cluster", "pkg"
	for name, tc := range map[string]struct {
		rules []*rule
		want  string
	}{
		"none":                        {[]*rule{good}, ""},
		"twice":                       {[]*rule{good, good}, "double: is there twice"},
		"nothing new":                 {[]*rule{good, &other}, "other: has the test and the edit of double"},
		"unknown needs":               {[]*rule{&bad}, `needs "a cluster"`},
		"a bad id":                    {[]*rule{&bad}, "words in lower case"},
		"without a test":              {[]*rule{&bad}, "needs a statement and a test"},
		"an edit that no longer fits": {[]*rule{double("TestDouble", "7", "8")}, "is there 0 times"},
	} {
		got := strings.Join((&contract{}).problems(root, tc.rules), "\n")
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestDrawIsDecidedByItsSeed(t *testing.T) {
	var rules []*rule
	for _, id := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		rules = append(rules, &rule{ID: id})
	}
	ids := func(seed string) (out string) {
		for _, r := range draw(rules, 6, seed) {
			out += r.ID
		}
		return out
	}
	if a, b, other := ids("one"), ids("one"), ids("two"); a != b || a == other || len(a) != 6 {
		t.Errorf("%s, %s, %s", a, b, other)
	}
}
