package bench

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// GoBench is one result line of `go test -bench`.
type GoBench struct {
	Package string  `json:"package"`
	Name    string  `json:"name"`
	NsPerOp float64 `json:"nsPerOp"`
	// BytesPerOp and AllocsPerOp are there with -benchmem.
	BytesPerOp  float64 `json:"bytesPerOp,omitempty"`
	AllocsPerOp float64 `json:"allocsPerOp,omitempty"`
}

// cpus is the suffix that a benchmark's name gets when it may use more than one processor.
var cpus = regexp.MustCompile(`-\d+$`)

// ParseGoBench reads what `go test -bench` prints. With -count above 1 the fastest run of each stays: the others were
// disturbed.
func ParseGoBench(in io.Reader) ([]GoBench, error) {
	var out []GoBench
	at := map[string]int{}
	pkg := ""
	sc := bufio.NewScanner(in)
	for sc.Scan() {
		line := sc.Text()
		if rest, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = rest
		}
		if strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "--- FAIL") {
			return nil, fmt.Errorf("a benchmark failed: %s", line)
		}
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		b := GoBench{Package: pkg, Name: cpus.ReplaceAllString(f[0], "")}
		for i := 3; i < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i-1], 64)
			if err != nil {
				return nil, fmt.Errorf("benchmark line %q: %w", line, err)
			}
			switch f[i] {
			case "ns/op":
				b.NsPerOp = v
			case "B/op":
				b.BytesPerOp = v
			case "allocs/op":
				b.AllocsPerOp = v
			}
		}
		if b.NsPerOp == 0 {
			return nil, fmt.Errorf("benchmark line %q has no time", line)
		}
		key := b.Package + " " + b.Name
		if i, ok := at[key]; ok {
			if b.NsPerOp < out[i].NsPerOp {
				out[i] = b
			}
			continue
		}
		at[key] = len(out)
		out = append(out, b)
	}
	return out, sc.Err()
}
