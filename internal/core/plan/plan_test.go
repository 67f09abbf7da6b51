package plan

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
)

// A digest that moves makes every open run of every cluster look edited, so an
// old line of the golden file never changes.
var update = flag.Bool("update", false, "write the golden files; only ever to add vectors")

func group(t testing.TB, text string) v1beta1.RolloutGroup {
	t.Helper()
	var g v1beta1.RolloutGroup
	if err := yaml.UnmarshalStrict([]byte(text), &g); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return g
}

func groups(t testing.TB, texts ...string) []v1beta1.RolloutGroup {
	t.Helper()
	var out []v1beta1.RolloutGroup
	for _, text := range texts {
		out = append(out, group(t, text))
	}
	return out
}

const fullCanary = `{components: [engine, decoder], canary: {
  prometheus: {providerRef: {name: main}, headers: {X-B: "1", X-A: "<&>"}}, scaleDownDelaySeconds: 0, readyTimeout: 600s, steps: [
  {capacity: 1, traffic: 0, pause: {}},
  {capacity: "50%", traffic: 50, pause: {duration: 10m}, analysis: {interval: 30s, failureLimit: 2, onInconclusive: Hold, metrics: [
    {name: errors, query: 'rate(errors{rev="{{.CanaryRevision}}"}[1m]) > 0 && 1 < 2', operator: LT, threshold: "0.01"}]}},
  {capacity: "100%", traffic: 100}]}}`

// TestGoldenDigests holds the vectors that every reader of a digest shares:
// each line is a name, a digest and what it is the digest of.
func TestGoldenDigests(t *testing.T) {
	vectors := []struct{ name, group string }{
		{"blueGreen", `{components: [engine], blueGreen: {}}`},
		{"default", `{components: [engine, decoder]}`},
		{"rollingUpdate-empty", `{components: [engine], rollingUpdate: {}}`},
		{"rollingUpdate-numbers", `{components: [engine], rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}`},
		{"rollingUpdate-percent", `{components: [engine], rollingUpdate: {maxSurge: "25%"}}`},
		{"rollingUpdate-beside-policy", `{components: [engine], rollingUpdate: {maxSurge: "25%"}, policyRef: {name: slow, progression: canary}, soak: 5m, maintainRatio: {}}`},
		{"canary-lone-step", `{components: [engine], canary: {steps: [{capacity: "100%", traffic: 100}]}}`},
		{"canary-full", fullCanary},
	}
	var b strings.Builder
	digests := map[string]string{}
	for _, v := range vectors {
		g := group(t, v.group)
		d, err := GroupDigest(&g)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := canonicalBody(&g)
		digests[v.name] = d
		fmt.Fprintf(&b, "%s\t%s\t%s\n", v.name, d, body)
	}
	for _, v := range []struct {
		name   string
		groups []string
	}{
		{"plan-blueGreen", []string{"rp1:cca45ec1fb0f"}},
		{"plan-blueGreen-twice", []string{"rp1:cca45ec1fb0f", "rp1:cca45ec1fb0f"}},
		{"plan-other", []string{"rp1:bbbbbbbbbbbb"}},
	} {
		digests[v.name] = PlanDigest(v.groups)
		fmt.Fprintf(&b, "%s\t%s\t%s\n", v.name, digests[v.name], strings.Join(v.groups, "|"))
	}
	golden := filepath.Join("testdata", "digests.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("a digest moved (-stored +now):\n%s", diff)
	}
	// The published vectors, so that an update of the file can't move them.
	for name, want := range map[string]string{
		"blueGreen": "rp1:cca45ec1fb0f", "default": "rp1:cca45ec1fb0f", "rollingUpdate-numbers": "rp1:a5f55b4d1e85",
		"plan-blueGreen": "rp1:8aa97d86f011", "plan-blueGreen-twice": "rp1:d1c91353aa70", "plan-other": "rp1:1d153db2a5df",
	} {
		if digests[name] != want {
			t.Errorf("%s: digest %s, want %s", name, digests[name], want)
		}
	}
}

