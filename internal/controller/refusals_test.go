package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

const quota = "exceeded quota: pods, requested: pods=1, used: pods=10, limited: pods=10"

func overQuota(w *Write) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, w.Object.GetName(), errors.New(quota))
}

// refusing is a bench whose decision makes two pods, and puts into the service's
// status what was refused.
func refusing(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, testService(), testReplica(v1beta1.EngineComponent), testReplica(v1beta1.DecoderComponent))
	b.decision.Components = []core.ComponentDecision{{
		Type: v1beta1.EngineComponent, Pods: []core.PodAction{
			{Verb: core.PodCreate, Pod: testPod("b", v1beta1.EngineComponent)}, {Verb: core.PodCreate, Pod: testPod("a", v1beta1.EngineComponent)},
		},
	}, {Type: v1beta1.DecoderComponent}}
	b.decide = func(w core.World) core.Decision {
		b.world = w
		b.decided++
		d := b.decision
		d.Status, d.StatusUrgent = &v1beta1.InferenceServiceStatus{URL: refusalIn(w)}, true
		return d
	}
	return b
}

func refusalIn(w core.World) string { return w.Components[0].Refusal }

// next runs a pass on caches that show everything.
func (b *bench) next(t *testing.T) (time.Duration, error) {
	t.Helper()
	b.clock.Step(time.Minute)
	for _, f := range b.fakes {
		f.version = "9000"
	}
	b.writer.reset()
	return b.pass(t)
}

// TestRefusalIsTold: the pass after a refused write tells core, whose status is
// written though the pod is refused again; and it comes soon.
func TestRefusalIsTold(t *testing.T) {
	b := refusing(t)
	b.writer.answer = func(w *Write) error {
		if w.Kind == WritePodCreate {
			return overQuota(w)
		}
		return nil
	}
	again, err := b.next(t)
	if err == nil || again != paceLeast || refusalIn(b.world) != "" {
		t.Fatalf("first pass: again %v, %v, told %q", again, err, refusalIn(b.world))
	}
	want := `pods "a" is forbidden: ` + quota
	for n := range 20 {
		again, err = b.next(t)
		if refusalIn(b.world) != want || b.world.Components[1].Refusal != "" {
			t.Fatalf("pass %d was told %q, want %q; decoder %q", n, refusalIn(b.world), want, b.world.Components[1].Refusal)
		}
		wrote := b.writer.log()
		if err == nil || again == 0 || again > failureLast || indexOf(wrote, "service-status") != 0 || indexOf(wrote, "pod-create create b") < 0 {
			t.Fatalf("pass %d: again %v, %v, wrote %q", n, again, err, wrote)
		}
	}
	// Accepted: the next pass is told nothing, and comes without an event.
	b.writer.answer = nil
	if again, err = b.next(t); err != nil || again != paceLeast {
		t.Errorf("accepted: again %v, %v", again, err)
	}
	if again, err = b.next(t); err != nil || again != 0 || refusalIn(b.world) != "" {
		t.Errorf("after: again %v, %v, told %q", again, err, refusalIn(b.world))
	}
}

// TestWhatEndsARefusal plays one pass after a refused pod.
func TestWhatEndsARefusal(t *testing.T) {
	answer := func(refuse string, with error) func(*Write) error {
		return func(w *Write) error {
			if strings.HasPrefix(string(w.Kind)+" "+w.Object.GetName(), refuse) {
				return with
			}
			return nil
		}
	}
	later := apierrors.NewTooManyRequests("later", 1)
	tests := map[string]struct {
		answer func(*Write) error
		change func(*core.Decision)
		kept   bool
	}{
		"all accepted":                  {answer: func(*Write) error { return nil }},
		"only one accepted":             {answer: answer("pod-create b", later), kept: true},
		"unknown outcome":               {answer: answer("pod-create", errors.New("connection reset")), kept: true},
		"the status did not get so far": {answer: answer("service-status", later), kept: true},
		"no longer asked for":           {answer: answer("pod-create", later), change: func(d *core.Decision) { d.Components[0].Pods = nil }},
		"other pod calls only": {answer: answer("pod-delete", later), change: func(d *core.Decision) {
			d.Components[0].Pods = []core.PodAction{{Verb: core.PodDelete, Pod: testPod("c", v1beta1.EngineComponent)}}
		}},
		"the component is gone": {answer: func(*Write) error { return nil }, change: func(d *core.Decision) { d.Components = d.Components[1:] }},
		"an earlier write failed": {answer: answer("replica-status", later), kept: true, change: func(d *core.Decision) {
			d.Components[0].ReplicaStatus, d.Components[0].ReplicaStatusUrgent = &v1beta1.InferenceReplicaStatus{Replicas: 9}, true
		}},
		"a sibling failed": {answer: answer("pod-create d", later), change: func(d *core.Decision) {
			d.Components[1].Pods = []core.PodAction{{Verb: core.PodCreate, Pod: testPod("d", v1beta1.DecoderComponent)}}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := refusing(t)
			b.writer.answer = func(w *Write) error {
				if w.Kind == WritePodCreate {
					return overQuota(w)
				}
				return nil
			}
			if _, err := b.next(t); err == nil {
				t.Fatal("no error")
			}
			b.writer.answer = test.answer
			if test.change != nil {
				test.change(&b.decision)
			}
			_, _ = b.next(t) // with an error where a write fails
			if kept := b.states.of(testKey).refusals[v1beta1.EngineComponent].text != ""; kept != test.kept {
				t.Errorf("kept = %v", kept)
			}
		})
	}
}

