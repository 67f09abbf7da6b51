package bench

import (
	"fmt"
	"io"
	"strings"
)

// Strategy is what rolls by one update strategy cost.
type Strategy struct {
	Strategy string `json:"strategy"`
	// Against is the Deployment that was allowed the same; Min and Median divide the
	// times, Spread is their noise.
	Against string  `json:"against,omitempty"`
	Min     float64 `json:"min,omitempty"`
	Median  float64 `json:"median,omitempty"`
	Spread  float64 `json:"spread,omitempty"`
	// Seconds is the median.
	Seconds float64 `json:"seconds"`
	// PodWrites and StatusWrites are the manager's, per Instance, refused ones too, of the worst roll.
	PodWrites    float64 `json:"podWritesPerInstance"`
	StatusWrites float64 `json:"statusWritesPerInstance"`
	// ManagerCPU is the median, in seconds; ManagerHeap and ManagerRSS the most, in bytes.
	ManagerCPU  float64 `json:"managerCPUSeconds"`
	ManagerHeap int64   `json:"managerHeap,omitempty"`
	ManagerRSS  int64   `json:"managerRSS,omitempty"`
	// LeastReady and MostPods are the extremes of all rolls.
	LeastReady int `json:"leastReady"`
	MostPods   int `json:"mostPods"`
}

func (r *Report) sumStrategies() {
	r.Strategies = r.Strategies[:0]
	for _, p := range pairs {
		mine := r.of(p.ours)
		if p.ours == Ours || p.other == Plain || len(mine) == 0 {
			continue
		}
		s := Strategy{
			Strategy:     strings.TrimPrefix(p.ours, Ours+", "),
			Seconds:      median(sorted(mine, func(x *Roll) float64 { return x.Seconds })),
			PodWrites:    r.perInstance(p.ours, podWrites),
			StatusWrites: r.perInstance(p.ours, statusWrites),
			ManagerCPU:   median(sorted(mine, func(x *Roll) float64 { return x.Usage.CPU[managerClient] })),
			LeastReady:   mine[0].LeastReady,
		}
		if q, ok := r.ratio(p.ours, p.other); ok {
			s.Against, s.Min, s.Median, s.Spread = q.To, q.Min, q.Median, q.Spread
		}
		for _, x := range mine {
			s.ManagerHeap, s.ManagerRSS = max(s.ManagerHeap, int64(x.heap())), max(s.ManagerRSS, x.Usage.ManagerRSS)
			s.LeastReady, s.MostPods = min(s.LeastReady, x.LeastReady), max(s.MostPods, x.MostPods)
		}
		r.Strategies = append(r.Strategies, s)
	}
}

func (r *Report) printStrategies(out io.Writer) {
	rows := [][]string{{"STRATEGY", "SECONDS", "AGAINST", "FASTEST", "MEDIAN", "SPREAD", "POD WRITES", "STATUS WRITES", "MANAGER CPU s", "HEAP", "RSS", "LEAST READY", "MOST PODS"}}
	for _, s := range r.Strategies {
		rows = append(rows, []string{
			s.Strategy, decimals(s.Seconds, 1), s.Against, decimals(s.Min, 2) + "x", decimals(s.Median, 2) + "x", decimals(100*s.Spread, 0) + "%",
			decimals(s.PodWrites, 2), decimals(s.StatusWrites, 2), decimals(s.ManagerCPU, 2),
			fmt.Sprintf("%d MiB", s.ManagerHeap>>20), fmt.Sprintf("%d MiB", s.ManagerRSS>>20),
			fmt.Sprint(s.LeastReady), fmt.Sprint(s.MostPods),
		})
	}
	table(out, "Strategies: times, writes per Instance, and what the manager used", rows)
}
