package analysis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// Variables are what a query template can name: these fields and nothing else.
type Variables struct {
	Namespace      string
	ISVCName       string
	Component      string
	CanaryRevision string
	StableRevision string
	CanaryService  string
	StableService  string
}

// fields in the order in which an error lists them.
func (v Variables) fields() []variable {
	return []variable{
		{"Namespace", v.Namespace}, {"ISVCName", v.ISVCName}, {"Component", v.Component},
		{"CanaryRevision", v.CanaryRevision}, {"StableRevision", v.StableRevision},
		{"CanaryService", v.CanaryService}, {"StableService", v.StableService},
	}
}

type variable struct{ name, value string }

// functions a template may call. All others of text/template are left out: they make text of
// any length, run methods, or escape for another language than PromQL.
var functions = []string{"and", "or", "not", "eq", "ne"}

const (
	maxTemplate = 16 << 10 // bytes, before and after it is filled in
	maxDepth    = 20       // blocks inside each other
)

// ParseTemplate reads a query template and refuses what it can't be: a template is text,
// variables, and if and else over them.
func ParseTemplate(text string) (*Template, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("%d bytes are more than the %d that a query may have", len(text), maxTemplate)
	}
	t, err := template.New("query").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	if n := len(t.Templates()); n > 1 {
		return nil, errors.New("define and block have no use in a query; remove them")
	}
	out := &Template{parsed: t}
	if t.Tree == nil || t.Root == nil {
		return out, nil // nothing but blanks
	}
	if err := out.walk(t.Root, 0); err != nil {
		return nil, err
	}
	return out, nil
}

// Template is a query template that is safe to fill in.
type Template struct {
	parsed *template.Template
	// names of the variables it uses.
	names []string
}

// Fill writes the query. A value that is empty or that PromQL could read as anything but
// the inside of a string is refused: names of Kubernetes never need more.
func (t *Template) Fill(v Variables) (string, error) {
	for _, f := range v.fields() {
		if !slices.Contains(t.names, f.name) {
			continue
		}
		if f.value == "" {
			return "", fmt.Errorf(".%s is not known", f.name)
		}
		if !plain(f.value) {
			return "", fmt.Errorf(".%s is %q, which is no name; letters, digits, -, _ and . are", f.name, f.value)
		}
	}
	if t.parsed.Tree == nil {
		return "", nil
	}
	var out capped
	if err := t.parsed.Execute(&out, v); err != nil {
		return "", errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	return out.String(), nil
}

// Render parses a template and fills it in.
func Render(text string, v Variables) (string, error) {
	t, err := ParseTemplate(text)
	if err != nil {
		return "", err
	}
	return t.Fill(v)
}

func plain(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// capped is text that can't grow without end.
type capped struct{ strings.Builder }

func (c *capped) Write(p []byte) (int, error) {
	if c.Len()+len(p) > maxTemplate {
		return 0, fmt.Errorf("the query is longer than %d bytes", maxTemplate)
	}
	return c.Builder.Write(p)
}

func (t *Template) walk(node parse.Node, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("more than %d blocks inside each other", maxDepth)
	}
	switch n := node.(type) {
	case *parse.TextNode, *parse.CommentNode, *parse.BoolNode, *parse.NumberNode, *parse.StringNode, nil:
		return nil
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, child := range n.Nodes {
			if err := t.walk(child, depth); err != nil {
				return err
			}
		}
		return nil
	case *parse.ActionNode:
		return t.walk(n.Pipe, depth)
	case *parse.IfNode:
		return t.branch(&n.BranchNode, depth)
	case *parse.PipeNode:
		if len(n.Decl) > 0 {
			return fmt.Errorf("%s: a query keeps no variables of its own; remove it", n)
		}
		for _, c := range n.Cmds {
			for _, arg := range c.Args {
				if err := t.walk(arg, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	case *parse.IdentifierNode:
		if !slices.Contains(functions, n.Ident) {
			return fmt.Errorf("function %q is not for queries; use %s", n.Ident, strings.Join(functions, ", "))
		}
		return nil
	case *parse.FieldNode:
		return t.field(n.Ident)
	}
	return fmt.Errorf("%s has no use in a query; use text, %s, if and else", node, known())
}

func (t *Template) branch(n *parse.BranchNode, depth int) error {
	for _, child := range []parse.Node{n.Pipe, n.List, n.ElseList} {
		if err := t.walk(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (t *Template) field(path []string) error {
	for _, f := range (Variables{}).fields() {
		if len(path) == 1 && path[0] == f.name {
			t.names = append(t.names, f.name)
			return nil
		}
	}
	return fmt.Errorf(".%s is not a variable of queries; use %s", strings.Join(path, "."), known())
}

func known() string {
	var out []string
	for _, f := range (Variables{}).fields() {
		out = append(out, "."+f.name)
	}
	return strings.Join(out, ", ")
}
