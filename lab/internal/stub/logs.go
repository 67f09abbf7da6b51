package stub

import (
	"bytes"
	"sync"
	"time"
)

// logLines is how many lines a container's log keeps.
const logLines = 200

// Line is one line of a container's log.
type Line struct {
	Time time.Time
	Text string
}

// Logs is a container's log: the last lines written to it. It is an io.Writer of whole lines.
type Logs struct {
	mu      sync.Mutex
	lines   []Line
	dropped int
	changed chan struct{}
	closed  bool
}

// NewLogs makes an empty log.
func NewLogs() *Logs { return &Logs{changed: make(chan struct{})} }

func (l *Logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for line := range bytes.Lines(p) {
		l.lines = append(l.lines, Line{Time: now, Text: string(bytes.TrimRight(line, "\n"))})
	}
	if over := len(l.lines) - logLines; over > 0 {
		l.lines = append(l.lines[:0:0], l.lines[over:]...)
		l.dropped += over
	}
	l.wake()
	return len(p), nil
}

func (l *Logs) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Close marks the log as complete, which ends those who follow it.
func (l *Logs) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		l.wake()
	}
}

// Since returns the lines from position pos on, the position after them, a channel that is closed
// at the next change, and whether the log is complete.
func (l *Logs) Since(pos int) (lines []Line, next int, changed <-chan struct{}, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := max(pos-l.dropped, 0)
	if from < len(l.lines) {
		lines = append(lines, l.lines[from:]...)
	}
	return lines, l.dropped + len(l.lines), l.changed, l.closed
}
