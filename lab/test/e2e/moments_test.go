package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// moment is one write of a roll at which the manager dies.
type moment struct {
	after bool
	kind  string
	n     int
}

func (m moment) String() string {
	side := "before"
	if m.after {
		side = "after"
	}
	return fmt.Sprintf("%s:%s:%d", side, m.kind, m.n)
}

// kindsOfARoll are the kinds of writes that a roll of five engines and two decoders consists of, with a number of them
// that each such roll reaches however its passes fall.
//
// The other kinds are not among them, since no such roll makes them: annotation and replica-annotation, the removal of a
// mailbox, because neither an image change nor a pause leaves one; pod-update, which only the strategies in place send;
// pod-force-delete, which takes a dead node; scaler, which follows the bounds and not the image; and settings, which
// follows a change of the operator's ConfigMap.
var kindsOfARoll = []struct {
	name  string
	least int
}{
	{"revision", 2},
	{"service-status", 3},
	{"replica", 2},
	{"replica-status", 8},
	{"pod-create", 7},
	{"pod-gate", 14},
	{"pod-delete", 7},
	{"service", 8},
}

// draw picks moments: each kind at least once, half of them before the write and half after it, no two the same.
func draw(seed uint64, count int) []moment {
	rnd := rand.New(rand.NewPCG(seed, 0))
	var kinds []int
	for len(kinds) < count {
		kinds = append(kinds, rnd.Perm(len(kindsOfARoll))...)
	}
	kinds = kinds[:count]
	rnd.Shuffle(count, func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	sides := make([]bool, count)
	for i := range sides {
		sides[i] = i%2 == 0
	}
	rnd.Shuffle(count, func(i, j int) { sides[i], sides[j] = sides[j], sides[i] })
	var out []moment
	for i, k := range kinds {
		m := moment{after: sides[i], kind: kindsOfARoll[k].name}
		for {
			m.n = 1 + rnd.IntN(kindsOfARoll[k].least)
			if !slices.Contains(out, m) {
				break
			}
			m.after = !m.after
		}
		out = append(out, m)
	}
	return out
}

func TestDraw(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		got := draw(seed, 10)
		again := draw(seed, 10)
		sides, kinds := map[bool]int{}, map[string]int{}
		for i, m := range got {
			if m != again[i] {
				t.Fatalf("seed %d drew %v, then %v", seed, got, again)
			}
			sides[m.after]++
			kinds[m.kind]++
			seen[fmt.Sprint(m.after, m.kind)] = true
			if slices.Contains(got[:i], m) {
				t.Errorf("seed %d drew %s twice", seed, m)
			}
		}
		if len(got) != 10 || len(kinds) != len(kindsOfARoll) || sides[true] < 3 || sides[false] < 3 {
			t.Errorf("seed %d: %v", seed, got)
		}
	}
	if len(seen) != 2*len(kindsOfARoll) {
		t.Errorf("200 seeds reach %d of %d sides of kinds", len(seen), 2*len(kindsOfARoll))
	}
}
