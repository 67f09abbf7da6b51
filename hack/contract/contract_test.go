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
		"go.mod": "module example.test/double\n\ngo 1.24\n",
		"pkg/double.go": `package pkg

const unit = 1

func Double(n int) int { return 2 * n }

type doubler struct{}

func (d doubler) Of(x ...int) int { return Double(x[0]) * unit }

func (d *doubler) Two(x ...int) (sum int) {
	sum = d.Of(x...)
	return
}
`,
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

func TestTwo(t *testing.T) {
	if got := new(doubler).Two(2, 3); got != 4 {
		t.Error(got)
	}
}

func TestUnit(t *testing.T) {
	if unit != 1 {
		t.Error(unit)
	}
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

func double(id, test, find, replace string) *rule {
	return &rule{ID: id, Says: "twice", Test: "pkg " + test, Off: mutation{File: "pkg/double.go", Find: find, Replace: replace}}
}

// benchOf builds the rules' package, and says which of them it could not weave.
func benchOf(t *testing.T, rules ...*rule) (*bench, []string) {
	t.Helper()
	b, err := (&runner{root: tree(t), scratch: t.TempDir()}).set(t.Context(), "pkg", rules)
	if err != nil {
		t.Fatal(err)
	}
	var alone []string
	for _, r := range b.alone {
		alone = append(alone, r.ID)
	}
	return b, alone
}

func TestRulesAreSwitchedOff(t *testing.T) {
	const looksAway, of2 = "TestDouble/looks away", "TestDouble/of 2: (it's 4)"
	cases := []struct {
		rule *rule
		// want is what the problem says; empty when the test notices.
		want string
	}{
		{double("caught", of2, "2 * n", "3 * n"), ""},
		{double("caught-too", of2, "return 2 * n", "return n"), ""},
		{double("caught-in-a-method", "TestTwo", "d.Of(x...)", "d.Of(x...) + 1"), ""},
		{double("caught-outside-a-function", "TestUnit", "const unit = 1", "const unit = 2"), ""},
		{&rule{ID: "caught-in-a-text", Test: "pkg TestLimit", Off: mutation{File: "pkg/limit.txt", Find: "8", Replace: "9"}}, ""},
		{double("survives", looksAway, "2 * n", "3 * n"), "SURVIVES"},
		{double("breaks", of2, "2 * n", "[]int{}[n]"), "breaks instead of failing"},
		{double("no-such-test", "TestTriple", "2 * n", "3 * n"), "does not even report"},
		{double("changes-nothing", looksAway, "2 * n", "2 * n"), "changes nothing"},
		{double("is-gone", looksAway, "4 * n", "3 * n"), "is there 0 times"},
		{double("is-there-twice", looksAway, "return", "panic(1);return"), "is there 3 times"},
	}
	var rules []*rule
	for _, tc := range cases {
		rules = append(rules, tc.rule)
	}
	b, alone := benchOf(t, rules...)
	if got, want := strings.Join(alone, " "), "caught-in-a-text caught-outside-a-function is-gone"; got != want {
		t.Errorf("not woven: %s, want %s", got, want)
	}
	for _, tc := range cases {
		t.Run(tc.rule.ID, func(t *testing.T) {
			got := b.off(t.Context(), tc.rule)
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// One edit that does not compile is named, and keeps no other from being tried.
func TestAnEditThatDoesNotCompile(t *testing.T) {
	bad, good := double("bad", "TestDouble/looks away", "2 * n", "2 *"), double("good", "TestDouble/of 2: (it's 4)", "2 * n", "n")
	b, alone := benchOf(t, bad, good)
	if strings.Join(alone, " ") != "bad good" {
		t.Errorf("alone: %v", alone)
	}
	if got := b.off(t.Context(), bad); !strings.Contains(got, "does not compile") {
		t.Error(got)
	}
	if got := b.off(t.Context(), good); got != "" {
		t.Error(got)
	}
}

func TestListedTestsHaveToPass(t *testing.T) {
	b, _ := benchOf(t, double("a", "TestDouble", "2 * n", "3 * n"))
	for test, want := range map[string]string{
		"TestDouble/of 2: (it's 4)": "",
		"TestDouble/of 2":           "there is no test",
		"TestDoubl":                 "there is no test",
		"TestDouble/skips":          "there is no test",
		"TestDouble/fails":          "fails as the code stands",
	} {
		got := b.asIs(t.Context(), double("a", test, "2 * n", "3 * n"))
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", test, got, want)
		}
	}
}

func TestProblems(t *testing.T) {
	root := tree(t)
	good := double("double", "TestDouble/looks away", "2 * n", "3 * n")
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
		"an edit that no longer fits": {[]*rule{double("double", "TestDouble", "7", "8")}, "is there 0 times"},
	} {
		got := strings.Join((&contract{}).problems(root, tc.rules), "\n")
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
