package node

import "sync"

// writers is how many API writes are in flight at once.
const writers = 24

// writer runs jobs on a bounded number of goroutines, in the order they came.
type writer struct {
	mu     sync.Mutex
	cond   *sync.Cond
	jobs   []func()
	closed bool
	wg     sync.WaitGroup
}

func newWriter(n int) *writer {
	w := &writer{}
	w.cond = sync.NewCond(&w.mu)
	w.wg.Add(n)
	for range n {
		go w.run()
	}
	return w
}

func (w *writer) do(job func()) {
	w.mu.Lock()
	w.jobs = append(w.jobs, job)
	w.mu.Unlock()
	w.cond.Signal()
}

func (w *writer) run() {
	defer w.wg.Done()
	for {
		w.mu.Lock()
		for len(w.jobs) == 0 && !w.closed {
			w.cond.Wait()
		}
		if w.closed {
			w.mu.Unlock()
			return
		}
		job := w.jobs[0]
		w.jobs[0] = nil
		w.jobs = w.jobs[1:]
		w.mu.Unlock()
		job()
	}
}

// close drops what has not begun and waits for the rest.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.cond.Broadcast()
	w.wg.Wait()
}
