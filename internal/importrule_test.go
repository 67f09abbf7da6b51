// Package internal_test holds the tests that guard the shape of the whole
// product tree rather than the behaviour of one package.
package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const (
	module    = "ome.io/ome"
	labModule = module + "/lab"
)

// A room is a top-level folder with a place in the import order. Imports go
// from a higher floor to a lower one, never sideways into another room and
// never up.
type room struct {
	dir   string // path prefix, slash separated, no trailing slash
	floor int
	// pure rooms take values and give values: no client, clock, goroutine,
	// logger, file or socket.
	pure bool
	// beside names rooms of the same floor that may be imported as well.
	beside []string
}

// rooms is matched by longest prefix. A package in no room fails the test, so
// that a new folder gets its place in the order before it gets its users.
var rooms = []room{
	{dir: "api", floor: 0},
	{dir: "internal/core", floor: 1, pure: true},
	{dir: "internal/sim", floor: 2, pure: true},
	{dir: "internal/metrics", floor: 2},
	{dir: "internal/prom", floor: 2},
	{dir: "internal/settings", floor: 2},
	{dir: "internal/validate", floor: 3},
	{dir: "internal/render", floor: 3},
	{dir: "internal/preview", floor: 3, pure: true},
	{dir: "internal/guarded", floor: 4},
	{dir: "internal/view", floor: 4},
	{dir: "internal/cli", floor: 5},
	{dir: "internal/controller", floor: 5},
	{dir: "internal/webhook", floor: 5},
	{dir: "cmd", floor: 6},
	{dir: "test", floor: 7},
	{dir: "hack", floor: 7},
	{dir: "config", floor: 7},
	{dir: "internal/testenv", floor: 7}, // for tests, which may look up
	{dir: "internal/deps", floor: 7},
}

// pureMachinery lists the apimachinery packages that hold values and pure
// functions. The rest of apimachinery waits, dials, draws random numbers or
// starts goroutines.
var pureMachinery = map[string]bool{
	"k8s.io/apimachinery/pkg/api/equality":          true,
	"k8s.io/apimachinery/pkg/api/resource":          true,
	"k8s.io/apimachinery/pkg/api/meta":              true,
	"k8s.io/apimachinery/pkg/apis/meta/v1":          true,
	"k8s.io/apimachinery/pkg/fields":                true,
	"k8s.io/apimachinery/pkg/labels":                true,
	"k8s.io/apimachinery/pkg/runtime":               true,
	"k8s.io/apimachinery/pkg/runtime/schema":        true,
	"k8s.io/apimachinery/pkg/selection":             true,
	"k8s.io/apimachinery/pkg/types":                 true,
	"k8s.io/apimachinery/pkg/util/intstr":           true,
	"k8s.io/apimachinery/pkg/util/resourceversion":  true,
	"k8s.io/apimachinery/pkg/util/sets":             true,
	"k8s.io/apimachinery/pkg/util/validation":       true,
	"k8s.io/apimachinery/pkg/util/validation/field": true,
}

// impureStd lists standard packages, or trees when they end in a slash, that
// reach outside the process or are not repeatable.
var impureStd = []string{
	"os", "os/", "net", "net/", "log", "log/", "syscall", "syscall/", "io/ioutil", "plugin", "unsafe",
	"math/rand", "math/rand/", "crypto/rand", "runtime", "runtime/", "testing", "testing/", "context", "database/", "embed",
}

// impureTime lists the functions of package time that read or wait on a clock.
var impureTime = map[string]bool{
	"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true,
	"Tick": true, "NewTimer": true, "NewTicker": true,
}

func roomOf(dir string) (room, bool) {
	best, found := room{}, false
	for _, r := range rooms {
		if (dir == r.dir || strings.HasPrefix(dir, r.dir+"/")) && len(r.dir) > len(best.dir) {
			best, found = r, true
		}
	}
	return best, found
}

// checkTree reads every Go file of the module in tree and returns the
// violations as "file:line: what: rule", sorted.
func checkTree(tree fs.FS) (violations []string, files int, err error) {
	err = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p == "." {
				return nil
			}
			name := d.Name()
			if name == "testdata" || name == "vendor" || name == "bin" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
				return fs.SkipDir
			}
			if _, err := fs.Stat(tree, path.Join(p, "go.mod")); err == nil {
				return fs.SkipDir // a module of its own: the lab, the tools
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		src, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		found, err := checkFile(p, src)
		if err != nil {
			return err
		}
		files++
		violations = append(violations, found...)
		return nil
	})
	sort.Strings(violations)
	return violations, files, err
}

