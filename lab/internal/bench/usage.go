package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"ome.io/ome/lab/internal/cluster"
)

// ticks is how many clock ticks /proc counts in a second: 100 on every Linux that Go runs on.
const ticks = 100

// Usage is what the programs of the lab used during a roll.
type Usage struct {
	// CPU seconds by program; nodes is the process that runs all simulated kubelets and servers.
	CPU map[string]float64 `json:"cpuSeconds,omitempty"`
	// OtherCPU is what the rest of the machine used meanwhile: the noise.
	OtherCPU float64 `json:"otherCPUSeconds"`
	// ManagerRSS is the most that was seen, in bytes.
	ManagerRSS int64 `json:"managerRSS,omitempty"`
}

// Total of the lab's programs.
func (u Usage) Total() (sum float64) {
	for _, v := range u.CPU {
		sum += v
	}
	return sum
}

// meter reads /proc. Where there is none it measures nothing.
type meter struct {
	pids    map[string]int
	began   map[string]float64
	machine float64
	rss     int64
}

func startMeter(st *cluster.State) *meter {
	m := &meter{pids: map[string]int{"nodes": st.Supervisor.PID, benchClient: os.Getpid()}, began: map[string]float64{}}
	for _, c := range st.Components {
		m.pids[c.Name] = c.PID
	}
	for name, pid := range m.pids {
		m.began[name] = cpuOf(pid)
	}
	m.machine = machineCPU()
	m.look()
	return m
}

// look is called now and then: memory has no counter to subtract.
func (m *meter) look() { m.rss = max(m.rss, rssOf(m.pids[managerClient])) }

func (m *meter) stop() Usage {
	m.look()
	u := Usage{CPU: map[string]float64{}, ManagerRSS: m.rss}
	for name, pid := range m.pids {
		u.CPU[name] = cpuOf(pid) - m.began[name]
	}
	u.OtherCPU = max(0, machineCPU()-m.machine-u.Total())
	return u
}

// cpuOf returns the seconds of CPU that a process has used, 0 when that can't be known.
func cpuOf(pid int) float64 {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	return parseStat(raw)
}

// parseStat adds utime and stime, counted after the command name, which may itself hold blanks.
func parseStat(raw []byte) float64 {
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(string(fields[11]), 64)
	system, _ := strconv.ParseFloat(string(fields[12]), 64)
	return (user + system) / ticks
}

func rssOf(pid int) int64 {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10
		}
	}
	return 0
}

// machineCPU is all CPU time that was not idle.
func machineCPU() float64 {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	var busy float64
	for i, f := range strings.Fields(line) {
		// user nice system idle iowait irq softirq steal; guest time is in user already.
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		v, _ := strconv.ParseFloat(f, 64)
		busy += v
	}
	return busy / ticks
}

// scrape reads the manager's own metrics: what it did, beside what it asked of the API server.
func scrape(st *cluster.State) (map[string]float64, error) {
	c, ok := st.Component(managerClient)
	if !ok {
		return nil, fmt.Errorf("the lab runs no manager")
	}
	client := &http.Client{Timeout: 10 * time.Second}
	res, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", c.Ports["metrics"]))
	if err != nil {
		return nil, fmt.Errorf("read the manager's metrics: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the manager's metrics: %s", res.Status)
	}
	return parseMetrics(res.Body)
}

// parseMetrics keeps the series of ours that are counters, and the heap.
func parseMetrics(in io.Reader) (map[string]float64, error) {
	out := map[string]float64{}
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		name, value, ok := cutLast(sc.Text(), " ")
		if !ok || !wanted(name) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", name, err)
		}
		out[name] = v
	}
	return out, sc.Err()
}

func wanted(name string) bool {
	for _, p := range []string{"ome_passes_total", "ome_writes_total", "ome_pass_duration_seconds_sum", "ome_pass_duration_seconds_count", "ome_write_duration_seconds_sum", "ome_write_duration_seconds_count",
		"ome_write_conflicts_total", "ome_status_writes_held_total", "go_memstats_heap_inuse_bytes"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// grown returns what counters gained; a gauge keeps its last value.
func grown(before, after map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for name, v := range after {
		if !strings.HasPrefix(name, "go_memstats") {
			v -= before[name]
		}
		if v != 0 {
			out[name] = v
		}
	}
	return out
}
