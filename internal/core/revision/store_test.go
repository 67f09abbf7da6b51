package revision

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var owner = Owner{Namespace: "prod", Prefix: "tide", Component: "engine", Reference: &metav1.OwnerReference{
	APIVersion: "ome.io/v1beta1", Kind: "InferenceReplica", Name: "tide-engine", UID: "u1", Controller: new(true), BlockOwnerDeletion: new(true),
}}

func image(tag string) Input { return with(func(in *Input) { main0(in).Image = tag }) }

func mustResolve(t *testing.T, existing []*appsv1.ControllerRevision, in Input) Resolution {
	t.Helper()
	r, err := Resolve(existing, owner, in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestResolveCreatesThenReuses(t *testing.T) {
	a := mustResolve(t, nil, image("a"))
	if a.Create == nil || a.Create.Revision != 1 || a.Name != "tide-engine-"+a.Hash || a.Create.Name != a.Name {
		t.Fatalf("first revision: %+v", a)
	}
	b := mustResolve(t, []*appsv1.ControllerRevision{a.Create}, image("b"))
	if b.Create == nil || b.Create.Revision != 2 {
		t.Fatalf("second revision: %+v", b)
	}
	both := []*appsv1.ControllerRevision{b.Create, a.Create}
	back := mustResolve(t, both, image("a"))
	if diff := cmp.Diff(Resolution{Name: a.Name, Hash: a.Hash}, back); diff != "" {
		t.Errorf("a revert must go back to the old name (-want +got):\n%s", diff)
	}
	if got := HashOf(a.Create); got != a.Hash {
		t.Errorf("HashOf = %s, want %s", got, a.Hash)
	}
}

func TestResolveReadsRewrittenData(t *testing.T) {
	a := mustResolve(t, nil, image("a"))
	var x any
	if err := json.Unmarshal(a.Create.Data.Raw, &x); err != nil {
		t.Fatal(err)
	}
	spaced, _ := json.MarshalIndent(x, "", "  ")
	a.Create.Data.Raw = spaced
	again := mustResolve(t, []*appsv1.ControllerRevision{a.Create}, image("a"))
	if again.Create != nil || again.Name != a.Name || HashOf(a.Create) != a.Hash {
		t.Errorf("a backup that spaced the data made a new revision: %+v", again)
	}
}

func TestResolveCollision(t *testing.T) {
	a := mustResolve(t, nil, image("a"))
	taken := a.Create.DeepCopy()
	taken.Data.Raw = []byte(`{"runners":[{"name":"other","size":1}],"v":1}`)
	existing := []*appsv1.ControllerRevision{taken}

	moved := mustResolve(t, existing, image("a"))
	if moved.CollisionCount != 1 || moved.Create == nil || moved.Name == a.Name {
		t.Fatalf("a taken name must raise the count: %+v", moved)
	}
	existing = append(existing, moved.Create)

	// Found again with the persisted count, and without it (a status that was lost).
	for _, count := range []int32{1, 0} {
		in := image("a")
		in.CollisionCount = count
		again := mustResolve(t, existing, in)
		if again.Create != nil || again.Name != moved.Name || again.Hash != moved.Hash {
			t.Errorf("count %d: %+v, want %s", count, again, moved.Name)
		}
	}

	// A revision stored before the collision keeps its name after it.
	b := mustResolve(t, existing, image("b"))
	existing = append(existing, b.Create)
	in := image("b")
	in.CollisionCount = 1
	if again := mustResolve(t, existing, in); again.Name != b.Name || again.CollisionCount != 1 {
		t.Errorf("count 1: %+v, want %s", again, b.Name)
	}
}

func TestNewControllerRevision(t *testing.T) {
	in := single()
	in.PairingProtocol = "kv-v2"
	hash, data := mustHash(t, in)
	cr := newControllerRevision(owner, Name(owner.Prefix, owner.Component, hash), in.PairingProtocol, data, 7)
	want := metav1.ObjectMeta{
		Namespace: "prod", Name: "tide-engine-" + hash,
		Labels:          map[string]string{"ome.io/inferenceservice": "tide", "component": "engine", "ome.io/managed-by": "OMENative"},
		Annotations:     map[string]string{"ome.io/pairing-protocol": "kv-v2"},
		OwnerReferences: []metav1.OwnerReference{*owner.Reference},
	}
	if diff := cmp.Diff(want, cr.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if cr.Revision != 7 || string(cr.Data.Raw) != string(data) {
		t.Errorf("revision %d, data %s", cr.Revision, cr.Data.Raw)
	}
	p, err := Data(cr)
	if err != nil {
		t.Fatal(err)
	}
	if p.PairingProtocol != "kv-v2" || p.Runner("default") == nil || p.Runner("worker") != nil ||
		p.Runner("default").Template.Spec.Containers[0].Image != "registry.local/server:v1" {
		t.Errorf("payload: %+v", p)
	}
}

func TestDataRefuses(t *testing.T) {
	const end = `; a revision like this can't be rolled back to, so roll forward to another one`
	for raw, want := range map[string]string{
		`{`:                      "unexpected end of JSON input",
		`{"v":2,"runners":[{}]}`: "layout version is 2 and this release reads only 1",
		`{"v":1}`:                "it holds no runner",
	} {
		cr := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "x"}}
		cr.Data.Raw = []byte(raw)
		_, err := Data(cr)
		if want := "ControllerRevision prod/x: data: " + want + end; err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %q", raw, err, want)
		}
	}
}

func TestPrune(t *testing.T) {
	var all []*appsv1.ControllerRevision
	for _, n := range []int64{3, 1, 5, 2, 4} {
		all = append(all, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", n)}, Revision: n})
	}
	gone := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "r0", DeletionTimestamp: &metav1.Time{Time: metav1.Now().Time}}}
	all = append(all, gone)
	for _, c := range []struct {
		name  string
		live  []string
		limit *int
		want  []string
	}{
		{"no limit keeps all", nil, nil, nil},
		{"newest two stay", nil, new(2), []string{"r1", "r2", "r3"}},
		{"live ones do not count", []string{"r1", "r5"}, new(2), []string{"r2"}},
		{"zero keeps only live ones", []string{"r2"}, new(0), []string{"r1", "r3", "r4", "r5"}},
		{"room for all", nil, new(5), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := map[string]bool{}
			for _, n := range c.live {
				live[n] = true
			}
			var got []string
			for _, cr := range Prune(all, live, c.limit) {
				got = append(got, cr.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("to delete (-want +got):\n%s", diff)
			}
		})
	}
}

func BenchmarkResolveAtRest(b *testing.B) {
	var all []*appsv1.ControllerRevision
	for i := range 12 {
		r, err := Resolve(all, owner, image(fmt.Sprint("v", i)))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, r.Create)
	}
	in := image("v11")
	b.ReportAllocs()
	for b.Loop() {
		if r, err := Resolve(all, owner, in); err != nil || r.Create != nil {
			b.Fatal(r, err)
		}
	}
}
