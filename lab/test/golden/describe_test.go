package golden

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// Waits long enough to be looked at, and a grace period for stuck pods short enough to be waited for.
const (
	longRetries  = `{"stuckPodGracePeriod":"5s","updateRetry":{"maxAttempts":3,"initialBackoff":"30m","maxBackoff":"1h"}}`
	shortRetries = `{"stuckPodGracePeriod":"5s","updateRetry":{"maxAttempts":3,"initialBackoff":"2s","backoffFactor":1,"maxBackoff":"2s"}}`
)

// state is a replica that waits for something, and how it came to that.
type state struct {
	name string
	// engine holds fields of the engine, in YAML flow style, and first the image tag that it starts with.
	engine, first string
	// then makes it wait.
	then func(l *lab, s state)
	// shows is what the status must show before it is kept: each of these lines.
	shows []string
}

// TestDescribe keeps what `kubectl describe` says about a replica that waits: for what, why, and what ends it when.
func TestDescribe(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, f := range []string{"model", "runtime"} {
		l.must("kubectl apply -f config/samples/" + f + ".yaml")
	}
	l.stdin("kubectl apply -f -", chatRuntime)
	surge := "lifecycle: {updateStrategy: {type: SurgeThenDrain, rollingUpdate: {maxSurge: 1}}}"
	image := func(tag string) func(*lab, state) {
		return func(l *lab, s state) { l.chat(s, 2, tag) }
	}
	// The text names a node.
	const here = "nodeSelector: {topology.kubernetes.io/zone: lab-a}"
	held := state{name: "held", engine: surge, first: "v1", then: image("v2-unpullable"), shows: []string{"State: Held", "Gate: Held"}}
	backoff := state{name: "backoff", engine: surge, first: "v1", then: image("v2-unpullable"), shows: []string{"State: Backoff", "Gate: RetryBlock"}}
	states := []state{
		held, backoff,
		{name: "surging", engine: surge, first: "v1", then: image("v2-start30m"), shows: []string{"Step: Surge", "Ready Replicas: 2"}},
		{name: "unschedulable", first: "v1", then: image("v2"),
			engine: surge + `, runner: {resources: {limits: {nvidia.com/gpu: "4"}}}, ` + here,
			shows:  []string{"Waiting: Unschedulable"}},
		{name: "paused", engine: surge, first: "v1", then: func(l *lab, s state) {
			// It holds the old pod in rotation once the new one is up.
			l.chat(s, 2, "v2-start30m")
			l.eventually("paused: the surge begins", func() error { return l.shows(s, "Step: Surge") })
			l.must("kubectl annotate isvc chat -n paused ome.io/rollout-paused=true")
			l.eventually("paused: the pause is seen", func() error {
				if text := l.describe(s); !strings.Contains(text, "; paused until ") {
					return errors.New(text)
				}
				return nil
			})
			l.listen(s.name)
		}, shows: []string{"Waiting: Paused", "Serving Pod Count: 2"}},
		{name: "drain-overdue", engine: surge[:len(surge)-1] + ", instanceReadyTimeout: 15s}, terminationGracePeriodSeconds: 1800, " + here,
			first: "v1-drain30m", then: func(l *lab, s state) { l.chat(s, 1, s.first) },
			shows: []string{"Reason: DrainsOverdue"}},
	}
	for _, s := range states {
		l.must("kubectl create namespace " + s.name)
		l.chat(s, 2, s.first)
	}
	for _, s := range states {
		l.must("kubectl wait isvc chat -n " + s.name + " --for=condition=Ready --timeout=4m")
	}

	// Three attempts in a row need short waits and one that is looked at a long one, so the second begins when the first
	// is over; what the others wait for has no part in that.
	l.settings(shortRetries)
	for _, s := range states {
		if s.name != backoff.name {
			s.then(l, s)
		}
	}
	l.eventually(held.name, func() error { return l.shows(held, held.shows...) })
	l.settings(longRetries)
	backoff.then(l, backoff)
	for _, s := range states {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			l := l.with(t)
			l.compare("describe-"+s.name, l.still(s))
		})
	}
}

// settings writes the operator's settings.
func (l *lab) settings(lifecycle string) {
	l.t.Helper()
	l.stdin("kubectl apply -f -", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: ome, name: inferenceservice-config}\ndata: {lifecycle: %q}\n", lifecycle))
}

// chatRuntime serves with engines alone. Its pods stop at once.
const chatRuntime = `
apiVersion: ome.io/v1beta1
kind: ClusterServingRuntime
metadata: {name: chat}
spec:
  supportedModelFormats:
    - modelFormat: {name: safetensors, version: "1"}
      modelFramework: {name: transformers, version: "4.36.0"}
      modelArchitecture: MistralForCausalLM
  protocolVersions: [openAI]
  engineConfig:
    terminationGracePeriodSeconds: 20
    runner:
      name: ome-container
      image: lab.ome.io/engine:v1
      ports: [{name: http, containerPort: 8080, protocol: TCP}]
`

// chat applies the service of a state, in the namespace of its name.
func (l *lab) chat(s state, n int, tag string) {
	l.t.Helper()
	runner := fmt.Sprintf("runner: {name: ome-container, image: 'lab.ome.io/engine:%s'", tag)
	engine := s.engine + ", " + runner + "}"
	if strings.Contains(s.engine, "runner: {") {
		engine = strings.Replace(s.engine, "runner: {", runner+", ", 1)
	}
	l.stdin("kubectl apply -f -", fmt.Sprintf(`
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata: {name: chat, namespace: %s}
spec:
  deploymentMode: OMENative
  model: {name: mistral-7b-instruct-v0-2}
  runtime: {name: chat}
  engine: {minReplicas: %d, maxReplicas: %d, %s}
`, s.name, n, n, engine))
}

// describe is what kubectl says of a state's replica, from its status on.
func (l *lab) describe(s state) string {
	l.t.Helper()
	command := "kubectl describe irep chat-engine -n " + s.name
	_, status, found := strings.Cut(l.must(command), "\nStatus:\n")
	if !found {
		l.t.Fatalf("%s shows no status", command)
	}
	// How often small rows change their encoding on the way, which is an event, depends on how writes fall together.
	status, _, found = strings.Cut(status, "\nEvents:")
	if !found {
		l.t.Fatalf("%s shows no events", command)
	}
	return "$ " + command + "\n...\nStatus:\n" + status + "\n...\n"
}

// hush is longer than a status that only counts otherwise is put off.
const hush = 17 * time.Second

// still waits until the state shows and nothing changes any more.
func (l *lab) still(s state) (text string) {
	l.t.Helper()
	since := time.Now()
	l.every(time.Second, s.name, func() error {
		if now := same(l.describe(s)); now != text {
			text, since = now, time.Now()
		}
		if err := l.shows(s, s.shows...); err != nil {
			return err
		}
		if time.Since(since) < hush {
			return errors.New("it changed a moment ago")
		}
		return nil
	})
	return text
}

// shows says which of the lines are not in the description.
func (l *lab) shows(s state, lines ...string) error {
	have := map[string]bool{}
	text := l.describe(s)
	for line := range strings.Lines(text) {
		have[strings.Join(strings.Fields(line), " ")] = true
	}
	for _, line := range lines {
		if !have[line] {
			return fmt.Errorf("no %q in\n%s", line, text)
		}
	}
	return nil
}

// stdin types a command and what it reads.
func (l *lab) stdin(command, text string) {
	l.t.Helper()
	f, err := os.CreateTemp(l.t.TempDir(), "stdin")
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		l.t.Fatal(err)
	}
	l.must(command + " < " + f.Name())
}
