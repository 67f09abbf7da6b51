package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// narrator writes the story. On a terminal the status is one block that is drawn over itself; elsewhere each change of it
// is a line.
type narrator struct {
	mu    sync.Mutex
	out   io.Writer
	tty   bool
	drawn int // lines of the block now on the screen
}

func newNarrator(out io.Writer, tty bool) *narrator { return &narrator{out: out, tty: tty} }

// Write is for what other parts of the lab say.
func (n *narrator) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drawn = 0
	return n.out.Write(p)
}

func (n *narrator) printf(format string, args ...any) { fmt.Fprintf(n, format, args...) }

func (n *narrator) act(number int, title string) {
	head := fmt.Sprintf("%d  %s ", number, title)
	n.printf("\n%s%s\n\n", head, strings.Repeat("-", 79-len(head)))
}

func (n *narrator) took(d time.Duration) { n.printf("%79s\n", fmt.Sprintf("%.1f s", d.Seconds())) }

// block draws lines over the block drawn before, if nothing else was written since.
func (n *narrator) block(lines []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b strings.Builder
	if n.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", n.drawn)
	}
	for _, l := range lines {
		if len(l) > 79 {
			l = l[:76] + "..."
		}
		b.WriteString("\x1b[2K" + l + "\n")
	}
	for range n.drawn - len(lines) {
		b.WriteString("\x1b[2K\n")
	}
	if extra := n.drawn - len(lines); extra > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", extra)
	}
	n.drawn = len(lines)
	io.WriteString(n.out, b.String())
}
