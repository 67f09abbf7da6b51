package validate

import (
	"fmt"
	"strings"
)

// Problem is one reason to refuse an object, or to warn about it.
type Problem struct {
	// Field is the path of the value, such as spec.rollout.groups[0].components[1].
	Field string
	// Message names the value, what is wrong with it and the way out.
	Message string
	// Code is the reason code, empty for a rule that has none.
	Code string
	// Whole is true when Message is the line already, with its field.
	Whole bool
}

func (p Problem) String() string {
	text := p.Message
	if p.Field != "" && !p.Whole {
		text = p.Field + ": " + text
	}
	if p.Code != "" {
		text += " (" + p.Code + ")"
	}
	return text
}

// Result is the verdict on one request. Problems come in a fixed order.
type Result struct {
	Errors   []Problem
	Warnings []Problem
}

// OK reports that nothing speaks against the object.
func (r Result) OK() bool { return len(r.Errors) == 0 }

// Denial is the text of the refusal, empty when there is none.
func (r Result) Denial() string { return join(r.Errors) }

// WarningTexts lists the warnings as texts.
func (r Result) WarningTexts() []string {
	var out []string
	for _, w := range r.Warnings {
		out = append(out, w.String())
	}
	return out
}

func join(problems []Problem) string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return strings.Join(out, "; ")
}

func (r *Result) refuse(field, code, format string, args ...any) {
	r.Errors = append(r.Errors, Problem{Field: field, Code: code, Message: fmt.Sprintf(format, args...)})
}

// refuseLine is for the lines whose words are fixed and don't start with the field and a colon.
func (r *Result) refuseLine(field, code, format string, args ...any) {
	r.Errors = append(r.Errors, Problem{Field: field, Code: code, Message: fmt.Sprintf(format, args...), Whole: true})
}

func (r *Result) warn(field, code, format string, args ...any) {
	r.Warnings = append(r.Warnings, Problem{Field: field, Code: code, Message: fmt.Sprintf(format, args...)})
}
