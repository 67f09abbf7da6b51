package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
)

func testPolicy(name string, surge int32) *v1beta1.RolloutPolicy {
	return &v1beta1.RolloutPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "90", Generation: 2},
		Spec:       v1beta1.RolloutPolicySpec{RollingUpdate: &v1beta1.GroupRollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(surge))}},
	}
}

// refersTo is a service whose groups refer to policies.
func refersTo(name string, policies ...string) *v1beta1.InferenceService {
	s := testService()
	s.Name, s.UID, s.Spec.Rollout = name, types.UID(name), &v1beta1.RolloutSpec{}
	for _, p := range policies {
		s.Spec.Rollout.Groups = append(s.Spec.Rollout.Groups, v1beta1.RolloutGroup{PolicyRef: &v1beta1.RolloutPolicyRef{Name: p, Progression: v1beta1.ProgressionRollingUpdate}})
	}
	return s
}

// servePolicies gives the bench a cache of policies.
func (b *bench) servePolicies() {
	b.fakes[kindPolicy] = &fakeStore{Indexer: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{}), version: "100"}
	b.stores[kindPolicy] = b.fakes[kindPolicy]
}

// TestPoliciesOfAService: a pass gets what its service refers to, judged, and nil where there is no
// such kind.
func TestPoliciesOfAService(t *testing.T) {
	b := newBench(t, refersTo("svc", "slow", "gone", "broken", "slow"))
	if _, err := b.pass(t); err != nil || b.world.Policies != nil {
		t.Fatalf("without the kind: %v, %v", b.world.Policies, err)
	}
	b.servePolicies()
	b.put(t, testPolicy("slow", 1), testPolicy("broken", -1), testPolicy("other", 1))
	b.clock.Step(paceMost)
	if _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, p := range b.world.Policies {
		got[name] = p.Problem
		if p.Generation != 2 || p.Digest == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	want := map[string]string{"slow": "", "broken": "spec.rollingUpdate.maxSurge: -1 is negative; use 0 or more (InvalidRollingUpdateInteger)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJudgedOnce: a body is judged anew when it, or the setting that it is judged by, is another.
func TestJudgedOnce(t *testing.T) {
	b := newBench(t)
	b.servePolicies()
	slow := testPolicy("slow", 1)
	b.put(t, slow)
	var c policyCache
	small, large := config.Default(), config.Default()
	small.Rollout.MaxPinnedPlanBytes = 5
	isvc := refersTo("svc", "slow")
	if got := c.of(b.stores, isvc, large)["slow"].Problem; got != "" {
		t.Error(got)
	}
	kept := c.read[slow]
	kept.Problem = "kept"
	c.read[slow] = kept
	if got := c.of(b.stores, isvc, large)["slow"].Problem; got != "kept" {
		t.Errorf("judged again: %q", got)
	}
	if got := c.of(b.stores, isvc, small)["slow"].Problem; got == "kept" || got == "" {
		t.Errorf("under another setting: %q", got)
	}
	b.put(t, testPolicy("slow", -1))
	if got := c.of(b.stores, isvc, large)["slow"].Problem; got == "" || got == "kept" {
		t.Errorf("of another body: %q", got)
	}
	if len(c.read) != 1 {
		t.Errorf("%d bodies are kept for one reference", len(c.read))
	}
}

// TestWhoAPolicyWakes: the services that refer to it, when its spec changes, and nobody when only
// its status does.
func TestWhoAPolicyWakes(t *testing.T) {
	b := newBench(t, refersTo("svc", "slow"), refersTo("two", "other", "slow"), refersTo("none"))
	old, now := testPolicy("slow", 1), testPolicy("slow", 2)
	got := map[string]bool{}
	for _, key := range keysOf(b.stores, kindPolicy, old) {
		got[key.Name] = true
	}
	if diff := cmp.Diff(map[string]bool{"svc": true, "two": true}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	now.Generation = 3
	status := testPolicy("slow", 1)
	status.ResourceVersion, status.Status.AttachedGroups = "91", 4
	again := testPolicy("slow", 1)
	again.UID = "recreated"
	if samePolicy(old, now) || samePolicy(old, again) || !samePolicy(old, status) {
		t.Error("a change of the spec and a new object are told from a change of the status")
	}
}

func TestPolicyStatus(t *testing.T) {
	leaving := refersTo("leaving", "slow")
	leaving.DeletionTimestamp = &metav1.Time{}
	b := newBench(t, refersTo("svc", "slow", "slow"), refersTo("two", "slow", "other"), leaving)
	b.servePolicies()
	b.put(t, testPolicy("slow", 1), testPolicy("unused", 1))
	r := &policyReconciler{stores: b.stores, settings: b.settings, writer: b.writer, clock: b.clock}
	key := types.NamespacedName{Namespace: "ns", Name: "slow"}
	if res, err := r.Reconcile(t.Context(), key); err != nil || res != (reconcile.Result{}) {
		t.Fatal(res, err)
	}
	if diff := cmp.Diff([]string{"policy-status patch slow"}, b.writer.log()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	const patch = `{"metadata":{"resourceVersion":"90"},"status":{"attachedGroups":3,"conditions":[` +
		`{"lastTransitionTime":"2026-01-02T03:04:05Z","message":"groups can use it","observedGeneration":2,"reason":"BodyValid","status":"True","type":"Ready"},` +
		`{"lastTransitionTime":"2026-01-02T03:04:05Z","message":"groups of this namespace refer to it","observedGeneration":2,"reason":"Attached","status":"True","type":"InUse"}],` +
		`"observedGeneration":2,"portableDigest":"rp1:74e7029e7f20"}}`
	if got := string(b.writer.writes[0].Patch); got != patch {
		t.Errorf("got  %s\nwant %s", got, patch)
	}

	b.writer.reset()
	if _, err := r.Reconcile(t.Context(), types.NamespacedName{Namespace: "ns", Name: "unused"}); err != nil || !strings.Contains(string(b.writer.writes[0].Patch), `"attachedGroups":0`) {
		t.Errorf("a count of zero: %v, %s", err, b.writer.writes[0].Patch)
	}

	// At rest it writes nothing, and nothing for a policy that is gone or going.
	set, _ := b.settings.get(b.stores)
	stored := testPolicy("slow", 1)
	stored.Status = r.next(stored, set)
	b.put(t, stored)
	going := testPolicy("going", 1)
	going.DeletionTimestamp = &metav1.Time{}
	b.put(t, going)
	b.writer.reset()
	for _, name := range []string{"slow", "nobody", "going"} {
		if _, err := r.Reconcile(t.Context(), types.NamespacedName{Namespace: "ns", Name: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := b.writer.log(); len(got) > 0 {
		t.Errorf("at rest: %v", got)
	}

	// A conflict is tried again without a word; anything else is an error.
	edited := testPolicy("slow", 2)
	b.put(t, edited)
	b.writer.answer = conflict
	if res, err := r.Reconcile(t.Context(), key); err != nil || res.RequeueAfter != conflictFirst {
		t.Errorf("after a conflict: %v, %v", res, err)
	}
	b.writer.answer = func(*Write) error { return errors.New("no connection") }
	if _, err := r.Reconcile(t.Context(), key); err == nil || err.Error() != "status of RolloutPolicy ns/slow: no connection" {
		t.Errorf("after an error: %v", err)
	}
}

// policyMapper answers one question.
type policyMapper struct {
	meta.RESTMapper
	answers []error
	asked   int
}

func (m *policyMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	err := m.answers[min(m.asked, len(m.answers)-1)]
	m.asked++
	return &meta.RESTMapping{}, err
}

func TestPoliciesServed(t *testing.T) {
	none := &meta.NoKindMatchError{GroupKind: v1beta1.Kind(v1beta1.RolloutPolicyKind)}
	for _, c := range []struct {
		name    string
		answers []error
		served  bool
	}{
		{"there", []error{nil}, true},
		{"not there", []error{none}, false},
	} {
		got, err := PoliciesServed(t.Context(), &policyMapper{answers: c.answers}, logr.Discard())
		if err != nil || got != c.served {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := PoliciesServed(ctx, &policyMapper{answers: []error{errors.New("no connection")}}, logr.Discard()); !errors.Is(err, context.Canceled) {
		t.Errorf("told to stop while the API server is away: %v", err)
	}
}