func TestDigestCoversTheProgressionOnly(t *testing.T) {
	digest := func(text string) string {
		g := group(t, text)
		d, err := GroupDigest(&g)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := digest(`{components: [engine], rollingUpdate: {maxSurge: 1}}`)
	for _, same := range []string{
		`{components: [engine, decoder], rollingUpdate: {maxSurge: 1}}`,
		`{components: [engine], rollingUpdate: {maxSurge: 1}, soak: 1m, order: [engine], maintainRatio: {tolerance: 5}, policyRef: {name: a, progression: canary}}`,
	} {
		if d := digest(same); d != base {
			t.Errorf("%s: digest %s, want %s", same, d, base)
		}
	}
	for _, other := range []string{
		`{components: [engine], rollingUpdate: {maxSurge: "1"}}`,
		`{components: [engine], rollingUpdate: {maxSurge: "1%"}}`,
		`{components: [engine], rollingUpdate: {maxUnavailable: 1}}`,
		`{components: [engine], rollingUpdate: {}}`,
		`{components: [engine]}`,
	} {
		if d := digest(other); d == base {
			t.Errorf("%s: same digest as another progression: %s", other, d)
		}
	}
	if d := digest(`{components: [engine], policyRef: {name: a, progression: blueGreen}}`); d != "" {
		t.Errorf("a policy's body is not here, yet it has digest %s", d)
	}
	for _, none := range [][]string{nil, {"rp1:cca45ec1fb0f", ""}} {
		if d := PlanDigest(none); d != "" {
			t.Errorf("PlanDigest(%q) = %s, want none", none, d)
		}
	}
}

// Digests are the same for the same progression, however its JSON is laid out.
func TestPropertyDigestIgnoresLayout(t *testing.T) {
	g := group(t, fullCanary)
	want, err := GroupDigest(&g)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(g)
	var x any
	if err := json.Unmarshal(raw, &x); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		shuffled := shuffle(t, x)
		var g v1beta1.RolloutGroup
		if err := json.Unmarshal(shuffled, &g); err != nil {
			t.Fatalf("%s: %v", shuffled, err)
		}
		if got, err := GroupDigest(&g); err != nil || got != want {
			t.Fatalf("digest %s (%v), want %s: %s", got, err, want, shuffled)
		}
	})
}

// shuffle writes JSON with its keys in any order and white space between.
func shuffle(t *rapid.T, x any) []byte {
	var b bytes.Buffer
	switch x := x.(type) {
	case map[string]any:
		var keys []string
		for k := range x {
			keys = append(keys, k)
		}
		keys = rapid.Permutation(keys).Draw(t, "keys")
		b.WriteString("{ ")
		for i, k := range keys {
			if i > 0 {
				b.WriteString(" ,\n")
			}
			fmt.Fprintf(&b, "%q: %s", k, shuffle(t, x[k]))
		}
		b.WriteString("}")
	case []any:
		b.WriteString("[")
		for i, e := range x {
			if i > 0 {
				b.WriteString(", ")
			}
			b.Write(shuffle(t, e))
		}
		b.WriteString("]")
	default:
		raw, _ := json.Marshal(x)
		b.Write(raw)
	}
	return b.Bytes()
}

func TestKind(t *testing.T) {
	for text, want := range map[string]v1beta1.Progression{
		`{components: [engine]}`:                                                           v1beta1.ProgressionBlueGreen,
		`{components: [engine], blueGreen: {}}`:                                            v1beta1.ProgressionBlueGreen,
		`{components: [engine], rollingUpdate: {}}`:                                        v1beta1.ProgressionRollingUpdate,
		`{components: [engine], canary: {}}`:                                               v1beta1.ProgressionCanary,
		`{components: [engine], policyRef: {name: a, progression: canary}}`:                v1beta1.ProgressionCanary,
		`{components: [engine], policyRef: {name: a, progression: rollingUpdate}}`:         v1beta1.ProgressionRollingUpdate,
		`{components: [engine], blueGreen: {}, policyRef: {name: a, progression: canary}}`: v1beta1.ProgressionBlueGreen,
		`{components: [engine], policyRef: {name: a}}`:                                     v1beta1.ProgressionBlueGreen,
	} {
		g := group(t, text)
		if got := Kind(&g); got != want {
			t.Errorf("%s: kind %s, want %s", text, got, want)
		}
	}
}

