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
		{Of: Ours, To: Gated, Min: 1.2, Median: 1.25, CPU: 1.25, Spread: 0.4},
		{Of: Ours, To: Plain, Min: 1.5, Median: 15.0 / 8, CPU: 15.0 / 8, Spread: 0.4},
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
		"ours gated Deployment 1.20x 1.25x 1.25x 40%",
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

func TestStrategiesStandBesideWhatIsAllowedTheSame(t *testing.T) {
	write := func(verb, resource string, n int) Requests {
		return Requests{Client: managerClient, Verb: verb, Resource: resource, Accepted: n}
	}
	roll := func(name string, seconds, cpu, heap float64, least, most int, requests ...Requests) Roll {
		return Roll{Contestant: name, Round: 1, Seconds: seconds, LeastReady: least, MostPods: most, Requests: requests,
			Usage: Usage{CPU: map[string]float64{managerClient: cpu}, ManagerRSS: 90 << 20}, Manager: map[string]float64{"go_memstats_heap_inuse_bytes": heap}}
	}
	r := &Report{Instances: 100, Rounds: 1, Rolls: []Roll{
		roll(OursSurge, 12, 3, 40<<20, 100, 125, write("create", "pods", 100), write("patch", "pods/status", 200), write("delete", "pods", 100)),
		roll(GatedLike, 10, 0, 0, 100, 125), roll(GatedOne, 8, 0, 0, 100, 125), roll(Plain, 6, 0, 0, 100, 125),
		roll(OursRecreate, 20, 4, 50<<20, 75, 100, write("create", "pods", 100), write("patch", "inferencereplicas/status", 20)),
		roll(OursInPlace, 5, 2, 60<<20, 75, 100, write("patch", "pods", 200)),
		roll(GatedNoSurge, 20, 0, 0, 75, 100),
	}}
	r.Finish()
	want := []Strategy{
		{Strategy: "SurgeThenDrain", Against: GatedLike, Min: 1.2, Median: 1.2, Seconds: 12, PodWrites: 4, ManagerCPU: 3, ManagerHeap: 40 << 20, ManagerRSS: 90 << 20, LeastReady: 100, MostPods: 125},
		{Strategy: "SurgeThenDrain", Against: GatedOne, Min: 1.5, Median: 1.5, Seconds: 12, PodWrites: 4, ManagerCPU: 3, ManagerHeap: 40 << 20, ManagerRSS: 90 << 20, LeastReady: 100, MostPods: 125},
		{Strategy: "RecreatePod", Against: GatedNoSurge, Min: 1, Median: 1, Seconds: 20, PodWrites: 1, StatusWrites: 0.2, ManagerCPU: 4, ManagerHeap: 50 << 20, ManagerRSS: 90 << 20, LeastReady: 75, MostPods: 100},
		{Strategy: "InPlaceIfPossible", Against: GatedNoSurge, Min: 0.25, Median: 0.25, Seconds: 5, PodWrites: 2, ManagerCPU: 2, ManagerHeap: 60 << 20, ManagerRSS: 90 << 20, LeastReady: 75, MostPods: 100},
	}
	if diff := cmp.Diff(want, r.Strategies); diff != "" {
		t.Errorf("strategies (-want +got):\n%s", diff)
	}
	// The budget's line is the like for like one, and says the other too.
	if b := r.Budgets[0]; b.Measured != 1.2 || !strings.Contains(b.Note, "1 Service: 1.50x") {
		t.Errorf("first budget: %+v", b)
	}
	var out bytes.Buffer
	r.Print(&out)
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"SurgeThenDrain 12.0 gated Deployment, 1 Service 1.50x 1.50x 0% 4.00 0.00 3.00 40 MiB 90 MiB 100 125",
		"InPlaceIfPossible 5.0 gated Deployment, 5 Services, no surge 0.25x 0.25x 0% 2.00 0.00 2.00 60 MiB 90 MiB 75 100",
		"What the manager counted in the last roll of ours, RecreatePod",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no line %q in\n%s", want, out.String())
		}
	}
}
