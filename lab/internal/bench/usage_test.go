package bench

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want float64
	}{
		"plain":                {"12 (etcd) S 1 1 1 0 -1 4 0 0 0 0 250 50 0 0 20 0", 3},
		"a name with brackets": {"12 (a (b) c) S 1 1 1 0 -1 4 0 0 0 0 100 0 0 0 20 0", 1},
		"cut short":            {"12 (etcd) S 1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseStat([]byte(c.line)); got != c.want {
				t.Errorf("%v seconds, want %v", got, c.want)
			}
		})
	}
}

func TestTheMeterReadsThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Log("no /proc on this system: the report leaves CPU and memory out")
		return
	}
	before := cpuOf(os.Getpid())
	for cpuOf(os.Getpid()) == before {
		_ = strings.Repeat("work", 1<<16)
	}
	if rss := rssOf(os.Getpid()); rss < 1<<20 {
		t.Errorf("RSS %d", rss)
	}
	if machineCPU() <= 0 {
		t.Error("the machine has done nothing since it started")
	}
}

func TestMetricsOfTheManager(t *testing.T) {
	before, err := parseMetrics(strings.NewReader("# HELP x y\nome_passes_total{outcome=\"wrote\"} 3\ngo_memstats_heap_inuse_bytes 100\nother 7\n"))
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseMetrics(strings.NewReader("ome_passes_total{outcome=\"wrote\"} 10\nome_passes_total{outcome=\"clean\"} 2\ngo_memstats_heap_inuse_bytes 90\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{`ome_passes_total{outcome="wrote"}`: 7, `ome_passes_total{outcome="clean"}`: 2, "go_memstats_heap_inuse_bytes": 90}
	if diff := cmp.Diff(want, grown(before, after)); diff != "" {
		t.Errorf("gained (-want +got):\n%s", diff)
	}
}
