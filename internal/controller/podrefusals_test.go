package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

var podResource = schema.GroupResource{Resource: "pods"}

func invalidPod(*Write) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil)
}

func TestKindOfRefusal(t *testing.T) {
	withText := func(err *apierrors.StatusError, text string) error {
		err.ErrStatus.Message = text
		return err
	}
	terminating := apierrors.NewForbidden(podResource, "a", errors.New("unable to create new content in namespace ns because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Message: "namespace ns is being terminated", Field: "metadata.namespace"}}
	const webhook = `admission webhook "policy.example" denied the request: `
	tests := map[string]struct {
		err  error
		want core.RefusalKind
	}{
		"quota":                     {apierrors.NewForbidden(podResource, "a", errors.New(quota)), core.RefusedQuota},
		"a quota that wants limits": {apierrors.NewForbidden(podResource, "a", errors.New("failed quota: q: must specify limits.cpu")), core.RefusedOther},
		"missing right":             {apierrors.NewForbidden(podResource, "a", errors.New(`User "x" cannot create resource "pods"`)), core.RefusedOther},
		"namespace on its way out":  {terminating, core.RefusedTerminating},
		"invalid":                   {invalidPod(nil), core.RefusedInvalid},
		"malformed":                 {apierrors.NewBadRequest("json: cannot unmarshal"), core.RefusedOther},
		"webhook that forbids":      {withText(apierrors.NewForbidden(podResource, "a", nil), webhook+"exceeded quota of the team"), core.RefusedOther},
		"webhook that finds it invalid": {
			withText(apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), webhook+"no latest tags"), core.RefusedOther},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := kindOfRefusal(fmt.Errorf("create of Pod ns/a: %w", test.err)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// at runs a pass at a time after the start of the bench, on caches that show everything.
func (b *bench) at(t *testing.T, start time.Time, after time.Duration) (time.Duration, error) {
	t.Helper()
	b.clock.SetTime(start.Add(after))
	for _, f := range b.fakes {
		f.version = "9000"
	}
	b.writer.reset()
	return b.pass(t)
}

func creations(b *bench) []string {
	var out []string
	for _, w := range b.writer.writes {
		if w.Kind == WritePodCreate {
			out = append(out, w.Object.GetName())
		}
	}
	slices.Sort(out)
	return out
}

// TestRefusedPodsAreTold: the pass after a refusal knows it by pod and kind; what was
// accepted, or is asked for no longer, leaves.
func TestRefusedPodsAreTold(t *testing.T) {
	b := refusing(t)
	b.writer.answer = func(w *Write) error {
		switch {
		case w.Kind == WritePodCreate && w.Object.GetName() == "a":
			return overQuota(w)
		case w.Kind == WritePodCreate && w.Object.GetName() == "b":
			return invalidPod(w)
		}
		return nil
	}
	toldOf := func() map[string]core.RefusalKind {
		out := map[string]core.RefusalKind{}
		for name, r := range b.world.Components[0].RefusedPods {
			if out[name] = r.Kind; !strings.Contains(r.Text, "a") || len(r.Text) > mostRefusal {
				t.Errorf("%s was refused with %q", name, r.Text)
			}
		}
		return out
	}
	step := func(what string, want map[string]core.RefusalKind, again time.Duration) {
		t.Helper()
		got, _ := b.next(t)
		if diff := cmp.Diff(want, toldOf()); diff != "" {
			t.Errorf("%s: told (-want +got):\n%s", what, diff)
		}
		if got != again {
			t.Errorf("%s: again after %v, want %v", what, got, again)
		}
		if len(b.world.Components[1].RefusedPods) > 0 {
			t.Errorf("%s: the decoder was told %v", what, b.world.Components[1].RefusedPods)
		}
	}
	both := map[string]core.RefusalKind{"a": core.RefusedQuota, "b": core.RefusedInvalid}
	const pace = 5 * time.Second
	step("first", map[string]core.RefusalKind{}, paceLeast)
	step("both refused again", both, pace)
	b.writer.answer = func(w *Write) error {
		if w.Kind == WritePodCreate && w.Object.GetName() == "b" {
			return invalidPod(w)
		}
		return nil
	}
	step("a is accepted", both, paceLeast)
	step("b is refused still", map[string]core.RefusalKind{"b": core.RefusedInvalid}, pace)
	b.decision.Components[0].Pods = b.decision.Components[0].Pods[1:] // only a
	step("b is asked for no longer", map[string]core.RefusalKind{"b": core.RefusedInvalid}, paceLeast)
	step("nothing is left", map[string]core.RefusalKind{}, 0)
}

// TestAnotherKindOfRefusalIsNews: core hears of it in the next pass.
func TestAnotherKindOfRefusalIsNews(t *testing.T) {
	b := refusing(t)
	b.writer.answer = onlyPods(overQuota)
	for range 2 {
		if _, err := b.next(t); err == nil {
			t.Fatal("no error")
		}
	}
	b.writer.answer = onlyPods(invalidPod)
	if again, _ := b.next(t); again != paceLeast {
		t.Errorf("again after %v", again)
	}
	_, _ = b.next(t) // refused once more
	if got := b.world.Components[0].RefusedPods["a"].Kind; got != core.RefusedInvalid {
		t.Errorf("told %s", got)
	}
}

func onlyPods(answer func(*Write) error) func(*Write) error {
	return func(w *Write) error {
		if w.Kind == WritePodCreate {
			return answer(w)
		}
		return nil
	}
}

// TestPaceOfRefusedPods: however many passes events cause, a refused pod is asked for
// at the pace of the setting, and it is asked for without any event.
func TestPaceOfRefusedPods(t *testing.T) {
	b := refusing(t)
	b.writer.answer = onlyPods(overQuota)
	start := b.clock.Now()
	sent := 0
	for tick := time.Duration(0); tick < 20*time.Second; tick += 100 * time.Millisecond {
		_, _ = b.at(t, start, tick) // with an error where something was refused
		sent += len(creations(b))
	}
	if sent != 2*4 {
		t.Errorf("%d creations of two pods in 20 s at 5 s, with an event each 100 ms", sent)
	}

	// No event at all: each pass comes when the one before said.
	b = refusing(t)
	b.writer.answer = onlyPods(overQuota)
	start, passes, tick := b.clock.Now(), 0, time.Duration(0)
	for sent = 0; tick < 20*time.Second; passes++ {
		again, _ := b.at(t, start, tick)
		sent += len(creations(b))
		if again <= 0 {
			t.Fatalf("after %v nothing is due any more", tick)
		}
		tick += again
	}
	if sent != 2*4 || passes > 8 {
		t.Errorf("%d creations in %d passes in 20 s", sent, passes)
	}
}

// TestAnotherAttemptIsNotKeptWaiting: the pod of another operation or revision may fit.
func TestAnotherAttemptIsNotKeptWaiting(t *testing.T) {
	tests := map[string]struct {
		change func(*core.PodAction)
		want   []string
	}{
		"the same":         {func(*core.PodAction) {}, nil},
		"a fuller text":    {func(a *core.PodAction) { a.Reason = "x" }, nil},
		"other operation":  {func(a *core.PodAction) { a.Operation = "op-2" }, []string{"a"}},
		"another revision": {func(a *core.PodAction) { a.Pod.Labels[v1beta1.RevisionHashLabel] = "0a1b2c3d" }, []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := refusing(t)
			b.writer.answer = onlyPods(overQuota)
			start := b.clock.Now()
			if _, err := b.at(t, start, 0); err == nil {
				t.Fatal("no error")
			}
			test.change(&b.decision.Components[0].Pods[1])
			_, _ = b.at(t, start, time.Second)
			if diff := cmp.Diff(test.want, creations(b)); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			// What was refused for one attempt says nothing about another.
			b.writer.answer = func(w *Write) error {
				if w.Kind == WritePodCreate {
					return apierrors.NewTooManyRequests("later", 1)
				}
				return nil
			}
			b.decision.Components[0].Pods[1].Operation = "op-3"
			_, _ = b.at(t, start, 2*time.Second)
			_, _ = b.at(t, start, 4*time.Second)
			if got, ok := b.world.Components[0].RefusedPods["a"]; ok {
				t.Errorf("told %v of an attempt that had no answer", got)
			}
		})
	}
}

// TestRefusedPodsBehindAFailingStatus: while something before the pods fails, its pace
// is the one that counts.
func TestRefusedPodsBehindAFailingStatus(t *testing.T) {
	b := refusing(t)
	b.writer.answer = onlyPods(overQuota)
	start := b.clock.Now()
	if _, err := b.at(t, start, 0); err == nil {
		t.Fatal("no error")
	}
	b.decision.Components[0].ReplicaStatus, b.decision.Components[0].ReplicaStatusUrgent = &v1beta1.InferenceReplicaStatus{Replicas: 9}, true
	b.writer.answer = func(w *Write) error {
		if w.Kind == WriteReplicaStatus {
			return apierrors.NewForbidden(podResource, w.Object.GetName(), errors.New("no"))
		}
		return nil
	}
	at, passes := 10*time.Second, 0
	for ; at < 10*time.Minute; passes++ {
		again, _ := b.at(t, start, at)
		if len(creations(b)) > 0 {
			t.Fatal("a pod was created without its status")
		}
		at += again
	}
	if passes > 40 {
		t.Errorf("%d passes in 10 minutes of a status that is refused", passes)
	}
	if got := b.world.Components[0].RefusedPods["a"].Kind; got != core.RefusedQuota {
		t.Errorf("the pod's refusal was forgotten: %q", got)
	}
}

// TestRetryPaceFollowsTheSetting, which may not be faster than any pass.
func TestRetryPaceFollowsTheSetting(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{0: paceLeast, time.Nanosecond: paceLeast, 7 * time.Second: 7 * time.Second} {
		p := &pass{}
		p.world.Settings.Lifecycle.Requeue.Operation = set
		if got := p.retryPace(); got != want {
			t.Errorf("%v: %v, want %v", set, got, want)
		}
	}
}
