package golden

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// start is how long a new server takes to listen: until it is told to.
const start = "start30m"

// looks are the commands whose output is kept.
var looks = []string{
	"kubectl get isvc,irep -n mistral-demo",
	"kubectl get isvc,irep -n mistral-demo -o wide",
	"kubectl get pods -n mistral-demo",
	"kubectl ome rollout status mistral-pd -n mistral-demo",
	"kubectl ome rollout status mistral-pd -n mistral-demo -o wide",
	"kubectl ome rollout status mistral-pd -n mistral-demo -o json",
}

func TestWhatAPersonSees(t *testing.T) {
	t.Parallel()
	l := newLab(t)

	// The definitions are there already; a plain apply on top must fit into its annotation.
	applied := 0
	for line := range strings.Lines(l.must("kubectl apply -f config/crd/")) {
		switch {
		case strings.HasSuffix(line, " configured\n"):
			applied++
		case !strings.HasPrefix(line, "Warning: "): // about the annotation that wasn't there before
			t.Errorf("kubectl apply -f config/crd/ said %q", line)
		}
	}
	if crds, err := filepath.Glob(filepath.Join(l.root, "config/crd/*.yaml")); err != nil || len(crds) != applied {
		t.Errorf("%d of %d definitions were configured, %v", applied, len(crds), err)
	}
	for _, f := range []string{"namespace", "model", "runtime", "mistral-pd"} {
		if out := l.must("kubectl apply -f config/samples/" + f + ".yaml"); !strings.HasSuffix(out, " created\n") {
			t.Errorf("kubectl apply -f config/samples/%s.yaml said %q", f, out)
		}
	}

	l.must("kubectl wait isvc mistral-pd -n mistral-demo --for=condition=Ready --timeout=4m")
	l.eventually("the service is at rest", func() error { return l.rests("v1") })
	l.golden("at-rest")

	apply := "sed 's/:v2$/:v2-" + start + "/' config/samples/mistral-pd-v2.yaml | kubectl apply -f -"
	if out := l.must(apply); out != "inferenceservice.ome.io/mistral-pd configured\n" {
		t.Errorf("%s said %q", apply, out)
	}
	l.eventually("the new pods start", l.starting)
	l.golden("mid-roll")
	l.guarded("pause", "true")
	l.listen("mistral-demo")
	l.eventually("both revisions run", l.held)
	l.golden("paused")

	l.guarded("resume", "")
	l.eventually("the roll is over", func() error { return l.rests("v2-" + start) })
	l.golden("finished")
}

// guarded pauses or resumes. A refusal because status moved meanwhile is the guard at work: a person asks again.
func (l *lab) guarded(action, observed string) {
	l.t.Helper()
	command := "kubectl ome rollout " + action + " mistral-pd -n mistral-demo --yes"
	l.eventually(action, func() error {
		out, err := l.run(command)
		if err != nil && !strings.Contains(out, "changed") {
			l.t.Fatalf("$ %s\n%s%v", command, out, err)
		}
		if err != nil {
			return errors.New(out)
		}
		return nil
	})
	l.eventually("the manager sees the "+action, func() error {
		s, err := l.service()
		if err == nil && s.Status.Rollout.ObservedPause != observed {
			err = fmt.Errorf("observedPause is %q", s.Status.Rollout.ObservedPause)
		}
		return err
	})
}

type service struct {
	Metadata struct{ Generation int64 }
	Status   struct {
		ObservedGeneration int64
		Rollout            struct {
			ObservedGeneration int64
			ObservedPause      string
			ActiveRun, LastRun *struct{}
		}
		RolloutCoordination struct {
			Groups []struct{ Phase string }
		}
		Conditions []condition
	}
}

type condition struct{ Type, Status string }

func isTrue(conditions []condition, kind string) bool {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Status == "True"
		}
	}
	return false
}

type replica struct {
	Metadata struct{ Name string }
	Status   struct{ Replicas, ReadyReplicas, AvailableReplicas int }
}

type pod struct {
	Metadata struct {
		Name              string
		DeletionTimestamp string
		Labels            map[string]string
	}
	Spec   struct{ Containers []struct{ Image string } }
	Status struct {
		Phase      string
		Conditions []condition
	}
}

func (l *lab) service() (service, error) {
	return read[service](l, "kubectl get isvc mistral-pd -n mistral-demo")
}

