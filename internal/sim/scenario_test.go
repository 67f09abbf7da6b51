package sim

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
)

var update = flag.Bool("update", false, "write the logs anew")

// scenario is a parsed file of docs/scenarios.
type scenario struct {
	pieces map[v1beta1.ComponentType]Piece
	spec   *v1beta1.RolloutSpec
	user   []string
	// varies is set when what is created depends on the order of things.
	varies bool
}

func parse(t *testing.T, archive *txtar.Archive) scenario {
	s := scenario{pieces: map[v1beta1.ComponentType]Piece{}}
	for _, line := range lines(archive, "setup") {
		words := strings.Fields(line)
		switch words[0] {
		case "group":
			g := v1beta1.RolloutGroup{}
			for _, w := range words[1:] {
				g.Components = append(g.Components, v1beta1.ComponentType(w))
			}
			s.spec = &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{g}}
			continue
		case "varies":
			s.varies = true
			continue
		}
		n, err := strconv.Atoi(words[2])
		if err != nil {
			t.Fatalf("setup %q: %v", line, err)
		}
		piece := Piece{Image: words[1], Replicas: int32(n), MaxSurge: intstr.FromString("25%")}
		for _, word := range words[3:] {
			key, value, _ := strings.Cut(word, "=")
			switch key {
			case "maxSurge":
				piece.MaxSurge = intstr.Parse(value)
			case "maxUnavailable":
				piece.MaxUnavailable = value
			default:
				piece.Strategy = v1beta1.UpdateStrategyType(word)
			}
		}
		s.pieces[v1beta1.ComponentType(words[0])] = piece
	}
	s.user = lines(archive, "user")
	return s
}

func lines(archive *txtar.Archive, name string) []string {
	for _, f := range archive.Files {
		if f.Name == name {
			return strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		}
	}
	return nil
}

// play runs the scenario; shuffle, when set, draws the order of everything that
// has no order of its own.
func play(t *testing.T, s scenario, shuffle *rand.Rand) *Cluster {
	c := New(s.pieces, s.spec)
	for _, line := range s.user {
		words := strings.Fields(line)
		arg := func(i int) string {
			if i < len(words) {
				return words[i]
			}
			return ""
		}
		kind := v1beta1.ComponentType(arg(1))
		switch words[0] {
		case "settle":
			if shuffle != nil {
				c.wander(shuffle, 60)
			}
			if err := c.Settle(5000); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, strings.Join(c.Moves, "\n"))
			}
			rest := fmt.Sprintf("-- at rest: engine serves %d", c.Serving(v1beta1.EngineComponent))
			if _, ok := c.Pieces[v1beta1.DecoderComponent]; ok {
				rest += fmt.Sprintf(", decoder %d", c.Serving(v1beta1.DecoderComponent))
			}
			c.logf("%s", rest)
			for _, kind := range order {
				if r := c.actual.replicas[kind]; r != nil && r.Status.RolloutHold != nil {
					c.logf("-- %s waits: %s: %s", kind, r.Status.RolloutHold.Gate, r.Status.RolloutHold.Reason)
				}
			}
		case "rounds":
			n, _ := strconv.Atoi(arg(1))
			for range n {
				if err := c.Round(); err != nil {
					t.Fatal(err)
				}
			}
		case "image":
			c.SetImage(kind, arg(2))
		case "scale":
			n, _ := strconv.Atoi(arg(2))
			c.Scale(kind, int32(n))
		case "pause":
			c.Pause(arg(1))
		case "env":
			c.SetEnv(kind, arg(2))
		case "release":
			c.Release(kind, c.Held(kind))
		case "registry":
			c.Unpullable[arg(2)] = arg(1) == "loses"
			c.dirty = true
			c.logf("registry: %s %s", arg(1), arg(2))
		case "kill":
			c.KillNode(arg(1))
		case "revive":
			c.ReviveNode(arg(1))
		default:
			t.Fatalf("no such step %q", line)
		}
	}
	if err := c.Rested(); err != nil {
		t.Fatalf("at the end: %v\n%s", err, strings.Join(c.Moves, "\n"))
	}
	return c
}

// wander makes n random small steps, passes among them.
func (c *Cluster) wander(r *rand.Rand, n int) {
	for range n {
		switch pods := c.Pods(); r.Intn(6) {
		case 0, 1:
			c.Pass()
		case 2:
			c.Sync(Kinds[r.Intn(len(Kinds))])
		case 3:
			c.Kubelet()
			c.Endpoints()
		default:
			if len(pods) > 0 {
				p := pods[r.Intn(len(pods))]
				if p.DeletionTimestamp != nil {
					c.Gone(p.Name)
				} else {
					c.Start(p.Name)
				}
			}
		}
	}
}

// created counts the pods made for each component.
func created(moves []string) map[string]int {
	out := map[string]int{}
	for _, m := range moves {
		if kind, rest, ok := strings.Cut(m, ": create "); ok {
			_, rev, _ := strings.Cut(rest, " at ")
			out[kind+" "+rev]++
		}
	}
	return out
}

func TestScenario(t *testing.T) {
	files, err := filepath.Glob("../../docs/scenarios/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			archive := txtar.Parse(raw)
			s := parse(t, archive)
			c := play(t, s, nil)
			got := strings.Join(c.Moves, "\n") + "\n"
			for i := range archive.Files {
				if archive.Files[i].Name != "log" {
					continue
				}
				if *update {
					archive.Files[i].Data = []byte(got)
					if out := txtar.Format(archive); !bytes.Equal(out, raw) {
						if err := os.WriteFile(file, out, 0o644); err != nil {
							t.Fatal(err)
						}
					}
				} else if diff := cmp.Diff(string(archive.Files[i].Data), got); diff != "" {
					t.Errorf("the log changed; read the difference, then run with -update (-want +got):\n%s", diff)
				}
			}
			want := created(c.Moves)
			for seed := range int64(80) {
				t.Run(fmt.Sprintf("order %d", seed), func(t *testing.T) {
					other := play(t, s, rand.New(rand.NewSource(seed)))
					if other.Violation != nil {
						t.Fatal(other.Violation)
					}
					if diff := cmp.Diff(want, created(other.Moves)); diff != "" && !s.varies {
						t.Errorf("other pods in another order:\n%s\n%s", diff, strings.Join(other.Moves, "\n"))
					}
				})
			}
		})
	}
}
