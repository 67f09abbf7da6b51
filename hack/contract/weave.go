package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// switchFile is added to each package with a woven file, and ruleVariable says to the test
// binary which rule is off.
const (
	switchFile   = "zz_contract_switch.go"
	ruleVariable = "CONTRACT_RULE_OFF"
)

// weave puts the edits of many rules into one set of files, so that one build serves them
// all: the function around an edit is there a second time, edited, and runs instead of
// the first while its rule is off. The rules whose edits are in no such function, or in no
// Go file, come back as rest.
func weave(root string, rules []*rule) (files map[string][]byte, rest []*rule, err error) {
	files = map[string][]byte{}
	byFile := map[string][]*rule{}
	var names []string
	for _, r := range rules {
		if !strings.HasSuffix(r.Off.File, ".go") {
			rest = append(rest, r)
			continue
		}
		if byFile[r.Off.File] == nil {
			names = append(names, r.Off.File)
		}
		byFile[r.Off.File] = append(byFile[r.Off.File], r)
	}
	for _, name := range names {
		src, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, nil, err
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		w := weaver{src: src, offset: func(p token.Pos) int { return fset.Position(p).Offset }}
		for _, r := range byFile[name] {
			if !w.add(parsed, r) {
				rest = append(rest, r)
			}
		}
		if len(w.calls) == 0 {
			continue
		}
		files[name] = w.text()
		files[path.Join(path.Dir(name), switchFile)] = fmt.Appendf(nil, "package %s\n\nimport \"os\"\n\nvar contractRuleOff = os.Getenv(%q)\n", parsed.Name.Name, ruleVariable)
	}
	return files, rest, nil
}

// weaver collects what becomes of one file.
type weaver struct {
	src    []byte
	offset func(token.Pos) int
	calls  []insertion
	copies bytes.Buffer
}

type insertion struct {
	at   int
	text string
}

// add weaves one rule in. It is false when the edit is in no function that can be called
// with its own parameters.
func (w *weaver) add(file *ast.File, r *rule) bool {
	from := bytes.Index(w.src, []byte(r.Off.Find))
	to := from + len(r.Off.Find)
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || from <= w.offset(f.Body.Lbrace) || to > w.offset(f.End()) {
			continue
		}
		name := f.Name.Name + "_off_" + strings.ReplaceAll(r.ID, "-", "_")
		call, ok := callOf(f, name)
		if !ok {
			return false
		}
		w.calls = append(w.calls, insertion{w.offset(f.Body.Lbrace) + 1, fmt.Sprintf("\n\tif contractRuleOff == %q {\n\t\t%s\n\t}\n", r.ID, call)})
		fmt.Fprintf(&w.copies, "\n%s%s%s%s%s\n", w.src[w.offset(f.Pos()):w.offset(f.Name.Pos())], name,
			w.src[w.offset(f.Name.End()):from], r.Off.Replace, w.src[to:w.offset(f.End())])
		return true
	}
	return false
}

// callOf calls the copy of a function with what the function was called with.
func callOf(f *ast.FuncDecl, name string) (string, bool) {
	if f.Type.TypeParams != nil || f.Name.Name == "init" {
		return "", false
	}
	named := func(fields []*ast.Field) (out []string, ok bool) {
		for _, field := range fields {
			if len(field.Names) == 0 {
				return nil, false
			}
			for _, n := range field.Names {
				arg := n.Name
				if _, variadic := field.Type.(*ast.Ellipsis); variadic {
					arg += "..."
				}
				out = append(out, arg)
			}
		}
		return out, !slices.Contains(out, "_") && !slices.Contains(out, "_...")
	}
	args, ok := named(f.Type.Params.List)
	if !ok {
		return "", false
	}
	call := fmt.Sprintf("%s(%s)", name, strings.Join(args, ", "))
	if f.Recv != nil {
		receiver, ok := named(f.Recv.List)
		if !ok {
			return "", false
		}
		call = receiver[0] + "." + call
	}
	if f.Type.Results != nil && len(f.Type.Results.List) > 0 {
		return "return " + call, true
	}
	return call + "\n\t\treturn", true
}

// text is the file with the calls at the top of their functions and the copies at its end.
func (w *weaver) text() []byte {
	slices.SortStableFunc(w.calls, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	var out bytes.Buffer
	last := 0
	for _, i := range w.calls {
		out.Write(w.src[last:i.at])
		out.WriteString(i.text)
		last = i.at
	}
	out.Write(w.src[last:])
	out.Write(w.copies.Bytes())
	return out.Bytes()
}