// see checks the pods of each component by image tag and readiness. An InferenceReplica counts Instances, and the one
// of each component serves all the time: a roll lends it a second pod.
func (l *lab) see(want func(component string) map[string]bool) error {
	replicas, err := read[struct{ Items []replica }](l, "kubectl get irep -n mistral-demo")
	if err != nil {
		return err
	}
	pods, err := read[struct{ Items []pod }](l, "kubectl get pods -n mistral-demo")
	if err != nil {
		return err
	}
	if len(replicas.Items) != 3 {
		return fmt.Errorf("%d InferenceReplicas", len(replicas.Items))
	}
	for _, r := range replicas.Items {
		component := strings.TrimPrefix(r.Metadata.Name, "mistral-pd-")
		tags := want(component)
		found := map[string]bool{}
		for _, p := range pods.Items {
			if p.Metadata.Labels["component"] != component {
				continue
			}
			if p.Metadata.DeletionTimestamp != "" || p.Status.Phase != "Running" {
				return fmt.Errorf("pod %s is %s, deleted %q", p.Metadata.Name, p.Status.Phase, p.Metadata.DeletionTimestamp)
			}
			_, tag, _ := strings.Cut(p.Spec.Containers[0].Image, ":")
			if _, twice := found[tag]; twice {
				return fmt.Errorf("two pods of %s run %s", component, tag)
			}
			found[tag] = isTrue(p.Status.Conditions, "Ready")
		}
		if diff := cmp.Diff(tags, found); diff != "" {
			return fmt.Errorf("pods of %s by image tag and readiness, -want +got:\n%s", component, diff)
		}
		if s := r.Status; s.Replicas != 1 || s.ReadyReplicas != 1 || s.AvailableReplicas != 1 {
			return fmt.Errorf("%s reports %+v", r.Metadata.Name, s)
		}
	}
	return nil
}

// rests says why the service, with engine and decoder on one image tag, isn't at rest yet.
func (l *lab) rests(tag string) error {
	s, err := l.service()
	switch g := s.Status.RolloutCoordination.Groups; {
	case err != nil:
		return err
	case s.Status.ObservedGeneration != s.Metadata.Generation && s.Status.Rollout.ObservedGeneration != s.Metadata.Generation:
		return errors.New("the last edit is not observed")
	case !isTrue(s.Status.Conditions, "Ready"):
		return errors.New("not Ready")
	case s.Status.Rollout.ActiveRun != nil:
		return errors.New("a run is open")
	case len(g) != 1 || g[0].Phase != "Idle":
		return fmt.Errorf("groups %+v", g)
	}
	return l.see(func(component string) map[string]bool {
		if component == "router" {
			return map[string]bool{"v1": true}
		}
		return map[string]bool{tag: true}
	})
}

// starting says why engine and decoder don't each have a new pod, begun and not ready.
func (l *lab) starting() error { return l.both("", false) }

// held says why engine and decoder don't each have two ready pods under a pause.
func (l *lab) held() error { return l.both("true", true) }

func (l *lab) both(pause string, up bool) error {
	s, err := l.service()
	if err != nil {
		return err
	}
	if s.Status.Rollout.ActiveRun == nil || s.Status.Rollout.ObservedPause != pause {
		return fmt.Errorf("rollout %+v", s.Status.Rollout)
	}
	return l.see(func(component string) map[string]bool {
		if component == "router" {
			return map[string]bool{"v1": true}
		}
		return map[string]bool{"v1": true, "v2-" + start: up}
	})
}

// golden compares what every look shows with the file of the name.
func (l *lab) golden(name string) {
	l.t.Helper()
	var b strings.Builder
	for _, command := range looks {
		fmt.Fprintf(&b, "$ %s\n%s\n", command, same(l.text(command)))
	}
	l.compare(name, b.String())
}

func (l *lab) compare(name, got string) {
	l.t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			l.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		l.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		l.t.Errorf("%s, -want +got:\n%s", name, diff)
	}
}

var differs = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "<time>"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`\b[0-9a-f]{12}(-[a-z]+-\d+)\b`), "<operation>$1"},
	{regexp.MustCompile(`("resourceVersion": )"\d+"`), `$1"<resourceVersion>"`},
}

var ageColumn = regexp.MustCompile(`(\d+[smhd])+$`)

// same takes out what differs from run to run. Revisions are hashes of what runs, so they stay.
func same(text string) string {
	var b strings.Builder
	aged := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		switch {
		case strings.HasSuffix(line, " AGE"):
			aged = true
		case line == "":
			aged = false
		case aged:
			line = ageColumn.ReplaceAllString(line, "<age>")
		}
		b.WriteString(line + "\n")
	}
	out := b.String()
	for _, d := range differs {
		out = d.find.ReplaceAllString(out, d.put)
	}
	return out
}

// A file that shows an age, a moment or an identity would fail the next run.
func TestSame(t *testing.T) {
	const text = "NAME   READY   AGE\nisvc/a  True   2m10s\n\n\"resourceVersion\": \"12\", \"at\": \"2026-01-02T03:04:05Z\"\n" +
		"0f8fad5b-d9cb-469f-a165-70867728950e 10s\nId: 157c6a7a8907-engine-1\n"
	const want = "NAME   READY   AGE\nisvc/a  True   <age>\n\n\"resourceVersion\": \"<resourceVersion>\", \"at\": \"<time>\"\n<uid> 10s\nId: <operation>-engine-1\n"
	if diff := cmp.Diff(want, same(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
