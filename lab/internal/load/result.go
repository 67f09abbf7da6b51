package load

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/lab/internal/stub"
)

// Counts are the totals at one moment.
type Counts struct {
	Sent int `json:"sent"`
	OK   int `json:"ok"`
	// Failed counts every request without a good answer, mismatched ones too.
	Failed int `json:"failed"`
	// Mismatched counts those an engine and a decoder failed for not pairing.
	Mismatched int `json:"mismatched"`
}

// Result is what a run measured.
type Result struct {
	Service string `json:"service"`
	// Front is the Service the requests went to.
	Front string `json:"front"`
	Counts
	Rate float64 `json:"rate"`
	// FirstRequest and LastRequest are the scheduled times of the first and the last request.
	FirstRequest time.Time `json:"firstRequest"`
	LastRequest  time.Time `json:"lastRequest"`
	// LatencyMS are of the requests answered well, from their scheduled time, in milliseconds.
	LatencyMS Latency `json:"latencyMS"`
	// ByRevision counts good answers by the revisions that made them.
	ByRevision []RevisionCount `json:"byRevision"`
	// Failures counts the failed by class.
	Failures map[string]int `json:"failures,omitempty"`
	// Errors are a few samples, the earliest first.
	Errors []ErrorSample `json:"errors,omitempty"`
}

// Latency percentiles.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// RevisionCount counts the answers of one combination of revisions. A component that took no part,
// or has no revision label, is empty.
type RevisionCount struct {
	Router  string    `json:"router,omitempty"`
	Engine  string    `json:"engine,omitempty"`
	Decoder string    `json:"decoder,omitempty"`
	OK      int       `json:"ok"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// ErrorSample is one failed request.
type ErrorSample struct {
	Time   time.Time `json:"time"`
	Class  string    `json:"class"`
	Detail string    `json:"detail"`
}

func (o outcome) sample(at time.Time) ErrorSample {
	return ErrorSample{Time: at, Class: o.failure, Detail: strings.TrimSpace(o.detail)}
}

type revisions struct{ router, engine, decoder string }

type collector struct {
	mu        sync.Mutex
	total     Counts
	first     time.Time
	last      time.Time
	latencies []time.Duration
	revisions map[revisions]*RevisionCount
	failures  map[string]int
	errors    []ErrorSample
	perClass  map[string]int
}

func newCollector() *collector {
	return &collector{revisions: map[revisions]*RevisionCount{}, failures: map[string]int{}, perClass: map[string]int{}}
}

func (c *collector) add(at time.Time, o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.Sent++
	if c.first.IsZero() || at.Before(c.first) {
		c.first = at
	}
	if at.After(c.last) {
		c.last = at
	}
	if !o.ok {
		c.total.Failed++
		if o.failure == stub.FailureMismatch {
			c.total.Mismatched++
		}
		c.failures[o.failure]++
		// Half of the samples at most from one class, so that a flood of one can't hide another.
		if len(c.errors) < sampleErrors && c.perClass[o.failure] < sampleErrors/2 {
			c.perClass[o.failure]++
			c.errors = append(c.errors, o.sample(at))
		}
		return
	}
	c.total.OK++
	c.latencies = append(c.latencies, o.latency)
	key := revisions{o.router, o.engine, o.decoder}
	r := c.revisions[key]
	if r == nil {
		r = &RevisionCount{Router: o.router, Engine: o.engine, Decoder: o.decoder, First: at, Last: at}
		c.revisions[key] = r
	}
	r.OK++
	if at.Before(r.First) {
		r.First = at
	}
	if at.After(r.Last) {
		r.Last = at
	}
}

func (c *collector) counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

func (c *collector) result(cfg Config, front types.NamespacedName) *Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.latencies)
	r := &Result{
		Service: cfg.Service.String(), Front: front.String(), Counts: c.total, Rate: cfg.Rate,
		FirstRequest: c.first, LastRequest: c.last, Failures: c.failures, Errors: c.errors,
		LatencyMS: Latency{
			P50: percentile(c.latencies, .50), P90: percentile(c.latencies, .90),
			P99: percentile(c.latencies, .99), Max: percentile(c.latencies, 1),
		},
	}
	slices.SortFunc(r.Errors, func(a, b ErrorSample) int { return a.Time.Compare(b.Time) })
	for _, n := range c.revisions {
		r.ByRevision = append(r.ByRevision, *n)
	}
	slices.SortFunc(r.ByRevision, func(a, b RevisionCount) int {
		return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Engine, b.Engine), cmp.Compare(a.Decoder, b.Decoder), cmp.Compare(a.Router, b.Router))
	})
	return r
}

// percentile is the smallest latency that at least share of the sorted list doesn't exceed, in
// milliseconds.
func percentile(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(share*float64(len(sorted)))) - 1
	d := sorted[max(i, 0)]
	return math.Round(float64(d)/float64(time.Microsecond)) / 1000
}

// Table writes the result for people.
func (r *Result) Table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "SENT\tOK\tFAILED\tMISMATCHED\tRATE\tTIME\tP50\tP90\tP99\tMAX")
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%g/s\t%s\t%s\t%s\t%s\t%s\n", r.Sent, r.OK, r.Failed, r.Mismatched, r.Rate,
		r.LastRequest.Sub(r.FirstRequest).Round(time.Second), ms(r.LatencyMS.P50), ms(r.LatencyMS.P90), ms(r.LatencyMS.P99), ms(r.LatencyMS.Max))
	if len(r.ByRevision) > 0 {
		fmt.Fprintln(w, "\t\t\t\t\t\t\t\t\t\nENGINE\tDECODER\tROUTER\tOK\tFIRST\tLAST")
		for _, n := range r.ByRevision {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t+%s\t+%s\n", orDash(n.Engine), orDash(n.Decoder), orDash(n.Router), n.OK,
				n.First.Sub(r.FirstRequest).Round(100*time.Millisecond), n.Last.Sub(r.FirstRequest).Round(100*time.Millisecond))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, class := range slices.Sorted(maps.Keys(r.Failures)) {
		fmt.Fprintf(out, "%d failed: %s\n", r.Failures[class], class)
	}
	for _, e := range r.Errors {
		fmt.Fprintf(out, "  +%s %s: %s\n", e.Time.Sub(r.FirstRequest).Round(100*time.Millisecond), e.Class, e.Detail)
	}
	return nil
}

func ms(v float64) string { return fmt.Sprintf("%.1fms", v) }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
