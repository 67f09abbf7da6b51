package bench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

func decimals(v float64, n int) string { return strconv.FormatFloat(v, 'f', n, 64) }

// table prints rows under a heading.
func table(out io.Writer, title string, rows [][]string) {
	if len(rows) < 2 {
		return
	}
	fmt.Fprintf(out, "\n%s\n\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
}

// Print writes the report for people: the budgets first, then what is behind them.
func (r *Report) Print(out io.Writer) {
	with := ""
	if r.Services > 0 {
		with = fmt.Sprintf(", %d Services for each Deployment", r.Services)
	}
	if r.NoEndpoints {
		with += ", no Endpoints"
	}
	fmt.Fprintf(out, "%s: %d Instances, %d rounds%s; Kubernetes %s, %s, %d CPUs, load %s before the start\n",
		r.Began.Format("2006-01-02 15:04 MST"), r.Instances, r.Rounds, with, r.Kubernetes, r.Go, r.CPUs, decimals(r.LoadBefore, 1))

	rows := [][]string{{"BUDGET", "LIMIT", "MEASURED", "", "NOTE"}}
	for _, b := range r.Budgets {
		state := "ok"
		if !b.OK {
			state = "OVER"
		}
		unit := b.Unit
		if unit != "" && unit != "x" {
			unit = " " + unit
		}
		rows = append(rows, []string{b.What, "<= " + decimals(b.Limit, -1) + unit, decimals(b.Measured, 2) + unit, state, b.Note})
	}
	table(out, "Budgets", rows)

	r.printStrategies(out)

	rows = [][]string{{"ROUND", "ROLL", "SECONDS", "PODS READY", "STATUS SAYS SO", "LAST OLD POD GONE", "LEAST READY", "MOST PODS", "CPU s", "MANAGER CPU s", "MANAGER RSS", "OTHERS' CPU s"}}
	for i := range r.Rolls {
		x := &r.Rolls[i]
		rows = append(rows, []string{
			strconv.Itoa(x.Round), x.Contestant, decimals(x.Seconds, 1), decimals(x.Serving, 1), decimals(x.Status, 1), decimals(x.Gone, 1),
			strconv.Itoa(x.LeastReady), strconv.Itoa(x.MostPods),
			decimals(x.Usage.Total(), 1), decimals(x.Usage.CPU[managerClient], 2), fmt.Sprintf("%d MiB", x.Usage.ManagerRSS>>20), decimals(x.Usage.OtherCPU, 1),
		})
	}
	table(out, "Rolls, in the order they ran", rows)

	rows = [][]string{{"ROLL", "AGAINST", "FASTEST", "MEDIAN", "CPU OF THE LAB", "SPREAD OF TIMES"}}
	for _, q := range r.Ratios {
		rows = append(rows, []string{q.Of, q.To, decimals(q.Min, 2) + "x", decimals(q.Median, 2) + "x", decimals(q.CPU, 2) + "x", decimals(100*q.Spread, 0) + "%"})
	}
	table(out, "Ratios", rows)

	r.printRequests(out)
	r.printCPU(out)
	r.printManager(out)

	rows = [][]string{{"COMMAND", "RUNS", "FASTEST", "MEDIAN", "SLOWEST"}}
	for _, c := range r.Commands {
		rows = append(rows, []string{c.Name, strconv.Itoa(c.Runs), decimals(c.Min, 1) + " ms", decimals(c.Median, 1) + " ms", decimals(c.Max, 1) + " ms"})
	}
	table(out, "Commands", rows)

	rows = [][]string{{"BENCHMARK", "TIME", "MEMORY", "ALLOCATIONS"}}
	for _, b := range r.GoBench {
		rows = append(rows, []string{strings.TrimPrefix(b.Name, "Benchmark"), decimals(b.NsPerOp/1e3, 1) + " us", decimals(b.BytesPerOp/1024, 0) + " KiB", decimals(b.AllocsPerOp, 0)})
	}
	table(out, "Go benchmarks", rows)
}

// trifle is what the table leaves out: fewer than one request for a hundred Instances.
const trifle = 0.01

func (r *Report) each(n int) float64 { return part(float64(n), float64(r.Instances)) }

// printRequests shows the last roll of each contestant side by side, per Instance: each request by client, verb and
// resource that is more than a trifle for one of them.
func (r *Report) printRequests(out io.Writer) {
	if len(r.Rolls) == 0 {
		return
	}
	var contestants []string // in the order of the first round
	last := map[string]*Roll{}
	var keys []requestKey
	for i := range r.Rolls {
		name := r.Rolls[i].Contestant
		if last[name] == nil {
			contestants = append(contestants, name)
		}
		last[name] = &r.Rolls[i]
	}
	counts := map[string]map[requestKey]Requests{}
	for name, roll := range last {
		counts[name] = map[requestKey]Requests{}
		for _, q := range roll.Requests {
			k := requestKey{q.Client, q.Verb, q.Resource}
			counts[name][k] = q
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	slices.SortFunc(keys, func(a, b requestKey) int {
		return cmp.Or(strings.Compare(a.client, b.client), strings.Compare(a.resource, b.resource), strings.Compare(a.verb, b.verb))
	})
	rows := [][]string{append([]string{"CLIENT", "VERB", "RESOURCE"}, upper(contestants)...)}
	for _, k := range keys {
		row, most := []string{k.client, k.verb, k.resource}, 0
		for _, name := range contestants {
			q, ok := counts[name][k]
			cell := "-"
			if ok {
				most = max(most, q.All())
				cell = decimals(r.each(q.Accepted), 2)
				if refused := r.each(q.Rejected); refused >= trifle {
					cell += fmt.Sprintf(" (+%s refused)", decimals(refused, 2))
				}
			}
			row = append(row, cell)
		}
		if r.each(most) >= trifle {
			rows = append(rows, row)
		}
	}
	totals := []struct {
		name  string
		match func(Requests) bool
	}{
		{"writes of pods", func(q Requests) bool {
			return isWrite(q.Verb) && (q.Resource == "pods" || strings.HasPrefix(q.Resource, "pods/"))
		}},
		{"writes of EndpointSlices", func(q Requests) bool { return isWrite(q.Verb) && q.Resource == "endpointslices" }},
		{"writes in all, but events", func(q Requests) bool { return isWrite(q.Verb) && q.Resource != "events" }},
		{"events", func(q Requests) bool { return q.Resource == "events" }},
		{"reads", func(q Requests) bool { return !isWrite(q.Verb) }},
	}
	for _, t := range totals {
		row := []string{"all", "", t.name}
		for _, name := range contestants {
			cell := "-"
			if roll := last[name]; roll != nil {
				_, accepted := roll.sum(t.match)
				cell = decimals(r.each(accepted), 2)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	table(out, "Requests per Instance in the last round, from the API server's audit log (accepted)", rows)
}

func upper(in []string) (out []string) {
	for _, s := range in {
		out = append(out, strings.ToUpper(s))
	}
	return out
}

func (r *Report) printCPU(out io.Writer) {
	names := map[string]bool{}
	for i := range r.Rolls {
		for n := range r.Rolls[i].Usage.CPU {
			names[n] = true
		}
	}
	order := slices.Sorted(maps.Keys(names))
	rows := [][]string{append([]string{"ROUND", "ROLL"}, upper(order)...)}
	for i := range r.Rolls {
		x := &r.Rolls[i]
		row := []string{strconv.Itoa(x.Round), x.Contestant}
		for _, n := range order {
			row = append(row, decimals(x.Usage.CPU[n], 1))
		}
		rows = append(rows, row)
	}
	table(out, "CPU seconds by program", rows)
}

func (r *Report) printManager(out io.Writer) {
	for _, name := range []string{Ours, OursSurge, OursRecreate, OursInPlace} {
		if mine := r.of(name); len(mine) > 0 {
			printManagerOf(out, mine[len(mine)-1])
		}
	}
}

func printManagerOf(out io.Writer, x *Roll) {
	rows := [][]string{{"SERIES", "GAINED"}}
	for _, name := range slices.Sorted(maps.Keys(x.Manager)) {
		v := x.Manager[name]
		if strings.HasPrefix(name, "go_memstats") {
			rows = append(rows, []string{name, fmt.Sprintf("%.0f MiB (now)", v/(1<<20))})
			continue
		}
		rows = append(rows, []string{name, strconv.FormatFloat(v, 'g', 5, 64)})
	}
	table(out, "What the manager counted in the last roll of "+x.Contestant, rows)
}
