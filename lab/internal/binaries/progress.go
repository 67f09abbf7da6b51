package binaries

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// heartbeat is how often a build that no terminal shows says that it is alive.
const heartbeat = 15 * time.Second

type progress struct {
	out   io.Writer
	tty   bool
	what  string
	start time.Time
	now   func() time.Time
	every time.Duration

	mu       sync.Mutex
	packages int
	modules  int
}

func newProgress(out io.Writer, tty bool, what string, start time.Time) *progress {
	p := &progress{out: out, tty: tty, what: what, start: start, now: time.Now, every: heartbeat}
	if tty {
		p.every = time.Second
	}
	return p
}

func (p *progress) compiled() { p.mu.Lock(); p.packages++; p.mu.Unlock() }
func (p *progress) fetched()  { p.mu.Lock(); p.modules++; p.mu.Unlock() }

// line is what the reader sees now. A package that is in Go's cache is not counted, so there is no total to promise.
func (p *progress) line(end string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := fmt.Sprintf("  %s  %s", p.what, end)
	if p.modules > 0 {
		s += fmt.Sprintf(", %d modules fetched", p.modules)
	}
	return s + fmt.Sprintf(", %d packages compiled, %s in all", p.packages, p.now().Sub(p.start).Round(time.Second))
}

func (p *progress) print(end string, last bool) {
	switch {
	case p.tty && !last:
		fmt.Fprintf(p.out, "\r\033[K%s", p.line(end))
	case p.tty:
		fmt.Fprintf(p.out, "\r\033[K%s\n", p.line(end))
	default:
		fmt.Fprintln(p.out, p.line(end))
	}
}

// run prints until the returned function is called, which prints the last line.
func (p *progress) run() func() {
	stop, done := make(chan struct{}), make(chan struct{})
	p.print("started", false)
	go func() {
		defer close(done)
		t := time.NewTicker(p.every)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				p.print("building", false)
			}
		}
	}()
	return func() {
		close(stop)
		<-done
		p.print("done", true)
	}
}