// TestWhatIsARefusal: answers that mean no, and those that mean something else.
func TestWhatIsARefusal(t *testing.T) {
	gr := schema.GroupResource{Resource: "pods"}
	webhook := apierrors.NewForbidden(gr, "a", nil)
	webhook.ErrStatus.Message = "admission webhook \"policy.example\" denied the request:\n\tno latest\x1b[31m tags"
	long := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil)
	long.ErrStatus.Message = strings.Repeat("ä", 400)
	tests := map[string]struct {
		err  error
		want string
	}{
		"quota":      {apierrors.NewForbidden(gr, "a", errors.New("exceeded quota")), `pods "a" is forbidden: exceeded quota`},
		"webhook":    {webhook, `admission webhook "policy.example" denied the request: no latest[31m tags`},
		"invalid":    {long, strings.Repeat("ä", 148) + "…"},
		"conflict":   {apierrors.NewConflict(gr, "a", errors.New("x")), ""},
		"overload":   {apierrors.NewTooManyRequests("later", 1), ""},
		"timeout":    {apierrors.NewServerTimeout(gr, "create", 1), ""},
		"no answer":  {errors.New("connection reset"), ""},
		"name taken": {apierrors.NewAlreadyExists(gr, "a"), "Pod ns/a exists and does not belong to InferenceService ns/svc (nothing owns it); delete or rename it"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := refusing(t)
			b.decision.Components[0].Pods = b.decision.Components[0].Pods[1:]
			foreign := testPod("a", v1beta1.EngineComponent)
			foreign.Labels = nil
			b.live.objects[object{kindPod, keyOf(foreign)}] = foreign
			b.writer.answer = func(w *Write) error {
				if w.Kind == WritePodCreate {
					return test.err
				}
				return nil
			}
			_, _ = b.next(t)
			got := b.states.of(testKey).refusals[v1beta1.EngineComponent].text
			if got != test.want || len(got) > mostRefusal || !utf8.ValidString(got) {
				t.Errorf("%d bytes %q, want %q", len(got), got, test.want)
			}
		})
	}
}

// TestRefusalsOfEveryKind: each kind of write of a component is told.
func TestRefusalsOfEveryKind(t *testing.T) {
	for _, k := range []WriteKind{WriteRevision, WriteReplica, WriteReplicaStatus, WritePodCreate, WritePodGate, WriteService} {
		t.Run(string(k), func(t *testing.T) {
			b := fullBench(t)
			// The fake cache never shows a deletion.
			b.decision.DeleteServices, b.decision.Components[1].Pods = nil, nil
			b.decision.Components[0].DeleteRevisions = nil
			for _, s := range slices.Concat(b.decision.CreateServices, b.decision.UpdateServices) {
				s.Labels[v1beta1.ComponentLabel] = string(v1beta1.EngineComponent)
			}
			b.writer.answer = func(w *Write) error {
				if w.Kind == k && w.Object.GetName() != "svc-decoder" {
					return overQuota(w)
				}
				return nil
			}
			for range 2 {
				if _, err := b.next(t); err == nil {
					t.Fatal("no error")
				}
			}
			for i, want := range []bool{true, false} {
				if got := b.world.Components[i].Refusal; strings.Contains(got, quota) != want {
					t.Errorf("%s was told %q", b.world.Components[i].Type, got)
				}
			}
			if k == WriteService && !strings.Contains(b.world.Components[0].Refusal, `"changed"`) {
				t.Errorf("not the first by name: %s", b.world.Components[0].Refusal)
			}
		})
	}
}

// TestRefusalOfManyPods: which is told doesn't depend on which is refused last.
func TestRefusalOfManyPods(t *testing.T) {
	b := refusing(t)
	b.decision.Components[0].Pods = nil
	for i := range 40 {
		b.decision.Components[0].Pods = append(b.decision.Components[0].Pods, core.PodAction{Verb: core.PodCreate, Pod: testPod(fmt.Sprintf("p-%02d", 39-i), v1beta1.EngineComponent)})
	}
	b.writer.answer = func(w *Write) error {
		if _, pod := w.Object.(*corev1.Pod); pod {
			return overQuota(w)
		}
		return nil
	}
	for range 10 {
		if _, err := b.next(t); err == nil {
			t.Fatal("no error")
		}
		if got := b.states.of(testKey).refusals[v1beta1.EngineComponent].name; got != "p-00" {
			t.Fatalf("told of %s", got)
		}
	}
}
