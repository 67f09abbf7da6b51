package stub

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// buckets are the latency histogram's upper bounds, in seconds.
var buckets = [...]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// metrics of one server. Written by hand, not with a client library: a lab holds thousands of
// servers, and a registry each would be most of its memory.
type metrics struct {
	inflight   atomic.Int64
	mismatches atomic.Int64
	answered   atomic.Int64

	mu     sync.Mutex
	series map[series]*counts
}

type series struct {
	revision string
	code     int
	failure  string
}

type counts struct {
	requests int64
	seconds  float64
	buckets  [len(buckets)]int64 // not cumulative
}

func newMetrics() *metrics { return &metrics{series: map[series]*counts{}} }

func (m *metrics) observe(revision string, code int, failure string, d time.Duration) {
	m.answered.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	key := series{revision, code, failure}
	c := m.series[key]
	if c == nil {
		c = &counts{}
		m.series[key] = c
	}
	c.requests++
	c.seconds += d.Seconds()
	if i, _ := slices.BinarySearch(buckets[:], d.Seconds()); i < len(buckets) {
		c.buckets[i]++
	}
}

// Requests is how many it has answered.
func (s *Server) Requests() int64 { return s.metrics.answered.Load() }

func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.metrics.write(w, s.id.Load())
}

func (m *metrics) write(out io.Writer, id *Identity) {
	w := bufio.NewWriter(out)
	defer w.Flush()
	base := fmt.Sprintf(`namespace=%q,inferenceservice=%q,component=%q,pod=%q`, id.Pod.Namespace, id.Service, id.Component, id.Pod.Name)

	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(m.series), func(a, b series) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	fmt.Fprintln(w, "# HELP ome_lab_requests_total Requests answered, by revision, status code and class of failure.")
	fmt.Fprintln(w, "# TYPE ome_lab_requests_total counter")
	for _, k := range keys {
		fmt.Fprintf(w, "ome_lab_requests_total{%s,revision=%q,code=\"%d\",failure=%q} %d\n", base, k.revision, k.code, k.failure, m.series[k].requests)
	}

	// Errors and latencies by revision alone: what a canary analysis asks for.
	errors, latency := map[string]int64{}, map[string]*counts{}
	errors[id.Revision] = 0
	for _, k := range keys {
		c := m.series[k]
		errors[k.revision] += 0 // a rate over a revision without errors is 0, not absent
		if k.code >= 400 {
			errors[k.revision] += c.requests
		}
		sum := latency[k.revision]
		if sum == nil {
			sum = &counts{}
			latency[k.revision] = sum
		}
		sum.requests += c.requests
		sum.seconds += c.seconds
		for i, n := range c.buckets {
			sum.buckets[i] += n
		}
	}
	fmt.Fprintln(w, "# HELP ome_lab_errors_total Requests answered with an error, by revision.")
	fmt.Fprintln(w, "# TYPE ome_lab_errors_total counter")
	for _, revision := range slices.Sorted(maps.Keys(errors)) {
		fmt.Fprintf(w, "ome_lab_errors_total{%s,revision=%q} %d\n", base, revision, errors[revision])
	}
	fmt.Fprintln(w, "# HELP ome_lab_request_duration_seconds Time to answer a request, by revision.")
	fmt.Fprintln(w, "# TYPE ome_lab_request_duration_seconds histogram")
	for _, revision := range slices.Sorted(maps.Keys(latency)) {
		c, sum := latency[revision], int64(0)
		for i, n := range c.buckets {
			sum += n
			fmt.Fprintf(w, "ome_lab_request_duration_seconds_bucket{%s,revision=%q,le=\"%g\"} %d\n", base, revision, buckets[i], sum)
		}
		fmt.Fprintf(w, "ome_lab_request_duration_seconds_bucket{%s,revision=%q,le=\"+Inf\"} %d\n", base, revision, c.requests)
		fmt.Fprintf(w, "ome_lab_request_duration_seconds_sum{%s,revision=%q} %g\n", base, revision, c.seconds)
		fmt.Fprintf(w, "ome_lab_request_duration_seconds_count{%s,revision=%q} %d\n", base, revision, c.requests)
	}
	fmt.Fprintln(w, "# HELP ome_lab_mismatches_total KV handles refused because the engine and this decoder don't pair.")
	fmt.Fprintln(w, "# TYPE ome_lab_mismatches_total counter")
	fmt.Fprintf(w, "ome_lab_mismatches_total{%s,revision=%q} %d\n", base, id.Revision, m.mismatches.Load())
	fmt.Fprintln(w, "# HELP ome_lab_inflight_requests Requests being served.")
	fmt.Fprintln(w, "# TYPE ome_lab_inflight_requests gauge")
	fmt.Fprintf(w, "ome_lab_inflight_requests{%s} %d\n", base, m.inflight.Load())
}
