package guarded

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// Row is one line of a preview. Values are shown in full.
type Row struct {
	Label, Value string
}

// rowResourceVersion is the one row that may differ when a person asked to go
// on despite status writes.
const rowResourceVersion = "ResourceVersion"

// writePreview prints title, rows in two columns, and notes under them, in one
// write.
func writePreview(w io.Writer, title string, rows []Row, notes []string) error {
	var buf bytes.Buffer
	buf.WriteString(title + "\n")
	width := 0
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(r.Label))
	}
	for _, r := range rows {
		buf.WriteString(r.Label)
		for range width - utf8.RuneCountInString(r.Label) + 2 {
			buf.WriteByte(' ')
		}
		buf.WriteString(r.Value + "\n")
	}
	for _, n := range notes {
		buf.WriteString(n + "\n")
	}
	_, err := w.Write(buf.Bytes())
	return err
}
