package analysis

import (
	"strings"
	"testing"
)

var vars = Variables{
	Namespace: "prod", ISVCName: "chat", Component: "engine", CanaryRevision: "8be0917f", StableRevision: "5d0f21c8",
	CanaryService: "chat-engine-rev-8be0917f", StableService: "chat-engine-rev-5d0f21c8",
}

func TestRender(t *testing.T) {
	for text, want := range map[string]string{
		`up`: `up`,
		``:   ``,
		`e{namespace="{{.Namespace}}",inferenceservice="{{.ISVCName}}",component="{{ .Component }}",revision_hash="{{.CanaryRevision}}"}`: `e{namespace="prod",inferenceservice="chat",component="engine",revision_hash="8be0917f"}`,
		`{{.StableRevision}} {{.CanaryService}} {{.StableService}}`:                                                                       `5d0f21c8 chat-engine-rev-8be0917f chat-engine-rev-5d0f21c8`,
		`{{if eq .Component "router"}}a{{else if ne .Component "engine"}}b{{else}}c{{end}}`:                                               `c`,
		`{{/* why */}}up{{- " x" -}}`: `up x`,
	} {
		got, err := Render(text, vars)
		if err != nil || got != want {
			t.Errorf("%s:\n got %q, %v\nwant %q", text, got, err, want)
		}
	}
}

// TestTemplateIsClosed: nothing but the variables, and no way to make a text of any length.
func TestTemplateIsClosed(t *testing.T) {
	for text, want := range map[string]string{
		`{{.Nmespace}}`:                          `.Nmespace is not a variable of queries; use .Namespace, .ISVCName, .Component, .CanaryRevision, .StableRevision, .CanaryService, .StableService`,
		`{{if false}}{{.X}}{{end}}`:              `.X is not a variable`, // also where it isn't reached
		`{{.Namespace.Name}}`:                    `.Namespace.Name is not a variable`,
		`{{.`:                                    `illegal number`,
		`{{if .Namespace}}`:                      `unexpected EOF`,
		`{{.}}`:                                  `has no use in a query`,
		`{{$x := .Namespace}}{{$x}}`:             `keeps no variables of its own`,
		`{{$.Namespace}}`:                        `has no use in a query`,
		`{{range 99999999999}}x{{end}}`:          `has no use in a query`,
		`{{range .Namespace}}x{{end}}`:           `has no use in a query`,
		`{{with .Namespace}}x{{end}}`:            `has no use in a query`,
		`{{printf "%999999d" 1}}`:                `function "printf" is not for queries; use and, or, not, eq, ne`,
		`{{html .Namespace}}`:                    `function "html"`,
		`{{.Namespace | js}}`:                    `function "js"`,
		`{{call .Namespace}}`:                    `function "call"`,
		`{{env "TOKEN"}}`:                        `function "env" not defined`,
		`{{define "a"}}x{{end}}{{template "a"}}`: `define and block have no use`,
		`{{block "a" .}}x{{end}}`:                `define and block have no use`,
		`{{template "query"}}`:                   `has no use in a query`,
		`{{(.Namespace).X}}`:                     `has no use in a query`,
		`{{nil}}`:                                ``,
		strings.Repeat("{{if .Namespace}}", 30) + strings.Repeat("{{end}}", 30): `blocks inside each other`,
		strings.Repeat("x", maxTemplate+1):                                      `may have`,
	} {
		_, err := Render(text, vars)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v\nwant one with %s", text, err, want)
		}
	}
	if _, err := Render(strings.Repeat("{{.CanaryService}}", maxTemplate/len("{{.CanaryService}}")), vars); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a query that grows while it is filled in: %v", err)
	}
}

// TestValuesCantLeaveTheirString: what is filled in stays inside the quotes of a matcher.
func TestValuesCantLeaveTheirString(t *testing.T) {
	for _, evil := range []string{`a"} or up{x="`, `a\`, "a\nb", `a'b`, "a`b", `{}`, `a,b`, `[5m]`, `ä`, `.*|x`, ` `} {
		v := vars
		v.ISVCName = evil
		if got, err := Render(`x{s="{{.ISVCName}}"}`, v); err == nil {
			t.Errorf("%q became %q", evil, got)
		}
		if _, err := Render(`x{s="{{.Namespace}}"}`, v); err != nil {
			t.Errorf("a value that isn't used: %v", err)
		}
	}
	v := vars
	v.StableRevision = ""
	if got, err := Render(`x{r="{{.StableRevision}}"}`, v); err == nil {
		t.Errorf("an empty value selects every series without the label: %q", got)
	}
}

// FuzzTemplate: a template that is accepted never panics and never grows beyond its bound.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{`{{.Namespace}}`, `{{if eq .Component "engine"}}a{{else}}b{{end}}`, `{{define "x"}}{{end}}`, `{{- .CanaryService -}}`, `{{and .Namespace (not .ISVCName)}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := Render(text, vars); err == nil && len(got) > maxTemplate {
			t.Errorf("%d bytes from %q", len(got), text)
		}
	})
}
