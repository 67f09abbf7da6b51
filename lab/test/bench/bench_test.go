package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ome.io/ome/lab/internal/bench"
	"ome.io/ome/lab/internal/binaries"
)

// programs returns the directory of ome-lab, ome-manager and kubectl-ome: $OME_BIN, else a fresh build.
func programs(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("OME_BIN"); dir != "" {
		return dir
	}
	root, err := binaries.FindSource()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for module, pkg := range map[string]string{root: "./cmd/...", filepath.Join(root, "lab"): "./cmd/ome-lab"} {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", dir+string(filepath.Separator), pkg)
		cmd.Dir = module
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s in %s: %v\n%s", pkg, module, err, out)
		}
	}
	return dir
}

func TestTheBenchmarkCounts(t *testing.T) {
	const n = 20
	const quarter = n / 4
	bin := programs(t)
	dir := filepath.Join(t.TempDir(), "lab")
	report, err := bench.Run(t.Context(), bench.Config{
		Executable: filepath.Join(bin, "ome-lab"), Bin: bin, Finder: binaries.Finder{Out: os.Stderr},
		Dir: dir, Instances: n, Rounds: 1, Strategies: true, Runs: 1, Patience: 5 * time.Minute, Out: os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	report.Finish()
	var text strings.Builder
	report.Print(&text)
	t.Log(text.String())

	if _, err := os.Stat(filepath.Join(dir, "kubeconfig")); err == nil {
		t.Error("the lab is still there")
	}
	if len(report.Rolls) != 7 || len(report.Ratios) != 5 || len(report.Strategies) != 4 || len(report.Commands) != 5 || len(report.Budgets) == 0 {
		t.Fatalf("%d rolls, %d ratios, %d lines of strategies, %d commands, %d budgets; want 7, 5, 4, 5 and some",
			len(report.Rolls), len(report.Ratios), len(report.Strategies), len(report.Commands), len(report.Budgets))
	}
	// What may be missing and what may be too many, by how each rolls.
	missing := map[string]int{bench.OursRecreate: quarter, bench.OursInPlace: quarter, bench.GatedNoSurge: quarter}
	accepted := map[string]map[string]int{}
	for _, roll := range report.Rolls {
		counts := map[string]int{}
		for _, q := range roll.Requests {
			counts[q.Client+" "+q.Verb+" "+q.Resource] = q.Accepted
		}
		accepted[roll.Contestant] = counts
		gap := missing[roll.Contestant]
		most := n + quarter
		if gap > 0 {
			most = n
		}
		if roll.LeastReady < n-gap || roll.MostPods > most || (gap > 0) != (roll.LeastReady < n) || (gap > 0) != (roll.MostPods == n) {
			t.Errorf("%s: at least %d ready and at most %d pods in place; want %d, and up to %d", roll.Contestant, roll.LeastReady, roll.MostPods, n-gap, most)
		}
		if roll.Seconds <= 0 || roll.Gone < roll.Serving || roll.Seconds < roll.Serving {
			t.Errorf("%s: %.2f s, pods after %.2f, the last old one gone after %.2f", roll.Contestant, roll.Seconds, roll.Serving, roll.Gone)
		}
	}
	// Every pod is made, bound, set serving where there is a gate, told to go and confirmed gone, exactly once; or it is
	// taken out of rotation, given its image, put back and marked as done.
	made := map[string]int{
		"ome-manager create pods": n, "ome-manager patch pods/status": 2 * n, "ome-manager delete pods": n,
		"kube-scheduler create pods/binding": n, "kubelets delete pods": n,
		"replicaset-controller create pods": 0, "gate-setter patch pods/status": 0,
	}
	gated := map[string]int{
		"replicaset-controller create pods": n, "replicaset-controller delete pods": n, "gate-setter patch pods/status": n,
		"kube-scheduler create pods/binding": n, "kubelets delete pods": n, "ome-manager create pods": 0,
	}
	want := map[string]map[string]int{
		bench.OursSurge: made, bench.OursRecreate: made,
		bench.OursInPlace: {
			"ome-manager create pods": 0, "ome-manager delete pods": 0, "kubelets delete pods": 0,
			"ome-manager patch pods": 2 * n, "ome-manager patch pods/status": 2 * n,
		},
		bench.GatedLike: gated, bench.GatedOne: gated, bench.GatedNoSurge: gated,
		bench.Plain: {
			"replicaset-controller create pods": n, "replicaset-controller delete pods": n, "gate-setter patch pods/status": 0,
			"kube-scheduler create pods/binding": n, "kubelets delete pods": n, "ome-manager create pods": 0,
		},
	}
	for contestant, counts := range want {
		for what, times := range counts {
			if got := accepted[contestant][what]; got != times {
				t.Errorf("%s: %s counted %d times, want %d", contestant, what, got, times)
			}
		}
	}
	if accepted[bench.OursSurge]["ome-manager patch inferencereplicas/status"] == 0 {
		t.Error("no status write of ours was counted")
	}
}
