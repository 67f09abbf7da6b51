package guarded

import "io"

// Streams are the command's standard streams. The result goes to Out; preview,
// prompt, notes and errors go to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// InIsTerminal says whether a person can answer the prompt.
	InIsTerminal bool
	// OutIsTerminal says whether a person reads Out directly.
	OutIsTerminal bool
	// Width is the number of columns of the terminal behind Out, 0 when unknown.
	Width int
}
