// Command termsvg draws captured terminal text as an SVG.
//
//	termsvg [-from RE] [-skip RE,RE]... < captured.txt > picture.svg
//
// The text is not changed. -from starts at the first line that matches; each -skip leaves out the lines from one that
// matches its first expression up to, and without, the next that matches its second, and shows that it did.
package main

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	size       = 14.0 // of the font
	charWidth  = 8.43
	lineHeight = 18.0
	margin     = 18.0
	elided     = "  [...]"
)

type skip struct{ from, to *regexp.Regexp }

type skips []skip

func (s *skips) String() string { return "" }

func (s *skips) Set(v string) error {
	a, b, ok := strings.Cut(v, ",")
	if !ok {
		return errors.New("want two expressions with a comma between")
	}
	from, err := regexp.Compile(a)
	if err != nil {
		return err
	}
	to, err := regexp.Compile(b)
	if err != nil {
		return err
	}
	*s = append(*s, skip{from, to})
	return nil
}

func main() {
	var leave skips
	from := flag.String("from", "", "start at the first line that matches")
	flag.Var(&leave, "skip", "FROM,TO: leave out these lines; may be repeated")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *from, leave); err != nil {
		fmt.Fprintln(os.Stderr, "termsvg:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, from string, leave skips) error {
	start, err := regexp.Compile(from)
	if err != nil {
		return err
	}
	var lines []string
	sc := bufio.NewScanner(in)
	for sc.Scan() {
		if len(lines) > 0 || start.MatchString(sc.Text()) {
			lines = append(lines, sc.Text())
		}
	}
	if err := sc.Err(); err != nil {
		return err
	}
	if len(lines) == 0 {
		return fmt.Errorf("no line matches %q", from)
	}
	_, err = io.WriteString(out, draw(excerpt(lines, leave)))
	return err
}

func excerpt(lines []string, leave skips) (kept []string) {
	var until *regexp.Regexp
	for _, l := range lines {
		if until != nil && !until.MatchString(l) {
			continue
		}
		until = nil
		for _, s := range leave {
			if s.from.MatchString(l) {
				until = s.to
			}
		}
		if until == nil {
			kept = append(kept, l)
		} else if len(kept) == 0 || kept[len(kept)-1] != elided {
			kept = append(kept, elided)
		}
	}
	return kept
}

func draw(lines []string) string {
	columns := 80
	for _, l := range lines {
		columns = max(columns, utf8.RuneCountInString(l))
	}
	width, height := float64(columns)*charWidth+2*margin, float64(len(lines))*lineHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f">
<style>text{font:%.0fpx ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d6deeb;white-space:pre}.c{fill:#ffffff;font-weight:bold}.h{fill:#82aaff}.d{fill:#7f8ea3}</style>
<rect width="100%%" height="100%%" rx="8" fill="#0f1720"/>
`, width, height, width, height, size)
	for i, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		var text bytes.Buffer
		_ = xml.EscapeText(&text, []byte(l))
		fmt.Fprintf(&b, `<text x="%.0f" y="%.1f" xml:space="preserve"%s>%s</text>`+"\n", margin, margin+float64(i)*lineHeight+size, class(l), text.String())
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// class of a line: commands, headings and what was left out.
func class(l string) string {
	switch {
	case strings.HasPrefix(l, "$ "), strings.HasPrefix(l, "    | "):
		return ` class="c"`
	case strings.HasSuffix(l, "-----"):
		return ` class="h"`
	case l == elided:
		return ` class="d"`
	}
	return ""
}
