package view

import (
	"io"
	"strings"
	"unicode/utf8"
)

const columnGap = 3

// Table is a header and rows of cells; every row has as many cells as the header.
type Table struct {
	Header []string
	Rows   [][]string
}

// Write draws the table. Width 0, a pipe, gives one line a row. On a terminal a
// table that is too wide wraps its cells, and when not even the headers fit each
// row becomes a list of fields.
func (t *Table) Write(w io.Writer, width int) error {
	widths := make([]int, len(t.Header))
	for i, h := range t.Header {
		widths[i] = runes(h)
	}
	minimum := total(widths)
	for _, r := range t.Rows {
		for i, c := range r {
			widths[i] = max(widths[i], runes(c))
		}
	}
	var b strings.Builder
	switch {
	case width <= 0 || total(widths) <= width:
		t.lines(&b, widths)
	case minimum > width:
		t.fields(&b)
	default:
		t.shrink(widths, width)
		t.lines(&b, widths)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shrink narrows the widest columns, never below their header, until the table
// fits. The first column names the row, so it gives way last.
func (t *Table) shrink(widths []int, width int) {
	for total(widths) > width {
		widest := 0
		for i := 1; i < len(widths); i++ {
			if widths[i] > runes(t.Header[i]) && (widest == 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		widths[widest]--
	}
}

func (t *Table) lines(b *strings.Builder, widths []int) {
	for _, r := range append([][]string{t.Header}, t.Rows...) {
		cells := make([][]string, len(r))
		height := 1
		for i, c := range r {
			cells[i] = wrap(c, widths[i])
			height = max(height, len(cells[i]))
		}
		for y := range height {
			var line strings.Builder
			for i := range r {
				part := ""
				if y < len(cells[i]) {
					part = cells[i][y]
				}
				line.WriteString(part)
				if i < len(r)-1 {
					line.WriteString(strings.Repeat(" ", widths[i]-runes(part)+columnGap))
				}
			}
			b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
	}
}

func (t *Table) fields(b *strings.Builder) {
	for n, r := range t.Rows {
		if n > 0 {
			b.WriteByte('\n')
		}
		for i, c := range r {
			b.WriteString(t.Header[i] + ": " + c + "\n")
		}
	}
}

// wrap cuts a cell into lines of at most width characters, at a space or after a
// hyphen or comma when there is one in the second half.
func wrap(s string, width int) []string {
	r := []rune(s)
	var lines []string
	for len(r) > width {
		at := width
		for i := width; i > width/2; i-- {
			if r[i] == ' ' || r[i-1] == '-' || r[i-1] == ',' {
				at = i
				break
			}
		}
		lines = append(lines, strings.TrimRight(string(r[:at]), " "))
		r = []rune(strings.TrimLeft(string(r[at:]), " "))
	}
	return append(lines, string(r))
}

func total(widths []int) int {
	sum := columnGap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

func runes(s string) int { return utf8.RuneCountInString(s) }