func TestUnits(t *testing.T) {
	const (
		engine   = `{components: [engine]}`
		decoder  = `{components: [decoder], blueGreen: {}}`
		router   = `{components: [router]}`
		pair     = `{components: [engine, decoder]}`
		rolling  = `{components: [router], rollingUpdate: {}}`
		canary   = `{components: [router], canary: {}}`
		byPolicy = `{components: [router], policyRef: {name: a, progression: canary}}`
	)
	for _, c := range []struct {
		name   string
		groups []string
		want   []Unit
	}{
		{"none", nil, nil},
		{"one group", []string{pair}, []Unit{{UnitIndependent, []int{0}}}},
		{"one single", []string{engine}, []Unit{{UnitIndependent, []int{0}}}},
		{"two singles take turns", []string{engine, decoder}, []Unit{{UnitSequence, []int{0, 1}}}},
		{"three singles take turns", []string{router, decoder, engine}, []Unit{{UnitSequence, []int{0, 1, 2}}}},
		{"a pair beside a single", []string{pair, router}, []Unit{{UnitIndependent, []int{0}}, {UnitIndependent, []int{1}}}},
		{"rolling update breaks a sequence", []string{engine, rolling}, []Unit{{UnitIndependent, []int{0}}, {UnitIndependent, []int{1}}}},
		{"canary beside a sequence", []string{engine, canary, decoder}, []Unit{{UnitCanary, []int{1}}, {UnitSequence, []int{0, 2}}}},
		{"canary beside one group", []string{canary, pair}, []Unit{{UnitCanary, []int{0}}, {UnitIndependent, []int{1}}}},
		{"a policy's word counts", []string{engine, decoder, byPolicy}, []Unit{{UnitCanary, []int{2}}, {UnitSequence, []int{0, 1}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			gs := groups(t, c.groups...)
			got := Units(gs)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatalf("units (-want +got):\n%s", diff)
			}
			members := 0
			for _, u := range got {
				members += len(u.Components(gs))
			}
			for _, g := range gs {
				members -= len(g.Components)
			}
			if members != 0 {
				t.Errorf("units leave out or repeat a component: off by %d", members)
			}
		})
	}
}

func TestBlueGreenBudget(t *testing.T) {
	for replicas, want := range map[int32]int32{0: 0, 1: 1, 2: 1, 4: 1, 5: 2, 8: 2, 9: 3, 13: 4, 500: 125, 1 << 30: 1 << 28} {
		if got := BlueGreenBudget(replicas); got != want {
			t.Errorf("%d replicas: %d move at once, want %d", replicas, got, want)
		}
	}
}

func TestBudget(t *testing.T) {
	for _, c := range []struct {
		value    intstr.IntOrString
		replicas int32
		want     int32
		err      string
	}{
		{intstr.FromInt32(0), 4, 0, ""},
		{intstr.FromInt32(7), 4, 7, ""},
		{intstr.FromInt32(-1), 4, 0, "-1 is negative; use a number of at least 0 or a percentage"},
		{intstr.FromString("0%"), 4, 0, ""},
		{intstr.FromString("1%"), 4, 1, ""},
		{intstr.FromString("25%"), 4, 1, ""},
		{intstr.FromString("25%"), 5, 2, ""},
		{intstr.FromString("33%"), 100, 33, ""},
		{intstr.FromString("100%"), 5, 5, ""},
		{intstr.FromString("100%"), 1<<31 - 1, 1<<31 - 1, ""},
		{intstr.FromString("25%"), 0, 0, ""},
		{DefaultBudget(), 13, 4, ""},
		{intstr.FromString("101%"), 4, 0, `"101%" is not a percentage; use "0%" to "100%" or an unquoted number`},
		{intstr.FromString("3"), 4, 0, `"3" is not a percentage; use "0%" to "100%" or an unquoted number`},
		{intstr.FromString("-1%"), 4, 0, `"-1%" is not a percentage; use "0%" to "100%" or an unquoted number`},
		{intstr.FromString("+1%"), 4, 0, `"+1%" is not a percentage; use "0%" to "100%" or an unquoted number`},
		{intstr.FromString("2.5%"), 4, 0, `"2.5%" is not a percentage; use "0%" to "100%" or an unquoted number`},
		{intstr.FromString("%"), 4, 0, `"%" is not a percentage; use "0%" to "100%" or an unquoted number`},
		{intstr.FromString(" 5%"), 4, 0, `" 5%" is not a percentage; use "0%" to "100%" or an unquoted number`},
		{intstr.FromString(""), 4, 0, `"" is not a percentage; use "0%" to "100%" or an unquoted number`},
	} {
		got, err := Budget(c.value, c.replicas)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != c.want || text != c.err {
			t.Errorf("%s of %d: %d, error %q; want %d, %q", c.value.String(), c.replicas, got, text, c.want, c.err)
		}
	}
}