func checkFile(file string, src []byte) ([]string, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []string
	report := func(pos token.Pos, format string, args ...any) {
		out = append(out, fmt.Sprintf("%s:%d: %s", file, fset.Position(pos).Line, fmt.Sprintf(format, args...)))
	}

	dir := path.Dir(file)
	isTest := strings.HasSuffix(file, "_test.go")
	here, known := roomOf(dir)
	if !known && !isTest {
		report(f.Package, "package %s is in no room: give it a place in the list of rooms of importrule_test.go", dir)
	}

	for _, spec := range f.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if target == labModule || strings.HasPrefix(target, labModule+"/") {
			report(spec.Pos(), "imports %s: the product never imports the lab", target)
			continue
		}
		if isTest || !known {
			continue // tests may look up (core is tested through sim), but not into the lab
		}
		if target == module || strings.HasPrefix(target, module+"/") {
			rel := strings.TrimPrefix(strings.TrimPrefix(target, module), "/")
			there, ok := roomOf(rel)
			switch {
			case !ok:
				report(spec.Pos(), "imports %s, which is in no room", target)
			case there.dir == here.dir || there.floor < here.floor || slices.Contains(here.beside, there.dir):
			default:
				report(spec.Pos(), "%s imports %s: imports run downwards only (cmd -> cli, controller, webhook -> guarded, view -> validate, render -> sim -> core -> api)", here.dir, target)
			}
			continue
		}
		if here.pure {
			if why := impureImport(target); why != "" {
				report(spec.Pos(), "%s imports %s: %s", here.dir, target, why)
			}
		}
	}

	if here.pure && !isTest {
		timeName := importName(f, "time")
		fmtName := importName(f, "fmt")
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				report(n.Pos(), "go statement: %s starts no goroutines", here.dir)
			case *ast.SelectStmt:
				report(n.Pos(), "select statement: %s waits for nothing", here.dir)
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if !ok {
					return true
				}
				if timeName != "" && x.Name == timeName && impureTime[n.Sel.Name] {
					report(n.Pos(), "time.%s: %s gets the time as a value", n.Sel.Name, here.dir)
				}
				if fmtName != "" && x.Name == fmtName && (strings.HasPrefix(n.Sel.Name, "Print") || strings.HasPrefix(n.Sel.Name, "Scan")) {
					report(n.Pos(), "fmt.%s: %s neither reads nor prints", n.Sel.Name, here.dir)
				}
			}
			return true
		})
	}
	return out, nil
}

// impureImport says why a pure room can't import target, or "".
func impureImport(target string) string {
	first, _, _ := strings.Cut(target, "/")
	if !strings.Contains(first, ".") { // standard library
		for _, p := range impureStd {
			if target == p || strings.HasSuffix(p, "/") && strings.HasPrefix(target, p) {
				return "a pure package reaches no file, socket, process, logger or source of chance"
			}
		}
		return ""
	}
	if strings.HasPrefix(target, "k8s.io/api/") || pureMachinery[target] {
		return ""
	}
	return "a pure package imports only the API, the standard library and the value types of k8s.io/api and k8s.io/apimachinery"
}

// importName returns the name that a package goes by in a file, or "".
func importName(f *ast.File, pkg string) string {
	for _, spec := range f.Imports {
		if spec.Path.Value == strconv.Quote(pkg) {
			if spec.Name != nil {
				return spec.Name.Name
			}
			return path.Base(pkg)
		}
	}
	return ""
}

func TestImportRule(t *testing.T) {
	violations, files, err := checkTree(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Fatalf("only %d Go files seen: the walk does not start at the module root", files)
	}
	for _, v := range violations {
		t.Error(v)
	}
}

