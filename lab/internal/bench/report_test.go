package bench

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goBenchOutput = `goos: linux
pkg: ome.io/ome/internal/sim
BenchmarkDecide/3x64-2         	    1000	    150000 ns/op	   20480 B/op	     300 allocs/op
BenchmarkDecide/3x64-2         	    1000	    120000 ns/op	   20480 B/op	     300 allocs/op
BenchmarkDecide/1x20000-2      	      10	  31000000 ns/op
pkg: ome.io/ome/internal/core/rows
BenchmarkEncodeDecode20k       	      50	  20000000 ns/op	 1048576 B/op	     900 allocs/op
PASS
ok  	ome.io/ome/internal/core/rows	2.1s
`

func TestParseGoBench(t *testing.T) {
	got, err := ParseGoBench(strings.NewReader(goBenchOutput))
	if err != nil {
		t.Fatal(err)
	}
	want := []GoBench{
		{Package: "ome.io/ome/internal/sim", Name: "BenchmarkDecide/3x64", NsPerOp: 120000, BytesPerOp: 20480, AllocsPerOp: 300},
		{Package: "ome.io/ome/internal/sim", Name: "BenchmarkDecide/1x20000", NsPerOp: 31000000},
		{Package: "ome.io/ome/internal/core/rows", Name: "BenchmarkEncodeDecode20k", NsPerOp: 20000000, BytesPerOp: 1048576, AllocsPerOp: 900},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := ParseGoBench(strings.NewReader("--- FAIL: BenchmarkDecide\n")); err == nil {
		t.Error("no error for a benchmark that failed")
	}
}

func reportOf(t *testing.T) *Report {
	t.Helper()
	benchmarks, err := ParseGoBench(strings.NewReader(goBenchOutput))
	if err != nil {
		t.Fatal(err)
	}
	manager := func(verb, resource string, accepted, rejected int) Requests {
		return Requests{Client: managerClient, Verb: verb, Resource: resource, Accepted: accepted, Rejected: rejected}
	}
	roll := func(name string, round int, seconds float64, requests ...Requests) Roll {
		return Roll{Contestant: name, Round: round, Seconds: seconds, Usage: Usage{CPU: map[string]float64{"etcd": 2 * seconds}}, Requests: requests}
	}
	r := &Report{Instances: 100, Rounds: 2, GoBench: benchmarks,
		Rolls: []Roll{
			roll(Ours, 1, 12, manager("create", "pods", 100, 0), manager("patch", "pods/status", 200, 5), manager("delete", "pods", 100, 0), manager("get", "pods", 9, 0)),
			roll(Gated, 1, 10), roll(Plain, 1, 8),
			roll(Plain, 2, 8), roll(Gated, 2, 14),
			roll(Ours, 2, 18, manager("create", "pods", 100, 0), manager("patch", "pods/status", 200, 20), manager("delete", "pods", 100, 0),
				manager("patch", "inferencereplicas/status", 30, 0), manager("patch", "inferenceservices/status", 10, 0), manager("create", "services", 2, 0)),
		},
		Commands: []Command{
			{Name: pluginStart, Median: 20}, {Name: kubectlStart, Median: 110}, {Name: rolloutTable, Median: 40}, {Name: rawGet, Median: 100},
		},
	}
	r.Finish()
	return r
}

func TestRatiosAndBudgets(t *testing.T) {
	r := reportOf(t)
	wantRatios := []Ratio{
		{To: Gated, Min: 1.2, Median: 1.25, CPU: 1.25, Spread: 0.4},
		{To: Plain, Min: 1.5, Median: 15.0 / 8, CPU: 15.0 / 8, Spread: 0.4},
	}
	if diff := cmp.Diff(wantRatios, r.Ratios); diff != "" {
		t.Errorf("ratios (-want +got):\n%s", diff)
	}
	type line struct {
		What     string
		Measured float64
		OK       bool
	}
	var got []line
	for _, b := range r.Budgets {
		got = append(got, line{b.What, b.Measured, b.OK})
	}
	want := []line{
		{"roll, time against a gated Deployment", 1.25, true},
		{"pod writes per Instance", 4.2, false}, // the worst round, refused requests too
		{"status writes per Instance", 0.4, true},
		{"decide, 3x64", 120, true},
		{"decide, 1x20000", 31, false},
		{"encode and decode 20,000 rows", 20, true},
		{"start of kubectl-ome", 20, true},
		{"rollout status against kubectl get --raw", 0.4, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("budgets (-want +got):\n%s", diff)
	}
}

func TestAReportSaysWhatIsOver(t *testing.T) {
	var out bytes.Buffer
	reportOf(t).Print(&out)
	// Blanks only line the columns up.
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"pod writes per Instance <= 4.1 4.20 OVER",
		"status writes per Instance <= 0.5 0.40 ok",
		"ome-manager patch pods/status 2.00 (+0.20 refused) - -",
		"gated Deployment 1.20x 1.25x 1.25x 40%",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no line %q in\n%s", want, out.String())
		}
	}
}

func TestNothingMeasuredIsNoBudgetMet(t *testing.T) {
	r := &Report{Instances: 100}
	r.Finish()
	if len(r.Budgets) != 0 || len(r.Ratios) != 0 {
		t.Errorf("budgets %v, ratios %v of nothing", r.Budgets, r.Ratios)
	}
}
