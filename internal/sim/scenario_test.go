package sim

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/validate"
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
		case "group", "ordering", "token":
			if s.spec == nil {
				s.spec = &v1beta1.RolloutSpec{}
			}
			switch words[0] {
			case "group":
				s.spec.Groups = append(s.spec.Groups, parseGroup(t, words[1:]))
			case "ordering":
				s.spec.GroupOrdering = v1beta1.GroupOrdering(words[1])
			case "token":
				s.spec.PairingProtocol = words[1]
			}
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

// parseGroup reads components, then what is set in the group.
func parseGroup(t *testing.T, words []string) v1beta1.RolloutGroup {
	g := v1beta1.RolloutGroup{}
	for _, w := range words {
		key, value, set := strings.Cut(w, "=")
		if !set && key != "ratio" {
			g.Components = append(g.Components, v1beta1.ComponentType(w))
			continue
		}
		setGroup(t, &g, key, value)
	}
	return g
}

// setGroup sets one field of a group.
func setGroup(t *testing.T, g *v1beta1.RolloutGroup, key, value string) {
	rolling := func() *v1beta1.GroupRollingUpdate {
		if g.RollingUpdate == nil {
			g.RollingUpdate = &v1beta1.GroupRollingUpdate{}
		}
		return g.RollingUpdate
	}
	switch key {
	case "maxSurge":
		rolling().MaxSurge = new(intstr.Parse(value))
	case "maxUnavailable":
		rolling().MaxUnavailable = new(intstr.Parse(value))
	case "ratio":
		g.MaintainRatio = &v1beta1.MaintainRatio{}
		if value != "" {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			g.MaintainRatio.Tolerance = new(int32(n))
		}
	case "soak":
		d, err := time.ParseDuration(value)
		if err != nil {
			t.Fatal(err)
		}
		g.Soak = &metav1.Duration{Duration: d}
	case "policy":
		g.PolicyRef = &v1beta1.RolloutPolicyRef{Name: value, Progression: v1beta1.ProgressionRollingUpdate}
	default:
		t.Fatalf("a group has no %q", key)
	}
}

// policy is a rolling-update policy with the given fields.
func policy(t *testing.T, words []string) plan.Policy {
	g := parseGroup(t, words)
	p := &v1beta1.RolloutPolicy{}
	p.Generation = 1
	p.Spec.RollingUpdate = g.RollingUpdate
	return plan.NewPolicy(p, "")
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
	admit(t, nil, s.pieces, s.spec)
	c := New(s.pieces, s.spec)
	c.policies = map[string]plan.Policy{} // the kind is there, and none of it
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
		case "token":
			try(c, line, func(_ map[v1beta1.ComponentType]Piece, s *v1beta1.RolloutSpec) { s.PairingProtocol = arg(1) })
		case "apply":
			apply(t, c, words[1:])
		case "edit":
			editGroup(t, c, words[1:])
		case "repin":
			c.Repin(arg(1))
		case "policy":
			c.Policies(map[string]plan.Policy{arg(1): policy(t, words[2:])})
			c.logf("user: %s", line)
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

// apply is one edit of several components' images, and the token.
func apply(t *testing.T, c *Cluster, words []string) {
	pieces, spec := maps.Clone(c.Pieces), c.Rollout().DeepCopy()
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		if key == "token" {
			spec.PairingProtocol = value
			continue
		}
		setPiece(pieces, v1beta1.ComponentType(key), func(p *Piece) { p.Image = value })
	}
	admit(t, c, pieces, spec)
	c.Edit(pieces, spec, "apply "+strings.Join(words, " "))
}

// editGroup sets fields of one group.
func editGroup(t *testing.T, c *Cluster, words []string) {
	spec := c.Rollout().DeepCopy()
	i, err := strconv.Atoi(words[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		setGroup(t, &spec.Groups[i], key, value)
	}
	admit(t, c, c.Pieces, spec)
	c.Edit(c.Pieces, spec, "edit group "+strings.Join(words, " "))
}

// admit fails the test for an edit that admission refuses.
func admit(t *testing.T, c *Cluster, pieces map[v1beta1.ComponentType]Piece, spec *v1beta1.RolloutSpec) {
	var old *v1beta1.InferenceService
	if c != nil {
		old = object(c.Pieces, c.Rollout())
	}
	if r := validate.InferenceService(object(pieces, spec), old, validate.Options{PoliciesServed: true}); !r.OK() {
		t.Fatalf("refused: %s", r.Denial())
	}
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
			t.Parallel()
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
			for seed := range int64(40) {
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
