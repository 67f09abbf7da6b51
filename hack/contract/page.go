package main

import (
	"fmt"
	"strings"
)

const intro = `# What rollout groups promise, and the test that holds each promise

Generated from [contract.yaml](contract.yaml) by ` + "`go run ./hack/contract -write`" + `; edit that file.

Each row is one statement of behaviour, the test that holds it, and the file in which one edit switches the rule off. The
edits are in contract.yaml. ` + "`make contract`" + ` makes each edit in a copy, runs the one test that is listed, and fails unless the
test then fails. It fails too when a listed test doesn't exist, doesn't pass as the code stands, or when an edit no longer
fits the code. ` + "`hack/test.sh unit`" + ` does the same without the tests that start a server.

A test is a directory and the name for ` + "`go test -run`" + `. *server* marks those that start an API server.
`

// page is docs/contract.md.
func (c *contract) page() string {
	var b strings.Builder
	b.WriteString(intro)
	for _, t := range c.Topics {
		fmt.Fprintf(&b, "\n## %s\n\n| Rule | Statement | Held by | Switched off in |\n| --- | --- | --- | --- |\n", t.Name)
		for i := range t.Rules {
			r := &t.Rules[i]
			mark := ""
			if r.Needs == needsServer {
				mark = " *server*"
			}
			fmt.Fprintf(&b, "| %s | %s | %s `%s`%s | %s |\n", r.ID, cell(r.Says), r.dir(), cell(r.name()), mark, r.Off.File)
		}
	}
	for _, g := range c.NotYet {
		fmt.Fprintf(&b, "\n## Not yet: %s\n\n%s\n\n| Statement | Held by |\n| --- | --- |\n", g.Name, strings.TrimSpace(g.Why))
		for _, s := range g.Statements {
			fmt.Fprintf(&b, "| %s | nothing yet |\n", cell(s))
		}
	}
	return b.String()
}

// cell makes a text fit into one cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
