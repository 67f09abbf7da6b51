package bench

import (
	"slices"
	"strings"
	"time"
)

// Report is everything that was measured.
type Report struct {
	Began      time.Time `json:"began"`
	Kubernetes string    `json:"kubernetes"`
	Go         string    `json:"go"`
	CPUs       int       `json:"cpus"`
	// LoadBefore is the load average before anything was started.
	LoadBefore float64 `json:"loadBefore"`
	Instances  int     `json:"instances"`
	Rounds     int     `json:"rounds"`
	// Services is how many select each Deployment's pods; with strategies the
	// contestant's name says it.
	Services int `json:"services"`
	// NoEndpoints is set when nothing wrote the older Endpoints objects.
	NoEndpoints bool       `json:"noEndpoints,omitempty"`
	Rolls       []Roll     `json:"rolls"`
	Commands    []Command  `json:"commands,omitempty"`
	GoBench     []GoBench  `json:"goBench,omitempty"`
	Ratios      []Ratio    `json:"ratios"`
	Strategies  []Strategy `json:"strategies,omitempty"`
	Budgets     []Budget   `json:"budgets"`
}

// Ratio compares our rolls with those of another contestant.
type Ratio struct {
	// Of is the contestant of ours.
	Of string `json:"of"`
	To string `json:"to"`
	// Min divides the fastest rolls, Median the medians.
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	// CPU divides the medians of all CPU time that the lab used, which a busy machine disturbs far less than it does time.
	CPU float64 `json:"cpu,omitempty"`
	// Spread is how far apart the rolls of one contestant were, as a part of their median: the noise.
	Spread float64 `json:"spread"`
}

// Budget is one promise and what became of it.
type Budget struct {
	What     string  `json:"what"`
	Limit    float64 `json:"limit"`
	Unit     string  `json:"unit,omitempty"`
	Measured float64 `json:"measured"`
	OK       bool    `json:"ok"`
	Note     string  `json:"note,omitempty"`
}

// Finish works out ratios and budgets from what was measured.
func (r *Report) Finish() {
	r.Ratios = r.Ratios[:0]
	for _, p := range pairs {
		mine, theirs := r.of(p.ours), r.of(p.other)
		if len(mine) == 0 || len(theirs) == 0 {
			continue
		}
		seconds := func(x *Roll) float64 { return x.Seconds }
		cpu := func(x *Roll) float64 { return x.Usage.Total() }
		a, b := sorted(mine, seconds), sorted(theirs, seconds)
		q := Ratio{Of: p.ours, To: p.other, Min: part(a[0], b[0]), Median: part(median(a), median(b)), Spread: max(spread(a), spread(b))}
		q.CPU = part(median(sorted(mine, cpu)), median(sorted(theirs, cpu)))
		r.Ratios = append(r.Ratios, q)
	}
	r.sumStrategies()
	r.judge()
}

// pairs are compared: ours with what was allowed the same.
var pairs = []struct{ ours, other string }{
	{Ours, Gated}, {Ours, Plain},
	{OursSurge, GatedLike}, {OursSurge, GatedOne}, {OursSurge, Plain},
	{OursRecreate, GatedNoSurge}, {OursInPlace, GatedNoSurge},
}

func (r *Report) ratio(of, to string) (Ratio, bool) {
	for _, q := range r.Ratios {
		if q.Of == of && q.To == to {
			return q, true
		}
	}
	return Ratio{}, false
}

func (r *Report) of(contestant string) []*Roll {
	var out []*Roll
	for i := range r.Rolls {
		if r.Rolls[i].Contestant == contestant {
			out = append(out, &r.Rolls[i])
		}
	}
	return out
}

func sorted(rolls []*Roll, value func(*Roll) float64) []float64 {
	out := make([]float64, 0, len(rolls))
	for _, x := range rolls {
		out = append(out, value(x))
	}
	slices.Sort(out)
	return out
}

func part(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func spread(sorted []float64) float64 {
	return part(sorted[len(sorted)-1]-sorted[0], median(sorted))
}

// perInstance is the worst of a contestant's rolls.
func (r *Report) perInstance(contestant string, match func(Requests) bool) float64 {
	worst := 0
	for _, x := range r.of(contestant) {
		all, _ := x.sum(match)
		worst = max(worst, all)
	}
	return part(float64(worst), float64(r.Instances))
}

func podWrites(q Requests) bool {
	return q.Client == managerClient && isWrite(q.Verb) && (q.Resource == "pods" || strings.HasPrefix(q.Resource, "pods/"))
}

func statusWrites(q Requests) bool {
	return q.Client == managerClient && isWrite(q.Verb) && (q.Resource == "inferencereplicas/status" || q.Resource == "inferenceservices/status")
}

func (r *Report) judge() {
	r.Budgets = r.Budgets[:0]
	add := func(what string, measured, limit float64, unit, note string) {
		r.Budgets = append(r.Budgets, Budget{What: what, Limit: limit, Unit: unit, Measured: measured, OK: measured <= limit, Note: note})
	}
	if q, ok := r.ratio(Ours, Gated); ok {
		add("roll, time against a gated Deployment", q.Median, 1.25, "x", "medians; the fastest: "+decimals(q.Min, 2)+"x")
	}
	if q, ok := r.ratio(OursSurge, GatedLike); ok {
		note := "medians; the fastest: " + decimals(q.Min, 2) + "x"
		if one, ok := r.ratio(OursSurge, GatedOne); ok {
			note += "; against one with 1 Service: " + decimals(one.Median, 2) + "x, the fastest: " + decimals(one.Min, 2) + "x"
		}
		add("roll, time against a gated Deployment with as many Services", q.Median, 1.25, "x", note)
	}
	for _, name := range []string{Ours, OursSurge} {
		if len(r.of(name)) > 0 {
			add("pod writes per Instance", r.perInstance(name, podWrites), 4.1, "", "create, gate on, gate off, delete; refused ones count")
			add("status writes per Instance", r.perInstance(name, statusWrites), 0.5, "", "InferenceReplica and InferenceService")
		}
	}
	for _, b := range r.GoBench {
		switch {
		case strings.HasPrefix(b.Name, "BenchmarkDecide") && strings.Contains(b.Name, "3x64"):
			add("decide, "+label(b.Name), b.NsPerOp/1e3, 200, "us", "")
		case strings.HasPrefix(b.Name, "BenchmarkDecide") && strings.HasSuffix(b.Name, "20000"):
			add("decide, "+label(b.Name), b.NsPerOp/1e6, 30, "ms", "")
		case b.Name == "BenchmarkEncodeDecode20k":
			add("encode and decode 20,000 rows", b.NsPerOp/1e6, 50, "ms", "")
		}
	}
	if c, ok := r.command(pluginStart); ok {
		note := ""
		if k, ok := r.command(kubectlStart); ok {
			note = "kubectl takes " + decimals(k.Median, 0) + " ms"
		}
		add("start of kubectl-ome", c.Median, 30, "ms", note)
	}
	report, ok1 := r.command(rolloutTable)
	raw, ok2 := r.command(rawGet)
	if ok1 && ok2 {
		add("rollout status against kubectl get --raw", part(report.Median, raw.Median), 0.6, "x",
			decimals(report.Median, 0)+" ms against "+decimals(raw.Median, 0)+" ms")
	}
}

// label is the part of a benchmark's name that says which case it is.
func label(name string) string {
	_, sub, ok := strings.Cut(name, "/")
	if !ok {
		return name
	}
	return sub
}

func (r *Report) command(name string) (Command, bool) {
	for _, c := range r.Commands {
		if c.Name == name {
			return c, true
		}
	}
	return Command{}, false
}