// TestImportRuleCanFail feeds the checker a small tree with one violation of
// each kind next to files that are fine.
func TestImportRuleCanFail(t *testing.T) {
	file := func(lines ...string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(strings.Join(lines, "\n") + "\n")}
	}
	tree := fstest.MapFS{
		"api/v1beta1/types.go":         file("package v1beta1", `import "ome.io/ome/internal/core/plan"`, "var _ = plan.X"),
		"internal/core/plan/ok.go":     file("package plan", `import (`, `"time"`, `metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"`, `corev1 "k8s.io/api/core/v1"`, `"ome.io/ome/api/v1beta1"`, `"ome.io/ome/internal/core/rows"`, `)`, "type T struct{ A time.Time }"),
		"internal/core/plan/client.go": file("package plan", `import "k8s.io/client-go/kubernetes"`),
		"internal/core/plan/wait.go":   file("package plan", `import "k8s.io/apimachinery/pkg/util/wait"`),
		"internal/core/plan/log.go":    file("package plan", `import (`, `"log/slog"`, `"net/http"`, `"os"`, `)`),
		"internal/core/plan/clock.go":  file("package plan", `import t "time"`, "func f() { _ = t.Now() }", "func g(now t.Time) t.Time { return now.Add(t.Second) }"),
		"internal/core/plan/go.go":     file("package plan", "func h() {", "\tgo f()", "}"),
		"internal/core/plan/print.go":  file("package plan", `import "fmt"`, "func p() { fmt.Println(fmt.Sprint()) }"),
		"internal/core/plan/up.go":     file("package plan", `import "ome.io/ome/internal/sim"`),
		"internal/core/plan/x_test.go": file("package plan_test", `import (`, `"os"`, `"ome.io/ome/internal/sim"`, `)`),
		"internal/sim/sim.go":          file("package sim", `import "ome.io/ome/internal/core/plan"`, "func s() { select {} }"),
		"internal/view/view.go":        file("package view", `import (`, `"ome.io/ome/internal/validate"`, `"ome.io/ome/internal/guarded"`, `"k8s.io/client-go/kubernetes"`, `)`),
		"internal/cli/a.go":            file("package cli", `import (`, `"ome.io/ome/internal/view"`, `"ome.io/ome/internal/controller"`, `)`),
		"internal/cli/lab_test.go":     file("package cli", `import "ome.io/ome/lab/kube"`),
		"internal/attic/a.go":          file("package attic"),
		"cmd/ome-manager/main.go":      file("package main", `import "ome.io/ome/internal/controller"`),
		"internal/cli/testdata/bad.go": file("package bad", `import "ome.io/ome/cmd/x"`),
		"lab/go.mod":                   file("module ome.io/ome/lab"),
		"lab/main.go":                  file("package main", `import "ome.io/ome/lab/kube"`),
	}
	got, _, err := checkTree(tree)
	if err != nil {
		t.Fatal(err)
	}
	const (
		down  = "imports run downwards only (cmd -> cli, controller, webhook -> guarded, view -> validate, render -> sim -> core -> api)"
		reach = "a pure package reaches no file, socket, process, logger or source of chance"
		value = "a pure package imports only the API, the standard library and the value types of k8s.io/api and k8s.io/apimachinery"
	)
	want := []string{
		"api/v1beta1/types.go:2: api imports ome.io/ome/internal/core/plan: " + down,
		"internal/attic/a.go:1: package internal/attic is in no room: give it a place in the list of rooms of importrule_test.go",
		"internal/cli/a.go:4: internal/cli imports ome.io/ome/internal/controller: " + down,
		"internal/cli/lab_test.go:2: imports ome.io/ome/lab/kube: the product never imports the lab",
		"internal/core/plan/client.go:2: internal/core imports k8s.io/client-go/kubernetes: " + value,
		"internal/core/plan/clock.go:3: time.Now: internal/core gets the time as a value",
		"internal/core/plan/go.go:3: go statement: internal/core starts no goroutines",
		"internal/core/plan/log.go:3: internal/core imports log/slog: " + reach,
		"internal/core/plan/log.go:4: internal/core imports net/http: " + reach,
		"internal/core/plan/log.go:5: internal/core imports os: " + reach,
		"internal/core/plan/print.go:3: fmt.Println: internal/core neither reads nor prints",
		"internal/core/plan/up.go:2: internal/core imports ome.io/ome/internal/sim: " + down,
		"internal/core/plan/wait.go:2: internal/core imports k8s.io/apimachinery/pkg/util/wait: " + value,
		"internal/sim/sim.go:3: select statement: internal/sim waits for nothing",
		"internal/view/view.go:4: internal/view imports ome.io/ome/internal/guarded: " + down,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}
